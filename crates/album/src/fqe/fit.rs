//! Fits the FQE ensemble to episodes: first to the behaviour policy, then to the evaluated policy.

use super::policy::PolicyActions;
use crate::error::Error;
use album_agents::NetworkState;
use album_agents::agents::fqe::{Config, Fqe};
use album_base::rng;
use album_data::{Batch, Dataset, Sampler, SegmentConfig, Segments, View};
use album_nn::Pool;
use album_train::StopFlag;

/// Batch size of a full pass over the data.
const ROWS: usize = 4096;
/// Number of steps between two checks of the stop flag.
const LOOK: u64 = 50;

/// The policy whose value is estimated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose<'a> {
    /// The policy that recorded the data.
    Behaviour,
    /// The policy under evaluation, given by its actions.
    Policy(&'a PolicyActions),
}

/// The ensemble and the data it is fitted to.
pub(crate) struct Fitting<'d> {
    data: &'d Dataset,
    fqe: Fqe,
    /// How many times each episode occurs in each member's bootstrap resample.
    resamples: Vec<f32>,
    segments: Segments,
    batch: Batch,
    seed: u64,
}

impl<'d> Fitting<'d> {
    pub fn new(config: Config, data: &'d Dataset, seed: u64, pool: &Pool) -> Result<Self, Error> {
        let segments =
            Segments::new(SegmentConfig { k: 1, gamma: config.common.gamma, ..SegmentConfig::default() })
                .map_err(|e| Error::Config(e.to_string()))?;
        let batch = segments.batch(data, config.common.batch_size);
        let (episodes, members) = (data.episodes().len(), config.ensemble);
        let mut draw = rng::stream(seed, "fqe resamples");
        let mut resamples = vec![0.0; episodes * members];
        for member in 0..members {
            for _ in 0..episodes {
                resamples[rng::below(&mut draw, episodes as u64) as usize * members + member] += 1.0;
            }
        }
        let fqe = Fqe::new(config, data, seed, pool)?;
        Ok(Fitting { data, fqe, resamples, segments, batch, seed })
    }

    pub fn members(&self) -> usize {
        self.fqe.config().ensemble
    }

    /// Whether a member's bootstrap resample contains the episode.
    pub fn learned_from(&self, episode: usize, member: usize) -> bool {
        self.resamples[episode * self.members() + member] > 0.0
    }

    /// Snapshot of the networks.
    pub fn state(&self) -> Vec<NetworkState> {
        self.fqe.state()
    }

    /// Restores a snapshot.
    pub fn load(&mut self, state: &[NetworkState]) -> Result<(), Error> {
        Ok(self.fqe.load(state)?)
    }

    /// Runs `updates` gradient steps, continuing from the current networks.
    pub fn fit(
        &mut self,
        whose: Whose<'_>,
        updates: u64,
        stop: &StopFlag,
        observer: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let (data, members, width) = (self.data, self.members(), self.data.action_dim());
        let sampler = Sampler::new(self.seed, data.len());
        let mut weights = vec![0.0; self.batch.len() * members];
        for step in 0..updates {
            if step % LOOK == 0 {
                if stop.is_set() {
                    return Err(Error::Stopped("stopped; nothing was changed".into()));
                }
                observer(step);
            }
            sampler.fill(step, self.batch.indices_mut());
            self.segments.gather(data, &mut self.batch);
            for row in 0..self.batch.len() {
                let transition = self.batch.indices()[row];
                let place = data.episodes().locate(transition);
                let drawn = &self.resamples[place.episode * members..][..members];
                let weights = &mut weights[row * members..][..members];
                weights.copy_from_slice(drawn);
                match whose {
                    // After a truncated recording the behaviour's next action is unknown, so there is no target.
                    Whose::Behaviour if place.left == 1 && self.batch.masks()[row] > 0.0 => weights.fill(0.0),
                    Whose::Behaviour => {}
                    Whose::Policy(actions) => {
                        let next = actions.at(step as usize, transition + place.episode + 1);
                        self.batch.next_actions_mut()[row * width..][..width].copy_from_slice(next);
                    }
                }
            }
            let loss = self.fqe.update(&self.batch, &weights, step, updates);
            if !loss.is_finite() {
                return Err(Error::Numerical(format!(
                    "step {step} of fitted Q evaluation: the loss is {loss}"
                )));
            }
        }
        observer(updates);
        Ok(())
    }

    /// Q of every member at every recorded transition.
    pub fn q_recorded(&mut self) -> Vec<f32> {
        let data = self.data;
        let mut q = Vec::with_capacity(data.len() * self.members());
        for episode in 0..data.episodes().len() {
            let (states, actions) = (data.episode_states(episode), data.episode_actions(episode));
            for first in (0..actions.rows()).step_by(ROWS) {
                let rows = first..(first + ROWS).min(actions.rows());
                q.extend(self.fqe.q(states.range(rows.clone()), actions.range(rows)));
            }
        }
        q
    }

    /// Q of every member at arbitrary state-action pairs.
    pub fn q(&mut self, states: View<'_>, actions: View<'_>) -> Vec<f32> {
        self.fqe.q(states, actions)
    }

    /// The policy's value in every state, per member: the mean of Q over the sampled actions.
    pub fn v(&mut self, actions: &PolicyActions) -> Vec<f32> {
        let (data, dim, width) = (self.data, self.data.observation_dim(), self.data.action_dim());
        let observations: Vec<f32> = data.states().flatten().copied().collect();
        let mut v = vec![0.0; observations.len() / dim * self.members()];
        for draw in 0..actions.draws() {
            let parts = observations.chunks(ROWS * dim).zip(actions.all(draw).chunks(ROWS * width));
            for ((s, a), v) in parts.zip(v.chunks_mut(ROWS * self.fqe.config().ensemble)) {
                let rows = s.len() / dim;
                let q = self.fqe.q(View::new(s, rows, dim), View::new(a, rows, width));
                v.iter_mut().zip(q).for_each(|(v, q)| *v += q / actions.draws() as f32);
            }
        }
        v
    }
}

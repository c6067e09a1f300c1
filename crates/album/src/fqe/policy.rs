//! The policy's actions in every state of the data.

use album_agents::{Agent, Learner, Moment};
use album_data::Dataset;

/// Batch size for querying the policy.
const ROWS: usize = 1024;
/// Number of actions sampled in each state from a stochastic policy.
const DRAWS: usize = 4;

/// The policy's actions in every state, encoded as in a [`Dataset`]: episode by episode, including each final state.
#[derive(Debug)]
pub(crate) struct PolicyActions {
    width: usize,
    /// One set of actions, or several for a stochastic policy.
    draws: Vec<Vec<f32>>,
}

impl PolicyActions {
    /// Queries the policy on `threads` threads. Every state is treated as the first of its own episode.
    pub fn of(agent: &Learner, data: &Dataset, threads: usize) -> Self {
        let observations: Vec<f32> = data.states().flatten().copied().collect();
        let (dim, width) = (data.observation_dim(), data.action_dim());
        let states = observations.len() / dim;
        let draw = |draw: usize, states: usize| {
            let mut actions = vec![0.0; states * width];
            let part = states.div_ceil(threads.max(1)).next_multiple_of(ROWS);
            let parts = observations[..states * dim].chunks(part * dim).zip(actions.chunks_mut(part * width));
            std::thread::scope(|scope| {
                for (number, (seen, done)) in parts.enumerate() {
                    let mut policy = agent.policy();
                    scope.spawn(move || {
                        let mut answer = Vec::new();
                        let calls = seen.chunks(ROWS * dim).zip(done.chunks_mut(ROWS * width));
                        for (call, (seen, done)) in calls.enumerate() {
                            let first = (draw * states + number * part + call * ROWS) as u64;
                            let moments: Vec<Moment> = (first..first + (seen.len() / dim) as u64)
                                .map(|episode| Moment { episode, step: 0 })
                                .collect();
                            policy.act(seen, &moments, &mut answer);
                            done.copy_from_slice(&answer);
                        }
                    });
                }
            });
            data.action_space().from_physical(&mut actions);
            actions
        };
        let few = states.min(64);
        let samples = draw(0, few) != draw(1, few);
        PolicyActions {
            width,
            draws: (0..if samples { DRAWS } else { 1 }).map(|d| draw(d, states)).collect(),
        }
    }

    /// Number of actions sampled per state.
    pub fn draws(&self) -> usize {
        self.draws.len()
    }

    /// The actions of one draw in all states.
    pub fn all(&self, draw: usize) -> &[f32] {
        &self.draws[draw % self.draws.len()]
    }

    /// The action of one draw in one state.
    pub fn at(&self, draw: usize, state: usize) -> &[f32] {
        &self.all(draw)[state * self.width..][..self.width]
    }

    /// Probability of a discrete action in a state, estimated from the draws.
    pub fn probability(&self, state: usize, choice: f32) -> f64 {
        let same = self.draws.iter().filter(|draw| draw[state] == choice).count();
        same as f64 / self.draws.len() as f64
    }
}

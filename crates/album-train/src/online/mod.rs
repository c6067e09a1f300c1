//! Online training: the agent collects its own data, with one update per environment step.
//!
//! ```text
//! repeat   a = explore(s), or a uniform action in the first steps
//!          the environment takes a                        | meanwhile: one update on transitions of the replay
//!          (s, a, r, m, s') goes into the replay
//! ```
//!
//! The environment steps in its own process while the agent learns; the newest transition enters the replay
//! buffer one update later than in a sequential loop. Random draws are functions of the seed and the step,
//! and an episode is a function of its seed and actions, so a stopped run resumes exactly: a checkpoint holds
//! the agent and the replay buffer, and the current episode is replayed up to its last step.

mod state;

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::path::Path;

use album_agents::{Agent, Learner, Metrics, Moment};
use album_base::{atomic, rng};
use album_data::{Batch, Replay, Sampler, View};
use album_envs::{Answer, EnvPool};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::guard;
use crate::signals::StopFlag;

/// Consecutive environment failures before a run gives up.
const LOST_IN_A_ROW: usize = 3;

/// Number of episodes averaged in a row of the learning curve.
const RECENT: usize = 20;

/// The schedule of an online run.
#[derive(Clone, Debug)]
pub struct OnlinePlan {
    /// Number of environment steps.
    pub steps: u64,
    /// Number of first steps with uniformly random actions and without updates.
    pub random_steps: u64,
    /// Capacity of the replay buffer in transitions.
    pub capacity: usize,
    /// Steps between rows of the learning curve.
    pub log_every: u64,
    /// Steps between checkpoints.
    pub save_every: u64,
    /// Seed of all randomness except the agent's own.
    pub seed: u64,
    /// Everything else that the numbers depend on: a checkpoint with a different text is refused.
    pub identity: String,
}

/// A training run of an online agent.
pub struct Online<'a> {
    /// The agent to train.
    pub agent: &'a mut Learner,
    /// The environments, of which one slot is used.
    pub envs: &'a mut dyn EnvPool,
    /// The schedule.
    pub plan: &'a OnlinePlan,
    /// Path of the checkpoint.
    pub state: &'a Path,
    /// Path of the learning curve, as CSV.
    pub curve: &'a Path,
    /// Asks the run to save and stop.
    pub stop: StopFlag,
    /// Receives the events of the run.
    pub observer: &'a mut dyn FnMut(&OnlineEvent<'_>),
}

impl fmt::Debug for Online<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Online").field("plan", &self.plan).field("state", &self.state).finish_non_exhaustive()
    }
}

/// An event of an online run.
#[derive(Debug)]
#[non_exhaustive]
pub enum OnlineEvent<'a> {
    /// The run resumes from a checkpoint.
    Resumed {
        /// Steps done before.
        step: u64,
    },
    /// A row of the learning curve was logged.
    Logged {
        /// Steps done.
        step: u64,
        /// Means over the latest episodes.
        recent: Recent,
    },
    /// The environment failed and its episode is replayed.
    Lost {
        /// The error.
        reason: &'a str,
    },
}

impl fmt::Display for OnlineEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnlineEvent::Resumed { step } => write!(f, "resuming after step {step}"),
            OnlineEvent::Logged { step, recent } => write!(f, "{step} steps: {recent}"),
            OnlineEvent::Lost { reason } => {
                write!(f, "the environment failed and its episode is repeated: {reason}")
            }
        }
    }
}

/// Means over the latest complete episodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recent {
    /// Mean reward per step.
    pub reward: f64,
    /// Mean episode length.
    pub length: f64,
    /// Fraction of episodes that terminated before the time limit.
    pub ended: f64,
}

impl fmt::Display for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reward {:.3} a step, episodes of {:.0} steps", self.reward, self.length)
    }
}

/// Progress of a run; with the agent and the replay buffer, everything needed to resume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OnlineProgress {
    /// Steps done.
    pub step: u64,
    /// Number of complete episodes.
    pub episodes: u64,
    /// Steps done in the current episode.
    episode_step: u64,
    /// Return of the current episode so far.
    episode_return: f64,
    /// The latest complete episodes.
    recent: VecDeque<Ended>,
    /// The learning curve so far, as CSV.
    pub curve: String,
}

/// A complete episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Ended {
    reward: f64,
    length: u64,
    /// Whether it terminated, rather than reaching the time limit.
    terminated: bool,
}

impl OnlineProgress {
    /// Means over the latest episodes; NaN before the first one is complete.
    pub fn recent(&self) -> Recent {
        let sum = |f: &dyn Fn(&Ended) -> f64| self.recent.iter().map(f).sum::<f64>();
        let (steps, n) = (sum(&|e| e.length as f64), self.recent.len() as f64);
        Recent {
            reward: sum(&|e| e.reward) / steps,
            length: steps / n,
            ended: sum(&|e| f64::from(u8::from(e.terminated))) / n,
        }
    }

    fn take(&mut self, reward: f32, terminated: bool, truncated: bool) {
        self.step += 1;
        self.episode_step += 1;
        self.episode_return += f64::from(reward);
        if terminated || truncated {
            let (reward, length) = (self.episode_return, self.episode_step);
            self.recent.push_back(Ended { reward, length, terminated });
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
            self.episodes += 1;
            (self.episode_step, self.episode_return) = (0, 0.0);
        }
    }
}

impl Online<'_> {
    /// Trains until the plan ends or the stop flag is raised, and returns the progress. Saves a checkpoint in
    /// both cases.
    pub fn run(mut self) -> Result<OnlineProgress, TrainError> {
        let shape = self.envs.shape().clone();
        let (width, action_dim) = (shape.observation_dim, shape.action_dim());
        let mut replay = Replay::new(width, action_dim, self.plan.capacity);
        let mut progress = match state::load(self.state, &self.plan.identity, self.agent, &mut replay)? {
            Some(progress) => {
                (self.observer)(&OnlineEvent::Resumed { step: progress.step });
                progress
            }
            None => OnlineProgress::default(),
        };
        let mut batch = replay.batch(self.agent.batch_size());
        let mut s = self.reach(&progress, &replay)?;
        while progress.step < self.plan.steps && !self.stop.is_set() {
            let step = progress.step;
            let a = self.action(&s, &progress, action_dim);
            self.envs.step(0, &a)?;
            let logs = (step + 1).is_multiple_of(self.plan.log_every);
            let metrics = self.update(step, &replay, &mut batch, logs)?;
            let outcome = loop {
                match self.answer()? {
                    Answer::Stepped(outcome) => break outcome,
                    Answer::Started { .. } => {}
                    Answer::Lost { reason } => {
                        (self.observer)(&OnlineEvent::Lost { reason: &reason });
                        self.reach(&progress, &replay)?;
                        self.envs.step(0, &a)?;
                    }
                }
            };
            let mask = f32::from(u8::from(!outcome.terminated));
            let reward = outcome.reward as f32;
            replay.push(&s, &a, reward, mask, &outcome.observation);
            progress.take(reward, outcome.terminated, outcome.truncated);
            s = match progress.episode_step {
                0 => self.reach(&progress, &replay)?,
                _ => outcome.observation,
            };
            if logs {
                self.log(&mut progress, &metrics)?;
            }
            if progress.step.is_multiple_of(self.plan.save_every) {
                self.save(&progress, &replay)?;
            }
        }
        self.save(&progress, &replay)?;
        Ok(progress)
    }

    /// The action of a step: uniformly random at first, then from the exploring agent.
    fn action(&mut self, s: &[f32], progress: &OnlineProgress, action_dim: usize) -> Vec<f32> {
        if progress.step < self.plan.random_steps {
            let mut draw = rng::stream(self.plan.seed, "random-actions");
            draw.set_stream(progress.step);
            return (0..action_dim).map(|_| (2.0 * rng::unit(&mut draw) - 1.0) as f32).collect();
        }
        let moment = Moment { episode: self.episode_seed(progress.episodes), step: progress.episode_step };
        self.agent.explore(View::new(s, 1, s.len()), &[moment])
    }

    /// The update of a step, with its metrics if requested.
    fn update(
        &mut self,
        step: u64,
        replay: &Replay,
        batch: &mut Batch,
        measured: bool,
    ) -> Result<Metrics, TrainError> {
        let mut metrics = Metrics::new();
        let Some(update) = step.checked_sub(self.plan.random_steps) else { return Ok(metrics) };
        Sampler::new(self.plan.seed, replay.len()).fill(update, batch.indices_mut());
        replay.gather(batch);
        let bad = |bad: guard::Bad| bad.at(step, None);
        let loss = self.agent.update(batch, update, measured.then_some(&mut metrics));
        guard::loss(loss).and_then(|()| guard::metrics(&metrics)).map_err(bad)?;
        Ok(metrics)
    }

    fn episode_seed(&self, episode: u64) -> u64 {
        let mut draw = rng::stream(self.plan.seed, "episodes");
        draw.set_stream(episode);
        draw.next_u64()
    }

    /// The next answer of the environment.
    fn answer(&mut self) -> Result<Answer, TrainError> {
        loop {
            if let Some((_, answer)) = self.envs.wait()?.into_iter().find(|(slot, _)| *slot == 0) {
                return Ok(answer);
            }
        }
    }

    /// Replays the current episode from its start with the recorded actions, to bring the environment to the
    /// state of the run. Returns the current observation.
    fn reach(&mut self, progress: &OnlineProgress, replay: &Replay) -> Result<Vec<f32>, TrainError> {
        let mut lost = 0;
        'again: loop {
            self.envs.reset(0, self.episode_seed(progress.episodes), false)?;
            let mut done = 0;
            loop {
                let observation = match self.answer()? {
                    Answer::Started { observation, .. } => observation,
                    Answer::Stepped(outcome) => outcome.observation,
                    Answer::Lost { reason } => {
                        lost += 1;
                        if lost == LOST_IN_A_ROW {
                            return Err(TrainError::Environments { lost, last: reason });
                        }
                        (self.observer)(&OnlineEvent::Lost { reason: &reason });
                        continue 'again;
                    }
                };
                if done == progress.episode_step {
                    return Ok(observation);
                }
                let first = progress.step - progress.episode_step;
                let Some([s, a, _]) = replay.transition(first + done) else {
                    return Err(TrainError::damaged(
                        self.state,
                        "the replay buffer does not contain the current episode",
                    ));
                };
                if s != observation {
                    let reason = format!(
                        "found another observation at step {done} of the present episode than when it was first \
                         played; resume with the same packages on the same kind of processor"
                    );
                    return Err(TrainError::damaged(self.state, reason));
                }
                self.envs.step(0, a)?;
                done += 1;
            }
        }
    }

    /// Adds a row to the learning curve.
    fn log(&mut self, progress: &mut OnlineProgress, metrics: &Metrics) -> Result<(), TrainError> {
        if metrics.is_empty() {
            return Ok(());
        }
        let recent = progress.recent();
        if progress.curve.is_empty() {
            progress.curve.push_str("step,episodes,reward,length,ended");
            metrics.iter().for_each(|(name, _)| {
                let _ = write!(progress.curve, ",{name}");
            });
            progress.curve.push('\n');
        }
        let Recent { reward, length, ended } = recent;
        let _ = write!(
            progress.curve,
            "{},{},{reward:.6},{length:.1},{ended:.3}",
            progress.step, progress.episodes
        );
        metrics.iter().for_each(|(_, value)| {
            let _ = write!(progress.curve, ",{value:.6}");
        });
        progress.curve.push('\n');
        atomic::write(self.curve, progress.curve.as_bytes()).map_err(TrainError::io("write", self.curve))?;
        (self.observer)(&OnlineEvent::Logged { step: progress.step, recent });
        Ok(())
    }

    fn save(&self, progress: &OnlineProgress, replay: &Replay) -> Result<(), TrainError> {
        let agent = self.agent.state();
        guard::state(&agent).map_err(|bad| bad.at(progress.step, None))?;
        state::save(self.state, &self.plan.identity, &agent, replay, progress)
    }
}

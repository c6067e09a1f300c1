//! Evaluation: rollouts of a policy in its environment.

use std::ops::Range;
use std::time::Instant;

use album_agents::{Moment, Policy};
use album_base::rng;
use album_envs::{Answer, EnvPool, Frame, Step};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::signals::StopFlag;

/// One episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// The seed of its reset.
    pub seed: u64,
    /// Whether the task was solved at the end; `None` if the environment does not report success.
    pub success: Option<bool>,
    /// The undiscounted return.
    #[serde(rename = "return")]
    pub total_reward: f64,
    /// Number of steps.
    pub length: u64,
    /// The reward of its last step.
    pub final_reward: f64,
    /// The first two components of every observation, if recorded. In a maze this is the path taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<[f32; 2]>,
}

/// The episodes of one evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Updates done before the evaluation.
    pub step: u64,
    /// Ordered by seed index.
    pub episodes: Vec<Episode>,
}

/// Means over the episodes of one evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationSummary {
    /// Updates done before the evaluation.
    pub step: u64,
    /// The success rate; `None` if the environment does not report success.
    pub success: Option<f64>,
    /// The 95 % confidence interval of the success rate.
    pub success_interval: Option<[f64; 2]>,
    /// Mean undiscounted return.
    #[serde(rename = "return", deserialize_with = "crate::numbers::or_nan")]
    pub mean_return: f64,
    /// Mean episode length.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub length: f64,
    /// Mean reward of the last step.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub final_reward: f64,
    /// Number of episodes.
    pub episodes: usize,
    /// Total number of steps.
    pub timesteps: u64,
}

impl Evaluation {
    /// Means over the episodes.
    pub fn summary(&self) -> EvaluationSummary {
        let n = self.episodes.len();
        let mean = |of: fn(&Episode) -> f64| self.episodes.iter().map(of).sum::<f64>() / n.max(1) as f64;
        let successes = self.episodes.iter().filter(|episode| episode.success == Some(true)).count();
        // With no episodes, the success rate is 0 of 0 rather than unknown.
        let knows = n == 0 || self.episodes.iter().any(|episode| episode.success.is_some());
        EvaluationSummary {
            step: self.step,
            success: knows.then(|| successes as f64 / n.max(1) as f64),
            success_interval: knows.then(|| wilson(successes, n)),
            mean_return: mean(|episode| episode.total_reward),
            length: mean(|episode| episode.length as f64),
            final_reward: mean(|episode| episode.final_reward),
            episodes: n,
            timesteps: self.episodes.iter().map(|episode| episode.length).sum(),
        }
    }
}

impl EvaluationSummary {
    /// The summary under the names of the logged columns. Unknown values are NaN, so that all rows have the
    /// same columns.
    pub fn row(&self) -> Vec<(String, f64)> {
        let [low, high] = self.success_interval.unwrap_or([f64::NAN; 2]);
        let row = [
            ("success", self.success.unwrap_or(f64::NAN)),
            ("success_low", low),
            ("success_high", high),
            ("episode.return", self.mean_return),
            ("episode.length", self.length),
            ("episode.final_reward", self.final_reward),
            ("episodes", self.episodes as f64),
            ("total.timesteps", self.timesteps as f64),
        ];
        row.map(|(name, value)| (format!("evaluation/{name}"), value)).to_vec()
    }
}

/// The seeds of the episodes of an evaluation after `step` updates: functions of the run's seed, the step and
/// the episode index. A longer evaluation starts with the same seeds.
pub fn episode_seeds(run_seed: u64, step: u64, episodes: usize) -> Vec<u64> {
    let mut stream = rng::stream(run_seed, "eval");
    stream.set_stream(step);
    (0..episodes).map(|_| stream.next_u64()).collect()
}

/// Which episodes to run, and what to keep of them.
#[derive(Clone, Debug, Default)]
pub struct EvaluationPlan {
    /// Updates done before the evaluation.
    pub step: u64,
    /// One episode per seed.
    pub seeds: Vec<u64>,
    /// Number of first episodes that record their path.
    pub paths: usize,
    /// Number of first episodes that keep their frames.
    pub videos: usize,
}

/// The result of a [`EvaluationPlan`].
#[derive(Debug, Default)]
pub struct Outcome {
    /// The episodes.
    pub evaluation: Evaluation,
    /// Time taken.
    pub seconds: f64,
    /// Episodes that failed and were repeated, with reasons.
    pub warnings: Vec<String>,
    /// The frames of the first episodes.
    pub videos: Vec<Vec<Frame>>,
}

/// Failures allowed per episode, and per evaluation.
const LOST_IN_AN_EPISODE: usize = 3;
const LOST_IN_ALL: usize = 10;

/// An episode running in a slot.
struct Running {
    number: usize,
    observation: Vec<f32>,
    episode: Episode,
    frames: Vec<Frame>,
    lost: usize,
}

/// Runs the episodes of a plan, one at a time in each slot of the pool. The policy acts on all slots that
/// have answered at once, so that no slot waits for a slower one.
///
/// The result does not depend on the number of slots or the order of answers. An episode whose worker dies is
/// repeated. `None` if the flag was raised; the pool must not be used afterwards.
///
/// # Panics
///
/// If there are episodes but no slots.
pub fn evaluate(
    policy: &mut dyn Policy,
    envs: &mut dyn EnvPool,
    plan: &EvaluationPlan,
    stop: &StopFlag,
) -> Result<Option<Outcome>, TrainError> {
    assert!(plan.seeds.is_empty() || envs.slots() > 0, "there is no slot to evaluate in");
    let begin = Instant::now();
    let mut done: Vec<Option<Running>> = plan.seeds.iter().map(|_| None).collect();
    let mut waiting = 0..plan.seeds.len();
    let mut slots: Vec<Option<Running>> = Vec::new();
    for slot in 0..envs.slots() {
        slots.push(next(envs, slot, &mut waiting, plan)?);
    }
    let mut warnings = Vec::new();
    let (mut ready, mut moments) = (Vec::new(), Vec::new());
    let (mut observations, mut actions) = (Vec::new(), Vec::new());
    let width = envs.shape().action_dim();
    while slots.iter().any(Option::is_some) {
        if stop.is_set() {
            return Ok(None);
        }
        ready.clear();
        moments.clear();
        observations.clear();
        for (slot, answer) in envs.wait()? {
            let Some(mut running) = slots[slot].take() else { continue };
            match answer {
                Answer::Started { observation, frame } => running.see(observation, frame, plan),
                Answer::Stepped(outcome) => {
                    let over = outcome.terminated || outcome.truncated;
                    running.take(outcome, plan);
                    if over {
                        let number = running.number;
                        done[number] = Some(running);
                        slots[slot] = next(envs, slot, &mut waiting, plan)?;
                        continue;
                    }
                }
                Answer::Lost { reason } => {
                    let (number, lost) = (running.number, running.lost + 1);
                    warnings.push(format!(
                        "episode {number} of the evaluation at step {}: {reason}; the episode is repeated",
                        plan.step
                    ));
                    if lost > LOST_IN_AN_EPISODE || warnings.len() > LOST_IN_ALL {
                        return Err(TrainError::Environments { lost: warnings.len(), last: reason });
                    }
                    slots[slot] = Some(start(envs, slot, number, plan, lost)?);
                    continue;
                }
            }
            observations.extend_from_slice(&running.observation);
            moments.push(Moment { episode: running.episode.seed, step: running.episode.length });
            ready.push(slot);
            slots[slot] = Some(running);
        }
        if !ready.is_empty() {
            policy.act(&observations, &moments, &mut actions);
            for (&slot, action) in ready.iter().zip(actions.chunks_exact(width)) {
                envs.step(slot, action)?;
            }
        }
    }
    let (mut episodes, mut videos) = (Vec::new(), Vec::new());
    for running in done.into_iter().flatten() {
        if running.number < plan.videos {
            videos.push(running.frames);
        }
        episodes.push(running.episode);
    }
    let evaluation = Evaluation { step: plan.step, episodes };
    Ok(Some(Outcome { evaluation, seconds: begin.elapsed().as_secs_f64(), warnings, videos }))
}

/// Starts the next waiting episode, unless another worker will be idle sooner.
fn next(
    envs: &mut dyn EnvPool,
    slot: usize,
    waiting: &mut Range<usize>,
    plan: &EvaluationPlan,
) -> Result<Option<Running>, TrainError> {
    if !envs.is_next(slot, waiting.len()) {
        return Ok(None);
    }
    waiting.next().map(|number| start(envs, slot, number, plan, 0)).transpose()
}

fn start(
    envs: &mut dyn EnvPool,
    slot: usize,
    number: usize,
    plan: &EvaluationPlan,
    lost: usize,
) -> Result<Running, TrainError> {
    let seed = plan.seeds[number];
    envs.reset(slot, seed, number < plan.videos)?;
    let episode =
        Episode { seed, success: None, total_reward: 0.0, length: 0, final_reward: 0.0, path: Vec::new() };
    Ok(Running { number, observation: Vec::new(), episode, frames: Vec::new(), lost })
}

impl Running {
    fn take(&mut self, outcome: Step, plan: &EvaluationPlan) {
        let episode = &mut self.episode;
        episode.total_reward += outcome.reward;
        episode.final_reward = outcome.reward;
        episode.length += 1;
        episode.success = outcome.success.or(episode.success);
        self.see(outcome.observation, outcome.frame, plan);
    }

    fn see(&mut self, observation: Vec<f32>, frame: Option<Frame>, plan: &EvaluationPlan) {
        if self.number < plan.paths {
            self.episode.path.extend(observation.first_chunk::<2>());
        }
        self.observation = observation;
        self.frames.extend(frame);
    }
}

/// Wilson's 95 % confidence interval for a success rate, from `successes` of `n` episodes.
///
/// ```
/// let [low, high] = album_train::wilson(45, 50);
/// assert!((low - 0.786).abs() < 1e-3 && (high - 0.957).abs() < 1e-3);
/// ```
pub fn wilson(successes: usize, n: usize) -> [f64; 2] {
    if n == 0 {
        return [0.0, 1.0];
    }
    let z2 = 1.959_963_984_540_054_f64.powi(2);
    let n = n as f64;
    let p = successes as f64 / n;
    let centre = p + z2 / (2.0 * n);
    let spread = (z2 * (p * (1.0 - p) / n + z2 / (4.0 * n * n))).sqrt();
    let scale = 1.0 + z2 / n;
    [((centre - spread) / scale).max(0.0), ((centre + spread) / scale).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        // R: binom::binom.wilson(x, n)
        for (x, n, low, high) in
            [(0, 10, 0.0, 0.277_532_8), (10, 10, 0.722_467_2, 1.0), (5, 10, 0.236_593_1, 0.763_406_9)]
        {
            let [l, h] = wilson(x, n);
            assert!((l - low).abs() < 1e-6 && (h - high).abs() < 1e-6, "{x}/{n}: {l} {h}");
        }
        assert_eq!(wilson(0, 0), [0.0, 1.0]);
    }

    #[test]
    fn seeds_depend_on_run_and_step_and_not_on_their_number() {
        let seeds = episode_seeds(3, 1000, 50);
        assert_eq!(seeds[..10], episode_seeds(3, 1000, 10));
        assert_ne!(seeds, episode_seeds(3, 2000, 50));
        assert_ne!(seeds, episode_seeds(4, 1000, 50));
    }

    #[test]
    fn means() {
        let episode = |success, total_reward, length| Episode {
            seed: 0,
            success: Some(success),
            total_reward,
            length,
            final_reward: f64::from(u8::from(success)) - 1.0,
            path: vec![],
        };
        let evaluation =
            Evaluation { step: 5, episodes: vec![episode(true, -3.0, 4), episode(false, -10.0, 10)] };
        let summary = evaluation.summary();
        assert_eq!((summary.success, summary.mean_return, summary.length), (Some(0.5), -6.5, 7.0));
        assert_eq!((summary.final_reward, summary.episodes, summary.timesteps), (-0.5, 2, 14));
        // Without a success signal there is no rate, not a rate of 0.
        let mut unknown = evaluation.clone();
        unknown.episodes.iter_mut().for_each(|episode| episode.success = None);
        assert_eq!((unknown.summary().success, unknown.summary().success_interval), (None, None));
    }
}

//! Evaluation: how a policy does in its environment.

use album_agents::Agent;
use album_data::rng;
use album_envs::Env;
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::signals::StopFlag;

/// One episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// What it was reset with.
    pub seed: u64,
    /// Whether the task was solved at its end.
    pub success: bool,
    /// The sum of its rewards.
    #[serde(rename = "return")]
    pub total_reward: f64,
    /// Its steps.
    pub length: u64,
    /// The reward of its last step.
    pub final_reward: f64,
    /// The first two numbers of every observation, where they were asked for. In a maze this is the way taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<[f32; 2]>,
}

/// The episodes of one evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Updates done before it.
    pub step: u64,
    /// In the order of their seeds.
    pub episodes: Vec<Episode>,
}

/// Means over the episodes of one evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationSummary {
    /// Updates done before it.
    pub step: u64,
    /// The share of episodes that ended in success.
    pub success: f64,
    /// The 95 % confidence interval of that share.
    pub success_interval: [f64; 2],
    /// Mean sum of rewards.
    #[serde(rename = "return")]
    pub mean_return: f64,
    /// Mean number of steps.
    pub length: f64,
    /// Mean reward of the last step.
    pub final_reward: f64,
    /// Number of episodes.
    pub episodes: usize,
    /// Steps of all episodes.
    pub timesteps: u64,
}

impl Evaluation {
    /// Means over the episodes.
    pub fn summary(&self) -> EvaluationSummary {
        let n = self.episodes.len();
        let mean = |of: fn(&Episode) -> f64| self.episodes.iter().map(of).sum::<f64>() / n.max(1) as f64;
        let successes = self.episodes.iter().filter(|episode| episode.success).count();
        EvaluationSummary {
            step: self.step,
            success: mean(|episode| f64::from(u8::from(episode.success))),
            success_interval: wilson(successes, n),
            mean_return: mean(|episode| episode.total_reward),
            length: mean(|episode| episode.length as f64),
            final_reward: mean(|episode| episode.final_reward),
            episodes: n,
            timesteps: self.episodes.iter().map(|episode| episode.length).sum(),
        }
    }
}

/// The seeds of the episodes of an evaluation after `step` updates: functions of the run's seed, the step and the
/// episode's number. More episodes begin with the same seeds.
pub fn episode_seeds(run_seed: u64, step: u64, episodes: usize) -> Vec<u64> {
    let mut stream = rng::stream(run_seed, "eval");
    stream.set_stream(step);
    (0..episodes).map(|_| stream.next_u64()).collect()
}

/// An episode under way in one of the environments.
struct Running {
    number: usize,
    observation: Vec<f32>,
    episode: Episode,
}

/// Runs one episode for each seed, as many side by side as there are environments, with one call of the policy per
/// time step for all of them. The paths of the first `paths` episodes are recorded.
///
/// The result does not depend on the number of environments. `None` if the flag was raised meanwhile.
///
/// # Panics
///
/// If there are episodes but no environments.
pub fn evaluate(
    agent: &mut dyn Agent,
    envs: &mut [Box<dyn Env>],
    step: u64,
    seeds: &[u64],
    paths: usize,
    stop: &StopFlag,
) -> Result<Option<Evaluation>, TrainError> {
    assert!(seeds.is_empty() || !envs.is_empty(), "there is no environment to evaluate in");
    let mut done: Vec<Option<Episode>> = vec![None; seeds.len()];
    let mut waiting = seeds.iter().copied().enumerate();
    let mut slots: Vec<Option<Running>> = Vec::new();
    for env in envs.iter_mut() {
        slots
            .push(waiting.next().map(|(number, seed)| start(env.as_mut(), number, seed, paths)).transpose()?);
    }
    let (mut observations, mut actions) = (Vec::new(), Vec::new());
    while slots.iter().any(Option::is_some) {
        if stop.is_set() {
            return Ok(None);
        }
        observations.clear();
        for running in slots.iter().flatten() {
            observations.extend_from_slice(&running.observation);
        }
        agent.act(&observations, &mut actions);
        let mut rows = 0;
        for (slot, env) in slots.iter_mut().zip(envs.iter_mut()) {
            let Some(running) = slot else { continue };
            let width = env.action_dim();
            let outcome = env.step(&actions[rows * width..(rows + 1) * width])?;
            rows += 1;
            let episode = &mut running.episode;
            episode.total_reward += outcome.reward;
            episode.final_reward = outcome.reward;
            episode.length += 1;
            episode.success = outcome.success;
            running.observation = outcome.observation;
            if running.number < paths {
                episode.path.extend(point(&running.observation));
            }
            if outcome.terminated || outcome.truncated {
                if let Some(Running { number, episode, .. }) = slot.take() {
                    done[number] = Some(episode);
                }
                *slot = waiting
                    .next()
                    .map(|(number, seed)| start(env.as_mut(), number, seed, paths))
                    .transpose()?;
            }
        }
    }
    Ok(Some(Evaluation { step, episodes: done.into_iter().flatten().collect() }))
}

fn start(env: &mut dyn Env, number: usize, seed: u64, paths: usize) -> Result<Running, TrainError> {
    let observation = env.reset(seed)?;
    let path = if number < paths { point(&observation).into_iter().collect() } else { Vec::new() };
    let episode = Episode { seed, success: false, total_reward: 0.0, length: 0, final_reward: 0.0, path };
    Ok(Running { number, observation, episode })
}

fn point(observation: &[f32]) -> Option<[f32; 2]> {
    observation.first_chunk::<2>().copied()
}

/// Wilson's 95 % confidence interval for a share, of which `successes` of `n` were seen.
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
            success,
            total_reward,
            length,
            final_reward: f64::from(u8::from(success)) - 1.0,
            path: vec![],
        };
        let evaluation =
            Evaluation { step: 5, episodes: vec![episode(true, -3.0, 4), episode(false, -10.0, 10)] };
        let summary = evaluation.summary();
        assert_eq!((summary.success, summary.mean_return, summary.length), (0.5, -6.5, 7.0));
        assert_eq!((summary.final_reward, summary.episodes, summary.timesteps), (-0.5, 2, 14));
    }
}

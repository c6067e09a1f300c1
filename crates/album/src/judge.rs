//! Evaluation of a run: its policy in the environment, its critic on the data.

use crate::error::Error;
use crate::resources::Resources;
use crate::run::Trained;
use crate::video;
use album_agents::Agent;
use album_base::number::{compact, plural};
use album_tabular::{ValueSummary, in_sample_values};
use album_train::{
    Episode, EvaluationPlan, Outcome, RunResult, StopFlag, critic_statistics, episode_seeds, evaluate,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Every third step is a frame, and OGBench's arm moves at 20 Hz: about twice real time.
const FRAMES_PER_SECOND: f64 = 15.0;

/// What to evaluate.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Number of episodes; 0 needs no environment.
    pub episodes: usize,
    /// Step of the checkpoint; the latest by default.
    pub step: Option<u64>,
    /// Seed of the episodes; the run's by default.
    pub seed: Option<u64>,
    /// Number of first episodes to record as GIFs in the run's `videos` folder.
    pub videos: usize,
    /// Whether to evaluate the critic too, which needs the data.
    pub critic: bool,
}

/// The result of [`judge`].
#[derive(Debug, Serialize)]
pub struct Judgement {
    /// As in `result.json`, with a single evaluation.
    #[serde(flatten)]
    pub result: RunResult,
    /// Number of worker processes, or of native environments.
    pub workers: usize,
    /// Number of episodes run in parallel.
    #[serde(skip)]
    pub slots: usize,
    /// The individual episodes.
    pub episodes: Vec<Episode>,
    /// Problems that did not stop the evaluation.
    pub warnings: Vec<String>,
    /// The recorded videos.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub videos: Vec<PathBuf>,
    /// The critic, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critic: Option<Critic>,
}

/// The critic on a fixed sample of the data, and the best values that the data supports.
#[derive(Debug, Serialize)]
pub struct Critic {
    /// Metrics, by the names of the logged columns.
    pub learned: BTreeMap<String, f64>,
    /// V*_D.
    pub v_star: ValueSummary,
}

/// Evaluates a run. Apart from videos, its directory is not changed.
pub fn judge(run: &Path, look: &Look, resources: &Resources, stop: &StopFlag) -> Result<Judgement, Error> {
    let start = Instant::now();
    let trained = Trained::open(run, look.step, resources)?;
    let data = look.critic.then(|| trained.data()).transpose()?;
    let Trained { config, mut agent, checkpoint } = trained;
    let step = checkpoint.step();
    let seeds = episode_seeds(look.seed.unwrap_or(config.seed), step, look.episodes);
    let plan = EvaluationPlan { step, seeds, paths: 0, videos: look.videos.min(look.episodes) };
    let mut envs = match look.episodes {
        0 => None,
        episodes => Some(config.problem.environments(episodes, resources)?),
    };
    let Outcome { evaluation, seconds, warnings, videos } = match &mut envs {
        None => Outcome::default(),
        Some(envs) => {
            let blueprint = agent.blueprint();
            envs.shape().check_data(
                &config.problem.to_string(),
                blueprint.encoding.observation_dim(),
                &blueprint.action_space(),
            )?;
            let outcome = evaluate(agent.policy().as_mut(), envs.as_mut(), &plan, stop)?;
            outcome.ok_or_else(|| Error::Stopped("evaluation stopped; nothing was changed".into()))?
        }
    };
    let mut films = Vec::new();
    for (number, frames) in videos.iter().enumerate() {
        let folder = run.join("videos");
        std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let path = folder.join(format!("step_{step:09}-episode_{number:03}.gif"));
        video::write_gif(&path, frames, FRAMES_PER_SECOND)?;
        films.push(path);
    }
    let critic = match &data {
        Some(data) => {
            let v_star = in_sample_values(data, config.setup()?.common().gamma)?.summary;
            Some(Critic { learned: critic_statistics(&mut agent, data)?, v_star })
        }
        None => None,
    };
    let summary = (look.episodes > 0).then(|| evaluation.summary());
    let result = RunResult {
        success: summary.as_ref().and_then(|summary| summary.success),
        evaluations: summary.into_iter().collect(),
        wall_seconds: start.elapsed().as_secs_f64(),
        eval_seconds: seconds,
        ..RunResult::of(&checkpoint, step == config.train.steps, agent.parameters())
    }
    .with_score(config.problem.score_range());
    let result = match &envs {
        Some(envs) => result.with_versions(envs.versions()),
        None => result,
    };
    let (workers, slots) = envs.as_ref().map_or((0, 0), |envs| (envs.workers(), envs.slots()));
    let episodes = evaluation.episodes;
    Ok(Judgement { result, workers, slots, episodes, warnings, videos: films, critic })
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = &self.result;
        write!(f, "{} after {} steps", result.task, result.steps)?;
        if let Some(last) = result.evaluations.last() {
            if let (Some(success), Some([low, high])) = (last.success, last.success_interval) {
                let [success, low, high] = [success, low, high].map(|share| 100.0 * share);
                write!(f, ": success {success:.1} % (95 % interval {low:.1} to {high:.1})")?;
            }
            write!(
                f,
                " over {}, return {}, length {:.0}; {} steps in {:.1} s, {} in parallel",
                plural(last.episodes, "episode", "episodes"),
                compact(last.mean_return),
                last.length,
                last.timesteps,
                result.eval_seconds,
                self.slots
            )?;
        }
        for film in &self.videos {
            write!(f, "\nvideo    {}", film.display())?;
        }
        self.critic.as_ref().map_or(Ok(()), |critic| write!(f, "\n{critic}"))
    }
}

impl fmt::Display for Critic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let learned = |name: &str| self.learned.get(name).copied().unwrap_or(f64::NAN);
        let line = |name, [max, mean, min]: [f64; 3]| {
            format!("{name:<10} max {max:>8.1}  mean {mean:>8.1}  min {min:>8.1}")
        };
        write!(
            f,
            "{}\n{}  g_B <= 0 on {:.0} % of the data",
            line("V* of data", [self.v_star.max, self.v_star.mean, self.v_star.min]),
            line("learned V", ["value/v_max", "value/v_mean", "value/v_min"].map(learned)),
            100.0 * learned("critic/g_b_satisfied")
        )
    }
}

//! Trains expert policies from scratch, for recording datasets.
//!
//! OGBench's ant data was recorded by a soft actor-critic policy that had learned to walk in commanded
//! directions. [`Expert`] trains one by the same recipe; [`ANT`] is the result.

use crate::error::Error;
use crate::export::{About, Format, encode, policy_file};
use crate::resources::Resources;
use album_agents::agents::sac;
use album_agents::{Agent, Blueprint, Encoding, Learner};
use album_base::atomic;
use album_envs::{EnvPool, Limits, Python, Suite, WorkerPool};
use album_nn::Pool;
use album_plot::Plot;
use album_train::{
    EvaluationPlan, Online, OnlineEvent, OnlinePlan, OnlineProgress, StopFlag, episode_seeds, evaluate,
};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The environment of the ant.
const ENVIRONMENT: &str = "online-ant-v0";

/// Environment steps per second.
const HERTZ: f64 = 10.0;

/// The policy file of a trained ant: [`Expert`] with seed 0 and [`Expert::STEPS`] steps. Its learning curve lies beside it.
pub const ANT: &[u8] = include_bytes!("../experts/ant.safetensors");

/// An expert to train.
#[derive(Clone, Debug)]
pub struct Expert {
    /// Number of environment steps.
    pub steps: u64,
    /// The training seed.
    pub seed: u64,
    /// Number of episodes to evaluate the trained policy on.
    pub episodes: usize,
    /// The policy file. `csv` and `svg` files beside it hold the learning curve, `state` the state to resume
    /// from.
    pub out: PathBuf,
    /// Threads, and the Python with ogbench.
    pub resources: Resources,
}

/// A trained expert and its evaluation.
#[derive(Debug, Serialize)]
pub struct Trained {
    /// The policy file, for `album act` and `album data generate`.
    pub policy: PathBuf,
    /// The learning curve as CSV.
    pub curve: PathBuf,
    /// The learning curve as a figure.
    pub figure: PathBuf,
    /// Number of environment steps.
    pub steps: u64,
    /// The training seed.
    pub seed: u64,
    /// Number of evaluation episodes, with the mean action.
    pub episodes: usize,
    /// Mean distance per step along the commanded direction, in metres.
    pub metres_per_step: f64,
    /// Mean speed along the commanded direction, in metres per second.
    pub metres_per_second: f64,
    /// Mean number of steps before the body fell or time ran out.
    pub length: f64,
    /// Versions of the Python packages.
    pub packages: String,
    /// Run time of this process.
    pub wall_seconds: f64,
}

impl fmt::Display for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "wrote {} after {} steps: {:.3} m per step ({:.2} m/s) along the commanded direction, episodes of {:.0} steps",
            self.policy.display(),
            self.steps,
            self.metres_per_step,
            self.metres_per_second,
            self.length
        )
    }
}

impl Expert {
    /// Training steps of OGBench's own expert.
    pub const STEPS: u64 = 400_000;

    /// A file beside the policy, with this extension.
    fn beside(&self, extension: &str) -> PathBuf {
        self.out.with_extension(extension)
    }

    /// The recipe of OGBench's expert.
    fn plan(&self, identity: String) -> OnlinePlan {
        OnlinePlan {
            steps: self.steps,
            random_steps: 10_000,
            capacity: 1_000_000,
            log_every: 2_500,
            save_every: 20_000,
            seed: self.seed,
            identity,
        }
    }

    /// Trains until the plan ends or the stop flag is raised; the same call resumes.
    pub fn train(
        &self,
        stop: &StopFlag,
        observer: &mut dyn FnMut(&OnlineEvent<'_>),
    ) -> Result<Trained, Error> {
        let start = Instant::now();
        if ["csv", "svg", "state"].iter().any(|&ending| self.beside(ending) == self.out) {
            return Err(Error::Usage(format!(
                "--out: found `{}`, expected a file that does not end in csv, svg or state, which are written beside it",
                self.out.display()
            )));
        }
        if let Some(folder) = self.out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let python = Python::find(self.resources.python.as_deref())?;
        let mut envs = WorkerPool::new(Suite::directions(ENVIRONMENT), 1, &python, Limits::default())?;
        let packages: Vec<String> = envs.versions().iter().map(|(name, v)| format!("{name} {v}")).collect();
        let config = sac::Config::default();
        let shape = envs.shape();
        let blueprint = Blueprint {
            encoding: Encoding::identity(shape.observation_dim),
            action_dim: shape.action_dim(),
            action_space: None,
            value_range: None,
        };
        let pool = Pool::new(self.resources.threads());
        let mut agent = Learner::from_blueprint(&config, &blueprint, self.steps, self.seed, &pool)?;
        let settings = toml::to_string(&config).map_err(|e| Error::Config(e.to_string()))?;
        let identity = format!("{ENVIRONMENT}\nseed {}\n{}\n{settings}", self.seed, packages.join(", "));
        let plan = self.plan(identity);
        let (state, curve) = (self.beside("state"), self.beside("csv"));
        let progress = Online {
            agent: &mut agent,
            envs: &mut envs,
            plan: &plan,
            state: &state,
            curve: &curve,
            stop: stop.clone(),
            observer,
        }
        .run()?;
        let stopped = |what: &str| {
            let (step, state) = (progress.step, state.display());
            Error::Stopped(format!(
                "{what} after {step} of {} steps, kept in {state}; the same command resumes",
                self.steps
            ))
        };
        if progress.step < self.steps {
            return Err(stopped("stopped"));
        }
        atomic::write(&curve, progress.curve.as_bytes()).map_err(Error::io(&curve))?;
        let figure = self.beside("svg");
        atomic::write(&figure, draw(&progress).as_bytes()).map_err(Error::io(&figure))?;
        self.write(&agent, &progress, &self.out)?;
        let seeds = episode_seeds(self.seed, progress.step, self.episodes);
        let plan = EvaluationPlan { step: progress.step, seeds, ..EvaluationPlan::default() };
        let judged = evaluate(agent.policy().as_mut(), &mut envs, &plan, stop)?;
        let judged = judged.ok_or_else(|| stopped("stopped during evaluation"))?.evaluation.summary();
        let metres_per_step = judged.mean_return * judged.episodes as f64 / judged.timesteps.max(1) as f64;
        Ok(Trained {
            policy: self.out.clone(),
            curve,
            figure,
            steps: progress.step,
            seed: self.seed,
            episodes: judged.episodes,
            metres_per_step,
            metres_per_second: HERTZ * metres_per_step,
            length: judged.length,
            packages: packages.join(", "),
            wall_seconds: start.elapsed().as_secs_f64(),
        })
    }

    fn write(&self, agent: &Learner, progress: &OnlineProgress, path: &Path) -> Result<(), Error> {
        let joints = ["hip 4", "ankle 4", "hip 1", "ankle 1", "hip 2", "ankle 2", "hip 3", "ankle 3"];
        let about = About {
            task: format!("{ENVIRONMENT}: walk in a commanded direction"),
            agent: "sac".to_owned(),
            seed: self.seed,
            step: progress.step,
            observations: Vec::new(),
            actions: joints.map(str::to_owned).to_vec(),
        };
        let bytes = encode(&policy_file(agent, &about)?, Format::Safetensors)?;
        atomic::write(path, &bytes).map_err(Error::io(path))
    }
}

/// The learning curve: speed along the commanded direction.
fn draw(progress: &OnlineProgress) -> String {
    let points: Vec<(f64, f64)> = progress
        .curve
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut cells = line.split(',').map(str::parse::<f64>);
            let (step, reward) = (cells.next()?.ok()?, cells.nth(1)?.ok()?);
            Some((step, HERTZ * reward))
        })
        .collect();
    let plot =
        Plot::new("Ant: speed along the commanded direction").x_label("environment steps").y_label("m/s");
    plot.line("sac, while it explores", &points).size(640.0, 360.0).figure().render()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use album_policy::PolicyFile;

    #[test]
    fn the_shipped_ant_is_the_recipe_trained_to_its_end() {
        let manifest = PolicyFile::from_bytes(ANT).unwrap().manifest;
        assert_eq!(manifest.observation_dim(), 29, "27 numbers of the body and a direction");
        assert_eq!((manifest.agent.as_str(), manifest.seed, manifest.step), ("sac", 0, Expert::STEPS));
        let curve = include_str!("../experts/ant.csv");
        let last: Vec<f64> =
            curve.lines().last().unwrap().split(',').take(3).map(|x| x.parse().unwrap()).collect();
        assert_eq!(last[0], Expert::STEPS as f64);
        assert!(HERTZ * last[2] > 1.0, "it walks at {} m/s", HERTZ * last[2]);
    }
}

//! Records a dataset in any environment: random actions, a trained run or a Python function.

use crate::error::Error;
use crate::resources::Resources;
use crate::run::Trained;
use album_agents::{Agent, Moment};
use album_base::files::{self, Links};
use album_base::number::{compact, plural};
use album_envs::play::RecordError;
use album_envs::rollouts::{
    Outcome, Policy, Progress, PythonPolicy, Recipe, Recorder, Summary, Turn, check_minari, write_minari,
};
use album_envs::{ActionSpace, EnvError, EnvPool, EnvShape, EnvSource, EnvSpec, Python, open_env};
use album_train::{StopFlag, weights_sha256};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A dataset to record.
#[derive(Clone, Debug)]
pub struct RolloutRequest {
    /// The environment.
    pub env: EnvSpec,
    /// The policy: `random`, a run directory, or FILE.py:FUNCTION.
    pub policy: String,
    /// Standard deviation of Gaussian noise on every action, as a fraction of half the action's range.
    pub noise: f64,
    /// Fraction of actions that are replaced by uniformly random ones.
    pub epsilon: f64,
    /// Number of episodes.
    pub episodes: NonZero<usize>,
    /// Maximum length of an episode, if shorter than the environment's own limit.
    pub max_steps: Option<NonZero<usize>>,
    /// The recording seed.
    pub seed: u64,
    /// The file or folder to write.
    pub out: PathBuf,
    /// Layout of the output.
    pub layout: Layout,
    /// Workers and their Python.
    pub resources: Resources,
}

/// The layout of a recorded dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One npz file with a row for each transition.
    Npz,
    /// A Minari dataset folder (HDF5).
    Minari,
}

/// A recorded dataset.
#[derive(Debug, Serialize)]
pub struct Rollouts {
    /// Its path.
    pub path: PathBuf,
    /// Its layout.
    pub format: Layout,
    /// The environment, with the hash of its file.
    pub env: String,
    /// The policy, with the hash of its file or weights.
    pub policy: String,
    /// The recording seed.
    pub seed: u64,
    /// Dimension of an observation.
    pub observation_dim: usize,
    /// The action space.
    pub action: ActionSpace,
    /// Whether the file is new.
    pub made: bool,
    /// Episodes, steps and returns of the new recording.
    #[serde(flatten)]
    pub summary: Option<Summary>,
    /// Time taken.
    pub wall_seconds: f64,
}

impl fmt::Display for Rollouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        let Some(Summary { episodes, steps, return_mean, return_min, return_max, success }) = &self.summary
        else {
            return write!(f, "kept {path}, recorded earlier by the same recipe");
        };
        let [mean, min, max] = [return_mean, return_min, return_max].map(|&x| compact(x));
        let episodes = plural(*episodes, "episode", "episodes");
        write!(f, "recorded {path}: {episodes}, {steps} steps, return {mean} ({min} to {max})")?;
        success.map_or(Ok(()), |share| write!(f, ", success {:.1} %", 100.0 * share))
    }
}

impl RolloutRequest {
    /// Records what is missing until the flag is raised; the same call resumes.
    pub fn record(&self, stop: &StopFlag, observer: &mut dyn FnMut(Progress<'_>)) -> Result<Rollouts, Error> {
        let start = Instant::now();
        let python = Python::find(self.resources.python.as_deref())?;
        let file = self.file(&python)?;
        let workers = self.resources.workers().min(self.episodes.get());
        let mut envs = open_env(&self.env, workers, Some(python.interpreter()))?;
        let shape = envs.shape().clone();
        let acting = Acting::open(self, envs.as_ref(), &python)?;
        let recipe = Recipe {
            env: named(&self.env.to_string(), self.env.source())?,
            policy: acting.name,
            seed: self.seed,
            episodes: self.episodes.get(),
            max_steps: self.max_steps.map(NonZero::get),
            noise: self.noise,
            epsilon: self.epsilon,
        };
        let recorder = Recorder {
            recipe: &recipe,
            envs: envs.as_mut(),
            policy: acting.policy,
            stop: &|| stop.is_set(),
            observer,
        };
        let summary = match recorder.record(&file).map_err(failure)? {
            Outcome::Done(summary) => Some(summary),
            Outcome::Kept => None,
            Outcome::Stopped { episodes, work } => {
                return Err(Error::Stopped(format!(
                    "stopped with {episodes} of {} episodes kept in {}; the same command resumes",
                    recipe.episodes,
                    work.display()
                )));
            }
        };
        if self.layout == Layout::Minari {
            write_minari(&file, &self.out, &shape, &recipe.env, &python).map_err(failure)?;
            std::fs::remove_file(&file).map_err(Error::io(&file))?;
        }
        Ok(Rollouts {
            path: self.out.clone(),
            format: self.layout,
            env: recipe.env,
            policy: recipe.policy,
            seed: self.seed,
            observation_dim: shape.observation_dim,
            action: shape.actions,
            made: summary.is_some(),
            summary,
            wall_seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// The npz file to record into; Minari's folder is converted from it.
    fn file(&self, python: &Python) -> Result<PathBuf, Error> {
        if self.layout == Layout::Npz {
            return Ok(self.out.clone());
        }
        if self.out.exists() {
            return Err(Error::Env(EnvError::OtherData {
                path: self.out.clone(),
                found: "something".into(),
                expected: "nothing, because a folder is written as a whole".into(),
            }));
        }
        check_minari(python).map_err(failure)?;
        let mut file = self.out.as_os_str().to_owned();
        file.push(".npz");
        Ok(file.into())
    }
}

/// A policy with its identity.
struct Acting<'a> {
    policy: Policy<'a>,
    name: String,
}

impl Acting<'_> {
    fn open(request: &RolloutRequest, envs: &dyn EnvPool, python: &Python) -> Result<Self, Error> {
        let shape = envs.shape();
        if request.policy == "random" {
            return Ok(Self { policy: Policy::Random, name: "random".to_owned() });
        }
        if let Ok(spec) = request.policy.parse::<EnvSpec>()
            && let EnvSource::File { path, function } = spec.source()
        {
            let name = named(&request.policy, spec.source())?;
            let mut policy = PythonPolicy::open(path, function, shape, envs.workers(), python)?;
            let act = move |observations: &[f32], turns: &[Turn], actions: &mut Vec<f32>| {
                policy.act(observations, turns, actions)
            };
            return Ok(Self { policy: Policy::Acting(Box::new(act)), name });
        }
        let run = Path::new(&request.policy);
        if !run.is_dir() {
            return Err(Error::Usage(format!(
                "--policy: found `{}`, expected `random`, a run directory or FILE.py:FUNCTION",
                request.policy
            )));
        }
        let trained = Trained::open(run, None, &request.resources)?;
        Self::trained(&trained, &request.env, shape)
    }

    fn trained(trained: &Trained, env: &EnvSpec, shape: &EnvShape) -> Result<Self, Error> {
        let blueprint = &trained.checkpoint.state.blueprint;
        let actions = blueprint.action_space();
        shape.check_data(&env.to_string(), blueprint.encoding.observation_dim(), &actions)?;
        let weights = weights_sha256(&trained.checkpoint.state);
        let mut policy = trained.agent.policy();
        let (mut moments, mut buffer) = (Vec::new(), Vec::new());
        let act = move |observations: &[f32], turns: &[Turn], actions: &mut Vec<f32>| {
            moments.clear();
            moments.extend(turns.iter().map(|turn| Moment { episode: turn.episode, step: turn.step }));
            policy.act(observations, &moments, &mut buffer);
            actions.extend_from_slice(&buffer);
            Ok(())
        };
        let name = format!("{} with weights {}", trained.config.agent, &weights[..16]);
        Ok(Self { policy: Policy::Acting(Box::new(act)), name })
    }
}

/// A name with the hash of its file, because an edited file may act differently.
fn named(name: &str, source: &EnvSource) -> Result<String, Error> {
    let EnvSource::File { path, .. } = source else { return Ok(name.to_owned()) };
    // The worker reports a missing file.
    let digest = files::read(path, Links::Follow, files::LONGEST_TEXT)
        .map(|bytes| album_base::hex::hex(&Sha256::digest(&bytes)));
    Ok(digest.map_or_else(|_| name.to_owned(), |digest| format!("{name} (sha256 {})", &digest[..16])))
}

fn failure(error: RecordError) -> Error {
    match error {
        RecordError::Env(error) => Error::Env(error),
        error if error.is_io() => Error::Tool(error.to_string()),
        error => Error::Load(error.to_string()),
    }
}

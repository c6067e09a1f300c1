//! `album data record`.

use crate::output;
use crate::resources::ResourceArgs;
use album::{Error as Failure, Trained};
use album_agents::{Agent, Moment};
use album_base::progress::{self, Amount};
use album_envs::play::RecordError;
use album_envs::rollouts::{
    Outcome, Policy, Progress, PythonPolicy, Recipe, Recorder, Summary, Turn, check_minari, write_minari,
};
use album_envs::{ActionSpace, EnvError, EnvPool, EnvShape, EnvSource, EnvSpec, Python, open_env};
use album_train::{StopFlag, weights_sha256};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The arguments of `album data record`.
#[derive(clap::Args)]
pub struct Args {
    /// Where: gymnasium:ID, or FILE.py:FUNCTION that returns an environment
    #[arg(long, value_name = "ENV")]
    env: String,
    /// A keyword argument of the environment, as often as needed
    #[arg(long, value_name = "KEY=VALUE")]
    env_arg: Vec<String>,
    /// Who acts: `random`, a run directory, or FILE.py:FUNCTION that takes an observation (and a NumPy generator)
    #[arg(long, value_name = "POLICY", default_value = "random")]
    policy: String,
    /// Standard deviation of normal noise on every action, in halves of the action's range
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    noise: f64,
    /// Share of actions that are drawn uniformly instead
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    epsilon: f64,
    /// Number of episodes
    #[arg(long, value_name = "N", default_value = "100")]
    episodes: NonZero<usize>,
    /// Cut episodes after so many steps [default: the environment's own limit]
    #[arg(long, value_name = "N")]
    max_steps: Option<NonZero<usize>>,
    /// Of all randomness
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The file, or the folder of `--format minari`, to write
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Its layout
    #[arg(long, value_enum, default_value_t = Format::Npz)]
    format: Format,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// One file, a row for each transition
    Npz,
    /// A dataset folder of Minari (HDF5)
    Minari,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    path: PathBuf,
    format: Format,
    env: String,
    policy: String,
    seed: u64,
    observation_dim: usize,
    action: ActionSpace,
    /// Whether the file was recorded now, or was there already.
    made: bool,
    #[serde(flatten)]
    summary: Option<Summary>,
    wall_seconds: f64,
}

/// Runs `album data record`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let start = Instant::now();
    let env = args.env.parse::<EnvSpec>()?.with_args(&args.env_arg)?;
    let python = Python::find(args.resources.python.as_deref())?;
    let file = match args.format {
        Format::Npz => args.out.clone(),
        Format::Minari => {
            if args.out.exists() {
                return Err(Failure::Env(EnvError::OtherData {
                    path: args.out.clone(),
                    found: "something".into(),
                    expected: "nothing, because a folder is written as a whole".into(),
                }));
            }
            check_minari(&python).map_err(failure)?;
            let mut file = args.out.as_os_str().to_owned();
            file.push(".npz");
            file.into()
        }
    };
    let stop = StopFlag::on_signals()?;
    let workers = args.resources.get().workers().min(args.episodes.get());
    let mut envs = open_env(&env, workers, Some(python.interpreter()))?;
    let shape = envs.shape().clone();
    let acting = Acting::open(args, &env, envs.as_ref(), &python)?;
    let recipe = Recipe {
        env: named(&env.to_string(), env.source())?,
        policy: acting.name,
        seed: args.seed,
        episodes: args.episodes.get(),
        max_steps: args.max_steps.map(NonZero::get),
        noise: args.noise,
        epsilon: args.epsilon,
    };
    let bar = progress::bar(recipe.episodes as u64, Amount::Count).with_prefix("episodes");
    let recorder = Recorder {
        recipe: &recipe,
        envs: envs.as_mut(),
        policy: acting.policy,
        stop: &|| stop.is_set(),
        observer: &mut |progress| match progress {
            Progress::Recorded { episodes, .. } => bar.set_position(episodes as u64),
            Progress::Lost { reason } => {
                progress::say(&bar, &format!("a worker was lost, its episode is repeated: {reason}"));
            }
            _ => {}
        },
    };
    let outcome = recorder.record(&file).map_err(failure);
    bar.finish_and_clear();
    let summary = match outcome? {
        Outcome::Done(summary) => Some(summary),
        Outcome::Kept => None,
        Outcome::Stopped { episodes, work } => {
            return Err(Failure::Stopped(format!(
                "stopped with {episodes} of {} episodes kept in {}; the same command goes on from there",
                recipe.episodes,
                work.display()
            )));
        }
    };
    if args.format == Format::Minari {
        write_minari(&file, &args.out, &shape, &recipe.env, &python).map_err(failure)?;
        std::fs::remove_file(&file).map_err(Failure::io(&file))?;
    }
    let report = Report {
        path: args.out.clone(),
        format: args.format,
        env: recipe.env,
        policy: recipe.policy,
        seed: args.seed,
        observation_dim: shape.observation_dim,
        action: shape.actions,
        made: summary.is_some(),
        summary,
        wall_seconds: start.elapsed().as_secs_f64(),
    };
    output::show(args.json, &report, || text(&report))
}

fn text(report: &Report) -> String {
    let path = report.path.display();
    let Some(Summary { episodes, steps, return_mean, return_min, return_max, success }) = &report.summary
    else {
        return format!("kept {path}, recorded by the same recipe before");
    };
    let success = success.map(|share| format!(", success {:.1} %", 100.0 * share)).unwrap_or_default();
    format!(
        "recorded {path}: {episodes} episodes, {steps} steps, return {return_mean:.1} ({return_min:.1} to \
         {return_max:.1}){success}"
    )
}

/// A policy, and what identifies it.
struct Acting<'a> {
    policy: Policy<'a>,
    name: String,
}

impl Acting<'_> {
    fn open(args: &Args, env: &EnvSpec, envs: &dyn EnvPool, python: &Python) -> Result<Self, Failure> {
        let shape = envs.shape();
        if args.policy == "random" {
            return Ok(Self { policy: Policy::Random, name: "random".to_owned() });
        }
        if let Ok(spec) = args.policy.parse::<EnvSpec>()
            && let EnvSource::File { path, function } = spec.source()
        {
            let name = named(&args.policy, spec.source())?;
            let mut policy = PythonPolicy::open(path, function, shape, envs.workers(), python)?;
            let act = move |observations: &[f32], turns: &[Turn], actions: &mut Vec<f32>| {
                policy.act(observations, turns, actions)
            };
            return Ok(Self { policy: Policy::Acting(Box::new(act)), name });
        }
        let run = Path::new(&args.policy);
        if !run.is_dir() {
            return Err(Failure::Usage(format!(
                "--policy: found `{}`, expected `random`, a run directory or FILE.py:FUNCTION",
                args.policy
            )));
        }
        let trained = Trained::open(run, None, &args.resources.get())?;
        Self::trained(&trained, env, shape)
    }

    fn trained(trained: &Trained, env: &EnvSpec, shape: &EnvShape) -> Result<Self, Failure> {
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

/// A name, and the digest of the file that it stands for: another text may do something else.
fn named(name: &str, source: &EnvSource) -> Result<String, Failure> {
    let EnvSource::File { path, .. } = source else { return Ok(name.to_owned()) };
    // Of a file that is not there, the worker says so.
    let digest = std::fs::read(path).map(|bytes| album_base::hex::hex(&Sha256::digest(&bytes)));
    Ok(digest.map_or_else(|_| name.to_owned(), |digest| format!("{name} (sha256 {})", &digest[..16])))
}

fn failure(error: RecordError) -> Failure {
    match error {
        RecordError::Env(error) => Failure::Env(error),
        error if error.is_io() => Failure::Tool(error.to_string()),
        error => Failure::Load(error.to_string()),
    }
}

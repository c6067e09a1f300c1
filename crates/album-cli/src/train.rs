//! `album train` and `album resume`.

use crate::choices::choices;
use crate::live_line::LiveLine;
use crate::output;
use crate::resources::{DeviceArgs, ResourceArgs};
use crate::source_args::{SourceArgs, low_high};
use album::config;
use album::run::{Finished, finished};
use album::together::{self, Accelerator, Results};
use album::track::Target;
use album::{Error as Failure, Location, Overrides, Preset, Resolved, Run};
use album_base::{detail, say, warn};
use album_envs::EnvSpec;
use album_train::{Event, StopFlag};
use clap::builder::TypedValueParser;
use clap::value_parser;
use std::path::PathBuf;

/// Arguments of `album train`.
#[derive(clap::Args)]
pub struct TrainArgs {
    /// The OGBench task; leave it out to learn from your own log with --data [default without either:
    /// pointmaze-medium-navigate-singletask-task3-v0]
    task: Option<String>,
    /// The algorithm; `album agents` lists them [default: album; iql for a log of discrete actions whose outcomes vary]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Gradient steps [default: the preset's]
    #[arg(long)]
    steps: Option<u64>,
    /// Master seed of the run [default: 0]
    #[arg(long)]
    seed: Option<u64>,
    /// The run directory [default: runs/TASK/AGENT-seedN]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Train this many seeds, from --seed on, as one program of the device; each is a run of its own, seedN below --out
    #[arg(long, value_name = "N", requires = "device", default_value_t = 1, value_parser = value_parser!(u64).range(1..=256))]
    seeds: u64,
    #[command(flatten)]
    resources: ResourceArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Round the factors of matrix products to bfloat16, which processors with AVX512-BF16 multiply faster [default: f32]
    #[arg(long, value_name = "f32|bf16")]
    precision: Option<String>,
    /// Steps between evaluations (0: only at the end)
    #[arg(long)]
    eval_every: Option<u64>,
    /// Episodes per evaluation (0: no evaluation, and no environment needed)
    #[arg(long)]
    eval_episodes: Option<u64>,
    /// Steps between checkpoints
    #[arg(long)]
    save_every: Option<u64>,
    /// Your own log: files or folders that form one dataset; with a TASK, the file with its data
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    data: Vec<PathBuf>,
    #[command(flatten)]
    log: SourceArgs,
    /// The name of your own data in runs and reports [default: the file name]
    #[arg(long)]
    name: Option<String>,
    /// Environment in which policies that learn from your own data are evaluated: gymnasium:ID, or
    /// FILE.py:FUNCTION that returns one
    #[arg(long, value_name = "ENV")]
    env: Option<String>,
    /// A keyword argument of the environment; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "env")]
    env_arg: Vec<String>,
    /// The returns that correspond to scores of 0 and 100, as in D4RL's normalisation
    #[arg(long, value_name = "LOW,HIGH", value_parser = low_high::<f64>, allow_hyphen_values = true)]
    score_range: Option<[f64; 2]>,
    /// Discount factor [default: the preset's; for your own data, chosen from the episode lengths]
    #[arg(long)]
    gamma: Option<f64>,
    /// Continue with the agent of another run, with its configuration, on other data
    #[arg(long, value_name = "RUN", conflicts_with = "config")]
    from: Option<PathBuf>,
    /// Also keep the best checkpoint and finish with it: chosen by evaluations, or by the loss on held-out
    /// episodes
    #[arg(long, value_parser = choices([("best", true, "")]), value_name = "best")]
    keep: Option<bool>,
    /// Stop early once the best checkpoint is this many steps old (needs --keep best)
    #[arg(long, value_name = "STEPS", requires = "keep")]
    patience: Option<u64>,
    /// Fraction of the episodes to hold out; their losses are logged as validation/* [default: the validation
    /// file beside the data, if there is one]
    #[arg(long, value_name = "SHARE")]
    holdout: Option<f64>,
    /// Preset to start from [default: own for your own data, small for PointMaze, otherwise paper]
    #[arg(long, value_parser = presets())]
    preset: Option<Preset>,
    /// TOML file with configuration values; options and --set override it
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// One configuration value, e.g. `k=5` or `album.alpha_bc=0.3`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Also log to an MLflow server, e.g. mlflow:http://127.0.0.1:5000
    #[arg(long, value_name = "mlflow:URI", value_parser = tracker)]
    track: Option<Target>,
    /// Train even if the boundedness condition is violated and values will diverge to minus infinity
    #[arg(long)]
    allow_unbounded: bool,
    /// Print result.json; of several runs an object with a list `runs`
    #[arg(long)]
    json: bool,
}

fn presets() -> impl TypedValueParser<Value = Preset> {
    let paper = "The published networks, coefficients and schedule, with the values for each environment";
    choices([
        ("paper", Preset::Paper, paper),
        ("small", Preset::Small, "Small networks and a short schedule, for PointMaze on a CPU"),
        ("own", Preset::Own, "Robust values for data that nobody has tuned for"),
    ])
}

/// Arguments of `album resume`.
#[derive(clap::Args)]
pub struct ResumeArgs {
    /// The run directory; several, to train them together on a device
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Train to this step instead of the run's configured last one
    #[arg(long)]
    steps: Option<u64>,
    /// Log to this tracker [default: the one that the run logged to before]
    #[arg(long, value_name = "mlflow:URI", value_parser = tracker)]
    track: Option<Target>,
    #[command(flatten)]
    resources: ResourceArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print result.json; of several runs an object with a list `runs`
    #[arg(long)]
    json: bool,
}

fn tracker(text: &str) -> Result<Target, String> {
    text.parse().map_err(|e: Failure| e.to_string())
}

/// Runs `album train`.
pub fn train(args: &TrainArgs) -> Result<(), Failure> {
    let mut train = toml::Table::new();
    for (key, value) in [
        ("steps", args.steps),
        ("eval_every", args.eval_every),
        ("eval_episodes", args.eval_episodes),
        ("save_every", args.save_every),
        ("patience", args.patience),
    ] {
        if let Some(value) = value {
            let value =
                i64::try_from(value).map_err(|_| Failure::Usage(format!("{key} = {value} is too large")))?;
            train.insert(key.to_owned(), value.into());
        }
    }
    train.extend(args.keep.map(|best| ("keep_best".to_owned(), best.into())));
    train.extend(args.holdout.map(|share| ("holdout".to_owned(), share.into())));
    train.extend(args.precision.clone().map(|precision| ("precision".to_owned(), precision.into())));
    let Resolved { config, overridden, chosen } = config::resolve(&Overrides {
        problem: args.task.as_deref().map(str::parse).transpose()?,
        agent: args.agent.clone(),
        seed: args.seed,
        data: args.log.optional(args.data.clone())?,
        name: args.name.clone(),
        env: args.env.as_ref().map(|env| env.parse::<EnvSpec>()?.with_args(&args.env_arg)).transpose()?,
        score_range: args.score_range,
        from: args.from.clone(),
        gamma: args.gamma,
        train,
        settings: toml::Table::new(),
        preset: args.preset,
        file: args.config.clone().or(args.from.as_ref().map(|run| run.join("config.toml"))),
        set: args.set.clone(),
    })?;
    overridden.iter().for_each(|line| say!("note: {line}"));
    chosen.iter().for_each(|line| say!("chosen from the data: {line}"));
    // Opened first, so that a bad device leaves no run directory behind.
    let device = args.device.open()?;
    device.iter().try_for_each(|device| device.check(&config))?;
    if args.allow_unbounded
        && let Some(sides) = config.violated_boundedness()?
    {
        warn!("the boundedness condition is violated, values will fall without bound: {sides}");
    }
    match config.problem.locate(config.data.as_deref())? {
        Location::Recorded(path, _) if !path.exists() => say!("recording {}", path.display()),
        Location::Recorded(path, _) | Location::Found(path) => detail!("data: {}", path.display()),
    }
    let resources = args.resources.get();
    let runs = together::begin(&config, args.seeds, args.out.as_deref(), args.allow_unbounded, &resources)?;
    go(runs, Vec::new(), device.as_ref(), args.track.as_ref(), args.json)
}

/// Runs `album resume`.
pub fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    let ResumeArgs { steps, track, json, .. } = args;
    let (mut runs, mut done) = (Vec::new(), Vec::new());
    for run in &args.runs {
        match finished(run)?.filter(|done| steps.is_none_or(|steps| steps == done.result.steps)) {
            Some(one) => {
                say!("{}: the run is finished; there is nothing to resume", run.display());
                done.push(one);
            }
            None => runs.push(run),
        }
    }
    let device = args.device.open()?;
    let resume = |run: &PathBuf| Run::resume(run, *steps, &args.resources.get());
    let runs = runs.into_iter().map(resume).collect::<Result<Vec<_>, _>>()?;
    if runs.is_empty() {
        print(&done, done.len() == 1, *json)
    } else {
        go(runs, done, device.as_ref(), track.as_ref(), *json)
    }
}

/// Trains to the end or until a signal, with a live progress line, and prints the results, those of runs that
/// were `finished` before among them.
pub fn go(
    runs: Vec<Run>,
    mut finished: Vec<Finished>,
    on: Option<&Accelerator>,
    track: Option<&Target>,
    json: bool,
) -> Result<(), Failure> {
    let (steps, one) = (runs[0].config().train.steps, runs.len() + finished.len() == 1);
    say!("{}", together::introduction(&runs)?);
    runs.iter().flat_map(Run::warnings).for_each(|warning| warn!("{warning}"));
    let mut line = LiveLine::new(steps);
    let show = &mut |run: &str, event: &Event<'_>| line.show(run, event);
    let (done, failed) = together::train(runs, on, track, StopFlag::on_signals()?, show)?;
    line.clear();
    let stopped = together::stopped(&done, steps);
    finished.extend(done);
    if !(one && finished.is_empty()) {
        print(&finished, one, json)?;
    }
    failed.map_or(stopped, Err)
}

/// Prints the result of one run, or those of several as one document.
fn print(finished: &[Finished], one: bool, json: bool) -> Result<(), Failure> {
    match finished {
        [only] if one => output::show(json, &only.result, || only.to_string()),
        all => output::show(json, &Results::of(all), || together::lines(all)),
    }
}

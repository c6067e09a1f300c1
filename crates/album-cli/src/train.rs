//! `album train` and `album resume`.

use crate::output;
use crate::resources::ResourceArgs;
use crate::source_args::SourceArgs;
use album::config::{self, RunConfig};
use album::report;
use album::run::{default_directory, finished};
use album::track::{Target, Tracker};
use album::{Error as Failure, Finished, Location, Overrides, Preset, Problem, Resolved, Resources, Run};
use album_base::number::{grouped, seconds};
use album_base::progress::{self, Amount, ProgressBar};
use album_data::{ActionSpace, Description, Source};
use album_envs::EnvSpec;
use album_train::{Event, RunResult, StopFlag};
use album_xla::{Device, DeviceName};
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// A new run.
#[derive(clap::Args)]
pub struct TrainArgs {
    /// The OGBench name of the task; leave it out to learn from your own log with --data [default without either:
    /// pointmaze-medium-navigate-singletask-v0]
    task: Option<String>,
    /// The algorithm; `album agents` lists them [default: album]
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
    #[command(flatten)]
    resources: ResourceArgs,
    /// Train on a device of the plugin that `album setup xla` fetched: xla, or xla:N [default: the processor]
    #[arg(long, value_name = "xla[:N]")]
    device: Option<DeviceName>,
    /// Steps between evaluations (0: only at the end)
    #[arg(long)]
    eval_every: Option<u64>,
    /// Episodes of an evaluation (0: none, and no environment is needed)
    #[arg(long)]
    eval_episodes: Option<u64>,
    /// Steps between checkpoints
    #[arg(long)]
    save_every: Option<u64>,
    /// Your own log: files or folders that are one dataset; with a TASK, the file of its data
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    data: Vec<PathBuf>,
    #[command(flatten)]
    log: SourceArgs,
    /// What runs call your own data [default: the name of the file]
    #[arg(long)]
    name: Option<String>,
    /// Where to try out policies that learn from your own data: gymnasium:ID, or FILE.py:FUNCTION that returns an
    /// environment
    #[arg(long, value_name = "ENV")]
    env: Option<String>,
    /// A keyword argument of the environment, as often as needed
    #[arg(long, value_name = "KEY=VALUE", requires = "env")]
    env_arg: Vec<String>,
    /// The returns that count as a score of 0 and of 100, as D4RL normalises them
    #[arg(long, value_name = "LOW,HIGH", value_delimiter = ',', num_args = 2, allow_negative_numbers = true)]
    score_range: Option<Vec<f64>>,
    /// The discount factor [default: the preset's; on your own data from the length of its episodes]
    #[arg(long)]
    gamma: Option<f64>,
    /// Go on with the agent of another run, with its configuration, on other data
    #[arg(long, value_name = "RUN", conflicts_with = "config")]
    from: Option<PathBuf>,
    /// Keep the best checkpoint too, and end with it: by its evaluations, or by the loss on held-out episodes
    #[arg(long, value_name = "best")]
    keep: Option<Keep>,
    /// End the run when its best checkpoint is this many steps old (needs --keep best)
    #[arg(long, value_name = "STEPS", requires = "keep")]
    patience: Option<u64>,
    /// Share of the episodes to hold out: their losses are logged as validation/* [default: the validation file beside the
    /// data, if there is one]
    #[arg(long, value_name = "SHARE")]
    holdout: Option<f64>,
    /// Where the configuration starts from [default: own for your own data, small for PointMaze, else paper]
    #[arg(long, value_enum)]
    preset: Option<PresetArg>,
    /// A TOML file with configuration values; options and --set override it
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// One configuration value, e.g. `k=5` or `album.alpha_bc=0.3`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Log to an MLflow server too, e.g. mlflow:http://127.0.0.1:5000
    #[arg(long, value_name = "mlflow:URI", value_parser = tracker)]
    track: Option<Target>,
    /// Train even where the boundedness condition is violated and values will fall without bound
    #[arg(long)]
    allow_unbounded: bool,
    /// Print result.json
    #[arg(long)]
    json: bool,
}

/// `--keep`.
#[derive(Clone, Copy, ValueEnum)]
enum Keep {
    Best,
}

/// `--preset`.
#[derive(Clone, Copy, ValueEnum)]
enum PresetArg {
    /// The published networks, coefficients and schedule, with the values for the environment
    Paper,
    /// Small networks and a short schedule that suit PointMaze on a CPU
    Small,
    /// Sensible on data that nobody has tuned for
    Own,
}

/// A run that goes on.
#[derive(clap::Args)]
pub struct ResumeArgs {
    /// The run directory
    run: PathBuf,
    /// Train to this step instead of the run's own last one
    #[arg(long)]
    steps: Option<u64>,
    /// Log to this tracker [default: the one that the run was logged to]
    #[arg(long, value_name = "mlflow:URI", value_parser = tracker)]
    track: Option<Target>,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Go on on a device of the plugin that `album setup xla` fetched: xla, or xla:N [default: the processor]
    #[arg(long, value_name = "xla[:N]")]
    device: Option<DeviceName>,
    /// Print result.json
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
    if let Some(Keep::Best) = args.keep {
        train.insert("keep_best".into(), true.into());
    }
    if let Some(share) = args.holdout {
        train.insert("holdout".into(), share.into());
    }
    let Resolved { config, overridden, chosen } = config::resolve(&Overrides {
        problem: args.task.as_deref().map(str::parse).transpose()?,
        agent: args.agent.clone(),
        seed: args.seed,
        data: source(args)?,
        name: args.name.clone(),
        env: args.env.as_ref().map(|env| env.parse::<EnvSpec>()?.with_args(&args.env_arg)).transpose()?,
        score_range: args.score_range.as_deref().and_then(|range| range.first_chunk().copied()),
        from: args.from.as_deref().map(absolute).transpose()?,
        gamma: args.gamma,
        train,
        settings: toml::Table::new(),
        preset: args.preset.map(|preset| match preset {
            PresetArg::Paper => Preset::Paper,
            PresetArg::Small => Preset::Small,
            PresetArg::Own => Preset::Own,
        }),
        file: args.config.clone().or(args.from.as_ref().map(|run| run.join("config.toml"))),
        set: args.set.clone(),
    })?;
    for line in overridden {
        eprintln!("note: {line}");
    }
    for line in chosen {
        eprintln!("chosen from the data: {line}");
    }
    let path = args.out.clone().unwrap_or_else(|| default_directory(&config));
    // Before there is a directory.
    let device = args.device.map(DeviceName::open).transpose()?;
    let (resources, allow_unbounded) = (args.resources.get(), args.allow_unbounded);
    begin(config, &path, allow_unbounded, &resources, device.as_ref(), args.track.as_ref(), args.json)
}

/// A run may be resumed from another directory, so that places are kept whole.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    // The id of a Minari dataset is no path.
    if !path.exists() {
        return Ok(path.to_path_buf());
    }
    std::path::absolute(path).map_err(Failure::io(path))
}

fn source(args: &TrainArgs) -> Result<Option<Source>, Failure> {
    // What is no path may be the id of a Minari dataset.
    let place = |path: &PathBuf| if path.exists() { absolute(path) } else { Ok(path.clone()) };
    let paths = args.data.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    if paths.is_empty() && !args.log.is_empty() {
        return Err(Failure::Usage("options that say how a log is read need --data SOURCE".into()));
    }
    Ok((!paths.is_empty()).then(|| args.log.source(paths)))
}

/// Begins a run in a new directory.
fn begin(
    config: RunConfig,
    path: &Path,
    allow_unbounded: bool,
    resources: &Resources,
    device: Option<&Device>,
    track: Option<&Target>,
    json: bool,
) -> Result<(), Failure> {
    if allow_unbounded && let Some(sides) = config.violated_boundedness()? {
        eprintln!("warning: the boundedness condition is violated, values will fall without bound: {sides}");
    }
    if let Location::Recorded(path, _) = config.problem.locate(config.data.as_deref())?
        && !path.exists()
    {
        eprintln!("recording {}", path.display());
    }
    let run = Run::begin(config, path, allow_unbounded, resources)?;
    go(on(run, device), track, json)
}

/// Runs `album resume`.
pub fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    let ResumeArgs { run, steps, track, resources, device, json } = args;
    let (steps, json) = (*steps, *json);
    if let Some(result) = finished(run)?.filter(|result| steps.is_none_or(|steps| steps == result.steps)) {
        eprintln!("{}: the run is finished; there is nothing to resume", run.display());
        return print(&result, run, &run.join("report.html"), json);
    }
    let device = device.map(DeviceName::open).transpose()?;
    go(on(Run::resume(run, steps, &resources.get())?, device.as_ref()), track.as_ref(), json)
}

fn on(run: Run, device: Option<&Device>) -> Run {
    match device {
        Some(device) => run.on(device),
        None => run,
    }
}

/// Trains to the end or until a signal, with a live line; prints the result.
pub fn go(run: Run, track: Option<&Target>, json: bool) -> Result<(), Failure> {
    let (config, path) = (run.config(), run.path().to_path_buf());
    let steps = config.train.steps;
    eprintln!(
        "{} on {}, seed {}: {} steps on {} transitions in {}, into {}",
        config.agent,
        config.problem,
        config.seed,
        grouped(steps as i64),
        grouped(run.data().len() as i64),
        report::episodes(
            config,
            run.data().episodes().len(),
            run.held_out().map(|data| data.episodes().len())
        ),
        path.display()
    );
    if let Problem::Own(own) = &config.problem {
        eprint!("{}", described(&own.read()?.description));
    }
    for warning in run.warnings() {
        eprintln!("warning: {warning}");
    }
    let mut line = LiveLine::new(steps);
    let mut tracker = Tracker::of_run(track, &run)?;
    let outcome = run.train(StopFlag::on_signals()?, &mut |event| {
        line.show(event);
        let told = tracker.as_mut().map_or_else(Vec::new, |tracker| tracker.observe(event));
        told.into_iter().for_each(|warning| line.show(&Event::Warning(warning)));
    });
    let told = tracker.map_or_else(Vec::new, |tracker| tracker.finish(&outcome));
    told.into_iter().for_each(|warning| line.show(&Event::Warning(warning)));
    line.bar.finish_and_clear();
    let Finished { result, page } = outcome?;
    print(&result, &path, &page, json)?;
    if result.finished {
        return Ok(());
    }
    Err(Failure::Stopped(format!(
        "stopped after step {} of {steps}; `album resume {}` goes on",
        result.steps,
        path.display()
    )))
}

/// What one's own data turned out to be.
fn described(data: &Description) -> String {
    let actions = match &data.action_space {
        ActionSpace::Discrete { n } => format!("{n} choices"),
        ActionSpace::Continuous { low, high } => {
            let bounds = low.iter().zip(high).map(|(low, high)| format!("[{low}, {high}]"));
            format!("{} in {}", data.action_names.join(", "), bounds.collect::<Vec<_>>().join(" x "))
        }
    };
    let mut text = format!(
        "data: {}, {} numbers in an observation, actions {actions}; {} episodes end in a terminal, {} in a timeout\n",
        data.format,
        data.observation_names.len(),
        data.ends.terminal,
        data.ends.timeout
    );
    data.guesses.iter().for_each(|guess| text.push_str(&format!("guessed: {guess}\n")));
    text
}

fn print(result: &RunResult, run: &Path, page: &Path, json: bool) -> Result<(), Failure> {
    if json { output::print_json(result) } else { output::print(&summary(result, run, page)) }
}

fn summary(result: &RunResult, run: &Path, page: &Path) -> String {
    let success = match result.evaluations.last() {
        Some(last) => {
            let at = if result.finished {
                String::new()
            } else {
                format!(" at the last evaluation, after step {}", last.step)
            };
            match (last.success, last.success_interval) {
                (Some(success), Some([low, high])) => {
                    let [success, low, high] = [success, low, high].map(|share| 100.0 * share);
                    let episodes = last.episodes;
                    format!(
                        "success {success:.1} % (95 % interval {low:.1} to {high:.1}, {episodes} episodes){at}"
                    )
                }
                _ => {
                    let score = result.score.map_or(String::new(), |score| format!(", score {score:.1}"));
                    format!("return {:.1}{score} ({} episodes){at}", last.mean_return, last.episodes)
                }
            }
        }
        None => "no evaluation".into(),
    };
    format!(
        "{}{success}; {} steps in {} ({:.2} ms per step)\nrun      {}\nreport   {}\nweights  {}",
        if result.finished { "" } else { "stopped early: " },
        result.steps,
        seconds(result.wall_seconds),
        result.ms_per_step,
        run.display(),
        page.display(),
        result.weights_sha256
    )
}

/// The live line: steps, steps a second, time to go, the last success and the range of V.
struct LiveLine {
    bar: ProgressBar,
    success: String,
    values: String,
    speed: String,
}

impl LiveLine {
    fn new(steps: u64) -> Self {
        let bar = progress::bar(steps, Amount::Count).with_prefix("training");
        LiveLine { bar, success: String::new(), values: String::new(), speed: String::new() }
    }

    fn say(&self, line: String) {
        progress::say(&self.bar, &line);
    }

    fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { step, .. } => {
                self.bar.set_position(*step);
                self.bar.reset_eta();
                if *step > 0 {
                    self.say(format!("resuming after step {step}"));
                }
            }
            Event::Warning(text) => self.say(format!("warning: {text}")),
            Event::Progress { step, ms_per_step } => {
                self.bar.set_position(*step);
                self.speed = format!("{:.0} steps/s", 1e3 / ms_per_step);
            }
            Event::Logged { metrics, .. } => {
                let of = |name: &str| metrics.iter().find(|m| m.0 == name).map(|m| m.1);
                if let (Some(low), Some(high)) = (of("value/v_min"), of("value/v_max")) {
                    self.values = format!("V {low:.1} to {high:.1}");
                }
            }
            Event::Evaluating { .. } => self.bar.set_message("evaluating"),
            Event::Evaluated { evaluation, seconds, background } => {
                let summary = evaluation.summary();
                self.success = match summary.success {
                    Some(success) => format!("success {:.0} %", 100.0 * success),
                    None => String::new(),
                };
                let line = format!(
                    "step {:>8}  {}  return {:.1}  length {:.0}  {}  evaluated in {seconds:.1} s{}",
                    summary.step,
                    self.success,
                    summary.mean_return,
                    summary.length,
                    self.values,
                    if *background { " beside training" } else { "" }
                );
                self.say(line);
            }
            Event::Saved { .. } | Event::Stopped { .. } => {}
        }
        if !matches!(event, Event::Evaluating { .. }) {
            let parts = [&self.speed, &self.success, &self.values];
            let message: Vec<&str> = parts.iter().map(|s| s.as_str()).filter(|s| !s.is_empty()).collect();
            self.bar.set_message(message.join("  "));
        }
    }
}

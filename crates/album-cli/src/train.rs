//! `album train` and `album resume`.

use crate::config::{self, Overrides, Preset, RunConfig};
use crate::failure::Failure;
use crate::run::{Resources, agent, evaluator, identity, read_config, task};
use crate::{output, task_data};
use album_agents::{Agent, Learner};
use album_base::number::seconds;
use album_data::ogbench::{Family, TaskName};
use album_data::{Dataset, Segments};
use album_envs::Maze;
use album_nn::Pool;
use album_train::{
    Evaluator, Event, RunDir, RunResult, Schedule, StopFlag, TrainError, Trainer, ValuePoints, report,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

/// What `album train` does without a task.
const DEFAULT_TASK: &str = "pointmaze-medium-navigate-singletask-v0";

/// A new run.
#[derive(clap::Args)]
pub struct TrainArgs {
    /// The OGBench name of the task
    #[arg(default_value = DEFAULT_TASK)]
    task: String,
    /// The algorithm; `album agents` lists them (default: album)
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Gradient steps (the preset's if not given)
    #[arg(long)]
    steps: Option<u64>,
    /// Master seed of the run
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The run directory (default: runs/TASK/AGENT-seedN)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    resources: Resources,
    /// Steps between evaluations (0: only at the end)
    #[arg(long)]
    eval_every: Option<u64>,
    /// Episodes of an evaluation (0: none, and no environment is needed)
    #[arg(long)]
    eval_episodes: Option<usize>,
    /// Steps between checkpoints
    #[arg(long)]
    save_every: Option<u64>,
    /// The data: an npz file in OGBench's layout or a folder of imported columns, instead of the task's default
    #[arg(long, value_name = "FILE|DIR")]
    data: Option<PathBuf>,
    /// Where the configuration starts from (default: small for PointMaze, else paper)
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    /// A TOML file with configuration values
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// One configuration value, e.g. `k=5` or `album.alpha_bc=0.3`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Train even where the boundedness condition is violated and values will fall without bound
    #[arg(long)]
    allow_unbounded: bool,
    /// Print result.json
    #[arg(long)]
    json: bool,
}

/// A run that goes on.
#[derive(clap::Args)]
pub struct ResumeArgs {
    /// The run directory
    run: PathBuf,
    #[command(flatten)]
    resources: Resources,
    /// Print result.json
    #[arg(long)]
    json: bool,
}

/// Runs `album train`.
pub fn train(args: &TrainArgs) -> Result<(), Failure> {
    let task: TaskName = args.task.parse().map_err(|e| Failure::Config(format!("{e}")))?;
    let mut set = args.set.clone();
    let flags = [
        ("steps", args.steps),
        ("eval_every", args.eval_every),
        ("eval_episodes", args.eval_episodes.map(|n| n as u64)),
        ("save_every", args.save_every),
    ];
    set.extend(flags.iter().filter_map(|(key, value)| value.map(|value| format!("train.{key}={value}"))));
    let overrides =
        Overrides { agent: args.agent.clone(), preset: args.preset, file: args.config.clone(), set };
    let mut config = config::resolve(&task, args.seed, &overrides)?;
    if args.data.is_some() {
        config.data.clone_from(&args.data);
    }
    let path = args.out.clone().unwrap_or_else(|| default_run(&config));
    begin(&config, &path, args.allow_unbounded, &args.resources, args.json)
}

/// Begins a run in a new directory. Everything that can be refused is refused before there is one.
pub fn begin(
    config: &RunConfig,
    path: &Path,
    allow_unbounded: bool,
    resources: &Resources,
    json: bool,
) -> Result<(), Failure> {
    check_boundedness(config, allow_unbounded)?;
    let task = task(config)?;
    let data = task_data::load(&task, config.data.as_deref())?;
    let agent = agent(config, &data, &Pool::new(resources.threads))?;
    Segments::new(agent.segments()).and_then(|segments| segments.fits(&data)).map_err(TrainError::from)?;
    let evaluator = evaluator(config, &task, resources)?;
    let run = RunDir::create(path, &config.to_toml()?)?;
    go(config, agent, &data, &run, evaluator, json)
}

/// Runs `album resume`.
pub fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    go_on(&args.run, &args.resources, args.json)
}

/// Goes on with a run.
pub fn go_on(run: &Path, resources: &Resources, json: bool) -> Result<(), Failure> {
    let config = read_config(run)?;
    let run = RunDir::open(run)?;
    let data = task_data::load(&task(&config)?, config.data.as_deref())?;
    let agent = agent(&config, &data, &Pool::new(resources.threads))?;
    let evaluator = evaluator(&config, &task(&config)?, resources)?;
    go(&config, agent, &data, &run, evaluator, json)
}

fn check_boundedness(config: &RunConfig, allow: bool) -> Result<(), Failure> {
    let setup = config.setup()?;
    let Some(critic) = setup.album_critic() else { return Ok(()) };
    let b = critic.boundedness();
    let left = if critic.stop_gradient {
        "lambda_b (1 - gamma) + 2 lambda_k"
    } else {
        "lambda_b (1 - gamma) + 2 lambda_k (1 - gamma^k)"
    };
    let sides = format!("{left} = {:.6} against omega_q + omega_v = {:.6}", b.left, b.right);
    if b.holds() {
        eprintln!("bounded updates: {sides}");
        return Ok(());
    }
    if allow {
        eprintln!("warning: the boundedness condition is violated, values will fall without bound: {sides}");
        return Ok(());
    }
    Err(Failure::Config(format!(
        "the boundedness condition is violated, values would fall without bound: {sides}; raise lambda_k or lambda_b, \
         or pass --allow-unbounded"
    )))
}

/// `runs/TASK/AGENT-seedN`, with a number behind it where that exists already.
fn default_run(config: &RunConfig) -> PathBuf {
    let base = PathBuf::from("runs").join(&config.task);
    let name = format!("{}-seed{}", config.agent, config.seed);
    let mut path = base.join(&name);
    let mut number = 2;
    while path.exists() {
        path = base.join(format!("{name}-{number}"));
        number += 1;
    }
    path
}

/// Trains to the end or until a signal, with a live line; writes the report; prints the result.
fn go(
    config: &RunConfig,
    mut agent: Learner,
    data: &Dataset,
    run: &RunDir,
    evaluator: Option<Evaluator>,
    json: bool,
) -> Result<(), Failure> {
    let task = task(config)?;
    let schedule = Schedule {
        log_every: config.train.log_every,
        eval_every: config.train.eval_every,
        save_every: config.train.save_every,
        keep: config.train.keep,
        ..Schedule::new(config.train.steps)
    };
    let points = match task.environment().family {
        // The observations of all of them begin with the position.
        Family::PointMaze(size) | Family::AntMaze(size) | Family::HumanoidMaze(size) => {
            Some(ValuePoints::positions(&Maze::new(size).sample_grid(4), data.observation_dim()))
        }
        _ => None,
    };
    let mut line = Line::new(config.train.steps);
    eprintln!(
        "{} on {}, seed {}: {} steps into {}",
        config.agent,
        config.task,
        config.seed,
        config.train.steps,
        run.path().display()
    );
    let result = Trainer {
        agent: &mut agent,
        dataset: data,
        run,
        identity: &identity(config, data)?,
        schedule,
        evaluator,
        value_points: points,
        stop: StopFlag::on_signals()?,
        observer: &mut |event| line.show(event),
    }
    .train();
    line.bar.finish_and_clear();
    let result = result?;
    let page = report::write(run.path())?;
    if json {
        output::print_json(&result)?;
    } else {
        output::print(&summary(&result, run.path(), &page))?;
    }
    if result.finished {
        return Ok(());
    }
    Err(Failure::Stopped(format!(
        "stopped after step {}; `album resume {}` goes on",
        result.steps,
        run.path().display()
    )))
}

fn summary(result: &RunResult, run: &Path, page: &Path) -> String {
    let success = match result.evaluations.last() {
        Some(last) => format!(
            "success {:.1} % (95 % interval {:.1} to {:.1}, {} episodes)",
            100.0 * last.success,
            100.0 * last.success_interval[0],
            100.0 * last.success_interval[1],
            last.episodes
        ),
        None => "no evaluation".into(),
    };
    format!(
        "{success} after {} steps in {} ({:.2} ms a step)\nrun      {}\nreport   {}\nweights  {}",
        result.steps,
        seconds(result.wall_seconds),
        result.ms_per_step,
        run.display(),
        page.display(),
        result.weights_sha256
    )
}

/// The live line: steps, steps a second, time to go, the last success and the range of V.
struct Line {
    bar: ProgressBar,
    success: String,
    values: String,
    speed: String,
}

impl Line {
    fn new(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let style = ProgressStyle::with_template("[{bar:25}] {pos}/{len} eta {eta} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        bar.set_style(style);
        Line { bar, success: String::new(), values: String::new(), speed: String::new() }
    }

    /// A line of its own; where standard error is not a terminal there is no bar to print above.
    fn say(&self, line: String) {
        if self.bar.is_hidden() { eprintln!("{line}") } else { self.bar.println(line) }
    }

    fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { step, .. } => {
                self.bar.set_position(*step);
                self.bar.reset_eta();
                if *step > 0 {
                    self.say(format!("going on after step {step}"));
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
                self.success = format!("success {:.0} %", 100.0 * summary.success);
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

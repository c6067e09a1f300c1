//! `album setup`: what cargo alone does not install.

use crate::output;
use album::Error as Failure;
use album_base::number::seconds;
use album_data::ogbench::{ENVIRONMENTS, TaskName};
use album_envs::python::{self, REQUIREMENTS};
use album_envs::{Answer, EnvError, EnvPool, EnvSpec, Limits, Python, Suite, WorkerError, WorkerPool};
use album_report::table::Table;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// The subcommands of `album setup`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a private Python environment with ogbench, and try one environment of each family
    Ogbench(OgbenchArgs),
}

#[derive(clap::Args)]
struct OgbenchArgs {
    /// Where to make it [default: in album's cache folder]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// The Python to make it from, 3.10 to 3.13
    #[arg(long, value_name = "PYTHON3", default_value = "python3")]
    python: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct SetupReport {
    path: PathBuf,
    interpreter: PathBuf,
    versions: BTreeMap<String, String>,
    environments: Vec<Trial>,
}

#[derive(Serialize)]
struct Trial {
    environment: &'static str,
    observation_dim: usize,
    action_dim: usize,
    horizon: usize,
    /// Until a worker was ready, with its packages loaded and its environment made.
    start_seconds: f64,
    reset_seconds: f64,
    /// Mean of a few steps.
    step_seconds: f64,
}

/// One task of each family, the quickest.
const TASKS: [&str; 7] = [
    "pointmaze-medium-navigate-singletask-v0",
    "antmaze-medium-navigate-singletask-v0",
    "humanoidmaze-medium-navigate-singletask-v0",
    "antsoccer-arena-navigate-singletask-v0",
    "cube-single-play-singletask-v0",
    "scene-play-singletask-v0",
    "puzzle-3x3-play-singletask-v0",
];

const STEPS: usize = 5;

/// Runs `album setup`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Command::Ogbench(args) = &args.command;
    let path = match &args.path {
        // The interpreter must be found from any directory.
        Some(path) => std::path::absolute(path).map_err(Failure::io(path))?,
        None => python::default_folder().map_err(failure)?,
    };
    let say = &mut |line: &str| eprintln!("{line}");
    let python = python::set_up_from(&args.python, &path, REQUIREMENTS, say).map_err(failure)?;
    let mut report = SetupReport {
        path,
        interpreter: python.interpreter().to_owned(),
        versions: BTreeMap::new(),
        environments: Vec::new(),
    };
    for task in TASKS {
        let task: TaskName = task.parse().map_err(|e| Failure::Config(format!("{e}")))?;
        eprintln!("trying {}", task.environment().name);
        let tried = try_out(&task, &python, &mut report.versions).map_err(failure)?;
        report.environments.push(tried);
    }
    if args.json {
        return output::print_json(&report);
    }
    output::print(&text(&report, args.path.is_some()))
}

/// Starts an episode and takes a few steps. The worker checks that the environment has the shape in album's table.
fn try_out(
    task: &TaskName,
    python: &Python,
    versions: &mut BTreeMap<String, String>,
) -> Result<Trial, EnvError> {
    let start = Instant::now();
    let mut envs = WorkerPool::new(Suite::ogbench(task), 1, python, Limits::default())?;
    let start_seconds = start.elapsed().as_secs_f64();
    versions.clone_from(envs.versions());
    let start = Instant::now();
    envs.reset(0, 0, false)?;
    answer(&mut envs, task)?;
    let reset_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let EnvSpec { observation_dim, action_dim, horizon } = envs.spec();
    let action = vec![0.0; action_dim];
    for _ in 0..STEPS {
        envs.step(0, &action)?;
        answer(&mut envs, task)?;
    }
    Ok(Trial {
        environment: task.environment().name,
        observation_dim,
        action_dim,
        horizon,
        start_seconds,
        reset_seconds,
        step_seconds: start.elapsed().as_secs_f64() / STEPS as f64,
    })
}

/// Waits for the answer of slot 0.
fn answer(envs: &mut dyn EnvPool, task: &TaskName) -> Result<(), EnvError> {
    loop {
        match envs.wait()?.pop() {
            None => {}
            Some((_, Answer::Lost { reason })) => {
                let environment = task.environment_id();
                return Err(WorkerError::Failed { environment, reason, said: String::new() }.into());
            }
            Some(_) => return Ok(()),
        }
    }
}

fn text(report: &SetupReport, elsewhere: bool) -> String {
    let mut table = Table::new(["environment", "observation", "action", "horizon", "start", "reset", "step"]);
    for tried in &report.environments {
        let numbers = [tried.observation_dim, tried.action_dim, tried.horizon].map(|n| n.to_string());
        let times = [tried.start_seconds, tried.reset_seconds, tried.step_seconds].map(seconds);
        table = table.row([tried.environment.to_owned()].into_iter().chain(numbers).chain(times));
    }
    let versions: Vec<String> = report.versions.iter().map(|(name, v)| format!("{name} {v}")).collect();
    let mut text = format!("{}\n{}\nin {}\n", table.to_text(), versions.join(", "), report.path.display());
    let others = ENVIRONMENTS.len() - report.environments.len();
    text.push_str(&format!("one environment of each family works; there are {others} more"));
    if elsewhere {
        text.push_str(&format!(
            "\nto use it:\n  export {}={}",
            python::VARIABLE,
            report.interpreter.display()
        ));
    }
    text
}

fn failure(error: EnvError) -> Failure {
    match &error {
        EnvError::Python(e) if !e.is_io() => Failure::Config(error.to_string()),
        _ => Failure::Tool(error.to_string()),
    }
}

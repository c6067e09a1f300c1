//! A run small enough to be repeated hundreds of times: a short PointMaze recording, tiny networks, short episodes.
#![allow(dead_code)] // each test binary uses a part of it
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

use album_agents::agents::album::{Config, HingeCritic};
use album_agents::{Agent, Common, Decay, Learner};
use album_data::Dataset;
use album_data::ogbench::{MazeSize, TaskName, load_task};
use album_envs::navigate::{self, Recipe};
use album_envs::{Env, EnvError, EnvPool, EnvShape, NativePool, PointMaze, Step};
use album_nn::Pool;
use album_train::{
    Evaluator, Event, Identity, RunDir, RunResult, Schedule, StopFlag, TrainError, Trainer, ValuePoints,
};

pub const STEPS: u64 = 200;

/// Makes a background evaluation last for some dozens of updates.
const SLOW: Duration = Duration::from_micros(300);

pub fn task() -> TaskName {
    "pointmaze-medium-navigate-singletask-task1-v0".parse().unwrap()
}

pub fn dataset(dir: &Path) -> Dataset {
    let path = dir.join("data.npz");
    let recipe = Recipe { episodes: 3, rows: 101, ..Recipe::train(MazeSize::Medium, 0) };
    navigate::cached(&path, &recipe, NonZero::<usize>::MIN).unwrap();
    load_task(&path, &task()).unwrap()
}

/// PointMaze with a short horizon and an artificial delay.
#[derive(Debug, Clone)]
pub struct Short(PointMaze, usize, Duration, EnvShape);

impl Env for Short {
    fn shape(&self) -> &EnvShape {
        &self.3
    }
    fn reset(&mut self, episode_seed: u64) -> Result<Vec<f32>, EnvError> {
        self.1 = 0;
        self.0.reset(episode_seed)
    }
    fn step(&mut self, action: &[f32]) -> Result<Step, EnvError> {
        self.1 += 1;
        std::thread::sleep(self.2);
        let step = self.0.step(action)?;
        Ok(Step { truncated: self.1 >= self.3.horizon, ..step })
    }
}

pub fn envs(count: usize, delay: Duration) -> Box<dyn EnvPool> {
    let maze = PointMaze::new(&task()).unwrap();
    let shape = EnvShape { horizon: 20, ..maze.shape().clone() };
    Box::new(NativePool::cloned(&Short(maze, 0, delay, shape), count))
}

pub fn agent(dataset: &Dataset, seed: u64, threads: usize) -> Learner {
    let common = Common {
        hidden: vec![24, 17],
        batch_size: 16,
        gamma: 0.995,
        lr_decay: Decay::Cosine,
        standardize: true,
        fourier_features: 6,
        ..Common::default()
    };
    let config =
        Config { common, critic: HingeCritic { k: 5, ..HingeCritic::default() }, ..Config::default() };
    Learner::new(&config, dataset, STEPS, seed, &Pool::new(threads)).unwrap()
}

pub fn schedule() -> Schedule {
    Schedule { log_every: 7, check_every: 3, eval_every: 50, save_every: 20, ..Schedule::new(STEPS) }
}

pub fn identity(dataset: &Dataset, seed: u64) -> Identity {
    Identity::new(task().to_string(), "album", seed, dataset, "k = 5\n")
}

/// Options of a test run.
pub struct Options<'a> {
    pub seed: u64,
    pub threads: usize,
    pub envs: usize,
    pub background: bool,
    pub schedule: Schedule,
    pub stop: StopFlag,
    pub observer: &'a mut dyn FnMut(&Event<'_>),
}

/// Starts a run in an empty directory, otherwise resumes it.
pub fn run_with(dataset: &Dataset, path: &Path, options: Options<'_>) -> Result<RunResult, TrainError> {
    let mut agent = agent(dataset, options.seed, options.threads);
    train(dataset, path, &mut agent, options)
}

pub fn train(
    dataset: &Dataset,
    path: &Path,
    agent: &mut dyn Agent,
    options: Options<'_>,
) -> Result<RunResult, TrainError> {
    let run = if path.join("config.toml").exists() {
        RunDir::open(path)?
    } else {
        RunDir::create(path, "k = 5\n")?
    };
    let grid = PointMaze::new(&task()).unwrap().maze().sample_grid(1);
    Trainer {
        agent,
        dataset,
        groups: None,
        held_out: None,
        run: &run,
        identity: &identity(dataset, options.seed),
        schedule: options.schedule,
        evaluator: Some(Evaluator {
            envs: envs(options.envs, if options.background { SLOW } else { Duration::ZERO }),
            episodes: 3,
            paths: 2,
            score_range: None,
            background: options.background,
        }),
        value_points: Some(ValuePoints::positions(&grid, 2)),
        watch: false,
        probe: None,
        stop: options.stop,
        observer: options.observer,
    }
    .train()
}

pub fn run(dataset: &Dataset, path: &Path) -> RunResult {
    run_with(dataset, path, Options { observer: &mut |_| {}, ..plain() }).unwrap()
}

/// Seed 1, one thread, two environments.
pub fn plain<'a>() -> Options<'a> {
    Options {
        seed: 1,
        threads: 1,
        envs: 2,
        background: false,
        schedule: schedule(),
        stop: StopFlag::new(),
        observer: Box::leak(Box::new(|_: &Event<'_>| {})),
    }
}

/// Everything that must be bit-identical between runs, by file name.
pub fn content(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let saved = fs::read_dir(path.join("checkpoints")).unwrap().map(|entry| entry.unwrap().file_name());
    let last = saved.max().unwrap().into_string().unwrap();
    [
        "train.csv",
        "eval.csv",
        "episodes.jsonl",
        "value_maps.jsonl",
        &format!("checkpoints/{last}/agent.safetensors"),
    ]
    .into_iter()
    .map(|name| (name.to_owned(), fs::read(path.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))))
    .collect()
}

/// The result without timings.
pub fn timeless(result: RunResult) -> RunResult {
    RunResult { ms_per_step: 0.0, wall_seconds: 0.0, eval_seconds: 0.0, ..result }
}

/// Asserts that two runs left the same files.
pub fn assert_same(a: &Path, b: &Path) {
    let (a, b) = (content(a), content(b));
    assert!(a.keys().eq(b.keys()), "{:?} {:?}", a.keys(), b.keys());
    for (name, bytes) in &a {
        assert!(*bytes == b[name], "{name} differs:\n{}\n{}", text(bytes), text(&b[name]));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(4000).collect()
}

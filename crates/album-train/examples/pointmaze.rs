//! Trains ALBUM on the medium PointMaze and writes the report of the run.
//!
//! `cargo run --release -p album-train --example pointmaze -- DIRECTORY [STEPS]`; the same command goes on after an
//! interruption.

use std::error::Error;
use std::num::NonZero;
use std::path::PathBuf;

use album_agents::agents::album::Config;
use album_agents::{Common, Decay, Learner};
use album_data::ogbench::{MazeSize, TaskName, load_task};
use album_envs::navigate::{self, Recipe};
use album_envs::{NativePool, PointMaze};
use album_nn::Pool;
use album_train::{Evaluator, Event, Identity, RunDir, Schedule, StopFlag, Trainer, ValuePoints, report};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("expected a directory")?);
    let steps: u64 = arguments.next().map_or(Ok(5_000), |steps| steps.parse())?;
    let (seed, threads) = (0, 2);

    let task: TaskName = "pointmaze-medium-navigate-singletask-task1-v0".parse()?;
    let file = std::env::temp_dir().join("album-example-pointmaze.npz");
    let recipe = Recipe { episodes: 300, ..Recipe::train(MazeSize::Medium, 0) };
    navigate::cached(&file, &recipe, NonZero::<usize>::MIN)?;
    let dataset = load_task(&file, &task)?;

    let common = Common {
        hidden: vec![128; 3],
        gamma: 0.995,
        reward_scale: 0.3,
        lr_decay: Decay::Cosine,
        standardize: true,
        fourier_features: 32,
        fourier_scale: 3.0,
        ..Common::default()
    };
    let config = Config { common, alpha_bc: 0.002, critic_lr: 3e-4, ..Config::default() };
    let text =
        format!("task = \"{task}\"\nsteps = {steps}\nseed = {seed}\nhidden = {:?}\n", config.common.hidden);
    let mut agent = Learner::new(&config, &dataset, steps, seed, &Pool::new(threads))?;

    let run = if directory.join("config.toml").exists() {
        RunDir::open(&directory)?
    } else {
        RunDir::create(&directory, &text)?
    };
    let maze = PointMaze::new(&task)?;
    let envs = Box::new(NativePool::cloned(&maze, 20));
    let every = (steps / 10).max(1);
    let result = Trainer {
        agent: &mut agent,
        dataset: &dataset,
        held_out: None,
        run: &run,
        identity: &Identity::new(task.to_string(), "album", seed, &dataset, text),
        schedule: Schedule {
            log_every: (steps / 100).max(1),
            eval_every: every,
            save_every: every,
            ..Schedule::new(steps)
        },
        evaluator: Some(Evaluator { envs, episodes: 20, paths: 20, background: false }),
        value_points: Some(ValuePoints::positions(&maze.maze().sample_grid(4), 2)),
        stop: StopFlag::on_signals()?,
        observer: &mut |event| match event {
            Event::Evaluated { evaluation, .. } => {
                eprintln!("step {}: success {:.2}", evaluation.step, evaluation.summary().success);
            }
            Event::Warning(warning) => eprintln!("{warning}"),
            _ => {}
        },
    }
    .train()?;
    eprintln!("{:.2} ms per step, weights {}", result.ms_per_step, result.weights_sha256);
    eprintln!("{}", report::write(&directory)?.display());
    Ok(())
}

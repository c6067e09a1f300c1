//! Runs episodes in workers.
#![allow(dead_code)] // each test file uses a part of it
#![allow(clippy::unwrap_used)] // a helper of tests

use album_base::rng;
use album_envs::{Answer, EnvPool, Limits, Python, Step, Suite, WorkerPool};
use std::time::Duration;

/// A task of each family.
pub const FAMILIES: [&str; 7] = [
    "pointmaze-medium-navigate-singletask-v0",
    "antmaze-medium-navigate-singletask-task2-v0",
    "humanoidmaze-medium-navigate-singletask-v0",
    "antsoccer-arena-navigate-singletask-v0",
    "cube-double-play-singletask-v0",
    "scene-play-singletask-task3-v0",
    "puzzle-3x3-play-singletask-v0",
];

/// The interpreter with ogbench; without it, the test is reported as skipped.
pub fn python() -> Option<Python> {
    match std::env::var_os("ALBUM_PYTHON") {
        Some(path) => Some(Python::at(path)),
        None => {
            album_testing::skip("python", "ALBUM_PYTHON is not set; `cargo xtask test` sets it");
            None
        }
    }
}

/// Workers with ogbench.
pub fn workers(python: &Python, task: &str, workers: usize) -> WorkerPool {
    WorkerPool::new(Suite::ogbench(&task.parse().unwrap()), workers, python, Limits::default()).unwrap()
}

/// Time limits short enough for a test.
pub fn short() -> Limits {
    Limits { start: Duration::from_secs(5), answer: Duration::from_millis(400) }
}

/// The next answers; fails after a minute.
pub fn answers(envs: &mut WorkerPool) -> Vec<(usize, Answer)> {
    for _ in 0..120 {
        let answers = envs.wait().unwrap();
        if !answers.is_empty() {
            return answers;
        }
    }
    panic!("no answer");
}

/// An episode: its first observation and its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub seed: u64,
    pub start: Vec<f32>,
    pub steps: Vec<Step>,
}

/// Runs an episode for each seed in any free slot, for at most `length` steps, with actions that depend only
/// on the seed and the step. Lost episodes are repeated.
pub fn run(envs: &mut WorkerPool, seeds: &[u64], length: usize) -> (Vec<Run>, Vec<String>) {
    let dim = envs.shape().action_dim();
    let mut waiting: Vec<usize> = (0..seeds.len()).rev().collect();
    let mut runs: Vec<Run> =
        seeds.iter().map(|&seed| Run { seed, start: Vec::new(), steps: Vec::new() }).collect();
    let mut slots: Vec<Option<usize>> = vec![None; envs.slots()];
    let mut lost = Vec::new();
    loop {
        for slot in 0..slots.len() {
            if slots[slot].is_none() {
                slots[slot] = waiting.pop();
                if let Some(number) = slots[slot] {
                    envs.reset(slot, seeds[number], false).unwrap();
                }
            }
        }
        if slots.iter().all(Option::is_none) {
            return (runs, lost);
        }
        for (slot, answer) in answers(envs) {
            let number = slots[slot].unwrap();
            let run = &mut runs[number];
            match answer {
                Answer::Started { observation, .. } => {
                    run.start = observation;
                    run.steps.clear();
                }
                Answer::Stepped(step) => run.steps.push(step),
                Answer::Lost { reason } => {
                    lost.push(reason);
                    waiting.push(number);
                    slots[slot] = None;
                    continue;
                }
            }
            let over = run.steps.last().is_some_and(|step| step.terminated || step.truncated);
            if over || run.steps.len() == length {
                slots[slot] = None;
            } else {
                envs.step(slot, &action(run.seed, run.steps.len(), dim)).unwrap();
            }
        }
    }
}

/// The action of the policy in [`run`]; some components are beyond ±1.
pub fn action(seed: u64, step: usize, dim: usize) -> Vec<f32> {
    let mut stream = rng::stream(seed, "test actions");
    rand_chacha::ChaCha8Rng::set_stream(&mut stream, step as u64);
    (0..dim).map(|_| (2.4 * rng::unit(&mut stream) - 1.2) as f32).collect()
}

/// Whether a process exists and is not a zombie.
pub fn lives(process: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => !stat.contains(") Z "),
        Err(_) => false,
    }
}

/// Sends a signal.
pub fn signal(name: &str, process: u32) {
    let status = std::process::Command::new("kill").args([name, &process.to_string()]).status().unwrap();
    assert!(status.success());
}

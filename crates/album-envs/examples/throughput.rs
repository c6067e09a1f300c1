//! Steps per second of worker processes, compared with a plain Python loop over the same episodes, in turns.
//!
//! `cargo xtask bench-envs [TASK] [WORKERS] [EPISODES] [ROUNDS]`, or this example with `ALBUM_PYTHON` set.

#![allow(clippy::print_stderr)] // an example

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Instant;

use album_base::rng;
use album_data::ogbench::TaskName;
use album_envs::{Answer, EnvPool, Limits, Python, Suite, WorkerPool};

/// Creates the environment, then runs all episodes for each line of its input and prints the time taken.
const LOOP: &str = "
import os, sys, time, warnings
os.environ.setdefault('MUJOCO_GL', 'disable')
warnings.simplefilter('ignore')
import gymnasium, numpy, ogbench
name, path, episodes = sys.argv[1], sys.argv[2], int(sys.argv[3])
env = gymnasium.make(name)
actions = numpy.fromfile(path, '<f4').reshape(episodes, -1, env.action_space.shape[0])
env.reset(seed=0)
print('ready', flush=True)
for line in sys.stdin:
    start, steps = time.perf_counter(), 0
    for seed in range(episodes):
        numpy.random.seed(seed)
        env.reset(seed=seed)
        for action in actions[seed]:
            _, _, terminated, truncated, _ = env.step(action)
            steps += 1
            if terminated or truncated:
                break
    print(time.perf_counter() - start, steps, flush=True)
";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let task: TaskName = args.next().as_deref().unwrap_or("cube-single-play-singletask-v0").parse()?;
    let mut number = |default: usize| args.next().map_or(Ok(default), |text| text.parse());
    let cores = std::thread::available_parallelism()?.get();
    let (workers, episodes, rounds) = (number(cores)?, number(8)?, number(5)?);

    // Actions that change slowly, like those of a policy.
    let (dim, horizon) = (task.environment().action_dim, task.environment().horizon);
    let mut stream = rng::stream(0, "throughput");
    let mut actions: Vec<Vec<f32>> = Vec::new();
    for _ in 0..episodes {
        let mut action = vec![0.0_f32; dim];
        let mut steps = Vec::new();
        for _ in 0..horizon {
            for x in &mut action {
                *x = (0.9 * *x + 0.4 * (2.0 * rng::unit(&mut stream) as f32 - 1.0)).clamp(-1.0, 1.0);
            }
            steps.extend_from_slice(&action);
        }
        actions.push(steps);
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("actions");
    std::fs::write(&file, actions.iter().flatten().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;

    let python = Python::find(None)?;
    let mut command = python.command();
    command.args(["-c", LOOP, &task.environment_id()]).arg(&file).arg(episodes.to_string());
    let mut plain = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut ask, answers) = (plain.stdin.take().ok_or("no pipe")?, plain.stdout.take().ok_or("no pipe")?);
    let mut answers = BufReader::new(answers).lines();
    let mut line = || answers.next().ok_or("the plain loop ended")?.map_err(Box::<dyn Error>::from);
    line()?;
    let mut envs = WorkerPool::new(Suite::ogbench(&task), workers, &python, Limits::default())?;
    run(&mut envs, &actions[..1], dim)?;

    let mut ratios = Vec::new();
    for round in 1..=rounds {
        writeln!(ask, "go")?;
        let said = line()?;
        let (seconds, steps) = said.split_once(' ').ok_or("the plain loop said nothing")?;
        let (plain_seconds, plain_steps): (f64, usize) = (seconds.parse()?, steps.parse()?);
        let start = Instant::now();
        let steps = run(&mut envs, &actions, dim)?;
        let seconds = start.elapsed().as_secs_f64();
        let (ours, theirs) = (steps as f64 / seconds, plain_steps as f64 / plain_seconds);
        ratios.push(ours / theirs);
        eprintln!(
            "round {round}: {workers} workers {ours:.0} steps/s ({steps} steps), plain loop {theirs:.0} steps/s \
             ({plain_steps} steps), {:.2} times as fast",
            ours / theirs
        );
    }
    drop(ask);
    plain.wait()?;
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    eprintln!(
        "{task}: median {median:.2} times a plain loop, {:.2} for each worker",
        median / workers as f64
    );
    Ok(())
}

/// Runs an episode for each list of actions, and returns the total number of steps.
fn run(envs: &mut WorkerPool, actions: &[Vec<f32>], dim: usize) -> Result<usize, Box<dyn Error>> {
    // The episode in each slot, and its steps so far.
    let mut slots = vec![(0, 0); envs.slots()];
    let (mut next, mut done, mut steps) = (0, 0, 0);
    for slot in 0..envs.slots() {
        if envs.is_next(slot, actions.len() - next) {
            envs.reset(slot, next as u64, false)?;
            slots[slot] = (next, 0);
            next += 1;
        }
    }
    while done < actions.len() {
        for (slot, answer) in envs.wait()? {
            let over = match answer {
                Answer::Started { .. } => false,
                Answer::Stepped(step) => {
                    steps += 1;
                    slots[slot].1 += 1;
                    step.terminated || step.truncated
                }
                Answer::Lost { reason } => return Err(reason.into()),
            };
            if over {
                done += 1;
                if envs.is_next(slot, actions.len() - next) {
                    envs.reset(slot, next as u64, false)?;
                    slots[slot] = (next, 0);
                    next += 1;
                }
            } else {
                let (episode, step) = slots[slot];
                envs.step(slot, &actions[episode][step * dim..(step + 1) * dim])?;
            }
        }
    }
    Ok(steps)
}

//! Episodes in the real package: they depend only on seed and actions, and equal those of a plain Python
//! loop.
#![allow(clippy::unwrap_used)]

use crate::common;

use album_data::ogbench::TaskName;
use album_envs::{Answer, EnvPool, Maze, Oracle, PointMaze};
use common::{FAMILIES, Run, action, answers, lives, python, run, signal, workers};
use std::io::Write;
use std::process::Stdio;

/// Long enough for the humanoid to fall and the arm to hit something.
const STEPS: usize = 60;

/// The same episode in a new process, after another one, twice in a row, and interleaved with others.
fn depends_on_seed_alone(task: &str) {
    let Some(python) = python() else { return };
    let mut envs = workers(&python, task, 2);
    let mut alone = |slot: usize, seeds: &[u64]| -> Vec<Run> {
        let mut runs = Vec::new();
        for &seed in seeds {
            let (dim, mut run) =
                (envs.shape().action_dim(), Run { seed, start: Vec::new(), steps: Vec::new() });
            envs.reset(slot, seed, false).unwrap();
            for step in 0..=STEPS {
                match answers(&mut envs).remove(0).1 {
                    Answer::Started { observation, .. } => run.start = observation,
                    Answer::Stepped(step) => run.steps.push(step),
                    Answer::Lost { reason } => panic!("{reason}"),
                }
                if step < STEPS {
                    envs.step(slot, &action(seed, step, dim)).unwrap();
                }
            }
            runs.push(run);
        }
        runs
    };
    let first = alone(0, &[7]).remove(0);
    let later = alone(1, &[1 << 63, 7, 7]);
    assert_eq!(first, later[1]);
    assert_eq!(first, later[2]);
    let (in_turns, _) = run(&mut envs, &[7, 1 << 63, 8, 7, 7], STEPS);
    assert_eq!(first, in_turns[0]);
    assert_eq!(later[0], in_turns[1]);
    assert_eq!(first, in_turns[3]);
    assert_eq!(first, in_turns[4]);
    assert_ne!(first.start, later[0].start);
    assert_ne!(first.steps[STEPS - 1].observation, first.start);
}

#[test]
fn pointmaze_depends_on_seed_alone() {
    depends_on_seed_alone(FAMILIES[0]);
}

#[test]
fn antmaze_depends_on_seed_alone() {
    depends_on_seed_alone(FAMILIES[1]);
}

#[test]
fn humanoidmaze_depends_on_seed_alone() {
    depends_on_seed_alone(FAMILIES[2]);
}

#[test]
fn antsoccer_depends_on_seed_alone() {
    depends_on_seed_alone(FAMILIES[3]);
}

#[test]
fn cube_depends_on_seed_alone() {
    depends_on_seed_alone(FAMILIES[4]);
}

#[test]
fn scene_depends_on_seed_alone() {
    depends_on_seed_alone(FAMILIES[5]);
}

#[test]
fn puzzle_depends_on_seed_alone() {
    depends_on_seed_alone(FAMILIES[6]);
}

#[test]
fn the_number_of_workers_does_not_matter() {
    let Some(python) = python() else { return };
    for task in [FAMILIES[1], "cube-single-play-singletask-v0"] {
        let seeds = [11, 12, 13, 14, 15];
        let runs = |count| run(&mut workers(&python, task, count), &seeds, 25).0;
        let one = runs(1);
        assert!(one.iter().all(|run| run.steps.len() == 25));
        assert_eq!(one, runs(2));
        assert_eq!(one, runs(3));
    }
}

#[test]
fn versions_are_known() {
    let Some(python) = python() else { return };
    let envs = workers(&python, FAMILIES[0], 1);
    let names: Vec<&str> = envs.versions().keys().map(String::as_str).collect();
    assert_eq!(names, ["gymnasium", "mujoco", "numpy", "ogbench", "python"]);
    assert!(envs.versions()["ogbench"].starts_with("1.2"));
}

/// The result of a plain Python loop with the same actions.
fn reference(python: &album_envs::Python, task: &str, seed: u64, actions: &[Vec<f32>]) -> Vec<String> {
    let mut command = python.command();
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ogbench_episode.py"));
    command.arg(task.parse::<TaskName>().unwrap().environment_id()).arg(seed.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let bytes: Vec<u8> = actions.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A run in the format of the reference.
fn lines(run: &Run) -> Vec<String> {
    let hex = |numbers: &[f32]| numbers.iter().map(|x| format!("{:08x}", x.to_bits())).collect::<String>();
    let flag = |x: bool| u8::from(x);
    let mut lines = vec![hex(&run.start)];
    lines.extend(run.steps.iter().map(|step| {
        let flags = (flag(step.terminated), flag(step.truncated), flag(step.success.unwrap()));
        let reward = step.reward.to_bits();
        format!("{reward:016x} {} {} {} {}", flags.0, flags.1, flags.2, hex(&step.observation))
    }));
    lines
}

#[test]
fn episodes_are_those_of_a_plain_loop() {
    let Some(python) = python() else { return };
    for task in [FAMILIES[2], FAMILIES[3], FAMILIES[5]] {
        let mut envs = workers(&python, task, 1);
        let (runs, _) = run(&mut envs, &[5, u64::MAX], STEPS);
        for run in runs {
            let actions: Vec<Vec<f32>> =
                (0..STEPS).map(|i| action(run.seed, i, envs.shape().action_dim())).collect();
            assert_eq!(lines(&run), reference(&python, task, run.seed, &actions), "{task}");
        }
    }
}

/// Reward 0, termination and success arrive with the step after the goal is reached.
#[test]
fn a_solved_episode_is_that_of_a_plain_loop() {
    let Some(python) = python() else { return };
    let task: TaskName = "pointmaze-medium-navigate-singletask-task3-v0".parse().unwrap();
    let mut envs = workers(&python, &task.to_string(), 1);
    let native = PointMaze::new(&task).unwrap();
    let oracle = Oracle::new(Maze::clone(native.maze()));
    let goal = native.task().goal.center();
    envs.reset(0, 3, false).unwrap();
    let Answer::Started { observation, .. } = answers(&mut envs).remove(0).1 else { panic!() };
    let mut run = Run { seed: 3, start: observation.clone(), steps: Vec::new() };
    let (mut at, mut actions) = (observation, Vec::new());
    loop {
        actions.push(oracle.direction([at[0].into(), at[1].into()], goal).map(|x| x as f32).to_vec());
        envs.step(0, &actions[actions.len() - 1]).unwrap();
        let Answer::Stepped(step) = answers(&mut envs).remove(0).1 else { panic!() };
        at.clone_from(&step.observation);
        run.steps.push(step);
        let last = &run.steps[run.steps.len() - 1];
        if last.terminated || last.truncated {
            break;
        }
    }
    let last = &run.steps[run.steps.len() - 1];
    assert!(last.success == Some(true) && last.terminated && !last.truncated && last.reward == 0.0);
    let before = &run.steps[run.steps.len() - 2];
    assert!(before.success == Some(false) && before.reward == -1.0);
    assert_eq!(lines(&run), reference(&python, &task.to_string(), 3, &actions));
    // The episode is over.
    assert!(envs.step(0, &[0.0, 0.0]).is_err());
}

#[test]
fn truncation_is_at_the_horizon() {
    let Some(python) = python() else { return };
    let mut envs = workers(&python, "cube-single-play-singletask-v0", 1);
    let (runs, _) = run(&mut envs, &[1], 1000);
    assert_eq!(runs[0].steps.len(), 200);
    let truncated: Vec<usize> = (0..200).filter(|&i| runs[0].steps[i].truncated).collect();
    assert_eq!(truncated, [199]);
}

#[test]
fn a_killed_worker_is_replaced_and_its_episode_repeated() {
    let Some(python) = python() else { return };
    let task = FAMILIES[1];
    let seeds = [21, 22, 23];
    let expected = run(&mut workers(&python, task, 1), &seeds, 40).0;
    let mut envs = workers(&python, task, 2);
    let before = envs.processes();
    // Starts an episode in each slot and kills one worker, which is paused first so that it cannot answer.
    signal("-STOP", before[0]);
    for slot in 0..4 {
        envs.reset(slot, 90 + slot as u64, false).unwrap();
    }
    signal("-9", before[0]);
    let mut found = Vec::new();
    while found.len() < 4 {
        found.extend(answers(&mut envs));
    }
    let lost: Vec<&String> = found
        .iter()
        .filter_map(|(slot, answer)| match answer {
            Answer::Lost { reason } => {
                assert!([0, 2].contains(slot));
                Some(reason)
            }
            _ => None,
        })
        .collect();
    assert_eq!(lost.len(), 2);
    assert!(lost[0].contains("signal: 9"), "{}", lost[0]);
    let after = envs.processes();
    assert!(after[0] != before[0] && after[1] == before[1]);
    assert_eq!(run(&mut envs, &seeds, 40).0, expected);
    // Workers ignore Ctrl-C.
    signal("-INT", after[1]);
    assert_eq!(run(&mut envs, &seeds, 40).0, expected);
    drop(envs);
    assert!(!after.into_iter().any(lives));
}

#[test]
fn pictures_change_nothing() {
    let Some(python) = python() else { return };
    let task = "cube-single-play-singletask-v0";
    let mut envs = workers(&python, task, 1);
    let (runs, _) = run(&mut envs, &[4], 4);
    envs.reset(0, 4, true).unwrap();
    let mut pictures = Vec::new();
    for step in 0..=4 {
        let answer = loop {
            match envs.wait() {
                Ok(mut answers) if !answers.is_empty() => break answers.remove(0).1,
                Ok(_) => {}
                Err(e) => {
                    let message = e.to_string();
                    assert!(message.contains("libegl1") && message.contains("libosmesa6"), "{message}");
                    album_testing::skip("rendering", "neither libegl1 nor libosmesa6 works");
                    return;
                }
            }
        };
        let frame = match answer {
            Answer::Started { observation, frame } => {
                assert_eq!(observation, runs[0].start);
                frame
            }
            Answer::Stepped(mut found) => {
                let frame = found.frame.take();
                assert_eq!(found, runs[0].steps[step - 1]);
                frame
            }
            Answer::Lost { reason } => panic!("{reason}"),
        };
        pictures.push(frame);
        if step < 4 {
            envs.step(0, &action(4, step, 5)).unwrap();
        }
    }
    let drawn: Vec<bool> = pictures.iter().map(Option::is_some).collect();
    assert_eq!(drawn, [true, false, false, true, false]);
    let frame = pictures[0].as_ref().unwrap();
    assert_eq!((frame.width, frame.height), (200, 200));
    // An arm, cubes, a floor: not all of one colour.
    let colours: std::collections::BTreeSet<&[u8]> = frame.rgb.chunks(3).collect();
    assert!(colours.len() > 100, "{}", colours.len());
    // An episode started without frames has none.
    let (again, _) = run(&mut envs, &[4], 4);
    assert_eq!(again, runs);
}

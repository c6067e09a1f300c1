//! Broken workers, simulated by shell scripts.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use crate::common;

use album_envs::{Answer, EnvError, EnvPool, Limits, Python, Suite, WorkerPool};
use common::{answers, lives, short};
use std::path::Path;
use std::time::{Duration, Instant};

const TASK: &str = "pointmaze-medium-navigate-singletask-v0";

/// The hello of pointmaze: 2 dimensions each, horizon 1000.
const HELLO: &str = r"printf '\001\076\000\000\000ALBUMENV\004\000\000\000\002\000\000\000\002\000\000\000\350\003\000\000\000\000\000\000\000\000\200\277\000\000\200\277\000\000\200\077\000\000\200\077ogbench 1.2.2\nmu 4'";

/// Takes a reset of 21 bytes, answers for environment 0 with the position (0, 0).
const START: &str =
    r"head -c 21 >/dev/null; printf '\002\014\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000'";

/// Takes a step of 17 bytes, answers for environment 0 with reward 0, no flags, and the position (0, 0).
const STEP: &str = r"head -c 17 >/dev/null; printf '\003\025\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000'";

/// An interpreter that runs this script.
fn fake(folder: &Path, script: &str) -> Python {
    let path = folder.join("python");
    album_testing::script(&path, script);
    Python::at(path)
}

/// Workers of such an interpreter, and its folder, which replacements need too.
fn start(script: &str, workers: usize, limits: Limits) -> Result<(WorkerPool, tempfile::TempDir), EnvError> {
    let folder = tempfile::tempdir().unwrap();
    let python = fake(folder.path(), script);
    // A file that was just written can be busy for a moment while another test forks.
    for _ in 0..50 {
        match WorkerPool::new(Suite::ogbench(&TASK.parse().unwrap()), workers, &python, limits) {
            Err(e) if e.to_string().contains("busy") => std::thread::sleep(Duration::from_millis(20)),
            result => return result.map(|envs| (envs, folder)),
        }
    }
    panic!("the script stays busy");
}

fn refused(script: &str) -> String {
    match start(script, 1, short()) {
        Ok(_) => panic!("accepted: {script}"),
        Err(e) => e.to_string(),
    }
}

fn has(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

#[test]
fn other_protocols_are_refused() {
    let script = HELLO.replacen(r"ALBUMENV\004", r"ALBUMENV\001", 1);
    has(&refused(&script), &["python: found protocol 1, expected 4;"]);
}

#[test]
fn other_environments_are_refused() {
    let script = HELLO.replacen(r"\004\000\000\000\002", r"\004\000\000\000\005", 1);
    has(
        &refused(&script),
        &[
            "pointmaze-medium-singletask-v0: found 5 as observation dimension, expected 2",
            "album setup ogbench",
        ],
    );
}

#[test]
fn garbage_is_shown() {
    let message = refused("echo 'Welcome to your shell'; echo oh dear >&2; sleep 0.2");
    has(&message, &["found `Welcome to your shell\\n`, expected a message of album's protocol 4", "oh dear"]);
    let message = refused(r"printf '\003\377\377\377\377'");
    has(&message, &[r"found `\x03\xff\xff\xff\xff`"]);
}

#[test]
fn an_end_at_once_is_told_with_the_last_lines() {
    has(
        &refused("echo first >&2; echo 'ImportError: libfoo' >&2; exit 3"),
        &["no worker could be started: its worker ended (exit status: 3)", "first\nImportError: libfoo"],
    );
    let missing = Python::at("/no/such/python");
    let error = WorkerPool::new(Suite::ogbench(&TASK.parse().unwrap()), 1, &missing, short()).err().unwrap();
    has(&error.to_string(), &["/no/such/python: cannot start this Python", "album setup ogbench"]);
}

#[test]
fn a_python_without_ogbench_says_what_to_do() {
    // -S: without the system's packages; -E: without those named by environment variables.
    let script = r#"exec python3 -S -E "$@""#;
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        album_testing::skip("python", "there is no python3");
        return;
    }
    let limits = Limits { start: Duration::from_secs(60), ..short() };
    let message = start(script, 1, limits).err().unwrap().to_string();
    has(&message, &["found no module ogbench; run `album setup ogbench`, or set ALBUM_PYTHON"]);
}

#[test]
fn a_start_that_hangs_is_given_up() {
    let limits = Limits { start: Duration::from_secs(2), ..short() };
    let begin = Instant::now();
    let message =
        start("echo waiting for a licence >&2; exec sleep 60", 2, limits).err().unwrap().to_string();
    has(&message, &["its worker was not ready within 2 s", "waiting for a licence"]);
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_hang_costs_an_episode() {
    let script = format!("{HELLO}; {START}; echo one >&2; echo stuck >&2; exec sleep 60");
    let (mut envs, _folder) = start(&script, 1, short()).unwrap();
    let mut processes = Vec::new();
    for _ in 0..5 {
        processes.extend(envs.processes());
        envs.reset(0, 5, false).unwrap();
        assert!(matches!(answers(&mut envs)[..], [(0, Answer::Started { .. })]));
        envs.step(0, &[0.0, 0.0]).unwrap();
        let lost = answers(&mut envs).remove(0).1;
        let reason = "its worker gave no answer within 0.4 s, its last lines: one | stuck".into();
        assert_eq!(lost, Answer::Lost { reason });
        assert!(matches!(envs.step(0, &[0.0, 0.0]), Err(EnvError::NoEpisode)));
    }
    drop(envs);
    processes.dedup();
    assert_eq!(processes.len(), 5);
    assert!(!processes.into_iter().any(lives));
}

#[test]
fn workers_that_do_not_start_any_more_are_an_error() {
    // The first worker answers one request and exits; its replacements fail to start.
    let folder = tempfile::tempdir().unwrap();
    let once = folder.path().join("once");
    let script = format!("mkdir {} || exit 7; {HELLO}; {START}; exit 1", once.display());
    let (mut envs, _folder) = start(&script, 1, short()).unwrap();
    let mut lost = 0;
    let message = loop {
        envs.reset(0, lost, false).unwrap();
        match envs.wait() {
            Ok(answers) if matches!(answers[..], [(0, Answer::Lost { .. })]) => lost += 1,
            Ok(_) => {}
            Err(e) => break e.to_string(),
        }
    };
    has(&message, &["no worker could be started: its worker ended (exit status: 7)", "File exists"]);
    assert!(lost <= 4);
}

#[test]
fn a_slot_is_not_held_up_by_another() {
    // Only one worker answers steps: the first to create the folder does not.
    let folder = tempfile::tempdir().unwrap();
    let once = folder.path().join("once");
    let steps = [STEP; 6].join("; ");
    let script = format!(
        "{HELLO}; {START}; if mkdir {} 2>/dev/null; then exec sleep 60; fi; {steps}; exec sleep 60",
        once.display()
    );
    let limits = Limits { answer: Duration::from_secs(40), ..short() };
    let (mut envs, _folder) = start(&script, 2, limits).unwrap();
    for slot in 0..2 {
        envs.reset(slot, slot as u64, false).unwrap();
    }
    let mut started = Vec::new();
    while started.len() < 2 {
        started.extend(answers(&mut envs));
    }
    let begin = Instant::now();
    let mut stepped = 0;
    for slot in 0..2 {
        envs.step(slot, &[0.0, 0.0]).unwrap();
    }
    while stepped < 5 {
        for (slot, answer) in answers(&mut envs) {
            assert!(matches!(answer, Answer::Stepped(_)), "{answer:?}");
            stepped += 1;
            envs.step(slot, &[0.0, 0.0]).unwrap();
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(30), "waited for the slow one");
}

/// The same answer for environment `number`.
fn from_environment(answer: &str, number: u8) -> String {
    // After the kind and the length.
    let (length, rest) = answer.split_once(r"\000\000\000").unwrap();
    format!(r"{length}\000\000\000\{number:03o}{}", rest.strip_prefix(r"\000").unwrap())
}

#[test]
fn a_worker_takes_both_episodes_with_it() {
    let script =
        format!("{HELLO}; {START}; {}; {STEP}; head -c 17 >/dev/null; exit 9", from_environment(START, 1));
    let (mut envs, _folder) = start(&script, 1, short()).unwrap();
    assert_eq!((envs.slots(), envs.workers()), (2, 1));
    for slot in 0..2 {
        envs.reset(slot, 1, false).unwrap();
    }
    let mut started = Vec::new();
    while started.len() < 2 {
        started.extend(answers(&mut envs));
    }
    envs.step(0, &[0.0, 0.0]).unwrap();
    assert!(matches!(answers(&mut envs)[..], [(0, Answer::Stepped(_))]));
    envs.step(0, &[0.0, 0.0]).unwrap();
    let lost = Answer::Lost { reason: "its worker ended (exit status: 9)".into() };
    assert_eq!(answers(&mut envs), [(0, lost.clone())]);
    // The other slot has no pending request; it learns of the loss at its next one.
    assert_eq!(envs.wait().unwrap(), []);
    envs.step(1, &[0.0, 0.0]).unwrap();
    assert_eq!(answers(&mut envs), [(1, lost)]);
    for slot in 0..2 {
        assert!(matches!(envs.step(slot, &[0.0, 0.0]), Err(EnvError::NoEpisode)));
    }
    envs.reset(0, 1, false).unwrap();
    assert!(matches!(answers(&mut envs)[..], [(0, Answer::Started { .. })]));
}

#[test]
fn an_answer_of_another_environment_is_out_of_turn() {
    for number in [1, 2] {
        let script = format!("{HELLO}; {}; exec sleep 60", from_environment(START, number));
        let (mut envs, _folder) = start(&script, 1, short()).unwrap();
        envs.reset(0, 1, false).unwrap();
        let reason = "its worker spoke out of turn".into();
        assert_eq!(answers(&mut envs), [(0, Answer::Lost { reason })]);
    }
}

#[test]
fn a_request_that_waits_for_its_turn_has_time() {
    // Two answers, each within the limit, but not both together.
    let script =
        format!("{HELLO}; sleep 0.6; {START}; sleep 0.6; {}; exec sleep 60", from_environment(START, 1));
    let limits = Limits { answer: Duration::from_secs(1), ..short() };
    let (mut envs, _folder) = start(&script, 1, limits).unwrap();
    for slot in 0..2 {
        envs.reset(slot, 1, false).unwrap();
    }
    for slot in 0..2 {
        let found = answers(&mut envs);
        assert!(matches!(found[..], [(from, Answer::Started { .. })] if from == slot), "{found:?}");
    }
}

#[test]
fn the_last_episodes_go_to_those_with_the_least_to_do() {
    let script = format!("{HELLO}; {START}; {STEP}; exec sleep 60");
    let limits = Limits { answer: Duration::from_secs(30), ..short() };
    let (mut envs, _folder) = start(&script, 2, limits).unwrap();
    assert!(envs.is_next(0, 1) && !envs.is_next(0, 0));
    // One episode in each worker: either may take the next.
    for slot in 0..2 {
        envs.reset(slot, 1, false).unwrap();
    }
    let mut started = Vec::new();
    while started.len() < 2 {
        started.extend(answers(&mut envs));
    }
    assert!(envs.is_next(2, 1) && envs.is_next(3, 1));
    // The episode of the second worker is closer to its end.
    envs.step(1, &[0.0, 0.0]).unwrap();
    assert!(!envs.is_next(2, 1) && envs.is_next(3, 1));
    assert!(envs.is_next(2, 2) && envs.is_next(3, 2));
}

#[test]
fn a_reset_takes_back_what_was_asked_before() {
    let script = format!("{HELLO}; {START}; {STEP}; {START}; {STEP}; exec sleep 60");
    let (mut envs, _folder) = start(&script, 1, short()).unwrap();
    envs.reset(0, 1, false).unwrap();
    assert!(matches!(answers(&mut envs)[..], [(0, Answer::Started { .. })]));
    envs.step(0, &[0.0, 0.0]).unwrap();
    envs.reset(0, 2, false).unwrap();
    assert!(matches!(answers(&mut envs)[..], [(0, Answer::Started { .. })]));
    envs.step(0, &[0.0, 0.0]).unwrap();
    assert!(matches!(answers(&mut envs)[..], [(0, Answer::Stepped(_))]));
    assert_eq!(envs.wait().unwrap(), []);
}

#[test]
fn bad_actions_never_reach_a_worker() {
    let (mut envs, _folder) = start(&format!("{HELLO}; {START}; exec sleep 60"), 1, short()).unwrap();
    assert!(matches!(envs.step(0, &[0.0, 0.0]), Err(EnvError::NoEpisode)));
    envs.reset(0, 1, false).unwrap();
    answers(&mut envs);
    assert!(matches!(envs.step(0, &[0.0]), Err(EnvError::ActionLength { found: 1, expected: 2 })));
    assert!(matches!(envs.step(0, &[0.0, f32::NAN]), Err(EnvError::ActionValue { component: 1, .. })));
}

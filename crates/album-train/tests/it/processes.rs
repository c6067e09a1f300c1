//! Runs in their own processes, which are killed, stopped, and denied disk space.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use album_base::rng;
use album_train::{RunDir, Schedule, StopFlag, TrainError, checkpoint};
use common::{Options, assert_same, dataset, plain, run, run_with, schedule};

const RUN: &str = "ALBUM_TRAIN_TEST_RUN";

/// Not a test of its own: the process that the other tests start. Exits with 0, with 75 if it was stopped,
/// and with 5 if it could not write.
#[test]
#[allow(clippy::exit)]
fn child() {
    let Some(path) = std::env::var_os(RUN) else { return };
    let path = Path::new(&path);
    if path.extension().is_some_and(|extension| extension == "deaf") {
        // Receives the signal, but never stops.
        let _stop = StopFlag::on_signals().unwrap();
        fs::write(path, "").unwrap();
        sleep(Duration::from_secs(50));
    }
    let data = dataset(path.parent().unwrap());
    let stop = StopFlag::on_signals().unwrap();
    let schedule = if path.extension().is_some_and(|extension| extension == "brief") {
        brief()
    } else {
        Schedule { save_every: 5, ..schedule() }
    };
    let result = run_with(&data, path, Options { stop, schedule, ..plain() });
    std::process::exit(match result {
        Ok(result) if result.finished => 0,
        Ok(_) => 75,
        Err(error) if error.is_io() => {
            eprintln!("{error}");
            5
        }
        Err(error) => {
            eprintln!("{error}");
            1
        }
    });
}

/// Everything that a run does, in fewer steps: saving, pruning old checkpoints, evaluating.
fn brief() -> Schedule {
    Schedule { log_every: 7, check_every: 3, eval_every: 20, save_every: 5, ..Schedule::new(60) }
}

fn command(run: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::child", "--nocapture", "--test-threads=1"]).env(RUN, run);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

fn wait(mut child: Child) -> ExitStatus {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < limit, "the process does not end");
        sleep(Duration::from_millis(2));
    }
}

fn latest(run: &Path) -> Option<u64> {
    checkpoint::latest(&run.join("checkpoints")).unwrap().checkpoint.map(|found| found.step())
}

#[test]
fn killed_runs_lose_at_most_the_steps_since_their_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let whole = dir.path().join("whole");
    run(&data, &whole);
    let mut random = rng::stream(11, "kills");
    let (mut kills, mut round) = (0, 0);
    while kills < 40 {
        let path = dir.path().join(format!("run{round}"));
        round += 1;
        assert!(round < 20, "the runs are too short to be killed");
        for attempt in 0.. {
            let before = latest(&path);
            let mut child = command(&path).spawn().unwrap();
            // Longer each time: on a busy machine, a process needs some of it to reach its first step.
            sleep(Duration::from_millis((10 + rng::below(&mut random, 60)) * (1 + attempt / 8)));
            // SIGKILL; has no effect on a finished child.
            child.kill().unwrap();
            let status = wait(child);
            if status.success() {
                break;
            }
            assert_eq!(status.code(), None, "the run failed by itself");
            kills += 1;
            let found = checkpoint::latest(&path.join("checkpoints")).unwrap();
            assert!(found.damaged.is_empty(), "{:?}", found.damaged);
            assert!(found.checkpoint.map(|found| found.step()) >= before);
        }
        assert_same(&whole, &path);
    }
}

#[test]
fn signals_save_and_stop() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let whole = dir.path().join("whole");
    run(&data, &whole);
    for name in ["TERM", "INT", "USR1"] {
        let path = dir.path().join(name);
        let child = command(&path).spawn().unwrap();
        while latest(&path).is_none() {
            sleep(Duration::from_millis(1));
        }
        signal(&child, name);
        let status = wait(child);
        assert_eq!(status.code(), Some(75), "SIG{name}");
        let result = fs::read_to_string(path.join("result.json")).unwrap();
        let steps = latest(&path).unwrap();
        assert!(result.contains(&format!("\"steps\": {steps},")) && result.contains("\"finished\": false"));
        assert_eq!(wait(command(&path).spawn().unwrap()).code(), Some(0));
        assert_same(&whole, &path);
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for (first, second, code) in [("TERM", "TERM", 143), ("USR1", "INT", 130)] {
        let path = dir.path().join(format!("{code}.deaf"));
        let mut child = command(&path).spawn().unwrap();
        while !path.exists() {
            sleep(Duration::from_millis(1));
        }
        signal(&child, first);
        sleep(Duration::from_millis(50));
        assert_eq!(child.try_wait().unwrap(), None);
        let sent = Instant::now();
        signal(&child, second);
        assert_eq!(wait(child).code(), Some(code));
        assert!(sent.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn a_second_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    dataset(dir.path());
    let path = dir.path().join("run");
    let held = RunDir::create(&path, "k = 5\n").unwrap();
    let output = command(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains(&format!("in use by process {}", std::process::id())), "{message}");
    drop(held);
    assert_eq!(command(&path).output().unwrap().status.code(), Some(0));
}

/// A file-size limit, which fails writes as a full disk would.
#[test]
fn a_full_disk_leaves_the_last_checkpoint_usable() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let whole = dir.path().join("whole");
    run(&data, &whole);
    let size = fs::metadata(whole.join("checkpoints/step_000000200/agent.safetensors")).unwrap().len();
    // In units of 1024 bytes: too small for the weights; for the growing value maps; large enough.
    let maps = fs::metadata(whole.join("value_maps.jsonl")).unwrap().len();
    assert!(maps > 1024 && size > 8 * 1024, "{maps} {size}");
    for kilobytes in [1, 2, 4, size / 1024 - 1, size / 1024 + 1] {
        let path = dir.path().join(format!("run{kilobytes}"));
        // First some steps without a limit.
        let child = command(&path).spawn().unwrap();
        while latest(&path).is_none() {
            sleep(Duration::from_millis(1));
        }
        signal(&child, "TERM");
        assert_eq!(wait(child).code(), Some(75));
        let before = latest(&path);

        let limited = command(&path);
        let output = Command::new("bash")
            .args(["-c", &format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"")])
            .arg(limited.get_program())
            .args(limited.get_args())
            .env(RUN, &path)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        if kilobytes > size / 1024 && output.status.success() {
            assert_same(&whole, &path);
            continue;
        }
        assert_eq!(output.status.code(), Some(5), "{message}");
        assert!(message.contains("cannot write"), "{message}");
        assert!(latest(&path) >= before);
        let names: Vec<_> =
            fs::read_dir(path.join("checkpoints")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| name.to_string_lossy().starts_with("step_")), "{names:?}");

        assert_eq!(wait(command(&path).spawn().unwrap()).code(), Some(0));
        assert_same(&whole, &path);
    }
}

/// Makes system calls fail, or kills the process in them, one at a time.
#[test]
fn no_system_call_is_a_bad_moment() {
    if !album_testing::required("strace") {
        album_testing::skip("strace", "takes minutes; ALBUM_REQUIRE=strace runs it");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let whole = dir.path().join("whole");
    run_with(&data, &whole, Options { schedule: brief(), ..plain() }).unwrap();
    let (failures, kills) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for calls in [&["mkdir", "fsync", "unlinkat", "openat"][..], &["rename", "fdatasync", "write"]] {
            let (dir, whole, failures, kills) = (dir.path(), &whole, &failures, &kills);
            scope.spawn(move || {
                for call in calls {
                    inject(call, whole, &dir.join(format!("{call}.brief")), failures, kills);
                }
            });
        }
    });
    let (failures, kills) = (failures.into_inner(), kills.into_inner());
    assert!(failures > 100 && kills > 100, "{failures} failures, {kills} kills");
}

/// Disturbs one call after another, from the first save through the pruning of old checkpoints and the
/// evaluations to the end, and resumes every time. Counts the runs that this ended.
fn inject(call: &str, whole: &Path, path: &Path, failures: &AtomicUsize, kills: &AtomicUsize) {
    for when in (1..40).chain((40..250).step_by(7)) {
        for (effect, ended) in [("signal=KILL", kills), ("error=ENOSPC", failures)] {
            let _ = fs::remove_dir_all(path);
            let plain = command(path);
            let output = Command::new("strace")
                // Not with --seccomp-bpf, which would be faster: strace 6.1 then injects no signals.
                .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")])
                .args(["-e", &format!("inject={call}:{effect}:when={when}")])
                .arg(plain.get_program())
                .args(plain.get_args())
                .env(RUN, path)
                .output()
                .unwrap();
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                // The run exited by itself, so it has fewer calls than this.
                Some(0) if effect == "signal=KILL" => return,
                Some(0) => {}
                Some(5) | None => {
                    ended.fetch_add(1, Ordering::Relaxed);
                }
                // Earlier calls may belong to the loader or the test harness.
                _ if !path.exists() => continue,
                code => panic!("{call} {when} {effect}: {code:?} {message}"),
            }
            if path.join("config.toml").exists() {
                let resumed = command(path).output().unwrap();
                let message = String::from_utf8_lossy(&resumed.stderr).into_owned();
                assert_eq!(resumed.status.code(), Some(0), "{call} {when} {effect}: {message}");
                assert_same(whole, path);
            }
        }
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = RunDir::create(file.join("run"), "").unwrap_err();
    assert!(matches!(error, TrainError::Io { .. }) && error.to_string().contains("file/run"), "{error}");
}

//! `album reproduce --executor slurm`, against fake Slurm programs, and against a real Slurm if
//! `cargo xtask slurm` has started one.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // helpers of tests

use crate::common;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Two variants, two seeds. There are no periodic checkpoints, so only a run that saves when stopped can
/// resume.
const EXPERIMENT: &str = r#"
title = "Two horizons"
question = "Does it matter where the runs are done?"
reference = "none"

[paper]
seeds = 1

[paper.tasks]
pointmaze-medium-navigate = [1]

[small]
seeds = 2

[small.set]
steps = STEPS
eval_every = 0
eval_episodes = 2
save_every = 1_000_000
log_every = 100
hidden = [16]
batch_size = 32

[small.tasks]
pointmaze-medium-navigate = [1]

[small.data]
pointmaze-medium-navigate = "DATA"

[[variant]]
label = "K = 2"
method = "ALBUM"
agent = "album"
set = { k = 2 }

[[variant]]
label = "K = 5"
method = "ALBUM"
agent = "album"
set = { k = 5 }
"#;

/// A folder with the experiment and its data.
fn folder(steps: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.npz");
    common::pointmaze_data(&data);
    let text = EXPERIMENT.replace("STEPS", &steps.to_string()).replace("DATA", data.to_str().unwrap());
    std::fs::write(folder.path().join("tiny.toml"), text).unwrap();
    folder
}

/// `album reproduce tiny.toml` into the folder `results`, with this PATH if given.
fn reproduce(folder: &Path, results: &str, path: Option<&Path>, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_album"));
    command.args(["reproduce", "tiny.toml", "--results", results]).args(more).current_dir(folder);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.output().unwrap()
}

const SLURM: [&str; 6] = ["--executor", "slurm", "--slurm-time", "00:10:00", "--slurm-mem", "500M"];

fn slurm(folder: &Path, path: Option<&Path>, more: &[&str]) -> Output {
    reproduce(folder, "results", path, &[&SLURM, more].concat())
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// It failed with this exit code and these words, and left no files behind.
fn refused(folder: &Path, output: &Output, code: i32, words: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
    assert!(output.stdout.is_empty() && !folder.join("results").exists(), "{message}");
}

/// Fake Slurm programs, written as shell scripts into a folder of their own.
fn stand_ins(folder: &Path, programs: &[(&str, &str)]) -> std::path::PathBuf {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for (name, body) in programs {
        let path = bin.join(name);
        album_testing::script(&path, &format!("cd '{}'\n{body}", folder.display()));
    }
    bin
}

const CONFIG: &str = "echo 'MaxArraySize            = 3'";

#[test]
fn without_slurm_or_with_a_bad_limit_nothing_happens() {
    let folder = folder(100);
    let empty = stand_ins(folder.path(), &[]);
    let output = slurm(folder.path(), Some(&empty), &[]);
    refused(folder.path(), &output, 5, &["sbatch", "not in PATH", "--executor local"]);
    stand_ins(folder.path(), &[("sbatch", "echo slurm")]);
    let output = slurm(folder.path(), Some(&empty), &[]);
    refused(folder.path(), &output, 5, &["scontrol", "not in PATH"]);
    for (time, word) in [("tomorrow", "minutes"), ("5", "10 minutes or more")] {
        let output =
            reproduce(folder.path(), "results", None, &["--executor", "slurm", "--slurm-time", time]);
        refused(folder.path(), &output, 2, &["--slurm-time", word]);
    }
}

#[test]
fn what_is_submitted_is_shown_first_and_remembered() {
    let folder = folder(100);
    // A fake sbatch that accepts everything and records its arguments; the test sets its queue.
    let sbatch = "[ \"$1\" = --version ] && exit; echo \"$*\" >> asked; wc -l < asked | tr -d ' '";
    let bin =
        stand_ins(folder.path(), &[("sbatch", sbatch), ("scontrol", CONFIG), ("squeue", "/bin/cat queue")]);
    std::fs::write(folder.path().join("queue"), "").unwrap();
    let usual = format!("{}:/usr/bin:/bin", bin.display());
    let path = Some(Path::new(&usual));

    let draft = json(&slurm(folder.path(), path, &["--dry-run", "--json", "--slurm-concurrent", "2"]));
    assert!(!folder.path().join("results").exists() && !folder.path().join("asked").exists());
    let commands = strings(&draft["slurm"]["commands"]);
    assert_eq!(commands.len(), 3, "two arrays and the report: {commands:?}");
    assert!(commands[0].contains("--array=0-2%2") && commands[1].contains("--array=0-0%2"), "{commands:?}");
    assert!(commands[1].contains("afterany:ARRAY1") && commands[2].contains("afterany:ARRAY1:ARRAY2"));
    let script = draft["slurm"]["script"].as_str().unwrap();

    let first = json(&slurm(folder.path(), path, &["--json"]));
    assert_eq!(strings(&first["arrays"]), ["1", "2"]);
    assert_eq!(first["report"], "3");
    let runs = strings(&first["runs"]);
    assert_eq!(runs.len(), 4);
    let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
    for words in ["--requeue", "--open-mode=append", "--signal=B:USR1@300", "--mem=500M", "afterany:1:2"] {
        assert!(asked.contains(words), "no {words} in {asked}");
    }
    let submission = folder.path().join("results/slurm/tiny-small/1");
    assert_eq!(std::fs::read_to_string(submission.join("job.sh")).unwrap(), script);
    assert_eq!(std::fs::read_to_string(submission.join("runs.txt")).unwrap(), runs.join("\n") + "\n");

    // One task of the first array and the whole second array have left the queue.
    let queue = "1 0 album-tiny-small\n1 2 album-tiny-small\n3 N/A album-tiny-small\n9 0 other\n";
    std::fs::write(folder.path().join("queue"), queue).unwrap();
    let second = json(&slurm(folder.path(), path, &["--json"]));
    assert_eq!(strings(&second["runs"]), [&*runs[1], &*runs[3]]);
    assert_eq!(strings(&second["queued"]), [&*runs[0], &*runs[2]]);
    let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
    assert!(asked.contains("afterany:4:1:3"), "the report comes after all that is alive: {asked}");
}

#[test]
fn a_submission_that_fails_halfway_is_taken_back() {
    let folder = folder(100);
    let sbatch = "[ \"$1\" = --version ] && exit; echo x >> asked; n=$(wc -l < asked); \
                  [ $n = 2 ] && { echo 'too many jobs' >&2; exit 1; }; echo 70$n";
    let bin = stand_ins(
        folder.path(),
        &[("sbatch", sbatch), ("scontrol", CONFIG), ("scancel", "echo \"$*\" >> cancelled"), ("squeue", "")],
    );
    let usual = format!("{}:/usr/bin:/bin", bin.display());
    let output = slurm(folder.path(), Some(Path::new(&usual)), &[]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{message}");
    assert!(message.contains("too many jobs") && message.contains("were cancelled: job 701"), "{message}");
    assert_eq!(std::fs::read_to_string(folder.path().join("cancelled")).unwrap(), "701\n");
    assert!(!folder.path().join("results/slurm/tiny-small/1").exists());
    // The next attempt submits from scratch.
    assert_eq!(
        json(&slurm(folder.path(), Some(Path::new(&usual)), &["--json"]))["runs"].as_array().unwrap().len(),
        4
    );
}

/// Checks how a run is recorded whose job runs this shell script instead of album.
fn failed_in_a_job(program: &str, code: i32, words: &str) {
    let folder = folder(100);
    let bin = stand_ins(
        folder.path(),
        &[("sbatch", "echo 1"), ("scontrol", CONFIG), ("squeue", ""), ("not-album", program)],
    );
    let usual = format!("{}:/usr/bin:/bin", bin.display());
    let runs = strings(&json(&slurm(folder.path(), Some(Path::new(&usual)), &["--json"]))["runs"]);
    // The real script, with another program.
    let script = folder.path().join("results/slurm/tiny-small/1/job.sh");
    let text = std::fs::read_to_string(&script).unwrap();
    let program = bin.join("not-album");
    let text = text.replace(env!("CARGO_BIN_EXE_album"), program.to_str().unwrap());
    std::fs::write(&script, text).unwrap();
    let mut job = Command::new("bash");
    job.arg(&script).arg("3").env("SLURM_ARRAY_JOB_ID", "7").env("SLURM_ARRAY_TASK_ID", "0");
    assert_eq!(job.output().unwrap().status.code(), Some(code));
    let status = json(&reproduce(folder.path(), "results", None, &["--status", "--json"]));
    let run = &status["runs"][3];
    assert_eq!((run["id"].as_str(), run["state"].as_str()), (Some(&*runs[3]), Some("failed")));
    assert!(run["failure"].as_str().unwrap().contains(words), "{run}");
}

#[test]
fn a_run_that_is_killed_in_a_job_counts_as_failed() {
    failed_in_a_job("kill -9 $$", 137, "signal 9");
}

#[test]
fn a_time_limit_that_comes_before_training_is_named() {
    failed_in_a_job("kill -USR1 $PPID; exec sleep 20", 143, "--slurm-time has to be longer");
}

/// Whether a cluster is available.
fn cluster() -> bool {
    let running = std::env::var_os("ALBUM_TEST_SLURM").is_some();
    if !running {
        album_testing::skip("slurm", "`cargo xtask slurm` starts one for this test");
    }
    running
}

/// The output of a Slurm program.
fn ask(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        let queue = || ask("squeue", &["--array"]);
        assert!(start.elapsed() < Duration::from_secs(300), "waited for {what}; the queue:\n{}", queue());
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_queue_that_rejects_is_heard() {
    if !cluster() {
        return;
    }
    let folder = folder(100);
    let output = slurm(folder.path(), None, &["--slurm-partition", "nowhere"]);
    refused(folder.path(), &output, 5, &["sbatch failed", "invalid partition", "nowhere"]);
    let output = slurm(folder.path(), None, &["--slurm-args=--mem=900G"]);
    refused(folder.path(), &output, 5, &["sbatch failed", "Memory"]);
}

#[test]
fn jobs_that_are_preempted_requeued_and_cancelled_end_as_local_runs_do() {
    if !cluster() {
        return;
    }
    let folder = folder(40_000);
    let folder = folder.path();
    let local = json(&reproduce(folder, "local", None, &["--json", "--jobs", "2"]));
    assert_eq!(local["finished"], 4);

    let submission = json(&slurm(folder, None, &["--json"]));
    let (arrays, runs) = (strings(&submission["arrays"]), strings(&submission["runs"]));
    assert_eq!((arrays.len(), runs.len()), (2, 4), "this cluster allows three tasks in an array");
    let again = json(&slurm(folder, None, &["--json"]));
    assert_eq!((again["arrays"].as_array().unwrap().len(), strings(&again["queued"])), (0, runs.clone()));

    let job = |k: usize| if k < 3 { format!("{}_{k}", arrays[0]) } else { format!("{}_0", arrays[1]) };
    let results = folder.join("results");
    let page = results.join("reports/tiny-small/index.html");
    assert!(!page.exists());
    let log =
        |k: usize| std::fs::read_to_string(results.join(format!("logs/{}.log", runs[k]))).unwrap_or_default();
    let steps = |k: usize| {
        let rows = std::fs::read_to_string(results.join(format!("runs/{}/train.csv", runs[k])));
        rows.map_or(0, |text| text.lines().count())
    };
    let state = |k: usize| ask("squeue", &["--noheader", "--array", "--format=%T", "--jobs", &job(k)]);
    // Waits until a run is active and has made progress.
    let advances = |k: usize| {
        let before = steps(k);
        wait(&format!("run {k} to be at work"), || state(k).trim() == "RUNNING" && steps(k) > before + 2);
    };
    let restarts = |k: usize| ask("scontrol", &["show", "job", &job(k)]).contains("Restarts=1");

    // A job in the urgent partition takes both processors: Slurm preempts two runs and requeues them.
    advances(0);
    advances(1);
    let urgent =
        ["--parsable", "--partition=urgent", "--cpus-per-task=2", "--output=/dev/null", "--wrap=sleep 1"];
    ask("sbatch", &urgent);
    wait("two preempted runs", || restarts(0) && restarts(1));

    // One run is requeued by an administrator, one reaches its time limit, one is cancelled by its user.
    advances(2);
    ask("scontrol", &["requeue", &job(2)]);
    advances(3);
    // scancel complains that the job is in transition if the requeue is faster than its answer.
    let _ = Command::new("timeout").args(["2", "scancel", "--signal=USR1", "--batch", &job(3)]).output();
    advances(0);
    ask("scancel", &[&job(0)]);
    wait("the cancelled run", || state(0).trim().is_empty());
    let status = json(&reproduce(folder, "results", None, &["--status", "--json"]));
    let cancelled = status["runs"].as_array().unwrap().iter().find(|run| run["id"] == *runs[0]).unwrap();
    assert_eq!(cancelled["state"], "interrupted");

    // A second submission contains only the cancelled run: it resumes, and the report follows.
    let second = json(&slurm(folder, None, &["--json"]));
    assert_eq!(strings(&second["runs"]), [&*runs[0]]);
    wait("all jobs", || ask("squeue", &["--noheader", "--name=album-tiny-small"]).trim().is_empty());

    for (k, run) in runs.iter().enumerate() {
        let result = |results: &str| -> Value {
            let text =
                std::fs::read(folder.join(results).join("runs").join(run).join("result.json")).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        let (here, there) = (result("local"), result("results"));
        for key in ["finished", "steps", "weights_sha256", "success", "evaluations"] {
            assert_eq!(here[key], there[key], "{key} of {run}");
        }
        assert_eq!(there["finished"], true);
        assert!(log(k).contains("resuming after step"), "{run} was interrupted and went on: {}", log(k));
    }
    let said =
        std::fs::read_to_string(results.join(format!("slurm/tiny-small/1/logs/{}.log", job(3)))).unwrap();
    assert!(said.contains("back in the queue") && said.contains("start 2"), "{said}");
    let report = std::fs::read_to_string(results.join("slurm/tiny-small/2/logs/report.log")).unwrap();
    assert!(report.contains("4 runs, 4 finished"), "{report}");
    assert!(page.is_file());

    let over = slurm(folder, None, &[]);
    assert!(over.status.success() && String::from_utf8_lossy(&over.stderr).contains("finished already"));
    assert!(!results.join("slurm/tiny-small/3").exists());
}

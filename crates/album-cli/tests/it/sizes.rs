//! Absurd sizes are refused at once, naming the key or option, before anything is created.

use crate::common::{Columns, pointmaze_data, refuses, snapshot};

const TASK: &str = "pointmaze-medium-navigate-singletask-task1-v0";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    pointmaze_data(&folder.path().join("data.npz"));
    Columns::chain().write(folder.path(), "table.npz");
    folder
}

#[test]
fn keys_of_the_configuration_have_bounds() {
    let folder = folder();
    let before = snapshot(folder.path());
    for (agent, set, words) in [
        ("album", "hidden=[9223372036854775807,2]", ["hidden = 9223372036854775807", "at most 65,536"]),
        ("album", "hidden=[100000000]", ["hidden = 100000000", "at most 65,536"]),
        ("album", "batch_size=1000000000000", ["batch_size = 1000000000000", "at most 1,000,000"]),
        ("album", "fourier_features=1000000000000", ["fourier_features = 1000000000000", "at most 65,536"]),
        ("album", "ensemble=1000000000", ["ensemble = 1000000000", "at most 1,000"]),
        ("album", "k=1000000000", ["k = 1000000000", "at most 10,000"]),
        ("fql", "flow_steps=1000000000", ["flow_steps = 1000000000", "at most 1,000"]),
        ("idql", "noise_blocks=1000000000", ["noise_blocks = 1000000000", "at most 1,000"]),
        ("idql", "diffusion_steps=1000000000", ["diffusion_steps = 1000000000", "at most 1,000"]),
        ("ifql", "num_samples=1000000000", ["num_samples = 1000000000", "at most 10,000"]),
        ("deas", "bins=1000000000", ["bins = 1000000000", "at most 65,536"]),
        ("album", "eval_episodes=1000000000", ["eval_episodes = 1000000000", "at most 1,000,000"]),
        ("album", "train.steps=9000000000000000000", ["steps = 9000000000000000000", "at most"]),
        ("album", "keep=9000000000000000000", ["keep = 9000000000000000000", "at most"]),
    ] {
        let args = ["train", TASK, "--data", "data.npz", "--out", "run", "--agent", agent, "--set", set];
        refuses(folder.path(), &args, 3, &words);
    }
    assert_eq!(snapshot(folder.path()), before);
}

/// Each number is within its limit, but together they exceed the memory.
#[test]
fn what_does_not_fit_into_memory_is_refused_before_it_is_made() {
    let folder = folder();
    let before = snapshot(folder.path());
    let train = ["train", TASK, "--data", "data.npz", "--out", "run", "--set"];
    for set in ["hidden=[65536,65536,65536,65536]", "ensemble=1000"] {
        let more = ["--set", "batch_size=1000000"];
        let args = [&train[..], &[set], &more[..]].concat();
        refuses(folder.path(), &args, 3, &["needs about", "this machine has", "hidden", "batch_size"]);
    }
    let generate = ["data", "generate", "pointmaze-giant-navigate-v0", "--episodes", "1000000", "--out", "."];
    refuses(folder.path(), &generate, 3, &["1000000 episodes needs about", "this machine has"]);
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn numbers_of_options_have_bounds() {
    let folder = folder();
    let train = ["train", TASK, "--data", "data.npz", "--out", "run"];
    let cases: [(&[&str], &str); 10] = [
        (&["eval", "run", "--episodes", "1000000000"], "--episodes = 1000000000; expected at most 1,000,000"),
        (
            &["data", "generate", "pointmaze-medium-navigate-v0", "--episodes", "1000000000000"],
            "--episodes = ",
        ),
        (&["solve", "table.npz", "--k", "1000000000"], "--k = 1000000000; expected at most 10,000"),
        (&[&train[..], &["--threads", "10000"]].concat(), "--threads = 10000; expected at most 1,024"),
        (&[&train[..], &["--threads", "18446744073709551615"]].concat(), "--threads = 18446744073709551615"),
        (&[&train[..], &["--workers", "1000000"]].concat(), "--workers = 1000000"),
        (&["fqe", "run", "--ensemble", "1000000000"], "--ensemble = 1000000000"),
        (&["eval", "run", "--video", "1000000000"], "--video = 1000000000"),
        (&["bench", "step", "--batch", "1000000000000"], "--batch = 1000000000000"),
        (
            &["data", "record", "--env", "gymnasium:X", "--out", "x.npz", "--episodes", "1000000000000"],
            "--episodes = ",
        ),
    ];
    for (args, words) in cases {
        refuses(folder.path(), args, 2, &[words]);
    }
    assert!(!folder.path().join("run").exists());
}

#[test]
fn runs_that_could_do_nothing_leave_no_directory() {
    let folder = folder();
    let before = snapshot(folder.path());
    let train = ["train", TASK, "--data", "data.npz", "--out", "run"];
    refuses(folder.path(), &[&train[..], &["--steps", "0"]].concat(), 3, &["steps = 0", "at least 1"]);
    refuses(folder.path(), &[&train[..], &["--set", "keep=0"]].concat(), 3, &["keep = 0", "at least 1"]);
    assert_eq!(snapshot(folder.path()), before);
}

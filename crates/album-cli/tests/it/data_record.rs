//! `album data record` as a user runs it, in environments of the real gymnasium.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{fails, json, snapshot};
use std::path::Path;

const PENDULUM: [&str; 6] = ["data", "record", "--env", "gymnasium:Pendulum-v1", "--max-steps", "40"];

/// The interpreter with gymnasium that `cargo xtask test` sets up; without it, the test is reported as
/// skipped.
fn python() -> Option<String> {
    let python = std::env::var("ALBUM_PYTHON").ok();
    if python.is_none() {
        album_testing::skip("python", "ALBUM_PYTHON is not set; `cargo xtask test` sets it");
    }
    python
}

fn record<'a>(python: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&PENDULUM[..], &["--python", python, "--json"], more].concat()
}

#[test]
fn random_actions_then_a_run_of_them() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let first = json(folder, &record(&python, &["--episodes", "30", "--workers", "1", "--out", "a.npz"]));
    assert_eq!((&first["episodes"], &first["steps"]), (&30.into(), &1200.into()));
    assert_eq!((&first["observation_dim"], &first["action"]["high"][0]), (&3.into(), &2.0.into()));
    assert!(first["return_mean"].as_f64().unwrap() < 0.0 && first["success"].is_null(), "{first}");
    json(folder, &record(&python, &["--episodes", "30", "--workers", "2", "--out", "b.npz"]));
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert_eq!(read("a.npz"), read("b.npz"));
    let again = json(folder, &record(&python, &["--episodes", "30", "--out", "a.npz"]));
    assert_eq!(again["made"], false);
    fails(
        folder,
        &record(&python, &["--episodes", "30", "--seed", "1", "--out", "a.npz"]),
        3,
        &["move the file away"],
    );

    let train = ["train", "--data", "a.npz", "--agent", "bc", "--steps", "20", "--out", "run", "--json"];
    json(folder, &[&train[..], &["--set", "hidden=[8,8]", "--set", "batch_size=16"]].concat());
    let more = ["--policy", "run", "--noise", "0.2", "--epsilon", "0.1", "--episodes", "4", "--out", "c.npz"];
    let by_run = json(folder, &record(&python, &more));
    assert!(by_run["policy"].as_str().unwrap().starts_with("bc with weights "), "{by_run}");
    // The spaces differ from those of the run's data.
    let before = snapshot(folder);
    let cart = ["data", "record", "--env", "gymnasium:CartPole-v1", "--policy", "run", "--out", "d.npz"];
    let words =
        ["gymnasium:CartPole-v1: found observations of dimension 4, expected observations of dimension 3"];
    fails(folder, &[&cart[..], &["--python", &python]].concat(), 5, &words);
    assert_eq!(snapshot(folder), before);
}

#[test]
fn what_cannot_be_recorded_leaves_nothing_behind() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    write(folder, "raises.py", "def make():\n    raise ValueError('no plant')\n");
    write(folder, "policy.py", "def act(observation):\n    return observation / 0 + 'x'\n");
    let before = snapshot(folder);
    let pendulum = "gymnasium:Pendulum-v1";
    for (env, more, code, words) in [
        ("Pendulum-v1", &[][..], 2, &["found `Pendulum-v1`, expected gymnasium:ID"][..]),
        (pendulum, &["--env-arg", "g"], 2, &["expected KEY=VALUE"]),
        (pendulum, &["--policy", "nowhere"], 2, &["expected `random`, a run directory or FILE.py:FUNCTION"]),
        (pendulum, &["--epsilon", "1.5"], 2, &["--epsilon: found 1.5"]),
        ("gymnasium:CartPole-v1", &["--noise", "0.1"], 2, &["use --epsilon"]),
        ("gymnasium:Pendelum-v1", &[], 5, &["found no environment", "did you mean `Pendulum-v1`"]),
        ("raises.py:make", &[], 5, &["raises.py:2: ValueError: no plant"]),
        ("raises.py:build", &[], 5, &["found no function `build` in the file; it has make"]),
        (pendulum, &["--policy", "policy.py:act"], 5, &["policy.py:2:"]),
    ] {
        let args = ["data", "record", "--env", env, "--out", "x.npz", "--episodes", "2", "--python", &python];
        fails(folder, &[&args[..], more].concat(), code, words);
        assert_eq!(snapshot(folder), before, "{env} {more:?}");
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

//! Recording with various policies in real environments.
#![allow(clippy::unwrap_used)]

use crate::common;

use album_data::{ActionSpace, Dataset, Npz, Source};
use album_envs::rollouts::{
    Outcome, Policy, Progress, PythonPolicy, Recipe, Recorder, Summary, Turn, check_minari, write_minari,
};
use album_envs::{EnvPool, Limits, MudWorldEnv, NativePool, Python, Suite, WorkerPool};
use album_tabular::{Behaviour, Encoding, MudWorld};
use common::python;
use std::cell::Cell;
use std::path::Path;

fn open(python: &Python, name: &str, workers: usize) -> WorkerPool {
    let suite = Suite::gymnasium(&name.parse().unwrap());
    WorkerPool::new(suite, workers, python, Limits::default()).unwrap()
}

fn recipe(env: &str, episodes: usize) -> Recipe {
    let (env, policy) = (env.to_owned(), "test".to_owned());
    Recipe { env, policy, seed: 5, episodes, max_steps: None, noise: 0.0, epsilon: 0.0 }
}

fn record(
    recipe: &Recipe,
    envs: &mut dyn EnvPool,
    policy: Policy<'_>,
    path: &Path,
) -> Result<Outcome, String> {
    let (stop, observer) = (&|| false, &mut |_: Progress<'_>| {});
    Recorder { recipe, envs, policy, stop, observer }.record(path).map_err(|e| e.to_string())
}

fn done(outcome: Result<Outcome, String>) -> Summary {
    match outcome.unwrap() {
        Outcome::Done(summary) => summary,
        other => panic!("{other:?}"),
    }
}

/// A native pool, which needs no Python: MudWorld with random actions.
fn mud(slots: usize) -> NativePool {
    NativePool::cloned(&MudWorldEnv::new(MudWorld::new(5, 0), Behaviour::EpsGreedy, Encoding::OneHot), slots)
}

#[test]
fn any_number_of_slots_records_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = Recipe { max_steps: Some(30), ..recipe("mudworld", 45) };
    let [a, b] = ["a.npz", "b.npz"].map(|name| dir.path().join(name));
    let summary = done(record(&recipe, &mut mud(1), Policy::Random, &a));
    assert_eq!(done(record(&recipe, &mut mud(7), Policy::Random, &b)), summary);
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    assert!(!dir.path().join("a.npz.parts").exists());
    assert_eq!(summary.episodes, 45);
    assert!(summary.success.unwrap() > 0.0 && summary.success.unwrap() < 1.0, "{summary:?}");

    // A row is a transition, and terminations are not mistaken for timeouts.
    let mut npz = Npz::open(&a).unwrap();
    let [terminals, timeouts] =
        ["terminals", "timeouts"].map(|name| npz.read(name).unwrap().into_bools().unwrap());
    let ids = npz.read("episode_ids").unwrap().into_integers().unwrap();
    for row in 0..summary.steps {
        let last = ids.get(row + 1) != Some(&ids[row]);
        assert_eq!(terminals[row] || timeouts[row], last, "row {row}");
        assert!(!(terminals[row] && timeouts[row]));
    }
    let data = Source::of(&a).read().unwrap();
    assert_eq!((data.dataset.len(), &data.warnings[..]), (summary.steps, &[][..]));
    assert_eq!(data.description.ends.terminal, (45.0 * summary.success.unwrap()).round() as usize);
    let sum: f64 = (0..summary.steps).map(|t| f64::from(data.dataset.reward(t))).sum();
    assert!((sum / 45.0 - summary.return_mean).abs() < 1e-4);

    // The same recipe keeps the file, another does not overwrite it.
    let bytes = std::fs::read(&a).unwrap();
    assert_eq!(record(&recipe, &mut mud(1), Policy::Random, &a).unwrap(), Outcome::Kept);
    let other = Recipe { seed: 6, ..recipe.clone() };
    let message = record(&other, &mut mud(1), Policy::Random, &a).unwrap_err();
    assert!(message.contains("found a recording of") && message.contains("move the file away"), "{message}");
    assert_eq!(std::fs::read(&a).unwrap(), bytes);
    // A longer recording starts with the same episodes.
    let c = dir.path().join("c.npz");
    done(record(&Recipe { episodes: 50, ..recipe }, &mut mud(3), Policy::Random, &c));
    let more = Npz::open(&c).unwrap().read("actions").unwrap().into_integers().unwrap();
    let fewer = npz.read("actions").unwrap().into_integers().unwrap();
    assert_eq!(more[..fewer.len()], fewer);
}

#[test]
fn a_stopped_recording_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = Recipe { max_steps: Some(30), ..recipe("mudworld", 65) };
    let [whole, path] = ["whole.npz", "path.npz"].map(|name| dir.path().join(name));
    done(record(&recipe, &mut mud(2), Policy::Random, &whole));
    let calls = Cell::new(0);
    let stop = &|| {
        calls.set(calls.get() + 1);
        calls.get() > 400
    };
    let mut seen = Vec::new();
    let observer = &mut |progress: Progress<'_>| {
        if let Progress::Recorded { episodes, .. } = progress {
            seen.push(episodes);
        }
    };
    let mut envs = mud(2);
    let recorder = Recorder { recipe: &recipe, envs: &mut envs, policy: Policy::Random, stop, observer };
    let Outcome::Stopped { episodes, work } = recorder.record(&path).unwrap() else { panic!() };
    assert!((20..60).contains(&episodes) && work.is_dir() && !path.exists(), "{episodes}");
    // Another recipe does not reuse these parts.
    let message =
        record(&Recipe { seed: 1, ..recipe.clone() }, &mut mud(2), Policy::Random, &path).unwrap_err();
    assert!(message.contains("path.npz.parts: found a recording of"), "{message}");
    done(record(&recipe, &mut mud(3), Policy::Random, &path));
    assert_eq!(std::fs::read(&whole).unwrap(), std::fs::read(&path).unwrap());
    assert!(!work.exists());
}

#[test]
fn exploration_stays_within_the_bounds() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pendulum.npz");
    let recipe =
        Recipe { noise: 0.3, epsilon: 0.25, max_steps: Some(50), ..recipe("gymnasium:Pendulum-v1", 6) };
    let act = |_: &[f32], turns: &[Turn], actions: &mut Vec<f32>| {
        actions.extend(turns.iter().map(|turn| if turn.step < 25 { 0.5 } else { 9.0 }));
        Ok(())
    };
    let mut envs = open(&python, "gymnasium:Pendulum-v1", 2);
    let summary = done(record(&recipe, &mut envs, Policy::Acting(Box::new(act)), &path));
    assert_eq!((summary.steps, summary.success), (300, None));
    let data = Source::of(&path).read().unwrap();
    let mut npz = Npz::open(&path).unwrap();
    let actions = npz.read("actions").unwrap().into_floats().unwrap();
    assert!(actions.iter().all(|a| a.abs() <= 2.0));
    let exact = actions.iter().filter(|&&a| a == 2.0).count();
    // Half of the actions are beyond the bound; noise pushes half of these back, and a quarter are random.
    assert!((90..150).contains(&exact), "{exact}");
    assert_eq!(data.description.ends.timeout, 6);
    let message =
        |recipe: Recipe| record(&recipe, &mut mud(1), Policy::Random, &dir.path().join("x")).unwrap_err();
    assert!(message(Recipe { noise: 0.1, ..recipe.clone() }).contains("--noise: found discrete actions"));
    assert!(
        message(Recipe { noise: 0.0, epsilon: 2.0, ..recipe.clone() }).contains("expected a probability")
    );
    assert!(!dir.path().join("x.parts").exists());
}

#[test]
fn python_functions_act() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policies.py");
    let text = "def lean(observation):\n    return observation[2] > 0\n\ndef drunk(observation, rng):\n    return \
                rng.integers(2)\n\ndef broken(observation):\n    return 1 / 0\n\ndef wide(observation):\n    return \
                [0, 1]\n\ndef beyond(observation):\n    return 2\n";
    std::fs::write(&file, text).unwrap();
    let run = |function: &str, workers: usize, name: &str| {
        let mut envs = open(&python, "gymnasium:CartPole-v1", workers);
        let shape = envs.shape().clone();
        assert_eq!(shape.actions, ActionSpace::Discrete { n: 2 });
        let mut policy =
            PythonPolicy::open(&file, function, &shape, workers, &python).map_err(|e| e.to_string())?;
        let act = move |observations: &[f32], turns: &[Turn], actions: &mut Vec<f32>| {
            policy.act(observations, turns, actions)
        };
        let path = dir.path().join(name);
        let outcome =
            record(&recipe("gymnasium:CartPole-v1", 8), &mut envs, Policy::Acting(Box::new(act)), &path);
        outcome.map(|outcome| (done(Ok(outcome)), std::fs::read(&path).unwrap()))
    };
    let (lean, _) = run("lean", 1, "lean.npz").unwrap();
    let (drunk, bytes) = run("drunk", 1, "drunk.npz").unwrap();
    assert!(lean.return_mean > drunk.return_mean, "{lean:?} {drunk:?}");
    assert_eq!(run("drunk", 2, "again.npz").unwrap().1, bytes);
    for (function, part) in [
        ("broken", "policies.py:8: ZeroDivisionError"),
        ("wide", "the policy returned an array of shape (2,), expected an index"),
        ("beyond", "action: found 2, expected a whole number from 0 to 1"),
        ("none", "found no function `none` in the file; it has lean, drunk, broken, wide, beyond"),
    ] {
        let message = run(function, 1, function).unwrap_err();
        assert!(message.contains(part), "{message}");
        assert!(
            !dir.path().join(function).exists() && !dir.path().join(format!("{function}.parts")).exists()
        );
    }
}

#[test]
fn minari_folders_hold_the_same() {
    let Some(python) = python() else { return };
    if let Err(e) = check_minari(&python) {
        assert!(e.to_string().contains("found no module h5py; run `album setup gymnasium`"), "{e}");
        album_testing::skip("h5py", "ALBUM_PYTHON has no h5py");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [path, folder] = ["mud.npz", "mud"].map(|name| dir.path().join(name));
    let recipe = Recipe { max_steps: Some(30), ..recipe("mudworld", 12) };
    let mut envs = mud(2);
    let summary = done(record(&recipe, &mut envs, Policy::Random, &path));
    write_minari(&path, &folder, envs.shape(), "mudworld", &python).unwrap();
    // album reads the same from the folder as from the file.
    let [flat, minari] = [&path, &folder].map(|path| Source::of(path).read().unwrap().dataset);
    assert_eq!((minari.len(), minari.action_space()), (flat.len(), flat.action_space()));
    for t in 0..flat.len() {
        let row =
            |data: &Dataset| (data.observation(t).to_vec(), data.action(t)[0], data.reward(t), data.mask(t));
        assert_eq!(row(&minari), row(&flat), "row {t}");
    }
    let text = std::fs::read_to_string(folder.join("data/metadata.json")).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&metadata["total_episodes"], &metadata["total_steps"]), (&12.into(), &summary.steps.into()));
    let space: serde_json::Value = serde_json::from_str(metadata["action_space"].as_str().unwrap()).unwrap();
    assert_eq!((&space["type"], &space["n"]), (&"Discrete".into(), &4.into()));
    let script = r#"
import sys, h5py, numpy as np
flat = np.load(sys.argv[1]); file = h5py.File(sys.argv[2])
assert len(file) == 12
begin = 0
for n in range(12):
    episode = file[f"episode_{n}"]; steps = episode.attrs["total_steps"]; rows = slice(begin, begin + steps)
    assert (episode["observations"][:-1] == flat["observations"][rows]).all()
    assert (episode["observations"][1:] == flat["next_observations"][rows]).all()
    for here, there in dict(actions="actions", rewards="rewards", terminations="terminals", truncations="timeouts").items():
        assert (episode[here][:] == flat[there][rows]).all(), here
    begin += steps
assert begin == len(flat["rewards"])
"#;
    let mut command = python.command();
    command.args(["-c", script]).arg(&path).arg(folder.join("data/main_data.hdf5"));
    assert!(command.status().unwrap().success());
}

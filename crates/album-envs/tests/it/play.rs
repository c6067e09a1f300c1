//! Recording with processes: chunks are joined in order, resumed, and repeated when a process dies or hangs. The
//! interpreters are fake except in the last tests, which need ALBUM_PYTHON with ogbench.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::fake;

use album_data::ogbench::{TaskName, load_task};
use album_data::{Data, Npz};
use album_envs::play::{Event, Outcome, Recipe, RecordError, Recorder, Split};
use album_envs::{Limits, Python};
use fake::Fake;
use std::cell::Cell;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const ROWS: usize = 7;

fn recipe(episodes: usize) -> Recipe {
    let task: TaskName = "cube-single-play-singletask-v0".parse().unwrap();
    Recipe { episodes, rows: ROWS, ..Recipe::published(task.environment(), task.data_kind(), 3).unwrap() }
}

struct Run<'a> {
    recipe: &'a Recipe,
    folder: &'a Path,
    python: &'a Path,
    workers: usize,
    chunk: usize,
    /// Stops at this many episodes.
    stop_at: usize,
}

impl Run<'_> {
    /// Records, and returns the outcome and the reasons for lost processes.
    fn go(&self) -> (Result<Outcome, RecordError>, Vec<String>) {
        self.go_within(Recorder::LIMITS)
    }

    fn go_within(&self, limits: Limits) -> (Result<Outcome, RecordError>, Vec<String>) {
        let recorded = Cell::new(0);
        let mut losses = Vec::new();
        let outcome = Recorder {
            recipe: self.recipe,
            folder: self.folder,
            python: &Python::at(self.python),
            workers: NonZero::new(self.workers).unwrap(),
            chunk: NonZero::new(self.chunk).unwrap(),
            limits,
            stop: &|| recorded.get() >= self.stop_at,
            observer: &mut |event| match event {
                Event::Recorded { episodes, .. } => recorded.set(episodes),
                Event::Lost { reason } => losses.push(reason.to_owned()),
                _ => {}
            },
        }
        .record();
        (outcome, losses)
    }
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap_or_default())
        })
        .collect();
    files.sort();
    files
}

/// A fake interpreter, a recipe of 12 + 2 episodes, and the files of an uninterrupted recording.
struct Setting {
    dir: tempfile::TempDir,
    fake: Fake,
    recipe: Recipe,
    expected: Vec<(String, Vec<u8>)>,
}

impl Setting {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fake = Fake::new(&dir.path().join("fake"), 12, ROWS, 5);
        let recipe = recipe(12);
        let folder = dir.path().join("expected");
        let python = fake.python("good", "");
        let run =
            Run { recipe: &recipe, folder: &folder, python: &python, workers: 1, chunk: 5, stop_at: 99 };
        assert_eq!(run.go().0.unwrap(), Outcome::Done { packages: "fake-1".into() });
        assert_eq!(fake.asked().len(), 4);
        let expected = files(&folder);
        Self { dir, fake, recipe, expected }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn run(
        &self,
        python: &Path,
        workers: usize,
        stop_at: usize,
    ) -> (Result<Outcome, RecordError>, Vec<String>) {
        let folder = self.out();
        Run { recipe: &self.recipe, folder: &folder, python, workers, chunk: 5, stop_at }.go()
    }

    /// An interpreter that hangs after its sixth episode.
    fn stuck(&self) -> PathBuf {
        let stick = r#"[ "$name" = train-000005-5.npz ] && { recorded; exec sleep 60; }"#;
        self.fake.python("stuck", stick)
    }

    /// An uninterrupted recording writes the expected bytes and nothing else.
    fn finishes(&self, workers: usize) {
        let python = self.fake.python("good", "");
        let (outcome, losses) = self.run(&python, workers, 99);
        assert!(matches!(outcome, Ok(Outcome::Done { .. })), "{outcome:?} {losses:?}");
        assert!(files(&self.out()) == self.expected);
    }
}

#[test]
fn chunks_are_joined_in_order() {
    let setting = Setting::new();
    let names: Vec<&str> = setting.expected.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["cube-single-play-v0-val.npz", "cube-single-play-v0.npz"]);
    let path = setting.recipe.file(&setting.dir.path().join("expected"), Split::Train);
    let mut npz = Npz::open(&path).unwrap();
    for (name, width) in [("observations", 28), ("qpos", 21), ("qvel", 20)] {
        let array = npz.read(name).unwrap();
        assert_eq!(array.shape, [12 * ROWS, width]);
        let numbers: Vec<f32> = (0..12 * ROWS * width).map(|i| (i / width) as f32).collect();
        assert!(array.data == Data::F32(numbers), "{name}");
    }
    let data = load_task(&path, &"cube-single-play-singletask-v0".parse().unwrap()).unwrap();
    assert_eq!((data.len(), data.episodes().len()), (12 * (ROWS - 1), 12));

    // The number of processes and the size of the chunks do not matter.
    setting.finishes(3);
    let other = Fake::new(&setting.dir.path().join("other"), 12, ROWS, 1);
    let folder = setting.dir.path().join("single episodes");
    let python = other.python("good", "");
    let run =
        Run { recipe: &setting.recipe, folder: &folder, python: &python, workers: 2, chunk: 1, stop_at: 99 };
    assert!(matches!(run.go().0, Ok(Outcome::Done { .. })));
    assert!(files(&folder) == setting.expected);
}

#[test]
fn a_stopped_recording_goes_on() {
    let setting = Setting::new();
    let (outcome, _) = setting.run(&setting.stuck(), 1, 6);
    assert_eq!(outcome.unwrap(), Outcome::Stopped { episodes: 5, of: 14 });
    let work = setting.recipe.work_folder(&setting.out());
    assert!(work.join("train-000000-5.npz").exists());
    assert!(!setting.recipe.file(&setting.out(), Split::Train).exists());
    setting.fake.asked();

    // A truncated chunk, as after a power failure, is recorded again.
    let cut = fs::read(work.join("train-000000-5.npz")).unwrap();
    fs::write(work.join("train-000005-5.npz"), &cut[..cut.len() / 2]).unwrap();
    setting.finishes(2);
    let mut asked = setting.fake.asked();
    asked.sort();
    assert_eq!(asked, ["train-000005-5.npz", "train-000010-2.npz", "validation-000000-2.npz"]);
}

#[test]
fn a_dead_process_is_replaced() {
    let setting = Setting::new();
    let mark = setting.dir.path().join("died");
    let die_once = format!(
        r#"if [ "$name" = train-000005-5.npz ] && mkdir "{}" 2>/dev/null; then
             recorded; echo "out of oil" >&2; kill -9 $$; fi"#,
        mark.display()
    );
    let python = setting.fake.python("mortal", &die_once);
    let (outcome, losses) = setting.run(&python, 2, 99);
    assert!(matches!(outcome, Ok(Outcome::Done { .. })));
    assert!(files(&setting.out()) == setting.expected);
    assert_eq!(losses.len(), 1);
    assert!(losses[0].contains("SIGKILL") && losses[0].contains("out of oil"), "{}", losses[0]);
}

#[test]
fn a_process_that_hangs_is_replaced() {
    let setting = Setting::new();
    let mark = setting.dir.path().join("hung");
    let hang_once = format!(
        r#"if [ "$name" = train-000005-5.npz ] && mkdir "{}" 2>/dev/null; then
             recorded; echo "waiting for oil" >&2; exec sleep 60; fi"#,
        mark.display()
    );
    let (python, out) = (setting.fake.python("sleepy", &hang_once), setting.out());
    let run =
        Run { recipe: &setting.recipe, folder: &out, python: &python, workers: 2, chunk: 5, stop_at: 99 };
    let (outcome, losses) = run.go_within(Limits { answer: Duration::from_secs(1), ..Recorder::LIMITS });
    assert!(matches!(outcome, Ok(Outcome::Done { .. })));
    assert!(files(&out) == setting.expected);
    assert_eq!(losses, ["its worker gave no answer within 1 s, its last lines: waiting for oil"]);
}

#[test]
fn a_chunk_that_always_fails_is_an_error() {
    let setting = Setting::new();
    let python =
        setting.fake.python("bad", r#"[ "$name" = train-000005-5.npz ] && { echo "no oil" >&2; exit 7; }"#);
    let (outcome, losses) = setting.run(&python, 1, 99);
    let message = outcome.unwrap_err().to_string();
    for words in ["train-000005-5.npz: 3 processes did not finish this chunk", "exit status: 7", "no oil"] {
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(losses.len(), 2);
    // Earlier chunks are kept.
    setting.fake.asked();
    setting.finishes(1);
    assert!(!setting.fake.asked().contains(&"train-000000-5.npz".to_owned()));
}

#[test]
fn chunks_of_another_shape_are_refused() {
    let setting = Setting::new();
    let other = Fake::new(&setting.dir.path().join("other"), 12, ROWS + 1, 5);
    let (outcome, _) = setting.run(&other.python("good", ""), 1, 99);
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("found shape [40, 28], expected [35, 28]"), "{message}");
    setting.finishes(1);
}

#[test]
fn an_interpreter_without_the_package_changes_nothing() {
    let setting = Setting::new();
    fs::create_dir(setting.out()).unwrap();
    let python = setting.fake.python("good", "");
    album_testing::script(&python, "echo \"ModuleNotFoundError: No module named 'ogbench'\" >&2\nexit 1");
    let error = setting.run(&python, 2, 99).0.unwrap_err();
    assert!(error.is_io());
    let message = error.to_string();
    assert!(
        message.contains("No module named 'ogbench'") && message.contains("album setup ogbench"),
        "{message}"
    );
    let error = setting.run(Path::new("/no/such/python"), 1, 99).0.unwrap_err();
    assert!(error.is_io() && error.to_string().contains("/no/such/python"), "{error}");
    assert!(files(&setting.out()).is_empty());
}

#[test]
fn chunks_of_other_packages_are_not_mixed() {
    let setting = Setting::new();
    let python = setting.stuck();
    assert!(matches!(setting.run(&python, 1, 6).0, Ok(Outcome::Stopped { .. })));
    let script = fs::read_to_string(&python).unwrap().replace("fake 1", "fake 2");
    album_testing::script(&python, &script);
    let message = setting.run(&python, 1, 99).0.unwrap_err().to_string();
    assert!(message.contains("recorded with fake-1, but this Python has fake-2"), "{message}");
    setting.finishes(1);
}

#[test]
fn one_recording_at_a_time() {
    let setting = Setting::new();
    let work = setting.recipe.work_folder(&setting.out());
    fs::create_dir_all(&work).unwrap();
    let lock = fs::File::create(work.join("lock")).unwrap();
    lock.lock().unwrap();
    let python = setting.fake.python("good", "");
    assert!(matches!(setting.run(&python, 1, 99).0, Err(RecordError::Busy { .. })));
    drop(lock);
    setting.finishes(1);
}

#[test]
fn files_of_other_recipes_are_left_alone() {
    let setting = Setting::new();
    setting.finishes(1);
    assert!(setting.recipe.is_recorded(&setting.out(), Split::Train).unwrap());
    let python = setting.fake.python("good", "");
    let other = Recipe { seed: 4, ..setting.recipe.clone() };
    let run =
        Run { recipe: &other, folder: &setting.out(), python: &python, workers: 1, chunk: 5, stop_at: 99 };
    let error = run.go().0.unwrap_err();
    assert!(!error.is_io());
    assert!(error.to_string().contains("expected cube-single-play-v0 data of seed 4"), "{error}");
    assert!(files(&setting.out()) == setting.expected);

    // Only the missing file is recorded.
    setting.fake.asked();
    fs::remove_file(setting.recipe.file(&setting.out(), Split::Validation)).unwrap();
    setting.finishes(1);
    assert_eq!(setting.fake.asked(), ["validation-000000-2.npz"]);
}

/// A policy file that moves the joints in response to observations, whether or not it gets anywhere.
fn expert() -> Arc<[u8]> {
    let steps = r#"[{\"op\":\"observation\"},{\"op\":\"linear\",\"x\":0,\"kernel\":\"k\"},{\"op\":\"map\",\"x\":1,\"f\":\"tanh\"}]"#;
    let numbers: Vec<f32> = (0..29 * 8).map(|i| (i as f32).sin()).collect();
    let data: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let tensor = format!(r#"{{"dtype":"F32","shape":[29,8],"data_offsets":[0,{}]}}"#, data.len());
    let header = format!(r#"{{"__metadata__":{{"steps":"{steps}"}},"k":{tensor}}}"#);
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat().into()
}

#[test]
fn somebody_must_walk() {
    let setting = Setting::new();
    let task: TaskName = "antmaze-large-stitch-singletask-v0".parse().unwrap();
    let recipe = Recipe::published(task.environment(), task.data_kind(), 0).unwrap();
    assert_eq!((recipe.episodes, recipe.rows), (5000, 201));
    let (folder, python) = (setting.out(), setting.fake.python("good", ""));
    let run = Run { recipe: &recipe, folder: &folder, python: &python, workers: 1, chunk: 5, stop_at: 99 };
    let error = run.go().0.unwrap_err();
    assert!(error.to_string().contains("needs an expert policy") && !error.is_io(), "{error}");
    let with = Recipe { expert: Some(expert()), ..recipe.clone() };
    assert_ne!(with.work_folder(&folder), recipe.work_folder(&folder), "an expert is part of the recipe");
}

/// Real episodes do not depend on the number of processes, the episodes before them or an interruption.
fn real_episodes_depend_on_their_seed_alone(task: &str) {
    let Some(python) = std::env::var_os("ALBUM_PYTHON").map(PathBuf::from) else {
        album_testing::skip("python", "ALBUM_PYTHON is not set; `cargo xtask test` sets it");
        return;
    };
    let task: TaskName = task.parse().unwrap();
    let published = Recipe::published(task.environment(), task.data_kind(), 0).unwrap();
    let expert = published.needs_expert().then(expert);
    let recipe = Recipe { episodes: 2, rows: 101, expert, ..published };
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let run = |folder: &Path, workers, chunk, stop_at| {
        Run { recipe: &recipe, folder, python: &python, workers, chunk, stop_at }.go().0.unwrap()
    };
    assert!(matches!(run(&one, 1, 5, 99), Outcome::Done { .. }));
    // Two fresh processes, stopped before the third episode.
    assert!(matches!(run(&two, 2, 1, 2), Outcome::Stopped { .. }));
    assert!(matches!(run(&two, 1, 1, 99), Outcome::Done { .. }));
    assert!(files(&one) == files(&two), "{task}");
    assert_eq!(files(&one).len(), 2);

    let path = recipe.file(&one, Split::Train);
    let data = load_task(&path, &task).unwrap();
    assert_eq!((data.len(), data.episodes().len()), (200, 2));
    let Data::F32(actions) = Npz::open(&path).unwrap().read("actions").unwrap().data else { panic!() };
    let (first, second) = actions.split_at(actions.len() / 2);
    assert!(first != second && actions.iter().all(|x| x.abs() <= 1.0));
}

#[test]
fn real_cube_single() {
    real_episodes_depend_on_their_seed_alone("cube-single-play-singletask-v0");
}

/// `noisy` data has random actions from a generator of their own.
#[test]
fn real_cube_double() {
    real_episodes_depend_on_their_seed_alone("cube-double-noisy-singletask-v0");
}

#[test]
fn real_scene() {
    real_episodes_depend_on_their_seed_alone("scene-play-singletask-v0");
}

#[test]
fn real_antmaze() {
    for kind in ["navigate", "stitch", "explore"] {
        real_episodes_depend_on_their_seed_alone(&format!("antmaze-medium-{kind}-singletask-v0"));
    }
}

#[test]
fn real_puzzle() {
    real_episodes_depend_on_their_seed_alone("puzzle-3x3-play-singletask-v0");
}

//! A run ends the same, whatever interrupts it.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs;
use std::time::Duration;

use album_agents::{Agent, AgentError, AgentState, Learner, Metrics, Policy};
use album_base::rng;
use album_data::{Batch, SegmentConfig, View};
use album_train::{
    CriticStatistics, EvaluationPlan, Event, Records, RunResult, Schedule, StopFlag, TrainError, checkpoint,
    episode_seeds, evaluate,
};
use common::{
    Options, STEPS, agent, assert_same, content, dataset, plain, run, run_with, schedule, timeless, train,
};

#[test]
fn the_same_seed_gives_the_same_run_on_any_number_of_threads_and_environments() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let first = run(&data, &dir.path().join("a"));
    let again = run(&data, &dir.path().join("b"));
    assert_eq!(timeless(first.clone()), timeless(again));
    assert_same(&dir.path().join("a"), &dir.path().join("b"));

    let parallel = Options { threads: 2, envs: 3, ..plain() };
    let parallel = run_with(&data, &dir.path().join("c"), parallel).unwrap();
    assert_eq!(timeless(first.clone()), timeless(parallel));
    assert_same(&dir.path().join("a"), &dir.path().join("c"));

    let other = run_with(&data, &dir.path().join("d"), Options { seed: 2, ..plain() }).unwrap();
    assert_ne!(first.weights_sha256, other.weights_sha256);

    assert!(first.finished);
    assert_eq!((first.steps, first.evaluations.len()), (STEPS, 4));
    assert_eq!(first.success, first.evaluations[3].success);
    assert!(first.success.is_some());
    let train = String::from_utf8(content(&dir.path().join("a"))["train.csv"].clone()).unwrap();
    assert_eq!(train.lines().count(), 1 + STEPS as usize / 7);
    assert!(
        train.starts_with("training/critic/critic_loss,") && train.lines().next().unwrap().ends_with(",step")
    );
}

#[test]
fn a_checkpoint_acts_and_tells_as_the_run_did() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let path = dir.path().join("run");
    let result = run(&data, &path);
    let checkpoint = checkpoint::require_latest(&path.join("checkpoints")).unwrap();
    let mut agent = agent(&data, 1, 1);
    checkpoint.restore(&mut agent).unwrap();
    let seeds = episode_seeds(1, STEPS, 3);
    let plan = EvaluationPlan { step: STEPS, seeds, paths: 2, videos: 0 };
    let outcome =
        evaluate(agent.policy().as_mut(), common::envs(1, Duration::ZERO).as_mut(), &plan, &StopFlag::new());
    let evaluation = outcome.unwrap().unwrap().evaluation;
    assert_eq!(Some(&evaluation), Records::read(&path).unwrap().evaluations.last());
    assert_eq!(evaluation.summary(), result.evaluations[3]);
    assert_eq!(CriticStatistics::of(&mut agent, &data).unwrap(), result.learned_values);
    // The extremes are over every state of the data, not a sample.
    let states: Vec<f32> = (0..data.len()).flat_map(|row| data.observation(row).to_vec()).collect();
    let values = agent.value(View::new(&states, data.len(), data.observation_dim())).unwrap();
    let most = f64::from(values.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let learned = result.learned_values.unwrap();
    assert!((learned.v_max - most).abs() < 1e-6, "{learned:?} {most}");
    let RunResult { learned_values, data_values, data_episodes, .. } = result.clone();
    let told = RunResult {
        learned_values,
        data_values,
        data_episodes,
        ..RunResult::of(&checkpoint, true, agent.parameters())
    };
    assert_eq!(timeless(told), timeless(result));
}

#[test]
fn logging_and_saving_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let first = run(&data, &dir.path().join("a"));
    let quiet = Schedule { log_every: 0, check_every: 0, eval_every: 0, save_every: 0, ..schedule() };
    let quiet = run_with(&data, &dir.path().join("b"), Options { schedule: quiet, ..plain() }).unwrap();
    assert_eq!(first.weights_sha256, quiet.weights_sha256);
    assert_eq!(quiet.evaluations.len(), 1);
}

/// Raises the flag during one of its updates.
struct StopsAt {
    agent: Learner,
    step: u64,
    stop: StopFlag,
}

impl Agent for StopsAt {
    fn segments(&self) -> SegmentConfig {
        self.agent.segments()
    }
    fn batch_size(&self) -> usize {
        self.agent.batch_size()
    }
    fn update(&mut self, batch: &Batch, step: u64, metrics: Option<&mut Metrics>) -> f64 {
        if step + 1 == self.step {
            self.stop.set();
        }
        self.agent.update(batch, step, metrics)
    }
    fn assess(&mut self, batch: &Batch, metrics: &mut Metrics) {
        self.agent.assess(batch, metrics);
    }
    fn policy(&self) -> Box<dyn Policy> {
        self.agent.policy()
    }
    fn value(&mut self, observations: View<'_>) -> Option<Vec<f32>> {
        self.agent.value(observations)
    }
    fn parameters(&self) -> usize {
        self.agent.parameters()
    }
    fn state(&self) -> AgentState {
        self.agent.state()
    }
    fn load(&mut self, state: &AgentState) -> Result<(), AgentError> {
        self.agent.load(state)
    }
}

#[test]
fn stopped_and_resumed_runs_end_bit_identical() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let whole = dir.path().join("whole");
    let expected = timeless(run(&data, &whole));
    let mut random = rng::stream(5, "stops");
    let mut plans = vec![vec![1], vec![50], vec![99, 100, 101], vec![STEPS - 1], vec![STEPS]];
    plans.extend((0..8).map(|_| {
        let mut steps: Vec<u64> = (0..5).map(|_| 1 + rng::below(&mut random, STEPS)).collect();
        steps.sort();
        steps.dedup();
        steps
    }));
    for (i, plan) in plans.iter().enumerate() {
        let path = dir.path().join(format!("run{i}"));
        for &step in plan {
            let stop = StopFlag::new();
            let mut agent = StopsAt { agent: agent(&data, 1, 1), step, stop: stop.clone() };
            let result = train(&data, &path, &mut agent, Options { stop, ..plain() }).unwrap();
            assert_eq!((result.finished, result.steps), (false, step));
            assert_eq!(checkpoint::require_latest(&path.join("checkpoints")).unwrap().step(), step);
        }
        assert_eq!(timeless(run(&data, &path)), expected, "{plan:?}");
        assert_same(&whole, &path);
    }
}

#[test]
fn a_run_can_stop_during_an_evaluation() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let (whole, path) = (dir.path().join("whole"), dir.path().join("run"));
    run(&data, &whole);
    for at in [50, 100, 150, 200] {
        let stop = StopFlag::new();
        let raise = stop.clone();
        let mut observer = |event: &Event<'_>| {
            if matches!(event, Event::Evaluating { step } if *step == at) {
                raise.set();
            }
        };
        let result = run_with(&data, &path, Options { stop, observer: &mut observer, ..plain() }).unwrap();
        assert_eq!((result.finished, result.steps), (false, at));
    }
    assert!(run(&data, &path).finished);
    assert_same(&whole, &path);
}

#[test]
fn evaluations_in_the_background_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let (whole, path) = (dir.path().join("whole"), dir.path().join("run"));
    let expected = timeless(run(&data, &whole));
    let mut late = 0;
    let mut observer = |event: &Event<'_>| {
        if matches!(event, Event::Evaluated { background: true, .. }) {
            late += 1;
        }
    };
    let options = Options { background: true, observer: &mut observer, ..plain() };
    assert_eq!(timeless(run_with(&data, &path, options).unwrap()), expected);
    assert_same(&whole, &path);
    assert_eq!(late, 3, "of the four evaluations only the last has nothing to run beside");

    // Evaluations that take longer than the steps between them.
    let often = || Schedule { eval_every: 2, save_every: 7, ..schedule() };
    let (whole, path) = (dir.path().join("often"), dir.path().join("often-background"));
    let expected = run_with(&data, &whole, Options { schedule: often(), ..plain() }).unwrap();
    let found = run_with(&data, &path, Options { schedule: often(), background: true, ..plain() }).unwrap();
    assert_eq!(expected.evaluations.len(), 100);
    assert_eq!(timeless(found), timeless(expected));
    assert_same(&whole, &path);
}

#[test]
fn a_run_that_stops_beside_an_evaluation_does_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let whole = dir.path().join("whole");
    let expected = timeless(run(&data, &whole));
    let background = || Options { background: true, ..plain() };
    for at in [52, 55, 59, 101, 120, 153, 198] {
        let path = dir.path().join(format!("run{at}"));
        let stop = StopFlag::new();
        let mut agent = StopsAt { agent: agent(&data, 1, 1), step: at, stop: stop.clone() };
        let result = train(&data, &path, &mut agent, Options { stop, ..background() }).unwrap();
        let saved = checkpoint::require_latest(&path.join("checkpoints")).unwrap();
        assert_eq!((result.finished, result.steps), (false, saved.step()));
        assert!(result.steps <= at && result.steps + 50 > at, "stopped at {at}, saved at {}", result.steps);
        assert_eq!(result.weights_sha256, album_train::weights_sha256(&saved.state));
        assert_eq!(timeless(run_with(&data, &path, background()).unwrap()), expected, "{at}");
        assert_same(&whole, &path);
    }
}

#[test]
fn a_finished_run_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let path = dir.path().join("run");
    let first = run(&data, &path);
    let before = content(&path);
    let again = run(&data, &path);
    assert_eq!(before, content(&path));
    assert_eq!(timeless(first), timeless(again));
}

#[test]
fn a_damaged_checkpoint_costs_its_steps_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let (whole, path) = (dir.path().join("whole"), dir.path().join("run"));
    run(&data, &whole);
    run(&data, &path);
    let weights = path.join("checkpoints/step_000000200/agent.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&weights, bytes).unwrap();
    let mut warnings = Vec::new();
    let mut start = None;
    let mut observer = |event: &Event<'_>| match event {
        Event::Warning(warning) => warnings.push(warning.clone()),
        Event::Started { step, .. } => start = Some(*step),
        _ => {}
    };
    run_with(&data, &path, Options { observer: &mut observer, ..plain() }).unwrap();
    assert_eq!(start, Some(180));
    assert!(warnings[0].contains("agent.safetensors: damaged"), "{warnings:?}");
    assert_same(&whole, &path);
    assert!(path.join("checkpoints/damaged-step_000000200").is_dir());

    // With no intact checkpoint left, the run must not start over.
    for checkpoint in checkpoint::list(&path.join("checkpoints")).unwrap() {
        fs::remove_file(checkpoint.join("manifest.json")).unwrap();
    }
    let before = fs::read(path.join("train.csv")).unwrap();
    assert!(matches!(run_with(&data, &path, plain()), Err(TrainError::Damaged { .. })));
    assert_eq!(before, fs::read(path.join("train.csv")).unwrap());
}

#[test]
fn checkpoints_of_other_runs_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let path = dir.path().join("run");
    run(&data, &path);
    let error = run_with(&data, &path, Options { seed: 2, ..plain() }).unwrap_err();
    assert!(error.to_string().contains("seed is 1 there, expected 2"), "{error}");
    assert!(!error.is_io() && !error.is_numerical());
}

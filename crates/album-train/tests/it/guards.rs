//! NaN and infinity stop a run and never reach a checkpoint.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::path::Path;

use album_agents::{Agent, AgentError, AgentState, Metrics, Moment, NetworkState, Policy};
use album_data::{Batch, SegmentConfig, View};
use album_nn::Tensor;
use album_train::{RunDir, Schedule, TrainError, checkpoint};
use common::{Options, dataset, plain, train};

/// Counts its steps in one weight, and produces a NaN at one of them.
struct Fragile {
    weight: f32,
    breaks_at: u64,
    part: Part,
    segments: SegmentConfig,
}

impl Fragile {
    fn new(breaks_at: u64, part: Part) -> Self {
        Self { weight: 0.0, breaks_at, part, segments: SegmentConfig::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Total,
    Loss,
    Gradient,
    Weight,
}

impl Agent for Fragile {
    fn segments(&self) -> SegmentConfig {
        self.segments
    }
    fn batch_size(&self) -> usize {
        4
    }
    fn update(&mut self, _batch: &Batch, step: u64, metrics: Option<&mut Metrics>) -> f64 {
        let broken = |part| if self.part == part && step + 1 >= self.breaks_at { f64::NAN } else { 0.5 };
        if let Some(metrics) = metrics {
            *metrics = vec![
                ("critic/critic_loss".into(), broken(Part::Loss)),
                ("grad/norm".into(), broken(Part::Gradient)),
            ];
        }
        self.weight = if broken(Part::Weight).is_nan() { f32::NEG_INFINITY } else { step as f32 + 1.0 };
        broken(Part::Total)
    }
    fn assess(&mut self, _batch: &Batch, _metrics: &mut Metrics) {}
    fn policy(&self) -> Box<dyn Policy> {
        struct Still;
        impl Policy for Still {
            fn act(&mut self, observations: &[f32], _moments: &[Moment], actions: &mut Vec<f32>) {
                *actions = vec![0.0; observations.len()];
            }
        }
        Box::new(Still)
    }
    fn value(&mut self, _observations: View<'_>) -> Option<Vec<f32>> {
        None
    }
    fn parameters(&self) -> usize {
        1
    }
    fn state(&self) -> AgentState {
        let weights = vec![Tensor { name: "w".into(), shape: vec![1], data: vec![self.weight] }];
        let moments = || vec![];
        let network = NetworkState {
            name: "q".into(),
            weights,
            first_moments: moments(),
            second_moments: moments(),
            steps: 0,
        };
        AgentState { networks: vec![network], ..AgentState::default() }
    }
    fn load(&mut self, state: &AgentState) -> Result<(), AgentError> {
        self.weight = state.networks[0].weights[0].data[0];
        Ok(())
    }
}

#[test]
fn what_is_not_finite_stops_the_run_and_is_not_saved() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    for part in [Part::Total, Part::Loss, Part::Gradient, Part::Weight] {
        for breaks_at in [1, 2, 10, 11, 39, 40] {
            let path = dir.path().join(format!("{part:?}{breaks_at}"));
            let schedule = Schedule {
                log_every: 7,
                check_every: 1,
                eval_every: 20,
                save_every: 10,
                ..Schedule::new(40)
            };
            let mut agent = Fragile::new(breaks_at, part);
            let options = Options { schedule, ..plain() };
            let error = train(&data, &path, &mut agent, options).unwrap_err();
            assert!(error.is_numerical(), "{error}");
            let TrainError::NotFinite { step, what, checkpoint, .. } = &error else { panic!("{error}") };
            let name = match part {
                Part::Total => "the loss",
                Part::Loss => "critic/critic_loss",
                Part::Gradient => "grad/norm",
                Part::Weight => "weights of network q, w",
            };
            assert_eq!(what, name);
            // Weights are checked before a save, metrics at once.
            let seen = if part == Part::Weight { breaks_at.next_multiple_of(10) } else { breaks_at };
            assert_eq!(*step, seen);
            let good = (breaks_at - 1) / 10 * 10;
            assert_eq!(*checkpoint, (good > 0).then_some(good));
            let found = checkpoint::latest(&path.join("checkpoints")).unwrap().checkpoint;
            assert_eq!(found.as_ref().map(|found| found.step()), *checkpoint);
            if let Some(found) = found {
                assert_eq!(found.state.networks[0].weights[0].data, [good as f32]);
                assert!(error.to_string().contains(&format!("the checkpoint of step {good}")), "{error}");
            }
            assert!(!path.join("result.json").exists());
            let logged = std::fs::read_to_string(path.join("train.csv")).unwrap_or_default();
            assert!(!logged.contains("NaN"));
        }
    }
}

#[test]
fn data_with_too_short_episodes_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let path = dir.path().join("run");
    let options = || Options { schedule: Schedule { save_every: 10, ..Schedule::new(10) }, ..plain() };
    let mut agent = Fragile::new(100, Part::Loss);
    agent.segments.chunk = 101;
    let error = train(&data, &path, &mut agent, options()).unwrap_err();
    assert!(error.to_string().contains("the longest has 100 steps, the window needs 101"), "{error}");
    assert!(!error.is_numerical() && !error.is_io());
    // Only the files that every new run directory has.
    let names = |path: &Path| {
        let mut names: Vec<_> = std::fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let empty = dir.path().join("empty");
    RunDir::create(&empty, "").unwrap();
    assert_eq!(names(&path), names(&empty));
    agent.segments.chunk = 100;
    train(&data, &path, &mut agent, options()).unwrap();
}

#[test]
fn a_state_that_does_not_fit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    let path = dir.path().join("run");
    let schedule = Schedule { save_every: 10, ..Schedule::new(10) };
    let mut agent = Fragile::new(100, Part::Loss);
    train(&data, &path, &mut agent, Options { schedule, ..plain() }).unwrap();
    let error = common::run_with(&data, &path, plain()).unwrap_err();
    assert!(error.to_string().contains("observations of dimension 0 and actions of dimension 0"), "{error}");
}

#[test]
fn a_checkpoint_with_a_network_too_few_or_too_many_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dataset(dir.path());
    for (change, found) in [
        (drop_last as fn(&mut Vec<NetworkState>), "holds 2 networks; expected 3"),
        (repeat_last, "holds 4 networks; expected 3"),
    ] {
        let path = dir.path().join(found);
        let options =
            Options { schedule: Schedule { eval_every: 0, save_every: 10, ..Schedule::new(10) }, ..plain() };
        common::run_with(&data, &path, options).unwrap();
        let checkpoints = path.join("checkpoints");
        let mut saved = checkpoint::require_latest(&checkpoints).unwrap();
        change(&mut saved.state.networks);
        let (identity, progress) = (&saved.manifest.identity, &saved.manifest.progress);
        checkpoint::save(&checkpoints, identity, progress, &saved.state).unwrap();
        let error = common::run_with(&data, &path, plain()).unwrap_err();
        assert!(error.to_string().contains(found), "{error}");
        assert!(!error.is_numerical() && !error.is_io());
    }
}

fn drop_last(networks: &mut Vec<NetworkState>) {
    networks.pop();
}

fn repeat_last(networks: &mut Vec<NetworkState>) {
    let last = NetworkState { name: "another".into(), ..networks[networks.len() - 1].clone() };
    networks.push(last);
}

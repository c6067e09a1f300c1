//! Online training: a run stopped within an episode resumes exactly.

use std::fs;
use std::path::Path;
use std::time::Duration;

use album_agents::agents::sac;
use album_agents::{Blueprint, Common, Encoding, Learner};
use album_envs::{Answer, EnvError, EnvPool, EnvShape};
use album_nn::Pool;
use album_train::{Online, OnlineEvent, OnlinePlan, OnlineProgress, StopFlag, TrainError};

use crate::common;

const STEPS: u64 = 170;

fn plan(steps: u64) -> OnlinePlan {
    OnlinePlan {
        steps,
        random_steps: 30,
        capacity: 100, // fewer than steps, so that old transitions are overwritten
        log_every: 25,
        save_every: 40,
        seed: 5,
        identity: "PointMaze\nseed 5".into(),
    }
}

fn agent() -> Learner {
    let common = Common { hidden: vec![16, 16], batch_size: 8, ..Common::default() };
    let config = sac::Config { common, ..sac::Config::default() };
    let encoding = Encoding::identity(2);
    let blueprint = Blueprint { encoding, action_dim: 2, action_space: None, value_range: None };
    Learner::from_blueprint(&config, &blueprint, STEPS, 1, &Pool::new(1)).unwrap()
}

fn run(
    dir: &Path,
    plan: &OnlinePlan,
    envs: &mut dyn EnvPool,
) -> Result<(OnlineProgress, Vec<String>), TrainError> {
    let mut told = Vec::new();
    let progress = Online {
        agent: &mut agent(),
        envs,
        plan,
        state: &dir.join("ant.state"),
        curve: &dir.join("ant.csv"),
        stop: StopFlag::new(),
        observer: &mut |event| {
            told.push(match event {
                OnlineEvent::Resumed { step } => format!("resumed {step}"),
                OnlineEvent::Logged { step, .. } => format!("logged {step}"),
                _ => "lost".to_owned(),
            });
        },
    }
    .run()?;
    Ok((progress, told))
}

fn envs() -> Box<dyn EnvPool> {
    common::envs(1, Duration::ZERO)
}

fn files(dir: &Path) -> [Vec<u8>; 2] {
    ["ant.state", "ant.csv"].map(|name| fs::read(dir.join(name)).unwrap())
}

#[test]
fn a_stopped_run_goes_on_bit_for_bit() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (progress, told) = run(whole.path(), &plan(STEPS), envs().as_mut()).unwrap();
    assert_eq!((progress.step, progress.episodes), (STEPS, 8));
    // Without updates there is no row.
    let logged: Vec<String> = [50, 75, 100, 125, 150].map(|step| format!("logged {step}")).to_vec();
    assert_eq!(told, logged);

    // Stops during random actions, in the middle of an episode, and at the start of one.
    for (steps, from) in [(17, None), (93, Some(17)), (120, Some(93)), (STEPS, Some(120))] {
        let (_, told) = run(parts.path(), &plan(steps), envs().as_mut()).unwrap();
        let resumed = told.first().and_then(|line| line.strip_prefix("resumed "));
        assert_eq!(resumed.map(|step| step.parse::<u64>().unwrap()), from);
    }
    assert!(files(whole.path()) == files(parts.path()));
}

#[test]
fn other_recipes_and_damaged_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &plan(40), envs().as_mut()).unwrap();
    let other = OnlinePlan { identity: "PointMaze\nseed 6".into(), ..plan(50) };
    let error = run(dir.path(), &other, envs().as_mut()).unwrap_err().to_string();
    assert!(error.contains("`seed 5`") && error.contains("`seed 6`"), "{error}");

    let path = dir.path().join("ant.state");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = run(dir.path(), &plan(50), envs().as_mut()).unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains("SHA-256"), "{error}");
}

/// Fails at its `lost`-th answer.
#[derive(Debug)]
struct Losing {
    envs: Box<dyn EnvPool>,
    answers: usize,
    lost: usize,
}

impl EnvPool for Losing {
    fn shape(&self) -> &EnvShape {
        self.envs.shape()
    }
    fn slots(&self) -> usize {
        self.envs.slots()
    }
    fn versions(&self) -> &std::collections::BTreeMap<String, String> {
        self.envs.versions()
    }
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }
    fn is_next(&self, slot: usize, waiting: usize) -> bool {
        self.envs.is_next(slot, waiting)
    }
    fn reset(&mut self, slot: usize, seed: u64, frames: bool) -> Result<(), EnvError> {
        self.envs.reset(slot, seed, frames)
    }
    fn step(&mut self, slot: usize, action: &[f32]) -> Result<(), EnvError> {
        self.envs.step(slot, action)
    }
    fn wait(&mut self) -> Result<Vec<(usize, Answer)>, EnvError> {
        let answers = self.envs.wait()?;
        self.answers += answers.len();
        match self.answers == self.lost {
            true => Ok(vec![(0, Answer::Lost { reason: "killed".into() })]),
            false => Ok(answers),
        }
    }
}

#[test]
fn a_lost_environment_changes_nothing() {
    let (whole, lost) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(whole.path(), &plan(90), envs().as_mut()).unwrap();
    let (_, told) = run(lost.path(), &plan(90), &mut Losing { envs: envs(), answers: 0, lost: 71 }).unwrap();
    assert!(told.contains(&"lost".to_owned()));
    assert!(files(whole.path()) == files(lost.path()));
}

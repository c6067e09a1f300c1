//! Gymnasium environments in workers, compared with a plain Python loop.
#![allow(clippy::unwrap_used)]

use crate::common;

use album_envs::{ActionSpace, Answer, EnvPool, EnvSpec, Limits, Python, Suite, WorkerPool};
use common::{answers, python};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const LOOP: &str = include_str!("../data/gymnasium_episode.py");

fn spec(name: &str, args: &[&str]) -> EnvSpec {
    name.parse::<EnvSpec>().unwrap().with_args(args).unwrap()
}

fn open(python: &Python, name: &str, args: &[&str], workers: usize) -> WorkerPool {
    WorkerPool::new(Suite::gymnasium(&spec(name, args)), workers, python, Limits::default()).unwrap()
}

/// An action of a step: within the bounds or slightly beyond, or any index.
fn action(space: &ActionSpace, seed: u64, step: usize) -> Vec<f32> {
    match space {
        ActionSpace::Continuous { low, .. } => {
            common::action(seed, step, low.len()).iter().map(|x| 2.0 * x).collect()
        }
        ActionSpace::Discrete { n } => {
            let x = common::action(seed, step, 1)[0];
            vec![((x + 1.2) / 2.4 * *n as f32).floor().min(*n as f32 - 1.0)]
        }
    }
}

/// An episode as text: the bits of observations and rewards, and flags.
fn episode(pool: &mut WorkerPool, slot: usize, seed: u64) -> String {
    let space = pool.shape().actions.clone();
    let mut lines = vec![];
    let bits = |o: &[f32]| o.iter().map(|x| format!("{:08x}", x.to_bits())).collect::<String>();
    pool.reset(slot, seed, false).unwrap();
    loop {
        let mut over = false;
        for (from, answer) in answers(pool) {
            assert_eq!(from, slot);
            match answer {
                Answer::Started { observation, .. } => lines.push(bits(&observation)),
                Answer::Stepped(step) => {
                    over = step.terminated || step.truncated;
                    let flags = [step.terminated, step.truncated].map(u8::from);
                    let (reward, success) = (step.reward.to_bits(), step.success.map(u8::from));
                    let success = success.map_or("-".to_owned(), |s| s.to_string());
                    let observation = bits(&step.observation);
                    lines.push(format!("{reward:016x} {} {} {success} {observation}", flags[0], flags[1]));
                }
                Answer::Lost { reason } => panic!("{reason}"),
            }
        }
        if over {
            return lines.join("\n");
        }
        pool.step(slot, &action(&space, seed, lines.len() - 1)).unwrap();
    }
}

/// The same episode in a plain loop.
fn plain(
    python: &Python,
    name: &str,
    args: &[&str],
    seed: u64,
    space: &ActionSpace,
    length: usize,
) -> String {
    let actions: Vec<u8> =
        (0..length).flat_map(|step| action(space, seed, step)).flat_map(|x| x.to_le_bytes()).collect();
    let args = serde_json::to_string(spec(name, args).args()).unwrap();
    let mut command = python.command();
    command.args(["-c", LOOP, name, &args, &seed.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&actions).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn episodes_are_those_of_a_plain_loop() {
    let Some(python) = python() else { return };
    for (name, args, dim) in [
        ("gymnasium:Pendulum-v1", &["g=9.81"][..], 3),
        ("gymnasium:CartPole-v1", &[], 4),
        ("gymnasium:FrozenLake-v1", &["is_slippery=true", "map_name=8x8"], 64),
    ] {
        let mut pool = open(&python, name, args, 1);
        assert_eq!(pool.shape().observation_dim, dim);
        assert!(pool.versions().contains_key("gymnasium"));
        let space = pool.shape().actions.clone();
        for (slot, seed) in [(0, 3), (1, u64::MAX), (0, 3)] {
            let found = episode(&mut pool, slot, seed);
            let length = found.lines().count() - 1;
            assert_eq!(found, plain(&python, name, args, seed, &space, length), "{name}");
        }
    }
}

#[test]
fn spaces_are_reported() {
    let Some(python) = python() else { return };
    let pendulum = open(&python, "gymnasium:Pendulum-v1", &[], 1);
    let shape = pendulum.shape();
    assert_eq!(shape.actions, ActionSpace::Continuous { low: vec![-2.0], high: vec![2.0] });
    assert_eq!((shape.observation_dim, shape.horizon), (3, 200));
    shape.check_data("gymnasium:Pendulum-v1", 3, &ActionSpace::unit(1)).unwrap();
    let message = shape.check_data("gymnasium:Pendulum-v1", 4, &ActionSpace::unit(1)).unwrap_err();
    assert!(
        message
            .to_string()
            .contains("found observations of dimension 3, expected observations of dimension 4 as in the")
    );
    let message = shape.check_data("p", 3, &ActionSpace::Discrete { n: 2 }).unwrap_err();
    assert!(message.to_string().contains("continuous actions of dimension 1, expected 2 discrete actions"));
    let taxi = open(&python, "gymnasium:CliffWalking-v1", &["max_episode_steps=50"], 1);
    assert_eq!((taxi.shape().observation_dim, taxi.shape().horizon), (48, 50));
    assert_eq!(taxi.shape().actions, ActionSpace::Discrete { n: 4 });
}

/// A dictionary space with a tuple, a number and a categorical; steps draw from various random generators.
const OWN: &str = r#"
import random
import gymnasium
import numpy as np
from gymnasium import spaces
import helper

class Env(gymnasium.Env):
    def __init__(self, length=5):
        self.length = length
        self.observation_space = spaces.Dict({
            "z": spaces.Box(-9, 9, (2, 2)), "a": spaces.Discrete(3, start=-1),
            "m": spaces.Tuple((spaces.MultiBinary(2), spaces.MultiDiscrete([2, 3]))),
        })
        self.action_space = spaces.Box(np.array([[-1.0], [0.0]]), np.array([[1.0], [5.0]]), dtype=np.float64)

    def observe(self):
        z = np.array([[random.random(), np.random.rand()], [self.np_random.random(), self.t]])
        return {"z": z, "a": -1 + self.t % 3, "m": (np.array([1, 0]), np.array([1, 2]))}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        assert action.shape == (2, 1) and action.dtype == np.float64
        self.t += 1
        info = {"is_success": action[1, 0] == 5.0} if self.t == self.length else {}
        return self.observe(), helper.REWARD * action[0, 0], self.t == self.length, False, info

def make(**arguments):
    return Env(**arguments)
"#;

fn write(folder: &Path, name: &str, text: &str) -> String {
    std::fs::write(folder.join(name), text).unwrap();
    folder.join(name).display().to_string()
}

#[test]
fn files_and_nested_spaces() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "helper.py", "REWARD = 2\n");
    let file = write(folder.path(), "own.py", OWN);
    let mut pool = open(&python, &format!("{file}:make"), &["length=4"], 1);
    let actions = ActionSpace::Continuous { low: vec![-1.0, 0.0], high: vec![1.0, 5.0] };
    assert_eq!((pool.shape().observation_dim, &pool.shape().actions), (3 + 2 + 5 + 4, &actions));
    // Two episodes of one seed, interleaved with another seed: no generator is shared.
    let seeds = [7, 8];
    let run = |pool: &mut WorkerPool, order: &[usize]| {
        let mut seen: [Vec<Vec<f32>>; 2] = Default::default();
        let mut last = [None, None];
        for &slot in order {
            match seen[slot].len() {
                0 => pool.reset(slot, seeds[slot], false).unwrap(),
                _ => pool.step(slot, &[0.5, 9.0]).unwrap(),
            }
            let observation = match answers(pool).pop().unwrap().1 {
                Answer::Started { observation, .. } => observation,
                Answer::Stepped(step) => {
                    assert_eq!(step.reward, 1.0);
                    last[slot] = Some((step.terminated, step.success));
                    step.observation
                }
                Answer::Lost { reason } => panic!("{reason}"),
            };
            seen[slot].push(observation);
        }
        assert_eq!(last, [Some((true, Some(true))); 2]);
        seen
    };
    let alone = run(&mut pool, &[0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    let turns = run(&mut pool, &[0, 1, 1, 0, 0, 1, 0, 1, 1, 0]);
    assert_eq!(alone, turns);
    // `a` one-hot, then `m`, then `z` row by row.
    assert_eq!(alone[0][0][..10], [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    assert_ne!(alone[0][0], alone[1][0]);
}

/// The error for an invalid environment, at the start or in its first episode.
fn refusal(python: &Python, name: &str, args: &[&str]) -> String {
    match WorkerPool::new(Suite::gymnasium(&spec(name, args)), 1, python, Limits::default()) {
        Err(e) => e.to_string(),
        Ok(mut pool) => {
            pool.reset(0, 1, false).unwrap();
            loop {
                match pool.wait() {
                    Err(e) => break e.to_string(),
                    Ok(answers) if answers.is_empty() => {}
                    Ok(answers) => {
                        assert!(matches!(answers[0].1, Answer::Started { .. }), "{answers:?}");
                        pool.step(0, &vec![0.0; pool.shape().action_dim()]).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn bad_environments_are_named() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let has = |name: &str, args: &[&str], parts: &[&str]| {
        let message = refusal(&python, name, args);
        for part in parts {
            assert!(message.contains(part), "no `{part}` in: {message}");
        }
    };
    has(
        "gymnasium:Pendulun-v1",
        &[],
        &["gymnasium:Pendulun-v1: found no environment", "did you mean `Pendulum-v1`"],
    );
    has("gymnasium:Pendulum-v9", &[], &["did you mean `Pendulum-v1`"]);
    has(
        "gymnasium:no_such_module:Pendulum-v1",
        &[],
        &["found no environment of this id", "album setup gymnasium"],
    );
    has(
        "gymnasium:Pendulum-v1",
        &["gravity=3"],
        &["cannot be made", "unexpected keyword argument 'gravity'"],
    );
    let missing = folder.path().join("none.py").display().to_string();
    has(&format!("{missing}:make"), &[], &["none.py:make: found no such file"]);
    write(folder.path(), "helper.py", "REWARD = 2\n");
    // A change to the valid file, and the expected message.
    for (number, (from, to, part)) in [
        ("import helper", "raise ValueError('boom')", "FILE:6: ValueError: boom"),
        ("import helper", "def broken(:", "FILE:6: SyntaxError"),
        ("import helper", "import nowhere", "nowhere"),
        ("def make", "def build", "found no function `make` in the file; it has Env, build"),
        ("return Env(**arguments)", "return 3", "found an object of type int without observation_space"),
        ("self.t = 0\n", "raise OSError('no plant')\n", "failed in reset: FILE:23: OSError: no plant"),
        ("self.t += 1\n", "self.t += 1 / 0\n", "failed in step: FILE:28: ZeroDivisionError"),
        ("self.t]]", "np.nan]]", "found nan as number 13 of an observation"),
        ("[self.np_random", "[1, self.np_random", "inhomogeneous"),
        ("\"z\": z,", "\"z\": z[0],", "found observation['z'] of shape (2,), expected (2, 2)"),
        ("\"a\": -1", "\"a\": 7", "found 7 in observation['a'], expected -1 to 1"),
        ("helper.REWARD * action[0, 0]", "np.inf", "found inf as the reward"),
        ("self.t == self.length, False, info", "False, info", "step returned 4 values, expected (obs"),
        ("return self.observe(), {}", "return self.observe()", "reset returned dict, expected (obs"),
        ("dtype=np.float64)", "dtype=np.int64)", "found actions of type int64"),
        (
            "self.action_space = ",
            "self.action_space = spaces.MultiBinary(3) #",
            "found actions of kind MultiBinary",
        ),
        ("\"a\": spaces.Discrete(3, start=-1)", "\"a\": spaces.Text(3)", "observation['a'] of kind Text"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(OWN.contains(from), "{from}");
        let file = write(folder.path(), &format!("bad{number}.py"), &OWN.replacen(from, to, 1));
        has(&format!("{file}:make"), &[], &[&part.replace("FILE", &file)]);
    }
}

#[test]
fn a_worker_that_dies_loses_its_episode_only() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "helper.py", "REWARD = 2\n");
    let dying = OWN.replacen("self.t += 1\n", "import os; os._exit(7)\n", 1);
    let file = write(folder.path(), "dying.py", &dying);
    let mut pool = open(&python, &format!("{file}:make"), &[], 1);
    pool.reset(0, 1, false).unwrap();
    assert!(matches!(answers(&mut pool)[..], [(0, Answer::Started { .. })]));
    pool.step(0, &[0.0, 0.0]).unwrap();
    let found = answers(&mut pool);
    let [(0, Answer::Lost { reason })] = &found[..] else { panic!("{found:?}") };
    assert!(reason.contains("exit status: 7"), "{reason}");
    pool.reset(0, 1, false).unwrap();
    assert!(matches!(answers(&mut pool)[..], [(0, Answer::Started { .. })]));
}

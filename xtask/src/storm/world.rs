//! The disturbed commands, and the files that must be the same in the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use crate::target;

/// A small log: a point on a line, pushed at random.
fn log(path: &Path, discrete: bool) -> Result<(), String> {
    let mut random = super::Random(7);
    let mut text = String::from("episode,obs_0,obs_1,action_0,reward,terminated\n");
    for episode in 0..24 {
        let (mut x, mut v) = (random.below(2000) as f64 / 1000.0 - 1.0, 0.0);
        for step in 0..20 {
            let push = random.below(2001) as f64 / 1000.0 - 1.0;
            let action = if discrete { f64::from(push > 0.0) } else { push };
            text += &format!("{episode},{x:.4},{v:.4},{action},{:.4},{}\n", -x.abs(), u8::from(step == 19));
            v = 0.9 * v + 0.1 * if discrete { push.signum() } else { push };
            x = (x + v).clamp(-1.0, 1.0);
        }
    }
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// An environment for those policies, in a worker process.
const ENVIRONMENT: &str = r#"import gymnasium
import numpy as np


class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.steps = self.np_random.uniform(-1, 1, 2), 0
        return self.state.astype(np.float32), {}

    def step(self, action):
        self.steps += 1
        self.state = np.clip(self.state + [0.1 * self.state[1], 0.1 * float(action[0])], -2, 2)
        return self.state.astype(np.float32), -abs(float(self.state[0])), False, self.steps >= 20, {}


def line():
    return Line()
"#;

/// Trains in Python and keeps the run. A saved run is complete, even if its process was killed afterwards.
const FIT: &str = r#"import os
import sys
if os.path.exists(sys.argv[2]):
    sys.exit(0)
import album_rl as al
data = al.Dataset.load(sys.argv[1])
agent = al.Iql(seed=3, hidden=(8, 8), batch_size=8).fit(data, steps=400, holdout=0.3, threads=1)
if agent.finished:
    agent.save(sys.argv[2])
else:
    sys.exit(75)
"#;

/// Files by their names within a place.
pub type State = BTreeMap<String, Vec<u8>>;

/// How a command is completed after an interruption.
enum Again {
    /// With `album resume`.
    Resume,
    /// By repeating it.
    Repeat,
}

/// A command and its results.
pub struct World {
    pub name: String,
    program: PathBuf,
    /// Arguments, where `{}` is the place.
    args: Vec<String>,
    again: Again,
    /// The initial contents of the place: the final state of another world, created on first use.
    with: Option<(Rc<World>, PathBuf)>,
    environment: Vec<(String, PathBuf)>,
}

/// All worlds that can run here, and why the others cannot.
pub fn all(folder: &Path, album: &Path) -> Result<(Vec<World>, Vec<String>), String> {
    let (continuous, discrete) = (folder.join("log.csv"), folder.join("choices.csv"));
    log(&continuous, false)?;
    log(&discrete, true)?;
    let environment = folder.join("line.py");
    fs::write(&environment, ENVIRONMENT).map_err(|e| e.to_string())?;
    let cache = folder.join("cache");
    let world = |name: &str, args: &[&str]| World {
        name: name.to_owned(),
        program: album.to_path_buf(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        again: Again::Repeat,
        with: None,
        environment: vec![("ALBUM_CACHE".into(), cache.clone()), ("XDG_CACHE_HOME".into(), cache.clone())],
    };
    let train = |name: &str, problem: &[&str], more: &[&str]| {
        let usual = ["--threads", "1", "--out", "{}/run"];
        let set = ["log_every=10", "save_every=10", "hidden=[8, 8]", "batch_size=8"];
        let set: Vec<&str> = set.iter().flat_map(|pair| ["--set", pair]).collect();
        let args = [&["train"][..], problem, &usual[..], &set, more].concat();
        World { again: Again::Resume, ..world(name, &args) }
    };
    let path = |path: &Path| path.display().to_string();
    let own = ["--data", &path(&continuous)];
    let mut worlds = Vec::new();
    for agent in agents(album)? {
        worlds.push(train(&agent, &own, &["--agent", &agent, "--steps", "200", "--holdout", "0.3"]));
    }
    let choices = ["--data", &path(&discrete), "--actions", "discrete", "--steps", "200"];
    worlds.push(train("album-choices", &choices, &["--keep", "best", "--holdout", "0.2"]));
    let evaluated = ["--set", "eval_every=60", "--set", "eval_episodes=2"];
    worlds.push(train("pointmaze", &["--steps", "120"], &evaluated));
    worlds.push(train("mudworld", &["mudworld", "--steps", "120"], &evaluated));
    let mut skipped = Vec::new();
    match python("ALBUM_PYTHON", "python-ogbench", "gymnasium") {
        Ok(python) => {
            let place = format!("{}:line", path(&environment));
            let problem = [&own[..], &["--env", &place, "--workers", "1", "--steps", "60"]].concat();
            let mut world =
                train("worker", &problem, &["--set", "eval_every=30", "--set", "eval_episodes=2"]);
            world.environment.push(("ALBUM_PYTHON".into(), python));
            worlds.push(world);
        }
        Err(reason) => skipped.push(format!("worker environments: {reason}")),
    }
    match python("ALBUM_WHEEL_PYTHON", "python-wheel", "album_rl") {
        Ok(python) => {
            let fit = ["-c", FIT, &path(&continuous), "{}/run"];
            worlds.push(World { program: python, ..world("python-fit", &fit) });
        }
        Err(reason) => skipped.push(format!("Python's fit: {reason}")),
    }
    // Few steps, but everything that a run does: logs, replaced and removed checkpoints, the end.
    let few =
        ["--agent", "bc", "--steps", "6", "--set", "log_every=2", "--set", "save_every=2", "--set", "keep=1"];
    worlds.push(train("power-train", &own, &few));
    let import = ["data", "import", &path(&continuous), "--out", "{}/log.columns", "--force"];
    worlds.push(world("import", &import));
    // Commands on an existing run.
    let trained = Rc::new(train("own", &own, &["--agent", "iql", "--steps", "100", "--holdout", "0.3"]));
    let walked = Rc::new(train("walked", &["--steps", "20"], &["--set", "eval_episodes=2"]));
    let on = |base: &Rc<World>, name: &str, args: &[&str]| World {
        with: Some((base.clone(), folder.join(&base.name))),
        ..world(name, args)
    };
    worlds.push(on(&walked, "report", &["report", "{}/run", "--out", "{}/page"]));
    let on_run = |name: &str, args: &[&str]| on(&trained, name, args);
    worlds.push(on_run("fqe", &["fqe", "{}/run", "--updates", "200", "--threads", "1"]));
    let out = ["--out", "{}/policy.safetensors"];
    worlds.push(on_run("export", &[&["export", "{}/run", "--format", "safetensors"][..], &out].concat()));
    Ok((worlds, skipped))
}

fn agents(album: &Path) -> Result<Vec<String>, String> {
    let said = Command::new(album).arg("agents").output().map_err(|e| format!("{}: {e}", album.display()))?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let names: Vec<String> = text
        .lines()
        .skip(2)
        .map_while(|line| line.split("  ").next().filter(|name| !name.is_empty() && !name.contains(' ')))
        .map(str::to_owned)
        .collect();
    if names.len() < 18 {
        Err(format!("storm: found the agents {names:?}, expected at least 18"))
    } else {
        Ok(names)
    }
}

/// An interpreter with a module.
fn python(variable: &str, folder: &str, module: &str) -> Result<PathBuf, String> {
    let usual = target().join(folder).join("bin/python");
    let python = std::env::var_os(variable).map_or(usual, PathBuf::from);
    let import = format!("import {module}");
    match Command::new(&python).args(["-c", &import]).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(python),
        _ => Err(format!("{} has no module {module}; `cargo xtask test` makes it", python.display())),
    }
}

impl World {
    /// Creates the place.
    pub fn prepare(&self, place: &Path) -> Result<(), String> {
        fs::create_dir_all(place).map_err(|e| format!("{}: {e}", place.display()))?;
        let Some((base, made)) = &self.with else { return Ok(()) };
        if !made.exists() {
            base.prepare(made)?;
            let output = base.begin(made).output().map_err(|e| format!("{}: {e}", base.name))?;
            if !output.status.success() {
                return Err(format!("no run to judge: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        copy(made, place)
    }

    fn command(&self, args: &[String], place: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args.iter().map(|arg| arg.replace("{}", &place.display().to_string())));
        for (key, value) in &self.environment {
            command.env(key, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(place);
        command
    }

    /// The initial command.
    pub fn begin(&self, place: &Path) -> Command {
        self.command(&self.args, place)
    }

    /// The command that a user gives after an interruption.
    pub fn go_on(&self, place: &Path) -> Command {
        let run = place.join("run");
        match self.again {
            Again::Resume if run.join("config.toml").exists() => {
                let resume = ["resume", "{}/run", "--threads", "1"].map(str::to_owned);
                self.command(&resume, place)
            }
            _ => self.begin(place),
        }
    }

    /// Whether it is `album` itself, with album's exit codes.
    pub fn is_album(&self) -> bool {
        self.program.ends_with("album")
    }

    /// Whether the command saves its state when stopped.
    pub fn saves(&self) -> bool {
        matches!(self.again, Again::Resume)
    }

    /// The files that depend neither on the clock nor on the place.
    pub fn state(&self, place: &Path) -> Result<State, String> {
        let mut state = State::new();
        gather(place, place, &mut state)?;
        // A signal saves at its own step: only the last checkpoint is the same in every run.
        let step = |name: &str| Some(name.split_once("checkpoints/")?.1.split('/').next()?.to_owned());
        let last = state.keys().filter_map(|name| step(name)).max();
        state.retain(|name, _| step(name).is_none() || step(name) == last);
        Ok(state)
    }

    /// Refuses a final state that differs from the undisturbed one.
    pub fn same(&self, calm: &State, place: &Path) -> Result<(), String> {
        let found = self.state(place)?;
        for (name, bytes) in calm {
            match found.get(name) {
                None => return Err(format!("{name} is missing")),
                Some(found) if found != bytes => return Err(format!("{name} differs")),
                Some(_) => {}
            }
        }
        match found.keys().find(|name| !calm.contains_key(*name) && !is_leftover(name)) {
            Some(more) => Err(format!("{more} is left, which an undisturbed run does not have")),
            None => Ok(()),
        }
    }

    /// Refuses partial files after an interruption, for commands that replace whole files.
    pub fn whole(&self, calm: &State, place: &Path) -> Result<(), String> {
        if self.saves() {
            return Ok(()); // logs grow; only the end counts
        }
        let found = self.state(place)?;
        let written = |name: &String| !name.starts_with("run/");
        let torn = found.iter().filter(|(name, _)| written(name) && !is_leftover(name));
        let torn = torn.filter(|(name, bytes)| calm.get(*name).is_some_and(|whole| whole != *bytes));
        match torn.map(|(name, _)| name).next() {
            Some(name) => Err(format!("{name} is there, but not whole")),
            None => Ok(()),
        }
    }
}

/// Temporary files of killed processes: removed by age, not by the next process.
fn is_leftover(name: &str) -> bool {
    name.split('/').any(|part| part.starts_with('.') && part.ends_with(".tmp"))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    for entry in fs::read_dir(from).map_err(|e| format!("{}: {e}", from.display()))?.flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).map_err(|e| e.to_string())?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

fn gather(root: &Path, folder: &Path, state: &mut State) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if path.is_dir() {
            gather(root, &path, state)?;
        } else if let Some(bytes) = timeless(&name, &path)? {
            state.insert(name, bytes);
        }
    }
    Ok(())
}

/// The contents of a file without times; `None` if it contains nothing else.
fn timeless(name: &str, path: &Path) -> Result<Option<Vec<u8>>, String> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let clocks = ["timing.csv", "run.lock", "manifest.json", "SHA256SUMS"];
    let of_run = name.starts_with("run/");
    // Events and a checkpoint's manifest contain times; the weights are in agent.safetensors.
    if (of_run && clocks.contains(&file)) || file.starts_with("events.out") {
        return Ok(None);
    }
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if file.ends_with(".html") {
        // A page contains times, too: it must only be complete.
        return Ok(Some(bytes.trim_ascii_end().ends_with(b"</html>").to_string().into_bytes()));
    }
    if !file.ends_with(".json") && !file.ends_with(".toml") {
        return Ok(Some(bytes));
    }
    let timed =
        ["\"ms_per_step\"", "\"wall_seconds\"", "\"eval_seconds\"", "\"seconds\"", "\"train_seconds\""];
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let kept = text.lines().filter(|line| !timed.iter().any(|key| line.contains(key)));
    Ok(Some(kept.collect::<Vec<_>>().join("\n").into_bytes()))
}

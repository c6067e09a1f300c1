//! Builds studies from run directories alone: runs compared with each other and with the published numbers.

use crate::estimate;
use crate::experiment::{Protocol, Source};
use crate::own::{self, OwnRun};
use crate::plan::shell;
use crate::published::{Published, PublishedRow};
use crate::reference::{methods, same_setting};
use crate::results::Results;
use crate::studies;
use crate::study::{Arm, Run, Study};
use album::run::read_config;
use album::{Error, Overrides, Problem, RunConfig, config};
use album_agents::AGENTS;
use album_data::ogbench::TaskName;
use album_train::Records;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Depth of the search for run directories.
const DEPTH: usize = 4;
/// Not searched: it may have many entries and contains no runs.
const CHECKPOINTS: &str = "checkpoints";

/// The result of [`collect`].
#[derive(Debug)]
pub struct Collection {
    /// One study for each experiment of a results folder, and one for all other runs on tasks.
    pub studies: Vec<Study>,
    /// Runs on other data.
    pub own: Vec<OwnRun>,
    /// Runs that were skipped.
    pub skipped: Vec<Skipped>,
}

/// A run that is in no study.
#[derive(Debug, Serialize)]
pub struct Skipped {
    /// Its directory.
    pub run: PathBuf,
    /// Why it was skipped.
    pub reason: String,
}

impl Collection {
    /// Number of runs in all studies, and how many are finished.
    pub fn count(&self) -> (usize, usize) {
        let own = (self.own.len(), self.own.iter().filter(|run| run.finished()).count());
        let tallies = self.studies.iter().map(Study::tally);
        tallies.fold(own, |(runs, done), tally| (runs + tally.planned, done + tally.done))
    }

    /// Number of variants compared: agents with their settings, per study and dataset.
    pub fn variants(&self) -> usize {
        let of_studies: usize = self.studies.iter().map(|study| estimate::variants(study).len()).sum();
        of_studies + own::groups(&self.own).len()
    }
}

/// Finds the runs in some folders; `command` is the command shown in the report.
pub fn collect(folders: &[PathBuf], command: String) -> Result<Collection, Error> {
    let mut places = BTreeSet::new();
    let mut studies = Vec::new();
    for folder in folders {
        if Results::is_one(folder) {
            studies.extend(studies::all(folder)?);
        }
        let found = find(folder, 0)?;
        if found.is_empty() {
            return Err(Error::Load(format!(
                "{}: no run directory (one with a config.toml) here or up to {DEPTH} folders below",
                folder.display()
            )));
        }
        places.extend(found);
    }
    // Runs of an experiment are in its study; the rest form one more.
    for run in studies.iter().flat_map(|study| &study.arms).flat_map(|arm| &arm.runs) {
        if let Ok(path) = run.path.canonicalize() {
            places.remove(&path);
        }
    }
    let (mut found, mut own, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for place in places {
        let read = read_config(&place).and_then(|config| match &config.problem {
            Problem::Ogbench(task) => {
                let task = task.with_number(task.task());
                found.push(Found::read(&place, config, task)?);
                Ok(())
            }
            _ => {
                own.push(OwnRun::new(&place, config)?);
                Ok(())
            }
        });
        if let Err(error) = read {
            skipped.push(Skipped { run: place, reason: error.to_string() });
        }
    }
    if !found.is_empty() {
        studies.push(study(found, command, &mut skipped)?);
    }
    Ok(Collection { studies, own, skipped })
}

/// The run directories in a folder. Run directories themselves are not searched.
fn find(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, Error> {
    if folder.join("config.toml").is_file() {
        return Ok(vec![folder.canonicalize().map_err(Error::io(folder))?]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        if depth < DEPTH && path.is_dir() && !path.ends_with(CHECKPOINTS) {
            found.extend(find(&path, depth + 1)?);
        }
    }
    Ok(found)
}

/// A run and the settings that distinguish it.
struct Found {
    path: PathBuf,
    config: RunConfig,
    /// The task, with its explicit number.
    task: TaskName,
    /// Settings that affect results and differ from the agent's preset for the task, as `key=value`.
    differs: BTreeMap<String, String>,
    /// The command that reproduces it.
    command: String,
    records: Records,
}

impl Found {
    fn read(path: &Path, config: RunConfig, task: TaskName) -> Result<Found, Error> {
        let records = Records::read(path)?;
        let (problem, agent) = (Some(task.into()), Some(config.agent.clone()));
        let preset = config::resolve(&Overrides { problem, agent, ..Overrides::default() })?.config;
        let mut differs: BTreeMap<String, String> = (config.settings.iter())
            .filter(|(key, value)| preset.settings.get(*key) != Some(value))
            .map(|(key, value)| (key.clone(), value.to_string()))
            .collect();
        if config.train.steps != preset.train.steps {
            differs.insert("steps".into(), config.train.steps.to_string());
        }
        let mut command = format!("album train {task} --agent {} --seed {}", config.agent, config.seed);
        let (ours, theirs) = (&config.train, &preset.train);
        let schedule = [
            ("eval_every", ours.eval_every, theirs.eval_every),
            ("eval_episodes", ours.eval_episodes as u64, theirs.eval_episodes as u64),
        ];
        let schedule = schedule.iter().filter(|(_, ours, theirs)| ours != theirs);
        let schedule = schedule.map(|(key, ours, _)| format!("{key}={ours}"));
        for pair in differs.iter().map(|(key, value)| format!("{key}={value}")).chain(schedule) {
            command.push_str(&format!(" --set {}", shell(&pair)));
        }
        if config.violated_boundedness()?.is_some() {
            command.push_str(" --allow-unbounded");
        }
        if let Some(data) = &config.data {
            let name = data.file_name().unwrap_or(data.as_os_str()).to_string_lossy().into_owned();
            command.push_str(&format!(" --data {name}"));
            // The official file in another folder is still the official data.
            if name != task.dataset_file() {
                differs.insert("data".into(), name);
            }
        }
        Ok(Found { path: path.to_path_buf(), config, task, differs, command, records })
    }

    /// Sort key: agents in the order of `album agents`, then settings, tasks and seeds.
    fn order(&self) -> (usize, &BTreeMap<String, String>, String, u64) {
        let agent = AGENTS.iter().position(|kind| kind.name == self.config.agent);
        (agent.unwrap_or(usize::MAX), &self.differs, self.task.to_string(), self.config.seed)
    }

    /// Its setting in the published tables. The paper does not cover PointMaze, so budgets do not matter
    /// there.
    fn published_setting(&self, method: &str, published: &Published) -> String {
        let mut differs = self.differs.clone();
        if self.task.environment().point_maze().is_some() {
            differs.remove("steps");
        }
        let rows = published.tables().flat_map(|table| published.rows(table).unwrap_or_default());
        let same = |row: &&PublishedRow| {
            let known: BTreeSet<&str> = row.settings().map(|pair| pair.0).collect();
            row.method == method
                && differs.keys().all(|key| known.contains(key.as_str()))
                && row.settings().all(|(key, value)| self.has(key, value))
        };
        // The published row with the fewest settings is the method's default.
        match rows.filter(same).min_by_key(|row| row.settings().count()) {
            Some(row) => row.setting.clone(),
            None => joined(&differs, "=", ";"),
        }
    }

    fn has(&self, key: &str, value: &str) -> bool {
        let own = match key {
            "steps" => Some(self.config.train.steps.to_string()),
            key => self.config.settings.get(key).map(ToString::to_string),
        };
        own.is_some_and(|own| same_setting(&format!("x={own}"), &format!("x={value}")))
    }
}

fn joined(pairs: &BTreeMap<String, String>, equals: &str, between: &str) -> String {
    pairs.iter().map(|(key, value)| format!("{key}{equals}{value}")).collect::<Vec<_>>().join(between)
}

/// One study of all runs, with a variant for each agent and its settings.
fn study(mut found: Vec<Found>, command: String, skipped: &mut Vec<Skipped>) -> Result<Study, Error> {
    let published = Published::load().map_err(|e| Error::Numerical(e.to_string()))?;
    let methods = methods();
    found.sort_by(|a, b| a.order().cmp(&b.order()).then_with(|| a.path.cmp(&b.path)));
    // Settings shared by all runs distinguish nothing.
    let mut common = found.first().map_or_else(BTreeMap::new, |first| first.differs.clone());
    common.retain(|key, value| found.iter().all(|run| run.differs.get(key) == Some(value)));
    let mut arms: Vec<Arm> = Vec::new();
    let mut metrics = vec!["success".to_owned()];
    for run in found {
        let method = methods.get(&run.config.agent).cloned().unwrap_or_else(|| run.config.agent.clone());
        let mut apart = run.differs.clone();
        apart.retain(|key, _| !common.contains_key(key));
        let label = match joined(&apart, " = ", ", ") {
            settings if settings.is_empty() => method.clone(),
            settings => format!("{method}, {settings}"),
        };
        let setting = run.published_setting(&method, &published);
        let task = run.task.to_string();
        if run.records.result.as_ref().is_some_and(|result| result.learned_values.is_some())
            && metrics.len() == 1
        {
            metrics.extend(["v_max", "v_mean", "v_min", "g_b_satisfied"].map(str::to_owned));
        }
        let place = match arms.iter().position(|arm| arm.label == label && arm.task == task) {
            Some(place) => place,
            None => {
                let (baseline, at, source, runs) = (None, None, Source::Agent, Vec::new());
                arms.push(Arm { label, method, setting, task, baseline, at, source, runs });
                arms.len() - 1
            }
        };
        let arm = &mut arms[place];
        let seed = run.config.seed;
        if let Some(twin) = arm.runs.iter().find(|twin| twin.seed == seed) {
            let reason = format!("{} is the same run (seed {seed})", twin.path.display());
            skipped.push(Skipped { run: run.path, reason });
            continue;
        }
        let (records, failure) = (Some(run.records), None);
        arm.runs.push(Run { seed, path: run.path, command: run.command, records, failure });
    }
    Ok(Study {
        name: "runs".into(),
        title: "Runs side by side".into(),
        question: match joined(&common, " = ", ", ") {
            settings if settings.is_empty() => String::new(),
            settings => format!("All runs differ from their agents' presets by {settings}."),
        },
        reference: String::new(),
        scale: None,
        published: None,
        protocol: Protocol::Final,
        metrics,
        value_maps: false,
        command,
        arms,
        outputs: None,
    })
}

//! Expands an experiment into runs with stable identifiers.

use crate::experiment::{Command, Experiment, PresetName, Scale, Selection, Spec, environment};
use album::{Error, Location, Overrides, Problem, Resources, RunConfig, config};
use album_data::Source;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// An experiment, or a part of it, by name: the input of a plan, small enough for a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The argument of [`Experiment::find`].
    pub experiment: String,
    /// The budget.
    pub scale: Scale,
    /// The selected part.
    pub selection: Selection,
}

impl Request {
    /// Expands the request.
    pub fn plan(&self) -> Result<Plan, Error> {
        Plan::new(Experiment::find(&self.experiment)?, self.scale, &self.selection)
    }
}

/// The runs of an experiment.
#[derive(Debug)]
pub struct Plan {
    /// The experiment.
    pub experiment: Experiment,
    /// Its scale.
    pub scale: Scale,
    /// Every run once, even if several arms share it.
    pub runs: Vec<PlannedRun>,
    /// The arms' runs, each with its index in `runs`.
    pub specs: Vec<(Spec, usize)>,
}

/// A run of a plan.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// Readable, and unique by the content of the run: two experiments with the same run share it.
    pub id: String,
    /// What the run does.
    pub work: Work,
}

/// The work of a run.
#[derive(Clone, Debug)]
pub enum Work {
    /// Trains an agent.
    Train {
        /// The resolved configuration, which the seeds of a cell share: thousands of copies would take longer than
        /// the rest of a plan.
        cell: Arc<RunConfig>,
        /// The seed of this run, in place of the one in `cell`.
        seed: u64,
        /// Whether the boundedness condition may be violated.
        allow_unbounded: bool,
    },
    /// Runs a command, with its files in the folder of the run.
    Command(Command),
}

impl PlannedRun {
    /// Gradient steps, for progress; a command counts as one.
    pub fn steps(&self) -> u64 {
        match &self.work {
            Work::Train { cell, .. } => cell.train.steps,
            Work::Command(_) => 1,
        }
    }

    /// The equivalent command line.
    pub fn command(&self, spec: Option<&Spec>) -> String {
        match (&self.work, spec) {
            (Work::Command(command), _) => command.line(&self.id),
            (Work::Train { .. }, Some(spec)) => {
                let mut command =
                    format!("album train {} --agent {} --seed {}", spec.task, spec.agent, spec.seed);
                match spec.preset {
                    Some(PresetName::Paper) => command.push_str(" --preset paper"),
                    Some(PresetName::Small) => command.push_str(" --preset small"),
                    None => {}
                }
                for pair in &spec.set {
                    command.push_str(&format!(" --set {}", shell(pair)));
                }
                if let Some(data) = &spec.data {
                    command.push_str(&format!(" --data {}", shell(&data.display().to_string())));
                }
                if spec.allow_unbounded {
                    command.push_str(" --allow-unbounded");
                }
                command
            }
            (Work::Train { cell, .. }, None) => format!("album train {}", cell.problem),
        }
    }
}

/// The configuration of one run of a cell.
pub(crate) fn with_seed(cell: &RunConfig, seed: u64) -> RunConfig {
    RunConfig { seed, ..cell.clone() }
}

/// A shell word, quoted if necessary.
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

impl Plan {
    /// Expands a part of an experiment.
    pub fn new(experiment: Experiment, scale: Scale, selection: &Selection) -> Result<Self, Error> {
        let mut plan = Plan { scale, runs: Vec::new(), specs: Vec::new(), experiment };
        if let Some(command) = plan.experiment.grid(scale).command.clone() {
            let id = format!("{}-{scale}-{}", plan.experiment.name, digest([command.line("{out}")]));
            plan.runs.push(PlannedRun { id, work: Work::Command(command) });
            return Ok(plan);
        }
        let mut places: HashMap<String, usize> = HashMap::new();
        // Resolving thousands of runs takes longer than looking at them, and the seeds of a cell differ in nothing else.
        let mut cells: HashMap<(usize, String), GridCell> = HashMap::new();
        for spec in plan.experiment.select(scale, selection)? {
            let cell = match cells.entry((spec.variant, spec.task.to_string())) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(GridCell::resolve(&spec).map_err(|error| match error {
                    Error::Config(reason) => {
                        let label = &plan.experiment.variants[spec.variant].label;
                        Error::Config(format!("experiment {}, `{label}`: {reason}", plan.experiment.name))
                    }
                    other => other,
                })?),
            };
            let id = format!(
                "{}-{}-task{}-seed{}-{}",
                spec.agent,
                environment(&spec.task),
                spec.task.task(),
                spec.seed,
                digest([&cell.before_seed, &spec.seed.to_string(), &cell.after_seed])
            );
            let place = *places.entry(id.clone()).or_insert_with(|| {
                let (cell, allow_unbounded) = (cell.config.clone(), spec.allow_unbounded);
                let work = Work::Train { cell, seed: spec.seed, allow_unbounded };
                plan.runs.push(PlannedRun { id, work });
                plan.runs.len() - 1
            });
            plan.specs.push((spec, place));
        }
        Ok(plan)
    }

    /// The name of the report folder, e.g. `k-sweep-small`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.experiment.name, self.scale)
    }

    /// Finds a run by its identifier.
    pub fn find(&self, id: &str) -> Result<&PlannedRun, Error> {
        self.runs.iter().find(|run| run.id == id).ok_or_else(|| {
            Error::Config(format!(
                "{} has no run `{id}`; `album reproduce {} --scale {} --dry-run` lists them",
                self.name(),
                shell(&self.experiment.argument),
                self.scale
            ))
        })
    }

    /// Refuses tasks without data and environments that cannot be created, before anything starts. Records no
    /// data.
    pub fn check(&self, python: Option<&Path>) -> Result<(), Error> {
        let mut missing = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (spec, _) in &self.specs {
            if !seen.insert((spec.task.dataset_name(), spec.data.clone())) {
                continue;
            }
            let problem = Problem::from(spec.task);
            match problem.locate(spec.data.as_deref()) {
                Ok(Location::Found(path)) if !path.exists() => {
                    return Err(Error::io(&path)(std::io::ErrorKind::NotFound.into()));
                }
                Ok(_) => {}
                Err(Error::Config(_)) => {
                    missing.insert(problem.how_to_get());
                }
                Err(other) => return Err(other),
            }
        }
        if !missing.is_empty() {
            let commands: Vec<String> = missing.into_iter().collect();
            return Err(Error::Config(format!(
                "{} needs data that is not here; nothing was started. Get it with\n    {}\nor choose tasks with --tasks",
                self.name(),
                commands.join("\n    ")
            )));
        }
        let resources = Resources { python: python.map(Path::to_path_buf), ..Resources::default() };
        self.specs.iter().try_for_each(|(spec, _)| Problem::from(spec.task).check_environments(&resources))
    }
}

/// What the seeds of a variant and a task share.
struct GridCell {
    config: Arc<RunConfig>,
    /// The configuration as TOML, which names a run, is written once and cut at the seed.
    before_seed: String,
    after_seed: String,
}

impl GridCell {
    fn resolve(spec: &Spec) -> Result<Self, Error> {
        let config = resolve(spec)?;
        // Independent of where the experiment is run.
        let text = RunConfig { data: spec.data.clone(), ..config.clone() }.to_toml()?;
        let (before, after) = text
            .split_once(&format!("\nseed = {}\n", spec.seed))
            .ok_or_else(|| Error::Config("the configuration names no seed".into()))?;
        let (before_seed, after_seed) = (format!("{before}\nseed = "), format!("\n{after}"));
        Ok(GridCell { config: Arc::new(config), before_seed, after_seed })
    }
}

/// The configuration of a run: that of `album train` with the same settings.
fn resolve(spec: &Spec) -> Result<RunConfig, Error> {
    let overrides = Overrides {
        problem: Some(Problem::from(spec.task)),
        seed: Some(spec.seed),
        data: spec.data.as_deref().map(Source::of),
        agent: Some(spec.agent.clone()),
        preset: spec.preset.map(Into::into),
        set: spec.set.clone(),
        ..Overrides::default()
    };
    Ok(config::resolve(&overrides)?.config)
}

/// The first 40 bits of the SHA-256: among a thousand runs, the chance of a collision is below one in a
/// million.
fn digest(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    album_base::hex::hex(&hash.finalize()[..5])
}

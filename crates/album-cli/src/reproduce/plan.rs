//! From an experiment to runs with stable identifiers.

use album::Error as Failure;
use album::config::{self, RunConfig};
use album::{Location, Overrides, Preset, Problem, Resources};
use album_experiments::{Experiment, Scale, Selection, Spec, environment};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::Path;

/// What is to be done.
pub struct Plan {
    /// The experiment.
    pub experiment: Experiment,
    /// Its scale.
    pub scale: Scale,
    /// Every run once, whatever number of cells it serves.
    pub runs: Vec<Planned>,
    /// The cells' runs, each with its place in `runs`.
    pub specs: Vec<(Spec, usize)>,
}

/// One run.
pub struct Planned {
    /// Readable, and unique by the content of what is run: two experiments with the same run share it.
    pub id: String,
    /// What is run.
    pub work: Work,
}

/// What is run.
pub enum Work {
    /// A training run.
    Train {
        /// Its resolved configuration.
        config: Box<RunConfig>,
        /// Whether the boundedness condition may be violated.
        allow_unbounded: bool,
    },
    /// A command of album; `{out}` is the folder of the run.
    Command(Vec<String>),
}

impl Planned {
    /// Gradient steps, for progress; a command counts as one.
    pub fn steps(&self) -> u64 {
        match &self.work {
            Work::Train { config, .. } => config.train.steps,
            Work::Command(_) => 1,
        }
    }

    /// The command that does the same by itself.
    pub fn command(&self, spec: Option<&Spec>) -> String {
        match (&self.work, spec) {
            (Work::Command(args), _) => format!("album {}", args.join(" ").replace("{out}", &self.id)),
            (Work::Train { config, .. }, Some(spec)) => {
                let mut command =
                    format!("album train {} --agent {} --seed {}", spec.task, spec.agent, spec.seed);
                for pair in &spec.set {
                    command.push_str(&format!(" --set {}", shell(pair)));
                }
                if let Some(data) = &config.data {
                    command.push_str(&format!(" --data {}", shell(&data.display().to_string())));
                }
                if spec.allow_unbounded {
                    command.push_str(" --allow-unbounded");
                }
                command
            }
            (Work::Train { config, .. }, None) => format!("album train {}", config.problem),
        }
    }
}

/// Quoted where a shell would read more than a word.
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

impl Plan {
    /// Expands a part of an experiment.
    pub fn new(experiment: Experiment, scale: Scale, selection: &Selection) -> Result<Self, Failure> {
        let mut plan = Plan { scale, runs: Vec::new(), specs: Vec::new(), experiment };
        let command = plan.experiment.grid(scale).command.clone();
        if !command.is_empty() {
            let id = format!("{}-{scale}-{}", plan.experiment.name, digest(&command.join("\n")));
            plan.runs.push(Planned { id, work: Work::Command(command) });
            return Ok(plan);
        }
        for spec in plan.experiment.select(scale, selection)? {
            let config = resolve(&spec, scale).map_err(|failure| match failure {
                Failure::Config(reason) => {
                    let label = &plan.experiment.variants[spec.variant].label;
                    Failure::Config(format!("experiment {}, `{label}`: {reason}", plan.experiment.name))
                }
                other => other,
            })?;
            let id = format!(
                "{}-{}-task{}-seed{}-{}",
                spec.agent,
                environment(&spec.task),
                spec.task.task(),
                spec.seed,
                digest(&config.to_toml()?)
            );
            let place = plan.runs.iter().position(|run| run.id == id).unwrap_or_else(|| {
                let work = Work::Train { config: Box::new(config), allow_unbounded: spec.allow_unbounded };
                plan.runs.push(Planned { id, work });
                plan.runs.len() - 1
            });
            plan.specs.push((spec, place));
        }
        Ok(plan)
    }

    /// `k-sweep-small`: the name of its folder of reports.
    pub fn name(&self) -> String {
        format!("{}-{}", self.experiment.name, self.scale)
    }

    /// The run of an identifier.
    pub fn find(&self, id: &str) -> Result<&Planned, Failure> {
        self.runs.iter().find(|run| run.id == id).ok_or_else(|| {
            Failure::Config(format!(
                "{} has no run `{id}`; `album reproduce {} --scale {} --dry-run` lists them",
                self.name(),
                shell(&self.experiment.argument),
                self.scale
            ))
        })
    }

    /// Refuses tasks without data and environments that cannot be made, before anything starts.
    pub fn check(&self, python: Option<&Path>) -> Result<(), Failure> {
        let mut missing = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (spec, _) in &self.specs {
            if !seen.insert((spec.task.dataset_name(), spec.data.clone())) {
                continue;
            }
            let problem = Problem::from(spec.task);
            match problem.locate(spec.data.as_deref()) {
                Ok(Location::Found(path)) if !path.exists() => {
                    return Err(Failure::Config(format!("{}: no such file or folder", path.display())));
                }
                Ok(_) => {}
                Err(Failure::Config(_)) => {
                    missing.insert(problem.how_to_get());
                }
                Err(other) => return Err(other),
            }
        }
        if !missing.is_empty() {
            let commands: Vec<String> = missing.into_iter().collect();
            return Err(Failure::Config(format!(
                "{} needs data that is not here; nothing was started. Get it with\n    {}\nor choose tasks with --tasks",
                self.name(),
                commands.join("\n    ")
            )));
        }
        let resources = Resources { python: python.map(Path::to_path_buf), ..Resources::default() };
        self.specs.iter().try_for_each(|(spec, _)| Problem::from(spec.task).check_environments(&resources))
    }
}

/// The configuration of a run: that of `album train` with the same settings.
fn resolve(spec: &Spec, scale: Scale) -> Result<RunConfig, Failure> {
    let preset = match scale {
        Scale::Small => Preset::Small,
        Scale::Paper => Preset::Paper,
    };
    let problem = Problem::from(spec.task);
    let overrides = Overrides {
        problem: Some(problem),
        seed: Some(spec.seed),
        data: spec.data.clone(),
        agent: Some(spec.agent.clone()),
        // Small networks suit PointMaze; other tasks keep their own preset at any scale.
        preset: problem.is_native().then_some(preset),
        set: spec.set.clone(),
        ..Overrides::default()
    };
    Ok(config::resolve(&overrides)?.config)
}

/// The first 40 bits of the SHA-256: of a thousand runs, two agree with a chance below one in a million.
fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(5).map(|byte| format!("{byte:02x}")).collect()
}

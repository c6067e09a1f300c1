//! One experiment: a table or figure of the paper as a grid of runs.

use crate::check::check;
use crate::error::ExperimentError;
use album::Preset;
use album_base::files::{self, Links};
use album_base::suggest;
use album_data::ogbench::TaskName;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// The built-in experiments, in the order of the paper.
const FILES: [(&str, &str); 17] = embedded!["", ".toml":
    "main",
    "per-task",
    "target-ensemble",
    "chunking",
    "cost",
    "boundedness",
    "k-sweep",
    "lambda-k",
    "raised-lambda-b",
    "raised-lambda-b-cube",
    "value-maps",
    "ifql-album",
    "lambda-b-e",
    "steps-3m",
    "hinge-iql",
    "critic",
    "tabular",
];

/// The names of the built-in experiments.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The contents of `experiments/NAME.toml`.
///
/// ```
/// use album_experiments::{Experiment, Scale};
/// let sweep = Experiment::find("k-sweep")?;
/// let specs = sweep.specs(Scale::Paper)?;
/// assert_eq!(specs.len(), 3 * 3 * 8); // K, tasks, seeds
/// # Ok::<(), album_experiments::ExperimentError>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The file name without its extension.
    #[serde(skip)]
    pub name: String,
    /// The argument of `album reproduce`: the name, or the path of a user's file.
    #[serde(skip)]
    pub argument: String,
    /// One line; the name if the file has none.
    #[serde(default)]
    pub title: String,
    /// The question, and the paper's answer.
    #[serde(default)]
    pub question: String,
    /// The corresponding tables and figures of the paper, by label.
    #[serde(default)]
    pub reference: String,
    /// The table in `experiments/published` with the paper's numbers, by file name.
    #[serde(default)]
    pub published: Option<String>,
    /// The metrics, named as in `experiments/published/README.md`.
    #[serde(default = "success")]
    pub metrics: Vec<String>,
    /// Whether to show value maps.
    #[serde(default)]
    pub value_maps: bool,
    /// The paper's grid. A user's file may have one scale only.
    #[serde(default)]
    pub paper: Grid,
    /// A grid that two cores finish in minutes.
    #[serde(default)]
    pub small: Grid,
    /// The variants to compare.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
}

fn success() -> Vec<String> {
    vec!["success".into()]
}

/// The budget of an experiment: tasks, seeds and steps. It does not imply a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// A budget for a small machine.
    Small,
    /// The paper's tasks, seeds and steps.
    Paper,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scale::Small => "small",
            Scale::Paper => "paper",
        })
    }
}

/// Which evaluations of a run count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The last one.
    #[default]
    Final,
    /// The mean of the last three.
    LastThree,
}

/// Tasks, seeds and budget of one scale; or a command.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Environments without version, each with its task numbers.
    #[serde(default)]
    pub tasks: BTreeMap<String, Vec<usize>>,
    /// The number of seeds.
    #[serde(default)]
    pub seeds: u64,
    /// The first seed.
    #[serde(default)]
    pub first_seed: u64,
    /// Which evaluations count.
    #[serde(default)]
    pub protocol: Protocol,
    /// Data files of environments, if not in the default place.
    #[serde(default)]
    pub data: BTreeMap<String, PathBuf>,
    /// Settings of all runs: keys of `[train]` or of the agent.
    #[serde(default)]
    pub set: toml::Table,
    /// The preset that configurations start from; by default the task's own.
    #[serde(default)]
    pub preset: Option<PresetName>,
    /// A command instead of a grid of runs.
    #[serde(default)]
    pub command: Option<Command>,
}

/// A preset by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PresetName {
    /// The published networks, coefficients and schedule.
    Paper,
    /// Small networks and a short schedule.
    Small,
}

impl From<PresetName> for Preset {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::Paper => Preset::Paper,
            PresetName::Small => Preset::Small,
        }
    }
}

/// A command whose figures and tables are the results of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// `album bench cost`.
    Cost(CostOptions),
    /// `album verify`.
    Verify,
}

/// Options of [`Command::Cost`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostOptions {
    /// Number of seeds, each timed in a round in which all agents take turns.
    pub rounds: usize,
}

impl Command {
    /// The equivalent command line, with its files in `out`.
    pub fn line(&self, out: &str) -> String {
        match self {
            Command::Cost(options) => format!("album bench cost --rounds {} --out {out}", options.rounds),
            Command::Verify => format!("album verify --out {out}"),
        }
    }
}

/// The source of a variant's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The trained agent.
    #[default]
    Agent,
    /// The best values that the data supports, independent of training.
    Data,
}

/// A variant of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name in tables and legends; the agent's by default.
    #[serde(default)]
    pub label: String,
    /// The method whose published numbers it is compared with; empty for none.
    #[serde(default)]
    pub method: String,
    /// The published setting, if not that of `set`.
    #[serde(default)]
    pub setting: Option<String>,
    /// The agent.
    pub agent: String,
    /// Settings that differ from the agent's preset.
    #[serde(default)]
    pub set: toml::Table,
    /// The label of the variant that changes in success are relative to.
    #[serde(default)]
    pub baseline: Option<String>,
    /// Number of seeds per scale, if not the grid's.
    #[serde(default)]
    pub seeds: BTreeMap<Scale, u64>,
    /// Step of the evaluation that counts per scale, if not the last.
    #[serde(default)]
    pub at: BTreeMap<Scale, u64>,
    /// The only scale that includes it; both by default.
    #[serde(default)]
    pub only: Option<Scale>,
    /// The source of its numbers.
    #[serde(default)]
    pub source: Source,
    /// Whether the boundedness condition may be violated.
    #[serde(default)]
    pub allow_unbounded: bool,
}

impl Variant {
    /// `key=value` joined by `;`, as the published tables write it.
    pub fn published_setting(&self) -> String {
        self.setting.clone().unwrap_or_else(|| assignments(&self.set).join(";"))
    }
}

/// One run of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Index of its variant in [`Experiment::variants`].
    pub variant: usize,
    /// The task.
    pub task: TaskName,
    /// The data, if not in its default place.
    pub data: Option<PathBuf>,
    /// The seed.
    pub seed: u64,
    /// The preset that its configuration starts from, if not the task's own.
    pub preset: Option<PresetName>,
    /// The agent.
    pub agent: String,
    /// Settings as `key=value`, in order.
    pub set: Vec<String>,
    /// Whether the boundedness condition may be violated.
    pub allow_unbounded: bool,
}

/// A part of a grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// OGBench names of tasks, or of environments (`cube-single-play`) for all their tasks; all if empty.
    pub tasks: Vec<String>,
    /// Seeds, possibly other than the grid's; the grid's if empty.
    pub seeds: Vec<u64>,
    /// Labels of variants; all if empty.
    pub variants: Vec<String>,
}

impl Grid {
    /// Whether the file lacks this scale.
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.command.is_none()
    }
}

impl Experiment {
    /// Finds a built-in experiment by name, or reads a file that ends in `.toml`.
    pub fn find(name: &str) -> Result<Experiment, ExperimentError> {
        if name.ends_with(".toml") {
            let text = files::read_text(Path::new(name), Links::Follow, 16 << 20)
                .map_err(|source| ExperimentError::Io { place: name.to_owned(), source })?;
            let stem =
                Path::new(name).file_stem().map_or(String::new(), |s| s.to_string_lossy().into_owned());
            return Ok(Experiment { argument: name.to_owned(), ..Self::parse(&stem, &text, name)? });
        }
        let Some((_, text)) = FILES.iter().find(|(found, _)| *found == name) else {
            let near: Vec<String> =
                suggest::nearest(name, names(), 2).into_iter().map(str::to_owned).collect();
            return Err(ExperimentError::Unknown {
                name: name.to_owned(),
                hint: suggest::did_you_mean(&near),
            });
        };
        Self::parse(name, text, &format!("experiments/{name}.toml"))
    }

    /// Parses an experiment; `place` is named in errors.
    pub fn parse(name: &str, text: &str, place: &str) -> Result<Experiment, ExperimentError> {
        let invalid = |reason: String| ExperimentError::Invalid { place: place.to_owned(), reason };
        let mut experiment: Experiment = toml::from_str(text).map_err(|e| invalid(e.to_string()))?;
        experiment.name = name.to_owned();
        experiment.argument = name.to_owned();
        if experiment.title.is_empty() {
            experiment.title = name.to_owned();
        }
        for variant in experiment.variants.iter_mut().filter(|variant| variant.label.is_empty()) {
            variant.label.clone_from(&variant.agent);
        }
        check(&experiment).map_err(invalid)?;
        Ok(experiment)
    }

    /// The grid of a scale.
    pub fn grid(&self, scale: Scale) -> &Grid {
        match scale {
            Scale::Small => &self.small,
            Scale::Paper => &self.paper,
        }
    }

    /// The number of runs at a scale. A run shared by several variants counts once, and a command counts as
    /// one.
    pub fn run_count(&self, scale: Scale) -> Result<usize, ExperimentError> {
        let specs = self.specs(scale)?;
        let distinct: BTreeSet<_> =
            specs.iter().map(|s| (s.task.to_string(), s.seed, &s.agent, &s.set, &s.data)).collect();
        Ok(distinct.len().max(1))
    }

    /// All runs of a scale, seed by seed, so that early results are comparable.
    pub fn specs(&self, scale: Scale) -> Result<Vec<Spec>, ExperimentError> {
        self.select(scale, &Selection::default())
    }

    /// The runs of a part of a scale.
    pub fn select(&self, scale: Scale, selection: &Selection) -> Result<Vec<Spec>, ExperimentError> {
        let grid = self.grid(scale);
        if grid.is_empty() {
            let other = if scale == Scale::Small { Scale::Paper } else { Scale::Small };
            return Err(ExperimentError::Choice(format!(
                "experiment {} has no [{scale}]; choose --scale {other}",
                self.name
            )));
        }
        let tasks = self.tasks(scale, &selection.tasks)?;
        let here = |variant: &&Variant| variant.only.is_none_or(|only| only == scale);
        let labels: Vec<&str> = self.variants.iter().filter(here).map(|v| v.label.as_str()).collect();
        for label in &selection.variants {
            if !labels.contains(&label.as_str()) {
                return Err(unknown("variant", label, &labels, &self.name, scale));
            }
        }
        let chosen =
            |variant: &Variant| selection.variants.is_empty() || selection.variants.contains(&variant.label);
        let count = |variant: &Variant| variant.seeds.get(&scale).copied().unwrap_or(grid.seeds);
        let most = self.variants.iter().map(count).max().unwrap_or(0);
        let seeds: Vec<u64> = match &selection.seeds[..] {
            [] => (grid.first_seed..grid.first_seed + most).collect(),
            seeds => seeds.to_vec(),
        };
        let mut specs = Vec::new();
        for seed in seeds {
            for (place, variant) in self.variants.iter().enumerate() {
                let beyond = selection.seeds.is_empty() && seed >= grid.first_seed + count(variant);
                if !here(&variant) || !chosen(variant) || beyond {
                    continue;
                }
                let set = [assignments(&grid.set), assignments(&variant.set)].concat();
                for task in &tasks {
                    specs.push(Spec {
                        variant: place,
                        task: *task,
                        data: grid.data.get(&environment(task)).cloned(),
                        seed,
                        preset: grid.preset,
                        agent: variant.agent.clone(),
                        set: set.clone(),
                        allow_unbounded: variant.allow_unbounded,
                    });
                }
            }
        }
        Ok(specs)
    }

    fn tasks(&self, scale: Scale, wanted: &[String]) -> Result<Vec<TaskName>, ExperimentError> {
        let mut tasks: Vec<TaskName> = Vec::new();
        for (environment, numbers) in &self.grid(scale).tasks {
            for number in numbers {
                let name = format!("{environment}-singletask-task{number}-v0");
                tasks.push(name.parse().map_err(|e| ExperimentError::Choice(format!("{e}")))?);
            }
        }
        if wanted.is_empty() {
            return Ok(tasks);
        }
        let is = |task: &TaskName, name: &str| task.to_string() == name || environment(task) == name;
        for name in wanted {
            if !tasks.iter().any(|task| is(task, name)) {
                let all: Vec<String> =
                    tasks.iter().map(|t| t.to_string()).chain(tasks.iter().map(environment)).collect();
                let all: Vec<&str> = all.iter().map(String::as_str).collect();
                return Err(unknown("task", name, &all, &self.name, scale));
            }
        }
        tasks.retain(|task| wanted.iter().any(|name| is(task, name)));
        Ok(tasks)
    }
}

/// The environment of a task as the published tables name it: `cube-single-play`.
pub fn environment(task: &TaskName) -> String {
    task.dataset_name().trim_end_matches("-v0").to_owned()
}

fn unknown(what: &str, found: &str, all: &[&str], experiment: &str, scale: Scale) -> ExperimentError {
    let mut names = all.to_vec();
    names.dedup(); // environments repeat for each of their tasks
    let hint = suggest::hint(found, names);
    ExperimentError::Choice(format!("experiment {experiment} has no {what} `{found}` at scale {scale}{hint}"))
}

/// A table as `key=value` pairs.
fn assignments(table: &toml::Table) -> Vec<String> {
    table.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

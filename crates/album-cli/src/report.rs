//! `album report`: runs side by side, beside the published numbers.

use crate::output;
use album::Error as Failure;
use album::run::read_config;
use album::{Overrides, Problem, RunConfig, config};
use album_agents::AGENTS;
use album_data::ogbench::{Family, TaskName};
use album_experiments::published::{Published, Row};
use album_experiments::{Arm, Protocol, Results, Run, Source, Study, methods, studies};
use album_train::Records;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How deep run directories are looked for.
const DEPTH: usize = 4;
/// What is kept beside a run's results, and in large numbers.
const CHECKPOINTS: &str = "checkpoints";

/// A report about finished and unfinished runs.
#[derive(clap::Args)]
pub struct Args {
    /// Run directories, or folders that contain some
    #[arg(required = true, value_name = "RUNS")]
    runs: Vec<PathBuf>,
    /// Where index.html, the tables (CSV, LaTeX) and the figures (SVG) go
    #[arg(long, default_value = "album-report", value_name = "DIR")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    page: PathBuf,
    files: Vec<PathBuf>,
    runs: usize,
    finished: usize,
    variants: usize,
    /// Runs that were left out, with the reason.
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
struct Skipped {
    run: PathBuf,
    reason: String,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut places = BTreeSet::new();
    let mut studies = Vec::new();
    for folder in &args.runs {
        if Results::is_one(folder) {
            studies.extend(studies::all(folder)?);
        }
        let found = find(folder, 0)?;
        if found.is_empty() {
            return Err(Failure::Load(format!(
                "{}: no run directory (one with a config.toml) here or up to {DEPTH} folders below",
                folder.display()
            )));
        }
        places.extend(found);
    }
    // What belongs to an experiment is told there; the rest is one study more.
    for run in studies.iter().flat_map(|study| &study.arms).flat_map(|arm| &arm.runs) {
        if let Ok(path) = run.path.canonicalize() {
            places.remove(&path);
        }
    }
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    for place in places {
        match Found::read(&place) {
            Ok(run) => found.push(run),
            Err(failure) => skipped.push(Skipped { run: place, reason: failure.to_string() }),
        }
    }
    if !found.is_empty() {
        studies.push(study(found, args, &mut skipped)?);
    }
    for Skipped { run, reason } in &skipped {
        eprintln!("warning: {} is left out: {reason}", run.display());
    }
    let runs: usize = studies.iter().map(|study| study.tally().planned).sum();
    let finished: usize = studies.iter().map(|study| study.tally().done).sum();
    if studies.is_empty() || studies.iter().all(|study| study.outputs.is_none()) && runs == 0 {
        return Err(Failure::Load("none of the runs can be read; there is nothing to report".into()));
    }
    let written = album_experiments::write(&studies, &args.out)?;
    let variants = studies.iter().map(|study| album_experiments::estimate::variants(study).len()).sum();
    if !args.json {
        return output::print(&format!(
            "{finished} of {runs} runs finished, {variants} variants; report in {}",
            written.page.display()
        ));
    }
    output::print_json(&Report {
        page: written.page,
        files: written.files,
        runs,
        finished,
        variants,
        skipped,
    })
}

/// The run directories in a folder; nothing is looked for inside of a run.
fn find(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, Failure> {
    if folder.join("config.toml").is_file() {
        return Ok(vec![folder.canonicalize().map_err(Failure::io(folder))?]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Failure::io(folder))? {
        let path = entry.map_err(Failure::io(folder))?.path();
        if depth < DEPTH && path.is_dir() && !path.ends_with(CHECKPOINTS) {
            found.extend(find(&path, depth + 1)?);
        }
    }
    Ok(found)
}

/// A run with what sets it apart.
struct Found {
    path: PathBuf,
    config: RunConfig,
    /// The task, by its number.
    task: TaskName,
    /// What differs from the agent's preset for the task and changes results, as `key=value`.
    differs: BTreeMap<String, String>,
    /// The command that makes it.
    command: String,
    records: Records,
}

impl Found {
    fn read(path: &Path) -> Result<Found, Failure> {
        let config = read_config(path)?;
        let Problem::Ogbench(task) = config.problem;
        let task = task.with_number(task.task());
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
            let plain = |c: char| c.is_ascii_alphanumeric() || "=._-+".contains(c);
            let pair = if pair.chars().all(plain) { pair } else { format!("'{pair}'") };
            command.push_str(&format!(" --set {pair}"));
        }
        if config.violated_boundedness()?.is_some() {
            command.push_str(" --allow-unbounded");
        }
        if let Some(data) = &config.data {
            let name = data.file_name().unwrap_or(data.as_os_str()).to_string_lossy().into_owned();
            command.push_str(&format!(" --data {name}"));
            // A file of the default's name is the default at another place.
            if name != task.dataset_file() {
                differs.insert("data".into(), name);
            }
        }
        Ok(Found { path: path.to_path_buf(), config, task, differs, command, records })
    }

    /// Agents in the order of `album agents`, then settings, then tasks, then seeds.
    fn order(&self) -> (usize, &BTreeMap<String, String>, String, u64) {
        let agent = AGENTS.iter().position(|kind| kind.name == self.config.agent);
        (agent.unwrap_or(usize::MAX), &self.differs, self.task.to_string(), self.config.seed)
    }

    /// The setting under which the paper has it. On PointMaze, which the paper does not have, budgets do not matter.
    fn published_setting(&self, method: &str, published: &Published) -> String {
        let mut differs = self.differs.clone();
        if matches!(self.task.environment().family, Family::PointMaze(_)) {
            differs.remove("steps");
        }
        let rows = published.tables().flat_map(|table| published.rows(table).unwrap_or_default());
        let same = |row: &&Row| {
            let known: BTreeSet<&str> = row.settings().map(|pair| pair.0).collect();
            row.method == method
                && differs.keys().all(|key| known.contains(key.as_str()))
                && row.settings().all(|(key, value)| self.has(key, value))
        };
        // The method itself, where the paper has it so.
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
        own.is_some_and(|own| album_experiments::same_setting(&format!("x={own}"), &format!("x={value}")))
    }
}

fn joined(pairs: &BTreeMap<String, String>, equals: &str, between: &str) -> String {
    pairs.iter().map(|(key, value)| format!("{key}{equals}{value}")).collect::<Vec<_>>().join(between)
}

/// One study of all runs: a variant for each agent with its settings.
fn study(mut found: Vec<Found>, args: &Args, skipped: &mut Vec<Skipped>) -> Result<Study, Failure> {
    let published = Published::load().map_err(|e| Failure::Numerical(e.to_string()))?;
    let methods = methods();
    found.sort_by(|a, b| a.order().cmp(&b.order()).then_with(|| a.path.cmp(&b.path)));
    // What all have in common sets none apart.
    let common: BTreeMap<String, String> = found.first().map_or_else(BTreeMap::new, |first| {
        let everywhere =
            |(key, value): &(&String, &String)| found.iter().all(|run| run.differs.get(*key) == Some(value));
        first.differs.iter().filter(everywhere).map(|(key, value)| (key.clone(), value.clone())).collect()
    });
    let mut arms: Vec<Arm> = Vec::new();
    let mut metrics = vec!["success".to_owned()];
    for run in found {
        let method = methods.get(&run.config.agent).cloned().unwrap_or_else(|| run.config.agent.clone());
        let apart: BTreeMap<String, String> = run
            .differs
            .iter()
            .filter(|(key, _)| !common.contains_key(*key))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
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
        if !arms.iter().any(|arm| arm.label == label && arm.task == task) {
            let (baseline, at, source, runs) = (None, None, Source::Agent, Vec::new());
            arms.push(Arm {
                label: label.clone(),
                method,
                setting,
                task: task.clone(),
                baseline,
                at,
                source,
                runs,
            });
        }
        let Some(arm) = arms.iter_mut().find(|arm| arm.label == label && arm.task == task) else {
            continue;
        };
        let seed = run.config.seed;
        if let Some(twin) = arm.runs.iter().find(|twin| twin.seed == seed) {
            let reason = format!("{} is the same run (seed {seed})", twin.path.display());
            skipped.push(Skipped { run: run.path, reason });
            continue;
        }
        let (records, failure) = (Some(run.records), None);
        arm.runs.push(Run { seed, path: run.path, command: run.command, records, failure });
    }
    let named: Vec<String> = args.runs.iter().map(|path| path.display().to_string()).collect();
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
        command: format!("album report {} --out {}", named.join(" "), args.out.display()),
        arms,
        outputs: None,
    })
}

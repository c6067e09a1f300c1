//! The configuration of a run: built-in defaults < preset of the task < `--config FILE` < `--set key=value`.
//! Unknown keys are errors that suggest the nearest one.

use crate::failure::Failure;
use album_agents::{Kind, SMALL, Setup};
use album_base::suggest;
use album_data::ogbench::{Family, TaskName};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A resolved configuration: what `config.toml` in a run directory holds.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// The OGBench name of the task.
    pub task: String,
    /// The algorithm.
    pub agent: String,
    /// The master seed: initialisation, sampling and evaluation are functions of it.
    pub seed: u64,
    /// The dataset file, where it is not the default one of the task.
    pub data: Option<PathBuf>,
    /// The loop.
    pub train: TrainConfig,
    /// The hyperparameters of the algorithm, in a section of its name.
    pub settings: toml::Table,
}

/// The part of a configuration that all algorithms share.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    task: String,
    agent: String,
    seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<PathBuf>,
    train: TrainConfig,
}

impl RunConfig {
    /// As TOML.
    pub fn to_toml(&self) -> Result<String, Failure> {
        let mut table = self.head()?;
        table.insert(self.agent.clone(), toml::Value::Table(self.settings.clone()));
        toml::to_string(&table).map_err(|e| Failure::Config(e.to_string()))
    }

    /// The hyperparameters, checked.
    pub fn setup(&self) -> Result<Box<dyn Setup>, Failure> {
        Ok(album_agents::find(&self.agent)?.setup(&self.settings)?)
    }

    fn head(&self) -> Result<toml::Table, Failure> {
        let RunConfig { task, agent, seed, data, train, .. } = self.clone();
        toml::Table::try_from(Head { task, agent, seed, data, train })
            .map_err(|e| Failure::Config(e.to_string()))
    }
}

/// The training loop. Periods are in steps; 0 means never.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Gradient steps.
    pub steps: u64,
    /// Metrics are logged every so many steps.
    pub log_every: u64,
    /// The policy is evaluated every so many steps, and at the end.
    pub eval_every: u64,
    /// Episodes of an evaluation.
    pub eval_episodes: usize,
    /// A checkpoint is written every so many steps, and at the end.
    pub save_every: u64,
    /// So many checkpoints are kept, the latest ones.
    pub keep: usize,
}

impl Default for TrainConfig {
    /// The paper's schedule.
    fn default() -> Self {
        TrainConfig {
            steps: 1_000_000,
            log_every: 5_000,
            eval_every: 100_000,
            eval_episodes: 50,
            save_every: 100_000,
            keep: 2,
        }
    }
}

/// Which preset a task starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// The paper's networks, coefficients and schedule, with its alpha_bc of the environment
    Paper,
    /// Small networks and a short schedule that suit PointMaze on a CPU
    Small,
}

/// The preset of a task as TOML, what comes later over what came before. [`Preset::Paper`] is the default except on
/// PointMaze.
fn preset(kind: &Kind, task: &TaskName, preset: Option<Preset>) -> Vec<String> {
    let section = |values: &str| format!("[{}]\n{values}\n", kind.name);
    let small = match preset {
        Some(preset) => preset == Preset::Small,
        None => matches!(task.environment().family, Family::PointMaze(_)),
    };
    if small {
        return vec![SMALL_LOOP.to_owned(), section(SMALL), section(kind.small)];
    }
    vec![section(&(kind.paper)(task.environment().name))]
}

/// A short schedule for small networks.
const SMALL_LOOP: &str = "
[train]
steps = 40000
log_every = 500
eval_every = 2000
save_every = 4000
";

/// What the command line adds to the preset.
#[derive(Default)]
pub struct Overrides {
    /// Which algorithm, where it is not the file's or ALBUM.
    pub agent: Option<String>,
    /// Which preset.
    pub preset: Option<Preset>,
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// `key=value` pairs, in order.
    pub set: Vec<String>,
}

/// Resolves the configuration of a run.
pub fn resolve(task: &TaskName, seed: u64, overrides: &Overrides) -> Result<RunConfig, Failure> {
    let file = match &overrides.file {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(Failure::io(path))?;
            let place = path.display().to_string();
            Some((parse(&text, &place)?, place))
        }
        None => None,
    };
    let named = file.as_ref().and_then(|(table, _)| table.get("agent")?.as_str());
    let kind = album_agents::find(overrides.agent.as_deref().or(named).unwrap_or("album"))?;
    let base = RunConfig {
        task: task.to_string(),
        agent: kind.name.to_owned(),
        seed,
        data: None,
        train: TrainConfig::default(),
        settings: kind.defaults()?,
    };
    let mut table = base.head()?;
    table.insert(kind.name.to_owned(), toml::Value::Table(base.settings));
    for values in preset(kind, task, overrides.preset) {
        merge(&mut table, parse(&values, "preset")?, "preset")?;
    }
    if let Some((mut file, place)) = file {
        file.remove("agent");
        merge(&mut table, file, &place)?;
    }
    for pair in &overrides.set {
        let (section, key, value) = assignment(pair, &table)?;
        let mut inner = toml::Table::new();
        inner.insert(key, value);
        let mut outer = toml::Table::new();
        outer.insert(section, toml::Value::Table(inner));
        merge(&mut table, outer, &format!("--set {pair}"))?;
    }
    from_table(table)
}

/// Reads the configuration that a run was started with.
pub fn read(text: &str, place: &str) -> Result<RunConfig, Failure> {
    from_table(parse(text, place)?)
}

fn from_table(mut table: toml::Table) -> Result<RunConfig, Failure> {
    let failed = |e: toml::de::Error| Failure::Config(e.to_string());
    let Some(agent) = table.get("agent").and_then(toml::Value::as_str).map(str::to_owned) else {
        return Err(Failure::Config("there is no `agent = \"...\"`".into()));
    };
    let kind = album_agents::find(&agent)?;
    let Some(toml::Value::Table(given)) = table.remove(&agent) else {
        return Err(Failure::Config(format!("there is no section [{agent}] for the agent")));
    };
    // By way of text, because errors then show the line with its key.
    let text = toml::to_string(&table).map_err(|e| Failure::Config(e.to_string()))?;
    let Head { task, agent, seed, data, train } = toml::from_str(&text).map_err(failed)?;
    let mut settings = kind.defaults()?;
    merge(&mut settings, given, &format!("[{agent}]"))?;
    kind.setup(&settings)?;
    Ok(RunConfig { task, agent, seed, data, train, settings })
}

fn parse(text: &str, place: &str) -> Result<toml::Table, Failure> {
    text.parse().map_err(|e: toml::de::Error| Failure::Config(format!("{place}: {e}")))
}

/// Puts the values of `new` over those of `base`, which has every key that exists.
fn merge(base: &mut toml::Table, new: toml::Table, place: &str) -> Result<(), Failure> {
    for (key, value) in new {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(new)) => merge(base, new, place)?,
            (Some(old), value) => {
                // An integer is a fine value for a number.
                *old = match (&*old, value) {
                    (toml::Value::Float(_), toml::Value::Integer(x)) => toml::Value::Float(x as f64),
                    (_, value) => value,
                };
            }
            (None, value) if key == "data" && place != "preset" => {
                base.insert(key, value);
            }
            (None, _) => {
                return Err(unknown(&key, &base.keys().map(String::as_str).collect::<Vec<_>>(), place));
            }
        }
    }
    Ok(())
}

fn unknown(key: &str, keys: &[&str], place: &str) -> Failure {
    let hint = suggest::hint(key, keys.iter().copied());
    Failure::Config(format!("{place}: unknown key `{key}`{hint}"))
}

/// `album.k=5`, or `k=5` where only one section has the key, as (section, key, value).
fn assignment(pair: &str, table: &toml::Table) -> Result<(String, String, toml::Value), Failure> {
    let place = format!("--set {pair}");
    let Some((key, text)) = pair.split_once('=') else {
        return Err(Failure::Config(format!("{place}: expected key=value")));
    };
    let (key, text) = (key.trim(), text.trim());
    // A bare word is a string, so that quotes need not survive the shell.
    let value = parse(&format!("x = {text}"), &place)
        .or_else(|_| parse(&format!("x = {:?}", text), &place))?
        .remove("x")
        .ok_or_else(|| Failure::Config(format!("{place}: no value")))?;
    let sections = || table.iter().filter_map(|(name, value)| Some((name, value.as_table()?)));
    let (section, key) = match key.split_once('.') {
        Some((section, key)) => (section.to_owned(), key),
        None => match sections().find(|(_, inner)| inner.contains_key(key)) {
            Some((name, _)) => (name.clone(), key),
            None => {
                let keys: Vec<&str> =
                    sections().flat_map(|(_, inner)| inner.keys()).map(String::as_str).collect();
                return Err(unknown(key, &keys, &place));
            }
        },
    };
    if !table.get(&section).is_some_and(toml::Value::is_table) {
        return Err(unknown(&section, &sections().map(|s| s.0.as_str()).collect::<Vec<_>>(), &place));
    }
    Ok((section, key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_agents::{Common, agents::album};

    fn album(config: &RunConfig) -> album::Config {
        config.setup().unwrap().album_critic().unwrap().clone()
    }

    fn task() -> TaskName {
        "pointmaze-medium-navigate-singletask-task1-v0".parse().unwrap()
    }

    fn set(pairs: &[&str]) -> Result<RunConfig, Failure> {
        let set = pairs.iter().map(|&p| p.to_owned()).collect();
        resolve(&task(), 3, &Overrides { set, ..Overrides::default() })
    }

    #[test]
    fn later_sources_win() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, "[album]\nk = 7\nalpha_bc = 1\n").unwrap();
        let set = vec!["album.alpha_bc=0.5".into()];
        let overrides = Overrides { file: Some(file), set, ..Overrides::default() };
        let c = resolve(&task(), 3, &overrides).unwrap();
        let album = album(&c);
        assert_eq!((album.k, album.alpha_bc), (7, 0.5));
        assert_eq!(album.common.hidden, [128, 128]); // the preset
        assert_eq!(album.lambda_b, 2.5); // the default
        assert_eq!(c.seed, 3);
    }

    #[test]
    fn the_paper_preset_is_the_papers() {
        let c =
            resolve(&task(), 0, &Overrides { preset: Some(Preset::Paper), ..Overrides::default() }).unwrap();
        assert_eq!(album(&c), album::Config::default());
        assert_eq!(c.train, TrainConfig::default());
        let cube: TaskName = "cube-single-play-singletask-task2-v0".parse().unwrap();
        let c = resolve(&cube, 0, &Overrides::default()).unwrap();
        assert_eq!(album(&c).alpha_bc, 0.3);
    }

    #[test]
    fn short_keys_bare_words_and_integers_are_understood() {
        let c =
            set(&["steps=10", "squash=tanh", "hidden=[8]", "gamma=0.5", "reward_scale=2", "kstep_tail=drop"])
                .unwrap();
        let Common { hidden, reward_scale, .. } = album(&c).common;
        assert_eq!((c.train.steps, album(&c).squash), (10, album::Squash::Tanh));
        assert_eq!((hidden, reward_scale), (vec![8], 2.0));
    }

    #[test]
    fn mistakes_are_named() {
        let message = |pairs: &[&str]| set(pairs).unwrap_err().to_string();
        assert!(message(&["lamda_b=1"]).contains("unknown key `lamda_b`; did you mean `lambda_b`"));
        assert!(message(&["album.kk=1"]).contains("unknown key `kk`"));
        assert!(message(&["albun.k=1"]).contains("unknown key `albun`; did you mean `album`?"));
        assert!(message(&["k"]).contains("expected key=value"));
        assert!(message(&["gamma=1.5"]).contains("gamma = 1.5; expected a number between 0 and 1"));
        assert!(message(&["k=0"]).contains("k = 0; expected at least 1"));
        assert!(message(&["k=-1"]).contains("k = -1"));
        assert!(message(&["squash=relu"]).contains("squash = \"relu\""));
    }

    #[test]
    fn a_written_configuration_reads_back() {
        let c = set(&["k=5"]).unwrap();
        assert_eq!(read(&c.to_toml().unwrap(), "c").unwrap(), c);
    }
}

//! The configuration of a run: built-in defaults < preset of the task < `--config FILE` < `--set key=value`.
//! Unknown keys are errors that suggest the nearest one.

use crate::failure::Failure;
use album_agents::album;
use album_data::ogbench::{Family, TaskName};
use album_data::suggest;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A resolved configuration: what `config.toml` in a run directory holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The OGBench name of the task.
    pub task: String,
    /// The algorithm.
    pub agent: String,
    /// The master seed: initialisation, sampling and evaluation are functions of it.
    pub seed: u64,
    /// The dataset file, where it is not the default one of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// The loop.
    pub train: TrainConfig,
    /// The hyperparameters of ALBUM.
    pub album: album::Config,
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

/// The preset of a task as TOML. [`Preset::Paper`] is the default except on PointMaze.
fn preset(task: &TaskName, preset: Option<Preset>) -> String {
    let small = match preset {
        Some(preset) => preset == Preset::Small,
        None => matches!(task.environment().family, Family::PointMaze(_)),
    };
    if small {
        return SMALL.to_owned();
    }
    format!("[album]\nalpha_bc = {:?}\n", paper_alpha_bc(task.environment().name).unwrap_or(0.01))
}

/// What was found for PointMaze (docs/decisions.md): two raw coordinates need an encoding, one action changes Q by little,
/// and a falling learning rate ends the noise that the hinges turn into a bias.
const SMALL: &str = "
[train]
steps = 40000
log_every = 500
eval_every = 2000
save_every = 4000

[album]
hidden = [128, 128]
alpha_bc = 0.001
critic_lr = 1e-3
actor_lr = 1e-3
reward_scale = 0.3
lr_decay = \"cosine\"
standardize = true
fourier_features = 32
fourier_scale = 3.0
";

/// The paper's behaviour cloning coefficient of each of its ten environments.
pub fn paper_alpha_bc(environment: &str) -> Option<f64> {
    match environment {
        "antmaze-large" | "antsoccer-arena" => Some(0.01),
        "antmaze-giant" | "humanoidmaze-medium" | "humanoidmaze-large" => Some(0.003),
        "cube-single" => Some(0.3),
        "cube-double" | "scene" | "puzzle-3x3" | "puzzle-4x4" => Some(0.1),
        _ => None,
    }
}

/// What the command line adds to the preset.
pub struct Overrides {
    /// Which preset.
    pub preset: Option<Preset>,
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// `key=value` pairs, in order.
    pub set: Vec<String>,
}

/// Resolves the configuration of a run.
pub fn resolve(task: &TaskName, seed: u64, overrides: &Overrides) -> Result<RunConfig, Failure> {
    let base = RunConfig {
        task: task.to_string(),
        agent: "album".into(),
        seed,
        data: None,
        train: TrainConfig::default(),
        album: album::Config::default(),
    };
    let mut table = toml::Table::try_from(&base).map_err(|e| Failure::Config(e.to_string()))?;
    merge(&mut table, parse(&preset(task, overrides.preset), "preset")?, "preset")?;
    if let Some(path) = &overrides.file {
        let text = std::fs::read_to_string(path).map_err(Failure::io(path))?;
        let place = path.display().to_string();
        merge(&mut table, parse(&text, &place)?, &place)?;
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

fn from_table(table: toml::Table) -> Result<RunConfig, Failure> {
    // By way of text, because errors then show the line with its key.
    let text = toml::to_string(&table).map_err(|e| Failure::Config(e.to_string()))?;
    let config: RunConfig = toml::from_str(&text).map_err(|e| Failure::Config(e.to_string()))?;
    config.album.check().map_err(|e| Failure::Config(e.to_string()))?;
    Ok(config)
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
    let near: Vec<String> =
        suggest::nearest(key, keys.iter().copied(), 2).into_iter().map(str::to_owned).collect();
    let hint = if near.is_empty() {
        format!("; there are {}", keys.join(", "))
    } else {
        suggest::did_you_mean(&near)
    };
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

    fn task() -> TaskName {
        "pointmaze-medium-navigate-singletask-task1-v0".parse().unwrap()
    }

    fn set(pairs: &[&str]) -> Result<RunConfig, Failure> {
        let set = pairs.iter().map(|&p| p.to_owned()).collect();
        resolve(&task(), 3, &Overrides { preset: None, file: None, set })
    }

    #[test]
    fn later_sources_win() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, "[album]\nk = 7\nalpha_bc = 1\n").unwrap();
        let overrides = Overrides { preset: None, file: Some(file), set: vec!["album.alpha_bc=0.5".into()] };
        let c = resolve(&task(), 3, &overrides).unwrap();
        assert_eq!((c.album.k, c.album.alpha_bc), (7, 0.5));
        assert_eq!(c.album.hidden, [128, 128]); // the preset
        assert_eq!(c.album.lambda_b, 2.5); // the default
        assert_eq!(c.seed, 3);
    }

    #[test]
    fn the_paper_preset_is_the_papers() {
        let c =
            resolve(&task(), 0, &Overrides { preset: Some(Preset::Paper), file: None, set: vec![] }).unwrap();
        assert_eq!(c.album, album::Config::default());
        assert_eq!(c.train, TrainConfig::default());
        let cube: TaskName = "cube-single-play-singletask-task2-v0".parse().unwrap();
        let c = resolve(&cube, 0, &Overrides { preset: None, file: None, set: vec![] }).unwrap();
        assert_eq!(c.album.alpha_bc, 0.3);
    }

    #[test]
    fn short_keys_bare_words_and_integers_are_understood() {
        let c =
            set(&["steps=10", "squash=tanh", "hidden=[8]", "gamma=0.5", "reward_scale=2", "kstep_tail=drop"])
                .unwrap();
        assert_eq!((c.train.steps, c.album.squash), (10, album::Squash::Tanh));
        assert_eq!((c.album.hidden, c.album.reward_scale), (vec![8], 2.0));
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
        assert_eq!(read(&toml::to_string(&c).unwrap(), "c").unwrap(), c);
    }
}

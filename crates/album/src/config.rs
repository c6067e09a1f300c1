//! The configuration of a run: built-in defaults < preset < configuration file < options < `key=value` pairs.
//! Unknown keys are errors that suggest the nearest one.

use crate::error::Error;
use crate::own::{ACTOR_AVERAGE, Chosen, Own, Reason};
use crate::problem::Problem;
use crate::run;
pub use album_agents::Preset;
use album_agents::{AgentKind, Setup};
use album_base::files::{self, Links};
use album_base::suggest;
use album_data::{Format, Source};
use album_envs::EnvSpec;
use album_tabular::Coefficients;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A resolved configuration: what `config.toml` in a run directory holds.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// The data to learn from, and how the policy is evaluated.
    pub problem: Problem,
    /// The algorithm.
    pub agent: String,
    /// The master seed, from which initialisation, sampling and evaluation are derived.
    pub seed: u64,
    /// The dataset file, if it is not the task's default.
    pub data: Option<PathBuf>,
    /// The run whose agent this one starts from.
    pub from: Option<PathBuf>,
    /// The training loop.
    pub train: TrainConfig,
    /// The hyperparameters of the agent, stored in a section of its name.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    env: Option<EnvSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score_range: Option<[f64; 2]>,
    train: TrainConfig,
}

impl RunConfig {
    /// The configuration as TOML.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(&self.to_table()?).map_err(|e| Error::Config(e.to_string()))
    }

    /// Checks the hyperparameters.
    pub fn setup(&self) -> Result<Box<dyn Setup>, Error> {
        Ok(AgentKind::find(&self.agent)?.setup(&self.settings)?)
    }

    /// Both sides of the boundedness condition as text, if it is violated.
    pub fn violated_boundedness(&self) -> Result<Option<String>, Error> {
        let setup = self.setup()?;
        let violated = setup.boundedness().filter(|condition| !condition.sides.holds());
        Ok(violated.map(|condition| condition.to_string()))
    }

    fn to_table(&self) -> Result<toml::Table, Error> {
        let RunConfig { problem, agent, seed, data, from, train, settings } = self.clone();
        let task = problem.to_string();
        let (source, env, score_range) = match problem {
            Problem::Ogbench(_) | Problem::MudWorld(_) => (None, None, None),
            Problem::Own(own) => (Some(own.source), own.env, own.score_range),
        };
        let head = Head { task, agent: agent.clone(), seed, data, from, source, env, score_range, train };
        let mut table = toml::Table::try_from(head).map_err(|e| Error::Config(e.to_string()))?;
        table.insert(agent, toml::Value::Table(settings));
        Ok(table)
    }
}

/// The training loop. Periods are in steps; 0 means never.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Gradient steps.
    pub steps: u64,
    /// Steps between logged metrics.
    pub log_every: u64,
    /// Steps between evaluations; there is always one at the end.
    pub eval_every: u64,
    /// Episodes per evaluation.
    pub eval_episodes: usize,
    /// Steps between checkpoints; there is always one at the end.
    pub save_every: u64,
    /// How many of the latest checkpoints are kept.
    pub keep: usize,
    /// Whether to keep the best checkpoint too, by evaluations or held-out loss, and finish the run with it.
    pub keep_best: bool,
    /// Stop early once the best checkpoint is this many steps old; 0 for never.
    pub patience: u64,
    /// Fraction of the episodes held out and logged as `validation/*`; 0 uses the validation file beside the
    /// data, if there is one.
    pub holdout: f64,
    /// Which transitions an update sees. Left out of files where it is the default, so that older runs stay what they are.
    #[serde(skip_serializing_if = "Sampling::is_default")]
    pub sampling: Sampling,
    /// The precision of the factors of matrix products in training.
    #[serde(skip_serializing_if = "Precision::is_f32")]
    pub precision: Precision,
}

/// What updates see equally often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// Every transition.
    #[default]
    Transitions,
    /// Every pair of a state and an action, however often it was recorded.
    Pairs,
}

impl Sampling {
    fn is_default(&self) -> bool {
        *self == Sampling::default()
    }

    pub(crate) fn to_value(self) -> Result<toml::Value, Error> {
        toml::Value::try_from(self).map_err(|e| Error::Config(e.to_string()))
    }
}

/// The precision of the factors of matrix products in training. Sums, weights and everything else are single precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Rounded to bfloat16.
    Bf16,
}

impl Precision {
    // Left out of files, so that runs from before there was a choice are the same runs.
    fn is_f32(&self) -> bool {
        *self == Precision::F32
    }
}

impl From<Precision> for album_nn::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => album_nn::Precision::F32,
            Precision::Bf16 => album_nn::Precision::Bf16,
        }
    }
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
            keep_best: false,
            patience: 0,
            holdout: 0.0,
            sampling: Sampling::default(),
            precision: Precision::F32,
        }
    }
}

/// The preset of a task ([`Preset::Paper`] by default, except on PointMaze and on the user's own data), and
/// the values chosen from the data.
fn preset(
    kind: &AgentKind,
    problem: &Problem,
    preset: Option<Preset>,
    gamma: Option<f64>,
) -> Result<(toml::Table, Vec<Reason>), Error> {
    let preset = preset.unwrap_or(match problem {
        Problem::Own(_) | Problem::MudWorld(_) => Preset::Own,
        _ if problem.is_native() => Preset::Small,
        _ => Preset::Paper,
    });
    let mut table = parse(if preset == Preset::Small { SMALL_LOOP } else { "" }, "preset")?;
    let mut settings = kind.preset(problem.environment(), preset)?;
    let mut chosen = Vec::new();
    if preset == Preset::Own
        && let Some((data, usual)) = problem.untuned()?
    {
        let known = kind.defaults()?;
        let coefficients = toml::Value::Table(known.clone()).try_into();
        let coefficients: Coefficients = coefficients.map_err(|e| Error::Config(e.to_string()))?;
        let chosen_now = Chosen::from_data(&data, gamma.or(usual), &coefficients)?;
        let Chosen { gamma, reward_scale, k, steps, holdout, discrete_policy, averaged, held_up, mut why } =
            chosen_now;
        settings.insert("gamma".into(), gamma.into());
        settings.insert("reward_scale".into(), reward_scale.into());
        if let Some(policy) = discrete_policy.filter(|_| known.contains_key("discrete_policy")) {
            settings.insert("discrete_policy".into(), policy.into());
        }
        if averaged && known.contains_key("actor_average") {
            // A converged critic rates every recorded action as good as V, and the policy becomes plain cloning.
            settings.insert("lr_decay".into(), "none".into());
            settings.insert("actor_average".into(), ACTOR_AVERAGE.into());
            let values = ["lr_decay", "actor_average"].map(|key| (key, settings[key].clone()));
            why.push(Reason::new(values, "most states occur once"));
        }
        if known.contains_key("k") {
            settings.insert("k".into(), toml::Value::Integer(k as i64));
        }
        let mut sampling = Sampling::default();
        if let Some(held_up) = held_up.filter(|_| known.contains_key("omega_q")) {
            sampling = held_up.sampling;
            let omegas = [("omega_q", held_up.omega_q.into()), ("omega_v", held_up.omega_v.into())];
            settings.extend(omegas.iter().cloned().map(|(key, value)| (key.to_owned(), value)));
            let values = [("sampling", sampling.to_value()?)].into_iter().chain(omegas);
            why.push(Reason::new(values, held_up.why));
        }
        let period = |parts: u64| toml::Value::Integer((steps / parts) as i64);
        table.insert(
            "train".into(),
            toml::Value::Table(toml::Table::from_iter([
                ("steps".to_owned(), period(1)),
                ("log_every".to_owned(), period(100)),
                ("eval_every".to_owned(), period(10)),
                ("eval_episodes".to_owned(), toml::Value::Integer(20)),
                ("save_every".to_owned(), period(10)),
                ("holdout".to_owned(), holdout.into()),
                ("sampling".to_owned(), sampling.to_value()?),
            ])),
        );
        chosen = why;
    }
    table.insert(kind.name.to_owned(), toml::Value::Table(settings));
    Ok((table, chosen))
}

/// A short schedule for small networks.
const SMALL_LOOP: &str = "
[train]
steps = 40000
log_every = 500
eval_every = 2000
save_every = 4000
";

/// Values given by the user.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The problem, if not the file's or the default.
    pub problem: Option<Problem>,
    /// The agent, if not the file's or ALBUM.
    pub agent: Option<String>,
    /// The master seed, if not the file's or 0.
    pub seed: Option<u64>,
    /// The data, if not the file's or the problem's: the task's own file or, without a task, a log to learn
    /// from.
    pub data: Option<Source>,
    /// The name of the user's own data.
    pub name: Option<String>,
    /// The environment to evaluate policies in that learn from the user's own data.
    pub env: Option<EnvSpec>,
    /// The returns that correspond to scores of 0 and 100.
    pub score_range: Option<[f64; 2]>,
    /// The run whose agent this one starts from.
    pub from: Option<PathBuf>,
    /// The discount factor, if not the preset's.
    pub gamma: Option<f64>,
    /// Keys of `[train]` that have their own options.
    pub train: toml::Table,
    /// Hyperparameters of the agent.
    pub settings: toml::Table,
    /// The preset to start from.
    pub preset: Option<Preset>,
    /// A TOML configuration file.
    pub file: Option<PathBuf>,
    /// `key=value` pairs, in order.
    pub set: Vec<String>,
}

impl Overrides {
    /// Everything but the file and the pairs, as a table.
    fn flags(&self) -> toml::Table {
        let mut table = toml::Table::new();
        let mut put = |key: &str, value: Option<toml::Value>| {
            value.map(|value| table.insert(key.to_owned(), value));
        };
        put("task", self.problem.as_ref().map(|problem| problem.to_string().into()));
        put("agent", self.agent.clone().map(Into::into));
        put("seed", self.seed.map(|seed| toml::Value::Integer(seed.cast_signed())));
        put("from", self.from.as_ref().map(|path| path.display().to_string().into()));
        put("train", (!self.train.is_empty()).then(|| toml::Value::Table(self.train.clone())));
        table
    }
}

/// A configuration, with the given values that were overridden.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The configuration.
    pub config: RunConfig,
    /// One line per overridden value, naming both sources.
    pub overridden: Vec<String>,
    /// What was chosen from the user's own data, and why: one line each.
    pub chosen: Vec<String>,
}

/// Resolves the configuration of a run.
pub fn resolve(overrides: &Overrides) -> Result<Resolved, Error> {
    let mut file = match &overrides.file {
        Some(path) => {
            let text = files::read_text(path, Links::Follow, files::LONGEST_TEXT).map_err(Error::io(path))?;
            let place = path.display().to_string();
            Some((parse(&text, &place)?, place))
        }
        None => None,
    };
    let named = |key: &str| file.as_ref().and_then(|(table, _)| table.get(key)?.as_str());
    let agent = overrides.agent.as_deref().or(named("agent")).unwrap_or("album").to_owned();
    let kind = AgentKind::find(&agent)?;
    let mut overridden = Vec::new();
    let task = named("task").map(str::to_owned);
    let logged = file.as_mut().and_then(|(table, place)| Some((table.remove("source")?, place.clone())));
    let judged = JudgedIn::take(file.as_mut().map(|file| &mut file.0))?;
    let env = overrides.env.clone().or(judged.env);
    let score_range = overrides.score_range.or(judged.score_range);
    let (problem, data) = match (&overrides.problem, &overrides.data, logged) {
        (None, given, Some((source, place))) => {
            // The file belongs to a run on a log.
            let name = overrides.name.as_deref().or(task.as_deref());
            let source = match given {
                Some(given) => {
                    overridden.push(format!("--data (command line) instead of [source] in {place}"));
                    with_actions_of(given.clone(), overrides.from.as_deref())?
                }
                None => source.try_into().map_err(|e| Error::Config(format!("{place}: [source]: {e}")))?,
            };
            (Problem::Own(Box::new(Own::new(whole(source)?, name)?.judged_in(env, score_range)?)), None)
        }
        (None, Some(source), None) if task.is_none() => {
            let own = Own::new(whole(source.clone())?, overrides.name.as_deref())?;
            (Problem::Own(Box::new(own.judged_in(env, score_range)?)), None)
        }
        (problem, source, _) => {
            if overrides.env.is_some() || overrides.name.is_some() {
                return Err(Error::Config(
                    "--env and --name apply to your own data only; a task has its own environment and name"
                        .into(),
                ));
            }
            let problem = match problem {
                Some(problem) => problem.clone(),
                None => task.as_deref().unwrap_or(Problem::DEFAULT).parse()?,
            };
            (problem, source.as_ref().map(of_task).transpose()?)
        }
    };
    if let Some(seed) = overrides.seed.filter(|&seed| i64::try_from(seed).is_err()) {
        return Err(Error::Config(format!("seed = {seed}; expected at most {}", i64::MAX)));
    }
    let settings = kind.defaults()?;
    let (preset, chosen) = preset(kind, &problem, overrides.preset, overrides.gamma)?;
    let base = RunConfig {
        problem,
        agent: agent.clone(),
        seed: 0,
        data: None,
        from: None,
        train: TrainConfig::default(),
        settings,
    };
    let mut table = base.to_table()?;
    if let Some(train) = table.get_mut("train").and_then(toml::Value::as_table_mut) {
        train.insert("sampling".into(), base.train.sampling.to_value()?);
        train.insert("precision".into(), "f32".into()); // like the sampling, a file may leave it out
    }
    let mut layers = Layers::over(table);
    layers.overridden = overridden;
    layers.merge(preset, "preset")?;
    if let Some((mut table, place)) = file {
        if matches!(base.problem, Problem::Own(_)) {
            table.remove("task");
        }
        // The file may belong to a run of another agent, whose hyperparameters do not apply.
        let others = album_agents::AGENTS.iter().filter(|other| other.name != agent);
        for other in others.filter(|other| table.remove(other.name).is_some()) {
            layers.overridden.push(format!("[{}] in {place} is ignored: the agent is {agent}", other.name));
        }
        layers.merge(table, &place)?;
    }
    let mut flags = overrides.flags();
    if let Some(path) = data {
        flags.insert("data".into(), path.display().to_string().into());
    }
    let mut settings = overrides.settings.clone();
    settings.extend(overrides.gamma.map(|gamma| ("gamma".to_owned(), gamma.into())));
    if !settings.is_empty() {
        flags.insert(agent.clone(), toml::Value::Table(settings));
    }
    layers.merge(flags, "command line")?;
    for pair in &overrides.set {
        let (section, key, value) = assignment(pair, &layers.table)?;
        let inner = toml::Table::from_iter([(key, value)]);
        let outer = toml::Table::from_iter([(section, toml::Value::Table(inner))]);
        layers.merge(outer, &format!("--set {pair}"))?;
    }
    let mut config = from_table(layers.table)?;
    config.problem = base.problem; // keeps data that it may already have read
    config.data = config.data.map(absolute).transpose()?;
    config.from = config.from.map(absolute).transpose()?;
    // A value that the user has set was not chosen from the data.
    let chosen = chosen.iter().filter_map(|reason| reason.line(&config)).collect();
    Ok(Resolved { config, overridden: layers.overridden, chosen })
}

/// Made absolute, because a run may be resumed from another directory.
fn absolute(path: PathBuf) -> Result<PathBuf, Error> {
    // A path that does not exist may be a Minari dataset id.
    if path.exists() { std::path::absolute(&path).map_err(Error::io(&path)) } else { Ok(path) }
}

fn whole(source: Source) -> Result<Source, Error> {
    let paths = source.paths.into_iter().map(absolute).collect::<Result<_, _>>()?;
    Ok(Source { paths, ..source })
}

/// New data for an existing agent keeps the run's action space.
fn with_actions_of(source: Source, from: Option<&Path>) -> Result<Source, Error> {
    let imported = source.format().is_ok_and(|format| format == Format::Columns);
    match from.filter(|_| source.action_bounds.is_empty() && !imported) {
        Some(run) => Ok(Source { action_space: Some(run::action_space_of(run)?), ..source }),
        None => Ok(source),
    }
}

/// The parts of a configuration file that say where policies are evaluated.
#[derive(Default, Deserialize)]
struct JudgedIn {
    env: Option<EnvSpec>,
    score_range: Option<[f64; 2]>,
}

impl JudgedIn {
    fn take(file: Option<&mut toml::Table>) -> Result<Self, Error> {
        let Some(table) = file else { return Ok(Self::default()) };
        let taken =
            ["env", "score_range"].into_iter().filter_map(|key| Some((key.to_owned(), table.remove(key)?)));
        let taken: toml::Table = taken.collect();
        taken.try_into().map_err(|e: toml::de::Error| Error::Config(e.to_string()))
    }
}

/// The data file of a task, which must be a single file.
fn of_task(source: &Source) -> Result<PathBuf, Error> {
    match &source.paths[..] {
        [path] if *source == Source::of(path) => Ok(path.clone()),
        _ => Err(Error::Config(
            "the data of a task is one file in its own layout; leave out the task to learn from a log of your own".into(),
        )),
    }
}

/// Reads the configuration that a run was started with.
pub fn read(text: &str, place: &str) -> Result<RunConfig, Error> {
    from_table(parse(text, place)?)
}

fn from_table(mut table: toml::Table) -> Result<RunConfig, Error> {
    let Some(agent) = table.get("agent").and_then(toml::Value::as_str).map(str::to_owned) else {
        return Err(Error::Config("there is no `agent = \"...\"`".into()));
    };
    let kind = AgentKind::find(&agent)?;
    let Some(toml::Value::Table(given)) = table.remove(&agent) else {
        return Err(Error::Config(format!("there is no section [{agent}] for the agent")));
    };
    album_agents::check_sizes(&table)?;
    let Head { task, agent, seed, data, from, source, env, score_range, train } =
        table.try_into().map_err(|e: toml::de::Error| Error::Config(e.to_string()))?;
    let mut settings = Layers::over(kind.defaults()?);
    settings.merge(given, &format!("[{agent}]"))?;
    let settings = settings.table;
    kind.setup(&settings)?;
    if !(0.0..1.0).contains(&train.holdout) {
        return Err(Error::Config(format!(
            "holdout = {}; expected a fraction of at least 0 and below 1",
            train.holdout
        )));
    }
    let problem = match source {
        Some(source) => Problem::Own(Box::new(Own::new(source, Some(&task))?.judged_in(env, score_range)?)),
        None if env.is_some() => {
            return Err(Error::Config(
                "there is an [env] without a [source]; a task has its own environment".into(),
            ));
        }
        None => task.parse()?,
    };
    Ok(RunConfig { problem, agent, seed, data, from, train, settings })
}

fn parse(text: &str, place: &str) -> Result<toml::Table, Error> {
    text.parse().map_err(|e: toml::de::Error| Error::Config(format!("{place}: {e}")))
}

/// Configuration values in layers; later ones override earlier ones.
pub(crate) struct Layers {
    /// Contains every valid key.
    pub(crate) table: toml::Table,
    /// The source of every key that was given.
    given: BTreeMap<String, String>,
    /// Given values that were overridden.
    overridden: Vec<String>,
}

impl Layers {
    pub(crate) fn over(table: toml::Table) -> Self {
        Layers { table, given: BTreeMap::new(), overridden: Vec::new() }
    }

    /// Overrides the current values.
    pub(crate) fn merge(&mut self, new: toml::Table, place: &str) -> Result<(), Error> {
        let mut changes = Vec::new();
        merge(&mut self.table, new, place, "", &mut changes)?;
        if place == "preset" {
            return Ok(());
        }
        for (key, old, value) in changes {
            if let Some(before) = self.given.insert(key.clone(), place.to_owned())
                && old.as_ref() != Some(&value)
                && let Some(old) = old
            {
                self.overridden.push(format!("{key} = {value} ({place}) instead of {old} ({before})"));
            }
        }
        Ok(())
    }
}

/// A key, its old value if it had one, and its new value.
type Change = (String, Option<toml::Value>, toml::Value);

fn merge(
    base: &mut toml::Table,
    new: toml::Table,
    place: &str,
    section: &str,
    changes: &mut Vec<Change>,
) -> Result<(), Error> {
    for (key, value) in new {
        let path = format!("{section}{key}");
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(new)) => {
                merge(base, new, place, &format!("{path}."), changes)?;
            }
            (Some(old), value) => {
                // An integer is accepted where a float is expected.
                let value = match (&*old, value) {
                    (toml::Value::Float(_), toml::Value::Integer(x)) => toml::Value::Float(x as f64),
                    (_, value) => value,
                };
                if old.type_str() != value.type_str() {
                    return Err(Error::Config(format!(
                        "{place}: {key} = {value}; expected {} such as {old}",
                        with_article(old.type_str())
                    )));
                }
                changes.push((path, Some(std::mem::replace(old, value.clone())), value));
            }
            (None, value) if section.is_empty() && ["data", "from"].contains(&&*key) && place != "preset" => {
                base.insert(key, value.clone());
                changes.push((path, None, value));
            }
            (None, _) => {
                return Err(unknown(&key, &base.keys().map(String::as_str).collect::<Vec<_>>(), place));
            }
        }
    }
    Ok(())
}

fn with_article(kind: &str) -> String {
    match kind {
        "array" | "integer" => format!("an {kind}"),
        "float" => "a number".into(),
        kind => format!("a {kind}"),
    }
}

fn unknown(key: &str, keys: &[&str], place: &str) -> Error {
    let hint = suggest::hint(key, keys.iter().copied());
    Error::Config(format!("{place}: unknown key `{key}`{hint}"))
}

/// `album.k=5`, or `k=5` where only one section has the key, as (section, key, value).
fn assignment(pair: &str, table: &toml::Table) -> Result<(String, String, toml::Value), Error> {
    let place = format!("--set {pair}");
    let Some((key, text)) = pair.split_once('=') else {
        return Err(Error::Config(format!("{place}: expected key=value")));
    };
    let (key, text) = (key.trim(), text.trim());
    // A bare word is a string, so that quotes need not survive the shell.
    let value = parse(&format!("x = {text}"), &place)
        .or_else(|_| parse(&format!("x = {:?}", text), &place))?
        .remove("x")
        .ok_or_else(|| Error::Config(format!("{place}: no value")))?;
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
        config.settings.clone().try_into().unwrap()
    }

    fn given(pairs: &[&str]) -> Overrides {
        Overrides { set: pairs.iter().map(|&pair| pair.to_owned()).collect(), ..Overrides::default() }
    }

    fn set(pairs: &[&str]) -> Result<RunConfig, Error> {
        resolve(&given(pairs)).map(|resolved| resolved.config)
    }

    /// A file that sets everything, combined with these options.
    fn with_file(overrides: Overrides) -> Resolved {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        let text = "task = \"pointmaze-giant-navigate-singletask-task4-v0\"\nagent = \"album\"\nseed = 5\n\
                    data = \"a.npz\"\n[train]\nsteps = 70\n[album]\nk = 7\nalpha_bc = 1\n";
        std::fs::write(&file, text).unwrap();
        resolve(&Overrides { file: Some(file), ..overrides }).unwrap()
    }

    #[test]
    fn a_file_is_over_the_preset() {
        let Resolved { config, overridden, .. } = with_file(given(&["album.alpha_bc=0.5"]));
        let settings = album(&config);
        assert_eq!((settings.critic.k, settings.alpha_bc), (7, 0.5));
        assert_eq!(settings.common.hidden, [128, 128]); // from the preset
        assert_eq!(settings.critic.coefficients.lambda_b, 2.5); // the default value
        assert_eq!(
            (config.problem.to_string(), config.seed, config.train.steps),
            ("pointmaze-giant-navigate-singletask-task4-v0".into(), 5, 70)
        );
        assert_eq!(overridden.len(), 1);
        assert!(overridden[0].contains("album.alpha_bc = 0.5 (--set album.alpha_bc=0.5) instead of 1.0"));
    }

    #[test]
    fn options_are_over_the_file_and_pairs_over_options() {
        let train = toml::Table::from_iter([("steps".to_owned(), toml::Value::Integer(80))]);
        let Resolved { config, overridden, .. } = with_file(Overrides {
            problem: Some("pointmaze-medium-navigate-singletask-task1-v0".parse().unwrap()),
            seed: Some(6),
            data: Some(Source::of("b.npz")),
            train,
            ..given(&["steps=90"])
        });
        assert_eq!(config.problem.to_string(), "pointmaze-medium-navigate-singletask-task1-v0");
        assert_eq!((config.seed, config.train.steps, config.data), (6, 90, Some("b.npz".into())));
        for line in ["task = ", "seed = 6 (command line) instead of 5", "steps = 80", "steps = 90", "data = "]
        {
            assert!(overridden.iter().any(|found| found.contains(line)), "{line}: {overridden:?}");
        }
        assert_eq!(overridden.len(), 5);
    }

    #[test]
    fn another_agent_leaves_the_files_hyperparameters() {
        let Resolved { config, overridden, .. } =
            with_file(Overrides { agent: Some("bc".into()), ..Overrides::default() });
        assert_eq!((config.agent.as_str(), config.train.steps), ("bc", 70));
        assert!(overridden.iter().any(|line| line.contains("[album]")), "{overridden:?}");
    }

    #[test]
    fn the_paper_preset_is_the_papers() {
        let paper = Overrides { preset: Some(Preset::Paper), ..Overrides::default() };
        let c = resolve(&paper).unwrap().config;
        assert_eq!(album(&c), album::Config::default());
        assert_eq!(c.train, TrainConfig::default());
        let cube = Some("cube-single-play-singletask-task2-v0".parse().unwrap());
        let c = resolve(&Overrides { problem: cube, ..Overrides::default() }).unwrap().config;
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
        assert_eq!(
            message(&["hidden=128"]),
            "--set hidden=128: hidden = 128; expected an array such as [128, 128]"
        );
        assert!(message(&["k=2.5"]).contains("k = 2.5; expected an integer such as 10"));
    }

    #[test]
    fn a_written_configuration_reads_back() {
        let c = set(&["k=5"]).unwrap();
        assert_eq!(read(&c.to_toml().unwrap(), "c").unwrap(), c);
    }
}

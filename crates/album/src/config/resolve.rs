//! From what the user has given to a configuration.

use super::layers::assignment;
use super::preset::preset;
use super::{Layers, Preset, RunConfig, TrainConfig, from_table, parse};
use crate::error::Error;
use crate::own::{self, Own};
use crate::problem::Problem;
use crate::run;
use album_agents::AgentKind;
use album_base::files::{self, Links};
use album_data::{Format, Source};
use album_envs::EnvSpec;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Values given by the user.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The problem, if not the file's or the default.
    pub problem: Option<Problem>,
    /// The agent, if not the file's or the default: ALBUM, or IQL for a log in which chance decides outcomes.
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
    let agent = overrides.agent.as_deref().or(named("agent")).map(str::to_owned);
    let mut overridden = Vec::new();
    let (problem, data) = problem(overrides, file.as_mut(), &mut overridden)?;
    let (agent, why) = match (agent, &problem) {
        (Some(agent), _) => (agent, None),
        (None, Problem::Own(own)) if !asks_for_album(&overrides.set)? => {
            own::default_agent(&own.read()?.dataset)
        }
        (None, _) => ("album".to_owned(), None),
    };
    let kind = AgentKind::find(&agent)?;
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
    let chosen = why.into_iter().chain(chosen.iter().filter_map(|reason| reason.line(&config))).collect();
    Ok(Resolved { config, overridden: layers.overridden, chosen })
}

/// Whether a setting is one that ALBUM has and the other default agent does not.
fn asks_for_album(set: &[String]) -> Result<bool, Error> {
    let [album, other] = [AgentKind::find("album")?.defaults()?, AgentKind::find("iql")?.defaults()?];
    let keys = set.iter().filter_map(|pair| pair.split('=').next()?.trim().rsplit('.').next());
    Ok(keys.into_iter().any(|key| album.contains_key(key) && !other.contains_key(key)))
}

/// The problem, and the data file if it is not the task's own. What says where the data is leaves `file`.
fn problem(
    overrides: &Overrides,
    mut file: Option<&mut (toml::Table, String)>,
    overridden: &mut Vec<String>,
) -> Result<(Problem, Option<PathBuf>), Error> {
    let task = file.as_ref().and_then(|(table, _)| table.get("task")?.as_str()).map(str::to_owned);
    let logged = file.as_mut().and_then(|(table, place)| Some((table.remove("source")?, place.clone())));
    let judged = JudgedIn::take(file.map(|file| &mut file.0))?;
    let env = overrides.env.clone().or(judged.env);
    let score_range = overrides.score_range.or(judged.score_range);
    match (&overrides.problem, &overrides.data, logged) {
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
            let own = Own::new(whole(source)?, name)?.judged_in(env, score_range)?;
            Ok((Problem::Own(Box::new(own)), None))
        }
        (None, Some(source), None) if task.is_none() => {
            let own = Own::new(whole(source.clone())?, overrides.name.as_deref())?;
            Ok((Problem::Own(Box::new(own.judged_in(env, score_range)?)), None))
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
            Ok((problem, source.as_ref().map(of_task).transpose()?))
        }
    }
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

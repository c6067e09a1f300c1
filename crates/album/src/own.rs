//! People's own data: a log, perhaps an environment, and hyperparameters that suit it without tuning.

use crate::config::RunConfig;
use crate::error::Error;
use album_data::{ActionSpace, Dataset, Format, Source, SourceData};
use album_envs::EnvSpec;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// A log of one's own, under a name.
#[derive(Clone, Debug)]
pub struct Own {
    /// What runs and reports call it.
    pub name: String,
    /// Where the log is, and what cannot be read off it.
    pub source: Source,
    /// Where policies are tried out, if anywhere.
    pub env: Option<EnvSpec>,
    /// The returns that count as a score of 0 and of 100.
    pub score_range: Option<[f64; 2]>,
    /// The log, once it was read: hyperparameters are chosen from it before a run loads it.
    read: Arc<OnceLock<SourceData>>,
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        let parts = |own: &Self| (own.name.clone(), own.source.clone(), own.env.clone(), own.score_range);
        parts(self) == parts(other)
    }
}

impl Own {
    /// A log under the name of its first file, or another one.
    pub fn new(source: Source, name: Option<&str>) -> Result<Self, Error> {
        let stem = source.paths.first().and_then(|path| path.file_name()?.to_str());
        let stem = stem.map(|file| file.split('.').next().unwrap_or(file));
        let name = name.or(stem.filter(|stem| !stem.is_empty())).unwrap_or("own").to_owned();
        let plain = |c: char| c.is_alphanumeric() || "-_. +=".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(Error::Config(format!(
                "the name `{}` of the data: expected letters, digits, - and _; choose one with --name",
                name.escape_debug()
            )));
        }
        Ok(Own { name, source, env: None, score_range: None, read: Arc::default() })
    }

    /// A log that was read already. Arrays in memory have a source without files, of [`Format::Memory`].
    pub fn of_data(source: Source, data: SourceData, name: Option<&str>) -> Result<Self, Error> {
        Ok(Own { read: Arc::new(OnceLock::from(data)), ..Own::new(source, name)? })
    }

    /// The same, judged in an environment; `score_range` are the returns that count as a score of 0 and of 100.
    pub fn judged_in(self, env: Option<EnvSpec>, score_range: Option<[f64; 2]>) -> Result<Self, Error> {
        if let Some([low, high]) = score_range
            && !(low.is_finite() && high.is_finite() && low < high)
        {
            return Err(Error::Config(format!(
                "score_range = {low},{high}; expected the return of a score of 0, then a larger one for 100"
            )));
        }
        Ok(Own { env, score_range, ..self })
    }

    /// The log, read at most once.
    pub fn read(&self) -> Result<&SourceData, Error> {
        if let Some(data) = self.read.get() {
            return Ok(data);
        }
        if self.source.format == Some(Format::Memory) {
            return Err(Error::Load(format!(
                "{}: the run learned from arrays in memory, and no file holds them; save the data to a file, and train on that",
                self.name
            )));
        }
        let data = self.source.read()?;
        Ok(self.read.get_or_init(|| data))
    }
}

/// What was chosen from the data, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    pub gamma: f64,
    pub reward_scale: f64,
    pub k: usize,
    pub steps: u64,
    pub holdout: f64,
    /// How ALBUM's policy of choices follows from its values, where actions are discrete.
    pub discrete_policy: Option<&'static str>,
    /// Whether ALBUM's learning rates stay as they are and its policy is an average over updates.
    pub averaged: bool,
    pub why: Vec<Reason>,
}

/// Values that were chosen together, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reason {
    pub values: Vec<(&'static str, toml::Value)>,
    pub why: String,
}

impl Reason {
    pub fn new(
        values: impl IntoIterator<Item = (&'static str, toml::Value)>,
        why: impl Into<String>,
    ) -> Self {
        Reason { values: values.into_iter().collect(), why: why.into() }
    }

    /// One line about those values that stand in a configuration; nothing where others were set instead of all of them.
    pub fn line(&self, config: &RunConfig) -> Option<String> {
        let stands = |(key, value): &&(&'static str, toml::Value)| match *key {
            "steps" => value.as_integer() == Some(config.train.steps as i64),
            key => config.settings.get(key) == Some(value),
        };
        let written = |(key, value): &(&'static str, toml::Value)| match value.as_str() {
            Some(text) => format!("{key} = {text}"),
            None => format!("{key} = {value}"),
        };
        let values: Vec<String> = self.values.iter().filter(stands).map(written).collect();
        (!values.is_empty()).then(|| format!("{}: {}", values.join(", "), self.why))
    }
}

/// Rows of a minibatch, of which [`Chosen::steps`] makes passes over the data.
const BATCH: usize = 256;
/// Passes over the data, within these numbers of steps.
const PASSES: usize = 100;
const STEPS: [usize; 2] = [10_000, 200_000];
/// The 95th percentile of the size of discounted returns, after scaling: what networks reach within a few thousand steps.
const RETURN_SIZE: f64 = 10.0;
/// The share of an update in the average over updates.
pub(crate) const ACTOR_AVERAGE: f64 = 0.001;

impl Chosen {
    /// Values that suit the data; `gamma` where it is given.
    pub fn from_data(data: &Dataset, gamma: Option<f64>) -> Self {
        let episodes = data.episodes();
        let longest = (0..episodes.len()).map(|episode| episodes.length(episode)).max().unwrap_or(1);
        let mut why = Vec::new();
        let gamma = gamma.unwrap_or_else(|| {
            // An episode's end is worth about a third of its beginning.
            let gamma = (1.0 - 1.0 / longest.max(1) as f64).clamp(0.9, 0.995);
            let gamma = (gamma * 1e4).round() / 1e4;
            let reason = format!("the longest episode has {longest} steps (--gamma sets it)");
            why.push(Reason::new([("gamma", gamma.into())], reason));
            gamma
        });
        let (reward_scale, size) = reward_scale(data, gamma);
        let reason = format!("95 % of the discounted returns are within ±{}", three_digits(size));
        why.push(Reason::new([("reward_scale", reward_scale.into())], reason));
        let k = (longest / 2).clamp(1, 10);
        let steps = (PASSES * data.len() / BATCH).clamp(STEPS[0], STEPS[1]) as u64 / 1000 * 1000;
        let counts = [("k", toml::Value::Integer(k as i64)), ("steps", toml::Value::Integer(steps as i64))];
        why.push(Reason::new(counts, format!("{} transitions", data.len())));
        let with_steps = (0..episodes.len()).filter(|&episode| episodes.length(episode) > 0).count();
        let holdout = if with_steps >= 10 { 0.1 } else { 0.0 };
        let (discrete, repeat) =
            (matches!(data.action_space(), ActionSpace::Discrete { .. }), states_repeat(data));
        let discrete_policy = discrete.then_some(if repeat { "best" } else { "awr" });
        Chosen {
            gamma,
            reward_scale,
            k,
            steps,
            holdout,
            discrete_policy,
            averaged: !discrete && !repeat,
            why,
        }
    }
}

/// The factor that brings returns to a size that networks reach soon, and the 95th percentile of their size without it.
pub(crate) fn reward_scale(data: &Dataset, gamma: f64) -> (f64, f64) {
    let mut sizes: Vec<f64> = data.returns_to_go(gamma).into_iter().map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let size = sizes.get(sizes.len() * 95 / 100).copied().unwrap_or(0.0);
    (if size > 0.0 { three_digits(RETURN_SIZE / size) } else { 1.0 }, size)
}

/// Whether most states were acted in more than once. Then Q knows several choices of a state, and the best of them can be
/// taken; elsewhere Q only guesses what was not tried.
fn states_repeat(data: &Dataset) -> bool {
    const LOOK: usize = 50_000;
    let looked = data.len().min(LOOK);
    let bits = |t: usize| data.observation(t).iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    let distinct: HashSet<Vec<u32>> = (0..looked).map(bits).collect();
    distinct.len() <= looked / 2
}

fn three_digits(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_data::Rows;

    fn walk(episodes: usize, length: usize, reward: f32) -> Dataset {
        let rows = episodes * (length + 1);
        Dataset::from_rows(Rows {
            observation_dim: 1,
            action_dim: 1,
            observations: vec![0.0; rows],
            actions: vec![0.0; rows],
            rewards: vec![reward; rows],
            masks: vec![1.0; rows],
            terminals: (0..rows).map(|row| row % (length + 1) == length).collect(),
        })
        .unwrap()
    }

    #[test]
    fn what_is_chosen_follows_the_data() {
        let chosen = Chosen::from_data(&walk(20, 50, -3.0), None);
        assert_eq!((chosen.gamma, chosen.k, chosen.steps, chosen.holdout), (0.98, 10, 10_000, 0.1));
        let tenfold = Chosen::from_data(&walk(20, 50, -30.0), None);
        assert!((chosen.reward_scale / tenfold.reward_scale - 10.0).abs() < 0.01);
        let given = Chosen::from_data(&walk(3, 6, 0.0), Some(0.5));
        assert_eq!((given.gamma, given.reward_scale, given.k, given.holdout), (0.5, 1.0, 3, 0.0));
        assert_eq!(given.discrete_policy, None);
    }

    #[test]
    fn the_best_choice_is_taken_only_where_states_repeat() {
        let data = |distinct: bool| {
            let observations =
                (0..40).map(|row| if distinct { row as f32 } else { (row % 4) as f32 }).collect();
            let rows = Rows {
                observation_dim: 1,
                action_dim: 1,
                observations,
                actions: vec![0.0; 40],
                rewards: vec![0.0; 40],
                masks: vec![1.0; 40],
                terminals: (0..40).map(|row| row % 10 == 9).collect(),
            };
            Dataset::in_space(rows.clone(), ActionSpace::Discrete { n: 2 })
                .map(|discrete| (discrete, rows))
                .unwrap()
        };
        let averaged =
            |distinct| Chosen::from_data(&Dataset::from_rows(data(distinct).1).unwrap(), None).averaged;
        assert!(averaged(true) && !averaged(false));
        let data = |distinct| data(distinct).0;
        assert!(!Chosen::from_data(&data(true), None).averaged);
        assert_eq!(Chosen::from_data(&data(true), None).discrete_policy, Some("awr"));
        assert_eq!(Chosen::from_data(&data(false), None).discrete_policy, Some("best"));
    }

    #[test]
    fn names_are_those_of_files() {
        let own = |path: &str, name: Option<&str>| Own::new(Source::of(path), name).map(|own| own.name);
        assert_eq!(own("a/valve.log.csv.gz", None).unwrap(), "valve");
        assert_eq!(own("x.csv", Some("plant 7")).unwrap(), "plant 7");
        assert!(own("x.csv", Some("../up")).unwrap_err().to_string().contains("--name"));
    }
}

//! People's own data: a log, perhaps an environment, and hyperparameters that suit it without tuning.

use crate::config::{RunConfig, Sampling};
use crate::error::Error;
use crate::exact;
use crate::support::{Seen, Support};
use album_data::{ActionSpace, Dataset, Format, Source, SourceData};
use album_envs::EnvSpec;
use album_tabular::Coefficients;
use album_tabular::truth::Truth;
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
    /// What a critic of hinges needs, where the data seldom takes the best paths.
    pub held_up: Option<HeldUp>,
    pub why: Vec<Reason>,
}

/// What lets penalties hold the values up (see [`Support`]).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeldUp {
    pub sampling: Sampling,
    pub omega_q: f64,
    pub omega_v: f64,
    pub why: String,
}

impl HeldUp {
    /// Nothing where the coefficients do as they are.
    fn new(truth: &Truth, data: &Dataset, c: &Coefficients, k: usize) -> Option<Self> {
        let support = Support::new(truth, data, k);
        let recorded = support.load(c, Seen::AsRecorded);
        if recorded <= 1.0 || !recorded.is_finite() {
            return None;
        }
        let equally = support.load(c, Seen::Equally);
        if equally >= recorded {
            return None; // lighter weights alone leave nothing that pulls the values down
        }
        let load = equally.max(1.0);
        let why = format!(
            "the data takes its best paths so seldom that penalties would have to be {} times as large",
            three_digits(recorded)
        );
        let [omega_q, omega_v] = [c.omega_q, c.omega_v].map(|omega| three_digits(omega / load));
        Some(HeldUp { sampling: Sampling::Pairs, omega_q, omega_v, why })
    }
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
            "sampling" => config.train.sampling.to_value().ok().as_ref() == Some(value),
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
    /// Values that suit the data and the agent's coefficients; `gamma` where it is given.
    pub fn from_data(data: &Dataset, gamma: Option<f64>, c: &Coefficients) -> Result<Self, Error> {
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
        let (discrete, repeat) =
            (matches!(data.action_space(), ActionSpace::Discrete { .. }), states_repeat(data));
        let truth = if repeat { exact::truth(data, gamma)? } else { None };
        let k = (longest / 2).clamp(1, 10);
        let held_up = truth.as_ref().and_then(|truth| HeldUp::new(truth, data, c, k));
        let (what, (reward_scale, size)) = match &truth {
            // Returns say little about the best values of data that is far from them.
            Some(truth) if held_up.is_some() => {
                let values = truth.state_of_transition().iter().map(|&state| truth.v(state as usize));
                ("best values in the data", scale_of(values))
            }
            _ => ("discounted returns", reward_scale(data, gamma)),
        };
        let reason = format!("95 % of the {what} are within ±{}", three_digits(size));
        why.push(Reason::new([("reward_scale", reward_scale.into())], reason));
        let steps = (PASSES * data.len() / BATCH).clamp(STEPS[0], STEPS[1]) as u64 / 1000 * 1000;
        let counts = [("k", toml::Value::Integer(k as i64)), ("steps", toml::Value::Integer(steps as i64))];
        why.push(Reason::new(counts, format!("{} transitions", data.len())));
        let with_steps = (0..episodes.len()).filter(|&episode| episodes.length(episode) > 0).count();
        let holdout = if with_steps >= 10 { 0.1 } else { 0.0 };
        let discrete_policy = discrete.then_some(if repeat { "best" } else { "awr" });
        Ok(Chosen {
            gamma,
            reward_scale,
            k,
            steps,
            holdout,
            discrete_policy,
            averaged: !discrete && !repeat,
            held_up,
            why,
        })
    }
}

/// The factor that brings returns to a size that networks reach soon, and the 95th percentile of their size without it.
pub(crate) fn reward_scale(data: &Dataset, gamma: f64) -> (f64, f64) {
    scale_of(data.returns_to_go(gamma).into_iter())
}

/// The same of any values. Where nearly all are 0, the others count.
fn scale_of(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut sizes: Vec<f64> = values.map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let most = |sizes: &[f64]| sizes.get(sizes.len() * 95 / 100).copied().unwrap_or(0.0);
    let size = match most(&sizes) {
        0.0 => most(&sizes[sizes.partition_point(|&size| size == 0.0)..]),
        size => size,
    };
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

    fn chosen(data: &Dataset, gamma: Option<f64>) -> Chosen {
        Chosen::from_data(data, gamma, &Coefficients::default()).unwrap()
    }

    #[test]
    fn what_is_chosen_follows_the_data() {
        let tenfold = chosen(&walk(20, 50, -30.0), None);
        let given = chosen(&walk(3, 6, 0.0), Some(0.5));
        let chosen = chosen(&walk(20, 50, -3.0), None);
        assert_eq!((chosen.gamma, chosen.k, chosen.steps, chosen.holdout), (0.98, 10, 10_000, 0.1));
        assert!((chosen.reward_scale / tenfold.reward_scale - 10.0).abs() < 0.01);
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
        let averaged = |distinct| chosen(&Dataset::from_rows(data(distinct).1).unwrap(), None).averaged;
        assert!(averaged(true) && !averaged(false));
        let data = |distinct| data(distinct).0;
        assert!(!chosen(&data(true), None).averaged);
        assert_eq!(chosen(&data(true), None).discrete_policy, Some("awr"));
        assert_eq!(chosen(&data(false), None).discrete_policy, Some("best"));
    }

    /// Walks in a corridor of states 0 to 9 that nearly always give up at once; the end of the corridor pays.
    fn corridor(give_up: usize) -> Dataset {
        let mut rows = Rows { observation_dim: 1, action_dim: 1, ..Rows::default() };
        let mut push = |s: usize, a: f32, r: f32, mask: f32, end: bool| {
            rows.observations.push(s as f32);
            rows.actions.push(a);
            rows.rewards.push(r);
            rows.masks.push(mask);
            rows.terminals.push(end);
        };
        for walk in 0..10 * give_up {
            push(walk % 10, 0.0, 0.0, 0.0, false);
            push(11, 0.0, 0.0, 1.0, true);
        }
        (0..10).for_each(|s| {
            push(s, 1.0, if s == 9 { 0.2 } else { 0.0 }, if s == 9 { 0.0 } else { 1.0 }, false);
        });
        push(11, 0.0, 0.0, 1.0, true);
        Dataset::in_space(rows, ActionSpace::Discrete { n: 2 }).unwrap()
    }

    #[test]
    fn where_the_best_paths_are_rare_pairs_are_seen_equally_often_and_the_objective_weighs_less() {
        let rare = chosen(&corridor(100), Some(0.95));
        // By the returns alone the scale would be 1: 95 % of them are 0.
        assert!((rare.reward_scale * 0.2 - 10.0).abs() < 0.1, "{}", rare.reward_scale);
        let held = rare.held_up.unwrap();
        assert_eq!(held.sampling, Sampling::Pairs);
        let paper = Coefficients::default();
        assert!(held.omega_q <= paper.omega_q && held.omega_v <= paper.omega_v);
        let held_up = Coefficients { omega_q: held.omega_q, omega_v: held.omega_v, ..paper };
        let (data, k) = (corridor(100), rare.k);
        let truth = Truth::of(&data, 0.95).unwrap();
        let support = Support::new(&truth, &data, k);
        assert!(support.load(&held_up, Seen::Equally) < 1.01 && support.load(&paper, Seen::AsRecorded) > 1.0);
        assert_eq!(chosen(&corridor(1), Some(0.95)).held_up, None);
    }

    #[test]
    fn returns_that_are_nearly_all_zero_have_the_scale_of_the_others() {
        assert_eq!(scale_of((0..100).map(|i| if i == 7 { -2.0 } else { 0.0 })), (5.0, 2.0));
        assert_eq!(scale_of([0.0, 0.0].into_iter()), (1.0, 0.0));
        assert_eq!(scale_of(std::iter::empty()), (1.0, 0.0));
    }

    #[test]
    fn names_are_those_of_files() {
        let own = |path: &str, name: Option<&str>| Own::new(Source::of(path), name).map(|own| own.name);
        assert_eq!(own("a/valve.log.csv.gz", None).unwrap(), "valve");
        assert_eq!(own("x.csv", Some("plant 7")).unwrap(), "plant 7");
        assert!(own("x.csv", Some("../up")).unwrap_err().to_string().contains("--name"));
    }
}

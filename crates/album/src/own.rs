//! Training on a user's own data: a log, optionally an environment, and hyperparameters derived from the data.

use crate::config::{RunConfig, Sampling};
use crate::doctor::Repeats;
use crate::error::Error;
use crate::exact;
use crate::support::{Seen, Support};
use album_data::{ActionSpace, Dataset, Format, Source, SourceData};
use album_envs::EnvSpec;
use album_tabular::Coefficients;
use album_tabular::truth::Truth;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// A user's log, with a name.
#[derive(Clone, Debug)]
pub struct Own {
    /// Name used in run directories and reports.
    pub name: String,
    /// Location of the log, and how to read it.
    pub source: Source,
    /// Environment for evaluation, if any.
    pub env: Option<EnvSpec>,
    /// Returns that correspond to a score of 0 and of 100.
    pub score_range: Option<[f64; 2]>,
    /// Cache of the log: hyperparameters are derived from it before the run loads it.
    read: Arc<OnceLock<SourceData>>,
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        let parts = |own: &Self| (own.name.clone(), own.source.clone(), own.env.clone(), own.score_range);
        parts(self) == parts(other)
    }
}

impl Own {
    /// A log, named after its first file unless a name is given.
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

    /// A log that has already been read. For arrays in memory, the source has no files and is of [`Format::Memory`].
    pub fn of_data(source: Source, data: SourceData, name: Option<&str>) -> Result<Self, Error> {
        Ok(Own { read: Arc::new(OnceLock::from(data)), ..Own::new(source, name)? })
    }

    /// Adds an environment for evaluation; `score_range` are the returns that correspond to a score of 0 and of 100.
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

    /// Returns the log; it is read at most once.
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

/// A warning if chance decides what follows an action: hinges then learn its best outcome.
pub(crate) fn chance(data: &Dataset) -> Option<String> {
    let repeats = Repeats::of(data);
    let (several, pairs) = (repeats.pairs_with_several_successors, repeats.repeated_pairs);
    (several > 0).then(|| {
        format!(
            "{several} of {pairs} repeated pairs of state and action led to different states, but this agent learns the \
             best recorded outcome of an action, not the mean one: expect values that are too high and a policy that counts \
             on luck; `album solve` computes means, and so does --agent iql"
        )
    })
}

/// The agent for a log whose user names none, and why if it is not ALBUM.
///
/// If outcomes are stochastic, hinges learn the best one, IQL the mean one. Rare noise is no reason to switch, nor are
/// continuous actions, where equal pairs mostly come from rounding.
pub(crate) fn default_agent(data: &Dataset) -> (String, Option<String>) {
    let album = ("album".into(), None);
    if !matches!(data.action_space(), ActionSpace::Discrete { .. }) {
        return album; // without a search for repeated pairs, which takes a pass over the data
    }
    let repeats = Repeats::of(data);
    let (several, pairs) = (repeats.pairs_with_several_successors, repeats.repeated_pairs);
    if 10 * several <= pairs {
        return album;
    }
    let why = format!(
        "agent = iql: {several} of {pairs} repeated pairs of state and action led to different states, and iql learns the mean \
         outcome of an action; album learns the best recorded one (--agent album uses it anyway)"
    );
    ("iql".into(), Some(why))
}

/// A warning if rewards prefer no action. Where episodes end early, how long they last makes a difference.
pub(crate) fn constant_rewards(data: &Dataset) -> Option<String> {
    let first = (!data.is_empty()).then(|| data.reward(0))?;
    let equal = |i: usize| data.reward(i) == first && data.mask(i) != 0.0;
    (0..data.len()).all(equal).then(|| format!("every reward is {first}: all actions are equally good"))
}

/// Hyperparameters derived from the data, with the reasons.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    pub gamma: f64,
    pub reward_scale: f64,
    pub k: usize,
    pub steps: u64,
    pub holdout: f64,
    /// How ALBUM's policy is extracted from its values, if actions are discrete.
    pub discrete_policy: Option<&'static str>,
    /// Whether ALBUM keeps its learning rates constant and acts with an average of the actor's weights.
    pub averaged: bool,
    /// Changes that keep the values of a hinge critic from collapsing, if the data seldom takes its best paths.
    pub held_up: Option<HeldUp>,
    pub why: Vec<Reason>,
}

/// Sampling and objective weights with which the penalties can hold the values up (see [`Support`]).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeldUp {
    pub sampling: Sampling,
    pub omega_q: f64,
    pub omega_v: f64,
    pub why: String,
}

impl HeldUp {
    /// `None` if the given coefficients suffice, or if sampling pairs would not help.
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

/// Values that were chosen together, and the reason.
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

    /// One line about those values that are still in effect in `config`; `None` if the user has overridden all of
    /// them.
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

/// Batch size assumed when [`Chosen::steps`] is computed from passes over the data.
const BATCH: usize = 256;
/// Number of passes over the data, subject to the bounds on steps.
const PASSES: usize = 100;
const STEPS: [usize; 2] = [10_000, 200_000];
/// Target for the 95th percentile of absolute discounted returns after scaling: a size that networks reach within a
/// few thousand steps.
const RETURN_SIZE: f64 = 10.0;
/// Weight of each update in the moving average of the actor.
pub(crate) const ACTOR_AVERAGE: f64 = 0.001;

impl Chosen {
    /// Derives hyperparameters from the data and the agent's coefficients; `gamma` is used if given.
    pub fn from_data(data: &Dataset, gamma: Option<f64>, c: &Coefficients) -> Result<Self, Error> {
        let episodes = data.episodes();
        let longest = (0..episodes.len()).map(|episode| episodes.length(episode)).max().unwrap_or(1);
        let mut why = Vec::new();
        let gamma = gamma.unwrap_or_else(|| {
            // With this discount, the end of the longest episode counts about a third as much as its beginning.
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
            // If the data is far from optimal, its returns say little about the best values.
            Some(truth) if held_up.is_some() => {
                let values = truth.state_of_transition().iter().map(|&state| truth.v(state as usize));
                ("best values in the data", scale_of(values))
            }
            _ => ("discounted returns", reward_scale(data, gamma)),
        };
        let reason = format!("95 % of the {what} are within ±{}", three_digits(size));
        why.push(Reason::new([("reward_scale", reward_scale.into())], reason));
        let steps = (PASSES * data.len() / BATCH).clamp(STEPS[0], STEPS[1]) as u64 / 1000 * 1000;
        let whole = |number: i64| toml::Value::Integer(number);
        why.push(Reason::new([("k", whole(k as i64))], format!("the longest episode has {longest} steps")));
        why.push(Reason::new([("steps", whole(steps as i64))], format!("{} transitions", data.len())));
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

/// The factor that scales returns to a size that networks reach quickly, and the 95th percentile of their absolute
/// value before scaling.
pub(crate) fn reward_scale(data: &Dataset, gamma: f64) -> (f64, f64) {
    scale_of(data.returns_to_go(gamma).into_iter())
}

/// The same for arbitrary values. If nearly all of them are 0, only the others count.
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

/// Whether most states were visited more than once. Then Q has seen several actions in a state and the policy can
/// take the best one; otherwise Q only extrapolates to actions that were not tried.
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

    /// Walks in a corridor of states 0 to 9, nearly all of which give up at once; the end of the corridor pays.
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
        // From the returns alone the scale would be 1, since 95 % of them are 0.
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
    fn data_that_teaches_little_is_named() {
        let recorded = |after: [f32; 2], rewards: [f32; 2], mask: f32| {
            let mut rows = Rows { observation_dim: 1, action_dim: 1, ..Rows::default() };
            for (next, reward) in after.into_iter().zip(rewards) {
                rows.observations.extend([0.0, next]);
                rows.actions.extend([1.0, 0.0]);
                rows.rewards.extend([reward, 0.0]);
                rows.masks.extend([mask, 1.0]);
                rows.terminals.extend([false, true]);
            }
            Dataset::in_space(rows, ActionSpace::Discrete { n: 2 }).unwrap()
        };
        let walk = |after| recorded(after, [0.5, 0.5], 1.0);
        assert_eq!(chance(&walk([3.0, 3.0])), None);
        let warning = chance(&walk([3.0, 4.0])).unwrap();
        assert!(warning.starts_with("1 of 1 repeated pairs") && warning.contains("album solve"), "{warning}");
        assert_eq!(default_agent(&walk([3.0, 3.0])), ("album".into(), None));
        let (agent, why) = default_agent(&walk([3.0, 4.0]));
        assert_eq!(agent, "iql");
        assert!(why.unwrap().contains("1 of 1 repeated pairs"));
        let equal = |other, mask| constant_rewards(&recorded([3.0, 4.0], [0.5, other], mask));
        assert_eq!(equal(0.5, 1.0).unwrap(), "every reward is 0.5: all actions are equally good");
        assert_eq!((equal(0.0, 1.0), equal(0.5, 0.0)), (None, None));
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

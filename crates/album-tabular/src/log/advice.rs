//! The policy of a log: the best action of each state, its value, and its uncertainty.

use super::Log;
use super::bootstrap::{Intervals, intervals};
use crate::policy::policy_iteration;
use crate::sparse::{Csr, RowBuilder};
use crate::{EmpiricalMdp, Mdp, TabularError, policy_value};

/// Options of the analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The discount factor.
    pub gamma: f64,
    /// Actions with fewer rows in a state are not recommended there.
    pub min_count: u64,
    /// Number of bootstrap resamples of the episodes; 0 for none.
    pub bootstrap: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl Default for Question {
    fn default() -> Self {
        Self { gamma: 0.95, min_count: 1, bootstrap: 0, seed: 0 }
    }
}

/// The best policy supported by the data, state by state.
#[derive(Debug)]
pub struct Advice {
    /// The empirical MDP of the log.
    pub empirical: EmpiricalMdp,
    /// The pair to take in each state; `None` if no action has enough rows, in which case the recorded
    /// behaviour is kept.
    pub best: Vec<Option<usize>>,
    /// The most frequent pair of each state.
    pub usual: Vec<usize>,
    /// `V*_D`: the value of the policy in each state.
    pub value: Vec<f64>,
    /// The value of the recorded behaviour in each state.
    pub behaviour_value: Vec<f64>,
    /// The gain of the best action over the recorded mix of actions in each state, if the policy is followed
    /// afterwards.
    pub gain: Vec<f64>,
    /// Number of rows of each state.
    pub count: Vec<u64>,
    /// The mean value of the policy at initial states.
    pub initial_value: f64,
    /// The mean value of the recorded behaviour at initial states.
    pub initial_behaviour_value: f64,
    /// The mean discounted return of the recorded episodes.
    pub recorded_return: f64,
    /// The largest residual of the Bellman equation.
    pub residual: f64,
    /// Bootstrap intervals.
    pub intervals: Option<Intervals>,
}

impl Advice {
    /// Solves the empirical MDP of a log.
    pub fn new(log: &Log, question: &Question) -> Result<Self, TabularError> {
        let empirical = EmpiricalMdp::new(&log.data, question.gamma)?;
        let mdp = &empirical.mdp;
        let restricted =
            (question.min_count > 1).then(|| Restricted::new(&empirical, question.min_count)).transpose()?;
        let best_policy = || -> Result<_, TabularError> {
            let solved = restricted.as_ref().map_or(mdp, |restricted| &restricted.mdp);
            let optimum = policy_iteration(solved)?;
            let original = |&pair: &usize| restricted.as_ref().map_or(Some(pair), |r| r.original[pair]);
            let best: Vec<Option<usize>> = optimum.choice.iter().map(original).collect();
            let residual = residual(solved, &optimum.v);
            Ok((optimum.v, best, residual))
        };
        // Two independent solutions of about the same size, in parallel.
        let (behaviour_value, found) = std::thread::scope(|scope| {
            let behaviour = || policy_value(mdp, &empirical.behaviour).1;
            let Ok(thread) = std::thread::Builder::new().spawn_scoped(scope, behaviour) else {
                return (behaviour(), best_policy());
            };
            let found = best_policy();
            (thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), found)
        });
        let (value, best, residual) = found?;
        for (what, values) in [("the value", &value), ("the behaviour's value", &behaviour_value)] {
            if let Some(s) = values.iter().position(|v| !v.is_finite()) {
                let (state, found) = (log.state_label(empirical.state_labels[s] as usize), values[s]);
                return Err(TabularError::NotFinite { what, state, found });
            }
        }
        let states = mdp.decision_states();
        let gain = (0..states).map(|s| gain(&empirical, s, best[s], |pair| mdp.y_1(pair, &value))).collect();
        let usual = (0..states)
            .map(|s| {
                mdp.pairs_of(s).fold(mdp.pairs_of(s).start, |most, pair| {
                    if empirical.counts[pair] > empirical.counts[most] { pair } else { most }
                })
            })
            .collect();
        let count = (0..states).map(|s| empirical.counts[mdp.pairs_of(s)].iter().sum()).collect();
        let returns = returns(log, question.gamma);
        let firsts =
            log.starts.windows(2).map(|episode| mdp.state_of(empirical.row_pair[episode[0]] as usize));
        let at_starts =
            |values: &[f64]| firsts.clone().map(|s| values[s]).sum::<f64>() / log.episodes() as f64;
        let (initial_value, initial_behaviour_value) = (at_starts(&value), at_starts(&behaviour_value));
        let recorded_return = returns.iter().sum::<f64>() / returns.len() as f64;
        for (what, found) in [
            ("the policy's value at initial states", initial_value),
            ("the behaviour's value at initial states", initial_behaviour_value),
            ("the mean recorded return", recorded_return),
            ("the violation of the Bellman equation", residual),
        ] {
            if !found.is_finite() {
                return Err(TabularError::Overflow { what, found });
            }
        }
        let intervals = match question.bootstrap {
            0 => None,
            resamples => Some(intervals(log, &empirical, &best, &returns, resamples, question.seed)?),
        };
        Ok(Self {
            empirical,
            best,
            usual,
            value,
            behaviour_value,
            gain,
            count,
            initial_value,
            initial_behaviour_value,
            recorded_return,
            residual,
            intervals,
        })
    }

    /// The action to take in a state: the best one, or the most frequent one if none has enough rows.
    pub fn pair(&self, state: usize) -> usize {
        self.best[state].unwrap_or(self.usual[state])
    }

    /// Number of states in which the log acts.
    pub fn states(&self) -> usize {
        self.value.len()
    }

    /// Whether more than one action was recorded in a state.
    pub fn is_choice(&self, state: usize) -> bool {
        self.empirical.mdp.pairs_of(state).len() > 1
    }
}

/// The gain of `best` over the recorded mix of actions, by the values of pairs.
pub(super) fn gain(empirical: &EmpiricalMdp, s: usize, best: Option<usize>, q: impl Fn(usize) -> f64) -> f64 {
    let Some(best) = best else { return 0.0 };
    if empirical.mdp.pairs_of(s).len() == 1 {
        return 0.0;
    }
    let mixed: f64 = empirical.mdp.pairs_of(s).map(|pair| empirical.behaviour[pair] * q(pair)).sum();
    q(best) - mixed
}

fn residual(mdp: &Mdp, v: &[f64]) -> f64 {
    let best = |s: usize| mdp.pairs_of(s).map(|pair| mdp.y_1(pair, v)).fold(f64::NEG_INFINITY, f64::max);
    (0..v.len()).map(|s| (v[s] - best(s)).abs()).fold(0.0, f64::max)
}

/// The discounted return of each episode.
fn returns(log: &Log, gamma: f64) -> Vec<f64> {
    let episode_return = |episode: &[usize]| {
        log.data.rewards[episode[0]..episode[1]].iter().rev().fold(0.0, |g, r| r + gamma * g)
    };
    log.starts.windows(2).map(episode_return).collect()
}

/// The empirical MDP without rare actions. If no action is left in a state, the recorded mix is its only one.
struct Restricted {
    mdp: Mdp,
    /// The pair of the full MDP; `None` for a mix.
    original: Vec<Option<usize>>,
}

impl Restricted {
    fn new(empirical: &EmpiricalMdp, min_count: u64) -> Result<Self, TabularError> {
        let whole = &empirical.mdp;
        let (mut first_pair, mut reward, mut original) = (vec![0], Vec::new(), Vec::new());
        let mut kernel = Csr::new(whole.states());
        let mut row = RowBuilder::new(whole.states());
        for s in 0..whole.decision_states() {
            for pair in whole.pairs_of(s).filter(|&pair| empirical.counts[pair] >= min_count) {
                for (next, p) in whole.kernel().row(pair) {
                    kernel.push(next, p);
                }
                kernel.end_row();
                reward.push(whole.reward()[pair]);
                original.push(Some(pair));
            }
            if reward.len() == first_pair[s] {
                for pair in whole.pairs_of(s) {
                    for (next, p) in whole.kernel().row(pair) {
                        row.add(next, empirical.behaviour[pair] * p);
                    }
                }
                row.finish(&mut kernel);
                reward.push(
                    whole.pairs_of(s).map(|pair| empirical.behaviour[pair] * whole.reward()[pair]).sum(),
                );
                original.push(None);
            }
            first_pair.push(reward.len());
        }
        let mdp = Mdp::from_parts(whole.gamma(), whole.states(), first_pair, reward, kernel)?;
        Ok(Self { mdp, original })
    }
}

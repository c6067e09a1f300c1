//! Compares a learned critic and its policy with the exact in-sample values, where states repeat.

use crate::error::Error;
use album_agents::{Agent, Metrics, Moment};
use album_data::{ActionSpace, Dataset, View};
use album_tabular::truth::Truth;
use serde::{Deserialize, Serialize};

/// Data with more distinct states than this is not treated as tabular.
const STATES: usize = 20_000;
/// Maximum number of points in a figure.
const POINTS: usize = 2000;

/// The exact values of a dataset with few states and discrete actions, as a reference for agents.
#[derive(Debug)]
pub(crate) struct Exact {
    truth: Truth,
    observations: Vec<f32>,
    dim: usize,
}

/// Learned values compared with exact ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// `[Q*_D, Q]` of recorded state-action pairs.
    pub q: Vec<[f64; 2]>,
    /// `[V*_D, V]` of each state.
    pub v: Vec<[f64; 2]>,
    /// Mean of V*_D over the data.
    pub mean_v_star: f64,
    /// Mean exact value of the learned policy over the data.
    pub mean_policy_value: f64,
}

/// The exact values of the data; `None` if actions are continuous or states do not repeat.
pub(crate) fn truth(data: &Dataset, gamma: f64) -> Result<Option<Truth>, Error> {
    if !matches!(data.action_space(), ActionSpace::Discrete { .. }) {
        return Ok(None);
    }
    let truth = Truth::of(data, gamma)?;
    Ok((truth.states() <= STATES.min(data.len() / 2)).then_some(truth))
}

impl Exact {
    /// Solves the data exactly; `None` if actions are continuous or states do not repeat.
    pub fn of(data: &Dataset, gamma: f64) -> Result<Option<Self>, Error> {
        let Some(truth) = truth(data, gamma)? else { return Ok(None) };
        let dim = data.observation_dim();
        let observations = (0..truth.states()).flat_map(|state| truth.observation(state).to_vec()).collect();
        Ok(Some(Exact { truth, observations, dim }))
    }

    /// Adds the critic's errors and the policy's exact value to the metrics.
    pub fn measure(&self, agent: &mut dyn Agent, metrics: &mut Metrics) {
        let (truth, n) = (&self.truth, self.truth.actions());
        if let Some(q) = self.q(agent) {
            let errors = truth.q_errors(|state, action| f64::from(q[state * n + action]));
            metrics.push(("exact/q_error".into(), errors.mean));
            metrics.push(("exact/q_bias".into(), errors.bias));
        }
        if let Some(v) = self.v(agent) {
            metrics.push(("exact/v_error".into(), truth.v_errors(|state| f64::from(v[state])).mean));
        }
        metrics.push(("exact/policy_value".into(), self.policy_value(agent)));
        metrics.push(("exact/v_star".into(), self.v_star()));
    }

    /// The full comparison, for a report.
    pub fn compare(&self, agent: &mut dyn Agent) -> Compared {
        let (truth, n) = (&self.truth, self.truth.actions());
        let thin = |points: Vec<[f64; 2]>| {
            let every = points.len().div_ceil(POINTS).max(1);
            points.into_iter().step_by(every).collect::<Vec<_>>()
        };
        let q = self.q(agent).map_or_else(Vec::new, |q| {
            truth.pairs().map(|pair| [pair.q, f64::from(q[pair.state * n + pair.action])]).collect()
        });
        let v = self.v(agent).map_or_else(Vec::new, |v| {
            (0..truth.states()).map(|state| [truth.v(state), f64::from(v[state])]).collect()
        });
        Compared {
            q: thin(q),
            v: thin(v),
            mean_v_star: self.v_star(),
            mean_policy_value: self.policy_value(agent),
        }
    }

    fn states(&self) -> View<'_> {
        View::new(&self.observations, self.truth.states(), self.dim)
    }

    fn q(&self, agent: &mut dyn Agent) -> Option<Vec<f32>> {
        agent.q_of_choices(self.states())
    }

    fn v(&self, agent: &mut dyn Agent) -> Option<Vec<f32>> {
        agent.value(self.states())
    }

    fn v_star(&self) -> f64 {
        let values: Vec<f64> = (0..self.truth.states()).map(|state| self.truth.v(state)).collect();
        self.truth.mean_over_data(&values)
    }

    /// The exact value of the policy in the empirical MDP, averaged over the data. Actions that do not occur in the
    /// data get the worst value that its rewards allow.
    fn policy_value(&self, agent: &mut dyn Agent) -> f64 {
        let moments: Vec<Moment> =
            (0..self.truth.states()).map(|row| Moment { episode: row as u64, step: 0 }).collect();
        let mut actions = Vec::new();
        agent.policy().act(&self.observations, &moments, &mut actions);
        let choice = |state: usize| {
            let mut probabilities = vec![0.0; self.truth.actions()];
            probabilities[actions[state] as usize] = 1.0;
            probabilities
        };
        self.truth.value_of_policy(choice).map_or(f64::NAN, |value| self.truth.mean_over_data(&value.values))
    }
}

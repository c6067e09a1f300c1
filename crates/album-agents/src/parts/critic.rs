//! What the baselines' critics share: an ensemble with or without a target network, and temporal-difference
//! losses.

use crate::agent::AgentError;
use crate::algorithm::Inputs;
use crate::common::{at_least_one, positive, rate};
use crate::networks::{NetworkId, Networks};
use album_nn::{MlpSpec, Var};
use serde::{Deserialize, Serialize};

/// How the values of ensemble members are aggregated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// The mean.
    #[default]
    Mean,
    /// The minimum.
    Min,
}

impl Aggregate {
    /// Aggregates a matrix with a column for each member into one column.
    pub fn of(self, q: Var<'_>) -> Var<'_> {
        match self {
            Aggregate::Mean => q.mean_cols(),
            Aggregate::Min => q.min_cols(),
        }
    }
}

/// Hyperparameters of a critic; part of the configuration of every baseline with one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CriticConfig {
    /// Learning rate of all networks.
    pub lr: f64,
    /// Number of critics.
    pub ensemble: usize,
    /// Whether targets are computed with target networks, slowly moving copies of the critics.
    pub target_network: bool,
    /// Update rate of the target networks.
    pub tau: f64,
    /// How ensemble members are aggregated in targets: `mean` or `min`.
    pub q_agg: Aggregate,
}

impl Default for CriticConfig {
    fn default() -> Self {
        CriticConfig { lr: 3e-4, ensemble: 2, target_network: true, tau: 0.005, q_agg: Aggregate::Mean }
    }
}

impl CriticConfig {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<(), AgentError> {
        positive(&[("lr", self.lr)])?;
        rate(&[("tau", self.tau)])?;
        at_least_one(&[("ensemble", self.ensemble)])
    }

    /// The settling time of one-step bootstrapping, in updates of the target network.
    ///
    /// Where the reward is always r, the critic soon equals `r + gamma qbar`, so an update moves the target by
    /// `tau (r - (1 - gamma) qbar)`: it approaches `r / (1 - gamma)` with the time constant `1 / (tau (1 - gamma))`, and
    /// three time constants are 95 % of the way.
    pub fn settling_steps(&self, gamma: f64) -> Option<f64> {
        self.target_network.then(|| 3.0 / (self.tau * (1.0 - gamma)))
    }
}

/// A value network: hidden layers with LayerNorm, one output.
pub fn value_spec(inputs: usize, hidden: &[usize]) -> MlpSpec {
    MlpSpec::new(inputs, hidden, 1).layer_norm(true)
}

/// An ensemble of Q networks and its target network; without one, the target is the ensemble itself.
#[derive(Clone, Copy)]
pub struct Critic {
    /// The online networks.
    pub q: NetworkId,
    /// The networks that targets are computed with.
    pub target: NetworkId,
}

impl Critic {
    /// Creates the networks: `inputs` is the dimension of state and action.
    pub fn new(
        nets: &mut Networks,
        [name, target_name]: [&str; 2],
        inputs: usize,
        hidden: &[usize],
        c: &CriticConfig,
    ) -> Self {
        Self::of(nets, [name, target_name], value_spec(inputs, hidden), c)
    }

    /// Creates an ensemble of networks of another shape.
    pub fn of(nets: &mut Networks, [name, target_name]: [&str; 2], spec: MlpSpec, c: &CriticConfig) -> Self {
        let q = nets.value(name, spec.members(c.ensemble), c.lr);
        let target = if c.target_network { nets.target(target_name, q, c.tau) } else { q };
        Critic { q, target }
    }

    /// Q of every member at recorded states and actions, with gradients to the weights.
    pub fn online<'t>(&self, nets: &Networks, s_a: Var<'t>) -> Var<'t> {
        s_a.tape().apply(&nets[self.q], s_a)
    }

    /// The target networks' Q of every member at recorded states and actions.
    pub fn recorded_target<'t>(&self, nets: &Networks, s_a: Var<'t>) -> Var<'t> {
        s_a.tape().apply_frozen(&nets[self.target], s_a)
    }

    /// Q of every member, with gradients only to `a`.
    pub fn frozen<'t>(&self, nets: &Networks, s: Var<'t>, a: Var<'t>) -> Var<'t> {
        s.tape().apply_frozen(&nets[self.q], s.tape().concat_cols(&[s, a]))
    }

    /// The target networks' Q of every member.
    pub fn target<'t>(&self, nets: &Networks, s: Var<'t>, a: Var<'t>) -> Var<'t> {
        self.recorded_target(nets, s.tape().concat_cols(&[s, a]))
    }
}

/// `r + gamma m v'`, with stopped gradients.
pub fn one_step_target<'t>(x: &Inputs<'t, '_>, gamma: f64, v_next: Var<'t>) -> Var<'t> {
    (x.r() + gamma as f32 * x.m() * v_next).detach()
}

/// `r_0 + ... + gamma^(h-1) r_(h-1) + gamma^h m_h v_h`, with stopped gradients.
pub fn window_target<'t>(x: &Inputs<'t, '_>, v_last: Var<'t>) -> Var<'t> {
    (x.r_k() + x.g_k() * v_last).detach()
}

/// The factor that turns the bootstrap factor `gamma_1^h` of windows discounted by `gamma_1` into `gamma^h`.
/// Shorter windows have weight 0.
pub fn bootstrap_ratio(gamma: f64, gamma_1: f64, h: usize) -> f32 {
    (gamma / gamma_1).powi(h as i32) as f32
}

/// `- E[q] / (sg(E|q|) + epsilon)`, or `- E[q]` without an epsilon: the actor's loss term that maximises Q.
pub fn maximise(q: Var<'_>, epsilon: Option<f32>) -> Var<'_> {
    match epsilon {
        Some(epsilon) => -(q.mean() / (q.abs().mean().detach() + epsilon)),
        None => -q.mean(),
    }
}

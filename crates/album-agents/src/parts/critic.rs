//! What the critics of the baselines share: an ensemble with or without a target network, and losses of temporal
//! differences.

use crate::agent::AgentError;
use crate::algorithm::Inputs;
use crate::common::{at_least_one, positive, rate};
use crate::networks::{NetworkId, Networks};
use album_nn::{MlpSpec, Var};
use serde::{Deserialize, Serialize};

/// How the members of an ensemble make one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// Their mean.
    #[default]
    Mean,
    /// The smallest of them.
    Min,
}

impl Aggregate {
    /// One column of a matrix with a column for each member.
    pub fn of(self, q: Var<'_>) -> Var<'_> {
        match self {
            Aggregate::Mean => q.mean_cols(),
            Aggregate::Min => q.min_cols(),
        }
    }
}

/// Hyperparameters of a critic; part of the configuration of every baseline that has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CriticConfig {
    /// Learning rate of all networks.
    pub lr: f64,
    /// Critics.
    pub ensemble: usize,
    /// Whether targets are computed with slowly moving copies of the networks.
    pub target_network: bool,
    /// How fast these move.
    pub tau: f64,
    /// How the members of the ensemble make one value in targets: `mean` or `min`.
    pub q_agg: Aggregate,
}

impl Default for CriticConfig {
    fn default() -> Self {
        CriticConfig { lr: 3e-4, ensemble: 2, target_network: true, tau: 0.005, q_agg: Aggregate::Mean }
    }
}

impl CriticConfig {
    /// Refuses what is outside its domain.
    pub fn check(&self) -> Result<(), AgentError> {
        positive(&[("lr", self.lr)])?;
        rate(&[("tau", self.tau)])?;
        at_least_one(&[("ensemble", self.ensemble)])
    }
}

/// A value network: hidden layers with LayerNorm, one output.
pub fn value_spec(inputs: usize, hidden: &[usize]) -> MlpSpec {
    MlpSpec::new(inputs, hidden, 1).layer_norm(true)
}

/// An ensemble of Q networks and its target, which is itself where there is no target network.
#[derive(Clone, Copy)]
pub struct Critic {
    /// The online networks.
    pub q: NetworkId,
    /// What targets are computed with.
    pub target: NetworkId,
}

impl Critic {
    /// Makes the networks: `inputs` is the width of state and action.
    pub fn new(
        nets: &mut Networks,
        [name, target_name]: [&str; 2],
        inputs: usize,
        hidden: &[usize],
        c: &CriticConfig,
    ) -> Self {
        Self::of(nets, [name, target_name], value_spec(inputs, hidden), c)
    }

    /// Makes an ensemble of other networks.
    pub fn of(nets: &mut Networks, [name, target_name]: [&str; 2], spec: MlpSpec, c: &CriticConfig) -> Self {
        let q = nets.value(name, spec.members(c.ensemble), c.lr);
        let target = if c.target_network { nets.target(target_name, q, c.tau) } else { q };
        Critic { q, target }
    }

    /// Q of every member for recorded states and actions side by side, to be trained.
    pub fn online<'t>(&self, nets: &Networks, s_a: Var<'t>) -> Var<'t> {
        s_a.tape().apply(&nets[self.q], s_a)
    }

    /// The target networks' Q of every member for recorded states and actions side by side.
    pub fn recorded_target<'t>(&self, nets: &Networks, s_a: Var<'t>) -> Var<'t> {
        s_a.tape().apply_frozen(&nets[self.target], s_a)
    }

    /// Q of every member, of which only the gradient by `a` is asked for.
    pub fn frozen<'t>(&self, nets: &Networks, s: Var<'t>, a: Var<'t>) -> Var<'t> {
        s.tape().apply_frozen(&nets[self.q], s.tape().concat_cols(&[s, a]))
    }

    /// The target networks' Q of every member.
    pub fn target<'t>(&self, nets: &Networks, s: Var<'t>, a: Var<'t>) -> Var<'t> {
        self.recorded_target(nets, s.tape().concat_cols(&[s, a]))
    }
}

/// `r + gamma m v'`, where gradients stop.
pub fn one_step_target<'t>(x: &Inputs<'t, '_>, gamma: f64, v_next: Var<'t>) -> Var<'t> {
    (x.r() + gamma as f32 * x.m() * v_next).detach()
}

/// `r_0 + ... + gamma^(h-1) r_(h-1) + gamma^h m_h v_h`, where gradients stop.
pub fn window_target<'t>(x: &Inputs<'t, '_>, v_last: Var<'t>) -> Var<'t> {
    (x.r_k() + x.g_k() * v_last).detach()
}

/// What turns the bootstrap factor `gamma_1^h` of windows discounted by `gamma_1` into `gamma^h`. Windows that end sooner
/// have weight 0.
pub fn bootstrap_ratio(gamma: f64, gamma_1: f64, h: usize) -> f32 {
    (gamma / gamma_1).powi(h as i32) as f32
}

/// `- E[q] / (sg(E|q|) + epsilon)`, or `- E[q]` without an epsilon: what an actor adds to its loss in order to maximise Q.
pub fn maximise(q: Var<'_>, epsilon: Option<f32>) -> Var<'_> {
    match epsilon {
        Some(epsilon) => -(q.mean() / (q.abs().mean().detach() + epsilon)),
        None => -q.mean(),
    }
}

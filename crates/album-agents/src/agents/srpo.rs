//! SRPO: score-regularised policy optimisation (Chen et al., 2024).
//!
//! ```text
//! L(V), L(Q)   as in IQL
//! L(phi)       = E[ |eps(s, x_t, t) - z|^2 ],     x_t = alpha_t a + sigma_t z,   t uniform on [0.001, 1]
//! L(psi)       = E[ sigma_t^2 <sg(eps(s, a_t, t)), pi(s)> - beta <sg(g), pi(s)> ],
//!                a_t = alpha_t pi(s) + sigma_t z,   t uniform on [0.02, 0.98],   g = grad_a mean_i Qbar_i(s, pi(s))
//! ```
//!
//! `g` is divided by the root of the mean of its squares where `normalize_guidance` says so. Draws `t`, `z` and the masks
//! of dropout for the behaviour, then `t` and `z` for the policy. Acts by `pi(s)`.

use crate::agent::AgentError;
use crate::agents::idql;
use crate::agents::iql::Values;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Setup, Sizes};
use crate::common::{Common, at_least_one, fail, nonnegative, open_unit};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, CriticConfig};
use crate::parts::diffusion::{Frequencies, NoiseNet, NoiseNetConfig, continuous, levels};
use crate::parts::flow::Through;
use crate::registry::AgentKind;
use crate::schedule::Decay;
use album_data::SegmentConfig;
use album_nn::{Activation, Matrix, MlpSpec, Tape, Var};
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "srpo",
    "deterministic",
    "arXiv 2310.07297",
    include_str!("../../presets/srpo.toml"),
);

/// Hyperparameters. Defaults are those of the original code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks of the values (ReLU, no LayerNorm), batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// The expectile that V estimates, between 0 and 1.
    pub expectile: f64,
    /// The behaviour's network.
    #[serde(flatten)]
    pub noise_net: NoiseNetConfig,
    /// Widths of the hidden layers of the policy (ReLU), each at least 1.
    pub policy_hidden: Vec<usize>,
    /// Weight of the values against the behaviour, at least 0. Chosen per environment.
    pub beta: f64,
    /// Whether the gradient of Q counts by its direction alone.
    pub normalize_guidance: bool,
    /// The step from which on the policy learns: before, only behaviour and values do.
    pub policy_from: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common { hidden: vec![256; 2], lr_decay: Decay::Cosine, ..Common::default() },
            critic: CriticConfig { q_agg: Aggregate::Min, ..CriticConfig::default() },
            expectile: 0.9,
            noise_net: NoiseNetConfig::default(),
            policy_hidden: vec![256; 2],
            beta: 0.1,
            normalize_guidance: false,
            policy_from: 0,
        }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        self.noise_net.check()?;
        open_unit(&[("expectile", self.expectile)])?;
        nonnegative(&[("beta", self.beta)])?;
        at_least_one(&[("ensemble", self.critic.ensemble)])?;
        if self.policy_hidden.contains(&0) {
            return fail("policy_hidden", format!("{:?}", self.policy_hidden), "layer widths of at least 1");
        }
        Ok(())
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let values = idql::values(nets, sizes, &self.common.hidden, &self.critic, self.expectile);
        let lr = self.critic.lr;
        let behaviour = NoiseNet::new(nets, Frequencies::Fixed, (sizes.s, sizes.a), &self.noise_net, lr);
        let spec = MlpSpec::new(sizes.s, &self.policy_hidden, sizes.a).activation(Activation::Relu);
        let actor = nets.policy("actor", spec, lr);
        Box::new(Srpo { config: self.clone(), values, behaviour, actor })
    }
}

struct Srpo {
    config: Config,
    values: Values,
    behaviour: NoiseNet<NetworkId>,
    actor: NetworkId,
}

impl Srpo {
    /// Q of the target networks, mean over members, and its gradient by the action, as constants. On a tape of its own,
    /// because a gradient that is part of a loss has to be there before the loss is differentiated.
    fn guidance<'t>(&self, nets: &Networks, s: Var<'t>, a: Var<'t>) -> (Var<'t>, Var<'t>) {
        let outer = s.tape();
        let inner = Tape::new(outer.pool());
        let action = inner.variable(&a.to_matrix());
        let q = self.values.critic.target(nets, inner.constant(&s.to_matrix()), action).mean_cols();
        let gradient: Matrix = q.sum().backward().wrt(action);
        outer.count_operations(inner.operations());
        (outer.constant(&q.to_matrix()), outer.constant(&gradient))
    }
}

impl Algorithm for Srpo {
    fn segments(&self) -> SegmentConfig {
        SegmentConfig { k: 1, gamma: self.config.common.gamma, ..SegmentConfig::default() }
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let c = &self.config;
        let values = self.values.losses(nets, x, c.common.gamma);
        let net = self.behaviour.of(nets);
        let behaviour = net.error(x, &c.noise_net, &times(x, 1e-3, 1.0), continuous).mean();

        let s = x.s();
        let a = x.tape.apply(&nets[self.actor], s).tanh();
        let t = times(x, 0.02, 0.98);
        let z = x.normal(a.cols());
        let (alpha, sigma) = levels(z, &t, continuous);
        let noisy = (alpha * a + sigma * z).detach();
        let predicted = net.predict(s, noisy, &t, &[], Through::Frozen);
        let (q, mut g) = self.guidance(nets, s, a);
        if c.normalize_guidance {
            g = g / g.square().mean_cols().sqrt().max(x.tape.filled(1, 1, 1e-12));
        }
        let regularisation = (sigma.square() * predicted * a).sum_cols().mean();
        let q_loss = -(c.beta as f32 * (g * a).sum_cols().mean());
        let actor = regularisation + q_loss;

        let mut measures = x.measures();
        values.measure(&mut measures);
        measures
            .mean("actor/actor_loss", actor)
            .mean("actor/behavior_loss", behaviour)
            .mean("actor/score_loss", regularisation)
            .mean("actor/q_loss", q_loss)
            .value("actor/q", q);
        let total = values.value + values.critic + behaviour;
        Loss { total: if x.step >= c.policy_from { total + actor } else { total }, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        let actor = nets[self.actor].clone();
        Box::new(move |x| x.tape.apply_frozen(&actor, x.s).tanh())
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.values.v)
    }
}

/// One time for each row, uniform between `from` and `to`.
fn times(x: &Inputs<'_, '_>, from: f64, to: f64) -> Vec<f64> {
    x.uniform(1).with_value(|u| u.iter().map(|&u| from + (to - from) * f64::from(u)).collect())
}

//! SRPO: score-regularised policy optimisation (Chen et al., 2024).
//!
//! ```text
//! L(V), L(Q)   as in IQL
//! L(phi)       = E[ |eps(s, x_t, t) - z|^2 ],     x_t = alpha_t a + sigma_t z,   t uniform on [0.001, 1]
//! L(psi)       = E[ sigma_t^2 <sg(eps(s, a_t, t)), pi(s)> - beta <sg(g), pi(s)> ],
//!                a_t = alpha_t pi(s) + sigma_t z,   t uniform on [0.02, 0.98],   g = grad_a mean_i Qbar_i(s, pi(s))
//! ```
//!
//! With `normalize_guidance`, `g` is divided by its root mean square. Draws `t`, `z` and the dropout masks
//! for the behaviour, then `t` and `z` for the policy. Acts by `pi(s)`.

use crate::agent::AgentError;
use crate::agents::idql;
use crate::agents::iql::Values;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, fail, nonnegative, open_unit};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, CriticConfig};
use crate::parts::diffusion::{Frequencies, NoiseNet, NoiseNetConfig, continuous, levels};
use crate::parts::flow::Through;
use crate::parts::times::Times;
use crate::registry::AgentKind;
use crate::schedule::Decay;
use album_data::SegmentConfig;
use album_nn::{Activation, MlpSpec, Var};
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
    /// The behaviour model's network.
    #[serde(flatten)]
    pub noise_net: NoiseNetConfig,
    /// Widths of the hidden layers of the policy (ReLU), each at least 1.
    pub policy_hidden: Vec<usize>,
    /// Weight of the values relative to the behaviour, at least 0. Chosen per environment.
    pub beta: f64,
    /// Whether to normalise the gradient of Q, so that only its direction counts.
    pub normalize_guidance: bool,
    /// The step at which policy training starts; before it, only the behaviour model and the values are
    /// trained.
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
    behaviour: NoiseNet,
    actor: NetworkId,
}

impl Srpo {
    /// `|eps(s, x_t, t) - z|^2`: the loss of the behaviour model.
    fn behaviour_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Var<'t> {
        let time = uniform(1e-3, 1.0);
        let times = Times { drawn: x.uniform(1), time: &time };
        self.behaviour.error(nets, x, &self.config.noise_net, times, continuous).mean()
    }

    /// The policy loss; `behaviour`, the behaviour model's loss, is only logged.
    fn actor_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        behaviour: Var<'t>,
        measures: &mut Measures<'t>,
    ) -> Var<'t> {
        let (c, s) = (&self.config, x.s());
        let a = x.tape.apply(&nets[self.actor], s).tanh();
        let time = uniform(0.02, 0.98);
        let times = Times { drawn: x.uniform(1), time: &time };
        let z = x.normal(a.cols());
        let (alpha, sigma) = levels(times, continuous);
        let noisy = (alpha * a + sigma * z).detach();
        let predicted = self.behaviour.predict(nets, s, noisy, times, |h| h, Through::Frozen);
        let q = self.values.critic.target(nets, s, a).mean_cols();
        let mut g = q.sum().gradient_by(a);
        if c.normalize_guidance {
            g = g / g.square().mean_cols().sqrt().max(x.tape.filled(1, 1, 1e-12));
        }
        let regularisation = (sigma.square() * predicted * a).sum_cols().mean();
        let q_loss = -(c.beta as f32 * (g * a).sum_cols().mean());
        let loss = regularisation + q_loss;

        measures
            .mean("actor/actor_loss", loss)
            .mean("actor/behavior_loss", behaviour)
            .mean("actor/score_loss", regularisation)
            .mean("actor/q_loss", q_loss)
            .value("actor/q", q);
        loss
    }
}

impl Algorithm for Srpo {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let critic = self.values.critic_loss(nets, x, self.config.common.gamma, &mut measures);
        let behaviour = self.behaviour_loss(nets, x);
        let actor = self.actor_loss(nets, x, behaviour, &mut measures);
        let total = critic + behaviour;
        Loss { total: if x.step >= self.config.policy_from { total + actor } else { total }, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        let actor = nets[self.actor].clone();
        Box::new(move |x| x.tape.apply_frozen(&actor, x.s).tanh())
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.values.v)
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        self.values.q()
    }
}

/// Maps a number from U[0, 1] to a time between `from` and `to`.
fn uniform(from: f64, to: f64) -> impl Fn(f64) -> f64 {
    move |u| from + (to - from) * u
}

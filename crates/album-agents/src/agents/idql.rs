//! IDQL: implicit Q-learning with a diffusion model of the behaviour (Hansen-Estruch et al., 2023).
//!
//! ```text
//! L(V), L(Q)   as in IQL
//! L(psi)       = E[ |eps(s, x_t, t) - z|^2 ],     x_t = sqrt(ahat_t) a + sqrt(1 - ahat_t) z,   t uniform on 0..T-1
//! ```
//!
//! Acts by the best of N samples of the policy's moving average, ranked by `min_i Qbar_i(s, a)`. Draws `t`,
//! `z`, then the dropout masks.

use crate::agent::AgentError;
use crate::agents::iql::Values;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative, open_unit, rate};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, CriticConfig};
use crate::parts::diffusion::{Frequencies, NoiseNet, NoiseNetConfig, Steps};
use crate::parts::times::Times;
use crate::registry::AgentKind;
use crate::schedule::Decay;
use album_data::SegmentConfig;
use album_nn::{Activation, MlpSpec, Var};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "idql",
    "diffusion",
    "arXiv 2304.10573",
    include_str!("../../presets/idql.toml"),
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
    /// The policy's network.
    #[serde(flatten)]
    pub noise_net: NoiseNetConfig,
    /// Diffusion steps from noise to an action, at least 1.
    pub diffusion_steps: usize,
    /// Rate of the moving average of the policy that acts, above 0 and at most 1.
    pub ema_rate: f64,
    /// Number of sampled actions of which the best is taken, at least 1.
    pub num_samples: usize,
    /// AdamW's weight decay of the policy, at least 0.
    pub weight_decay: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common {
                hidden: vec![256; 2],
                batch_size: 512,
                lr_decay: Decay::Cosine,
                ..Common::default()
            },
            critic: CriticConfig { q_agg: Aggregate::Min, ..CriticConfig::default() },
            expectile: 0.9,
            noise_net: NoiseNetConfig::default(),
            diffusion_steps: 5,
            ema_rate: 0.001,
            num_samples: 64,
            weight_decay: 1e-4,
        }
    }
}

/// V and Q as in IDQL and SRPO: ReLU, no LayerNorm.
pub(crate) fn values(
    nets: &mut Networks,
    sizes: Sizes,
    hidden: &[usize],
    c: &CriticConfig,
    expectile: f64,
) -> Values {
    let spec = |inputs| MlpSpec::new(inputs, hidden, 1).activation(Activation::Relu);
    Values::of(nets, sizes, spec, c, expectile)
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        self.noise_net.check()?;
        open_unit(&[("expectile", self.expectile)])?;
        rate(&[("ema_rate", self.ema_rate)])?;
        nonnegative(&[("weight_decay", self.weight_decay)])?;
        at_least_one(&[("diffusion_steps", self.diffusion_steps), ("num_samples", self.num_samples)])
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let values = values(nets, sizes, &self.common.hidden, &self.critic, self.expectile);
        let lr = self.critic.lr;
        let policy = NoiseNet::new(nets, Frequencies::Learned, (sizes.s, sizes.a), &self.noise_net, lr);
        nets.decay_policy(self.weight_decay);
        let acting = policy.moving_average(nets, self.ema_rate);
        let steps = Arc::new(Steps::new(self.diffusion_steps));
        Box::new(Idql { config: self.clone(), a: sizes.a, values, policy, acting: Arc::new(acting), steps })
    }
}

struct Idql {
    config: Config,
    a: usize,
    values: Values,
    policy: NoiseNet,
    acting: Arc<NoiseNet>,
    steps: Arc<Steps>,
}

impl Idql {
    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let time = |u| self.steps.drawn(u);
        let times = Times { drawn: x.uniform(1), time: &time };
        let error = self.policy.error(nets, x, &self.config.noise_net, times, |t| self.steps.level(t));
        let loss = error.mean();
        measures.mean("actor/actor_loss", loss);
        loss
    }
}

impl Algorithm for Idql {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let critic = self.values.critic_loss(nets, x, self.config.common.gamma, &mut measures);
        let actor = self.actor_loss(nets, x, &mut measures);
        Loss { total: critic + actor, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        let (nets, policy, steps) = (nets.snapshot(), self.acting.clone(), self.steps.clone());
        let (q, n, a) = (self.values.critic.target, self.config.num_samples, self.a);
        Box::new(move |x| {
            let s = x.repeated(n);
            let actions = steps.sample(&policy, &nets, s, x.normal(n, a), || x.normal(n, a));
            let q = x.tape.apply_frozen(&nets[q], x.tape.concat_cols(&[s, actions])).min_cols();
            x.best(n, actions, q)
        })
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.values.v)
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        self.values.q()
    }
}

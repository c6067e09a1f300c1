//! SAC: soft actor-critic (Haarnoja et al., 2018), as used for OGBench's locomotion experts.
//!
//! ```text
//! pi(.|s) = tanh( N(mean(s), std(s)^2) ),                  log std(s) clipped to [-5, 2]
//! y        = r + gamma m ( min_i Qbar_i(s', a') - alpha log pi(a'|s') ),          a' ~ pi(.|s')
//! L(Q)     = E[ mean_i (Q_i(s,a) - y)^2 ]
//! L(psi)   = E[ alpha log pi(a|s) - min_i Q_i(s,a) ],                             a ~ pi(.|s)
//! L(alpha) = alpha ( H - Hbar ),    H = - E[ log pi(a|s) ],   Hbar = - h |A|,   alpha = exp(parameter)
//! ```
//!
//! All losses are taken at the same parameters. This is an online agent: nothing keeps its actor near the
//! data, so it needs an environment in which overestimated actions are tried and corrected
//! ([`Algorithm::explore`]). On recorded data alone it is the baseline that shows why offline agents need
//! more.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, nonnegative};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, one_step_target};
use crate::parts::flow::Through;
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::{MlpSpec, Var};
use serde::{Deserialize, Serialize};
use std::f32::consts::{LN_2, TAU};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("sac", "Gaussian", "arXiv 1812.05905", include_str!("../../presets/sac.toml"));

/// Clipping range of log std.
const LOG_STD: [f32; 2] = [-5.0, 2.0];

/// Hyperparameters. Defaults are those of OGBench's ant expert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic; its learning rate applies to all networks and to alpha.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// h: the target entropy of alpha is minus this per action dimension.
    pub target_entropy: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common { hidden: vec![256; 2], ..Common::default() },
            critic: CriticConfig { lr: 1e-4, q_agg: Aggregate::Min, ..CriticConfig::default() },
            target_entropy: 0.5,
        }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        nonnegative(&[("target_entropy", self.target_entropy)])
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let (hidden, lr) = (&self.common.hidden, self.critic.lr);
        let spec = MlpSpec::new(sizes.s + sizes.a, hidden, 1);
        let critic = Critic::of(nets, ["q", "q_target"], spec, &self.critic);
        // Mean and log std side by side, each initialised like the last layer of a network of its own.
        let width = hidden.last().map_or(sizes.s, |&width| width);
        let scale = 0.01 * (width + 2 * sizes.a) as f32 / (width + sizes.a) as f32;
        let actor = nets.policy("actor", MlpSpec::new(sizes.s, hidden, 2 * sizes.a).output_scale(scale), lr);
        let alpha = nets.policy("alpha", MlpSpec::parameter(1, 1), lr);
        Box::new(Sac { config: self.clone(), a: sizes.a, critic, actor, alpha })
    }
}

struct Sac {
    config: Config,
    /// Dimension of an action.
    a: usize,
    critic: Critic,
    actor: NetworkId,
    /// alpha is the exponential of this parameter.
    alpha: NetworkId,
}

/// Mean and log std from the actor's output, for `a` action dimensions.
fn gaussian(output: Var<'_>, a: usize) -> (Var<'_>, Var<'_>) {
    let [low, high] = LOG_STD;
    (output.slice_cols(0, a), output.slice_cols(a, 2 * a).clip(low, high))
}

impl Sac {
    /// a ~ pi(.|s) and log pi(a|s). Draws eps.
    fn sample<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        s: Var<'t>,
        through: Through,
    ) -> (Var<'t>, Var<'t>) {
        let (mean, log_std) = gaussian(through.apply(&nets[self.actor], s), self.a);
        let eps = x.normal(self.a);
        let u = mean + log_std.exp() * eps;
        // log N(u; mean, std^2) - log |d tanh / du|, the latter in a form without cancellation.
        let log_normal = -0.5 * eps.square() - log_std - 0.5 * TAU.ln();
        let log_slope = 2.0 * (LN_2 - u - (-2.0 * u).softplus());
        (u.tanh(), (log_normal - log_slope).sum_cols())
    }

    fn critic_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let c = &self.config;
        let alpha = x.tape.parameter_frozen(&nets[self.alpha]).exp();
        let (a_next, log_pi) = self.sample(nets, x, x.s_next(), Through::Frozen);
        let q_next = c.critic.q_agg.of(self.critic.target(nets, x.s_next(), a_next));
        let y = one_step_target(x, c.common.gamma, q_next - alpha * log_pi);
        let q = self.critic.online(nets, x.s_a());
        let loss = (q - y).square().mean();
        measures.mean("critic/critic_loss", loss).q(q);
        loss
    }

    /// L(psi) + L(alpha).
    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let alpha = x.tape.parameter(&nets[self.alpha]).exp();
        let (a, log_pi) = self.sample(nets, x, x.s(), Through::Trained);
        let q = self.config.critic.q_agg.of(self.critic.frozen(nets, x.s(), a));
        let actor = (alpha.detach() * log_pi - q).mean();

        let entropy = -log_pi.detach().mean();
        let target_entropy = -self.config.target_entropy as f32 * self.a as f32;
        let temperature = alpha * (entropy - target_entropy);
        measures
            .mean("actor/actor_loss", actor)
            .value("actor/q", q)
            .mean("actor/entropy", entropy)
            .mean("actor/alpha", alpha)
            .mean("actor/alpha_loss", temperature);
        actor + temperature
    }
}

impl Algorithm for Sac {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let critic = self.critic_loss(nets, x, &mut measures);
        let actor = self.actor_loss(nets, x, &mut measures);
        Loss { total: critic + actor, measures }
    }

    /// Acts by tanh(mean(s)).
    fn decide(&self, nets: &Networks) -> Decide {
        let (actor, a) = (nets[self.actor].clone(), self.a);
        Box::new(move |x| gaussian(x.tape.apply_frozen(&actor, x.s), a).0.tanh())
    }

    /// Acts by a sample of pi(.|s).
    fn explore(&self, nets: &Networks) -> Decide {
        let (actor, a) = (nets[self.actor].clone(), self.a);
        Box::new(move |x| {
            let (mean, log_std) = gaussian(x.tape.apply_frozen(&actor, x.s), a);
            (mean + log_std.exp() * x.normal(1, a)).tanh()
        })
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        Some((self.critic.q, self.config.critic.q_agg))
    }
}

//! IQL: implicit Q-learning (Kostrikov et al., 2021), with the extraction of FQL's code base.
//!
//! ```text
//! L(V)   = E[ L_tau( min_i Qbar_i(s,a) - V(s) ) ],     L_tau(u) = |tau - 1(u < 0)| u^2
//! L(Q)   = E[ sum_i (Q_i(s,a) - y)^2 ],                y = r + gamma m V(s')
//! L(psi) = - E[ w log N(a; pi(s), I) ],                w = min( exp(alpha (min_i Q_i(s,a) - V(s))), 100 )        (awr)
//! L(psi) = - E[q] / sg(E|q|) - alpha E[ log N(a; pi(s), I) ],   q = min_i Q_i(s, clip(pi(s)))                    (ddpgbc)
//! ```
//!
//! `Qbar` is the target network; all losses are taken at the same parameters.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, nonnegative, open_unit};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, maximise, one_step_target, value_spec};
use crate::parts::gaussian;
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::{MlpSpec, Var};
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("iql", "Gaussian", "arXiv 2110.06169", include_str!("../../presets/iql.toml"));

/// How the policy is extracted from the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extraction {
    /// Advantage-weighted regression.
    #[default]
    Awr,
    /// Ascent of Q with behaviour cloning.
    DdpgBc,
}

/// Hyperparameters. Defaults are those of FQL's code base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// The expectile that V estimates.
    pub expectile: f64,
    /// `awr`: inverse temperature of the advantage. `ddpgbc`: weight of behaviour cloning. Chosen per environment.
    pub alpha: f64,
    /// `awr` or `ddpgbc`.
    pub extraction: Extraction,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common::default(),
            critic: CriticConfig { q_agg: Aggregate::Min, ..CriticConfig::default() },
            expectile: 0.9,
            alpha: 10.0,
            extraction: Extraction::Awr,
        }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        open_unit(&[("expectile", self.expectile)])?;
        nonnegative(&[("alpha", self.alpha)])
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let values = Values::new(nets, sizes, &self.common.hidden, &self.critic, self.expectile);
        let actor = nets.policy("actor", gaussian::spec(sizes, &self.common.hidden), self.critic.lr);
        Box::new(Iql { config: self.clone(), values, actor })
    }
}

/// Q and V of IQL, which several methods learn in the same way.
pub(crate) struct Values {
    pub(crate) v: NetworkId,
    pub(crate) critic: Critic,
    config: CriticConfig,
    expectile: f64,
}

/// IQL's value losses with what they were computed from.
pub(crate) struct ValueLosses<'t> {
    pub(crate) value: Var<'t>,
    pub(crate) critic: Var<'t>,
    /// V(s).
    pub(crate) v: Var<'t>,
    /// Q of every member.
    pub(crate) q: Var<'t>,
}

impl Values {
    pub(crate) fn new(
        nets: &mut Networks,
        sizes: Sizes,
        hidden: &[usize],
        config: &CriticConfig,
        expectile: f64,
    ) -> Self {
        Values::of(nets, sizes, |inputs| value_spec(inputs, hidden), config, expectile)
    }

    /// The same with networks of any shape, by the width of what they see.
    pub(crate) fn of(
        nets: &mut Networks,
        sizes: Sizes,
        spec: impl Fn(usize) -> MlpSpec,
        config: &CriticConfig,
        expectile: f64,
    ) -> Self {
        let v = nets.value("v", spec(sizes.s), config.lr);
        let critic = Critic::of(nets, ["q", "q_target"], spec(sizes.s + sizes.a), config);
        Values { v, critic, config: config.clone(), expectile }
    }

    /// L(V) and L(Q), logged and added up.
    pub(crate) fn critic_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        gamma: f64,
        measures: &mut Measures<'t>,
    ) -> Var<'t> {
        let losses = self.losses(nets, x, gamma);
        losses.measure(measures);
        losses.value + losses.critic
    }

    /// L(V) and L(Q).
    pub(crate) fn losses<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, gamma: f64) -> ValueLosses<'t> {
        let s_a = x.s_a();
        let v = x.tape.apply(&nets[self.v], x.s());
        let q_bar = self.config.q_agg.of(self.critic.recorded_target(nets, s_a)).detach();
        let value = (q_bar - v).expectile_loss(self.expectile as f32).mean();

        let q = self.critic.online(nets, s_a);
        let y = one_step_target(x, gamma, x.tape.apply_frozen(&nets[self.v], x.s_next()));
        let critic = (q - y).square().sum_cols().mean();
        ValueLosses { value, critic, v, q }
    }
}

impl<'t> ValueLosses<'t> {
    pub(crate) fn measure(&self, measures: &mut Measures<'t>) {
        measures
            .mean("critic/critic_loss", self.critic)
            .q(self.q)
            .mean("value/value_loss", self.value)
            .v(self.v);
    }
}

struct Iql {
    config: Config,
    values: Values,
    actor: NetworkId,
}

impl Algorithm for Iql {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let values = self.values.losses(nets, x, self.config.common.gamma);
        values.measure(&mut measures);
        let actor = actor_loss(&self.config, nets, self.actor, &self.values, &values, x, &mut measures);
        Loss { total: values.value + values.critic + actor, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        gaussian::mean(&nets[self.actor])
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.values.v)
    }
}

/// The actor's loss, from values at the same parameters.
pub(crate) fn actor_loss<'t>(
    c: &Config,
    nets: &Networks,
    actor: NetworkId,
    values: &Values,
    losses: &ValueLosses<'t>,
    x: &Inputs<'t, '_>,
    measures: &mut Measures<'t>,
) -> Var<'t> {
    let (s, a) = (x.s(), x.a());
    let alpha = c.alpha as f32;
    let mean = x.tape.apply(&nets[actor], s);
    let log_density = gaussian::log_density(a, mean);
    let loss = match c.extraction {
        Extraction::Awr => {
            let advantage = (losses.q.min_cols() - losses.v).detach();
            measures.value("actor/adv", advantage);
            let w = (alpha * advantage).exp().clip(0.0, 100.0);
            -(w * log_density).mean()
        }
        Extraction::DdpgBc => {
            let q = values.critic.frozen(nets, s, mean.clip(-1.0, 1.0)).min_cols();
            maximise(q, Some(0.0)) - alpha * log_density.mean()
        }
    };
    measures
        .mean("actor/actor_loss", loss)
        .mean("actor/bc_log_prob", log_density)
        .mean("actor/mse", (mean - a).square());
    loss
}

//! FAWAC: advantage-weighted actor-critic with a flow policy (a baseline of FQL's paper).
//!
//! ```text
//! L(Q) = E[ (Q_i(s,a) - y)^2 ],               y = r + gamma m agg_i Qbar_i(s', flow(s',z'))
//! L(V) = E[ (agg_i Qbar_i(s,a) - V(s))^2 ]
//! L(v) = E[ w |v(s, x_t, t) - (a - x_0)|^2 / d ],     w = min( exp(alpha (mean_i Q_i(s,a) - V(s))), 100 )
//! ```
//!
//! `x_t = (1-t) x_0 + t a`, `d` is the number of action dimensions, `flow(s,z)` is Euler integration from
//! `z`. `w` carries no gradient. Draws `z'`, then `x_0` and `t`.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, one_step_target, value_spec};
use crate::parts::flow::{self, Through};
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("fawac", "flow", "arXiv 2502.02538", include_str!("../../presets/fawac.toml"));

/// Hyperparameters. Defaults are those of FQL's code base, except `alpha`, which it does not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// Inverse temperature of the advantage. Chosen per environment.
    pub alpha: f64,
    /// Euler steps from noise to actions.
    pub flow_steps: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config { common: Common::default(), critic: CriticConfig::default(), alpha: 1.0, flow_steps: 10 }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        nonnegative(&[("alpha", self.alpha)])?;
        at_least_one(&[("flow_steps", self.flow_steps)])
    }

    fn settling_steps(&self) -> Option<f64> {
        self.critic.settling_steps(self.common.gamma)
    }

    fn build(&self, Sizes { s, a, .. }: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let (hidden, lr) = (&self.common.hidden, self.critic.lr);
        Box::new(Fawac {
            critic: Critic::new(nets, ["q", "q_target"], s + a, hidden, &self.critic),
            v: nets.value("v", value_spec(s, hidden), lr),
            flow: nets.policy("flow", flow::field_spec(s, a, hidden), lr),
            config: self.clone(),
            a,
        })
    }
}

struct Fawac {
    config: Config,
    critic: Critic,
    v: NetworkId,
    flow: NetworkId,
    a: usize,
}

impl Fawac {
    /// L(Q) + L(V), and the advantages of the recorded actions.
    fn critic_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        measures: &mut Measures<'t>,
    ) -> (Var<'t>, Var<'t>) {
        let (c, s_next, s_a) = (&self.config, x.s_next(), x.s_a());
        let z = x.normal(self.a);
        let a_next = flow::euler(&nets[self.flow], s_next, z, c.flow_steps, Through::Frozen);
        let q_next = c.critic.q_agg.of(self.critic.target(nets, s_next, a_next));
        let y = one_step_target(x, c.common.gamma, q_next);
        let q = self.critic.online(nets, s_a);
        let critic = (q - y).square().mean();

        // Without a target network, Qbar(s,a) equals Q(s,a), which is already computed.
        let q_bar = if c.critic.target_network { self.critic.recorded_target(nets, s_a) } else { q };
        let v = x.tape.apply(&nets[self.v], x.s());
        let value = (c.critic.q_agg.of(q_bar).detach() - v).square().mean();

        measures.mean("critic/critic_loss", critic).q(q).mean("value/value_loss", value).v(v);
        (critic + value, (q.mean_cols() - v).detach())
    }

    fn actor_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        advantage: Var<'t>,
        measures: &mut Measures<'t>,
    ) -> Var<'t> {
        let w = (self.config.alpha as f32 * advantage).exp().clip(0.0, 100.0);
        let error = flow::matching_error(x, &nets[self.flow], x.s(), x.a());
        let loss = (w * error.mean_cols()).mean();
        measures
            .mean("actor/actor_loss", loss)
            .mean("actor/bc_flow_loss", error)
            .value("actor/adv", advantage);
        loss
    }
}

impl Algorithm for Fawac {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let (critic, advantage) = self.critic_loss(nets, x, &mut measures);
        let actor = self.actor_loss(nets, x, advantage, &mut measures);
        Loss { total: critic + actor, measures }
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        Some((self.critic.q, self.config.critic.q_agg))
    }

    fn decide(&self, nets: &Networks) -> Decide {
        flow::sample(&nets[self.flow], self.config.flow_steps)
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.v)
    }
}

//! FAWAC: advantage-weighted actor-critic with a flow policy (a baseline of FQL's paper).
//!
//! ```text
//! L(Q) = E[ (Q_i(s,a) - y)^2 ],               y = r + gamma m agg_i Qbar_i(s', flow(s',z'))
//! L(V) = E[ (agg_i Qbar_i(s,a) - V(s))^2 ]
//! L(v) = E[ w |v(s, x_t, t) - (a - x_0)|^2 / d ],     w = min( exp(alpha (mean_i Q_i(s,a) - V(s))), 100 )
//! ```
//!
//! `x_t = (1-t) x_0 + t a`, `d` is the number of action dimensions, `flow(s,z)` Euler's method from `z`. `w` carries no
//! gradient. Draws `z'`, then `x_0` and `t`.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Critic, CriticConfig, value_spec};
use crate::parts::flow::{self, Through};
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("fawac", "flow", "arXiv 2502.02538", include_str!("../../presets/fawac.toml"));

/// Hyperparameters. Defaults are those of FQL's code base, but for `alpha`, which it does not have.
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
    /// Steps of Euler's method.
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

    fn build(&self, Sizes { s, a, .. }: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let (hidden, lr) = (&self.common.hidden, self.critic.lr);
        Box::new(Fawac {
            critic: Critic::new(nets, ["q", "q_target"], s + a, hidden, &self.critic),
            v: nets.value("v", value_spec(s, hidden), lr),
            flow: nets.policy("flow", flow::field_spec(s, a, hidden), lr),
            config: self.clone(),
        })
    }
}

struct Fawac {
    config: Config,
    critic: Critic,
    v: NetworkId,
    flow: NetworkId,
}

impl Algorithm for Fawac {
    fn segments(&self) -> SegmentConfig {
        SegmentConfig { k: 1, gamma: self.config.common.gamma, ..SegmentConfig::default() }
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let (c, field) = (&self.config, &nets[self.flow]);
        let (s, a) = (x.s(), x.a());

        let a_next = flow::euler(field, x.s_next(), x.normal(a.cols()), c.flow_steps, Through::Frozen);
        let td = self.critic.temporal_difference(nets, x, &c.critic, c.common.gamma, a_next);

        // Without a target network, Qbar(s,a) is Q(s,a), which is there already.
        let q_bar = if c.critic.target_network { self.critic.target(nets, s, a) } else { td.q };
        let v = x.tape.apply(&nets[self.v], s);
        let value = (c.critic.q_agg.of(q_bar).detach() - v).square().mean();

        let advantage = (td.q.mean_cols() - v).detach();
        let w = (c.alpha as f32 * advantage).exp().clip(0.0, 100.0);
        let error = flow::matching_error(x, field, s, a);
        let actor = (w * error.mean_cols()).mean();

        let mut measures = x.measures();
        td.measure(&mut measures);
        measures
            .mean("value/value_loss", value)
            .v(v)
            .mean("actor/actor_loss", actor)
            .mean("actor/bc_flow_loss", error)
            .value("actor/adv", advantage);
        Loss { total: td.loss + value + actor, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        flow::sample(&nets[self.flow], self.config.flow_steps)
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.v)
    }
}

//! FQL: flow Q-learning (Park et al., 2025). A flow clones the data; a one-step policy follows the flow and climbs Q.
//!
//! ```text
//! L(Q)  = E[ (Q_i(s,a) - y)^2 ],                y = r + gamma m agg_i Qbar_i(s', clip(mu(s',z')))
//! L(v)  = E[ |v(s, x_t, t) - (a - x_0)|^2 / d ],    x_t = (1-t) x_0 + t a
//! L(mu) = alpha E[ |mu(s,z) - sg(flow(s,z))|^2 / d ] - E[q],     q = mean_i Q_i(s, clip(mu(s,z)))
//! ```
//!
//! `d` is the number of action dimensions, `flow(s,z)` Euler's method from `z`, and `normalize_q_loss` divides `E[q]` by
//! `sg(E|q|)`. All losses are taken at the same parameters; Q's weights get no gradient from the policy. Draws `z'`, then
//! `x_0` and `t`, then `z`.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative};
use crate::networks::Networks;
use crate::parts::critic::{Critic, CriticConfig};
use crate::parts::distilled_flow::{ACTOR, DistilledFlow, Spec};
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("fql", "flow", "arXiv 2502.02538", include_str!("../../presets/fql.toml"));

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
    /// Weight of the distance between the one-step policy and the flow. Chosen per environment.
    pub alpha: f64,
    /// Divide Q by the mean of |Q| in the policy's loss; `alpha` is then of another size.
    pub normalize_q_loss: bool,
    /// Steps of Euler's method.
    pub flow_steps: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common::default(),
            critic: CriticConfig::default(),
            alpha: 10.0,
            normalize_q_loss: false,
            flow_steps: 10,
        }
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
        let spec = Spec {
            names: ["flow", "actor"],
            s,
            x: a,
            hidden: &self.common.hidden,
            layer_norm: false,
            lr: self.critic.lr,
            alpha: self.alpha,
            normalize_q_loss: self.normalize_q_loss,
            flow_steps: self.flow_steps,
        };
        Box::new(Fql {
            critic: Critic::new(nets, ["q", "q_target"], s + a, &self.common.hidden, &self.critic),
            actor: DistilledFlow::new(nets, &spec),
            config: self.clone(),
        })
    }
}

struct Fql {
    config: Config,
    critic: Critic,
    actor: DistilledFlow,
}

impl Algorithm for Fql {
    fn segments(&self) -> SegmentConfig {
        SegmentConfig { k: 1, gamma: self.config.common.gamma, ..SegmentConfig::default() }
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let (c, s) = (&self.config, x.s());
        let a_next = self.actor.actions(nets, x, x.s_next());
        let td = self.critic.temporal_difference(nets, x, &c.critic, c.common.gamma, a_next);
        let actor = self.actor.losses(nets, x, x.a(), None, |pi| self.critic.frozen(nets, s, pi).mean_cols());
        let mut measures = x.measures();
        td.measure(&mut measures);
        actor.measure(&mut measures, ACTOR);
        Loss { total: td.loss + actor.total, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        self.actor.decide(nets)
    }
}

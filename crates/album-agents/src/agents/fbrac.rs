//! FBRAC: behaviour-regularised actor-critic with a flow policy (a baseline of FQL's paper). Gradients of Q pass through
//! all steps of the flow.
//!
//! ```text
//! L(Q) = E[ (Q_i(s,a) - y)^2 ],               y = r + gamma m agg_i Qbar_i(s', flow(s',z'))
//! L(v) = alpha E[ |v(s, x_t, t) - (a - x_0)|^2 / d ] - E[q],    x_t = (1-t) x_0 + t a,   q = mean_i Q_i(s, flow(s,z))
//! ```
//!
//! `d` is the number of action dimensions, `flow(s,z)` Euler's method from `z`, clipped at its end, and `normalize_q_loss`
//! divides `E[q]` by `sg(E|q|)`. Draws `z'`, then `x_0` and `t`, then `z`.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Critic, CriticConfig, maximise};
use crate::parts::flow::{self, Through};
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("fbrac", "flow", "arXiv 2502.02538", include_str!("../../presets/fbrac.toml"));

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
    /// Weight of behaviour cloning. Chosen per environment.
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
            alpha: 100.0,
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
        let hidden = &self.common.hidden;
        Box::new(Fbrac {
            critic: Critic::new(nets, ["q", "q_target"], s + a, hidden, &self.critic),
            flow: nets.policy("flow", flow::field_spec(s, a, hidden), self.critic.lr),
            config: self.clone(),
        })
    }
}

struct Fbrac {
    config: Config,
    critic: Critic,
    flow: NetworkId,
}

impl Algorithm for Fbrac {
    fn segments(&self) -> SegmentConfig {
        SegmentConfig { k: 1, gamma: self.config.common.gamma, ..SegmentConfig::default() }
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let (c, field) = (&self.config, &nets[self.flow]);
        let (s, a) = (x.s(), x.a());

        let a_next = flow::euler(field, x.s_next(), x.normal(a.cols()), c.flow_steps, Through::Frozen);
        let td = self.critic.temporal_difference(nets, x, &c.critic, c.common.gamma, a_next);

        let bc_flow = flow::matching_error(x, field, s, a).mean();
        let a_pi = flow::euler(field, s, x.normal(a.cols()), c.flow_steps, Through::Trained);
        let q = self.critic.frozen(nets, s, a_pi).mean_cols();
        let q_loss = maximise(q, c.normalize_q_loss);
        let actor = c.alpha as f32 * bc_flow + q_loss;

        let mut measures = x.measures();
        td.measure(&mut measures);
        measures
            .mean("actor/actor_loss", actor)
            .mean("actor/bc_flow_loss", bc_flow)
            .mean("actor/q_loss", q_loss)
            .value("actor/q", q)
            .mean("actor/mse", (a_pi - a).square());
        Loss { total: td.loss + actor, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        flow::sample(&nets[self.flow], self.config.flow_steps)
    }
}

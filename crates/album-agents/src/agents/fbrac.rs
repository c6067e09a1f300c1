//! FBRAC: behaviour-regularised actor-critic with a flow policy (a baseline of FQL's paper). Gradients of Q pass through
//! all steps of the flow.
//!
//! ```text
//! L(Q) = E[ (Q_i(s,a) - y)^2 ],               y = r + gamma m agg_i Qbar_i(s', flow(s',z'))
//! L(v) = alpha E[ |v(s, x_t, t) - (a - x_0)|^2 / d ] - E[q],    x_t = (1-t) x_0 + t a,   q = mean_i Q_i(s, flow(s,z))
//! ```
//!
//! `d` is the number of action dimensions, `flow(s,z)` is Euler integration from `z`, clipped at the end, and
//! `normalize_q_loss` divides `E[q]` by `sg(E|q|)`. Draws `z'`, then `x_0` and `t`, then `z`.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, maximise, one_step_target};
use crate::parts::flow::{self, Through};
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("fbrac", "flow", "arXiv 2502.02538", include_str!("../../presets/fbrac.toml"));

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
    /// Weight of behaviour cloning. Chosen per environment.
    pub alpha: f64,
    /// Divide Q by the mean of |Q| in the policy loss, which changes the scale of `alpha`.
    pub normalize_q_loss: bool,
    /// Euler steps from noise to actions.
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

    fn settling_steps(&self) -> Option<f64> {
        self.critic.settling_steps(self.common.gamma)
    }

    fn build(&self, Sizes { s, a, .. }: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let hidden = &self.common.hidden;
        Box::new(Fbrac {
            critic: Critic::new(nets, ["q", "q_target"], s + a, hidden, &self.critic),
            flow: nets.policy("flow", flow::field_spec(s, a, hidden), self.critic.lr),
            config: self.clone(),
            a,
        })
    }
}

struct Fbrac {
    config: Config,
    critic: Critic,
    flow: NetworkId,
    a: usize,
}

impl Fbrac {
    fn critic_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let (c, s_next) = (&self.config, x.s_next());
        let z = x.normal(self.a);
        let a_next = flow::euler(&nets[self.flow], s_next, z, c.flow_steps, Through::Frozen);
        let q_next = c.critic.q_agg.of(self.critic.target(nets, s_next, a_next));
        let y = one_step_target(x, c.common.gamma, q_next);
        let q = self.critic.online(nets, x.s_a());
        let loss = (q - y).square().mean();
        measures.mean("critic/critic_loss", loss).q(q);
        loss
    }

    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let (c, field) = (&self.config, &nets[self.flow]);
        let (s, a) = (x.s(), x.a());
        let bc_flow = flow::matching_error(x, field, s, a).mean();
        let a_pi = flow::euler(field, s, x.normal(self.a), c.flow_steps, Through::Trained);
        let q = self.critic.frozen(nets, s, a_pi).mean_cols();
        let q_loss = maximise(q, c.normalize_q_loss.then_some(0.0));
        let loss = c.alpha as f32 * bc_flow + q_loss;
        measures
            .mean("actor/actor_loss", loss)
            .mean("actor/bc_flow_loss", bc_flow)
            .mean("actor/q_loss", q_loss)
            .value("actor/q", q)
            .mean("actor/mse", (a_pi - a).square());
        loss
    }
}

impl Algorithm for Fbrac {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let critic = self.critic_loss(nets, x, &mut measures);
        let actor = self.actor_loss(nets, x, &mut measures);
        Loss { total: critic + actor, measures }
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        Some((self.critic.q, self.config.critic.q_agg))
    }

    fn decide(&self, nets: &Networks) -> Decide {
        flow::sample(&nets[self.flow], self.config.flow_steps)
    }
}

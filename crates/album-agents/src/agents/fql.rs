//! FQL: flow Q-learning (Park et al., 2025). A flow clones the behaviour; a one-step policy is distilled from
//! it and maximises Q.
//!
//! ```text
//! L(Q)  = E[ (Q_i(s,a) - y)^2 ],                y = r + gamma m agg_i Qbar_i(s', clip(mu(s',z')))
//! L(v)  = E[ |v(s, x_t, t) - (a - x_0)|^2 / d ],    x_t = (1-t) x_0 + t a
//! L(mu) = alpha E[ |mu(s,z) - sg(flow(s,z))|^2 / d ] - E[q],     q = mean_i Q_i(s, clip(mu(s,z)))
//! ```
//!
//! `d` is the number of action dimensions, `flow(s,z)` is Euler integration from `z`, and `normalize_q_loss`
//! divides `E[q]` by `sg(E|q|)`. All losses are taken at the same parameters; Q's weights get no gradient
//! from the policy. Draws `z'`, then `x_0` and `t`, then `z`.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, maximise, one_step_target};
use crate::parts::flow::{self, Through, euler, field_spec, matching_error, one_step_spec};
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::Var;
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
    /// Weight of the distillation of the flow into the one-step policy. Chosen per environment.
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

    fn settling_steps(&self) -> Option<f64> {
        self.critic.settling_steps(self.common.gamma)
    }

    fn build(&self, Sizes { s, a, .. }: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let spec = ActorSpec {
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
            actor: Actor::new(nets, &spec),
            config: self.clone(),
        })
    }
}

struct Fql {
    config: Config,
    critic: Critic,
    actor: Actor,
}

impl Fql {
    fn critic_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let (c, s_next) = (&self.config, x.s_next());
        let a_next = self.actor.actions(nets, x, s_next);
        let q_next = c.critic.q_agg.of(self.critic.target(nets, s_next, a_next));
        let y = one_step_target(x, c.common.gamma, q_next);
        let q = self.critic.online(nets, x.s_a());
        let loss = (q - y).square().mean();
        measures.mean("critic/critic_loss", loss).q(q);
        loss
    }

    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let q = |pi| self.critic.frozen(nets, x.s(), pi).mean_cols();
        let losses = self.actor.losses(nets, x, x.a(), None, q);
        losses.measure(measures, ACTOR_COLUMNS);
        losses.total
    }
}

impl Algorithm for Fql {
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
        self.actor.decide(nets)
    }
}

/// Names under which an actor's losses are logged: total, flow, distillation, Q term, Q, and the error of its
/// actions.
pub(crate) type Columns = [&'static str; 6];

/// The default names.
pub(crate) const ACTOR_COLUMNS: Columns =
    ["actor/actor_loss", "actor/bc_flow_loss", "actor/distill_loss", "actor/q_loss", "actor/q", "actor/mse"];

/// The specification of an actor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActorSpec<'a> {
    /// Names of the flow and of the one-step policy.
    pub(crate) names: [&'a str; 2],
    /// Dimension of a state.
    pub(crate) s: usize,
    /// Dimension of a decision.
    pub(crate) x: usize,
    /// Widths of the hidden layers.
    pub(crate) hidden: &'a [usize],
    /// Whether hidden layers use LayerNorm.
    pub(crate) layer_norm: bool,
    /// Learning rate.
    pub(crate) lr: f64,
    /// Weight of the distillation.
    pub(crate) alpha: f64,
    /// Whether the Q term is divided by the mean of |Q|.
    pub(crate) normalize_q_loss: bool,
    /// Euler steps from noise to actions.
    pub(crate) flow_steps: usize,
}

/// FQL's actor, a flow and the one-step policy distilled from it, over `x` columns: one action, or several
/// side by side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor {
    flow: NetworkId,
    actor: NetworkId,
    x: usize,
    alpha: f32,
    normalize_q_loss: bool,
    flow_steps: usize,
}

/// The actor's losses.
pub(crate) struct ActorLosses<'t> {
    /// Their sum, which is minimised.
    pub(crate) total: Var<'t>,
    flow: Var<'t>,
    distill: Var<'t>,
    q_loss: Var<'t>,
    q: Var<'t>,
    mse: Var<'t>,
}

impl Actor {
    /// Creates the networks, the flow first.
    pub(crate) fn new(nets: &mut Networks, spec: &ActorSpec<'_>) -> Self {
        let ActorSpec { s, x, hidden, layer_norm, .. } = *spec;
        let [flow, actor] = spec.names;
        Actor {
            flow: nets.policy(flow, field_spec(s, x, hidden).layer_norm(layer_norm), spec.lr),
            actor: nets.policy(actor, one_step_spec(s, x, hidden).layer_norm(layer_norm), spec.lr),
            x,
            alpha: spec.alpha as f32,
            normalize_q_loss: spec.normalize_q_loss,
            flow_steps: spec.flow_steps,
        }
    }

    /// `clip(mu(s, z))` without gradients: the policy's actions. Draws `z`.
    pub(crate) fn actions<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, s: Var<'t>) -> Var<'t> {
        let mu = x.tape.apply_frozen(&nets[self.actor], x.tape.concat_cols(&[s, x.normal(self.x)]));
        mu.clip(-1.0, 1.0)
    }

    /// L(v) + L(mu) for the recorded actions `a`; only entries with mask 1 are cloned. `q` returns the value
    /// of actions as one column, with gradients only to the actions. Draws `x_0`, `t` and `z`.
    pub(crate) fn losses<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        a: Var<'t>,
        mask: Option<Var<'t>>,
        q: impl FnOnce(Var<'t>) -> Var<'t>,
    ) -> ActorLosses<'t> {
        let s = x.s();
        let error = matching_error(x, &nets[self.flow], s, a);
        let flow = mask.map_or(error, |mask| error * mask).mean();

        let z = x.normal(self.x);
        let goal = euler(&nets[self.flow], s, z, self.flow_steps, Through::Frozen).detach();
        let mu = x.tape.apply(&nets[self.actor], x.tape.concat_cols(&[s, z]));
        let distill = (mu - goal).square().mean();

        let pi = mu.clip(-1.0, 1.0);
        let q = q(pi);
        let q_loss = maximise(q, self.normalize_q_loss.then_some(0.0));
        let total = flow + self.alpha * distill + q_loss;
        ActorLosses { total, flow, distill, q_loss, q, mse: (pi - a).square() }
    }

    /// Acts by one sample of the one-step policy.
    pub(crate) fn decide(&self, nets: &Networks) -> Decide {
        flow::one_step(&nets[self.actor])
    }
}

impl<'t> ActorLosses<'t> {
    /// Logs the losses.
    pub(crate) fn measure(&self, measures: &mut Measures<'t>, names: Columns) {
        let values = [self.total, self.flow, self.distill, self.q_loss, self.q, self.mse];
        for (name, value) in names.into_iter().zip(values) {
            measures.mean(name, value);
        }
    }
}

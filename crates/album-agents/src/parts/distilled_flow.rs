//! The actor of FQL: a flow that clones the data, and a policy of one step that is distilled from it and ascends Q. Over
//! `x` columns: one action, or several side by side.
//!
//! ```text
//! L(v)  = E[ (v(s, x_t, t) - (a - x_0))^2 ],   x_t = (1 - t) x_0 + t a,   x_0 ~ N(0, I),   t ~ U[0, 1]     (flow)
//! L(mu) = alpha E[ (mu(s, z) - sg(Euler(s, z)))^2 ] - E[ Q(s, clip(mu(s, z))) ],   z ~ N(0, I)             (distil, Q)
//! ```
//!
//! Squares are averaged over the columns. Where columns are masked (the flow only), the mean still divides by all of them.

use crate::algorithm::{Decide, Inputs, Measures};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, maximise};
use crate::parts::flow::{self, Through, euler, field_spec, matching_error, one_step_spec};
use album_nn::Var;

/// The names under which an actor's losses are logged: the sum, flow, distillation, Q term, Q, and the error of its
/// actions.
pub type Columns = [&'static str; 6];

/// The usual names.
pub const ACTOR: Columns =
    ["actor/actor_loss", "actor/bc_flow_loss", "actor/distill_loss", "actor/q_loss", "actor/q", "actor/mse"];

/// What an actor is made from.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// Names of the flow and of the one-step policy.
    pub names: [&'a str; 2],
    /// Columns of a state.
    pub s: usize,
    /// Columns of what is decided.
    pub x: usize,
    /// Widths of the hidden layers.
    pub hidden: &'a [usize],
    /// Whether hidden layers have LayerNorm.
    pub layer_norm: bool,
    /// Learning rate.
    pub lr: f64,
    /// Weight of the distillation.
    pub alpha: f64,
    /// Whether the Q term is divided by the mean of |Q|.
    pub normalize_q_loss: bool,
    /// Steps of Euler's method.
    pub flow_steps: usize,
}

/// A flow and the one-step policy distilled from it.
#[derive(Clone, Copy, Debug)]
pub struct DistilledFlow {
    flow: NetworkId,
    actor: NetworkId,
    x: usize,
    alpha: f32,
    normalize_q_loss: bool,
    flow_steps: usize,
}

/// The actor's losses.
pub struct ActorLosses<'t> {
    /// Their sum, which is minimised.
    pub total: Var<'t>,
    flow: Var<'t>,
    distill: Var<'t>,
    q_loss: Var<'t>,
    q: Var<'t>,
    mse: Var<'t>,
}

impl DistilledFlow {
    /// Makes the networks, the flow first.
    pub fn new(nets: &mut Networks, spec: &Spec<'_>) -> Self {
        let Spec { s, x, hidden, layer_norm, .. } = *spec;
        let [flow, actor] = spec.names;
        DistilledFlow {
            flow: nets.policy(flow, field_spec(s, x, hidden).layer_norm(layer_norm), spec.lr),
            actor: nets.policy(actor, one_step_spec(s, x, hidden).layer_norm(layer_norm), spec.lr),
            x,
            alpha: spec.alpha as f32,
            normalize_q_loss: spec.normalize_q_loss,
            flow_steps: spec.flow_steps,
        }
    }

    /// `agg_i Qbar_i(s, clip(mu(s, z)))`: what the policy makes of states, by the target networks. Draws `z`.
    pub fn target_value<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        critic: &Critic,
        q_agg: Aggregate,
        s: Var<'t>,
    ) -> Var<'t> {
        q_agg.of(critic.target(nets, s, self.actions(nets, x, s)))
    }

    /// `clip(mu(s, z))`, frozen: what the policy does in states. Draws `z`.
    pub fn actions<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, s: Var<'t>) -> Var<'t> {
        let mu = x.tape.apply_frozen(&nets[self.actor], x.tape.concat_cols(&[s, x.normal(self.x)]));
        mu.clip(-1.0, 1.0)
    }

    /// The losses for the recorded actions `a`, of which only entries with mask 1 are cloned. `q` gives the value of
    /// actions as one column, frozen but for the actions. Draws `x_0`, `t` and `z`.
    pub fn losses<'t>(
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
        let q_loss = maximise(q, self.normalize_q_loss);
        let total = flow + self.alpha * distill + q_loss;
        ActorLosses { total, flow, distill, q_loss, q, mse: (pi - a).square() }
    }

    /// Acts by one draw of the one-step policy.
    pub fn decide(&self, nets: &Networks) -> Decide {
        flow::one_step(&nets[self.actor])
    }
}

impl<'t> ActorLosses<'t> {
    /// Logs them.
    pub fn measure(&self, measures: &mut Measures<'t>, names: Columns) {
        let values = [self.total, self.flow, self.distill, self.q_loss, self.q, self.mse];
        for (name, value) in names.into_iter().zip(values) {
            measures.mean(name, value);
        }
    }
}

/// The valid flags of actions for each of their columns, `width` for each action.
pub fn column_mask<'t>(valids: Var<'t>, width: usize) -> Var<'t> {
    let (rows, chunk) = (valids.rows(), valids.cols());
    let ones = valids.tape().filled(rows * chunk, width, 1.0);
    (valids.reshape(rows * chunk, 1) * ones).reshape(rows, chunk * width)
}

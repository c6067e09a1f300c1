//! ALBUM: Approximate Lifted Bellman Unconstrained Minimization (arXiv 2609.24489).
//!
//! One Q, one V, a Gaussian actor; no target networks, no ensembles. The critic minimises
//!
//! ```text
//! L(theta, phi) = omega_Q E[Q(s,a)] + omega_V E[V(s)]
//!               + lambda_B E[ y_1 - Q(s,a) ]+  + lambda_E E[ Q(s,a) - V(s) ]+
//!               + lambda_K ( E[ sg(y_K) - Q(s,a) ]+ + E[ sg(y_K) - V(s) ]+ )
//!
//! y_1 = r + gamma m V(s')        y_K = sum_(t<h) gamma^t r_t + gamma^h V(s_h)
//! ```
//!
//! over segments of recorded trajectories: the hinge relaxation of the Lifted Bellman LP. `y_1` carries its gradient
//! through `V(s')`, `y_K` does not. The actor maximises Q near the data (DDPG+BC):
//!
//! ```text
//! L(psi) = - E[ Q(s, pi(s)) ] / sg(E|Q|) + alpha_BC E[ |pi(s) - a|^2 ]                     (ddpgbc)
//! ```
//!
//! Beyond the paper, for data that nobody has tuned alpha_BC for: advantage-weighted regression, which never
//! queries Q at actions that are not in the data.
//!
//! ```text
//! L(psi) = E[ w |pi(s) - a|^2 ],   w = min( exp(alpha_AWR A / E|A|), 100 ),   A = Q(s,a) - V(s)   (awr)
//! ```
//!
//! With discrete actions, Q has an output for each choice and the critic loss is evaluated at the recorded
//! one. The policy, beyond the paper, is either of
//!
//! ```text
//! L(psi) = - E[ w log pi(a|s) ],   w = min( exp(alpha A / sg(E|A|)), 100 ),   A = Q(s,a) - V(s)          (awr)
//! L(psi) = - E[ log pi(a|s) ],     acts by argmax Q(s,a) where pi(a|s) >= threshold max pi(.|s)          (best)
//! ```
//!
//! and never the plain argmax of Q: nothing constrains the values of actions that are not in the data.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes, Stage};
use crate::blueprint::value_range;
use crate::common::{Common, at_least_one, nonnegative, positive, rate};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, maximise, value_spec};
use crate::parts::flow::Through;
use crate::parts::head::{Head, all_choices, decide_supported};
use crate::recorded::Mark;
use crate::registry::AgentKind;
use album_data::{ActionSpace, AfterGoal, Dataset, KStepTail, SegmentConfig};
use album_nn::Var;
use album_tabular::{Boundedness, Coefficients, Gradient, boundedness};
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "album",
    "Gaussian",
    "arXiv 2609.24489",
    include_str!("../../presets/album.toml"),
)
.with_discrete();

/// How the actor's mean becomes an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Squash {
    /// Clipped to [-1, 1] before Q sees it; the BC term uses the mean itself.
    Clip,
    /// `tanh(mean)` throughout.
    #[default]
    Tanh,
}

/// Policy extraction for discrete actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiscretePolicy {
    /// Cross-entropy to the recorded actions, weighted by their advantages; acts by the most likely choice.
    Awr,
    /// The highest Q among the choices that the data supports.
    #[default]
    Best,
}

/// Hyperparameters. Defaults are the paper's; those prefixed with `discrete_` apply to discrete actions only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic.
    #[serde(flatten)]
    pub critic: HingeCritic,
    /// Weight of the actor's behaviour cloning term; chosen per environment.
    pub alpha_bc: f64,
    /// Learning rate of the actor.
    pub actor_lr: f64,
    /// Rate of the moving average of the actor's weights that the policy acts with; 0 acts with the weights
    /// themselves.
    pub actor_average: f64,
    /// Divide Q by the mean of |Q| in the actor loss.
    pub normalize_q: bool,
    /// How the actor's mean becomes an action.
    pub squash: Squash,
    /// Update the critic first and the actor with the new critic, instead of both at the same parameters.
    pub critic_first: bool,
    /// Policy extraction with continuous actions: `ddpgbc` or `awr`.
    pub extraction: Extraction,
    /// `awr`, continuous or discrete: inverse temperature of the advantage, in units of its mean absolute
    /// value.
    pub alpha_awr: f64,
    /// Policy extraction with discrete actions: `best` or `awr`.
    pub discrete_policy: DiscretePolicy,
    /// `best`: the smallest probability of an eligible choice relative to the largest, above 0 and at most 1.
    pub discrete_threshold: f64,
}

/// Policy extraction with continuous actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extraction {
    /// Gradient ascent on Q with behaviour cloning (DDPG+BC).
    #[default]
    DdpgBc,
    /// Advantage-weighted regression.
    Awr,
}

/// Hyperparameters of the critic, shared by other agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HingeCritic {
    /// Length of the recorded rollouts.
    pub k: usize,
    /// Weights of the objective and the penalties.
    #[serde(flatten)]
    pub coefficients: Coefficients,
    /// Learning rate of Q and V.
    pub critic_lr: f64,
    /// Treat y_K as a constant in the update.
    pub stop_gradient: bool,
    /// Number of critics; their losses are averaged, and the actor follows their mean.
    pub ensemble: usize,
    /// Treatment of rollouts cut short by the end of their trajectory: `truncate`, `drop` or `qc_valid`.
    pub kstep_tail: KStepTail,
    /// Treatment of rewards after the task is solved within a rollout: `stop` or `qc_sum`.
    pub kstep_after_goal: AfterGoal,
    /// What Q and V are before the first update: `zero`, or `lowest`, the lowest value that the data's rewards allow.
    /// Where there is little data, values stay near where they began.
    pub initial_value: InitialValue,
}

/// What Q and V are before the first update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InitialValue {
    /// About zero.
    #[default]
    Zero,
    /// About the lowest value that rewards like the data's allow, the low end of [`value_range`].
    Lowest,
}

/// The paper's discount factor, in all environments.
pub(crate) const GAMMA: f64 = 0.995;

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common { gamma: GAMMA, ..Common::default() },
            critic: HingeCritic::default(),
            alpha_bc: 0.01,
            actor_lr: 3e-4,
            actor_average: 0.0,
            normalize_q: true,
            squash: Squash::Tanh,
            critic_first: false,
            extraction: Extraction::DdpgBc,
            alpha_awr: 3.0,
            discrete_policy: DiscretePolicy::Best,
            discrete_threshold: 0.3,
        }
    }
}

impl Default for HingeCritic {
    fn default() -> Self {
        HingeCritic {
            k: 10,
            coefficients: Coefficients::default(),
            critic_lr: 1e-4,
            stop_gradient: true,
            ensemble: 1,
            kstep_tail: KStepTail::Truncate,
            kstep_after_goal: AfterGoal::Stop,
            initial_value: InitialValue::Zero,
        }
    }
}

impl HingeCritic {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<(), AgentError> {
        let c = &self.coefficients;
        positive(&[("omega_q", c.omega_q), ("omega_v", c.omega_v), ("critic_lr", self.critic_lr)])?;
        nonnegative(&[("lambda_b", c.lambda_b), ("lambda_e", c.lambda_e), ("lambda_k", c.lambda_k)])?;
        at_least_one(&[("k", self.k), ("ensemble", self.ensemble)])
    }

    /// The condition that keeps the values bounded from below.
    pub fn boundedness(&self, gamma: f64) -> BoundednessCondition {
        let (gradient, formula) = if self.stop_gradient {
            (Gradient::Detached, "lambda_b (1 - gamma) + 2 lambda_k")
        } else {
            (Gradient::Plain, "lambda_b (1 - gamma) + 2 lambda_k (1 - gamma^k)")
        };
        let sides = boundedness(&self.coefficients, gamma, self.k, gradient);
        BoundednessCondition { sides, formula }
    }

    /// The segments of the data.
    pub(crate) fn segments(&self, gamma: f64) -> SegmentConfig {
        let (tail, after_goal) = (self.kstep_tail, self.kstep_after_goal);
        SegmentConfig { k: self.k, gamma, tail, after_goal, ..SegmentConfig::default() }
    }

    /// The result of [`Setup::value_range`] for Q and V. Constant rewards have no range; values then start at zero.
    pub(crate) fn value_range(&self, data: &Dataset, common: &Common) -> Option<[f32; 2]> {
        let scaled = |value| (common.reward_scale * value) as f32;
        let range = || value_range(data, common.gamma).map(scaled);
        (self.initial_value == InitialValue::Lowest).then(range).filter(|[low, high]| low < high)
    }

    /// Creates Q and V.
    pub(crate) fn networks(&self, sizes: Sizes, hidden: &[usize], nets: &mut Networks) -> [NetworkId; 2] {
        let start = sizes.value_range.map_or(0.0, |[low, _]| low);
        let spec = |inputs| value_spec(inputs, hidden).output_bias(start);
        let q = sizes.q_spec(spec).members(self.ensemble);
        [nets.value("q", q, self.critic_lr), nets.value("v", spec(sizes.s), self.critic_lr)]
    }
}

/// The boundedness condition of a configuration, as numbers and as text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundednessCondition {
    /// Both sides of the inequality.
    pub sides: Boundedness,
    /// The left side as a formula.
    pub formula: &'static str,
}

impl std::fmt::Display for BoundednessCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Boundedness { left, right } = self.sides;
        write!(f, "{} = {left:.6} against omega_q + omega_v = {right:.6}", self.formula)
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        positive(&[("actor_lr", self.actor_lr)])?;
        nonnegative(&[("alpha_bc", self.alpha_bc), ("alpha_awr", self.alpha_awr)])?;
        rate(&[("discrete_threshold", self.discrete_threshold)])?;
        match self.actor_average {
            0.0 => Ok(()),
            share => rate(&[("actor_average", share)]),
        }
    }

    fn value_range(&self, data: &Dataset) -> Option<[f32; 2]> {
        self.critic.value_range(data, &self.common)
    }

    fn check_actions(&self, _: &ActionSpace) -> Result<(), AgentError> {
        Ok(())
    }

    fn boundedness(&self) -> Option<BoundednessCondition> {
        Some(self.critic.boundedness(self.common.gamma))
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let hidden = &self.common.hidden;
        let [q, v] = self.critic.networks(sizes, hidden, nets);
        let head = Head::of(sizes);
        let actor = nets.policy("actor", head.spec(sizes.s, hidden), self.actor_lr);
        let acting = match self.actor_average {
            0.0 => actor,
            share => nets.target("actor_average", actor, share),
        };
        Box::new(Album { q, v, actor, acting, head, config: self.clone() })
    }
}

struct Album {
    config: Config,
    q: NetworkId,
    v: NetworkId,
    actor: NetworkId,
    /// The actor, or the moving average of its weights.
    acting: NetworkId,
    head: Head,
}

impl Album {
    fn critic_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        measures: &mut Measures<'t>,
    ) -> CriticLoss<'t> {
        let c = &self.config;
        critic_loss(&c.critic, c.common.gamma, nets, [self.q, self.v], x, measures)
    }

    /// The loss of the policy. `values` gives Q(s,a) of every ensemble member and V(s), if they are needed.
    fn policy_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        measures: &mut Measures<'t>,
        values: impl FnOnce() -> (Var<'t>, Var<'t>),
    ) -> Var<'t> {
        // A = Q(s,a) - V(s), as a constant.
        let advantage = || {
            let (q, v) = values();
            (q.mean_cols() - v).detach()
        };
        match self.head {
            Head::Gaussian(_) => self.actor_loss(nets, x, measures, advantage),
            Head::Choices(_) => self.discrete_actor_loss(nets, x, measures, advantage()),
        }
    }

    /// The loss of a Gaussian policy; only `awr` needs the advantages.
    fn actor_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        measures: &mut Measures<'t>,
        advantage: impl FnOnce() -> Var<'t>,
    ) -> Var<'t> {
        let c = &self.config;
        let (s, a) = (x.s(), x.a());
        let mean = x.tape.apply(&nets[self.actor], s);
        let (pi, into_q) = match c.squash {
            Squash::Clip => (mean, mean.clip(-1.0, 1.0)),
            Squash::Tanh => (mean.tanh(), mean.tanh()),
        };
        let distance = (pi - a).square().sum_cols();
        let bc = distance.mean();
        let (actor, column, values) = match c.extraction {
            Extraction::DdpgBc => {
                let q_pi = x.tape.apply_frozen(&nets[self.q], x.tape.concat_cols(&[s, into_q])).mean_cols();
                let loss = c.alpha_bc as f32 * bc + maximise(q_pi, c.normalize_q.then_some(1e-6));
                (loss, "actor/q", q_pi)
            }
            Extraction::Awr => {
                let advantage = advantage();
                ((advantage_weight(advantage, c.alpha_awr) * distance).mean(), "actor/adv", advantage)
            }
        };
        measures.mean("actor/actor_loss", actor).value(column, values).mean("actor/bc_loss", bc);
        actor
    }

    /// The loss of a discrete policy.
    fn discrete_actor_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        measures: &mut Measures<'t>,
        advantage: Var<'t>,
    ) -> Var<'t> {
        let (c, a) = (&self.config, x.a());
        let logits = x.tape.apply(&nets[self.actor], x.s());
        let log_likelihood = self.head.log_likelihood(logits, a);
        let loss = match c.discrete_policy {
            DiscretePolicy::Awr => -(advantage_weight(advantage, c.alpha_awr) * log_likelihood).mean(),
            DiscretePolicy::Best => -log_likelihood.mean(),
        };

        measures
            .mean("actor/actor_loss", loss)
            .value("actor/adv", advantage)
            .mean("actor/bc_log_prob", log_likelihood);
        self.head.measure(logits, a, measures);
        loss
    }
}

impl Algorithm for Album {
    fn segments(&self) -> SegmentConfig {
        self.config.critic.segments(self.config.common.gamma)
    }

    fn stages(&self) -> &'static [Stage] {
        if self.config.critic_first { &[Stage::Critic, Stage::Actor] } else { &[Stage::All] }
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let total = match x.stage {
            Stage::All => {
                let critic = self.critic_loss(nets, x, &mut measures);
                let (q, v) = (critic.q, critic.v);
                critic.loss + self.policy_loss(nets, x, &mut measures, || (q, v))
            }
            Stage::Critic => self.critic_loss(nets, x, &mut measures).loss,
            Stage::Actor => self.policy_loss(nets, x, &mut measures, || {
                (x.q(&nets[self.q], Through::Frozen), x.tape.apply_frozen(&nets[self.v], x.s()))
            }),
        };
        Loss { total, measures }
    }

    /// Acts by the mean of the Gaussian; with discrete actions, by the most likely or the best supported
    /// choice.
    fn decide(&self, nets: &Networks) -> Decide {
        let actor = nets[self.acting].clone();
        if let Head::Choices(n) = self.head {
            let (q, threshold) = (nets[self.q].clone(), self.config.discrete_threshold as f32);
            return match self.config.discrete_policy {
                DiscretePolicy::Awr => self.head.decide(&actor),
                DiscretePolicy::Best => Box::new(move |x| {
                    let aggregate = Aggregate::Mean;
                    let members = x.tape.apply_frozen(&q, x.s);
                    let q = all_choices(members, n, aggregate);
                    x.mark(q, Mark::Choices { q: members.place(), aggregate });
                    decide_supported(x, x.tape.apply_frozen(&actor, x.s), q, threshold)
                }),
            };
        }
        let squash = self.config.squash;
        Box::new(move |x| {
            let mean = x.tape.apply_frozen(&actor, x.s);
            match squash {
                Squash::Clip => mean,
                Squash::Tanh => mean.tanh(),
            }
        })
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.v)
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        Some((self.q, Aggregate::Mean))
    }
}

/// The critic loss and its terms.
pub(crate) struct CriticLoss<'t> {
    pub(crate) loss: Var<'t>,
    /// Q(s,a) of every ensemble member.
    q: Var<'t>,
    /// V(s).
    v: Var<'t>,
}

/// `min( exp(alpha A / E|A|), 100 )`: relative to the mean absolute advantage, one alpha suits any reward
/// scale.
fn advantage_weight(advantage: Var<'_>, alpha: f64) -> Var<'_> {
    let unit = advantage / (advantage.abs().mean().detach() + 1e-6);
    (alpha as f32 * unit).exp().clip(0.0, 100.0)
}

/// The paper's critic loss for the networks (Q, V).
pub(crate) fn critic_loss<'t>(
    c: &HingeCritic,
    gamma: f64,
    nets: &Networks,
    [q, v]: [NetworkId; 2],
    x: &Inputs<'t, '_>,
    measures: &mut Measures<'t>,
) -> CriticLoss<'t> {
    let (tape, b) = (x.tape, x.rows());
    let (w, f) = (&c.coefficients, |x: f64| x as f32);
    // V processes s and s' in one pass; s_K needs no stored activations unless y_K carries a gradient.
    let values = tape.apply(&nets[v], x.states(0, 2));
    let v_next = values.slice_rows(b, 2 * b);
    let v_last = if c.stop_gradient {
        tape.apply_frozen(&nets[v], x.s_last())
    } else {
        tape.apply(&nets[v], x.s_last())
    };
    let q = x.q(&nets[q], Through::Trained);
    let v = values.slice_rows(0, b);

    let y_1 = x.r() + f(gamma) * x.m() * v_next;
    let y_k = x.r_k() + x.g_k() * v_last;
    let y_k = if c.stop_gradient { y_k.detach() } else { y_k };
    let w_k = x.w_k();

    let [g_b, g_e, g_kq, g_kv] = [y_1 - q, q - v, y_k - q, y_k - v];
    let hinge_b = g_b.relu().mean();
    let hinge_e = g_e.relu().mean();
    let hinge_kq = (w_k * g_kq.relu()).mean();
    let hinge_kv = (w_k * g_kv.relu()).mean();
    let critic = f(w.omega_q) * q.mean()
        + f(w.omega_v) * v.mean()
        + f(w.lambda_b) * hinge_b
        + f(w.lambda_e) * hinge_e
        + f(w.lambda_k) * (hinge_kq + hinge_kv);

    measures
        .mean("critic/critic_loss", critic)
        .mean("critic/hinge_b", hinge_b)
        .mean("critic/hinge_e", hinge_e)
        .mean("critic/hinge_kq", hinge_kq)
        .mean("critic/hinge_kv", hinge_kv)
        .q(q)
        .v(v)
        .share_satisfied("critic/g_b_satisfied", g_b)
        .share_satisfied("critic/g_e_satisfied", g_e)
        .share_satisfied("critic/g_kq_satisfied", g_kq)
        .share_satisfied("critic/g_kv_satisfied", g_kv);
    CriticLoss { loss: critic, q, v }
}

#[cfg(test)]
mod tests;

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
//! L(psi) = - E[ Q(s, pi(s)) ] / sg(E|Q|) + alpha_BC E[ |pi(s) - a|^2 ]
//! ```

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative, positive};
use crate::networks::{Id, Networks};
use crate::registry::Kind;
use album_data::{AfterGoal, KStepTail, SegmentConfig};
use album_nn::MlpSpec;
use album_tabular::{Boundedness, Coefficients, boundedness};
use serde::{Deserialize, Serialize};

/// How it is listed.
pub const KIND: Kind = Kind::new::<Config>("album", "Gaussian", "arXiv 2609.24489", paper, SMALL);

/// The paper's behaviour cloning coefficient of each of its ten environments.
pub fn paper_alpha_bc(environment: &str) -> Option<f64> {
    match environment {
        "antmaze-large" | "antsoccer-arena" => Some(0.01),
        "antmaze-giant" | "humanoidmaze-medium" | "humanoidmaze-large" => Some(0.003),
        "cube-single" => Some(0.3),
        "cube-double" | "scene" | "puzzle-3x3" | "puzzle-4x4" => Some(0.1),
        _ => None,
    }
}

fn paper(environment: &str) -> String {
    format!("alpha_bc = {:?}", paper_alpha_bc(environment).unwrap_or(0.01))
}

/// One action changes Q by little on PointMaze (docs/decisions.md).
const SMALL: &str = "gamma = 0.995\nalpha_bc = 0.001\ncritic_lr = 1e-3\nactor_lr = 1e-3";

/// How the actor's mean becomes an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Squash {
    /// Clipped to [-1, 1] before Q sees it; the BC term sees the mean itself.
    #[default]
    Clip,
    /// `tanh(mean)` throughout.
    Tanh,
}

/// Hyperparameters. Defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// Length of the recorded rollouts.
    pub k: usize,
    /// Weight of `E[Q]` in the objective.
    pub omega_q: f64,
    /// Weight of `E[V]` in the objective.
    pub omega_v: f64,
    /// Penalty of the one-step constraint y_1 <= Q.
    pub lambda_b: f64,
    /// Penalty of the epigraph constraint Q <= V.
    pub lambda_e: f64,
    /// Penalty of the rollout constraints y_K <= Q and y_K <= V.
    pub lambda_k: f64,
    /// Weight of the behaviour cloning term of the actor; chosen per environment.
    pub alpha_bc: f64,
    /// Learning rate of Q and V.
    pub critic_lr: f64,
    /// Learning rate of the actor.
    pub actor_lr: f64,
    /// Treat y_K as a constant in the update.
    pub stop_gradient: bool,
    /// Critics; each has its own losses, which are averaged, and the actor follows their mean.
    pub ensemble: usize,
    /// Divide Q by the mean of |Q| in the actor loss.
    pub normalize_q: bool,
    /// How the actor's mean becomes an action.
    pub squash: Squash,
    /// What becomes of a rollout that the end of its trajectory cuts short: `truncate`, `drop` or `qc_valid`.
    pub kstep_tail: KStepTail,
    /// What follows a solved task in a rollout: `stop` or `qc_sum`.
    pub kstep_after_goal: AfterGoal,
}

impl Default for Config {
    fn default() -> Self {
        let c = Coefficients::default();
        Config {
            common: Common { gamma: 0.995, ..Common::default() },
            k: 10,
            omega_q: c.omega_q,
            omega_v: c.omega_v,
            lambda_b: c.lambda_b,
            lambda_e: c.lambda_e,
            lambda_k: c.lambda_k,
            alpha_bc: 0.01,
            critic_lr: 1e-4,
            actor_lr: 3e-4,
            stop_gradient: true,
            ensemble: 1,
            normalize_q: true,
            squash: Squash::Clip,
            kstep_tail: KStepTail::Truncate,
            kstep_after_goal: AfterGoal::Stop,
        }
    }
}

impl Config {
    /// The condition that keeps the values from falling without bound.
    pub fn boundedness(&self) -> Boundedness {
        let c = Coefficients {
            omega_q: self.omega_q,
            omega_v: self.omega_v,
            lambda_b: self.lambda_b,
            lambda_e: self.lambda_e,
            lambda_k: self.lambda_k,
        };
        boundedness(&c, self.common.gamma, self.k, self.stop_gradient)
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        positive(&[
            ("omega_q", self.omega_q),
            ("omega_v", self.omega_v),
            ("critic_lr", self.critic_lr),
            ("actor_lr", self.actor_lr),
        ])?;
        nonnegative(&[
            ("lambda_b", self.lambda_b),
            ("lambda_e", self.lambda_e),
            ("lambda_k", self.lambda_k),
            ("alpha_bc", self.alpha_bc),
        ])?;
        at_least_one(&[("k", self.k), ("ensemble", self.ensemble)])
    }

    fn album_critic(&self) -> Option<&Config> {
        Some(self)
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let Sizes { s, a, .. } = sizes;
        let hidden = &self.common.hidden;
        let critic = |inputs| MlpSpec::new(inputs, hidden, 1).layer_norm(true);
        Box::new(Album {
            q: nets.value("q", critic(s + a).members(self.ensemble), self.critic_lr),
            v: nets.value("v", critic(s), self.critic_lr),
            actor: nets.policy("actor", MlpSpec::new(s, hidden, a).output_scale(0.01), self.actor_lr),
            config: self.clone(),
        })
    }
}

struct Album {
    config: Config,
    q: Id,
    v: Id,
    actor: Id,
}

impl Algorithm for Album {
    fn segments(&self) -> SegmentConfig {
        segments(&self.config)
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let critic = critic_loss(&self.config, nets, (self.q, self.v), x, &mut measures);

        let c = &self.config;
        let (s, a) = (x.s(), x.a());
        let mean = x.tape.apply(&nets[self.actor], s);
        let (pi, into_q) = match c.squash {
            Squash::Clip => (mean, mean.clip(-1.0, 1.0)),
            Squash::Tanh => (mean.tanh(), mean.tanh()),
        };
        let q_pi = x.tape.apply_frozen(&nets[self.q], x.tape.concat_cols(&[s, into_q])).mean_cols();
        let bc = (pi - a).square().sum_cols().mean();
        let q_term =
            if c.normalize_q { q_pi.mean() / (q_pi.abs().mean().detach() + 1e-6) } else { q_pi.mean() };
        let actor = c.alpha_bc as f32 * bc - q_term;

        measures.mean("actor/actor_loss", actor).value("actor/q", q_pi).mean("actor/bc_loss", bc);
        Loss { total: critic + actor, measures }
    }

    /// The mean of the Gaussian policy.
    fn decide(&self, nets: &Networks) -> Decide {
        let (actor, squash) = (nets[self.actor].clone(), self.config.squash);
        Box::new(move |x| {
            let mean = x.tape.apply_frozen(&actor, x.s);
            match squash {
                Squash::Clip => mean,
                Squash::Tanh => mean.tanh(),
            }
        })
    }

    fn value(&self) -> Option<Id> {
        Some(self.v)
    }
}

/// The windows that the critic needs.
pub(crate) fn segments(c: &Config) -> SegmentConfig {
    SegmentConfig {
        k: c.k,
        gamma: c.common.gamma,
        tail: c.kstep_tail,
        after_goal: c.kstep_after_goal,
        ..SegmentConfig::default()
    }
}

/// The critic loss of the paper for the networks (Q, V).
pub(crate) fn critic_loss<'t>(
    c: &Config,
    nets: &Networks,
    (q, v): (Id, Id),
    x: &Inputs<'t, '_>,
    measures: &mut Measures<'t>,
) -> album_nn::Var<'t> {
    let (tape, b) = (x.tape, x.rows());
    let f = |x: f64| x as f32;
    // V sees s and s' in one product; s_K needs no activations kept where y_K carries no gradient.
    let values = tape.apply(&nets[v], x.states(0, 2));
    let v_next = values.slice_rows(b, 2 * b);
    let v_last = if c.stop_gradient {
        tape.apply_frozen(&nets[v], x.s_last())
    } else {
        tape.apply(&nets[v], x.s_last())
    };
    let q = tape.apply(&nets[q], tape.concat_cols(&[x.s(), x.a()]));
    let v = values.slice_rows(0, b);

    let y_1 = x.r() + f(c.common.gamma) * x.m() * v_next;
    let y_k = x.r_k() + x.g_k() * v_last;
    let y_k = if c.stop_gradient { y_k.detach() } else { y_k };
    let w_k = x.w_k();

    let [g_b, g_e, g_kq, g_kv] = [y_1 - q, q - v, y_k - q, y_k - v];
    let hinge_b = g_b.relu().mean();
    let hinge_e = g_e.relu().mean();
    let hinge_kq = (w_k * g_kq.relu()).mean();
    let hinge_kv = (w_k * g_kv.relu()).mean();
    let critic = f(c.omega_q) * q.mean()
        + f(c.omega_v) * v.mean()
        + f(c.lambda_b) * hinge_b
        + f(c.lambda_e) * hinge_e
        + f(c.lambda_k) * (hinge_kq + hinge_kv);

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
    critic
}

#[cfg(test)]
mod tests;

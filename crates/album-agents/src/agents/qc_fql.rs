//! QC-FQL: FQL on action chunks (Li, Zhou, Levine, 2025). With the concatenation `c = a_0 ... a_(h-1)`:
//!
//! ```text
//! L(Q) = E[ w sum_i (Q_i(s,c) - y)^2 / N ],   y = r_0 + ... + gamma^(h-1) r_(h-1) + gamma^h m_h agg_i Qbar_i(s_h, c'),
//!                                             c' = clip(mu(s_h, z'))
//! L(psi) = FQL's actor loss over chunks, the flow only at valid actions
//! ```
//!
//! `w` is 1 if the window lies inside its episode, else 0; means divide by the whole batch. `m_h` is 0 if the
//! task is solved anywhere in the window, whose rewards are all summed. A chunk is executed to its end before
//! the next decision. An update draws `z'`, then `x_0`, `t` and `z` of the actor.

use crate::agent::AgentError;
use crate::agents::fql::{ACTOR_COLUMNS, Actor, ActorLosses, ActorSpec};
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, window_target};
use crate::registry::AgentKind;
use album_data::{AfterGoal, KStepTail, SegmentConfig};
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "qc-fql",
    "flow, chunks",
    "arXiv 2507.07969",
    include_str!("../../presets/qc-fql.toml"),
);

/// Hyperparameters. Defaults are those of the Q-chunking code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// Number of steps in a window, at least 1; with chunks, also the number of actions in one.
    pub h: usize,
    /// Weight of the distillation, at least 0; chosen per environment.
    pub alpha: f64,
    /// Euler steps from noise to actions, at least 1.
    pub flow_steps: usize,
    /// Divide Q by the mean of |Q| in the actor loss.
    pub normalize_q_loss: bool,
    /// LayerNorm in the actor's networks.
    pub actor_layer_norm: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common::default(),
            critic: CriticConfig::default(),
            h: 5,
            alpha: 100.0,
            flow_steps: 10,
            normalize_q_loss: false,
            actor_layer_norm: false,
        }
    }
}

impl Config {
    pub(crate) fn check_all(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        nonnegative(&[("alpha", self.alpha)])?;
        at_least_one(&[("h", self.h), ("flow_steps", self.flow_steps)])
    }

    /// The agent that decides on `chunk` actions at a time.
    pub(crate) fn agent(&self, sizes: Sizes, chunk: usize, nets: &mut Networks) -> Box<dyn Algorithm> {
        let spec = ActorSpec {
            names: ["flow", "actor"],
            s: sizes.s,
            x: chunk * sizes.a,
            hidden: &self.common.hidden,
            layer_norm: self.actor_layer_norm,
            lr: self.critic.lr,
            alpha: self.alpha,
            normalize_q_loss: self.normalize_q_loss,
            flow_steps: self.flow_steps,
        };
        let fql = WindowFql::new(nets, ["q", "q_target"], &spec, &self.critic, sizes.a);
        Box::new(QcFql { segments: segments(self.h, chunk, self.common.gamma), fql })
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.check_all()
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        self.agent(sizes, self.h, nets)
    }
}

/// Windows of `h` steps as in the Q-chunking code.
pub(crate) fn segments(h: usize, chunk: usize, gamma: f64) -> SegmentConfig {
    SegmentConfig { k: h, chunk, gamma, tail: KStepTail::QcValid, after_goal: AfterGoal::QcSum }
}

/// FQL with window targets, on as many actions at a time as a row of the batch has.
pub(crate) struct WindowFql {
    pub(crate) critic: Critic,
    pub(crate) actor: Actor,
    q_agg: Aggregate,
    a: usize,
}

impl WindowFql {
    /// Creates the networks; `a` is the dimension of one action.
    pub(crate) fn new(
        nets: &mut Networks,
        names: [&str; 2],
        spec: &ActorSpec<'_>,
        critic: &CriticConfig,
        a: usize,
    ) -> Self {
        WindowFql {
            critic: Critic::new(nets, names, spec.s + spec.x, spec.hidden, critic),
            actor: Actor::new(nets, spec),
            q_agg: critic.q_agg,
            a,
        }
    }

    /// L(Q), and Q of every member.
    pub(crate) fn critic_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> (Var<'t>, Var<'t>) {
        let s_last = x.s_last();
        let c_last = self.actor.actions(nets, x, s_last);
        let y = window_target(x, self.q_agg.of(self.critic.target(nets, s_last, c_last)));
        let q = self.critic.online(nets, x.s_chunk());
        ((x.w_k() * (q - y).square()).mean(), q)
    }

    /// L(psi).
    pub(crate) fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> ActorLosses<'t> {
        let q = |pi| self.critic.frozen(nets, x.s(), pi).mean_cols();
        self.actor.losses(nets, x, x.chunk(), Some(column_mask(x.valids(), self.a)), q)
    }
}

/// The validity flags of actions, expanded to `width` columns per action.
pub(crate) fn column_mask<'t>(valids: Var<'t>, width: usize) -> Var<'t> {
    let (rows, chunk) = (valids.rows(), valids.cols());
    let ones = valids.tape().filled(rows * chunk, width, 1.0);
    (valids.reshape(rows * chunk, 1) * ones).reshape(rows, chunk * width)
}

struct QcFql {
    segments: SegmentConfig,
    fql: WindowFql,
}

impl Algorithm for QcFql {
    fn segments(&self) -> SegmentConfig {
        self.segments
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let (critic, q) = self.fql.critic_loss(nets, x);
        measures.mean("critic/critic_loss", critic).q(q);
        let actor = self.fql.actor_loss(nets, x);
        actor.measure(&mut measures, ACTOR_COLUMNS);
        Loss { total: critic + actor.total, measures }
    }

    /// Defined for single actions only.
    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        (self.segments.chunk == 1).then_some((self.fql.critic.q, self.fql.q_agg))
    }

    fn decide(&self, nets: &Networks) -> Decide {
        self.fql.actor.decide(nets)
    }

    fn open_loop(&self) -> usize {
        self.segments.chunk
    }
}

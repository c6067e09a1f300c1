//! CGQ: chunk-guided Q-learning (Song, Park, Lee, 2026). A complete QC-FQL on chunks `c` of `h` actions and a
//! complete FQL on single actions, trained together; the single-action critic is regularised towards the
//! chunk critic:
//!
//! ```text
//! L(Qc), L(psi_c) = those of QC-FQL
//! L(Q)   = beta_td E[ sum_i (Q_i(s,a) - y)^2 / N ] + beta E[ w sum_i L_tau( sg(Qc_i(s,c)) - Q_i(s,a) ) / N ]
//!          y = r + gamma m agg_i Qbar_i(s', clip(mu(s', z')))
//! L(psi) = FQL's actor loss
//! ```
//!
//! `L_tau(u) = |tau - 1(u < 0)| u^2`. Acts by the single-action policy. An update draws the noise of QC-FQL,
//! then `z'`, then `x_0`, `t` and `z` of the single-action actor.

use crate::agent::AgentError;
use crate::agents::fql::{ACTOR_COLUMNS, Actor, ActorSpec, Columns};
use crate::agents::qc_fql::{WindowFql, segments};
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative, open_unit};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, one_step_target};
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("cgq", "flow", "arXiv 2603.13971", include_str!("../../presets/cgq.toml"));

/// Hyperparameters. Defaults are those of the published code; `h` is the value for antmaze-large.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// Both critics.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// Number of actions in a chunk and of steps in its window, at least 1.
    pub h: usize,
    /// Weight of the chunk policy's distillation, at least 0; chosen per environment.
    pub alpha: f64,
    /// Weight of the single-action policy's distillation, at least 0; chosen per environment.
    pub step_alpha: f64,
    /// Weight of the regularisation of Q towards the chunk critic, at least 0; chosen per environment.
    pub beta: f64,
    /// Expectile of that regularisation, between 0 and 1; chosen per environment.
    pub anchor_expectile: f64,
    /// Weight of the one-step TD loss of Q, at least 0.
    pub beta_td: f64,
    /// Euler steps from noise to actions, at least 1.
    pub flow_steps: usize,
    /// Divide Q by the mean of |Q| in the actor losses.
    pub normalize_q_loss: bool,
    /// LayerNorm in the actors' networks.
    pub actor_layer_norm: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common::default(),
            critic: CriticConfig::default(),
            h: 10,
            alpha: 100.0,
            step_alpha: 100.0,
            beta: 0.01,
            anchor_expectile: 0.95,
            beta_td: 1.0,
            flow_steps: 10,
            normalize_q_loss: false,
            actor_layer_norm: true,
        }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        open_unit(&[("anchor_expectile", self.anchor_expectile)])?;
        nonnegative(&[
            ("alpha", self.alpha),
            ("step_alpha", self.step_alpha),
            ("beta", self.beta),
            ("beta_td", self.beta_td),
        ])?;
        at_least_one(&[("h", self.h), ("flow_steps", self.flow_steps)])
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let hidden = &self.common.hidden;
        let chunk = ActorSpec {
            names: ["chunk_flow", "chunk_actor"],
            s: sizes.s,
            x: self.h * sizes.a,
            hidden,
            layer_norm: self.actor_layer_norm,
            lr: self.critic.lr,
            alpha: self.alpha,
            normalize_q_loss: self.normalize_q_loss,
            flow_steps: self.flow_steps,
        };
        let step = ActorSpec { names: ["flow", "actor"], x: sizes.a, alpha: self.step_alpha, ..chunk };
        Box::new(Cgq {
            chunk: WindowFql::new(nets, ["chunk_q", "chunk_q_target"], &chunk, &self.critic, sizes.a),
            critic: Critic::new(nets, ["q", "q_target"], sizes.s + sizes.a, hidden, &self.critic),
            actor: Actor::new(nets, &step),
            config: self.clone(),
        })
    }
}

struct Cgq {
    config: Config,
    chunk: WindowFql,
    critic: Critic,
    actor: Actor,
}

/// Names of the losses of the chunk actor.
const CHUNK_ACTOR: Columns = [
    "chunk_actor/actor_loss",
    "chunk_actor/bc_flow_loss",
    "chunk_actor/distill_loss",
    "chunk_actor/q_loss",
    "chunk_actor/q",
    "chunk_actor/mse",
];

impl Cgq {
    /// L(Q), regularised towards the chunk critic.
    fn critic_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        chunk_q: Var<'t>,
        measures: &mut Measures<'t>,
    ) -> Var<'t> {
        let (c, s_next) = (&self.config, x.s_next());
        let a_next = self.actor.actions(nets, x, s_next);
        let q_next = c.critic.q_agg.of(self.critic.target(nets, s_next, a_next));
        let y = one_step_target(x, c.common.gamma, q_next);
        let q = self.critic.online(nets, x.s_a());
        let td = (q - y).square().mean();
        let anchor = (x.w_k() * (chunk_q.detach() - q).expectile_loss(c.anchor_expectile as f32)).mean();
        let loss = c.beta_td as f32 * td + c.beta as f32 * anchor;
        measures
            .mean("critic/critic_loss", loss)
            .mean("critic/td_loss", td)
            .mean("critic/anchor_loss", anchor)
            .q(q);
        loss
    }

    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let q = |pi| self.critic.frozen(nets, x.s(), pi).mean_cols();
        let losses = self.actor.losses(nets, x, x.a(), None, q);
        losses.measure(measures, ACTOR_COLUMNS);
        losses.total
    }
}

impl Algorithm for Cgq {
    fn segments(&self) -> SegmentConfig {
        segments(self.config.h, self.config.h, self.config.common.gamma)
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let (chunk_critic, chunk_q) = self.chunk.critic_loss(nets, x);
        let chunk_actor = self.chunk.actor_loss(nets, x);
        measures
            .mean("chunk_critic/critic_loss", chunk_critic)
            .range(["chunk_critic/q_mean", "chunk_critic/q_max", "chunk_critic/q_min"], chunk_q);
        let critic = self.critic_loss(nets, x, chunk_q, &mut measures);
        chunk_actor.measure(&mut measures, CHUNK_ACTOR);
        let actor = self.actor_loss(nets, x, &mut measures);
        Loss { total: chunk_critic + chunk_actor.total + critic + actor, measures }
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        Some((self.critic.q, self.config.critic.q_agg))
    }

    fn decide(&self, nets: &Networks) -> Decide {
        self.actor.decide(nets)
    }
}

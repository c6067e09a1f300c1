//! DQC: decoupled Q-chunking (Li, Park, Levine, 2025), following CGQ's code for single tasks. A critic of
//! long chunks `c` of `h` actions, distilled into a critic of the first `ha` actions `b`, which guides the
//! policy:
//!
//! ```text
//! L(Qc)  = E[ w sum_i (Qc_i(s,c) - y)^2 / N ],     y = r_0 + ... + gamma_1^(h-1) r_(h-1) + gamma^h m_h V(s_h)
//! L(Q)   = E[ w sum_i l_kd( sg(Qc_i(s,c)) - Q_i(s,b) ) / N ]
//! L(V)   = E[ w l_kb( agg_i Qbar_i(s,b) - V(s) ) ]
//! L(psi) = E[ w mean_d (v(s, x_t, t) - (b - x_0))^2 ]
//!
//! l_k(u) = |k - 1(u < 0)| u^2    (expectile)    or    |k - 1(u < 0)| |u|    (quantile)
//! ```
//!
//! `w` is 1 if the window lies inside its episode, else 0; means divide by the whole batch. Acts by the best
//! of `num_samples` samples of the flow, by `agg_i Q_i`. An update draws `x_0`, then `t`.

use crate::agent::AgentError;
use crate::agents::qc_fql::segments;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, fail, open_unit};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, bootstrap_ratio, value_spec, window_target};
use crate::parts::flow::{self, field_spec, matching_error};
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "dqc",
    "flow, best of n",
    "arXiv 2512.10926",
    include_str!("../../presets/dqc.toml"),
);

/// An asymmetric regression loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asymmetric {
    /// Weighted squared errors.
    Expectile,
    /// Weighted absolute errors.
    Quantile,
}

impl Asymmetric {
    fn of(self, u: Var<'_>, kappa: f64) -> Var<'_> {
        match self {
            Asymmetric::Expectile => u.expectile_loss(kappa as f32),
            Asymmetric::Quantile => u.expectile_weights(kappa as f32) * u.abs(),
        }
    }
}

/// Hyperparameters. Defaults are those of the code for single tasks; `h` is the value for antmaze-large.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critics.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// Discount of the rewards within a window (`gamma_1`), between 0 and 1.
    pub gamma_1: f64,
    /// Number of actions in a chunk of the critic and of steps in its window, at least 1.
    pub h: usize,
    /// Number of actions per decision of the policy, 1 to `h`.
    pub ha: usize,
    /// Quantile or expectile of V over the values of recorded actions, between 0 and 1; chosen per
    /// environment.
    pub kappa_b: f64,
    /// Quantile or expectile of Q over the values of chunks that start with its actions, between 0 and 1;
    /// chosen per environment.
    pub kappa_d: f64,
    /// Loss of V: `quantile` or `expectile`.
    pub backup: Asymmetric,
    /// Loss of Q: `expectile` or `quantile`.
    pub distill: Asymmetric,
    /// Number of samples of which the policy takes the best, at least 1.
    pub num_samples: usize,
    /// Euler steps from noise to actions, at least 1.
    pub flow_steps: usize,
    /// LayerNorm in the flow.
    pub actor_layer_norm: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common { gamma: 0.999, ..Common::default() },
            critic: CriticConfig::default(),
            gamma_1: 0.99,
            h: 25,
            ha: 1,
            kappa_b: 0.9,
            kappa_d: 0.5,
            backup: Asymmetric::Quantile,
            distill: Asymmetric::Expectile,
            num_samples: 32,
            flow_steps: 10,
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
        open_unit(&[("gamma_1", self.gamma_1), ("kappa_b", self.kappa_b), ("kappa_d", self.kappa_d)])?;
        at_least_one(&[
            ("h", self.h),
            ("ha", self.ha),
            ("num_samples", self.num_samples),
            ("flow_steps", self.flow_steps),
        ])?;
        if self.ha > self.h {
            return fail("ha", self.ha.to_string(), "at most h");
        }
        Ok(())
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let (hidden, lr) = (&self.common.hidden, self.critic.lr);
        let Sizes { s, a, .. } = sizes;
        let columns = self.ha * a;
        let chunk_spec = value_spec(s + self.h * a, hidden).members(self.critic.ensemble);
        let field = field_spec(s, columns, hidden).layer_norm(self.actor_layer_norm);
        Box::new(Dqc {
            q_chunk: nets.value("q_chunk", chunk_spec, lr),
            critic: Critic::new(nets, ["q", "q_target"], s + columns, hidden, &self.critic),
            v: nets.value("v", value_spec(s, hidden), lr),
            flow: nets.policy("flow", field, lr),
            config: self.clone(),
            columns,
        })
    }
}

struct Dqc {
    config: Config,
    q_chunk: NetworkId,
    critic: Critic,
    v: NetworkId,
    flow: NetworkId,
    /// Dimension of a decision.
    columns: usize,
}

impl Dqc {
    /// L(Qc) + L(Q) + L(V), where the policy decides on the first actions `b` of a chunk.
    fn critic_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        b: Var<'t>,
        measures: &mut Measures<'t>,
    ) -> Var<'t> {
        let c = &self.config;
        let (s, w) = (x.s(), x.w_k());
        let s_b = x.tape.concat_cols(&[s, b]);

        let ratio = bootstrap_ratio(c.common.gamma, c.gamma_1, c.h);
        let y = window_target(x, ratio * x.tape.apply_frozen(&nets[self.v], x.s_last()));
        let q_chunk = x.tape.apply(&nets[self.q_chunk], x.s_chunk());
        let chunk_loss = (w * (q_chunk - y).square()).mean();

        let q = self.critic.online(nets, s_b);
        let critic = (w * c.distill.of(q_chunk.detach() - q, c.kappa_d)).mean();

        let v = x.tape.apply(&nets[self.v], s);
        let q_bar = c.critic.q_agg.of(self.critic.recorded_target(nets, s_b)).detach();
        let value = (w * c.backup.of(q_bar - v, c.kappa_b)).mean();

        measures
            .mean("chunk_critic/critic_loss", chunk_loss)
            .range(["chunk_critic/q_mean", "chunk_critic/q_max", "chunk_critic/q_min"], q_chunk)
            .mean("critic/critic_loss", critic)
            .q(q)
            .mean("value/value_loss", value)
            .v(v)
            .value("value/adv", q_bar - v);
        chunk_loss + critic + value
    }

    fn actor_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        b: Var<'t>,
        measures: &mut Measures<'t>,
    ) -> Var<'t> {
        let loss = (x.w_k() * matching_error(x, &nets[self.flow], x.s(), b)).mean();
        measures.mean("actor/actor_loss", loss).mean("actor/bc_flow_loss", loss);
        loss
    }
}

impl Algorithm for Dqc {
    fn segments(&self) -> SegmentConfig {
        segments(self.config.h, self.config.h, self.config.gamma_1)
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let b = x.chunk().slice_cols(0, self.columns);
        let critic = self.critic_loss(nets, x, b, &mut measures);
        let actor = self.actor_loss(nets, x, b, &mut measures);
        Loss { total: critic + actor, measures }
    }

    /// Defined for single actions only.
    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        (self.config.ha == 1).then_some((self.critic.q, self.config.critic.q_agg))
    }

    fn decide(&self, nets: &Networks) -> Decide {
        let (c, q) = (&self.config, &nets[self.critic.q]);
        flow::best_of(c.num_samples, &nets[self.flow], c.flow_steps, q, c.critic.q_agg)
    }

    fn open_loop(&self) -> usize {
        self.config.ha
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.v)
    }
}

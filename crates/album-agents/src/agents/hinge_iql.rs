//! hinge-IQL: IQL with ALBUM's K-step hinges (the paper's appendix), to test whether they also help a
//! regression.
//!
//! ```text
//! L(V) = L_IQL(V) + lambda_K E[ sg(y_K) - V(s) ]+
//! L(Q) = L_IQL(Q) + lambda_K E[ sum_i [ sg(y_K) - Q_i(s,a) ]+ ]
//!
//! y_K  = sum_(t<h) gamma^t r_t + gamma^h V(s_h)
//! ```
//!
//! The actor is IQL's.

use crate::agent::AgentError;
use crate::agents::iql::{self, Actor, ValueLosses, Values, actor_loss};
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, window_target};
use crate::registry::AgentKind;
use album_data::{ActionSpace, SegmentConfig};
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "hinge-iql",
    "Gaussian",
    "arXiv 2609.24489",
    include_str!("../../presets/hinge-iql.toml"),
)
.with_discrete();

/// Hyperparameters. Defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// IQL's hyperparameters.
    #[serde(flatten)]
    pub iql: iql::Config,
    /// Length of the recorded rollouts.
    pub k: usize,
    /// Weight of the hinges.
    pub lambda_k: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config { iql: iql::Config::default(), k: 10, lambda_k: 1.0 }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.iql.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.iql.check()?;
        at_least_one(&[("k", self.k)])?;
        nonnegative(&[("lambda_k", self.lambda_k)])
    }

    fn check_actions(&self, actions: &ActionSpace) -> Result<(), AgentError> {
        self.iql.check_actions(actions)
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let c = &self.iql;
        let values = Values::new(nets, sizes, &c.common.hidden, &c.critic, c.expectile);
        let actor = Actor::new(c, sizes, nets);
        Box::new(HingeIql { config: self.clone(), values, actor })
    }
}

struct HingeIql {
    config: Config,
    values: Values,
    actor: Actor,
}

impl HingeIql {
    /// IQL's losses of V and Q plus the hinges.
    fn critic_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        measures: &mut Measures<'t>,
    ) -> ValueLosses<'t> {
        let lambda_k = self.config.lambda_k as f32;
        let mut values = self.values.losses(nets, x, self.config.iql.common.gamma);

        let y_k = window_target(x, x.tape.apply_frozen(&nets[self.values.v], x.s_last()));
        let hinge_kq = (y_k - values.q).relu().sum_cols().mean();
        let hinge_kv = (y_k - values.v).relu().mean();
        values.critic = values.critic + lambda_k * hinge_kq;
        values.value = values.value + lambda_k * hinge_kv;
        values.measure(measures);
        measures.mean("critic/hinge_kq", hinge_kq).mean("critic/hinge_kv", hinge_kv);
        values
    }
}

impl Algorithm for HingeIql {
    fn segments(&self) -> SegmentConfig {
        SegmentConfig { k: self.config.k, gamma: self.config.iql.common.gamma, ..SegmentConfig::default() }
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let values = self.critic_loss(nets, x, &mut measures);
        let actor = actor_loss(&self.config.iql, nets, self.actor, &self.values, &values, x, &mut measures);
        Loss { total: values.value + values.critic + actor, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        self.actor.head.decide(&nets[self.actor.net])
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.values.v)
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        self.values.q()
    }
}

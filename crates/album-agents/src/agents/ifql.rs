//! IFQL: implicit flow Q-learning (Park et al., 2025), IDQL with a flow. The values are IQL's, the flow
//! clones the behaviour, and the policy takes the best of its samples.
//!
//! ```text
//! L(V), L(Q): those of IQL
//! L(v) = E[ |v(s, x_t, t) - (a - x_0)|^2 / d ],      x_t = (1-t) x_0 + t a
//! pi(s) = argmax over N samples a of flow(s, z) of agg_i Q_i(s, a)
//! ```
//!
//! `d` is the number of action dimensions. Draws `x_0`, then `t`.

use crate::agent::AgentError;
use crate::agents::iql::Values;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, open_unit};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, CriticConfig};
use crate::parts::flow;
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("ifql", "flow", "arXiv 2502.02538", include_str!("../../presets/ifql.toml"));

/// Hyperparameters. Defaults are those of FQL's code base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic. `q_agg` also scores the policy's samples.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// The expectile that V estimates.
    pub expectile: f64,
    /// Number of samples that the policy chooses from.
    pub num_samples: usize,
    /// Euler steps from noise to actions.
    pub flow_steps: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common::default(),
            critic: CriticConfig { q_agg: Aggregate::Min, ..CriticConfig::default() },
            expectile: 0.9,
            num_samples: 32,
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
        open_unit(&[("expectile", self.expectile)])?;
        at_least_one(&[("num_samples", self.num_samples), ("flow_steps", self.flow_steps)])
    }

    fn settling_steps(&self) -> Option<f64> {
        self.critic.settling_steps(self.common.gamma)
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let hidden = &self.common.hidden;
        let values = Values::new(nets, sizes, hidden, &self.critic, self.expectile);
        let flow = nets.policy("flow", flow::field_spec(sizes.s, sizes.a, hidden), self.critic.lr);
        Box::new(Ifql { config: self.clone(), values, flow })
    }
}

struct Ifql {
    config: Config,
    values: Values,
    flow: NetworkId,
}

impl Ifql {
    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let bc_flow = flow::matching_error(x, &nets[self.flow], x.s(), x.a()).mean();
        measures.mean("actor/actor_loss", bc_flow).mean("actor/bc_flow_loss", bc_flow);
        bc_flow
    }
}

impl Algorithm for Ifql {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let critic = self.values.critic_loss(nets, x, self.config.common.gamma, &mut measures);
        let actor = self.actor_loss(nets, x, &mut measures);
        Loss { total: critic + actor, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        let c = &self.config;
        flow::best_of(
            c.num_samples,
            &nets[self.flow],
            c.flow_steps,
            &nets[self.values.critic.q],
            c.critic.q_agg,
        )
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.values.v)
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        self.values.q()
    }
}

//! IFQL-ALBUM: ALBUM's critic with IFQL's policy (arXiv 2609.24489, "ALBUM Critic with Generative Policies").
//!
//! ```text
//! L(theta, phi): ALBUM's critic loss
//! L(v) = E[ |v(s, x_t, t) - (a - x_0)|^2 / d ],      x_t = (1-t) x_0 + t a
//! pi(s) = argmax over N samples a of flow(s, z) of Q(s, a)
//! ```
//!
//! `d` is the number of action dimensions. Draws `x_0`, then `t`.

use crate::agent::AgentError;
use crate::agents::album::{self, BoundednessCondition, HingeCritic, critic_loss};
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, positive};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::Aggregate;
use crate::parts::flow;
use crate::registry::AgentKind;
use album_data::{Dataset, SegmentConfig};
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "ifql-album",
    "flow",
    "arXiv 2609.24489",
    include_str!("../../presets/ifql-album.toml"),
);

/// Hyperparameters. Defaults are those of ALBUM and of IFQL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// ALBUM's critic.
    #[serde(flatten)]
    pub critic: HingeCritic,
    /// Learning rate of the flow.
    pub actor_lr: f64,
    /// Number of samples that the policy chooses from.
    pub num_samples: usize,
    /// Euler steps from noise to actions.
    pub flow_steps: usize,
}

impl Default for Config {
    fn default() -> Self {
        let album::Config { common, critic, actor_lr, .. } = album::Config::default();
        Config { common, critic, actor_lr, num_samples: 32, flow_steps: 10 }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        positive(&[("actor_lr", self.actor_lr)])?;
        at_least_one(&[("num_samples", self.num_samples), ("flow_steps", self.flow_steps)])
    }

    fn boundedness(&self) -> Option<BoundednessCondition> {
        Some(self.critic.boundedness(self.common.gamma))
    }

    fn value_range(&self, data: &Dataset) -> Option<[f32; 2]> {
        self.critic.value_range(data, &self.common)
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let hidden = &self.common.hidden;
        let [q, v] = self.critic.networks(sizes, hidden, nets);
        let flow = nets.policy("flow", flow::field_spec(sizes.s, sizes.a, hidden), self.actor_lr);
        Box::new(IfqlAlbum { q, v, flow, config: self.clone() })
    }
}

struct IfqlAlbum {
    config: Config,
    q: NetworkId,
    v: NetworkId,
    flow: NetworkId,
}

impl IfqlAlbum {
    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let bc_flow = flow::matching_error(x, &nets[self.flow], x.s(), x.a()).mean();
        measures.mean("actor/actor_loss", bc_flow).mean("actor/bc_flow_loss", bc_flow);
        bc_flow
    }
}

impl Algorithm for IfqlAlbum {
    fn segments(&self) -> SegmentConfig {
        self.config.critic.segments(self.config.common.gamma)
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let c = &self.config;
        let critic = critic_loss(&c.critic, c.common.gamma, nets, [self.q, self.v], x, &mut measures);
        let actor = self.actor_loss(nets, x, &mut measures);
        Loss { total: critic.loss + actor, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        let c = &self.config;
        flow::best_of(c.num_samples, &nets[self.flow], c.flow_steps, &nets[self.q], Aggregate::Mean)
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        Some((self.q, Aggregate::Mean))
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_keys_of_the_critic_and_none_of_the_gaussian_actor() {
        let defaults = KIND.defaults().unwrap();
        for key in ["k", "lambda_k", "critic_lr", "actor_lr", "hidden", "gamma", "num_samples"] {
            assert!(defaults.contains_key(key), "{key}");
        }
        for key in ["alpha_bc", "normalize_q", "squash"] {
            assert!(!defaults.contains_key(key), "{key}");
        }
        let mut settings = defaults;
        settings.insert("lambda_k".into(), 0.0.into());
        settings.insert("k".into(), 3.into());
        let setup = KIND.setup(&settings).unwrap();
        assert_eq!(setup.common().gamma, 0.995);
        assert!(!setup.boundedness().unwrap().sides.holds());
    }
}

//! IFQL-ALBUM: the critic of ALBUM under the policy of IFQL (arXiv 2609.24489, "ALBUM Critic with Generative Policies").
//!
//! ```text
//! L(theta, phi): ALBUM's critic loss
//! L(v) = E[ |v(s, x_t, t) - (a - x_0)|^2 / d ],      x_t = (1-t) x_0 + t a
//! pi(s) = argmax over N samples a of flow(s, z) of Q(s, a)
//! ```
//!
//! `d` is the number of action dimensions. Draws `x_0`, then `t`.

use crate::agent::AgentError;
use crate::agents::album;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Setup, Sizes};
use crate::common::{Common, at_least_one};
use crate::networks::{Id, Networks};
use crate::parts::critic::{Aggregate, value_spec};
use crate::parts::flow;
use crate::registry::Kind;
use album_data::SegmentConfig;
use serde::ser::{Error, Serializer};
use serde::{Deserialize, Serialize};

/// How it is listed.
pub const KIND: Kind = Kind::new::<Config>(
    "ifql-album",
    "flow",
    "arXiv 2609.24489",
    |_| String::new(),
    "gamma = 0.995\ncritic_lr = 1e-3\nactor_lr = 1e-3",
);

/// Hyperparameters. Defaults are those of ALBUM and of IFQL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// ALBUM, of which there is the critic here; `actor_lr` is the learning rate of the flow.
    #[serde(flatten, serialize_with = "without_actor")]
    pub album: album::Config,
    /// Samples that the policy chooses from.
    pub num_samples: usize,
    /// Steps of Euler's method.
    pub flow_steps: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config { album: album::Config::default(), num_samples: 32, flow_steps: 10 }
    }
}

/// The keys of ALBUM without those of its Gaussian actor: a key that does nothing is refused as one that is unknown.
fn without_actor<S: Serializer>(album: &album::Config, serializer: S) -> Result<S::Ok, S::Error> {
    let mut keys = toml::Table::try_from(album).map_err(S::Error::custom)?;
    keys.retain(|key, _| !["alpha_bc", "normalize_q", "squash"].contains(&key));
    keys.serialize(serializer)
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.album.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.album.check()?;
        at_least_one(&[("num_samples", self.num_samples), ("flow_steps", self.flow_steps)])
    }

    fn album_critic(&self) -> Option<&album::Config> {
        Some(&self.album)
    }

    fn build(&self, Sizes { s, a, .. }: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let (c, hidden) = (&self.album, &self.album.common.hidden);
        Box::new(IfqlAlbum {
            q: nets.value("q", value_spec(s + a, hidden).members(c.ensemble), c.critic_lr),
            v: nets.value("v", value_spec(s, hidden), c.critic_lr),
            flow: nets.policy("flow", flow::field_spec(s, a, hidden), c.actor_lr),
            config: self.clone(),
        })
    }
}

struct IfqlAlbum {
    config: Config,
    q: Id,
    v: Id,
    flow: Id,
}

impl Algorithm for IfqlAlbum {
    fn segments(&self) -> SegmentConfig {
        album::segments(&self.config.album)
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let critic = album::critic_loss(&self.config.album, nets, (self.q, self.v), x, &mut measures);
        let bc_flow = flow::matching_error(x, &nets[self.flow], x.s(), x.a()).mean();
        measures.mean("actor/actor_loss", bc_flow).mean("actor/bc_flow_loss", bc_flow);
        Loss { total: critic + bc_flow, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        let c = &self.config;
        flow::best_of(c.num_samples, &nets[self.flow], c.flow_steps, &nets[self.q], Aggregate::Mean)
    }

    fn value(&self) -> Option<Id> {
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
        let critic = setup.album_critic().unwrap();
        assert_eq!((critic.k, critic.common.gamma), (3, 0.995));
        assert!(!critic.boundedness().holds());
    }
}

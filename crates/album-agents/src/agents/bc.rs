//! Behaviour cloning: a Gaussian policy with constant deviation 1, fitted by maximum likelihood.
//!
//! ```text
//! L(psi) = E[ 1/2 |a - pi(s)|^2 ] + const
//! ```

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, positive};
use crate::networks::{NetworkId, Networks};
use crate::parts::gaussian;
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "bc",
    "Gaussian",
    "OGBench's GCBC without goals",
    include_str!("../../presets/bc.toml"),
);

/// Hyperparameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches.
    #[serde(flatten)]
    pub common: Common,
    /// Learning rate.
    pub lr: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config { common: Common::default(), lr: 3e-4 }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        positive(&[("lr", self.lr)])
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let actor = nets.policy("actor", gaussian::spec(sizes, &self.common.hidden), self.lr);
        Box::new(Bc { segments: self.common.one_step(), actor })
    }
}

struct Bc {
    segments: SegmentConfig,
    actor: NetworkId,
}

impl Bc {
    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let mean = x.tape.apply(&nets[self.actor], x.s());
        let loss = -gaussian::log_density(x.a(), mean).mean();
        measures.mean("actor/actor_loss", loss).mean("actor/mse", (mean - x.a()).square());
        loss
    }
}

impl Algorithm for Bc {
    fn segments(&self) -> SegmentConfig {
        self.segments
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        Loss { total: self.actor_loss(nets, x, &mut measures), measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        gaussian::mean(&nets[self.actor])
    }
}

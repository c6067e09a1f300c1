//! Behaviour cloning by maximum likelihood: a Gaussian policy with standard deviation 1, or a categorical
//! policy.
//!
//! ```text
//! L(psi) = E[ 1/2 |a - pi(s)|^2 ] + const       (continuous)
//! L(psi) = - E[ log pi(a|s) ]                   (discrete)
//! ```
//!
//! Acts by the mean, or by the most likely choice.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, positive};
use crate::networks::{NetworkId, Networks};
use crate::parts::head::Head;
use crate::registry::AgentKind;
use album_data::{ActionSpace, SegmentConfig};
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "bc",
    "Gaussian",
    "OGBench's GCBC without goals",
    include_str!("../../presets/bc.toml"),
)
.with_discrete();

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

    fn check_actions(&self, _: &ActionSpace) -> Result<(), AgentError> {
        Ok(())
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let head = Head::of(sizes);
        let actor = nets.policy("actor", head.spec(sizes.s, &self.common.hidden), self.lr);
        Box::new(Bc { segments: self.common.one_step(), head, actor })
    }
}

struct Bc {
    segments: SegmentConfig,
    head: Head,
    actor: NetworkId,
}

impl Bc {
    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let (pi, a) = (x.tape.apply(&nets[self.actor], x.s()), x.a());
        let loss = -self.head.log_likelihood(pi, a).mean();
        measures.mean("actor/actor_loss", loss);
        self.head.measure(pi, a, measures);
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
        self.head.decide(&nets[self.actor])
    }
}

//! NFQL: FQL with n-step targets, the baseline of CGQ. It is QC-FQL (see there) with one action per decision:
//!
//! ```text
//! L(Q) = E[ w sum_i (Q_i(s,a) - y)^2 / N ],   y = r_0 + ... + gamma^(h-1) r_(h-1) + gamma^h m_h agg_i Qbar_i(s_h, a'),
//!                                             a' = clip(mu(s_h, z'))
//! L(psi) = FQL's actor loss
//! ```

use crate::agent::AgentError;
use crate::agents::qc_fql;
use crate::algorithm::{Algorithm, Setup, Sizes};
use crate::common::Common;
use crate::networks::Networks;
use crate::registry::AgentKind;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("nfql", "flow", "arXiv 2603.13971", include_str!("../../presets/nfql.toml"));

/// Hyperparameters: those of QC-FQL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Config(pub qc_fql::Config);

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.0.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.0.check_all()
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        self.0.agent(sizes, 1, nets)
    }
}

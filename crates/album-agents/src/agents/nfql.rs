//! NFQL: FQL with n-step targets, the baseline of CGQ. QC-FQL (see there) that decides on one action at a time:
//!
//! ```text
//! L(Q) = E[ w sum_i (Q_i(s,a) - y)^2 / N ],   y = r_0 + ... + gamma^(h-1) r_(h-1) + gamma^h m_h agg_i Qbar_i(s_h, a'),
//!                                             a' = clip(mu(s_h, z'))
//! L(psi) = FQL's actor loss
//! ```

use crate::agent::AgentError;
use crate::agents::qc_fql;
use crate::algorithm::{Algorithm, Setup, Sizes};
use crate::common::{Common, fql_gamma};
use crate::networks::Networks;
use crate::parts::distilled_flow::fql_preset;
use crate::registry::Kind;
use serde::{Deserialize, Serialize};

/// How it is listed.
pub const KIND: Kind =
    Kind::new::<Config>("nfql", "flow", "arXiv 2603.13971", paper, "lr = 1e-3\ntau = 0.05\nalpha = 0.3");

/// Hyperparameters: those of QC-FQL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Config(pub qc_fql::Config);

/// FQL's coefficients; that of puzzle-4x4 is known to be CGQ's too.
fn paper(environment: &str) -> String {
    let (alpha, q_agg) = fql_preset(environment);
    format!("gamma = {:?}\nalpha = {alpha:?}\nq_agg = {q_agg:?}", fql_gamma(environment))
}

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

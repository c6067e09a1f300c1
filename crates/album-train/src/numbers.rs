//! Numbers in JSON, which has no NaN and no infinity: both are written as `null`.

use serde::{Deserialize, Deserializer};

/// Reads `null` as NaN, so that a file with one can be read back.
pub(crate) fn or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

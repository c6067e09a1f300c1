//! JSON has no NaN or infinity: both are written as `null`.

use serde::{Deserialize, Deserializer};

/// Reads `null` as NaN.
pub(crate) fn or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

//! Initial weights.

use rand::Rng;

/// The bound of the Glorot (Xavier) uniform distribution:
/// `sqrt(3 * scale / ((fan_in + fan_out) / 2))`.
///
/// ```
/// // scale 0.01 shrinks the bound tenfold, as policies' last layers like it
/// let (full, small) = (album_nn::glorot_limit(512, 8, 1.0), album_nn::glorot_limit(512, 8, 0.01));
/// assert!((full / small - 10.0).abs() < 1e-5);
/// ```
pub fn glorot_limit(fan_in: usize, fan_out: usize, scale: f32) -> f32 {
    (3.0 * scale / ((fan_in + fan_out) as f32 / 2.0)).sqrt()
}

/// Fills `out` with uniform values in `[-limit, limit)`, one 32-bit draw each.
pub(crate) fn uniform(rng: &mut impl Rng, limit: f32, out: &mut [f32]) {
    for x in out {
        // The upper 24 bits: every multiple of 2^-24 in [0, 1) is equally likely and exact in f32.
        let unit = (rng.next_u32() >> 8) as f32 / (1u32 << 24) as f32;
        *x = limit * (2.0 * unit - 1.0);
    }
}

//! Elementary functions, written so that loops over them are vectorised.
//!
//! No branches, no library calls, and explicit fused multiply-adds: inside a function compiled for AVX2,
//! AVX-512 or NEON these become straight vector instructions with the same result on each.

/// `a * b + c`, with a single rounding if `FUSED` (only where the processor has the instruction).
#[inline(always)]
pub(crate) fn fma<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// `2^x` for `x` in [-115, 115], clamped outside; relative error below 2e-7.
#[inline(always)]
pub(crate) fn exp2<const FUSED: bool>(x: f32) -> f32 {
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the mantissa.
    const MAGIC: f32 = 12_582_912.0;
    let x = if x > -115.0 { x } else { -115.0 };
    let x = if x < 115.0 { x } else { 115.0 };
    let shifted = x + MAGIC;
    let f = x - (shifted - MAGIC);
    // Minimax polynomial of 2^f on |f| <= 1/2 (the Cephes coefficients).
    let mut p = 1.535_336_2e-4;
    p = fma::<FUSED>(p, f, 1.339_887_4e-3);
    p = fma::<FUSED>(p, f, 9.618_437e-3);
    p = fma::<FUSED>(p, f, 5.550_332_5e-2);
    p = fma::<FUSED>(p, f, 0.240_226_48);
    p = fma::<FUSED>(p, f, std::f32::consts::LN_2);
    p = fma::<FUSED>(p, f, 1.0);
    // The integer goes straight into the exponent.
    f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// `1 / x` for positive `x` between 2^-120 and 2^120, not finite if `x` is not; relative error below 2e-7.
///
/// A division would take longer than the rest of GELU. The hardware's reciprocal approximations differ
/// between vendors; this one gives the same bits everywhere.
#[inline(always)]
pub(crate) fn reciprocal<const FUSED: bool>(x: f32) -> f32 {
    // Negating exponent and mantissa in the bits gives 1 / x to within an eighth; Newton steps square the
    // error.
    let mut r = f32::from_bits(0x7EF3_11C7_u32.wrapping_sub(x.to_bits()));
    for _ in 0..3 {
        r = fma::<FUSED>(r, fma::<FUSED>(-x, r, 1.0), r);
    }
    r
}

/// sqrt(8 / pi) * log2(e): GELU's tanh argument, doubled because `(1 + tanh(u)) / 2 = 1 / (1 + e^(-2u))`,
/// and for base 2.
const SLOPE: f32 = 2.302_208_2;
const CUBIC: f32 = SLOPE * 0.044_715;

/// `1 / (1 + e^(-2u))` and `e^(-2u)` with `u` the argument of GELU's tanh.
#[inline(always)]
fn gate<const FUSED: bool>(z: f32) -> (f32, f32) {
    let e = exp2::<FUSED>(-z * fma::<FUSED>(z * z, CUBIC, SLOPE));
    (reciprocal::<FUSED>(1.0 + e), e)
}

/// GELU in its tanh form, `z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 z^3)))`.
#[inline(always)]
pub(crate) fn gelu<const FUSED: bool>(z: f32) -> f32 {
    z * gate::<FUSED>(z).0
}

/// GELU and its derivative.
#[inline(always)]
pub(crate) fn gelu_with_slope<const FUSED: bool>(z: f32) -> (f32, f32) {
    const LN_2: f32 = std::f32::consts::LN_2;
    let (s, e) = gate::<FUSED>(z);
    // The derivative of 2u, back in base e.
    let du = fma::<FUSED>(z * z, 3.0 * CUBIC * LN_2, SLOPE * LN_2);
    // 1 - s = e * s, without cancellation.
    (z * s, fma::<FUSED>(z * du, s * (e * s), s))
}

/// `max(z, 0)`, which propagates NaN. Without arithmetic, `FUSED` makes no difference.
#[inline(always)]
pub(crate) fn relu<const FUSED: bool>(z: f32) -> f32 {
    if z < 0.0 { 0.0 } else { z }
}

/// `max(z, 0)` and its derivative.
#[inline(always)]
pub(crate) fn relu_with_slope<const FUSED: bool>(z: f32) -> (f32, f32) {
    let slope = if z > 0.0 { 1.0 } else { 0.0 };
    (relu::<FUSED>(z), if z.is_nan() { z } else { slope })
}

/// `e = e^-|z|` and, for `t = tanh(ln(1 + e^z))`, the numerators of `t` and of `1 - t` over their sum.
#[inline(always)]
fn mish_parts<const FUSED: bool>(z: f32) -> (f32, f32, f32) {
    let e = exp2::<FUSED>(-std::f32::consts::LOG2_E * z.abs());
    // With u = e^z, t = (u^2 + 2u) / (u^2 + 2u + 2); for positive z both sides are divided by u^2.
    let positive = z > 0.0;
    let above = if positive { fma::<FUSED>(2.0, e, 1.0) } else { e * (e + 2.0) };
    let rest = if positive { 2.0 * e * e } else { 2.0 };
    (e, above, rest)
}

/// Mish, `z * tanh(ln(1 + e^z))`.
#[inline(always)]
pub(crate) fn mish<const FUSED: bool>(z: f32) -> f32 {
    let (_, above, rest) = mish_parts::<FUSED>(z);
    z * (above * reciprocal::<FUSED>(above + rest))
}

/// Mish and its derivative, `t + z * (1 - t) * (1 + t) * sigmoid(z)`.
#[inline(always)]
pub(crate) fn mish_with_slope<const FUSED: bool>(z: f32) -> (f32, f32) {
    let (e, above, rest) = mish_parts::<FUSED>(z);
    let inverse = reciprocal::<FUSED>(above + rest);
    let t = above * inverse;
    let sigmoid = (if z > 0.0 { 1.0 } else { e }) * reciprocal::<FUSED>(1.0 + e);
    (z * t, fma::<FUSED>(z * (rest * inverse), (1.0 + t) * sigmoid, t))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gelu_f64(z: f64) -> (f64, f64) {
        let c = (2.0 / std::f64::consts::PI).sqrt();
        let t = (c * (z + 0.044715 * z.powi(3))).tanh();
        let dt = (1.0 - t * t) * c * (1.0 + 3.0 * 0.044715 * z * z);
        (0.5 * z * (1.0 + t), 0.5 * (1.0 + t) + 0.5 * z * dt)
    }

    #[test]
    fn powers_of_two_have_relative_error_below_2e_7() {
        for i in -1_150_000..=1_150_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp2();
            for y in [exp2::<true>(x), exp2::<false>(x)] {
                assert!((f64::from(y) / exact - 1.0).abs() < 2e-7, "2^{x} = {y}, exactly {exact}");
            }
        }
    }

    #[test]
    fn reciprocals_have_relative_error_below_2e_7() {
        for i in 0..2_000_000u32 {
            let x = f32::from_bits(0x3F80_0000 + i * 467); // 1 to 1e37
            if x > 2f32.powi(120) {
                break;
            }
            for y in [reciprocal::<true>(x), reciprocal::<false>(x)] {
                assert!((f64::from(y) * f64::from(x) - 1.0).abs() < 2e-7, "1 / {x} = {y}");
            }
        }
    }

    #[test]
    fn gelu_and_slope_match_f64() {
        for i in -120_000..=120_000 {
            let z = i as f32 * 1e-4;
            let (g, d) = gelu_with_slope::<true>(z);
            let (exact, slope) = gelu_f64(f64::from(z));
            assert!(
                (f64::from(g) - exact).abs() <= 4e-7 * exact.abs() + 1e-7,
                "gelu({z}) = {g}, not {exact}"
            );
            assert!((f64::from(d) - slope).abs() <= 1e-6, "gelu'({z}) = {d}, not {slope}");
            assert_eq!(g, gelu::<true>(z));
        }
    }

    #[test]
    fn mish_and_slope_match_f64() {
        for i in -600_000..=600_000 {
            let z = i as f32 * 1e-4;
            let x = f64::from(z);
            let (t, s) = (x.exp().ln_1p().tanh(), 1.0 / (1.0 + (-x).exp()));
            let (exact, slope) = (x * t, t + x * (1.0 - t * t) * s);
            for (m, d) in [mish_with_slope::<true>(z), mish_with_slope::<false>(z)] {
                let error = (f64::from(m) - exact).abs();
                // The rounding error of the exponent grows with |z|.
                assert!(error <= (6e-7 + 1e-7 * x.abs()) * exact.abs(), "mish({z}) = {m}, not {exact}");
                assert!((f64::from(d) - slope).abs() <= 1e-6, "mish'({z}) = {d}, not {slope}");
            }
            assert_eq!(mish::<true>(z), mish_with_slope::<true>(z).0);
        }
        assert_eq!(mish_with_slope::<true>(1e30), (1e30, 1.0));
    }

    #[test]
    fn activations_are_zero_at_zero() {
        assert_eq!([gelu::<true>(0.0), relu::<true>(0.0), mish::<true>(0.0)], [0.0; 3]);
        assert_eq!(relu_with_slope::<true>(0.0).1, 0.0);
    }

    #[test]
    fn not_a_number_stays_so() {
        for (y, d) in [relu_with_slope::<true>(f32::NAN), mish_with_slope::<true>(f32::NAN)] {
            assert!(y.is_nan() && d.is_nan());
        }
        assert!(gelu::<true>(f32::NAN).is_nan());
        assert!(gelu_with_slope::<false>(f32::NAN).1.is_nan());
        assert_eq!(gelu::<true>(f32::INFINITY), f32::INFINITY);
        assert!(!reciprocal::<true>(f32::INFINITY).is_finite());
        assert!(reciprocal::<true>(f32::NAN).is_nan());
    }
}

//! Elementary functions, written so that the compiler turns loops over them into vector code.
//!
//! No branches, no library calls, and the fused multiply-add spelled out: inside a function compiled
//! for AVX2, AVX-512 or NEON these become straight vector instructions with the same result on each.

/// `a * b + c`, in one rounding if `FUSED` (only where the processor has the instruction).
#[inline(always)]
pub(crate) fn fma<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// `e^x` for `x` in [-80, 80], clamped outside; relative error below 2e-7.
#[inline(always)]
pub(crate) fn exp<const FUSED: bool>(x: f32) -> f32 {
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the mantissa.
    const MAGIC: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = if x > -80.0 { x } else { -80.0 };
    let x = if x < 80.0 { x } else { 80.0 };
    let shifted = fma::<FUSED>(x, std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = fma::<FUSED>(n, -LN_2_HIGH, x);
    let r = fma::<FUSED>(n, -LN_2_LOW, r);
    // Minimax polynomial of (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2 (the Cephes coefficients).
    let mut p = 1.987_569_1e-4;
    p = fma::<FUSED>(p, r, 1.398_199_9e-3);
    p = fma::<FUSED>(p, r, 8.333_452e-3);
    p = fma::<FUSED>(p, r, 4.166_579_6e-2);
    p = fma::<FUSED>(p, r, 0.166_666_65);
    p = fma::<FUSED>(p, r, 0.5);
    let e = fma::<FUSED>(p, r * r, r) + 1.0;
    let two_to_n = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    e * two_to_n
}

/// sqrt(8 / pi): GELU's tanh argument, doubled because `(1 + tanh(u)) / 2 = 1 / (1 + e^(-2u))`.
const SLOPE: f32 = 1.595_769_1;
const CUBIC: f32 = SLOPE * 0.044_715;

/// `1 / (1 + e^(-2u))` and `e^(-2u)` with `u` the argument of GELU's tanh.
#[inline(always)]
fn gate<const FUSED: bool>(z: f32) -> (f32, f32) {
    let e = exp::<FUSED>(-z * fma::<FUSED>(z * z, CUBIC, SLOPE));
    (1.0 / (1.0 + e), e)
}

/// GELU in its tanh form, `z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 z^3)))`.
#[inline(always)]
pub(crate) fn gelu<const FUSED: bool>(z: f32) -> f32 {
    z * gate::<FUSED>(z).0
}

/// GELU and its derivative.
#[inline(always)]
pub(crate) fn gelu_with_slope<const FUSED: bool>(z: f32) -> (f32, f32) {
    let (s, e) = gate::<FUSED>(z);
    let du = fma::<FUSED>(z * z, 3.0 * CUBIC, SLOPE);
    // 1 - s = e * s, without the cancellation.
    (z * s, fma::<FUSED>(z * du, s * (e * s), s))
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
    fn exp_has_relative_error_below_2e_7() {
        for i in -800_000..=800_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            for y in [exp::<true>(x), exp::<false>(x)] {
                assert!((f64::from(y) / exact - 1.0).abs() < 2e-7, "exp({x}) = {y}, exactly {exact}");
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
    fn not_a_number_stays_so() {
        assert!(gelu::<true>(f32::NAN).is_nan());
        assert!(gelu_with_slope::<false>(f32::NAN).1.is_nan());
        assert_eq!(gelu::<true>(f32::INFINITY), f32::INFINITY);
    }
}

//! Matrix products with factors rounded to bfloat16 and sums in f32. The results are those of `vdpbf16ps`,
//! bit for bit, on machines with or without that instruction.
//!
//! Each entry of a product adds its terms in pairs, `(0, 1), (2, 3), ...`, and the second term of a pair first:
//!
//! ```text
//! c = c + a[2i + 1] * b[2i + 1]
//! c = c + a[2i] * b[2i]
//! ```
//!
//! Each line is a fused multiply-add that rounds once, to nearest even. Subnormal inputs and results are
//! flushed to zero, keeping their sign. If the last pair lacks a term, it is `0 * 0`.
#![allow(unsafe_code)]

pub(super) mod copies;
#[cfg(target_arch = "x86_64")]
pub(super) mod instruction;

use super::Start;
use super::frame::{self, Vector, kernels};
use super::scalar::Plain;

const SIGN: u32 = 1 << 31;

/// Flushes subnormal numbers to zero, keeping the sign.
#[inline(always)]
fn flushed(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { f32::from_bits(x.to_bits() & SIGN) } else { x }
}

/// Rounds to the nearest bfloat16, ties to even, as `vcvtne2ps2bf16` does.
#[inline(always)]
pub(super) fn rounded(x: f32) -> f32 {
    let bits = flushed(x).to_bits();
    let bits = if x.is_nan() { bits | 1 << 22 } else { bits + 0x7FFF + (bits >> 16 & 1) };
    f32::from_bits(bits & 0xFFFF_0000)
}

/// `c + a * b` for bfloat16 factors, with subnormals flushed.
#[inline(always)]
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    let c = flushed(c);
    let sum = a.mul_add(b, c);
    if sum.abs() == f32::MIN_POSITIVE {
        // The instruction rounds to 24 bits before it flushes, while here a smaller sum may have been rounded
        // up on the coarser subnormal grid. Scaled by 2^64, where nothing is subnormal, the sum tells.
        const SCALE: f32 = (1u64 << 63) as f32 * 2.0;
        let (small, large) = if a.abs() < b.abs() { (a, b) } else { (b, a) };
        let scaled = (small * SCALE).mul_add(large, c * SCALE);
        return if scaled.abs() < f32::MIN_POSITIVE * SCALE {
            f32::from_bits(sum.to_bits() & SIGN)
        } else {
            sum
        };
    }
    flushed(sum)
}

/// What the instruction computes: `c + a[1] * b[1] + a[0] * b[0]`, from left to right.
#[cfg(test)]
pub(super) fn pair(c: f32, a: [f32; 2], b: [f32; 2]) -> f32 {
    multiply_add(a[0], b[0], multiply_add(a[1], b[1], c))
}

/// Eight lanes; multiplies factors that are rounded already and flushes every sum.
#[derive(Clone, Copy)]
struct Flushed(Plain);

impl Vector for Flushed {
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; 8])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: promised by the caller, here and below.
        unsafe { Self(Plain::load(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: see `load`.
        unsafe { self.0.store(to) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Self([x; 8])
    }

    #[inline(always)]
    unsafe fn multiply_add(a: Self, b: Self, c: Self) -> Self {
        let sums: Plain = std::array::from_fn(|i| a.0[i].mul_add(b.0[i], c.0[i]));
        // Rarely true; without the branch in each lane, the compiler finds vector instructions.
        let is_small = |x: f32| (x != 0.0) & (x.abs() <= f32::MIN_POSITIVE);
        if (0..8).fold(false, |any, i| any | is_small(c.0[i]) | is_small(sums[i])) {
            return Self(std::array::from_fn(|i| multiply_add(a.0[i], b.0[i], c.0[i])));
        }
        Self(sums)
    }
}

kernels!(Flushed, 1);

/// The same kernels where a fused multiply-add is an instruction and not a library call.
#[cfg(target_arch = "x86_64")]
pub(super) mod fused {
    use super::{Flushed, Start, frame, kernels};
    kernels!(Flushed, 1, "avx2,fma");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_and_of_two_the_even_one() {
        let bits = |x: u32| rounded(f32::from_bits(x)).to_bits();
        assert_eq!(bits(0x3F80_0000), 0x3F80_0000);
        assert_eq!(bits(0x3F80_7FFF), 0x3F80_0000);
        assert_eq!(bits(0x3F80_8000), 0x3F80_0000, "halfway to the even one below");
        assert_eq!(bits(0x3F81_8000), 0x3F82_0000, "halfway to the even one above");
        assert_eq!(bits(0xBF80_8001), 0xBF81_0000);
        assert_eq!(bits(0x7F7F_FFFF), 0x7F80_0000, "the largest number becomes infinite");
        assert_eq!(bits(0x807F_FFFF), 0x8000_0000, "what is not normal is zero with its sign");
        assert_eq!(bits(0x7F80_0000), 0x7F80_0000);
        assert!(rounded(f32::from_bits(0x7F80_0001)).is_nan(), "its digits are not all cut off");
    }

    #[test]
    fn the_second_term_comes_first() {
        // 2^24 + 1 is not an f32: added to 2^24 one by one, the ones are lost; added to each other first,
        // they are not.
        let big = 16_777_216.0;
        assert_eq!(pair(1.0, [1.0, big], [1.0, 1.0]), big);
        assert_eq!(pair(1.0, [big, 1.0], [1.0, 1.0]), big + 2.0);
        assert_eq!(pair(0.0, [3.0, 0.5], [-2.0, 4.0]), -4.0);
    }

    #[test]
    fn sums_below_the_least_normal_number_are_zero() {
        let least = f32::MIN_POSITIVE;
        assert_eq!(multiply_add(1e-20, 1e-20, 0.0).to_bits(), 0);
        assert_eq!(multiply_add(-1e-20, 1e-20, -0.0).to_bits(), SIGN);
        assert_eq!(multiply_add(1.0, 1.0, least / 2.0), 1.0, "such a sum counts as zero");
        assert_eq!(multiply_add(0.5, least, 0.5 * least).to_bits(), 0);
        // 2^-126 - 2^-150 fits in 24 bits and is subnormal; only rounding to the subnormal grid lifts it to 2^-126.
        let below = |digits: i32| multiply_add(2f32.powi(-100), -(2f32.powi(100 - digits)), least);
        assert_eq!(below(150).to_bits(), 0);
        assert_eq!(below(152), least, "this one rounds up by itself");
        assert_eq!(multiply_add(2f32.powi(-63), 2f32.powi(-63), 0.0), least);
    }
}

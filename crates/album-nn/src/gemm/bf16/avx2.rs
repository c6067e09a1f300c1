//! The functions of the parent module on eight lanes, with AVX2 and FMA.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::super::Start;
use super::super::frame::{self, kernels};
use super::{Emulated, Rounding};

impl Rounding for __m256 {
    #[inline(always)]
    unsafe fn flushed(self) -> Self {
        // SAFETY: the instructions are promised by the caller, here and below.
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            let size = _mm256_andnot_ps(sign, self);
            let small = _mm256_cmp_ps::<_CMP_LT_OQ>(size, _mm256_set1_ps(f32::MIN_POSITIVE));
            _mm256_blendv_ps(self, _mm256_and_ps(sign, self), small)
        }
    }

    #[inline(always)]
    unsafe fn rounded(self) -> Self {
        // SAFETY: see `flushed`.
        unsafe {
            let bits = _mm256_castps_si256(self.flushed());
            let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
            let up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
            let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(1 << 22));
            let is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(self, self);
            let chosen = _mm256_blendv_ps(_mm256_castsi256_ps(up), _mm256_castsi256_ps(quiet), is_nan);
            _mm256_and_ps(chosen, _mm256_castsi256_ps(_mm256_set1_epi32(0xFFFF_0000_u32 as i32)))
        }
    }

    #[inline(always)]
    unsafe fn multiply_add_flushed(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: see `flushed`.
        unsafe {
            let sum = _mm256_fmadd_ps(a, b, c);
            let size = _mm256_andnot_ps(_mm256_set1_ps(-0.0), sum);
            let small = _mm256_cmp_ps::<_CMP_LE_OQ>(size, _mm256_set1_ps(f32::MIN_POSITIVE));
            let some = _mm256_cmp_ps::<_CMP_NEQ_OQ>(size, _mm256_setzero_ps());
            if _mm256_movemask_ps(_mm256_and_ps(small, some)) == 0 {
                return sum;
            }
            one_by_one(a, b, c)
        }
    }
}

/// The slow path, lane by lane, for sums that may be subnormal; they are rare.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn one_by_one(a: __m256, b: __m256, c: __m256) -> __m256 {
    // SAFETY: a vector is eight floats.
    let [a, b, c]: [[f32; 8]; 3] = unsafe { std::mem::transmute([a, b, c]) };
    let sums: [f32; 8] = std::array::from_fn(|i| super::multiply_add(a[i], b[i], c[i]));
    // SAFETY: eight floats are a vector.
    unsafe { std::mem::transmute(sums) }
}

kernels!(Emulated<__m256>, 1, "avx2,fma");

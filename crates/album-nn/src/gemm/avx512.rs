//! AVX-512: two 16-lane vectors per panel row, up to 14 rows of accumulators (28 of 32 registers).
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::Start;
use super::frame::{self, Vector, kernels};

impl Vector for __m512 {
    const LANES: usize = 16;
    /// Weights come from the third-level cache on first use, and hardware prefetching stops at page boundaries.
    const AHEAD: Option<usize> = Some(64);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the instructions are promised by the caller, here and below; so are the floats.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: see `zero`.
        unsafe { _mm512_load_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: see `zero`.
        unsafe { _mm512_store_ps(to, self) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        // SAFETY: see `zero`.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn prefetch(row: *const f32) {
        // SAFETY: a prefetch may name any address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(row.cast());
            _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(16).cast());
        }
    }
}

kernels!(__m512, 2, "avx512f");

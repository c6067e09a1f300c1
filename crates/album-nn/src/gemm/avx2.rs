//! AVX2 with FMA: half a panel at a time, six rows by two 8-lane vectors (12 of 16 registers).
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::Start;
use super::frame::{self, Vector, kernels};

impl Vector for __m256 {
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the instructions are promised by the caller, here and below; so are the floats.
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: see `zero`.
        unsafe { _mm256_load_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: see `zero`.
        unsafe { _mm256_store_ps(to, self) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        // SAFETY: see `zero`.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
}

kernels!(__m256, 2, "avx2,fma");

//! Kernels for AVX512-BF16: 14 rows by two vectors of sums, two terms at a time.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::super::Start;
use super::super::frame::{self, Vector, kernels};

/// Sixteen sums, or sixteen pairs of factors as in [`super::copies::Format::Packed`].
#[derive(Clone, Copy)]
struct Pairs(__m512);

impl Vector for Pairs {
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the instructions are promised by the caller, here and below; so are the floats.
        unsafe { Self(_mm512_setzero_ps()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm512_load_ps(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: see `zero`.
        unsafe { _mm512_store_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        // SAFETY: see `zero`.
        unsafe { Self(_mm512_set1_ps(x)) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: see `zero`; all of these types are 64 bytes.
        unsafe {
            let [a, b] = std::mem::transmute::<[__m512; 2], [__m512bh; 2]>([a.0, b.0]);
            Self(_mm512_dpbf16_ps(c.0, a, b))
        }
    }
}

kernels!(Pairs, 2, "avx512f,avx512bf16");

//! NEON: half a panel at a time, six rows by four 4-lane vectors (24 of 32 registers).
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::Start;
use super::frame::{self, Vector, kernels};

impl Vector for float32x4_t {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the instructions are promised by the caller, here and below; so are the floats.
        unsafe { vdupq_n_f32(0.0) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: see `zero`.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: see `zero`.
        unsafe { vst1q_f32(to, self) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        // SAFETY: see `zero`.
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: see `zero`.
        unsafe { vfmaq_f32(c, a, b) }
    }
}

kernels!(float32x4_t, 4, "neon");

//! Plain Rust, for processors without the vector instructions of the other kernels.
//!
//! The product and the sum round separately here: `f32::mul_add` without hardware support is a
//! library call, a hundred times slower.
#![allow(unsafe_code)]

use super::Start;
use super::frame::{self, Vector, kernels};

/// Eight columns at a time: the accumulators of four rows fit into the sixteen SSE registers.
pub(super) type Plain = [f32; 8];

impl Vector for Plain {
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        [0.0; 8]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: promised by the caller.
        unsafe { from.cast::<Self>().read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: promised by the caller.
        unsafe { to.cast::<Self>().write(self) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        [x; 8]
    }

    #[inline(always)]
    unsafe fn multiply_add(a: Self, b: Self, mut c: Self) -> Self {
        for i in 0..8 {
            c[i] += a[i] * b[i];
        }
        c
    }
}

kernels!(Plain, 1);

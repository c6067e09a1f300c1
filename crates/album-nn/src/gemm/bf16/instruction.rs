//! AVX512-BF16: kernels for tiles of 14 rows by two vectors, which add two terms at a time, and the packing of their factors.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::super::frame::{self, Vector, kernels};
use super::super::{PANEL, Start};
use super::copies::{Columns, Rows};

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

/// Rounds and packs the first `count` rows: neighbouring columns become pairs.
///
/// # Safety
/// The rows exist on both sides, no other thread uses those that are written, and the processor has the instructions.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn pack_columns(job: &Columns, count: usize) {
    let columns = u32::MAX.checked_shl(job.width as u32).map_or(u32::MAX, |beyond| !beyond);
    for row in 0..count {
        // SAFETY: promised by the caller.
        unsafe {
            let from = job.from.add(row * PANEL);
            let low = _mm512_maskz_loadu_ps(columns as __mmask16, from);
            let high = _mm512_maskz_loadu_ps((columns >> 16) as __mmask16, from.add(16));
            store(job.to.add(row * PANEL), _mm512_cvtne2ps_pbh(high, low));
        }
    }
}

/// Rounds and packs the first `count` rows: neighbouring rows become pairs, and a missing one is zero.
///
/// # Safety
/// As for [`pack_columns`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn pack_rows(job: &Rows<'_>, count: usize) {
    // 0, 16, 1, 17, ...
    let alternate: [u16; PANEL] = std::array::from_fn(|i| (i / 2 + i % 2 * 16) as u16);
    // SAFETY: the array has 64 bytes.
    let alternate = unsafe { _mm512_loadu_si512(alternate.as_ptr().cast()) };
    for first in (0..count).step_by(2) {
        for column in [0, 16] {
            // SAFETY: promised by the caller; vectors of one size may be reinterpreted.
            unsafe {
                let row = |i: usize| {
                    if i == count {
                        return _mm512_setzero_ps();
                    }
                    let row = job.rows.map_or(i, |rows| rows[i] as usize);
                    _mm512_loadu_ps(job.from.add(row * PANEL + column))
                };
                let rows = _mm512_cvtne2ps_pbh(row(first + 1), row(first));
                let pairs =
                    _mm512_permutexvar_epi16(alternate, std::mem::transmute::<__m512bh, __m512i>(rows));
                store(
                    job.to.add(first / 2 * PANEL + column),
                    std::mem::transmute::<__m512i, __m512bh>(pairs),
                );
            }
        }
    }
}

/// # Safety
/// There are sixteen floats at `to`.
#[inline(always)]
unsafe fn store(to: *mut f32, pairs: __m512bh) {
    // SAFETY: promised by the caller; both types are 64 bytes.
    unsafe { to.cast::<__m512bh>().write_unaligned(pairs) }
}

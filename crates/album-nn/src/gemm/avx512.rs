//! AVX-512: two 16-lane vectors per panel row, up to 14 rows of accumulators (28 of 32 registers).
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{PANEL, Start};

/// Prefetch distance of the right factor, in floats: weights come from the third-level cache on first use,
/// and hardware prefetching stops at page boundaries.
const AHEAD: usize = 64 * PANEL;

/// See [`super::Kernels::rows`].
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn rows<const MR: usize>(
    k: usize,
    mut a: *const f32,
    a_stride: usize,
    mut b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: the caller guarantees the extents of `a`, `b` and `c` and their 64-byte alignment.
    unsafe {
        for m in 0..MR {
            _mm_prefetch::<_MM_HINT_T0>(c.add(m * PANEL).cast());
            _mm_prefetch::<_MM_HINT_T0>(c.add(m * PANEL + 16).cast());
        }
        let mut acc = load::<MR>(c, start);
        let mut left = k;
        while left > 0 {
            let run = left.min(PANEL);
            for kk in 0..run {
                _mm_prefetch::<_MM_HINT_T0>(b.wrapping_add(AHEAD).cast());
                _mm_prefetch::<_MM_HINT_T0>(b.wrapping_add(AHEAD + 16).cast());
                let b0 = _mm512_load_ps(b);
                let b1 = _mm512_load_ps(b.add(16));
                for m in 0..MR {
                    let x = _mm512_set1_ps(*a.add(m * PANEL + kk));
                    acc[m][0] = _mm512_fmadd_ps(x, b0, acc[m][0]);
                    acc[m][1] = _mm512_fmadd_ps(x, b1, acc[m][1]);
                }
                b = b.add(PANEL);
            }
            a = a.add(a_stride);
            left -= run;
        }
        store(c, &acc);
    }
}

/// See [`super::Kernels::cols`].
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn cols<const MR: usize>(
    rows: &[u32],
    a: *const f32,
    mut b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: as in `rows`; every entry of `rows` is a row of `a`.
    unsafe {
        let mut acc = load::<MR>(c, start);
        for &row in rows {
            let a = a.add(row as usize * PANEL);
            let b0 = _mm512_load_ps(b);
            let b1 = _mm512_load_ps(b.add(16));
            for m in 0..MR {
                let x = _mm512_set1_ps(*a.add(m));
                acc[m][0] = _mm512_fmadd_ps(x, b0, acc[m][0]);
                acc[m][1] = _mm512_fmadd_ps(x, b1, acc[m][1]);
            }
            b = b.add(PANEL);
        }
        store(c, &acc);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load<const MR: usize>(c: *const f32, start: Start) -> [[__m512; 2]; MR] {
    let mut acc = [[_mm512_setzero_ps(); 2]; MR];
    let (from, step) = match start {
        Start::Zero => return acc,
        Start::Row(row) => (row, 0),
        Start::Output => (c, PANEL),
    };
    for m in 0..MR {
        // SAFETY: `from` has one row of the panel, or `MR` of them when `step` moves on.
        unsafe {
            acc[m][0] = _mm512_load_ps(from.add(m * step));
            acc[m][1] = _mm512_load_ps(from.add(m * step + 16));
        }
    }
    acc
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store<const MR: usize>(c: *mut f32, acc: &[[__m512; 2]; MR]) {
    for m in 0..MR {
        // SAFETY: `c` has `MR` rows of the panel.
        unsafe {
            _mm512_store_ps(c.add(m * PANEL), acc[m][0]);
            _mm512_store_ps(c.add(m * PANEL + 16), acc[m][1]);
        }
    }
}

//! AVX2 with FMA: half a panel at a time, six rows by two 8-lane vectors (12 of 16 registers).
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{PANEL, Start};

/// Columns handled at once.
const WIDTH: usize = 16;

/// See [`super::Kernels::rows`].
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn rows<const MR: usize>(
    k: usize,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    for column in (0..PANEL).step_by(WIDTH) {
        // SAFETY: the caller guarantees the extents of `a`, `b` and `c` and their 64-byte alignment.
        unsafe {
            let mut acc = load::<MR>(c, column, start);
            let (mut a, mut b) = (a, b.add(column));
            let mut left = k;
            while left > 0 {
                let run = left.min(PANEL);
                for kk in 0..run {
                    let b0 = _mm256_load_ps(b);
                    let b1 = _mm256_load_ps(b.add(8));
                    for m in 0..MR {
                        let x = _mm256_set1_ps(*a.add(m * PANEL + kk));
                        acc[m][0] = _mm256_fmadd_ps(x, b0, acc[m][0]);
                        acc[m][1] = _mm256_fmadd_ps(x, b1, acc[m][1]);
                    }
                    b = b.add(PANEL);
                }
                a = a.add(a_stride);
                left -= run;
            }
            store(c, column, &acc);
        }
    }
}

/// See [`super::Kernels::cols`].
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn cols<const MR: usize>(
    rows: &[u32],
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    for column in (0..PANEL).step_by(WIDTH) {
        // SAFETY: as in `rows`; every entry of `rows` is a row of `a`.
        unsafe {
            let mut acc = load::<MR>(c, column, start);
            let mut b = b.add(column);
            for &row in rows {
                let a = a.add(row as usize * PANEL);
                let b0 = _mm256_load_ps(b);
                let b1 = _mm256_load_ps(b.add(8));
                for m in 0..MR {
                    let x = _mm256_set1_ps(*a.add(m));
                    acc[m][0] = _mm256_fmadd_ps(x, b0, acc[m][0]);
                    acc[m][1] = _mm256_fmadd_ps(x, b1, acc[m][1]);
                }
                b = b.add(PANEL);
            }
            store(c, column, &acc);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn load<const MR: usize>(c: *const f32, column: usize, start: Start) -> [[__m256; 2]; MR] {
    let mut acc = [[_mm256_setzero_ps(); 2]; MR];
    let (from, step) = match start {
        Start::Zero => return acc,
        Start::Row(row) => (row, 0),
        Start::Output => (c, PANEL),
    };
    for m in 0..MR {
        // SAFETY: `from` has one row of the panel, or `MR` of them when `step` moves on.
        unsafe {
            acc[m][0] = _mm256_load_ps(from.add(m * step + column));
            acc[m][1] = _mm256_load_ps(from.add(m * step + column + 8));
        }
    }
    acc
}

#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn store<const MR: usize>(c: *mut f32, column: usize, acc: &[[__m256; 2]; MR]) {
    for m in 0..MR {
        // SAFETY: `c` has `MR` rows of the panel.
        unsafe {
            _mm256_store_ps(c.add(m * PANEL + column), acc[m][0]);
            _mm256_store_ps(c.add(m * PANEL + column + 8), acc[m][1]);
        }
    }
}

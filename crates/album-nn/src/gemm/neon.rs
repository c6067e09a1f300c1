//! NEON: half a panel at a time, six rows by four 4-lane vectors (24 of 32 registers).
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::{PANEL, Start};

/// Columns handled at once, as 4-lane vectors.
const VECTORS: usize = 4;
const WIDTH: usize = 4 * VECTORS;

/// See [`super::Kernels::rows`].
#[target_feature(enable = "neon")]
pub(super) unsafe fn rows<const MR: usize>(
    k: usize,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    for column in (0..PANEL).step_by(WIDTH) {
        // SAFETY: the caller guarantees the extents of `a`, `b` and `c`.
        unsafe {
            let mut acc = load::<MR>(c, column, start);
            let (mut a, mut b) = (a, b.add(column));
            let mut left = k;
            while left > 0 {
                let run = left.min(PANEL);
                for kk in 0..run {
                    step(&mut acc, b, |m| *a.add(m * PANEL + kk));
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
#[target_feature(enable = "neon")]
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
                step(&mut acc, b, |m| *a.add(m));
                b = b.add(PANEL);
            }
            store(c, column, &acc);
        }
    }
}

type Tile<const MR: usize> = [[float32x4_t; VECTORS]; MR];

#[inline(always)]
unsafe fn step<const MR: usize>(acc: &mut Tile<MR>, b: *const f32, a: impl Fn(usize) -> f32) {
    // SAFETY: `b` has `WIDTH` floats.
    unsafe {
        let b: [float32x4_t; VECTORS] = std::array::from_fn(|v| vld1q_f32(b.add(4 * v)));
        for m in 0..MR {
            let x = vdupq_n_f32(a(m));
            for v in 0..VECTORS {
                acc[m][v] = vfmaq_f32(acc[m][v], x, b[v]);
            }
        }
    }
}

#[inline(always)]
unsafe fn load<const MR: usize>(c: *const f32, column: usize, start: Start) -> Tile<MR> {
    // SAFETY: `from` has one row of the panel, or `MR` of them when `step` moves on.
    unsafe {
        let (from, step) = match start {
            Start::Zero => return [[vdupq_n_f32(0.0); VECTORS]; MR],
            Start::Row(row) => (row, 0),
            Start::Output => (c, PANEL),
        };
        std::array::from_fn(|m| std::array::from_fn(|v| vld1q_f32(from.add(m * step + column + 4 * v))))
    }
}

#[inline(always)]
unsafe fn store<const MR: usize>(c: *mut f32, column: usize, acc: &Tile<MR>) {
    for m in 0..MR {
        for v in 0..VECTORS {
            // SAFETY: `c` has `MR` rows of the panel.
            unsafe { vst1q_f32(c.add(m * PANEL + column + 4 * v), acc[m][v]) };
        }
    }
}

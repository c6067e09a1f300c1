//! Plain Rust, for processors without the vector instructions of the other kernels.
//!
//! The product and the sum round separately here: `f32::mul_add` without hardware support is a
//! library call, a hundred times slower.
#![allow(unsafe_code)]

use super::{PANEL, Start};

/// See [`super::Kernels::rows`].
pub(super) unsafe fn rows<const MR: usize>(
    k: usize,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: the caller guarantees the extents of `a`, `b` and `c`.
    unsafe {
        tile::<MR>(k, |m, i| *a.add(i / PANEL * a_stride + m * PANEL + i % PANEL), b, c, start);
    }
}

/// See [`super::Kernels::cols`].
pub(super) unsafe fn cols<const MR: usize>(
    rows: &[u32],
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: as in `rows`; every entry of `rows` is a row of `a`.
    unsafe {
        tile::<MR>(rows.len(), |m, i| *a.add(rows[i] as usize * PANEL + m), b, c, start);
    }
}

#[inline(always)]
unsafe fn tile<const MR: usize>(
    k: usize,
    a: impl Fn(usize, usize) -> f32,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // Eight columns at a time: the accumulators of four rows fit into the sixteen SSE registers.
    const WIDTH: usize = 8;
    for column in (0..PANEL).step_by(WIDTH) {
        let mut acc = [[0.0f32; WIDTH]; MR];
        let first = match start {
            Start::Zero => None,
            Start::Row(row) => Some((row, 0)),
            Start::Output => Some((c.cast_const(), PANEL)),
        };
        if let Some((from, step)) = first {
            for m in 0..MR {
                // SAFETY: `from` has one row of the panel, or `MR` of them when `step` moves on.
                acc[m] = unsafe { *from.add(m * step + column).cast() };
            }
        }
        for i in 0..k {
            // SAFETY: `b` has `k` rows of the panel.
            let b: [f32; WIDTH] = unsafe { *b.add(i * PANEL + column).cast() };
            for m in 0..MR {
                let x = a(m, i);
                for j in 0..WIDTH {
                    acc[m][j] += x * b[j];
                }
            }
        }
        for m in 0..MR {
            // SAFETY: `c` has `MR` rows of the panel.
            unsafe { *c.add(m * PANEL + column).cast() = acc[m] };
        }
    }
}

//! The frame of the kernels: the loops over tiles, shared by all instruction sets and both precisions.
//!
//! A kernel is this frame compiled for one [`Vector`] inside a function that enables its instructions.
#![allow(unsafe_code)]

use super::{PANEL, Start};

/// The vectors of an instruction set, and how a kernel adds a term to its sums.
///
/// # Safety
/// Functions may only be called where the processor has the instruction set. Loads and stores need
/// [`Vector::LANES`] floats, aligned to their size.
pub(super) trait Vector: Copy {
    const LANES: usize;
    /// Prefetch distance of the right factor, in rows of its panel; the output is prefetched, too.
    const AHEAD: Option<usize> = None;

    unsafe fn zero() -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn splat(x: f32) -> Self;
    /// `a * b + c`.
    unsafe fn multiply_add(a: Self, b: Self, c: Self) -> Self;

    /// Prefetches a row of a panel, which need not exist.
    #[inline(always)]
    unsafe fn prefetch(row: *const f32) {
        let _ = row;
    }
}

/// `MR` rows by `N` vectors of sums.
type Tile<V, const N: usize, const MR: usize> = [[V; N]; MR];

/// See [`super::Kernels::rows`]; `N` vectors of columns at a time.
#[inline(always)]
pub(super) unsafe fn rows<V: Vector, const N: usize, const MR: usize>(
    k: usize,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    for column in (0..PANEL).step_by(N * V::LANES) {
        // SAFETY: the caller guarantees the extents of `a`, `b` and `c`, their alignment and the instructions.
        unsafe {
            let (mut a, mut b, c) = (a, b.add(column), c.add(column));
            if V::AHEAD.is_some() {
                (0..MR).for_each(|m| V::prefetch(c.add(m * PANEL)));
            }
            let mut acc = load::<V, N, MR>(c, column, start);
            let mut left = k;
            while left > 0 {
                let run = left.min(PANEL);
                for i in 0..run {
                    if let Some(ahead) = V::AHEAD {
                        V::prefetch(b.wrapping_add((i + ahead) * PANEL));
                    }
                    add(&mut acc, b.add(i * PANEL), |m| *a.add(m * PANEL + i));
                }
                (a, b) = (a.add(a_stride), b.add(run * PANEL));
                left -= run;
            }
            store(c, &acc);
        }
    }
}

/// See [`super::Kernels::cols`]; `N` vectors of columns at a time.
#[inline(always)]
pub(super) unsafe fn cols<V: Vector, const N: usize, const MR: usize>(
    rows: &[u32],
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    for column in (0..PANEL).step_by(N * V::LANES) {
        // SAFETY: as in `rows`; every entry of `rows` is a row of `a`.
        unsafe {
            let (b, c) = (b.add(column), c.add(column));
            let mut acc = load::<V, N, MR>(c, column, start);
            for (i, &row) in rows.iter().enumerate() {
                let a = a.add(row as usize * PANEL);
                add(&mut acc, b.add(i * PANEL), |m| *a.add(m));
            }
            store(c, &acc);
        }
    }
}

/// Adds `a(m) * b[..]` to row `m` of the tile.
#[inline(always)]
unsafe fn add<V: Vector, const N: usize, const MR: usize>(
    acc: &mut Tile<V, N, MR>,
    b: *const f32,
    a: impl Fn(usize) -> f32,
) {
    // SAFETY: `b` has `N` vectors.
    unsafe {
        let mut right = [V::zero(); N];
        for n in 0..N {
            right[n] = V::load(b.add(n * V::LANES));
        }
        for m in 0..MR {
            let left = V::splat(a(m));
            for n in 0..N {
                acc[m][n] = V::multiply_add(left, right[n], acc[m][n]);
            }
        }
    }
}

#[inline(always)]
unsafe fn load<V: Vector, const N: usize, const MR: usize>(
    c: *const f32,
    column: usize,
    start: Start,
) -> Tile<V, N, MR> {
    // SAFETY: `from` has one row of the panel, or `MR` of them when `step` moves on.
    unsafe {
        let mut acc = [[V::zero(); N]; MR];
        let (from, step) = match start {
            Start::Zero => return acc,
            Start::Row(row) => (row.add(column), 0),
            Start::Output => (c, PANEL),
        };
        for m in 0..MR {
            for n in 0..N {
                acc[m][n] = V::load(from.add(m * step + n * V::LANES));
            }
        }
        acc
    }
}

#[inline(always)]
unsafe fn store<V: Vector, const N: usize, const MR: usize>(c: *mut f32, acc: &Tile<V, N, MR>) {
    for m in 0..MR {
        for n in 0..N {
            // SAFETY: `c` has `MR` rows of the panel.
            unsafe { acc[m][n].store(c.add(m * PANEL + n * V::LANES)) };
        }
    }
}

/// The kernels of a [`Vector`]: the frame inside functions that enable its instructions.
macro_rules! kernels {
    ($vector:ty, $vectors:literal $(, $feature:literal)?) => {
        /// See [`crate::gemm::Kernels::rows`].
        $(#[target_feature(enable = $feature)])?
        pub(in crate::gemm) unsafe fn rows<const MR: usize>(
            k: usize,
            a: *const f32,
            a_stride: usize,
            b: *const f32,
            c: *mut f32,
            start: Start,
        ) {
            // SAFETY: promised by the caller, and the instructions are enabled here.
            unsafe { frame::rows::<$vector, $vectors, MR>(k, a, a_stride, b, c, start) }
        }

        /// See [`crate::gemm::Kernels::cols`].
        $(#[target_feature(enable = $feature)])?
        pub(in crate::gemm) unsafe fn cols<const MR: usize>(
            rows: &[u32],
            a: *const f32,
            b: *const f32,
            c: *mut f32,
            start: Start,
        ) {
            // SAFETY: as above.
            unsafe { frame::cols::<$vector, $vectors, MR>(rows, a, b, c, start) }
        }
    };
}
pub(super) use kernels;

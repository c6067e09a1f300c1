//! Matrix products on panels: the inner kernels and the loops around them.
//!
//! Every matrix inside an MLP is stored in *column panels*: columns are cut into groups of
//! [`PANEL`] = 32, and a panel holds its 32 columns of row 0, then of row 1, and so on (missing
//! columns of the last panel are zero). One layout serves every operand without repacking:
//!
//! * as the right factor, a panel is read front to back, two vectors per step of the sum;
//! * as the left factor, a kernel takes `MR` neighbouring rows of a panel and walks the columns;
//! * as a transposed left factor (weight gradients), it takes `MR` neighbouring columns of a panel
//!   and walks the rows.
//!
//! Each entry of a product is one chain of multiply-adds in index order, whatever the tile or
//! thread it falls into. That makes results independent of the number of threads, of the blocking,
//! of the other rows in a batch, and (zero rows add nothing) of row compaction.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::simd::Isa;

/// Columns of a panel.
pub(crate) const PANEL: usize = 32;

/// What the sums start from.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// Zero.
    Zero,
    /// The same 32 values for each row: a bias.
    Row(*const f32),
    /// What the output holds: accumulation.
    Output,
}

/// `(k, a, a_stride, b, c, start)`: see [`Kernels::rows`].
type RowsKernel = unsafe fn(usize, *const f32, usize, *const f32, *mut f32, Start);
/// `(rows, a, b, c, start)`: see [`Kernels::cols`].
type ColsKernel = unsafe fn(&[u32], *const f32, *const f32, *mut f32, Start);

/// The kernels of one instruction set; index `i` handles `i + 1` rows of output.
struct Kernels {
    /// `c[m][0..32] = start + sum_k a[m, k] * b[k][0..32]` with `a` in panels `a_stride` floats apart.
    rows: &'static [RowsKernel],
    /// `c[m][0..32] = start + sum_i a[rows[i]][m] * b[i][0..32]`.
    cols: &'static [ColsKernel],
}

/// `[f::<1>, f::<2>, ...]`
macro_rules! by_rows {
    ($kernel:path; $($mr:literal)*) => { &[$({ use $kernel as kernel; kernel::<$mr> }),*] };
}

const SCALAR: Kernels =
    Kernels { rows: by_rows!(scalar::rows; 1 2 3 4), cols: by_rows!(scalar::cols; 1 2 3 4) };
#[cfg(target_arch = "x86_64")]
const AVX2: Kernels =
    Kernels { rows: by_rows!(avx2::rows; 1 2 3 4 5 6), cols: by_rows!(avx2::cols; 1 2 3 4 5 6) };
#[cfg(target_arch = "x86_64")]
const AVX512: Kernels = Kernels {
    rows: by_rows!(avx512::rows; 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
    cols: by_rows!(avx512::cols; 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
};
#[cfg(target_arch = "aarch64")]
const NEON: Kernels =
    Kernels { rows: by_rows!(neon::rows; 1 2 3 4 5 6), cols: by_rows!(neon::cols; 1 2 3 4 5 6) };

fn kernels(isa: Isa) -> &'static Kernels {
    match isa {
        Isa::Scalar => &SCALAR,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => &AVX2,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => &AVX512,
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => &NEON,
        #[allow(unreachable_patterns)] // the sets of other architectures
        _ => &SCALAR,
    }
}

/// A matrix in column panels, as the kernels see it.
#[derive(Clone, Copy)]
pub(crate) struct Panels {
    /// The first float of the first panel, 64-byte aligned.
    pub(crate) ptr: *mut f32,
    /// Floats from one panel to the next, a multiple of [`PANEL`].
    pub(crate) stride: usize,
}

impl Panels {
    /// The 32 columns of panel `panel` in row `row`.
    ///
    /// # Safety
    /// Panel and row exist.
    #[inline(always)]
    pub(crate) unsafe fn at(self, panel: usize, row: usize) -> *mut f32 {
        // SAFETY: promised by the caller.
        unsafe { self.ptr.add(panel * self.stride + row * PANEL) }
    }
}

/// The sizes of the pieces when `total` rows are cut into the fewest, most equal pieces of at most `most`.
fn pieces(total: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = total.div_ceil(most);
    (0..count).map(move |i| {
        let (from, to) = (i * total / count, (i + 1) * total / count);
        (from, to - from)
    })
}

/// `c = start + a * b` for rows `from..to`: `a` is `rows x k`, `b` is `k x 32*panels`.
///
/// `bias`, if present, has one value per column of `c` (padded). `done(first, count)` is called
/// when all columns of some rows are finished and still in cache.
///
/// # Safety
/// The matrices have the extents above, `c` is disjoint from `a` and `b`, and no other thread uses
/// these rows of `c`. `isa` is supported.
#[allow(clippy::too_many_arguments)] // a product has this many operands
pub(crate) unsafe fn row_block(
    isa: Isa,
    (from, to): (usize, usize),
    k: usize,
    panels: usize,
    a: Panels,
    b: Panels,
    bias: Option<*const f32>,
    c: Panels,
    mut done: impl FnMut(usize, usize),
) {
    let kernels = kernels(isa);
    for (offset, count) in pieces(to - from, kernels.rows.len()) {
        let row = from + offset;
        for panel in 0..panels {
            prefetch_rows(a, panel, k, row + count, to);
            // SAFETY: rows `row..row + count` and panel `panel` exist by the caller's promise.
            unsafe {
                let start = bias.map_or(Start::Zero, |bias| Start::Row(bias.add(panel * PANEL)));
                kernels.rows[count - 1](k, a.at(0, row), a.stride, b.at(panel, 0), c.at(panel, row), start);
            }
        }
        done(row, count);
    }
}

/// Fetches what the next rows need of one panel of the left factor, while the current rows keep the
/// arithmetic units busy. Only a hint.
#[inline(always)]
fn prefetch_rows(a: Panels, panel: usize, k: usize, from: usize, to: usize) {
    #[cfg(target_arch = "x86_64")]
    if panel * PANEL < k {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        for row in from..to.min(from + AVX512.rows.len()) {
            let row = a.ptr.wrapping_add(panel * a.stride + row * PANEL);
            // SAFETY: prefetching is allowed at any address.
            unsafe {
                _mm_prefetch::<_MM_HINT_T1>(row.cast());
                _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(16).cast());
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (a, panel, k, from, to);
}

/// One panel of a weight gradient: `c[i][..] (+)= sum_r a[rows[r]][i] * b[r][..]` for `i` in `0..columns`,
/// where `a` has `columns` columns and `b`, `c` are single panels.
///
/// # Safety
/// As for [`row_block`]; every entry of `rows` is a row of `a`, and `b` has `rows.len()` rows.
pub(crate) unsafe fn transposed_panel(
    isa: Isa,
    rows: &[u32],
    columns: usize,
    a: Panels,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    let kernels = kernels(isa);
    for panel in 0..columns.div_ceil(PANEL) {
        let width = (columns - panel * PANEL).min(PANEL);
        for (offset, count) in pieces(width, kernels.cols.len()) {
            // SAFETY: columns `offset..offset + count` of the panel and as many rows of `c` exist.
            unsafe {
                kernels.cols[count - 1](
                    rows,
                    a.at(panel, 0).add(offset),
                    b,
                    c.add((panel * PANEL + offset) * PANEL),
                    start,
                );
            }
        }
    }
}

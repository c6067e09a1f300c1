//! Products of rounded copies of the operands. A block of the left factor and a panel of the right one are copied
//! once and multiplied many times.
//!
//! With the instruction, the copies are pairs of bfloat16. Without it they are f32 with the terms of every pair
//! exchanged, because a product of two bfloat16 is exact in f32: each line of the definition in the parent module is
//! then an ordinary fused multiply-add, and the kernels for f32 give the same bits. They do not flush subnormal sums,
//! but the exponents of the factors tell whether there can be any. Tiles where there can go to kernels that do.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::Range;

use super::super::{Kernels, PANEL, Panels, Product, Start, TransposedProduct, piece};
use super::rounded;
use crate::buffer::Buffer;
use crate::rowwise::{Lanes, per_isa};
use crate::simd::{Isa, Supported};

/// What a copy looks like.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::gemm) enum Format {
    /// f32, the terms of every pair exchanged. A missing term is zero.
    Exchanged,
    /// A pair of bfloat16 in the place of an f32, the first term in its lower half.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // only there is an instruction for it
    Packed,
}

/// How products of bfloat16 are computed.
#[derive(Clone, Copy)]
pub(in crate::gemm) struct Copies {
    pub(in crate::gemm) isa: Supported,
    pub(in crate::gemm) format: Format,
    pub(in crate::gemm) kernels: &'static Kernels,
    /// Kernels that flush subnormal sums, if `kernels` do not.
    pub(in crate::gemm) careful: Option<&'static Kernels>,
}

#[derive(Default)]
struct Scratch {
    left: Buffer,
    right: Buffer,
    /// The smallest exponent of each piece of the left factor.
    least: Vec<u32>,
    /// 0, 1, 2, ...
    rows: Vec<u32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Copies {
    /// See [`super::super::row_block`].
    ///
    /// # Safety
    /// As there.
    pub(in crate::gemm) unsafe fn row_block(
        self,
        (from, to): (usize, usize),
        product: &Product,
        mut done: impl FnMut(usize, usize),
    ) {
        let Product { k, panels, a, b, bias, c } = *product;
        let count = (to - from).div_ceil(self.kernels.rows.len());
        let terms = self.terms(k);
        SCRATCH.with_borrow_mut(|Scratch { left, right, least, .. }| {
            // An odd number of rows keeps the panels of a row out of the same cache sets.
            let stride = ((to - from) | 1) * PANEL;
            left.resize(terms.div_ceil(PANEL) * stride);
            let left = Panels { ptr: left.as_mut_ptr(), stride };
            least.clear();
            for i in 0..count {
                let (row, end) = piece(from, to, count, i);
                let mut exponents = Exponents::new();
                for panel in 0..k.div_ceil(PANEL) {
                    let width = (k - panel * PANEL).min(PANEL);
                    // SAFETY: these rows of `a` exist by the caller's promise, and those of the copy were made above.
                    unsafe {
                        let to = match self.format {
                            Format::Exchanged => left.at(panel, row - from),
                            Format::Packed => left.at(panel / 2, row - from).add(panel % 2 * PANEL / 2),
                        };
                        let (from, format, exponents) =
                            (a.at(panel, row), self.format, self.noted(&mut exponents));
                        self.round_columns(&Columns { from, width, to, format, exponents }, end - row);
                    }
                }
                least.push(exponents.least(0..PANEL));
            }
            right.resize(terms * PANEL);
            for panel in 0..panels {
                // SAFETY: panel `panel` of `b` has `k` rows, and the copy was sized above.
                let exponents = unsafe { self.copy_rows(right.as_mut_ptr(), b.at(panel, 0), None, k) };
                let right_least = exponents.least(0..PANEL);
                for (i, &left_least) in least.iter().enumerate() {
                    let (row, end) = piece(from, to, count, i);
                    // SAFETY: rows `row..end` and panel `panel` exist by the caller's promise, and so do the copies.
                    unsafe {
                        let start = bias.map_or(Start::Zero, |bias| Start::Row(bias.add(panel * PANEL)));
                        let kernels =
                            self.kernels(left_least + right_least, c.at(panel, row), end - row, start).rows;
                        for row in (row..end).step_by(kernels.len()) {
                            let kernel = kernels[(end - row).min(kernels.len()) - 1];
                            let left = left.at(0, row - from);
                            kernel(terms, left, stride, right.as_ptr(), c.at(panel, row), start);
                        }
                    }
                }
            }
        });
        for i in 0..count {
            let (row, end) = piece(from, to, count, i);
            done(row, end - row);
        }
    }

    /// See [`super::super::transposed_panels`].
    ///
    /// # Safety
    /// As there.
    pub(in crate::gemm) unsafe fn transposed_panels(self, product: &TransposedProduct<'_>) {
        let TransposedProduct { rows, columns, panels, a, b, c, start } = *product;
        SCRATCH.with_borrow_mut(|Scratch { left, right, least, rows: all }| {
            let terms = self.terms(rows.len());
            all.extend(all.len() as u32..terms as u32);
            right.resize(panels * terms * PANEL);
            let right = Panels { ptr: right.as_mut_ptr(), stride: terms * PANEL };
            least.clear();
            for panel in 0..panels {
                // SAFETY: all panels of `b` have as many rows, and those of the copy were made above.
                let exponents =
                    unsafe { self.copy_rows(right.at(panel, 0), b.at(panel, 0), None, rows.len()) };
                least.push(exponents.least(0..PANEL));
            }
            left.resize(terms * PANEL);
            for panel in 0..columns.div_ceil(PANEL) {
                // SAFETY: every entry of `rows` is a row of `a`, and the copy was sized above.
                let exponents =
                    unsafe { self.copy_rows(left.as_mut_ptr(), a.at(panel, 0), Some(rows), rows.len()) };
                let width = (columns - panel * PANEL).min(PANEL);
                let pieces = width.div_ceil(self.kernels.cols.len());
                for (other, &right_least) in least.iter().enumerate() {
                    for i in 0..pieces {
                        let (offset, end) = piece(0, width, pieces, i);
                        let least = exponents.least(offset..end) + right_least;
                        // SAFETY: columns `offset..end` of the panel and as many rows of `c` exist.
                        unsafe {
                            let to = |column: usize| c.at(other, panel * PANEL + column);
                            let kernels = self.kernels(least, to(offset), end - offset, start).cols;
                            for column in (offset..end).step_by(kernels.len()) {
                                let kernel = kernels[(end - column).min(kernels.len()) - 1];
                                let left = left.as_ptr().add(column);
                                kernel(&all[..terms], left, right.at(other, 0), to(column), start);
                            }
                        }
                    }
                }
            }
        });
    }

    /// Copies `count` rows of a panel, those listed in `rows` or the first ones, whose rows are the terms of the sum.
    ///
    /// # Safety
    /// The rows exist, and `to` has room for as many terms.
    unsafe fn copy_rows(
        self,
        to: *mut f32,
        from: *const f32,
        rows: Option<&[u32]>,
        count: usize,
    ) -> Exponents {
        let mut exponents = Exponents::new();
        let (format, noted) = (self.format, self.noted(&mut exponents));
        // SAFETY: promised by the caller.
        unsafe { self.round_rows(&Rows { from, rows, to, format, exponents: noted }, count) };
        exponents
    }

    /// Whether the processor has instructions for making the copies. Outside tests, packed copies are only used where it has.
    #[cfg(target_arch = "x86_64")]
    fn has_instruction(self) -> bool {
        self.format == Format::Packed && self.isa.isa() == Isa::Avx512
    }

    /// Rounds the first `count` rows.
    ///
    /// # Safety
    /// The rows exist on both sides, and no other thread uses those that are written.
    unsafe fn round_columns(self, job: &Columns, count: usize) {
        // SAFETY: promised by the caller; `has_instruction` stands for the instructions.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if self.has_instruction() {
                return super::instruction::pack_columns(job, count);
            }
            round_columns(self.isa, job, 0, count);
        }
    }

    /// Rounds the first `count` rows.
    ///
    /// # Safety
    /// As for [`Copies::round_columns`].
    unsafe fn round_rows(self, job: &Rows<'_>, count: usize) {
        // SAFETY: see `round_columns`.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if self.has_instruction() {
                return super::instruction::pack_rows(job, count);
            }
            round_rows(self.isa, job, 0, count);
        }
    }

    /// Number of terms of a sum of `k` products for the kernels.
    fn terms(self, k: usize) -> usize {
        match self.format {
            Format::Exchanged => k.next_multiple_of(2),
            Format::Packed => k.div_ceil(2),
        }
    }

    /// Where to note exponents, if they are of interest.
    fn noted(self, exponents: &mut Exponents) -> *mut [u32; PANEL] {
        if self.careful.is_some() { &raw mut exponents.0 } else { std::ptr::null_mut() }
    }

    /// The kernels for a tile with `rows` rows at `c`. `exponents` is the sum of the smallest exponents of both factors.
    ///
    /// # Safety
    /// There are `rows` rows at `c` and 32 numbers in the initial row.
    unsafe fn kernels(self, exponents: u32, c: *const f32, rows: usize, start: Start) -> &'static Kernels {
        match self.careful {
            // SAFETY: promised by the caller.
            Some(careful) if !is_ordinary(exponents) || unsafe { !starts_ordinary(c, rows, start) } => {
                careful
            }
            _ => self.kernels,
        }
    }
}

/// Rows of a panel, whose columns are the terms of a sum.
pub(in crate::gemm) struct Columns {
    pub(super) from: *const f32,
    /// Columns past these count as zero, whatever they hold.
    pub(super) width: usize,
    pub(super) to: *mut f32,
    format: Format,
    exponents: *mut [u32; PANEL],
}

per_isa! {
    /// Rounds rows `from..from + count`.
    ///
    /// # Safety
    /// The rows exist on both sides, and no other thread uses those that are written.
    round_columns, round_columns_body, Columns
}

#[inline(always)]
unsafe fn round_columns_body<const FUSED: bool>(job: &Columns, from: usize, count: usize) {
    for row in from..from + count {
        // SAFETY: promised by the caller.
        unsafe {
            let mut x = job.from.add(row * PANEL).cast::<Lanes>().read();
            for (i, x) in x.iter_mut().enumerate() {
                *x = if i < job.width { *x } else { 0.0 };
            }
            note(job.exponents, &x);
            round(&mut x);
            let to = job.to.add(row * PANEL);
            match job.format {
                Format::Exchanged => {
                    let mut exchanged = [0.0; PANEL];
                    for i in 0..PANEL {
                        exchanged[i] = x[i ^ 1];
                    }
                    to.cast::<Lanes>().write(exchanged);
                }
                Format::Packed => {
                    let mut pairs = [0.0; PANEL / 2];
                    for i in 0..PANEL / 2 {
                        pairs[i] = packed(x[2 * i], x[2 * i + 1]);
                    }
                    to.cast::<[f32; PANEL / 2]>().write(pairs);
                }
            }
        }
    }
}

/// Rows of a panel, which are the terms of a sum.
pub(in crate::gemm) struct Rows<'a> {
    pub(super) from: *const f32,
    /// Which rows to read, if not the first ones.
    pub(super) rows: Option<&'a [u32]>,
    pub(super) to: *mut f32,
    format: Format,
    exponents: *mut [u32; PANEL],
}

per_isa! {
    /// Rounds rows `from..from + count`; `from` is even.
    ///
    /// # Safety
    /// The rows exist on both sides, and no other thread uses those that are written.
    round_rows, round_rows_body, Rows<'_>
}

#[inline(always)]
unsafe fn round_rows_body<const FUSED: bool>(job: &Rows<'_>, from: usize, count: usize) {
    for first in (from..from + count).step_by(2) {
        // SAFETY: promised by the caller.
        unsafe {
            let x = read_row(job, first);
            let y = if first + 1 < from + count { read_row(job, first + 1) } else { [0.0; PANEL] };
            let to = job.to.cast::<Lanes>();
            match job.format {
                Format::Exchanged => to.add(first).cast::<[Lanes; 2]>().write([y, x]),
                Format::Packed => {
                    let mut pairs = [0.0; PANEL];
                    for i in 0..PANEL {
                        pairs[i] = packed(x[i], y[i]);
                    }
                    to.add(first / 2).write(pairs);
                }
            }
        }
    }
}

/// A rounded row. Not a closure, which would be compiled without the instructions of its caller.
#[inline(always)]
unsafe fn read_row(job: &Rows<'_>, i: usize) -> Lanes {
    // SAFETY: promised by the caller.
    unsafe {
        let row = job.rows.map_or(i, |rows| rows[i] as usize);
        let mut x = job.from.add(row * PANEL).cast::<Lanes>().read();
        note(job.exponents, &x);
        round(&mut x);
        x
    }
}

/// Loops over fixed-size arrays are vectorised, here and above; `map` on them is not.
#[inline(always)]
fn round(x: &mut Lanes) {
    for i in 0..PANEL {
        x[i] = rounded(x[i]);
    }
}

/// Two bfloat16 in one f32.
#[inline(always)]
fn packed(first: f32, second: f32) -> f32 {
    f32::from_bits(first.to_bits() >> 16 | second.to_bits())
}

/// The smallest exponent in each column, in the upper bits and less 1. Zeros, and subnormal numbers, which count as
/// zeros, wrap around.
struct Exponents([u32; PANEL]);

impl Exponents {
    fn new() -> Self {
        Self([u32::MAX; PANEL])
    }

    /// The smallest exponent, as biased in the bits of a number.
    fn least(&self, columns: Range<usize>) -> u32 {
        let least = self.0[columns].iter().copied().min().unwrap_or(u32::MAX);
        (least >> 24) + 1
    }
}

/// Notes the exponents of a row, unless there is nowhere to.
#[inline(always)]
unsafe fn note(exponents: *mut [u32; PANEL], x: &Lanes) {
    // SAFETY: the caller has the only pointer.
    if let Some(exponents) = unsafe { exponents.as_mut() } {
        for i in 0..PANEL {
            exponents[i] = exponents[i].min((x[i].to_bits() << 1).wrapping_sub(1 << 24));
        }
    }
}

/// Whether every sum of products of such factors is zero or above the smallest normal number, whatever the order: all
/// terms and all sums are multiples of the last digit of the smallest possible term.
fn is_ordinary(exponents: u32) -> bool {
    // 2^(left - 127 - 7) * 2^(right - 127 - 7) > 2^-126
    exponents >= 143
}

/// The same for initial values.
///
/// # Safety
/// As for [`Copies::kernels`].
unsafe fn starts_ordinary(c: *const f32, rows: usize, start: Start) -> bool {
    let (from, rows) = match start {
        Start::Zero => return true,
        Start::Row(row) => (row, 1),
        Start::Output => (c, rows),
    };
    // SAFETY: promised by the caller.
    let starts = unsafe { std::slice::from_raw_parts(from, rows * PANEL) };
    // 2^(exponent - 127 - 23) > 2^-126. Zeros wrap around, subnormal numbers do not.
    starts.iter().fold(u32::MAX, |least, x| least.min((x.to_bits() << 1).wrapping_sub(1))) >= (25 << 24) - 1
}

//! bfloat16 products without the instruction, nearly as fast as products in f32.
//!
//! A product of two bfloat16 is exact in f32, so each line of the definition in the parent module is an ordinary
//! fused multiply-add. The operands are copied once, rounded and with the terms of every pair exchanged, and the
//! f32 kernels multiply the copies. That leaves subnormal sums. The exponents of the factors tell whether there
//! can be any; tiles where there can are left to kernels that flush them.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::Range;

use super::super::{Kernels, PANEL, Panels, Product, Start, piece};
use crate::buffer::Buffer;
use crate::rowwise::{Lanes, per_isa};
use crate::simd::{Isa, Supported};

/// How products are computed without the instruction.
#[derive(Clone, Copy)]
pub(in crate::gemm) struct Emulation {
    pub(in crate::gemm) isa: Supported,
    /// The f32 kernels, with fused multiply-adds.
    pub(in crate::gemm) fast: &'static Kernels,
    /// Kernels that flush subnormal sums.
    pub(in crate::gemm) careful: &'static Kernels,
}

/// Rounded copies of the operands.
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

impl Emulation {
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
        let count = (to - from).div_ceil(self.fast.rows.len());
        SCRATCH.with_borrow_mut(|Scratch { left, right, least, .. }| {
            // An odd number of rows keeps the panels of a row out of the same cache sets.
            let stride = ((to - from) | 1) * PANEL;
            left.resize(k.div_ceil(PANEL) * stride);
            let left = Panels { ptr: left.as_mut_ptr(), stride };
            least.clear();
            for i in 0..count {
                let (row, end) = piece(from, to, count, i);
                let mut exponents = Exponents::new();
                for panel in 0..k.div_ceil(PANEL) {
                    let width = (k - panel * PANEL).min(PANEL);
                    // SAFETY: these rows of `a` exist by the caller's promise, and those of the copy were made above.
                    unsafe {
                        let (from, to) = (a.at(panel, row), left.at(panel, row - from));
                        let exponents = exponents.as_mut();
                        let job =
                            Round { from, rows: None, to, exchange: Exchange::Columns { width }, exponents };
                        round(self.isa, &job, 0, end - row);
                    }
                }
                least.push(exponents.least(0..PANEL));
            }
            for panel in 0..panels {
                // SAFETY: panel `panel` of `b` has `k` rows.
                let right_least = unsafe { self.copy_right(right, b.at(panel, 0), k) };
                for (i, &left_least) in least.iter().enumerate() {
                    let (row, end) = piece(from, to, count, i);
                    // SAFETY: rows `row..end` and panel `panel` exist by the caller's promise, and so do the copies.
                    unsafe {
                        let start = bias.map_or(Start::Zero, |bias| Start::Row(bias.add(panel * PANEL)));
                        if is_ordinary(left_least, right_least, c.at(panel, row), end - row, start) {
                            let (left, k) = (left.at(0, row - from), even(k));
                            let kernel = self.fast.rows[end - row - 1];
                            kernel(k, left, stride, right.as_ptr(), c.at(panel, row), start);
                        } else {
                            for row in (row..end).step_by(self.careful.rows.len()) {
                                let kernel = self.careful.rows[(end - row).min(self.careful.rows.len()) - 1];
                                kernel(k, a.at(0, row), a.stride, b.at(panel, 0), c.at(panel, row), start);
                            }
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

    /// See [`super::super::transposed_panel`].
    ///
    /// # Safety
    /// As there.
    pub(in crate::gemm) unsafe fn transposed_panel(
        self,
        rows: &[u32],
        columns: usize,
        a: Panels,
        b: *const f32,
        c: *mut f32,
        start: Start,
    ) {
        SCRATCH.with_borrow_mut(|Scratch { left, right, rows: all, .. }| {
            let terms = even(rows.len());
            // SAFETY: `b` has as many rows as there are terms.
            let right_least = unsafe { self.copy_right(right, b, rows.len()) };
            left.resize(terms * PANEL);
            all.extend(all.len() as u32..terms as u32);
            for panel in 0..columns.div_ceil(PANEL) {
                // SAFETY: every entry of `rows` is a row of `a`.
                let exponents = unsafe { self.copy(left, a.at(panel, 0), Some(rows), rows.len()) };
                let width = (columns - panel * PANEL).min(PANEL);
                let count = width.div_ceil(self.fast.cols.len());
                for i in 0..count {
                    let (offset, end) = piece(0, width, count, i);
                    // SAFETY: columns `offset..end` of the panel and as many rows of `c` exist.
                    unsafe {
                        let to = c.add((panel * PANEL + offset) * PANEL);
                        if is_ordinary(exponents.least(offset..end), right_least, to, end - offset, start) {
                            let left = left.as_ptr().add(offset);
                            self.fast.cols[end - offset - 1](&all[..terms], left, right.as_ptr(), to, start);
                        } else {
                            for column in (offset..end).step_by(self.careful.cols.len()) {
                                let kernel =
                                    self.careful.cols[(end - column).min(self.careful.cols.len()) - 1];
                                let to = c.add((panel * PANEL + column) * PANEL);
                                kernel(rows, a.at(panel, 0).add(column), b, to, start);
                            }
                        }
                    }
                }
            }
        });
    }

    /// Copies one panel of the right factor and returns its smallest exponent.
    ///
    /// # Safety
    /// The panel has `count` rows.
    unsafe fn copy_right(self, to: &mut Buffer, from: *const f32, count: usize) -> u32 {
        // SAFETY: promised by the caller.
        unsafe { self.copy(to, from, None, count) }.least(0..PANEL)
    }

    /// Copies `count` rows of a panel, those listed in `rows` or the first ones.
    ///
    /// # Safety
    /// The rows exist.
    unsafe fn copy(self, to: &mut Buffer, from: *const f32, rows: Option<&[u32]>, count: usize) -> Exponents {
        to.resize(even(count) * PANEL);
        if count % 2 == 1 {
            to[(count - 1) * PANEL..count * PANEL].fill(0.0);
        }
        let mut exponents = Exponents::new();
        let job = Round {
            from,
            rows,
            to: to.as_mut_ptr(),
            exchange: Exchange::Rows,
            exponents: exponents.as_mut(),
        };
        // SAFETY: promised by the caller; the copy was sized above.
        unsafe { round(self.isa, &job, 0, count) };
        exponents
    }
}

/// Pairs are complete: a missing term is `0 * 0`.
fn even(terms: usize) -> usize {
    terms.next_multiple_of(2)
}

/// What the terms of a sum are, whose pairs are exchanged.
#[derive(Clone, Copy)]
enum Exchange {
    Rows,
    /// The first `width` columns; the others become zero.
    Columns {
        width: usize,
    },
}

/// Rounds rows of a panel.
pub(in crate::gemm) struct Round<'a> {
    from: *const f32,
    /// Which rows to read, if not the first ones.
    rows: Option<&'a [u32]>,
    to: *mut f32,
    exchange: Exchange,
    exponents: *mut [u32; PANEL],
}

per_isa! {
    /// Rounds rows `from..from + count`.
    ///
    /// # Safety
    /// The rows exist on both sides, and no other thread uses those that are written.
    round, round_body, Round<'_>
}

#[inline(always)]
unsafe fn round_body<const FUSED: bool>(job: &Round<'_>, from: usize, count: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut exponents = job.exponents.read();
        for i in from..from + count {
            let row = job.rows.map_or(i, |rows| rows[i] as usize);
            let mut x = job.from.add(row * PANEL).cast::<Lanes>().read();
            if let Exchange::Columns { width } = job.exchange {
                for (i, x) in x.iter_mut().enumerate() {
                    *x = if i < width { *x } else { 0.0 };
                }
            }
            for i in 0..PANEL {
                exponents[i] = exponents[i].min(Exponents::of(x[i]));
                x[i] = super::rounded(x[i]);
            }
            let to = job.to.cast::<Lanes>();
            match job.exchange {
                Exchange::Rows => to.add(i ^ 1).write(x),
                Exchange::Columns { .. } => to.add(i).write(std::array::from_fn(|i| x[i ^ 1])),
            }
        }
        job.exponents.write(exponents);
    }
}

/// The smallest exponent in each column. Zeros, and subnormal numbers, which count as zeros, are larger than all.
struct Exponents([u32; PANEL]);

impl Exponents {
    fn new() -> Self {
        Self([u32::MAX; PANEL])
    }

    fn as_mut(&mut self) -> *mut [u32; PANEL] {
        &raw mut self.0
    }

    /// The exponent in the upper bits, less 1; what has none wraps around.
    #[inline(always)]
    fn of(x: f32) -> u32 {
        (x.to_bits() << 1).wrapping_sub(1 << 24)
    }

    /// The smallest exponent, as biased in the bits of a number.
    fn least(&self, columns: Range<usize>) -> u32 {
        let least = self.0[columns].iter().copied().min().unwrap_or(u32::MAX);
        (least >> 24) + 1
    }
}

/// Whether every sum of products of such factors is zero or above the smallest normal number, whatever the order:
/// all terms and all sums are multiples of the last digit of the smallest possible term and of the initial values.
///
/// # Safety
/// There are `rows` rows at `c` and 32 numbers in the initial row.
unsafe fn is_ordinary(left: u32, right: u32, c: *const f32, rows: usize, start: Start) -> bool {
    // 2^(left - 127 - 7) * 2^(right - 127 - 7) > 2^-126
    if left + right < 143 {
        return false;
    }
    let (from, rows) = match start {
        Start::Zero => return true,
        Start::Row(row) => (row, 1),
        Start::Output => (c, rows),
    };
    // 2^(exponent - 127 - 23) > 2^-126. Zeros wrap around, subnormal numbers do not.
    // SAFETY: promised by the caller.
    let starts = unsafe { std::slice::from_raw_parts(from, rows * PANEL) };
    starts.iter().fold(u32::MAX, |least, x| least.min((x.to_bits() << 1).wrapping_sub(1))) >= (25 << 24) - 1
}

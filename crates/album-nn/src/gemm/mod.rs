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
//! Each entry of a product is one chain of multiply-adds in index order, in any tile and on any thread. That
//! makes results independent of the number of threads, the blocking, the other rows of a batch, and (zero
//! rows add nothing) row compaction.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod bf16;
mod frame;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use self::bf16::copies::{Copies, Format};
use crate::simd::{Isa, Precision, Supported};

/// Number of columns of a panel.
pub(crate) const PANEL: usize = 32;

/// The initial value of the sums.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// Zero.
    Zero,
    /// The same 32 values for each row: a bias.
    Row(*const f32),
    /// The current output: accumulation.
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

/// Kernels that flush subnormal sums.
const FLUSHED: Kernels = Kernels { rows: by_rows!(bf16::rows; 1 2 3 4), cols: by_rows!(bf16::cols; 1 2 3 4) };
#[cfg(target_arch = "x86_64")]
const FLUSHED_AVX2: Kernels =
    Kernels { rows: by_rows!(bf16::fused::rows; 1 2 3 4), cols: by_rows!(bf16::fused::cols; 1 2 3 4) };
#[cfg(target_arch = "x86_64")]
const PAIRS: Kernels = Kernels {
    rows: by_rows!(bf16::instruction::rows; 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
    cols: by_rows!(bf16::instruction::cols; 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
};

/// How products are computed.
enum Method {
    /// As they are.
    Direct(&'static Kernels),
    /// With factors rounded to bfloat16.
    Rounded(Copies),
}

fn method(isa: Supported) -> Method {
    let kernels = match isa.isa() {
        Isa::Scalar => &SCALAR,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => &AVX2,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => &AVX512,
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => &NEON,
        #[allow(unreachable_patterns)] // the sets of other architectures
        _ => &SCALAR,
    };
    if isa.precision() == Precision::F32 {
        return Method::Direct(kernels);
    }
    let exchanged = |careful| Copies { isa, format: Format::Exchanged, kernels, careful: Some(careful) };
    Method::Rounded(match isa.isa() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if is_x86_feature_detected!("avx512bf16") => {
            Copies { isa, format: Format::Packed, kernels: &PAIRS, careful: None }
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 => exchanged(&FLUSHED_AVX2),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => exchanged(&FLUSHED),
        // The scalar kernels round products and sums separately.
        _ => Copies { kernels: &FLUSHED, careful: None, ..exchanged(&FLUSHED) },
    })
}

/// A matrix in column panels.
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

/// `c = bias + a * b`: `a` is `rows x k`, `b` is `k x 32 * panels`.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub(crate) k: usize,
    pub(crate) panels: usize,
    pub(crate) a: Panels,
    pub(crate) b: Panels,
    /// One value per column of `c`, padded.
    pub(crate) bias: Option<*const f32>,
    pub(crate) c: Panels,
}

/// Computes rows `from..to` of a product. `done(first, count)` is called when all columns of some rows are
/// complete and still in cache.
///
/// # Safety
/// The matrices have the extents that [`Product`] states, `c` is disjoint from `a` and `b`, and no other
/// thread uses these rows of `c`.
pub(crate) unsafe fn row_block(
    isa: Supported,
    (from, to): (usize, usize),
    product: &Product,
    mut done: impl FnMut(usize, usize),
) {
    let Product { k, panels, a, b, bias, c } = *product;
    let kernels = match method(isa) {
        Method::Direct(kernels) => kernels,
        // SAFETY: promised by the caller.
        Method::Rounded(copies) => return unsafe { copies.row_block((from, to), product, done) },
    };
    // A right factor that fits into the second-level cache is read once per piece of rows, so that the piece
    // stays in the first level. A larger one is read once per group of pieces that stays in the second level.
    let count = (to - from).div_ceil(kernels.rows.len());
    let groups =
        if k * panels * PANEL <= CACHED { count } else { ((to - from) * k).div_ceil(CACHED).min(count) };
    for group in 0..groups {
        let (first, end) = piece(0, count, groups, group);
        let group = first..end;
        for panel in 0..panels {
            for i in group.clone() {
                let (row, end) = piece(from, to, count, i);

                // SAFETY: rows `row..end` and panel `panel` exist by the caller's promise.
                unsafe {
                    let start = bias.map_or(Start::Zero, |bias| Start::Row(bias.add(panel * PANEL)));
                    let kernel = kernels.rows[end - row - 1];
                    kernel(k, a.at(0, row), a.stride, b.at(panel, 0), c.at(panel, row), start);
                }
            }
        }
        for i in group {
            let (row, end) = piece(from, to, count, i);
            done(row, end - row);
        }
    }
}

/// Size in floats of an operand that stays in the second-level cache of any processor while others stream
/// through.
const CACHED: usize = 64 * 1024;

/// Piece `i` of `from..to`, divided into `count` pieces as equal as possible.
fn piece(from: usize, to: usize, count: usize, i: usize) -> (usize, usize) {
    let len = to - from;
    (from + i * len / count, from + (i + 1) * len / count)
}

/// Neighbouring panels of a weight gradient: `c[i][..] (+)= sum_r a[rows[r]][i] * b[r][..]`.
#[derive(Clone, Copy)]
pub(crate) struct TransposedProduct<'a> {
    /// Rows of `a`, one for each row of `b`.
    pub(crate) rows: &'a [u32],
    /// Columns of `a`.
    pub(crate) columns: usize,
    /// Panels of `b` and `c`.
    pub(crate) panels: usize,
    pub(crate) a: Panels,
    pub(crate) b: Panels,
    pub(crate) c: Panels,
    pub(crate) start: Start,
}

/// Computes a [`TransposedProduct`].
///
/// # Safety
/// As for [`row_block`], with all of `c`; every entry of `rows` is a row of `a`.
pub(crate) unsafe fn transposed_panels(isa: Supported, product: &TransposedProduct<'_>) {
    let TransposedProduct { rows, columns, panels, a, b, c, start } = *product;
    let kernels = match method(isa) {
        Method::Direct(kernels) => kernels,
        Method::Rounded(copies) => {
            // SAFETY: promised by the caller.
            return unsafe { copies.transposed_panels(product) };
        }
    };
    for other in 0..panels {
        for panel in 0..columns.div_ceil(PANEL) {
            let width = (columns - panel * PANEL).min(PANEL);
            let pieces = width.div_ceil(kernels.cols.len());
            for i in 0..pieces {
                let (offset, end) = piece(0, width, pieces, i);
                // SAFETY: columns `offset..end` of the panel and as many rows of `c` exist.
                unsafe {
                    kernels.cols[end - offset - 1](
                        rows,
                        a.at(panel, 0).add(offset),
                        b.at(other, 0),
                        c.at(other, panel * PANEL + offset),
                        start,
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::buffer::Buffer;

    /// Pseudo-random values in [-1, 1).
    fn value(i: usize, salt: usize) -> f32 {
        let hash = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ (salt as u64) << 7);
        (hash >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// A matrix in panels with zero padding, and the same row by row.
    fn matrix(rows: usize, cols: usize, salt: usize) -> (Buffer, Vec<f32>) {
        let mut panels = Buffer::zeros(cols.div_ceil(PANEL) * rows * PANEL);
        let mut plain = vec![0.0; rows * cols];
        for r in 0..rows {
            for c in 0..cols {
                plain[r * cols + c] = value(r * cols + c, salt);
                panels[(c / PANEL * rows + r) * PANEL + c % PANEL] = plain[r * cols + c];
            }
        }
        (panels, plain)
    }

    fn view(buffer: &mut Buffer, rows: usize) -> Panels {
        Panels { ptr: buffer.as_mut_ptr(), stride: rows * PANEL }
    }

    fn supported() -> impl Iterator<Item = Supported> {
        [Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Neon].into_iter().filter_map(Isa::supported)
    }

    /// A vector for [`Format::Packed`] in plain code, which puts the copies to the test without the instruction.
    #[derive(Clone, Copy)]
    struct PlainPairs([f32; 8]);

    impl frame::Vector for PlainPairs {
        const LANES: usize = 8;

        unsafe fn zero() -> Self {
            Self([0.0; 8])
        }

        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: promised by the caller, here and below.
            unsafe { Self(from.cast::<[f32; 8]>().read()) }
        }

        unsafe fn store(self, to: *mut f32) {
            // SAFETY: see `load`.
            unsafe { to.cast::<[f32; 8]>().write(self.0) }
        }

        unsafe fn splat(x: f32) -> Self {
            Self([x; 8])
        }

        unsafe fn multiply_add(a: Self, b: Self, c: Self) -> Self {
            let terms = |x: f32| [x.to_bits() << 16, x.to_bits() & 0xFFFF_0000].map(f32::from_bits);
            Self(std::array::from_fn(|i| bf16::pair(c.0[i], terms(a.0[i]), terms(b.0[i]))))
        }
    }

    mod plain_pairs {
        use super::super::{Start, frame, frame::kernels};
        use super::PlainPairs;
        kernels!(PlainPairs, 2);
    }

    static PLAIN_PAIRS: Kernels = Kernels {
        rows: by_rows!(plain_pairs::rows; 1 2 3 4 5),
        cols: by_rows!(plain_pairs::cols; 1 2 3 4 5),
    };

    /// Every way to multiply bfloat16 on this processor.
    fn all_copies() -> Vec<Copies> {
        let scalar = Isa::Scalar.supported().unwrap();
        let mut all =
            vec![Copies { isa: scalar, format: Format::Packed, kernels: &PLAIN_PAIRS, careful: None }];
        for isa in supported() {
            match method(isa.with(Precision::Bf16)) {
                Method::Rounded(copies) => all.push(copies),
                Method::Direct(_) => unreachable!("factors are rounded"),
            }
            #[cfg(target_arch = "x86_64")]
            if isa.isa() == Isa::Avx512 {
                let (format, careful) = (Format::Exchanged, Some(&FLUSHED_AVX2));
                all.push(Copies { isa, format, kernels: &AVX512, careful });
            }
        }
        all
    }

    /// The definition: one entry of a product.
    fn bf16_sum(start: f32, terms: impl ExactSizeIterator<Item = (f32, f32)>) -> f32 {
        let terms: Vec<_> = terms.map(|(a, b)| (bf16::rounded(a), bf16::rounded(b))).collect();
        terms.chunks(2).fold(start, |sum, pair| {
            let second = pair.get(1).copied().unwrap_or_default();
            bf16::pair(sum, [pair[0].0, second.0], [pair[0].1, second.1])
        })
    }

    fn assert_same_bits(found: f32, expected: f32, what: &dyn Fn() -> String) {
        let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
        assert!(same, "{}: {found:e} instead of {expected:e}", what());
    }

    /// Products have the bits of the definition, on every instruction set.
    fn bf16_products_agree(value: &dyn Fn(usize, usize) -> f32) {
        let fill = |rows: usize, panels: usize, salt: usize| {
            let mut buffer = Buffer::zeros(panels * rows * PANEL);
            buffer.iter_mut().enumerate().for_each(|(i, x)| *x = value(i, salt));
            buffer
        };
        for (m, k, panels, with_bias) in [
            (1usize, 1usize, 1usize, false),
            (5, 33, 2, true),
            (37, 45, 1, false),
            (30, 64, 2, true),
            (6, 131, 1, true),
            (30, 0, 1, true),
        ] {
            let depth = k.div_ceil(PANEL).max(1);
            let [mut a, mut b] = [fill(m, depth, 1), fill(k.max(1), panels, 2)];
            let [bias, before] = [fill(1, panels, 3), fill(m, panels, 4)];
            let (a, b) = (view(&mut a, m), view(&mut b, k.max(1)));
            // SAFETY: all indices below are inside the matrices.
            let at = |matrix: Panels, row: usize, column: usize| unsafe {
                *matrix.at(column / PANEL, row).add(column % PANEL)
            };
            let rows: Vec<u32> = (0..m as u32).filter(|row| row % 3 != 1).collect();
            let columns = k.max(1);
            let mut right = fill(rows.len(), panels, 5);
            let right = view(&mut right, rows.len());
            for copies in all_copies() {
                let mut found = before.clone();
                let c = view(&mut found, m);
                let product = Product { k, panels, a, b, bias: with_bias.then_some(bias.as_ptr()), c };
                // SAFETY: the matrices were built with these extents.
                unsafe { copies.row_block((0, m), &product, |_, _| {}) };
                for (row, j) in (0..m).flat_map(|row| (0..panels * PANEL).map(move |j| (row, j))) {
                    let start = if with_bias { bias[j] } else { 0.0 };
                    let expected = bf16_sum(start, (0..k).map(|i| (at(a, row, i), at(b, i, j))));
                    let what = || format!("{:?}, {m} x {k}, entry ({row}, {j})", copies.isa);
                    assert_same_bits(at(c, row, j), expected, &what);
                }
                for start in [Start::Zero, Start::Output] {
                    let before = fill(columns, panels, 6);
                    let mut found = before.clone();
                    let c = view(&mut found, columns);
                    // SAFETY: as above.
                    unsafe {
                        copies.transposed_panels(&TransposedProduct {
                            rows: &rows,
                            columns,
                            panels,
                            a,
                            b: right,
                            c,
                            start,
                        });
                    }
                    let pairs = (0..columns).flat_map(|i| (0..panels * PANEL).map(move |j| (i, j)));
                    for (i, j) in pairs {
                        let before = before[(j / PANEL * columns + i) * PANEL + j % PANEL];
                        let start = if matches!(start, Start::Output) { before } else { 0.0 };
                        let terms = rows.iter().enumerate();
                        let terms = terms.map(|(r, &row)| (at(a, row as usize, i), at(right, r, j)));
                        let what = || format!("{:?}, {m} x {k} transposed, entry ({i}, {j})", copies.isa);
                        assert_same_bits(at(c, i, j), bf16_sum(start, terms), &what);
                    }
                }
            }
        }
    }

    #[test]
    fn bf16_products_have_the_bits_of_the_definition() {
        // Numbers of ordinary size; numbers whose products are near the least normal one; any bits.
        bf16_products_agree(&value);
        for scale in [-20, -40, -50, -55, -60, -63] {
            bf16_products_agree(&|i, salt| value(i, salt) * 2f32.powi(scale - (i % 3) as i32));
        }
        // The left factor has a tiny number here and there, so that some tiles are careful and others are not.
        bf16_products_agree(&|i, salt| if salt == 1 && i % 301 == 7 { 1e-38 } else { value(i, salt) });
        // Zeros, to which small initial values are added.
        bf16_products_agree(&|i, salt| match salt {
            1 | 5 => 0.0,
            3 | 6 => value(i, salt) * 2f32.powi(-124),
            _ => value(i, salt),
        });
        bf16_products_agree(&|i, salt| {
            let any = f32::from_bits(value(i, salt).to_bits().wrapping_mul(0x9E37_79B9));
            if any.is_finite() { any } else { 0.0 }
        });
        #[cfg(target_arch = "x86_64")]
        if !is_x86_feature_detected!("avx512bf16") {
            album_testing::skip("avx512bf16", "no such instruction here; all else was compared");
        }
    }

    /// A product of bfloat16 factors is that of the rounded matrices.
    #[test]
    fn bf16_products_are_products_of_rounded_factors() {
        let (m, k, n) = (37, 45, 50);
        let (mut a, plain_a) = matrix(m, k, 1);
        let (mut b, plain_b) = matrix(k, n, 2);
        let mut c = Buffer::zeros(n.div_ceil(PANEL) * m * PANEL);
        let (a, b, panels) = (view(&mut a, m), view(&mut b, k), n.div_ceil(PANEL));
        let product = Product { k, panels, a, b, bias: None, c: view(&mut c, m) };
        // SAFETY: the matrices were built with these extents.
        unsafe { row_block(Supported::detect().with(Precision::Bf16), (0, m), &product, |_, _| {}) };
        let (mut rounding, mut worst) = (0f64, 0f64);
        for (r, j) in (0..m).flat_map(|r| (0..n).map(move |j| (r, j))) {
            let sum = |round: fn(f32) -> f32| -> f64 {
                let term =
                    |i: usize| f64::from(round(plain_a[r * k + i])) * f64::from(round(plain_b[i * n + j]));
                (0..k).map(term).sum()
            };
            let (rounded, exact) = (sum(bf16::rounded), sum(|x| x));
            worst = worst.max((f64::from(c[(j / PANEL * m + r) * PANEL + j % PANEL]) - rounded).abs());
            rounding = rounding.max((rounded - exact).abs());
        }
        assert!(worst < 1e-5 && rounding > 1e-3, "{worst} {rounding}");
    }

    /// A right factor that does not fit into the cache: rows come in groups, and every row is what it is alone.
    #[test]
    fn rows_in_groups_are_those_of_single_products() {
        let (m, k, n) = (150, 520, 130usize);
        assert!(k * n.next_multiple_of(PANEL) > CACHED && m * k > CACHED, "this test is for several groups");
        let (mut a, _) = matrix(m, k, 1);
        let (mut b, _) = matrix(k, n, 2);
        let panels = n.div_ceil(PANEL);
        let [mut whole, mut single] = [0, 1].map(|_| Buffer::zeros(panels * m * PANEL));
        let (a, b) = (view(&mut a, m), view(&mut b, k));
        let isa = Supported::detect();
        let mut finished = Vec::new();
        let product = Product { k, panels, a, b, bias: None, c: view(&mut whole, m) };
        // SAFETY: the matrices were built with these extents.
        unsafe { row_block(isa, (0, m), &product, |first, count| finished.extend(first..first + count)) };
        assert!(finished.into_iter().eq(0..m), "each row is done once, in order");
        let product = Product { c: view(&mut single, m), ..product };
        for row in 0..m {
            // SAFETY: as above.
            unsafe { row_block(isa, (row, row + 1), &product, |_, _| {}) };
        }
        assert!(whole.iter().zip(single.iter()).all(|(x, y)| x.to_bits() == y.to_bits()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn row_blocks_match_plain_products(m in 1usize..70, k in 0usize..70, n in 1usize..70, bias: bool) {
            let (mut a, plain_a) = matrix(m, k, 1);
            let (mut b, plain_b) = matrix(k, n, 2);
            let (bias_row, _) = matrix(1, n, 3);
            let mut fused: Option<Buffer> = None;
            for isa in supported() {
                let panels = n.div_ceil(PANEL);
                let mut c = Buffer::zeros(panels * m * PANEL);
                c.fill(f32::NAN);
                let mut finished = 0;
                let product = Product {
                    k,
                    panels,
                    a: view(&mut a, m),
                    b: view(&mut b, k),
                    bias: bias.then_some(bias_row.as_ptr()),
                    c: view(&mut c, m),
                };
                // SAFETY: the matrices were built with these extents.
                unsafe { row_block(isa, (0, m), &product, |_, count| finished += count) };
                prop_assert_eq!(finished, m);
                for r in 0..m {
                    for j in 0..panels * PANEL {
                        let start = if bias { f64::from(bias_row[j]) } else { 0.0 };
                        let sum = |i: usize| f64::from(plain_a[r * k + i]) * f64::from(plain_b[i * n + j]);
                        let exact = if j < n { (0..k).map(sum).sum::<f64>() + start } else { 0.0 };
                        let found = f64::from(c[(j / PANEL * m + r) * PANEL + j % PANEL]);
                        prop_assert!((found - exact).abs() < 1e-5, "{isa:?} ({r}, {j}): {found} for {exact}");
                    }
                }
                if isa.isa() != Isa::Scalar {
                    let first = fused.get_or_insert_with(|| c.clone());
                    prop_assert!(first.iter().zip(c.iter()).all(|(x, y)| x.to_bits() == y.to_bits()));
                }
            }
        }

        #[test]
        fn transposed_panels_match_plain_products(
            m in 1usize..70,
            total in 1usize..70,
            panels in 1usize..3,
            keep in 1usize..4,
            accumulate: bool,
        ) {
            let rows: Vec<u32> = (0..total as u32).filter(|r| keep == 1 || r % keep as u32 == 1).collect();
            let (mut a, plain_a) = matrix(total, m, 4);
            let n = panels * PANEL;
            let (mut b, plain_b) = matrix(rows.len(), n, 5);
            let mut fused: Option<Buffer> = None;
            for isa in supported() {
                let mut c = Buffer::zeros(m * n);
                c.fill(0.25);
                let start = if accumulate { Start::Output } else { Start::Zero };
                // SAFETY: the matrices were built with these extents.
                unsafe {
                    let (a, b, c) = (view(&mut a, total), view(&mut b, rows.len()), view(&mut c, m));
                    transposed_panels(isa, &TransposedProduct { rows: &rows, columns: m, panels, a, b, c, start });
                }
                for i in 0..m {
                    for j in 0..n {
                        let term = |(r, &row): (usize, &u32)| {
                            f64::from(plain_a[row as usize * m + i]) * f64::from(plain_b[r * n + j])
                        };
                        let sum: f64 = rows.iter().enumerate().map(term).sum();
                        let exact = sum + if accumulate { 0.25 } else { 0.0 };
                        let found = f64::from(c[(j / PANEL * m + i) * PANEL + j % PANEL]);
                        prop_assert!((found - exact).abs() < 1e-5, "{isa:?} ({i}, {j}): {found} for {exact}");
                    }
                }
                if isa.isa() != Isa::Scalar {
                    let first = fused.get_or_insert_with(|| c.clone());
                    prop_assert!(first.iter().zip(c.iter()).all(|(x, y)| x.to_bits() == y.to_bits()));
                }
            }
        }
    }
}

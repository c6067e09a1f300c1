//! Row operations between two products: activation and LayerNorm, forward and backward.
//!
//! Each function is one plain loop body, compiled once per instruction set. Sums over a row keep one partial
//! sum per column of a panel and combine those in a fixed tree, so every instruction set gives the same bits.
#![allow(unsafe_code)]

use crate::activation::{Activation, Curve, with_curve};
use crate::gemm::{PANEL, Panels};
use crate::math::fma;
use crate::simd::{Isa, Supported};

/// LayerNorm's epsilon, added to the variance.
pub const NORM_EPSILON: f32 = 1e-6;

/// One row of one panel.
pub(crate) type Lanes = [f32; PANEL];

/// Compiles `body::<FUSED>(job, from, count)` for every instruction set and picks one at run time.
macro_rules! per_isa {
    ($(#[$doc:meta])* $name:ident, $body:ident, $job:ty) => {
        $(#[$doc])*
        pub(crate) unsafe fn $name(isa: Supported, job: &$job, from: usize, count: usize) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2(job: &$job, from: usize, count: usize) {
                // SAFETY: promised by the caller of the outer function.
                unsafe { $body::<true>(job, from, count) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")]
            unsafe fn avx512(job: &$job, from: usize, count: usize) {
                // SAFETY: promised by the caller of the outer function.
                unsafe { $body::<true>(job, from, count) }
            }
            // SAFETY: the extents are promised by the caller; `Supported` proves the instruction set.
            unsafe {
                match isa.isa() {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => avx2(job, from, count),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => avx512(job, from, count),
                    #[cfg(target_arch = "aarch64")]
                    Isa::Neon => $body::<true>(job, from, count),
                    _ => $body::<false>(job, from, count),
                }
            }
        }
    };
}
pub(crate) use per_isa;

/// A hidden layer after its product: `y = norm(activation(z))`.
pub(crate) struct Activate {
    /// Pre-activations with the bias added. May be the same memory as `y`.
    pub(crate) z: Panels,
    pub(crate) y: Panels,
    /// Width of the layer, without padding.
    pub(crate) width: usize,
    pub(crate) activation: Activation,
    pub(crate) norm: Option<Norm>,
    /// Activations below this size become zero.
    pub(crate) least: f32,
}

/// LayerNorm's parameters (padded with zeros) and the mean and 1 / standard deviation kept for each row.
#[derive(Clone, Copy)]
pub(crate) struct Norm {
    pub(crate) scale: *const f32,
    pub(crate) shift: *const f32,
    pub(crate) stats: *mut f32,
}

per_isa! {
    /// Activates rows `from..from + count`.
    ///
    /// # Safety
    /// The rows exist in all matrices and no other thread uses them.
    activate, activate_body, Activate
}

/// Number of rows that go through LayerNorm together, so that the sums over one row, long chains of dependent
/// additions, overlap with the work on the next.
const GROUP: usize = 4;

#[inline(always)]
unsafe fn activate_body<const FUSED: bool>(job: &Activate, from: usize, count: usize) {
    // SAFETY: promised by the caller.
    unsafe { with_curve!(job.activation, FUSED, activate_by(job, from, count)) }
}

#[inline(always)]
unsafe fn activate_by<const FUSED: bool, C: Curve>(job: &Activate, from: usize, count: usize) {
    let panels = job.width.div_ceil(PANEL);
    let width = job.width as f32;
    let mut first = from;
    while first < from + count {
        let rows = (from + count - first).min(GROUP);
        let mut sums = [[0.0; PANEL]; GROUP];
        for r in 0..rows {
            let mut sum = [0.0; PANEL];
            for p in 0..panels {
                // SAFETY: panel `p` and the row exist; the values are copied, so `z` and `y` may coincide.
                unsafe {
                    let mut x = read(job.z, p, first + r);
                    for i in 0..PANEL {
                        x[i] = at_least(job.least, C::value::<FUSED>(x[i]));
                        sum[i] += x[i];
                    }
                    write(job.y, p, first + r, x);
                }
            }
            sums[r] = sum;
        }
        if let Some(norm) = job.norm {
            let mean = totals(&sums).map(|sum| sum / width);
            let mut squares_of = [[0.0; PANEL]; GROUP];
            for r in 0..rows {
                let mut squares = [0.0; PANEL];
                for p in 0..panels {
                    // SAFETY: as above.
                    let x = unsafe { read(job.y, p, first + r) };
                    let mut deviation = [0.0; PANEL];
                    for i in 0..PANEL {
                        deviation[i] = x[i] - mean[r];
                    }
                    clear_padding(&mut deviation, job.width, p);
                    for i in 0..PANEL {
                        squares[i] = fma::<FUSED>(deviation[i], deviation[i], squares[i]);
                    }
                }
                squares_of[r] = squares;
            }
            let inverse = totals(&squares_of).map(|sum| 1.0 / (sum / width + NORM_EPSILON).sqrt());
            for r in 0..rows {
                for p in 0..panels {
                    // SAFETY: as above; the parameters have a value for each padded column.
                    unsafe {
                        let scale: Lanes = norm.scale.add(p * PANEL).cast::<Lanes>().read();
                        let shift: Lanes = norm.shift.add(p * PANEL).cast::<Lanes>().read();
                        let mut x = read(job.y, p, first + r);
                        for i in 0..PANEL {
                            x[i] = fma::<FUSED>((x[i] - mean[r]) * inverse[r], scale[i], shift[i]);
                        }
                        write(job.y, p, first + r, x);
                    }
                }
                // SAFETY: two values per row.
                unsafe {
                    *norm.stats.add(2 * (first + r)) = mean[r];
                    *norm.stats.add(2 * (first + r) + 1) = inverse[r];
                }
            }
        }
        first += rows;
    }
}

/// Backward pass of a hidden layer: from the gradient of its output to that of `z`, in place.
pub(crate) struct Deactivate<'a> {
    /// In: gradient of the layer's output; out: gradient of `z`. Row `i` belongs to row `rows[i]` of `z`.
    pub(crate) gradient: Panels,
    pub(crate) rows: &'a [u32],
    pub(crate) z: Panels,
    pub(crate) width: usize,
    pub(crate) activation: Activation,
    pub(crate) norm: Option<Norm>,
    /// Gradients of `z` below this size become zero.
    pub(crate) least: f32,
    /// [`SCRATCH`] padded widths of floats owned by this thread.
    pub(crate) scratch: *mut f32,
    /// Sums of the gradients of LayerNorm's scale and shift over each block of [`NORM_BLOCK`] rows of
    /// `gradient`: a padded width of each per block. Null to skip them.
    pub(crate) norm_sums: *mut f32,
}

/// Padded widths of scratch for [`deactivate`].
pub(crate) const SCRATCH: usize = 2 * GROUP;

/// Rows whose contributions to LayerNorm's gradients are summed before the blocks are.
pub(crate) const NORM_BLOCK: usize = 32;

per_isa! {
    /// Back-propagates rows `from..from + count` of the gradient through the layer.
    ///
    /// # Safety
    /// The rows exist in all matrices, no other thread uses them or the norm sums of their blocks, and
    /// rows of a block come in order.
    deactivate, deactivate_body, Deactivate<'_>
}

#[inline(always)]
unsafe fn deactivate_body<const FUSED: bool>(job: &Deactivate<'_>, from: usize, count: usize) {
    // SAFETY: promised by the caller.
    unsafe { with_curve!(job.activation, FUSED, deactivate_by(job, from, count)) }
}

#[inline(always)]
unsafe fn deactivate_by<const FUSED: bool, C: Curve>(job: &Deactivate<'_>, from: usize, count: usize) {
    let panels = job.width.div_ceil(PANEL);
    let padded = panels * PANEL;
    let width = job.width as f32;
    let Some(norm) = job.norm else {
        for row in from..from + count {
            for p in 0..panels {
                // SAFETY: panel `p` and both rows exist.
                unsafe {
                    let z = read(job.z, p, job.rows[row] as usize);
                    let mut g = read(job.gradient, p, row);
                    for i in 0..PANEL {
                        g[i] = at_least(job.least, g[i] * C::with_slope::<FUSED>(z[i]).1);
                    }
                    write(job.gradient, p, row, g);
                }
            }
        }
        return;
    };
    let mut first = from;
    while first < from + count {
        let rows = (from + count - first).min(GROUP);
        let (mut sums, mut dots) = ([[0.0; PANEL]; GROUP], [[0.0; PANEL]; GROUP]);
        let mut inverses = [0.0; GROUP];
        for r in 0..rows {
            let source = job.rows[first + r] as usize;
            // SAFETY: two values per row.
            let (mean, inverse) = unsafe { (*norm.stats.add(2 * source), *norm.stats.add(2 * source + 1)) };
            let slopes = job.scratch.wrapping_add(2 * r * padded);
            let normals = slopes.wrapping_add(padded);
            let (mut sum, mut dot) = ([0.0; PANEL], [0.0; PANEL]);
            for p in 0..panels {
                // SAFETY: panel `p` and both rows exist; scratch and parameters have a value for each
                // padded column.
                unsafe {
                    let scale: Lanes = norm.scale.add(p * PANEL).cast::<Lanes>().read();
                    let z = read(job.z, p, source);
                    let g = read(job.gradient, p, first + r);
                    let (mut slope, mut normal) = ([0.0; PANEL], [0.0; PANEL]);
                    for i in 0..PANEL {
                        let (y, d) = C::with_slope::<FUSED>(z[i]);
                        slope[i] = d;
                        normal[i] = (y - mean) * inverse;
                        let dn = g[i] * scale[i];
                        sum[i] += dn;
                        dot[i] = fma::<FUSED>(dn, normal[i], dot[i]);
                    }
                    slopes.add(p * PANEL).cast::<Lanes>().write(slope);
                    normals.add(p * PANEL).cast::<Lanes>().write(normal);
                }
            }
            (sums[r], dots[r], inverses[r]) = (sum, dot, inverse);
        }
        let [sums, dots] = [totals(&sums), totals(&dots)].map(|sums| sums.map(|sum| sum / width));
        for r in 0..rows {
            let row = first + r;
            let slopes = job.scratch.wrapping_add(2 * r * padded);
            let normals = slopes.wrapping_add(padded);
            for p in 0..panels {
                // SAFETY: as above; the block's sums have two padded widths.
                unsafe {
                    let scale: Lanes = norm.scale.add(p * PANEL).cast::<Lanes>().read();
                    let slope = slopes.add(p * PANEL).cast::<Lanes>().read();
                    let normal = normals.add(p * PANEL).cast::<Lanes>().read();
                    let g = read(job.gradient, p, row);
                    let mut dz = [0.0; PANEL];
                    for i in 0..PANEL {
                        let dn = fma::<FUSED>(g[i], scale[i], -sums[r]);
                        let gradient = fma::<FUSED>(-normal[i], dots[r], dn) * inverses[r] * slope[i];
                        dz[i] = at_least(job.least, gradient);
                    }
                    clear_padding(&mut dz, job.width, p);
                    write(job.gradient, p, row, dz);
                    if !job.norm_sums.is_null() {
                        let at = job.norm_sums.add(row / NORM_BLOCK * 2 * padded + p * PANEL);
                        let (scales, shifts) = (at.cast::<Lanes>(), at.add(padded).cast::<Lanes>());
                        let fresh = row.is_multiple_of(NORM_BLOCK);
                        let mut ds = if fresh { [0.0; PANEL] } else { scales.read() };
                        let mut db = if fresh { [0.0; PANEL] } else { shifts.read() };
                        for i in 0..PANEL {
                            ds[i] = fma::<FUSED>(g[i], normal[i], ds[i]);
                            db[i] += g[i];
                        }
                        scales.write(ds);
                        shifts.write(db);
                    }
                }
            }
        }
        first += rows;
    }
}

#[inline(always)]
unsafe fn read(matrix: Panels, panel: usize, row: usize) -> Lanes {
    // SAFETY: promised by the caller.
    unsafe { matrix.at(panel, row).cast::<Lanes>().read() }
}

#[inline(always)]
unsafe fn write(matrix: Panels, panel: usize, row: usize, lanes: Lanes) {
    // SAFETY: promised by the caller.
    unsafe { matrix.at(panel, row).cast::<Lanes>().write(lanes) }
}

/// `x`, or zero if it is smaller in size than `least`.
#[inline(always)]
fn at_least(least: f32, x: f32) -> f32 {
    if x.abs() < least { 0.0 } else { x }
}

/// As many ones as a panel has lanes, then as many zeros.
static KEEP: [u32; 2 * PANEL] = {
    let mut keep = [0; 2 * PANEL];
    let mut i = 0;
    while i < PANEL {
        keep[i] = u32::MAX;
        i += 1;
    }
    keep
};

/// Zeroes the padding lanes of the last panel. Comparing each lane's index with the width instead of loading a mask
/// takes two to three times as long: the compiler makes a branch of every comparison.
#[inline(always)]
fn clear_padding(lanes: &mut Lanes, width: usize, panel: usize) {
    let valid = (width - panel * PANEL).min(PANEL);
    let keep = &KEEP[PANEL - valid..][..PANEL];
    for i in 0..PANEL {
        lanes[i] = f32::from_bits(lanes[i].to_bits() & keep[i]);
    }
}

/// The sum of all lanes of each row, by pairwise halving: one step a line, because the compiler makes scalar code of a loop
/// over the widths.
#[inline(always)]
fn totals(rows: &[Lanes; GROUP]) -> [f32; GROUP] {
    let mut totals = [0.0; GROUP];
    for (total, lanes) in totals.iter_mut().zip(rows) {
        let sixteen: [f32; 16] = std::array::from_fn(|i| lanes[i] + lanes[i + 16]);
        let eight: [f32; 8] = std::array::from_fn(|i| sixteen[i] + sixteen[i + 8]);
        let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
        *total = (four[0] + four[2]) + (four[1] + four[3]);
    }
    totals
}

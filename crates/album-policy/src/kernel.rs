//! Matrix products of dense layers.
//!
//! A kernel is divided into blocks of 32, 8 and single columns, each stored row by row, so that a product
//! reads it sequentially. The inner loops have constant lengths, so the compiler vectorises them for every
//! instruction set that `dispatch!` selects from. Each sum is taken in the same order everywhere, and
//! multiplications are never fused with additions: all machines get the same bits.

use crate::math;
use fearless_simd::{Level, Simd, dispatch, f32x16, prelude::*};

const WIDE: usize = 32;
const HALF: usize = WIDE / 2;
const NARROW: usize = 8;

/// The kernel of a dense layer.
#[derive(Debug)]
pub struct Kernel {
    inputs: usize,
    outputs: usize,
    /// Blocks of columns, one after the other.
    blocks: Vec<f32>,
}

impl Kernel {
    /// From `inputs x outputs` numbers, row by row.
    pub fn new(inputs: usize, outputs: usize, data: &[f32]) -> Self {
        let mut blocks = Vec::with_capacity(data.len());
        for (column, width) in columns(outputs) {
            for row in data.chunks_exact(outputs.max(1)) {
                blocks.extend_from_slice(&row[column..column + width]);
            }
        }
        Kernel { inputs, outputs, blocks }
    }

    /// `out = x W + b` for every row of `x`.
    pub fn apply(&self, x: &[f32], bias: Option<&[f32]>, out: &mut [f32]) {
        dispatch!(Level::new(), simd => self.multiply(simd, x, bias, out));
    }

    #[inline(always)]
    fn multiply<S: Simd>(&self, simd: S, x: &[f32], bias: Option<&[f32]>, out: &mut [f32]) {
        let mut rest = &self.blocks[..];
        for (column, width) in columns(self.outputs) {
            let (block, after) = rest.split_at(width * self.inputs);
            rest = after;
            let target = Target { outputs: self.outputs, column, bias };
            match width {
                WIDE => {
                    let four = 4 * self.inputs * (x.len() / (4 * self.inputs));
                    let (x, x_rest) = x.split_at(four);
                    let (out, out_rest) = out.split_at_mut(four / self.inputs * self.outputs);
                    fours(simd, x, self.inputs, (block, 0), &target, out);
                    fours(simd, x, self.inputs, (block, HALF), &target, out);
                    each::<WIDE>(x_rest, self.inputs, block, &target, out_rest);
                }
                NARROW => each::<NARROW>(x, self.inputs, block, &target, out),
                _ => {
                    let rows = x.chunks_exact(self.inputs).zip(out.chunks_exact_mut(self.outputs));
                    rows.for_each(|(x, out)| target.write(&[math::dot(x, block)], out));
                }
            }
        }
    }
}

/// The first column and the width of every block.
fn columns(outputs: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let column = at;
        let width = match outputs - column {
            0 => return None,
            left if left >= WIDE => WIDE,
            left if left >= NARROW => NARROW,
            _ => 1,
        };
        at += width;
        Some((column, width))
    })
}

/// The destination of a block's results.
#[derive(Clone, Copy)]
struct Target<'a> {
    outputs: usize,
    column: usize,
    bias: Option<&'a [f32]>,
}

impl Target<'_> {
    #[inline(always)]
    fn write<const W: usize>(&self, sums: &[f32; W], row: &mut [f32]) {
        let out = &mut row[self.column..][..W];
        out.copy_from_slice(sums);
        if let Some(bias) = self.bias {
            out.iter_mut().zip(&bias[self.column..]).for_each(|(out, bias)| *out += bias);
        }
    }
}

/// Half a block, starting at a column, for four rows at a time: each value read is used four times. Vectors
/// are explicit, because the compiler does not vectorise so many sums.
#[inline(always)]
fn fours<S: Simd>(
    simd: S,
    x: &[f32],
    inputs: usize,
    (block, from): (&[f32], usize),
    target: &Target<'_>,
    out: &mut [f32],
) {
    let (block, _) = block.as_chunks::<WIDE>();
    let target = Target { column: target.column + from, ..*target };
    for (x, out) in x.chunks_exact(4 * inputs).zip(out.chunks_exact_mut(4 * target.outputs)) {
        let (ab, cd) = x.split_at(2 * inputs);
        let ((a, b), (c, d)) = (ab.split_at(inputs), cd.split_at(inputs));
        let mut sums = [f32x16::splat(simd, 0.0); 4];
        for ((((w, a), b), c), d) in block.iter().zip(a).zip(b).zip(c).zip(d) {
            let w = f32x16::from_slice(simd, &w[from..from + HALF]);
            sums[0] += w * *a;
            sums[1] += w * *b;
            sums[2] += w * *c;
            sums[3] += w * *d;
        }
        for (sums, out) in sums.into_iter().zip(out.chunks_exact_mut(target.outputs)) {
            target.write(&sums.into(), out);
        }
    }
}

/// One block for all rows, one after the other: the sums of a row fill the registers, and the block stays in
/// cache.
#[inline(always)]
fn each<const W: usize>(x: &[f32], inputs: usize, block: &[f32], target: &Target<'_>, out: &mut [f32]) {
    let (block, _) = block.as_chunks::<W>();
    for (x, out) in x.chunks_exact(inputs).zip(out.chunks_exact_mut(target.outputs)) {
        let mut sums = [0.0f32; W];
        for (x, w) in x.iter().zip(block) {
            for j in 0..W {
                sums[j] += x * w[j];
            }
        }
        target.write(&sums, out);
    }
}

//! One MLP applied to one batch: the forward pass, and the backward pass over active rows.
//!
//! Forward and input gradients are parallel over blocks of rows, each of which runs through all layers
//! on one thread while its activations stay in cache. Weight gradients are parallel over panels of the
//! kernels, each summed over all rows in order by one thread. No sum is ever split between threads.
#![allow(unsafe_code)]

mod backward;
mod forward;
mod pack;

use std::sync::Arc;

use crate::activation::Activation;
use crate::buffer::Buffer;
use crate::gemm::{PANEL, Panels, Start};
use crate::layout::{Layer, Layout};
use crate::mlp::Weights;
use crate::pool::Pool;
use crate::rowwise::{NORM_BLOCK, Norm};

pub(crate) use backward::Scratch;

/// Maximum rows per parallel task: enough to amortise reading the weights once, few enough to balance threads
/// of different speed.
const BLOCK_ROWS: usize = 128;

/// Floats between panels of a batch of `rows` rows. An odd number of rows keeps the panels of a row out of
/// the same cache sets.
fn stride(rows: usize) -> usize {
    (rows | 1) * PANEL
}

/// What one hidden layer keeps for the backward pass.
#[derive(Default)]
struct Hidden {
    z: Buffer,
    y: Buffer,
    /// LayerNorm's mean and 1 / standard deviation of each row.
    stats: Buffer,
}

/// Output pointers of a hidden layer's tasks, collected before they start, since they cannot share
/// references.
#[derive(Clone, Copy)]
struct Operands {
    z: Panels,
    y: Panels,
    stats: *mut f32,
}

/// The network of an application, held until the backward pass is over.
struct Bound {
    layout: Arc<Layout>,
    weights: Arc<Weights>,
    activation: Activation,
}

/// An application of a network; the next one in the same slot reuses its buffers.
#[derive(Default)]
pub(crate) struct Application {
    bound: Option<Bound>,
    pub(crate) net: u64,
    rows: usize,
    /// Input, in panels.
    x: Buffer,
    /// Hidden layers, member after member; only two per member without a backward pass.
    hidden: Vec<Hidden>,
    /// Outputs of each member, in panels.
    out: Vec<Buffer>,
    /// Views of `hidden` and `out` during the forward pass.
    operands: Shared<Vec<Operands>>,
    outputs: Shared<Vec<Panels>>,
}

/// How rows are divided: `(rows per task, tasks)`. Tasks hold whole norm blocks and have equal size.
fn row_tasks(rows: usize, pool: &Pool) -> (usize, usize) {
    let blocks = rows.div_ceil(NORM_BLOCK);
    let per_task = blocks.div_ceil(most_tasks(rows, pool)).max(1) * NORM_BLOCK;
    (per_task, rows.div_ceil(per_task))
}

/// Upper bound on the number of tasks for up to `rows` rows: as many per thread as [`BLOCK_ROWS`] requires.
fn most_tasks(rows: usize, pool: &Pool) -> usize {
    pool.threads() * rows.div_ceil(pool.threads() * BLOCK_ROWS).max(1)
}

/// A matrix in panels inside `buffer`.
fn panels(buffer: &mut Buffer, stride: usize) -> Panels {
    Panels { ptr: buffer.as_mut_ptr(), stride }
}

/// A constant matrix as a kernel operand; kernels write only to their output.
fn read_only(slice: &[f32], stride: usize) -> Panels {
    Panels { ptr: slice.as_ptr().cast_mut(), stride }
}

/// A kernel operand: numbers and pointers, which by themselves access nothing.
///
/// # Safety
/// Reading or copying a value from several threads is harmless; only dereferencing its pointers is not, and every
/// dereference states why it does not race.
unsafe trait Operand {}
// SAFETY: a pointer and a number.
unsafe impl Operand for Panels {}
// SAFETY: two of these and a pointer.
unsafe impl Operand for Operands {}
// SAFETY: one of these and a pointer.
unsafe impl Operand for (Panels, *mut f32) {}
// SAFETY: a pointer at most.
unsafe impl Operand for Start {}
// SAFETY: shared references to a vector give shared references to its elements and nothing else.
unsafe impl<T: Operand> Operand for Vec<T> {}

/// Shares a raw operand between threads.
#[derive(Clone, Copy, Default)]
struct Shared<T>(T);
// SAFETY: the promise of `Operand`.
unsafe impl<T: Operand> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Operand> Send for Shared<T> {}
impl<T> Shared<T> {
    /// A method, so that closures capture the wrapper and not the pointer inside.
    fn get(&self) -> &T {
        &self.0
    }
}

impl Application {
    /// Floating-point operations of the backward pass, for weights and for inputs; the first layer skips the
    /// input gradient if it is not needed.
    pub(crate) fn backward_operations(&self, weights: bool, input: bool) -> f64 {
        let Some(Bound { layout, .. }) = &self.bound else { return 0.0 };
        let all = layout.products();
        let first = layout.layers.first().map_or(0, |layer| layout.members * layer.inputs * layer.outputs);
        let rows_back = if input { all } else { all - first };
        2.0 * self.rows as f64 * (rows_back + if weights { all } else { 0 }) as f64
    }

    /// Releases the weights, so that the network can change them in place.
    pub(crate) fn release(&mut self) {
        self.bound = None;
    }
}

/// Number of buffers for the hidden layers of one member: all of them with a backward pass, otherwise two in
/// alternation.
fn slots(depth: usize, keep: bool) -> usize {
    let hidden = depth - 1;
    if keep { hidden.max(1) } else { hidden.clamp(1, 2) }
}

/// LayerNorm's operands, if the layer has it.
fn norm_of(layer: &Layer, params: &[f32], stats: *mut f32) -> Option<Norm> {
    let (scale, shift) = (layer.scale?, layer.shift()?);
    Some(Norm { scale: params[scale..].as_ptr(), shift: params[shift..].as_ptr(), stats })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_cover_all_rows_and_stay_within_their_bound() {
        for threads in [1, 2, 3, 5, 8] {
            let pool = Pool::new(threads);
            for all in (0usize..3000).step_by(31) {
                for rows in [all, all / 2, all / 3, all.saturating_sub(32)] {
                    let (per_task, tasks) = row_tasks(rows, &pool);
                    assert!(tasks * per_task >= rows && per_task.is_multiple_of(NORM_BLOCK));
                    // Scratch is sized for all rows, then used for the active ones.
                    assert!(tasks <= most_tasks(all, &pool), "{rows} of {all} rows, {threads} threads");
                }
            }
        }
    }
}

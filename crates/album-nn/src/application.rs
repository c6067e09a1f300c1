//! One MLP applied to one batch: the forward pass, and the backward pass over active rows.
//!
//! Forward and input gradients are parallel over blocks of rows, each of which runs through all layers
//! on one thread while its activations stay in cache. Weight gradients are parallel over panels of the
//! kernels, each summed over all rows in order by one thread. No sum is ever split between threads.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::buffer::{Buffer, SharedMut};
use crate::gemm::{PANEL, Panels, Product, Start, row_block, transposed_panel};
use crate::layout::{Layer, Layout, padded};
use crate::mlp::{Mlp, Weights};
use crate::pool::Pool;
use crate::rowwise::{Activate, Deactivate, NORM_BLOCK, Norm, SCRATCH, activate, deactivate};

/// Most rows of one parallel task: enough to pay for reading the weights once, few enough for the
/// second-level cache.
const BLOCK_ROWS: usize = 512;

/// Floats between panels of a batch of `rows` rows. An odd number of rows keeps the panels of a row
/// from falling into the same cache sets.
fn stride(rows: usize) -> usize {
    (rows | 1) * PANEL
}

/// What one hidden layer leaves behind for the backward pass.
#[derive(Default)]
struct Hidden {
    z: Buffer,
    y: Buffer,
    /// LayerNorm's mean and 1/deviation of each row.
    stats: Buffer,
}

/// Where a hidden layer's tasks write; collected before they start, since they may not share references.
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
}

/// An application of a network; its buffers are reused by the next one in the same place.
#[derive(Default)]
pub(crate) struct Application {
    bound: Option<Bound>,
    pub(crate) net: u64,
    rows: usize,
    /// Input, in panels.
    x: Buffer,
    /// Hidden layers, member after member; only two per member if no backward pass will come.
    hidden: Vec<Hidden>,
    /// Outputs of each member, in panels.
    out: Vec<Buffer>,
    /// Views of `hidden` and `out` during the forward pass.
    operands: Shared<Vec<Operands>>,
    outputs: Shared<Vec<Panels>>,
}

/// Buffers of the backward pass, shared by all applications of a tape.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Gradients of each layer's pre-activations, active rows only, in panels.
    dz: Vec<Buffer>,
    /// Per hidden layer: see [`Deactivate::norm_sums`].
    norm_sums: Vec<Buffer>,
    /// Input gradient of the active rows, in panels.
    dx: Buffer,
    /// Indices of the rows with a gradient.
    active: Vec<u32>,
    /// For [`Deactivate::scratch`], task after task.
    rowwise: Buffer,
    /// Views of `dz` and `norm_sums` while tasks fill them.
    views: Shared<Vec<(Panels, *mut f32)>>,
}

/// How rows are shared out: `(rows per task, tasks)`.
///
/// At most as many tasks as threads, or as blocks of [`BLOCK_ROWS`].
fn row_tasks(rows: usize, pool: &Pool) -> (usize, usize) {
    let blocks = rows.div_ceil(NORM_BLOCK);
    let per_task = blocks.div_ceil(pool.threads()).clamp(1, BLOCK_ROWS / NORM_BLOCK) * NORM_BLOCK;
    (per_task, rows.div_ceil(per_task))
}

/// A matrix in panels inside `buffer`.
fn panels(buffer: &mut Buffer, stride: usize) -> Panels {
    Panels { ptr: buffer.as_mut_ptr(), stride }
}

/// A constant matrix as a kernel operand; the kernels only write to their output.
fn read_only(slice: &[f32], stride: usize) -> Panels {
    Panels { ptr: slice.as_ptr().cast_mut(), stride }
}

/// Lets several threads use raw operands; each dereference states why it does not race.
#[derive(Clone, Copy, Default)]
struct Shared<T>(T);
// SAFETY: `Panels` and pointers carry no access by themselves.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}
impl<T> Shared<T> {
    /// A method, so that closures capture the wrapper and not the pointer inside.
    fn get(&self) -> &T {
        &self.0
    }
}

impl Application {
    /// Applies `net` to `rows` rows in `input` and writes the outputs of all members side by side.
    /// `keep` keeps what a backward pass needs.
    pub(crate) fn forward(
        &mut self,
        pool: &Pool,
        net: &Mlp,
        input: &[f32],
        rows: usize,
        keep: bool,
        output: &mut [f32],
    ) {
        let layout = net.layout().clone();
        let weights = net.weights().clone();
        let depth = layout.layers.len();
        let members = layout.members;
        let stride = stride(rows);
        let inputs = layout.layers[0].inputs;
        let outputs = layout.layers[depth - 1].outputs;
        self.net = net.id();
        self.rows = rows;
        self.x.resize(padded(inputs) / PANEL * stride);
        pack_rows(input, inputs, &mut self.x, stride);

        let slots = self.slots(depth, keep);
        self.hidden.resize_with((members * slots).max(self.hidden.len()), Hidden::default);
        self.out.resize_with(members.max(self.out.len()), Buffer::default);
        for member in 0..members {
            for l in 0..depth - 1 {
                let len = layout.layers[l].panels() * stride;
                let hidden = &mut self.hidden[member * slots + l % slots];
                if keep {
                    hidden.z.resize(len);
                }
                if hidden.y.len() < len || keep {
                    hidden.y.resize(len);
                }
                hidden.stats.resize(2 * rows);
            }
            self.out[member].resize(layout.layers[depth - 1].panels() * stride);
        }

        let operands = &mut self.operands.0;
        operands.clear();
        operands.extend(self.hidden[..members * slots].iter_mut().map(|hidden| {
            let y = panels(&mut hidden.y, stride);
            let z = if keep { panels(&mut hidden.z, stride) } else { y };
            Operands { z, y, stats: hidden.stats.as_mut_ptr() }
        }));
        self.outputs.0.clear();
        self.outputs.0.extend(self.out[..members].iter_mut().map(|out| panels(out, stride)));
        let x = Shared(read_only(&self.x, stride));
        let (operands, outs) = (&self.operands, &self.outputs);
        let output = SharedMut::new(output);
        let isa = pool.isa();
        let (per_task, tasks) = row_tasks(rows, pool);
        pool.run(members * tasks, &|task| {
            let (member, block) = (task / tasks, task % tasks);
            let range = (block * per_task, (block * per_task + per_task).min(rows));
            let params = &weights.params[member * layout.member_len..][..layout.member_len];
            let mut a = *x.get();
            for (l, layer) in layout.layers.iter().enumerate() {
                let b = read_only(&params[layer.kernel..], layer.inputs * PANEL);
                let bias = Some(params[layer.bias..].as_ptr());
                let product = |c| Product { k: layer.inputs, panels: layer.panels(), a, b, bias, c };
                // SAFETY: the buffers were sized above for `rows` rows of every layer; a task writes only
                // the rows in `range` of its member's matrices, and no two tasks share those.
                unsafe {
                    if l + 1 == depth {
                        let c = outs.get()[member];
                        row_block(isa, range, &product(c), |from, count| {
                            for row in from..from + count {
                                let at = (row * members + member) * outputs;
                                unpack_row(c, row, output.slice(at, outputs));
                            }
                        });
                    } else {
                        let Operands { z, y, stats } = operands.get()[member * slots + l % slots];
                        let job =
                            Activate { z, y, width: layer.outputs, norm: norm_of(layer, params, stats) };
                        row_block(isa, range, &product(z), |from, count| activate(isa, &job, from, count));
                        a = y;
                    }
                }
            }
        });
        self.bound = Some(Bound { layout, weights });
    }

    /// Buffers for hidden layers per member.
    fn slots(&self, depth: usize, keep: bool) -> usize {
        let hidden = depth - 1;
        if keep { hidden.max(1) } else { hidden.clamp(1, 2) }
    }

    /// Lets go of the weights, so that the network can change them in place.
    pub(crate) fn release(&mut self) {
        self.bound = None;
    }

    /// Back-propagates `upstream` (gradient of the output). Adds to `weights`, if given, the gradients of
    /// the parameters, and to `input`, if given, those of the input. `weights` is overwritten instead when
    /// `fresh`. `compact` leaves out rows whose upstream gradient is zero.
    #[allow(clippy::too_many_arguments)] // one call site, in the tape
    pub(crate) fn backward(
        &mut self,
        pool: &Pool,
        scratch: &mut Scratch,
        upstream: &[f32],
        mut weight_gradient: Option<(&mut [f32], bool)>,
        mut input_gradient: Option<&mut [f32]>,
        compact: bool,
        timings: &mut crate::tape::Timings,
    ) {
        let Some(bound) = &self.bound else {
            unreachable!("the tape runs one backward pass before it releases its applications")
        };
        let members = bound.layout.members;
        for member in 0..members {
            let started = std::time::Instant::now();
            find_active(upstream, self.rows, members, member, compact, &mut scratch.active);
            self.backward_rows(
                pool,
                scratch,
                upstream,
                member,
                weight_gradient.is_some(),
                input_gradient.as_deref_mut(),
            );
            let between = std::time::Instant::now();
            timings.backward_rows += between - started;
            if let Some((gradient, fresh)) = &mut weight_gradient {
                let start = if *fresh { Start::Zero } else { Start::Output };
                let len = bound.layout.member_len;
                let gradient = &mut gradient[member * len..][..len];
                self.backward_weights(pool, scratch, member, gradient, start);
            }
            timings.backward_weights += between.elapsed();
        }
    }

    /// Fills `scratch.dz` for one member from the last layer to the first, then the input gradient.
    fn backward_rows(
        &self,
        pool: &Pool,
        scratch: &mut Scratch,
        upstream: &[f32],
        member: usize,
        collect: bool,
        input_gradient: Option<&mut [f32]>,
    ) {
        let Some(Bound { layout, weights }) = &self.bound else { return };
        let depth = layout.layers.len();
        let inputs = layout.layers[0].inputs;
        let outputs = layout.layers[depth - 1].outputs;
        let columns = layout.members * outputs;
        let rows = scratch.active.len();
        let z_stride = stride(self.rows);
        let stride_ = stride(rows);
        // Sized for all rows, so that a later step with more active rows allocates nothing.
        let (most, blocks) = (stride(self.rows), self.rows.div_ceil(NORM_BLOCK));
        scratch.dz.resize_with(depth.max(scratch.dz.len()), Buffer::default);
        scratch.norm_sums.resize_with(depth.max(scratch.norm_sums.len()), Buffer::default);
        let mut widest = 0;
        for (l, layer) in layout.layers.iter().enumerate() {
            scratch.dz[l].resize(layer.panels() * most);
            if layer.scale.is_some() {
                scratch.norm_sums[l].resize(blocks * 2 * layer.padded());
            }
            widest = widest.max(layer.padded());
        }
        if input_gradient.is_some() {
            scratch.dx.resize(padded(inputs) / PANEL * most);
        }
        let most_tasks = pool.threads().max(self.rows.div_ceil(BLOCK_ROWS));
        scratch.rowwise.resize(most_tasks * SCRATCH * widest);

        let isa = pool.isa();
        let (per_task, tasks) = row_tasks(rows, pool);
        let slots = self.slots(depth, true);
        let params = &weights.params[member * layout.member_len..][..layout.member_len];
        let transposed = &weights.transposed[member * layout.transposed_len..][..layout.transposed_len];
        let active = &scratch.active[..];
        let views = &mut scratch.views.0;
        views.clear();
        let buffers = scratch.dz.iter_mut().zip(&mut scratch.norm_sums).take(depth);
        views.extend(buffers.map(|(dz, sums)| (panels(dz, stride_), sums.as_mut_ptr())));
        let views = &scratch.views;
        let dx = Shared(panels(&mut scratch.dx, stride_));
        let rowwise = SharedMut::new(&mut scratch.rowwise);
        let input_gradient = input_gradient.map(SharedMut::new);
        let hidden = &self.hidden[member * slots..];
        pool.run(tasks, &|task| {
            let range = (task * per_task, (task * per_task + per_task).min(rows));
            // SAFETY: all buffers were sized above (or by the forward pass) for the rows used here; a task
            // touches only its own rows of gradients, its own norm blocks (tasks hold whole blocks) and its
            // own row-wise scratch, and active rows are distinct rows of the input gradient.
            unsafe {
                let gradient = |l: usize| views.get()[l].0;
                let back = |l: usize, c: Panels| {
                    let layer = &layout.layers[l];
                    let b = read_only(&transposed[layer.transposed..], layer.outputs * PANEL);
                    let panels = layer.inputs.div_ceil(PANEL);
                    Product { k: layer.outputs, panels, a: gradient(l), b, bias: None, c }
                };
                for row in range.0..range.1 {
                    let from = active[row] as usize * columns + member * outputs;
                    pack_row(&upstream[from..][..outputs], gradient(depth - 1), row);
                }
                for l in (1..depth).rev() {
                    let below = &layout.layers[l - 1];
                    let cache = &hidden[l - 1];
                    // The statistics are only read on the way back.
                    let stats = cache.stats.as_ptr().cast_mut();
                    let job = Deactivate {
                        gradient: gradient(l - 1),
                        rows: active,
                        z: read_only(&cache.z, z_stride),
                        width: below.outputs,
                        norm: norm_of(below, params, stats),
                        scratch: rowwise.ptr().add(task * SCRATCH * widest),
                        norm_sums: if collect { views.get()[l - 1].1 } else { std::ptr::null_mut() },
                    };
                    let product = back(l, gradient(l - 1));
                    row_block(isa, range, &product, |from, count| deactivate(isa, &job, from, count));
                }
                if let Some(input_gradient) = input_gradient {
                    let c = *dx.get();
                    row_block(isa, range, &back(0, c), |from, count| {
                        for row in from..from + count {
                            add_row(c, row, input_gradient.slice(active[row] as usize * inputs, inputs));
                        }
                    });
                }
            }
        });
    }

    /// Sums the weight gradients of one member from `scratch.dz`.
    fn backward_weights(
        &self,
        pool: &Pool,
        scratch: &mut Scratch,
        member: usize,
        gradient: &mut [f32],
        start: Start,
    ) {
        let Some(Bound { layout, .. }) = &self.bound else { return };
        let depth = layout.layers.len();
        let slots = self.slots(depth, true);
        let (all, active) = (stride(self.rows), stride(scratch.active.len()));
        let rows = &scratch.active[..];
        let overwrite = matches!(start, Start::Zero);
        let start = Shared(start);
        let gradient = SharedMut::new(gradient);
        let isa = pool.isa();
        let tasks: usize = layout.layers.iter().map(Layer::panels).sum();
        pool.run(tasks, &|task| {
            let (mut l, mut panel) = (0, task);
            while panel >= layout.layers[l].panels() {
                panel -= layout.layers[l].panels();
                l += 1;
            }
            let layer = &layout.layers[l];
            let a = if l == 0 {
                read_only(&self.x, all)
            } else {
                read_only(&self.hidden[member * slots + l - 1].y, all)
            };
            let dz = &scratch.dz[l][panel * active..][..rows.len() * PANEL];
            // SAFETY: the task owns panel `panel` of this layer's kernel and the same columns of its
            // vectors; all operands were sized by the passes before.
            unsafe {
                let kernel = gradient.ptr().add(layer.kernel + panel * layer.inputs * PANEL);
                transposed_panel(isa, rows, layer.inputs, a, dz.as_ptr(), kernel, *start.get());
                let bias = gradient.slice(layer.bias + panel * PANEL, PANEL);
                if overwrite {
                    bias.fill(0.0);
                }
                add_rows(dz, bias);
                if let (Some(scale), Some(shift)) = (layer.scale, layer.shift()) {
                    let width = layer.padded();
                    for (part, offset) in [scale, shift].into_iter().enumerate() {
                        let sums = gradient.slice(offset + panel * PANEL, PANEL);
                        if overwrite {
                            sums.fill(0.0);
                        }
                        for block in 0..rows.len().div_ceil(NORM_BLOCK) {
                            let from = (2 * block + part) * width + panel * PANEL;
                            add_rows(&scratch.norm_sums[l][from..][..PANEL], sums);
                        }
                    }
                }
            }
        });
    }
}

/// LayerNorm's operands for a layer that has it.
fn norm_of(layer: &Layer, params: &[f32], stats: *mut f32) -> Option<Norm> {
    let (scale, shift) = (layer.scale?, layer.shift()?);
    Some(Norm { scale: params[scale..].as_ptr(), shift: params[shift..].as_ptr(), stats })
}

/// Lists the rows whose gradient for `member` is not all zero.
fn find_active(
    upstream: &[f32],
    rows: usize,
    members: usize,
    member: usize,
    compact: bool,
    active: &mut Vec<u32>,
) {
    active.clear();
    active.reserve(rows);
    let columns = upstream.len() / rows.max(1);
    let outputs = columns / members;
    for row in 0..rows {
        let gradient = &upstream[row * columns + member * outputs..][..outputs];
        if !compact || gradient.iter().any(|&g| g != 0.0) {
            active.push(row as u32);
        }
    }
}

/// Adds every row of a panel to `sums`, in order.
fn add_rows(panel: &[f32], sums: &mut [f32]) {
    for row in panel.chunks_exact(PANEL) {
        for i in 0..PANEL {
            sums[i] += row[i];
        }
    }
}

/// Copies a row-major matrix into panels.
fn pack_rows(from: &[f32], columns: usize, to: &mut [f32], stride: usize) {
    for (r, row) in from.chunks_exact(columns).enumerate() {
        for (p, part) in row.chunks(PANEL).enumerate() {
            let to = &mut to[p * stride + r * PANEL..][..PANEL];
            to[..part.len()].copy_from_slice(part);
            to[part.len()..].fill(0.0);
        }
    }
}

/// # Safety
/// The row exists in `to` and belongs to the caller.
unsafe fn pack_row(from: &[f32], to: Panels, row: usize) {
    for (p, part) in from.chunks(PANEL).enumerate() {
        // SAFETY: promised by the caller.
        let to = unsafe { std::slice::from_raw_parts_mut(to.at(p, row), PANEL) };
        to[..part.len()].copy_from_slice(part);
        to[part.len()..].fill(0.0);
    }
}

/// # Safety
/// The row exists in `from` and nobody writes to it.
unsafe fn unpack_row(from: Panels, row: usize, to: &mut [f32]) {
    for (p, part) in to.chunks_mut(PANEL).enumerate() {
        // SAFETY: promised by the caller.
        part.copy_from_slice(unsafe { std::slice::from_raw_parts(from.at(p, row), part.len()) });
    }
}

/// # Safety
/// As for [`unpack_row`].
unsafe fn add_row(from: Panels, row: usize, to: &mut [f32]) {
    for (p, part) in to.chunks_mut(PANEL).enumerate() {
        // SAFETY: promised by the caller.
        let from = unsafe { std::slice::from_raw_parts(from.at(p, row), part.len()) };
        for (to, from) in part.iter_mut().zip(from) {
            *to += from;
        }
    }
}

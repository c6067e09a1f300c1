//! The backward pass: first through the rows, then sums over rows for the weights.
#![allow(unsafe_code)]

use std::time::Instant;

use super::pack::{add_row, pack_row};
use super::{Application, Bound, Shared, most_tasks, norm_of, panels, read_only, row_tasks, slots, stride};
use crate::buffer::{Buffer, SharedMut};
use crate::gemm::{PANEL, Panels, Product, Start, TransposedProduct, row_block, transposed_panels};
use crate::layout::{Layer, padded};
use crate::pool::Pool;
use crate::rowwise::{Deactivate, NORM_BLOCK, SCRATCH, deactivate};
use crate::tape::Timings;

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

impl Application {
    /// Back-propagates `upstream`, the gradient of the output. Adds the parameter gradients to
    /// `weight_gradient`, if given (or overwrites it, if the flag beside it says that it is fresh), and the
    /// input gradients to `input_gradient`, if given. `compact` skips rows whose upstream gradient is zero.
    #[allow(clippy::too_many_arguments)] // one call site, in the tape
    pub(crate) fn backward(
        &mut self,
        pool: &Pool,
        scratch: &mut Scratch,
        upstream: &[f32],
        mut weight_gradient: Option<(&mut [f32], bool)>,
        mut input_gradient: Option<&mut [f32]>,
        compact: bool,
        timings: &mut Timings,
    ) {
        let Some(bound) = &self.bound else {
            unreachable!("the tape runs one backward pass before it releases its applications")
        };
        let members = bound.layout.members;
        for member in 0..members {
            let started = Instant::now();
            find_active(upstream, self.rows, members, member, compact, &mut scratch.active);
            self.backward_rows(
                pool,
                scratch,
                upstream,
                member,
                weight_gradient.is_some(),
                input_gradient.as_deref_mut(),
            );
            let between = Instant::now();
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
        let Some(Bound { layout, weights, activation }) = &self.bound else { return };
        let depth = layout.layers.len();
        let inputs = layout.layers[0].inputs;
        let outputs = layout.layers[depth - 1].outputs;
        let columns = layout.members * outputs;
        let rows = scratch.active.len();
        let z_stride = stride(self.rows);
        let dz_stride = stride(rows);
        // Sized for all rows, so that a later step with more active rows does not allocate.
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
        scratch.rowwise.resize(most_tasks(self.rows, pool) * SCRATCH * widest);

        let isa = pool.supported();
        let (per_task, tasks) = row_tasks(rows, pool);
        let slots = slots(depth, true);
        let params = &weights.params[member * layout.member_len..][..layout.member_len];
        let transposed = &weights.transposed[member * layout.transposed_len..][..layout.transposed_len];
        let active = &scratch.active[..];
        let views = &mut scratch.views.0;
        views.clear();
        let buffers = scratch.dz.iter_mut().zip(&mut scratch.norm_sums).take(depth);
        views.extend(buffers.map(|(dz, sums)| (panels(dz, dz_stride), sums.as_mut_ptr())));
        let views = &scratch.views;
        let dx = Shared(panels(&mut scratch.dx, dz_stride));
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
                    // The backward pass only reads the statistics.
                    let stats = cache.stats.as_ptr().cast_mut();
                    let job = Deactivate {
                        gradient: gradient(l - 1),
                        rows: active,
                        z: read_only(&cache.z, z_stride),
                        width: below.outputs,
                        activation: *activation,
                        norm: norm_of(below, params, stats),
                        least: isa.precision().least(),
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

    /// Accumulates the weight gradients of one member from `scratch.dz`.
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
        let slots = slots(depth, true);
        let (all, active) = (stride(self.rows), stride(scratch.active.len()));
        let rows = &scratch.active[..];
        let overwrite = matches!(start, Start::Zero);
        let start = Shared(start);
        let gradient = SharedMut::new(gradient);
        let isa = pool.supported();
        // A task takes neighbouring panels, because each task rounds all of a layer's inputs to bfloat16 for itself.
        let all_panels: usize = layout.layers.iter().map(Layer::panels).sum();
        let per_task = (all_panels / (4 * pool.threads())).max(1);
        let tasks_of = |layer: &Layer| layer.panels().div_ceil(per_task);
        pool.run(layout.layers.iter().map(tasks_of).sum(), &|task| {
            let (mut l, mut part) = (0, task);
            while part >= tasks_of(&layout.layers[l]) {
                part -= tasks_of(&layout.layers[l]);
                l += 1;
            }
            let layer = &layout.layers[l];
            let panels = part * per_task..((part + 1) * per_task).min(layer.panels());
            let a = if l == 0 {
                read_only(&self.x, all)
            } else {
                read_only(&self.hidden[member * slots + l - 1].y, all)
            };
            let dz = &scratch.dz[l][panels.start * active..panels.end * active];
            // SAFETY: the task owns these panels of this layer's kernel and the same columns of its
            // vectors; all operands were sized by the passes before.
            unsafe {
                let stride = layer.inputs * PANEL;
                let kernel = gradient.ptr().add(layer.kernel + panels.start * stride);
                let (b, c) = (read_only(dz, active), Panels { ptr: kernel, stride });
                let (columns, panels, start) = (layer.inputs, panels.len(), *start.get());
                transposed_panels(isa, &TransposedProduct { rows, columns, panels, a, b, c, start });
            }
            for (panel, dz) in panels.zip(dz.chunks(active)) {
                // SAFETY: as above.
                unsafe {
                    if let Some(bias) = layer.bias {
                        let bias = gradient.slice(bias + panel * PANEL, PANEL);
                        if overwrite {
                            bias.fill(0.0);
                        }
                        add_rows(&dz[..rows.len() * PANEL], bias);
                    }
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
            }
        });
    }
}

/// Lists the rows whose gradient for `member` is not zero.
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

/// Adds every row of a panel to the panel's `sums`, in order.
fn add_rows(rows: &[f32], sums: &mut [f32]) {
    debug_assert_eq!(sums.len(), PANEL);
    // Arrays of a known length, so that the additions are vector instructions.
    for sums in sums.as_chunks_mut::<PANEL>().0 {
        for row in rows.as_chunks::<PANEL>().0 {
            for i in 0..PANEL {
                sums[i] += row[i];
            }
        }
    }
}

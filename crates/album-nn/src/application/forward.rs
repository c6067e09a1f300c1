//! The forward pass.
#![allow(unsafe_code)]

use super::pack::{pack_rows, unpack_row};
use super::{
    Application, Bound, Hidden, Operands, Shared, norm_of, panels, read_only, row_tasks, slots, stride,
};
use crate::buffer::{Buffer, SharedMut};
use crate::gemm::{PANEL, Product, row_block};
use crate::layout::padded;
use crate::mlp::Mlp;
use crate::pool::Pool;
use crate::rowwise::{Activate, activate};

impl Application {
    /// Applies `net` to `rows` rows in `input` and writes the outputs of all members side by side. `keep`
    /// retains what a backward pass needs.
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
        let activation = net.spec().activation;
        let depth = layout.layers.len();
        let members = layout.members;
        let stride = stride(rows);
        let inputs = layout.layers[0].inputs;
        let outputs = layout.layers[depth - 1].outputs;
        self.net = net.id();
        self.rows = rows;
        self.x.resize(padded(inputs) / PANEL * stride);
        pack_rows(input, inputs, &mut self.x, stride);

        let slots = slots(depth, keep);
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
        let isa = pool.supported();
        let (per_task, tasks) = row_tasks(rows, pool);
        pool.run(members * tasks, &|task| {
            let (member, block) = (task / tasks, task % tasks);
            let range = (block * per_task, (block * per_task + per_task).min(rows));
            let params = &weights.params[member * layout.member_len..][..layout.member_len];
            let mut a = *x.get();
            for (l, layer) in layout.layers.iter().enumerate() {
                let b = read_only(&params[layer.kernel..], layer.inputs * PANEL);
                let bias = layer.bias.map(|bias| params[bias..].as_ptr());
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
                        let norm = norm_of(layer, params, stats);
                        let least = isa.precision().least();
                        let job = Activate { z, y, width: layer.outputs, activation, norm, least };
                        row_block(isa, range, &product(z), |from, count| activate(isa, &job, from, count));
                        a = y;
                    }
                }
            }
        });
        self.bound = Some(Bound { layout, weights, activation });
    }
}

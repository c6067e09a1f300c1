//! A tape's computation as data, for translation to another form.

use crate::mlp::Mlp;
use crate::ops::{Binary, NormalBins, Op, Reduce, Unary};
use crate::tape::{Inner, Node, Tape};
use std::collections::HashMap;
use std::sync::Arc;

/// A computation, value by value; operands are indices of earlier values.
#[derive(Clone, Debug)]
pub struct Recording {
    /// All values in order of computation.
    pub values: Vec<Recorded>,
    /// The networks that were applied or read, each once.
    pub nets: Vec<Mlp>,
    /// The [`Mlp::id`] of each at that time.
    pub ids: Vec<u64>,
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// The entries, row by row; empty if computed on a device.
    pub value: Vec<f32>,
    /// How it was computed.
    pub origin: Origin,
    /// Whether it depends on anything trained.
    pub needs_grad: bool,
}

/// How a value was computed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Origin {
    /// Given from outside.
    Given,
    /// Rows of a table that lives on another engine.
    Rows {
        /// The table.
        table: usize,
        /// The rows, in order.
        at: Vec<u32>,
    },
    /// Filled with this number.
    Filled(f32),
    /// Computed off the tape from these values.
    Hidden(Vec<usize>),
    /// Not known to the tape.
    Unknown,
    /// A network, by its index in [`Recording::nets`], applied to `x`.
    Apply {
        /// The input.
        x: usize,
        /// The network.
        net: usize,
        /// Whether gradients reach its weights.
        collect: bool,
    },
    /// A parameter matrix, by the index of its network in [`Recording::nets`].
    Parameter {
        /// The network.
        net: usize,
        /// Whether gradients reach it.
        collect: bool,
    },
    /// An elementwise function.
    Unary(Unary, usize),
    /// An elementwise function of two operands.
    Binary(Binary, usize, usize),
    /// A reduction.
    Reduce(Reduce, usize),
    /// Values side by side.
    Beside(Vec<usize>),
    /// Values stacked.
    Below(Vec<usize>),
    /// The part starting at this row and column.
    Slice {
        /// The operand.
        x: usize,
        /// The first row.
        row: usize,
        /// The first column.
        col: usize,
    },
    /// The same entries in another shape.
    Reshape(usize),
    /// The log-probabilities of each row's logits.
    LogSoftmaxCols(usize),
    /// The entry of each row of `x` in the column given by `columns`.
    PickCols {
        /// The operand.
        x: usize,
        /// A column of indices.
        columns: usize,
    },
    /// The same value without its gradient.
    Detached(usize),
    /// 1 where an entry is at least this number, else 0.
    Ge(usize, f32),
    /// Expectile weights of this level.
    ExpectileWeights(usize, f32),
    /// The index of the largest entry of each row, the first of equals.
    ArgmaxCols(usize),
    /// The bin masses of normal distributions around the entries of a column.
    NormalMasses(usize, NormalBins),
    /// The gradient of the scalar `of` with respect to `x`, not collecting weight gradients.
    GradientBy {
        /// The scalar.
        of: usize,
        /// The operand.
        x: usize,
    },
    /// Each row normalised to mean 0 and variance 1.
    NormalizeRows {
        /// The operand.
        x: usize,
        /// Added to the variance.
        epsilon: f32,
    },
    /// Each row repeated.
    RepeatRows {
        /// The operand.
        x: usize,
        /// Number of repetitions.
        times: usize,
    },
}

impl Origin {
    /// The values that it was computed from; `None` if unknown.
    pub fn operands(&self) -> Option<Vec<usize>> {
        Some(match self {
            Origin::Unknown => return None,
            Origin::Given | Origin::Rows { .. } | Origin::Filled(_) | Origin::Parameter { .. } => Vec::new(),
            Origin::Hidden(from) | Origin::Beside(from) | Origin::Below(from) => from.clone(),
            Origin::Binary(_, a, b)
            | Origin::PickCols { x: a, columns: b }
            | Origin::GradientBy { of: a, x: b } => {
                vec![*a, *b]
            }
            Origin::Apply { x, .. }
            | Origin::Unary(_, x)
            | Origin::Reduce(_, x)
            | Origin::Slice { x, .. }
            | Origin::Reshape(x)
            | Origin::LogSoftmaxCols(x)
            | Origin::Detached(x)
            | Origin::Ge(x, _)
            | Origin::ExpectileWeights(x, _)
            | Origin::ArgmaxCols(x)
            | Origin::NormalMasses(x, _)
            | Origin::NormalizeRows { x, .. }
            | Origin::RepeatRows { x, .. } => vec![*x],
        })
    }
}

/// Origins that a tape's nodes do not record themselves.
#[derive(Default)]
pub(crate) struct Notes {
    origins: HashMap<usize, Origin>,
    nets: Vec<(u64, Mlp)>,
    /// For a deferring tape: the networks whose weights are on a device.
    elsewhere: Option<Vec<u64>>,
}

impl Notes {
    pub(crate) fn clear(&mut self) {
        self.origins.clear();
        self.nets.clear();
    }
}

impl Inner {
    /// Records the origin of the newest node, if recording is on.
    pub(crate) fn note(&mut self, origin: impl FnOnce() -> Origin) {
        let newest = self.live - 1;
        if let Some(notes) = &mut self.notes {
            notes.origins.insert(newest, origin());
        }
    }

    /// The same for a node that comes from a network, whose index is passed to `origin`.
    pub(crate) fn note_net(&mut self, net: &Mlp, origin: impl FnOnce(usize) -> Origin) {
        let newest = self.live - 1;
        let Some(notes) = &mut self.notes else { return };
        // When acting, copies mean the same network; in training, a target that has not moved yet is a
        // different one.
        let apart = notes.elsewhere.is_some();
        let same = |(id, known): &(u64, Mlp)| {
            *id == net.id() || (!apart && Arc::ptr_eq(known.weights(), net.weights()))
        };
        let place = notes.nets.iter().position(same).unwrap_or_else(|| {
            notes.nets.push((net.id(), net.clone()));
            notes.nets.len() - 1
        });
        notes.origins.insert(newest, origin(place));
    }

    /// Whether networks are evaluated on a device.
    pub(crate) fn defers(&self) -> bool {
        self.notes.as_ref().is_some_and(|notes| notes.elsewhere.is_some())
    }

    /// Whether the weights of a network are on a device.
    pub(crate) fn is_elsewhere(&self, net: &Mlp) -> bool {
        let elsewhere = self.notes.as_ref().and_then(|notes| notes.elsewhere.as_ref());
        elsewhere.is_some_and(|ids| ids.contains(&net.id()))
    }

    fn origin(&self, i: usize) -> Origin {
        match self.nodes[i].op {
            Op::Leaf | Op::Apply { .. } | Op::Parameter { .. } => {
                let noted = self.notes.as_ref().and_then(|notes| notes.origins.get(&i));
                noted.cloned().unwrap_or(Origin::Unknown)
            }
            Op::Unary(op, x) => Origin::Unary(op, x),
            Op::Binary(op, a, b) => Origin::Binary(op, a, b),
            Op::Reduce(op, x) => Origin::Reduce(op, x),
            Op::Concat { first, count, by_cols } => {
                let parts = self.parts[first..first + count].iter().map(|&part| part as usize).collect();
                if by_cols { Origin::Beside(parts) } else { Origin::Below(parts) }
            }
            Op::NormalizeRows { x, epsilon } => Origin::NormalizeRows { x, epsilon },
            Op::RepeatRows { x, times } => Origin::RepeatRows { x, times },
            Op::Slice { x, row, col } => Origin::Slice { x, row, col },
            Op::LogSoftmaxCols(x) => Origin::LogSoftmaxCols(x),
            Op::Reshape(x) => Origin::Reshape(x),
            Op::PickCols { x, columns } => Origin::PickCols { x, columns },
        }
    }
}

impl Tape {
    /// A tape that also records which networks are applied, for [`Tape::recording`].
    pub fn that_records(pool: &crate::Pool) -> Self {
        let mut tape = Tape::new(pool);
        tape.inner.get_mut().notes = Some(Notes::default());
        tape
    }

    /// A tape for a device, which [`Tape::recording`] tells what to compute: nothing that depends on a
    /// network's output is computed here. The weights of the networks with these [`Mlp::id`]s are on the
    /// device, too.
    pub fn that_defers(pool: &crate::Pool, elsewhere: Vec<u64>) -> Self {
        let mut tape = Tape::that_records(pool);
        tape.inner.get_mut().notes = Some(Notes { elsewhere: Some(elsewhere), ..Notes::default() });
        tape
    }

    /// Everything recorded so far.
    pub fn recording(&self) -> Recording {
        let inner = self.inner.borrow();
        let recorded = |i: usize| {
            let node = &inner.nodes[i];
            let value = if node.known { node.value.to_vec() } else { Vec::new() };
            let Node { rows, cols, needs_grad, .. } = *node;
            Recorded { rows, cols, value, origin: inner.origin(i), needs_grad }
        };
        let notes = inner.notes.as_ref().map_or(&[][..], |notes| &notes.nets);
        let (ids, nets) = notes.iter().cloned().unzip();
        Recording { values: (0..inner.live).map(recorded).collect(), nets, ids }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{MlpSpec, Pool};
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    #[test]
    fn a_recording_says_where_values_come_from() {
        let net = Mlp::new(MlpSpec::new(3, &[4], 2), &mut ChaCha8Rng::seed_from_u64(0));
        let mut tape = Tape::that_records(&Pool::new(1));
        let tape = tape.begin();
        let s = tape.constant_slice(1, 2, &[0.5, -1.0]);
        let row = tape.constant_of_table(2, || vec![7], 1, 2, |out| out.copy_from_slice(&[1.0, 2.0]));
        assert_eq!(tape.recording().values[row.place()].origin, Origin::Rows { table: 2, at: vec![7] });
        assert_eq!(row.with_value(<[f32]>::to_vec), [1.0, 2.0], "it is a constant like any other");
        let t = tape.filled(1, 1, 0.25);
        let y = tape.apply_frozen(&net, tape.concat_cols(&[s, t]));
        let z = tape.apply_frozen(&net.clone(), tape.concat_cols(&[s, t])) + 2.0 * y;
        let hidden = tape.constant_of([z], 1, 1, |[z], out| out[0] = z[0]);
        let detached = hidden.detach();
        let second = y.slice_cols(1, 2);
        let recording = tape.recording();
        assert_eq!(recording.nets.len(), 1, "a clone is the same network");
        let origin = |var: crate::Var<'_>| recording.values[var.place()].origin.clone();
        assert_eq!(origin(s), Origin::Given);
        assert_eq!(origin(y), Origin::Apply { x: 3, net: 0, collect: false });
        assert_eq!(origin(z).operands().unwrap(), [6, 7]);
        assert_eq!(origin(hidden), Origin::Hidden(vec![z.place()]));
        assert_eq!(origin(second), Origin::Slice { x: y.place(), row: 0, col: 1 });
        assert_eq!(origin(detached), Origin::Detached(hidden.place()));
    }

    #[test]
    fn a_tape_that_defers_computes_only_what_no_network_is_behind() {
        let net = Mlp::new(MlpSpec::new(2, &[4], 2), &mut ChaCha8Rng::seed_from_u64(0));
        let (trained, fixed) =
            (net.clone(), Mlp::new(MlpSpec::parameter(1, 2), &mut ChaCha8Rng::seed_from_u64(1)));
        let mut tape = Tape::that_defers(&Pool::new(1), vec![net.id(), trained.id()]);
        for _ in 0..2 {
            let tape = tape.begin();
            let s = tape.constant_slice(1, 2, &[0.5, -1.0]);
            let known = 2.0 * s + tape.parameter_frozen(&fixed);
            let unknown = (tape.apply(&trained, known) * tape.apply_frozen(&net, s)).mean();
            let by = unknown.gradient_by(known);
            let recording = tape.recording();
            assert_eq!(recording.ids, [fixed.id(), trained.id(), net.id()], "a clone is another network");
            assert_eq!(known.with_value(<[f32]>::to_vec), [1.0, -2.0]);
            let value = |var: crate::Var<'_>| recording.values[var.place()].clone();
            assert_eq!(
                (value(unknown).value, value(unknown).rows, value(unknown).needs_grad),
                (vec![], 1, true)
            );
            assert_eq!(value(by).origin, Origin::GradientBy { of: unknown.place(), x: known.place() });
            assert_eq!((value(by).rows, value(by).cols, value(by).needs_grad), (1, 2, false));
        }
    }
}

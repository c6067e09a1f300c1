//! What a tape computed, as data, for writing it in another form.

use crate::mlp::Mlp;
use crate::ops::{Binary, Op, Reduce, Unary};
use crate::tape::{Inner, Tape};
use std::collections::HashMap;
use std::sync::Arc;

/// A computation, value by value; operands are places of earlier values.
#[derive(Clone, Debug)]
pub struct Recording {
    /// All values in the order in which they were computed.
    pub values: Vec<Recorded>,
    /// The networks that were applied, each once.
    pub nets: Vec<Mlp>,
}

/// A value and how it came to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Rows of the matrix.
    pub rows: usize,
    /// Its columns.
    pub cols: usize,
    /// Its entries, row by row.
    pub value: Vec<f32>,
    /// How it was computed.
    pub origin: Origin,
}

/// How a value was computed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Origin {
    /// Given from outside.
    Given,
    /// Computed off the tape from these values.
    Hidden(Vec<usize>),
    /// The tape does not know.
    Unknown,
    /// A network, by its place in [`Recording::nets`], applied to `x`.
    Apply {
        /// The input.
        x: usize,
        /// The network.
        net: usize,
    },
    /// A function of each entry.
    Unary(Unary, usize),
    /// A function of two values, entry by entry.
    Binary(Binary, usize, usize),
    /// A function of many entries.
    Reduce(Reduce, usize),
    /// Values side by side.
    Beside(Vec<usize>),
    /// Each row to mean 0 and variance 1.
    NormalizeRows {
        /// The operand.
        x: usize,
        /// Added to the variance.
        epsilon: f32,
    },
    /// Each row several times.
    RepeatRows {
        /// The operand.
        x: usize,
        /// How often.
        times: usize,
    },
    /// Columns of a value, as many as this one has.
    Columns {
        /// The operand.
        x: usize,
        /// The first of them.
        from: usize,
    },
    /// Anything else, from these values.
    Other(Vec<usize>),
}

impl Origin {
    /// The values that it was computed from; `None` where nobody knows.
    pub fn operands(&self) -> Option<Vec<usize>> {
        Some(match self {
            Origin::Unknown => return None,
            Origin::Given => Vec::new(),
            Origin::Hidden(from) | Origin::Beside(from) | Origin::Other(from) => from.clone(),
            Origin::Binary(_, a, b) => vec![*a, *b],
            Origin::Apply { x, .. }
            | Origin::Unary(_, x)
            | Origin::Reduce(_, x)
            | Origin::NormalizeRows { x, .. }
            | Origin::RepeatRows { x, .. }
            | Origin::Columns { x, .. } => vec![*x],
        })
    }
}

/// What the nodes of a tape do not tell about themselves.
#[derive(Default)]
pub(crate) struct Notes {
    origins: HashMap<usize, Origin>,
    nets: Vec<Mlp>,
}

impl Inner {
    /// Notes the origin of the newest node, if anybody asks.
    pub(crate) fn note(&mut self, origin: impl FnOnce() -> Origin) {
        let newest = self.live - 1;
        if let Some(notes) = &mut self.notes {
            notes.origins.insert(newest, origin());
        }
    }

    /// Notes that the newest node is a network applied to `x`.
    pub(crate) fn note_net(&mut self, x: usize, net: &Mlp) {
        let newest = self.live - 1;
        let Some(notes) = &mut self.notes else { return };
        let known = notes.nets.iter().position(|known| Arc::ptr_eq(known.weights(), net.weights()));
        let net = known.unwrap_or_else(|| {
            notes.nets.push(net.clone());
            notes.nets.len() - 1
        });
        notes.origins.insert(newest, Origin::Apply { x, net });
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
                if by_cols { Origin::Beside(parts) } else { Origin::Other(parts) }
            }
            Op::NormalizeRows { x, epsilon } => Origin::NormalizeRows { x, epsilon },
            Op::RepeatRows { x, times } => Origin::RepeatRows { x, times },
            Op::Slice { x, col, .. } if self.nodes[x].rows == self.nodes[i].rows => {
                Origin::Columns { x, from: col }
            }
            Op::Slice { x, .. } | Op::LogSoftmaxCols(x) | Op::Reshape(x) => Origin::Other(vec![x]),
            Op::PickCols { x, columns } => Origin::Other(vec![x, columns]),
        }
    }
}

impl Tape {
    /// A tape that also keeps which networks are applied, for [`Tape::recording`]. One step of it can be recorded.
    pub fn that_records(pool: &crate::Pool) -> Self {
        let mut tape = Tape::new(pool);
        tape.inner.get_mut().notes = Some(Notes::default());
        tape
    }

    /// Everything computed so far.
    pub fn recording(&self) -> Recording {
        let inner = self.inner.borrow();
        let recorded = |i: usize| {
            let node = &inner.nodes[i];
            let value = node.value.to_vec();
            Recorded { rows: node.rows, cols: node.cols, value, origin: inner.origin(i) }
        };
        let nets = inner.notes.as_ref().map_or_else(Vec::new, |notes| notes.nets.clone());
        Recording { values: (0..inner.live).map(recorded).collect(), nets }
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
        assert_eq!(origin(y), Origin::Apply { x: 2, net: 0 });
        assert_eq!(origin(z).operands().unwrap(), [5, 6]);
        assert_eq!(origin(hidden), Origin::Hidden(vec![z.place()]));
        assert_eq!(origin(second), Origin::Columns { x: y.place(), from: 1 });
        assert_eq!(origin(detached).operands(), None);
    }
}

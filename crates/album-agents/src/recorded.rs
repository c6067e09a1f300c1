//! A policy's decision rule as data: the computation for one observation, recorded so that the policy can be
//! written to a file. Agents define how they act once; nothing here knows a specific agent.

use crate::Encoding;
use crate::acting::{Moment, Situation};
use crate::algorithm::Decide;
use crate::noise;
use crate::parts::critic::Aggregate;
use album_base::rng;
use album_data::ActionSpace;
use album_nn::{Pool, Recording, Tape, Var};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Annotation of a value whose meaning the tape does not know. Operands are indices of earlier values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// The encoded observation.
    Observation,
    /// Standard normal noise.
    Normal,
    /// The candidate with the highest score among `n` rows per observation.
    Best {
        /// Number of candidates.
        n: usize,
        /// The candidates.
        candidates: usize,
        /// A column of scores.
        scores: usize,
    },
    /// One of `n` candidate rows per observation, drawn by a uniform number with probabilities proportional
    /// to the exponentials of the scores.
    Drawn {
        /// Number of candidates.
        n: usize,
        /// The candidates.
        candidates: usize,
        /// A column of scores.
        scores: usize,
    },
    /// The index of the largest `q` among the choices at least `threshold` times as likely as the most likely
    /// one.
    Supported {
        /// Logits of the choices.
        logits: usize,
        /// Their values.
        q: usize,
        /// The relative threshold.
        threshold: f32,
    },
    /// The values of all choices, aggregated over the ensemble members.
    Choices {
        /// The columns of all members, side by side.
        q: usize,
        /// How the members are aggregated.
        aggregate: Aggregate,
    },
}

/// The recorded computation for one observation.
#[derive(Clone, Debug)]
pub struct RecordedPolicy {
    /// All recorded values.
    pub recording: Recording,
    /// Annotations of values, by index.
    pub marks: BTreeMap<usize, Mark>,
    /// Index of the decision: continuous actions before clipping to [-1, 1] and conversion to physical units,
    /// side by side if several are executed, or the index of a choice.
    pub decided: usize,
    /// The encoding of observations.
    pub encoding: Encoding,
    /// The action space in physical units.
    pub actions: ActionSpace,
    /// Number of actions executed per decision.
    pub open_loop: usize,
}

impl RecordedPolicy {
    /// Records one decision of a rule.
    pub(crate) fn of(
        mut decide: Decide,
        encoding: Encoding,
        actions: ActionSpace,
        open_loop: usize,
    ) -> RecordedPolicy {
        let mut tape = Tape::that_records(&Pool::new(1));
        let tape = tape.begin();
        let streams = RefCell::new(vec![rng::stream(0, "policy")]);
        let marks = RefCell::new(BTreeMap::new());
        let s = tape.zeros(1, encoding.dim());
        let situation = Situation { tape, s, streams: &streams, marks: Some(&marks) };
        situation.mark(s, Mark::Observation);
        let decided = decide(&situation).place();
        let recording = tape.recording();
        RecordedPolicy { recording, marks: marks.into_inner(), decided, encoding, actions, open_loop }
    }

    /// The noise that the policy draws for one observation: standard normal numbers, then uniform ones.
    pub fn noise(&self, moment: Moment) -> [Vec<f32>; 2] {
        let mut stream = moment.stream();
        let (mut normal, mut uniform) = (Vec::new(), Vec::new());
        for (&place, mark) in &self.marks {
            match mark {
                Mark::Normal => {
                    let mut draws = vec![0.0; self.recording.values[place].value.len()];
                    noise::normal(&mut stream, &mut draws);
                    normal.extend(draws);
                }
                Mark::Drawn { .. } => uniform.push(rng::unit_f32(&mut stream)),
                _ => {}
            }
        }
        [normal, uniform]
    }
}

impl<'t> Situation<'t, '_> {
    /// Annotates a value, for recordings.
    pub fn mark(&self, value: Var<'t>, mark: Mark) -> Var<'t> {
        if let Some(marks) = self.marks {
            marks.borrow_mut().insert(value.place(), mark);
        }
        value
    }
}

//! How a policy acts, as data: what its decision rule computed for one observation, for writing the policy into a
//! file. Agents say how they act once; nothing here knows one of them.

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

/// What a value on the tape is, where the tape cannot know. Operands are places of earlier values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// The encoded observation.
    Observation,
    /// Standard normal noise.
    Normal,
    /// Of `n` candidate rows for each observation the one with the highest score.
    Best {
        /// How many candidates there are.
        n: usize,
        /// The candidates.
        candidates: usize,
        /// A column of scores.
        scores: usize,
    },
    /// Of `n` candidate rows for each observation one drawn by a uniform number, with probabilities proportional to the
    /// exponentials of the scores.
    Drawn {
        /// How many candidates there are.
        n: usize,
        /// The candidates.
        candidates: usize,
        /// A column of scores.
        scores: usize,
    },
    /// The index of the largest `q` among the choices that are at least `threshold` times as likely as the most likely one.
    Supported {
        /// Logits of the choices.
        logits: usize,
        /// Their values.
        q: usize,
        /// The share.
        threshold: f32,
    },
    /// A column for each choice, made of those of all members of an ensemble side by side.
    Choices {
        /// The columns of all members.
        q: usize,
        /// What makes one value of them.
        aggregate: Aggregate,
    },
}

/// What a decision rule computed for one observation.
#[derive(Clone, Debug)]
pub struct RecordedPolicy {
    /// All values.
    pub recording: Recording,
    /// What some of them are, by place.
    pub marks: BTreeMap<usize, Mark>,
    /// The place of what was decided: continuous actions before they are clipped to [-1, 1] and brought to physical units,
    /// several side by side where they are executed on one decision, or the index of a choice.
    pub decided: usize,
    /// How networks see observations.
    pub encoding: Encoding,
    /// What actions are outside.
    pub actions: ActionSpace,
    /// Actions of one decision that are executed.
    pub open_loop: usize,
}

impl RecordedPolicy {
    /// Lets a rule decide once.
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
                Mark::Drawn { .. } => uniform.push(rng::unit(&mut stream) as f32),
                _ => {}
            }
        }
        [normal, uniform]
    }
}

impl<'t> Situation<'t, '_> {
    /// Says what a value is, for recordings.
    pub fn mark(&self, value: Var<'t>, mark: Mark) -> Var<'t> {
        if let Some(marks) = self.marks {
            marks.borrow_mut().insert(value.place(), mark);
        }
        value
    }
}

//! Acting: from observations to actions, with one or several actions per decision.

use crate::Encoding;
use crate::algorithm::Decide;
use crate::noise;
use crate::recorded::Mark;
use album_base::rng;
use album_data::{ActionSpace, View};
use album_nn::{Pool, Tape, Var};
use rand_chacha::ChaCha8Rng;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// A policy that can act on any thread while its agent continues to learn.
pub trait Policy: Send {
    /// Writes the action for each observation, row by row: in the physical units of the data, or as the index
    /// of a discrete choice. `moments` identifies the episode and step of each row. The action of a row
    /// depends on its observation and episode, not on the other rows.
    fn act(&mut self, observations: &[f32], moments: &[Moment], actions: &mut Vec<f32>);
}

/// A step of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The seed of the episode, which identifies it and seeds its noise.
    pub episode: u64,
    /// Steps done in the episode.
    pub step: u64,
}

impl Moment {
    /// The stream of its noise.
    pub(crate) fn stream(self) -> ChaCha8Rng {
        let mut stream = rng::stream(self.episode, "policy");
        stream.set_stream(self.step);
        stream
    }
}

/// The input of a policy's decision.
pub struct Situation<'t, 'a> {
    /// The tape that records everything.
    pub tape: &'t Tape,
    /// Encoded observations.
    pub s: Var<'t>,
    pub(crate) streams: &'a RefCell<Vec<ChaCha8Rng>>,
    /// Annotations of values, if a recording wants them.
    pub(crate) marks: Option<&'a RefCell<BTreeMap<usize, Mark>>>,
}

impl std::fmt::Debug for Situation<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Situation").field("s", &self.s).finish_non_exhaustive()
    }
}

impl<'t> Situation<'t, '_> {
    /// Encoded observations, each repeated `n` times.
    pub fn repeated(&self, n: usize) -> Var<'t> {
        self.s.repeat_rows(n)
    }

    /// Standard normal noise, `n` rows per situation, from the stream of its episode and step.
    pub fn normal(&self, n: usize, cols: usize) -> Var<'t> {
        let mut streams = self.streams.borrow_mut();
        let drawn = self.tape.constant_with(streams.len() * n, cols, |out| {
            streams
                .iter_mut()
                .zip(out.chunks_mut(n * cols))
                .for_each(|(stream, out)| noise::normal(stream, out));
        });
        self.mark(drawn, Mark::Normal)
    }

    /// The candidate with the highest score (a column) among `n` rows per situation.
    pub fn best(&self, n: usize, candidates: Var<'t>, scores: Var<'t>) -> Var<'t> {
        let best = self.chosen(n, candidates, scores, |_, scores| {
            (0..n).max_by(|&x, &y| scores[x].total_cmp(&scores[y]).then(y.cmp(&x))).unwrap_or(0)
        });
        self.mark(best, Mark::Best { n, candidates: candidates.place(), scores: scores.place() })
    }

    /// One of `n` candidate rows per situation, drawn with probabilities proportional to the exponentials of
    /// the scores (a column).
    pub fn drawn(&self, n: usize, candidates: Var<'t>, scores: Var<'t>) -> Var<'t> {
        let uniform = self.uniform();
        let drawn = self.chosen(n, candidates, scores, |i, scores| {
            let top = scores.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x.into()));
            let sums: Vec<f64> = scores
                .iter()
                .scan(0.0, |sum, &x| {
                    *sum += (f64::from(x) - top).exp();
                    Some(*sum)
                })
                .collect();
            let threshold = f64::from(uniform[i]) * sums.last().copied().unwrap_or(0.0);
            sums.iter().position(|&sum| sum > threshold).unwrap_or(n - 1)
        });
        self.mark(drawn, Mark::Drawn { n, candidates: candidates.place(), scores: scores.place() })
    }

    /// The candidate among `n` rows per situation that `choose` picks from the index of the situation and the
    /// scores.
    fn chosen(
        &self,
        n: usize,
        candidates: Var<'t>,
        scores: Var<'t>,
        choose: impl Fn(usize, &[f32]) -> usize,
    ) -> Var<'t> {
        let cols = candidates.cols();
        let rows: Vec<f32> = candidates.with_value(|candidates| {
            scores.with_value(|scores| {
                let row = |(i, scores): (usize, &[f32])| {
                    candidates[(i * n + choose(i, scores)) * cols..][..cols].to_vec()
                };
                scores.chunks(n).enumerate().flat_map(row).collect()
            })
        });
        self.tape.constant_slice(self.s.rows(), cols, &rows)
    }

    /// A number uniform on [0, 1) per situation.
    pub fn uniform(&self) -> Vec<f32> {
        self.streams.borrow_mut().iter_mut().map(rng::unit_f32).collect()
    }
}

/// Maximum number of stored plans before those of other episodes are dropped.
const MOST_PLANS: usize = 1024;

/// A decision rule that acts as a [`Policy`].
pub(crate) struct Acting {
    encoding: Encoding,
    decide: Decide,
    actions: ActionSpace,
    /// Number of actions executed per decision.
    open_loop: usize,
    /// Actions decided but not yet executed, by episode.
    plans: HashMap<u64, Vec<f32>>,
    tape: Tape,
}

impl Acting {
    pub(crate) fn new(encoding: Encoding, decide: Decide, actions: ActionSpace, open_loop: usize) -> Self {
        // Few rows at a time: more threads would only wait for each other.
        let tape = Tape::new(&Pool::new(1));
        Acting { encoding, decide, actions, open_loop, plans: HashMap::new(), tape }
    }

    fn decisions(&mut self, observations: View<'_>, moments: &[Moment]) -> Vec<f32> {
        decisions(&mut self.tape, &self.encoding, &self.actions, &mut self.decide, observations, moments)
    }
}

/// Actions for some rows; each row of the result has all actions of one decision.
pub(crate) fn decisions(
    tape: &mut Tape,
    encoding: &Encoding,
    actions: &ActionSpace,
    decide: &mut Decide,
    observations: View<'_>,
    moments: &[Moment],
) -> Vec<f32> {
    let tape = tape.begin();
    let fill = |out: &mut [f32]| encoding.encode(observations, out);
    let s = tape.constant_with(observations.rows(), encoding.dim(), fill);
    let streams = RefCell::new(moments.iter().map(|moment| moment.stream()).collect());
    let decided = decide(&Situation { tape, s, streams: &streams, marks: None });
    match actions {
        ActionSpace::Discrete { .. } => decided.with_value(<[f32]>::to_vec),
        space @ ActionSpace::Continuous { .. } => {
            let mut actions = decided.clip(-1.0, 1.0).with_value(<[f32]>::to_vec);
            space.to_physical(&mut actions);
            actions
        }
    }
}

impl Policy for Acting {
    fn act(&mut self, observations: &[f32], moments: &[Moment], actions: &mut Vec<f32>) {
        actions.clear();
        if moments.is_empty() {
            return;
        }
        let dim = self.encoding.observation_dim();
        let rows = View::new(observations, moments.len(), dim);
        if self.open_loop == 1 {
            actions.extend(self.decisions(rows, moments));
            return;
        }
        let h = self.open_loop as u64;
        let due: Vec<usize> = (0..rows.rows())
            .filter(|&i| moments[i].step.is_multiple_of(h) || !self.plans.contains_key(&moments[i].episode))
            .collect();
        if !due.is_empty() {
            let seen: Vec<f32> = due.iter().flat_map(|&i| rows.row(i)).copied().collect();
            let due: Vec<Moment> = due.iter().map(|&i| moments[i]).collect();
            let decided = self.decisions(View::new(&seen, due.len(), dim), &due);
            let width = self.open_loop * self.actions.dim();
            for (moment, plan) in due.iter().zip(decided.chunks_exact(width)) {
                self.plans.insert(moment.episode, plan.to_vec());
            }
        }
        for moment in moments {
            let width = self.actions.dim();
            let at = (moment.step % h) as usize * width;
            let plan = self.plans.get(&moment.episode).map_or(&[][..], Vec::as_slice);
            actions.extend_from_slice(&plan[at..at + width]);
        }
        // Episodes that ended within a plan leave it behind.
        if self.plans.len() > MOST_PLANS.max(moments.len()) {
            self.plans.retain(|episode, _| moments.iter().any(|moment| moment.episode == *episode));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `f` with the situations of `n` episodes.
    fn situations<T>(n: u64, f: impl Fn(&Situation<'_, '_>) -> T) -> T {
        let tape = Tape::new(&Pool::new(1));
        let streams = RefCell::new((0..n).map(|episode| rng::stream(episode, "policy")).collect());
        let s = tape.zeros(n as usize, 1);
        f(&Situation { tape: &tape, s, streams: &streams, marks: None })
    }

    #[test]
    fn the_best_candidate_is_the_first_with_the_highest_score() {
        let best = situations(2, |x| {
            let candidates = x.tape.constant_slice(6, 1, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
            let scores = x.tape.constant_slice(6, 1, &[-3.0, -1.0, -2.0, 7.0, 7.0, 0.0]);
            x.best(3, candidates, scores).with_value(<[f32]>::to_vec)
        });
        assert_eq!(best, [1.0, 3.0]);
    }

    #[test]
    fn candidates_are_drawn_by_the_softmax_of_their_scores() {
        let n = 4000;
        let drawn = situations(n, |x| {
            let repeated = |row: [f32; 3]| x.tape.constant_slice(3 * n as usize, 1, &row.repeat(n as usize));
            // Large scores must not overflow: probabilities 0.2, 0.7 and 0.1.
            let scores = repeated([1e3 + 0.2f32.ln(), 1e3 + 0.7f32.ln(), 1e3 + 0.1f32.ln()]);
            x.drawn(3, repeated([0.0, 1.0, 2.0]), scores).with_value(<[f32]>::to_vec)
        });
        for (i, expected) in [0.2, 0.7, 0.1].into_iter().enumerate() {
            let share = drawn.iter().filter(|x| **x == i as f32).count() as f64 / n as f64;
            // Four standard deviations of a fraction of 4000 draws are at most 0.032.
            assert!((share - expected).abs() < 0.035, "{i}: {share} against {expected}");
        }
    }
}

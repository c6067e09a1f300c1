//! Outputs of policy networks: the mean of a Gaussian with standard deviation 1, or the logits of choices.

use crate::acting::Situation;
use crate::algorithm::{Decide, Measures, Sizes};
use crate::recorded::Mark;
use album_nn::{Mlp, MlpSpec, Var};

/// The output layer of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// The mean of an action with this many dimensions.
    Gaussian(usize),
    /// The logits of this many choices.
    Choices(usize),
}

impl Head {
    /// The head for these action sizes.
    pub fn of(sizes: Sizes) -> Self {
        sizes.choices.map_or(Head::Gaussian(sizes.a), Head::Choices)
    }

    /// The network.
    pub fn spec(self, s: usize, hidden: &[usize]) -> MlpSpec {
        let (Head::Gaussian(outputs) | Head::Choices(outputs)) = self;
        MlpSpec::new(s, hidden, outputs).output_scale(0.01)
    }

    /// `log pi(a|s)` of each row: `log N(a; mean, I)`, or the log-probability of a choice.
    pub fn log_likelihood<'t>(self, output: Var<'t>, a: Var<'t>) -> Var<'t> {
        match self {
            Head::Gaussian(columns) => {
                let half_log_tau = 0.5 * std::f32::consts::TAU.ln();
                -0.5 * (a - output).square().sum_cols() - half_log_tau * columns as f32
            }
            Head::Choices(_) => output.log_softmax_cols().pick_cols(a),
        }
    }

    /// Logs the distance of the policy from the recorded actions.
    pub fn measure<'t>(self, output: Var<'t>, a: Var<'t>, measures: &mut Measures<'t>) {
        match self {
            Head::Gaussian(_) => measures.mean("actor/mse", (output - a).square()),
            // 1 if the difference of two indices lies strictly between -1/2 and 1/2.
            Head::Choices(_) => {
                measures.mean("actor/accuracy", 1.0 - (output.argmax_cols() - a).abs().ge(0.5))
            }
        };
    }

    /// Acts by the mean, or by the most likely choice.
    pub fn decide(self, actor: &Mlp) -> Decide {
        let actor = actor.clone();
        Box::new(move |x| {
            let output = x.tape.apply_frozen(&actor, x.s);
            match self {
                Head::Gaussian(_) => output,
                Head::Choices(_) => decide_supported(x, output, output, 1.0),
            }
        })
    }
}

/// The index of the largest `q` of each row among the choices at least `threshold` times as likely as the
/// most likely one; the first of equals.
pub fn best_supported<'t>(logits: Var<'t>, q: Var<'t>, threshold: f32) -> Var<'t> {
    let n = logits.cols();
    logits.tape().constant_of([logits, q], logits.rows(), 1, |[logits, q], out| {
        for (out, (logits, q)) in out.iter_mut().zip(logits.chunks_exact(n).zip(q.chunks_exact(n))) {
            let least = logits.iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x)) + threshold.ln();
            let supported = (0..n).filter(|&i| logits[i] >= least);
            let best = supported.max_by(|&i, &j| q[i].total_cmp(&q[j]).then(j.cmp(&i)));
            *out = best.unwrap_or(0) as f32;
        }
    })
}

/// Acts by [`best_supported`].
pub fn decide_supported<'t>(x: &Situation<'t, '_>, logits: Var<'t>, q: Var<'t>, threshold: f32) -> Var<'t> {
    let mark = Mark::Supported { logits: logits.place(), q: q.place(), threshold };
    x.mark(best_supported(logits, q, threshold), mark)
}

/// The values of the recorded choices, one column per ensemble member. A member's outputs for all choices are
/// side by side in `q`.
pub fn taken<'t>(q: Var<'t>, a: Var<'t>, choices: usize) -> Var<'t> {
    let (rows, members) = (q.rows(), q.cols() / choices);
    if members == 1 {
        return q.pick_cols(a);
    }
    q.reshape(rows * members, choices).pick_cols(a.repeat_rows(members)).reshape(rows, members)
}

/// The values of all choices: one column per choice, aggregated over the members.
pub fn all_choices<'t>(q: Var<'t>, choices: usize, aggregate: crate::Aggregate) -> Var<'t> {
    let tape = q.tape();
    let (rows, members) = (q.rows(), q.cols() / choices);
    // From [member, choice] to [choice, member] within each row.
    let turned = tape.constant_of([q], rows * choices, members, |[q], out| {
        for (q, out) in q.chunks_exact(members * choices).zip(out.chunks_exact_mut(members * choices)) {
            for (i, out) in out.iter_mut().enumerate() {
                *out = q[i % members * choices + i / members];
            }
        }
    });
    aggregate.of(turned).reshape(rows, choices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Aggregate;
    use album_nn::{Pool, Tape};

    #[test]
    fn the_best_choice_is_one_that_the_data_supports() {
        let tape = Tape::new(&Pool::new(1));
        let logits = [0.6f32, 0.3, 0.1].map(f32::ln);
        let logits = tape.constant_slice(2, 3, &[logits, logits].concat());
        let q = tape.constant_slice(2, 3, &[0.0, 1.0, 9.0, 5.0, 1.0, 9.0]);
        let best = |threshold| best_supported(logits, q, threshold).with_value(<[f32]>::to_vec);
        assert_eq!(best(1.0), [0.0, 0.0], "the most likely one alone");
        assert_eq!(best(0.4), [1.0, 0.0]);
        assert_eq!(best(0.1), [2.0, 2.0], "all of them");
        assert_eq!(q.argmax_cols().with_value(<[f32]>::to_vec), [2.0, 2.0]);
    }

    #[test]
    fn members_keep_their_own_values() {
        let tape = Tape::new(&Pool::new(1));
        // Two rows, two members, three choices.
        let q = tape.constant_slice(2, 6, &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0, 4.0, 5.0, 6.0, 0.0, -1.0, -2.0]);
        let a = tape.constant_slice(2, 1, &[2.0, 0.0]);
        assert_eq!(taken(q, a, 3).with_value(<[f32]>::to_vec), [3.0, 30.0, 4.0, 0.0]);
        let all = |aggregate| all_choices(q, 3, aggregate).with_value(<[f32]>::to_vec);
        assert_eq!(all(Aggregate::Min), [1.0, 2.0, 3.0, 0.0, -1.0, -2.0]);
        assert_eq!(all(Aggregate::Mean), [5.5, 11.0, 16.5, 2.0, 2.0, 2.0]);
    }
}

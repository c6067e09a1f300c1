//! Flow policies: a vector field v(s, x, t) that transports noise at t = 0 to actions at t = 1.

use crate::algorithm::{Decide, Inputs};
use crate::parts::critic::Aggregate;
use album_nn::{Mlp, MlpSpec, Var};

/// The network of a vector field over `x` columns: its inputs are state, point and time.
pub fn field_spec(s: usize, x: usize, hidden: &[usize]) -> MlpSpec {
    MlpSpec::new(s + x + 1, hidden, x)
}

/// A policy that turns noise into `x` columns of actions in one step: its inputs are state and noise.
pub fn one_step_spec(s: usize, x: usize, hidden: &[usize]) -> MlpSpec {
    MlpSpec::new(s + x, hidden, x)
}

/// Whether gradients reach the weights of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// No.
    Frozen,
    /// Yes, through all steps.
    Trained,
}

impl Through {
    /// Applies a network.
    pub fn apply<'t>(self, net: &Mlp, x: Var<'t>) -> Var<'t> {
        match self {
            Through::Frozen => x.tape().apply_frozen(net, x),
            Through::Trained => x.tape().apply(net, x),
        }
    }
}

/// Euler integration from noise `x` at t = 0 to t = 1, clipped to [-1, 1] at the end only.
pub fn euler<'t>(field: &Mlp, s: Var<'t>, mut x: Var<'t>, steps: usize, through: Through) -> Var<'t> {
    let tape = s.tape();
    for i in 0..steps {
        let t = tape.filled(s.rows(), 1, i as f32 / steps as f32);
        let input = tape.concat_cols(&[s, x, t]);
        let v = through.apply(field, input);
        x = x + v / steps as f32;
    }
    x.clip(-1.0, 1.0)
}

/// The squared flow-matching error, entry by entry: `(v(s, x_t, t) - (a - x_0))^2` with
/// `x_t = (1-t) x_0 + t a`. Draws `x_0` from N(0, I), then `t` from U[0, 1].
pub fn matching_error<'t>(x: &Inputs<'t, '_>, field: &Mlp, s: Var<'t>, a: Var<'t>) -> Var<'t> {
    let x_0 = x.normal(a.cols());
    let t = x.uniform(1);
    let x_t = (1.0 - t) * x_0 + t * a;
    let v = x.tape.apply(field, x.tape.concat_cols(&[s, x_t, t]));
    (v - (a - x_0)).square()
}

/// Acts by one sample of the flow.
pub fn sample(field: &Mlp, steps: usize) -> Decide {
    let field = field.clone();
    Box::new(move |x| euler(&field, x.s, x.normal(1, field.spec().outputs), steps, Through::Frozen))
}

/// Acts by a one-step policy.
pub fn one_step(actor: &Mlp) -> Decide {
    let actor = actor.clone();
    Box::new(move |x| {
        let z = x.normal(1, actor.spec().outputs);
        x.tape.apply_frozen(&actor, x.tape.concat_cols(&[x.s, z]))
    })
}

/// Acts by the sample with the highest Q among `n` samples of the flow.
pub fn best_of(n: usize, field: &Mlp, steps: usize, q: &Mlp, aggregate: Aggregate) -> Decide {
    let (field, q) = (field.clone(), q.clone());
    Box::new(move |x| {
        let s = x.repeated(n);
        let samples = euler(&field, s, x.normal(n, field.spec().outputs), steps, Through::Frozen);
        let scores = aggregate.of(x.tape.apply_frozen(&q, x.tape.concat_cols(&[s, samples])));
        x.best(n, samples, scores)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acting::{Acting, Moment, Policy};
    use crate::{Encoding, noise};
    use album_base::rng;
    use album_data::ActionSpace;
    use album_nn::{Pool, Tape};

    /// A vector field and an ensemble of two critics, for two-dimensional states and actions.
    fn networks() -> (Mlp, Mlp) {
        let mut init = rng::stream(4, "init");
        let field = Mlp::new(field_spec(2, 2, &[8]), &mut init);
        (field, Mlp::new(MlpSpec::new(4, &[8], 1).members(2), &mut init))
    }

    /// The noise of an episode's step.
    fn noise_of(moment: Moment, n: usize) -> Vec<f32> {
        let mut stream = rng::stream(moment.episode, "policy");
        stream.set_stream(moment.step);
        let mut draws = vec![0.0; n];
        noise::normal(&mut stream, &mut draws);
        draws
    }

    fn act(decide: Decide, observations: &[f32], moments: &[Moment]) -> Vec<f32> {
        let mut actions = Vec::new();
        Acting::new(Encoding::identity(2), decide, ActionSpace::unit(2), 1).act(
            observations,
            moments,
            &mut actions,
        );
        actions
    }

    #[test]
    fn the_best_of_n_is_the_sample_of_the_highest_score() {
        let (field, q) = networks();
        let n = 5;
        let moments = [Moment { episode: 3, step: 7 }, Moment { episode: 4, step: 0 }];
        let observations = [0.5, -0.3, 0.1, 0.9];
        for aggregate in [Aggregate::Min, Aggregate::Mean] {
            let found = act(best_of(n, &field, 10, &q, aggregate), &observations, &moments);
            let mut chosen = Vec::new();
            for (i, moment) in moments.into_iter().enumerate() {
                let z = noise_of(moment, n * 2);
                let candidates: Vec<(f32, Vec<f32>)> = z
                    .chunks(2)
                    .map(|z| {
                        let mut tape = Tape::new(&Pool::new(1));
                        let tape = tape.begin();
                        let s = tape.constant_slice(1, 2, &observations[2 * i..][..2]);
                        let a = euler(&field, s, tape.constant_slice(1, 2, z), 10, Through::Frozen);
                        let scores =
                            tape.apply_frozen(&q, tape.concat_cols(&[s, a])).with_value(<[f32]>::to_vec);
                        let score = match aggregate {
                            Aggregate::Min => scores[0].min(scores[1]),
                            Aggregate::Mean => 0.5 * (scores[0] + scores[1]),
                        };
                        (score, a.with_value(<[f32]>::to_vec))
                    })
                    .collect();
                let best = candidates.iter().max_by(|x, y| x.0.total_cmp(&y.0)).unwrap();
                assert_eq!(found[2 * i..][..2], best.1[..]);
                chosen.push(candidates.iter().position(|c| c.1 == best.1).unwrap());
            }
            assert_ne!(chosen, [0, 0], "the test needs a choice");
        }
    }

    #[test]
    fn euler_moves_in_equal_steps_and_clips_at_the_end_only() {
        // The affine field v = 3t in both components: ten steps from x sum to x + 3 * 0.45, whatever x is.
        let mut field = Mlp::new(MlpSpec::new(5, &[], 2), &mut rng::stream(0, "init"));
        let mut tensors = field.tensors();
        tensors[0].data = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 3.0];
        tensors[1].data = vec![0.0, 0.0];
        field.load(&tensors).unwrap();
        let mut tape = Tape::new(&Pool::new(1));
        let tape = tape.begin();
        let (s, x) = (tape.zeros(1, 2), tape.constant_slice(1, 2, &[-2.0, 0.0]));
        let end = euler(&field, s, x, 10, Through::Frozen).with_value(<[f32]>::to_vec);
        assert!((end[0] + 2.0 - 1.35).abs() < 1e-6, "{end:?}"); // starts below -1 and is not clipped there
        assert_eq!(end[1], 1.0);
    }

    #[test]
    fn a_sample_is_a_function_of_episode_and_step() {
        let (field, _) = networks();
        let observations = [0.5, -0.3, 0.5, -0.3, 0.5, -0.3];
        let moments =
            [Moment { episode: 3, step: 7 }, Moment { episode: 3, step: 8 }, Moment { episode: 4, step: 7 }];
        let all = act(sample(&field, 10), &observations, &moments);
        assert_ne!(all[..2], all[2..4]);
        assert_ne!(all[..2], all[4..]);
        assert_eq!(act(sample(&field, 10), &observations[..2], &moments[..1]), all[..2]);
    }
}

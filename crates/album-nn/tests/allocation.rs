//! A training step allocates nothing once its buffers have grown.

#[path = "it/support/mod.rs"]
mod support;

use album_nn::{Adam, Mlp, MlpSpec, Pool, Tape};
use album_testing::{Counting, allocations};
use support::*;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let mut rng = rng(1);
    let rows = 96;
    let mut q = Mlp::new(MlpSpec::new(5, &[64, 64], 1).layer_norm(true).members(2), &mut rng);
    let mut pi = Mlp::new(MlpSpec::new(3, &[64], 2), &mut rng);
    let mut target = q.clone();
    let (mut adam_q, mut adam_pi) = (Adam::new(&q, 1e-3), Adam::new(&pi, 1e-3));
    let pool = Pool::new(3);
    let mut tape = Tape::new(&pool);
    // Batches whose hinges are active on different numbers of rows, few at first.
    let batches: Vec<_> = (0..12)
        .map(|i| {
            let mut y = random(&mut rng, rows, 1, 2.0);
            y.data_mut().iter_mut().for_each(|y| *y += i as f32 - 3.0);
            (random(&mut rng, rows, 3, 1.0), random(&mut rng, rows, 2, 1.0), y)
        })
        .collect();
    let mut at_warm_up = 0;
    for (i, (s, a, y)) in batches.iter().enumerate() {
        if i == 3 {
            at_warm_up = allocations();
        }
        let tape = tape.begin();
        let (s, a, y) = (tape.constant(s), tape.constant(a), tape.constant(y));
        let sa = tape.concat_cols(&[s, a]);
        let bootstrap = tape.apply_frozen(&target, sa).min_cols();
        let action = tape.apply(&pi, s);
        let value = tape.apply_frozen(&q, tape.concat_cols(&[s, action.tanh()])).mean_cols();
        // A few steps of a flow, and the wider operations.
        let mut flow = tape.zeros(rows, 3);
        for k in 0..4 {
            let step = tape.apply_frozen(&pi, flow + 0.25 * k as f32);
            flow = tape.concat_cols(&[step.mish(), tape.filled(rows, 1, 0.5)]);
        }
        let wide = action.repeat_rows(2).reshape(rows, 4);
        let extra = (wide.normalize_rows(1e-6) * wide.log_softmax_cols()).mean() + flow.mean();
        let hinge = (y + 0.9 * bootstrap - tape.apply(&q, sa)).relu().mean();
        let loss = 1e-3 * extra + hinge - value.mean() + (action - a).square().sum_cols().mean();
        let gradients = loss.backward();
        assert!(loss.item().is_finite() && gradients.norm(&q).is_finite());
        let scale = (1.0 / gradients.norm_all(&[&q, &pi])).min(1.0) as f32;
        adam_q.step_scaled(&mut q, &gradients, scale);
        adam_pi.step(&mut pi, &gradients);
        target.track(&q, 0.005, &pool);
    }
    let after = allocations();
    assert_eq!(after - at_warm_up, 0, "allocations in {} steps", batches.len() - 3);
}

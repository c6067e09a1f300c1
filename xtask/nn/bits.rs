//! Prints the bits of everything that must be the same on every processor with fused multiply-adds: outputs, gradients and
//! weights of a few training steps. `cargo xtask neon` compares what two processors print.

use album_nn::{Activation, Adam, Isa, Matrix, Mlp, MlpSpec, Pool, Precision, Tape};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

fn main() {
    let isa = Isa::detect();
    assert!(isa != Isa::Scalar, "this processor has no fused multiply-add, so its bits may differ");
    eprintln!("{isa:?}");
    for activation in [Activation::Gelu, Activation::Relu, Activation::Mish] {
        for precision in [Precision::F32, Precision::Bf16] {
            for (rows, hidden) in [(1, [5, 3]), (31, [32, 64]), (160, [70, 33]), (300, [96, 41])] {
                let name = format!("{activation:?} {precision:?} {rows} {hidden:?}");
                train(&name, &Pool::with_isa(2, isa).with_precision(precision), activation, rows, &hidden);
            }
        }
    }
}

/// Three steps of a small critic and actor. No function of the tape that is the platform's (`tanh`, `exp`) takes part.
fn train(name: &str, pool: &Pool, activation: Activation, rows: usize, hidden: &[usize]) {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let q = MlpSpec::new(5, hidden, 1).layer_norm(true).members(2).activation(activation);
    let pi = MlpSpec::new(3, &hidden[..1], 2).output_scale(0.01).activation(activation);
    let (mut q, mut pi) = (Mlp::new(q, &mut rng), Mlp::new(pi, &mut rng));
    let (mut adam_q, mut adam_pi) = (Adam::new(&q, 1e-2), Adam::new(&pi, 1e-2));
    let mut tape = Tape::new(pool);
    for step in 0..3 {
        let mut random = |columns: usize| {
            let mut value = || 2.0 * (f64::from(rng.next_u32()) / 2f64.powi(32)) as f32 - 1.0;
            Matrix::from_vec(rows, columns, (0..rows * columns).map(|_| value()).collect())
        };
        let (s, a, y) = (random(3), random(2), random(1));
        let tape = tape.begin();
        let (s, a, y) = (tape.constant(&s), tape.constant(&a), tape.constant(&y));
        let values = tape.apply(&q, tape.concat_cols(&[s, a]));
        let hinge = (y - values).relu().mean() + 0.1 * values.mean();
        let action = tape.apply(&pi, s);
        let value = tape.apply_frozen(&q, tape.concat_cols(&[s, action])).min_cols();
        let loss = hinge - value.mean() + 0.5 * (action - a).square().sum_cols().mean();
        let gradients = loss.backward();
        show(name, step, "values", values.to_matrix().data());
        show(name, step, "action gradient", gradients.wrt(action).data());
        for (which, net) in [("critic", &q), ("actor", &pi)] {
            for tensor in gradients.of(net) {
                show(name, step, &format!("{which} gradient {}", tensor.name), &tensor.data);
            }
        }
        adam_q.step(&mut q, &gradients);
        adam_pi.step(&mut pi, &gradients);
        for (which, net) in [("critic", &q), ("actor", &pi)] {
            for tensor in net.tensors() {
                show(name, step, &format!("{which} {}", tensor.name), &tensor.data);
            }
        }
    }
}

fn show(name: &str, step: usize, what: &str, numbers: &[f32]) {
    let bits: Vec<String> = numbers.iter().map(|x| format!("{:08x}", x.to_bits())).collect();
    println!("{name}, step {step}, {what}: {}", bits.join(" "));
}

//! Networks against a plain f64 implementation and finite differences on it.

use crate::support;

use album_nn::{Activation, Isa, Mlp, MlpSpec, Pool, Tape};
use support::*;

/// sum over outputs of w * y^2 / 2 + v * y: its gradient is w * y + v.
fn check(spec: MlpSpec, rows: usize, isa: Isa) {
    let mut rng = rng(1);
    let mut net = Mlp::new(spec.clone(), &mut rng);
    perturb(&mut net, &mut rng, 0.3);
    let columns = net.output_columns();
    let (w, v) = (random(&mut rng, rows, columns, 1.0), random(&mut rng, rows, columns, 1.0));
    let x = random(&mut rng, rows, spec.inputs, 1.5);

    let mut tape = Tape::new(&Pool::with_isa(2, isa));
    let tape = tape.begin();
    let input = tape.variable(&x);
    let y = tape.apply(&net, input);
    let loss = (0.5 * tape.constant(&w) * y.square() + tape.constant(&v) * y).sum();
    let gradients = loss.backward();

    let (w, v, mut x) = (matrix_f64(&w), matrix_f64(&v), matrix_f64(&x));
    let mut params = as_f64(&net.tensors());
    let objective = |params: &[Vec<f64>], x: &[f64]| {
        let y = forward(&net, params, x, rows);
        (0..y.len()).map(|i| 0.5 * w[i] * y[i] * y[i] + v[i] * y[i]).sum::<f64>()
    };
    let what = format!("{spec:?} on {rows} rows, {isa:?}");
    assert_close(&what, y.to_matrix().data(), &forward(&net, &params, &x, rows), 1e-5);
    assert_close(&what, &[loss.item()], &[objective(&params, &x)], 1e-5);
    let exact = differences(&mut x, |x| objective(&params, x));
    assert_close(&format!("{what}: input"), gradients.wrt(input).data(), &exact, 2e-5);
    for (t, tensor) in gradients.of(&net).iter().enumerate() {
        let mut values = params[t].clone();
        let exact = differences(&mut values, |values| {
            params[t].copy_from_slice(values);
            objective(&params, &x)
        });
        assert_close(&format!("{what}: {}", tensor.name), &tensor.data, &exact, 2e-5);
    }
}

#[test]
fn backward_matches_finite_differences() {
    for isa in [Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Neon].into_iter().filter(|isa| isa.is_supported()) {
        for layer_norm in [false, true] {
            let spec = |inputs, hidden: &[usize], outputs| {
                MlpSpec::new(inputs, hidden, outputs).layer_norm(layer_norm)
            };
            check(spec(3, &[8], 1), 5, isa);
            check(spec(5, &[33, 7], 2), 4, isa);
            check(spec(37, &[16, 32], 3), 3, isa);
            check(spec(2, &[9, 9, 9], 34), 2, isa);
            check(spec(4, &[], 3), 6, isa);
            check(spec(4, &[10, 6], 2).members(3), 3, isa);
        }
        check(MlpSpec::new(1, &[1], 1), 1, isa);
    }
}

#[test]
fn every_activation_with_and_without_biases_matches_finite_differences() {
    for isa in [Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Neon].into_iter().filter(|isa| isa.is_supported()) {
        for activation in [Activation::Gelu, Activation::Relu, Activation::Mish] {
            for (bias, layer_norm) in [(true, false), (true, true), (false, false), (false, true)] {
                let spec = |inputs, hidden: &[usize], outputs| {
                    MlpSpec::new(inputs, hidden, outputs)
                        .activation(activation)
                        .bias(bias)
                        .layer_norm(layer_norm)
                };
                check(spec(5, &[33, 7], 2), 4, isa);
                check(spec(4, &[10, 6], 2).members(2), 3, isa);
                check(spec(4, &[], 3), 6, isa);
            }
        }
    }
}

#[test]
fn many_rows_match_finite_differences() {
    check(MlpSpec::new(3, &[6, 5], 1).layer_norm(true), 133, Isa::detect());
}

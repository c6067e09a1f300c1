//! Adam against hand-computed numbers and against f64.

use crate::support;

use album_nn::{Adam, Gradients, Matrix, Mlp, MlpSpec, Pool, Tape};
use support::*;

/// A loss whose gradient with respect to a 3-vector (a linear network on zeros) is `g`.
fn gradient_of<'t>(tape: &'t Tape, vector: &Mlp, g: &[f32]) -> Gradients<'t> {
    let v = tape.apply(vector, tape.constant(&Matrix::zeros(1, 1)));
    (v * tape.constant_slice(1, 3, g)).sum().backward()
}

#[test]
fn first_steps_by_hand() {
    let mut vector = Mlp::new(MlpSpec::new(1, &[], 3), &mut rng(1));
    let mut adam = Adam::new(&vector, 0.1);
    let mut tape = Tape::new(&Pool::new(1));
    let clone = vector.clone();
    let gradients = gradient_of(tape.begin(), &clone, &[2.0, -0.5, 0.0]);
    adam.step(&mut vector, &gradients);
    // A clone was differentiated, so this network has not moved.
    assert_eq!(vector.tensors()[1].data, [0.0; 3]);
    let mut adam = Adam::new(&vector, 0.1);

    let gradients = gradient_of(tape.begin(), &vector, &[2.0, -0.5, 0.0]);
    adam.step(&mut vector, &gradients);
    // m_hat = g and v_hat = g^2: a step of the learning rate against the sign.
    assert_close("first step", &vector.tensors()[1].data, &[-0.1, 0.1, 0.0], 1e-6);
    assert_close("m", &adam.first_moments()[1].data, &[0.2, -0.05, 0.0], 1e-6);
    assert_close("v", &adam.second_moments()[1].data, &[0.004, 0.00025, 0.0], 1e-6);

    let gradients = gradient_of(tape.begin(), &vector, &[1.0, 1.0, 1.0]);
    adam.step(&mut vector, &gradients);
    // m = 0.9 * 0.2 + 0.1 = 0.28, v = 0.999 * 0.004 + 0.001; corrections 0.19 and 0.001999.
    let first = -0.1 - 0.1 * (0.28 / 0.19) / (0.004996f64 / 0.001999).sqrt();
    let second = 0.1 - 0.1 * (0.055 / 0.19) / (0.00124975f64 / 0.001999).sqrt();
    let third = -0.1 * (0.1 / 0.19) / (0.001f64 / 0.001999).sqrt();
    assert_close("second step", &vector.tensors()[1].data, &[first, second, third], 1e-6);
    assert_eq!(adam.steps(), 2);
}

#[test]
fn a_hundred_steps_match_f64() {
    let spec = MlpSpec::new(4, &[40, 12], 2).layer_norm(true);
    let mut net = Mlp::new(spec, &mut rng(1));
    let mut adam = Adam::new(&net, 3e-3);
    let mut tape = Tape::new(&Pool::new(2));
    let mut params = as_f64(&net.tensors());
    let (mut m, mut v) = (zeros_like(&params), zeros_like(&params));
    let x = random(&mut rng(2), 30, 4, 1.0);
    let y = random(&mut rng(3), 30, 2, 1.0);
    for step in 1..=100 {
        let tape = tape.begin();
        let loss = (tape.apply(&net, tape.constant(&x)) - tape.constant(&y)).square().mean();
        let gradients = loss.backward();
        let (c1, c2) = (1.0 - 0.9f64.powi(step), 1.0 - 0.999f64.powi(step));
        for (t, tensor) in gradients.of(&net).iter().enumerate() {
            for (i, &g) in tensor.data.iter().enumerate() {
                let g = f64::from(g);
                m[t][i] = 0.9 * m[t][i] + 0.1 * g;
                v[t][i] = 0.999 * v[t][i] + 0.001 * g * g;
                params[t][i] -= 3e-3 * (m[t][i] / c1) / ((v[t][i] / c2).sqrt() + 1e-8);
            }
        }
        adam.step(&mut net, &gradients);
    }
    for (t, tensor) in net.tensors().iter().enumerate() {
        assert_close(&tensor.name, &tensor.data, &params[t], 2e-5);
        assert_close(&tensor.name, &adam.first_moments()[t].data, &m[t], 2e-5);
        assert_close(&tensor.name, &adam.second_moments()[t].data, &v[t], 2e-5);
    }
}

fn zeros_like(params: &[Vec<f64>]) -> Vec<Vec<f64>> {
    params.iter().map(|p| vec![0.0; p.len()]).collect()
}

#[test]
fn a_restored_state_continues_bit_for_bit() {
    let spec = MlpSpec::new(3, &[20], 1).layer_norm(true);
    let mut net = Mlp::new(spec.clone(), &mut rng(1));
    let mut adam = Adam::new(&net, 1e-2);
    let mut tape = Tape::new(&Pool::new(2));
    let mut batches = rng(2);
    let mut step = |net: &mut Mlp, adam: &mut Adam, x: &Matrix| {
        let tape = tape.begin();
        let gradients = tape.apply(net, tape.constant(x)).square().mean().backward();
        adam.step(net, &gradients);
    };
    let batches: Vec<Matrix> = (0..10).map(|_| random(&mut batches, 16, 3, 1.0)).collect();
    for x in &batches[..5] {
        step(&mut net, &mut adam, x);
    }
    let mut copy = Mlp::new(spec, &mut rng(7));
    copy.load(&net.tensors()).unwrap();
    let mut restored = Adam::new(&copy, 1e-2);
    restored.load(adam.steps(), &adam.first_moments(), &adam.second_moments()).unwrap();
    for x in &batches[5..] {
        step(&mut net, &mut adam, x);
        step(&mut copy, &mut restored, x);
    }
    assert_eq!(net.tensors(), copy.tensors());
    assert_eq!(adam.first_moments(), restored.first_moments());
    assert_eq!(adam.second_moments(), restored.second_moments());
}

#[test]
fn a_network_without_gradient_drifts_on() {
    let mut vector = Mlp::new(MlpSpec::new(1, &[], 3), &mut rng(1));
    let mut adam = Adam::new(&vector, 0.1);
    let mut tape = Tape::new(&Pool::new(1));
    let gradients = gradient_of(tape.begin(), &vector, &[1.0, 1.0, 1.0]);
    adam.step(&mut vector, &gradients);
    let tape = tape.begin();
    let gradients = tape.variable(&Matrix::zeros(1, 1)).backward();
    adam.step(&mut vector, &gradients);
    let drift = -0.1 - 0.1 * (0.09 / 0.19) / (0.000999f64 / 0.001999).sqrt();
    assert_close("drift", &vector.tensors()[1].data, &[drift; 3], 1e-6);
    assert_close("m", &adam.first_moments()[1].data, &[0.09; 3], 1e-6);
    assert_close("v", &adam.second_moments()[1].data, &[0.000999; 3], 1e-6);
    assert_eq!(adam.steps(), 2);
}

/// Two steps of a network: one with a gradient, then one whose gradient `second` computes from the network.
fn two_steps(second: for<'t> fn(&'t Tape, &Mlp) -> Gradients<'t>) -> (Mlp, Adam) {
    let mut net = Mlp::new(MlpSpec::new(3, &[40], 2).layer_norm(true), &mut rng(1));
    let mut adam = Adam::new(&net, 1e-2);
    let mut tape = Tape::new(&Pool::new(2));
    {
        let tape = tape.begin();
        let x = tape.constant(&random(&mut rng(2), 20, 3, 1.0));
        let loss = (tape.apply(&net, x) - 1.0).square().mean();
        adam.step(&mut net, &loss.backward());
    }
    let gradients = second(tape.begin(), &net);
    adam.step(&mut net, &gradients);
    (net, adam)
}

#[test]
fn no_gradient_is_a_gradient_of_zero() {
    let (net, adam) = two_steps(|tape, net| (0.0 * tape.apply(net, tape.filled(4, 3, 0.5))).sum().backward());
    let others = [
        // Not on the tape at all, only behind a `detach`, frozen, and with all rows removed by a hinge.
        two_steps(|tape, _| tape.zeros(1, 1).backward()),
        two_steps(|tape, net| tape.apply(net, tape.zeros(4, 3)).detach().sum().backward()),
        two_steps(|tape, net| tape.apply_frozen(net, tape.zeros(4, 3)).sum().backward()),
        two_steps(|tape, net| (tape.apply(net, tape.zeros(4, 3)) - 1e3).relu().sum().backward()),
    ];
    for (other, moments) in others {
        assert_eq!(other.tensors(), net.tensors());
        assert_eq!(moments.first_moments(), adam.first_moments());
        assert_eq!(moments.second_moments(), adam.second_moments());
        assert_eq!(moments.steps(), 2);
    }
}

#[test]
fn a_scaled_step_is_a_step_by_the_scaled_loss() {
    let spec = MlpSpec::new(3, &[40], 2).layer_norm(true);
    let run = |factor: f32, scale: f32| {
        let mut net = Mlp::new(spec.clone(), &mut rng(1));
        let mut adam = Adam::new(&net, 1e-2);
        let mut tape = Tape::new(&Pool::new(2));
        for seed in 0..3 {
            let tape = tape.begin();
            let x = tape.constant(&random(&mut rng(seed), 20, 3, 1.0));
            let loss = factor * (tape.apply(&net, x) - 1.0).square().mean();
            // A power of two commutes with rounding.
            adam.step_scaled(&mut net, &loss.backward(), scale);
        }
        (net.tensors(), adam.first_moments(), adam.second_moments())
    };
    assert_eq!(run(1.0, 0.25), run(0.25, 1.0));
    assert_ne!(run(1.0, 0.25).1, run(1.0, 1.0).1);
}

#[test]
fn several_networks_have_one_norm() {
    let (a, b) =
        (Mlp::new(MlpSpec::new(3, &[40], 2), &mut rng(1)), Mlp::new(MlpSpec::new(3, &[], 1), &mut rng(2)));
    let idle = Mlp::new(MlpSpec::new(3, &[], 1), &mut rng(3));
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let x = tape.constant(&random(&mut rng(2), 20, 3, 1.0));
    let loss = (tape.apply(&a, x) - 1.0).square().mean() + tape.apply(&b, x).square().mean();
    let gradients = loss.backward();
    let all = gradients.of(&a).into_iter().chain(gradients.of(&b)).flat_map(|t| t.data);
    let exact = all.map(|g| f64::from(g).powi(2)).sum::<f64>().sqrt();
    assert!((gradients.norm_all(&[&a, &b, &idle]) / exact - 1.0).abs() < 1e-12);
    assert_eq!(gradients.norm_all(&[&b]), gradients.norm(&b));
    assert_eq!(gradients.norm_all(&[&idle]), 0.0);
    assert_eq!(gradients.norm_all(&[]), 0.0);
}

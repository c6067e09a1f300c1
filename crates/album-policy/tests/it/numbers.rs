//! Single steps against double precision.

use crate::support::policy;
use album_policy::{Actions, Function, Graph, Noise, Policy, PolicyFile, Step, Tensors};

/// A policy of a few steps.
fn steps(sizes: (usize, usize), noise: Noise, steps: Vec<Step>, tensors: Tensors) -> Policy {
    let mut manifest = policy(1).manifest;
    let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
    let (low, high) = (vec![-1.0; sizes.1], vec![1.0; sizes.1]);
    manifest.observations = names(sizes.0);
    manifest.actions = Actions::Continuous { names: names(sizes.1), low, high };
    (manifest.open_loop, manifest.noise) = (1, noise);
    Policy::new(PolicyFile { manifest, graph: Graph { steps }, tensors }).unwrap()
}

#[test]
fn products_of_any_size_are_right() {
    for (rows, inputs, outputs) in [(1, 1, 1), (1, 7, 43), (5, 3, 32), (9, 40, 81), (4, 5, 8), (3, 512, 9)] {
        let number = |i: usize| ((i * 37 + 11) % 19) as f32 - 9.0;
        let data: Vec<f32> = (0..inputs * outputs).map(number).collect();
        let x: Vec<f32> = (0..rows * inputs).map(|i| number(i + 5)).collect();
        let bias: Vec<f32> = (0..outputs).map(number).collect();
        let mut tensors = Tensors::default();
        tensors.insert("w", vec![inputs, outputs], data.clone());
        tensors.insert("b", vec![outputs], bias.clone());
        let linear = Step::Linear { x: 0, kernel: "w".into(), bias: Some("b".into()) };
        let mut policy = steps((inputs, outputs), Noise::default(), vec![Step::Observation, linear], tensors);
        let mut out = vec![f32::NAN; rows * outputs];
        policy.act(&x, &mut out).unwrap();
        for row in 0..rows {
            for j in 0..outputs {
                let sum: f32 = (0..inputs).map(|i| x[row * inputs + i] * data[i * outputs + j]).sum();
                assert_eq!(out[row * outputs + j], sum + bias[j], "{rows} {inputs} {outputs}: {row} {j}");
            }
        }
    }
}

#[test]
fn functions_are_exact_to_single_precision() {
    let x: Vec<f32> = (-60_000..=60_000).map(|i| i as f32 * 5e-4).collect();
    type Exact = fn(f64) -> f64;
    let functions: [(Function, Exact); 4] = [
        (Function::Gelu, |x| {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + u.tanh())
        }),
        (Function::Mish, |x| x * x.exp().ln_1p().tanh()),
        (Function::Relu, |x| x.max(0.0)),
        (Function::Tanh, f64::tanh),
    ];
    for (f, exact) in functions {
        let map = vec![Step::Observation, Step::Map { x: 0, f }];
        let mut policy = steps((1, 1), Noise::default(), map, Tensors::default());
        let mut y = vec![0.0; x.len()];
        policy.act(&x, &mut y).unwrap();
        for (&x, &y) in x.iter().zip(&y) {
            let exact = exact(x.into());
            assert!(
                (f64::from(y) - exact).abs() <= 4e-6 * exact.abs() + 1e-6,
                "{f:?}({x}) = {y}, not {exact}"
            );
        }
    }
}

#[test]
fn noise_has_the_moments_of_its_distributions() {
    let noise = Noise { normal: 1, uniform: 1 };
    let mut policy =
        steps((1, 2), noise, vec![Step::Noise { from: 0, rows: 1, cols: 2 }], Tensors::default());
    let n = 100_000;
    let mut draws = vec![0.0; 2 * n];
    policy.act(&vec![0.0; n], &mut draws).unwrap();
    let mean = |of: usize, f: &dyn Fn(f64) -> f64| {
        draws.chunks_exact(2).map(|row| f(row[of].into())).sum::<f64>() / n as f64
    };
    assert!(mean(0, &|x| x).abs() < 0.015 && (mean(0, &|x| x * x) - 1.0).abs() < 0.02);
    assert!((mean(0, &|x| x.powi(4)) - 3.0).abs() < 0.15);
    assert!((mean(1, &|x| x) - 0.5).abs() < 0.005 && (mean(1, &|x| x * x) - 1.0 / 3.0).abs() < 0.005);
    assert!(draws.chunks_exact(2).all(|row| (0.0..1.0).contains(&row[1])));
}

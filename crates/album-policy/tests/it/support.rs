//! A small policy with every kind of step.
#![allow(dead_code, clippy::unwrap_used)] // the allocation test uses a part of it

use album_policy::{
    Actions, Function, Graph, Manifest, Noise, Operator, PolicyFile, Reduction, Step, Tensors,
};

/// The best and a drawn one of `n` candidates `tanh(W [s, z])`, side by side; scores are means of two
/// columns.
pub fn policy(n: usize) -> PolicyFile {
    let mut tensors = Tensors::default();
    let numbers = |len: usize, by: f32| (0..len).map(|i| ((i * 7 + 3) % 11) as f32 * by - 0.5).collect();
    tensors.insert("mean", vec![3], vec![0.5, -1.0, 0.0]);
    tensors.insert("w", vec![5, 8], numbers(40, 0.1));
    tensors.insert("b", vec![8], numbers(8, 0.1));
    tensors.insert("scale", vec![8], vec![1.5; 8]);
    tensors.insert("shift", vec![8], vec![0.1; 8]);
    tensors.insert("head", vec![8, 2], numbers(16, 0.09));
    tensors.insert("q", vec![2, 2], vec![1.0, -0.5, 0.25, 2.0]);
    let linear = |x, kernel: &str, bias: Option<&str>| Step::Linear {
        x,
        kernel: kernel.into(),
        bias: bias.map(str::to_owned),
    };
    let steps = vec![
        Step::Observation,
        Step::Constant { tensor: "mean".into() },
        Step::Combine { f: Operator::Sub, a: 0, b: 1 },
        Step::Repeat { x: 2, times: n },
        Step::Noise { from: 0, rows: n, cols: 2 },
        Step::Concat { parts: vec![3, 4] },
        linear(5, "w", Some("b")),
        Step::Map { x: 6, f: Function::Gelu },
        Step::Norm { x: 7, epsilon: 1e-6, scale: "scale".into(), shift: "shift".into() },
        linear(8, "head", None),
        Step::Map { x: 9, f: Function::Tanh },
        linear(10, "q", None),
        Step::Reduce { x: 11, members: 2, by: Reduction::Mean },
        Step::Best { candidates: 10, scores: 12 },
        Step::Noise { from: 2 * n, rows: 1, cols: 1 },
        Step::Draw { candidates: 10, scores: 12, uniform: 14 },
        Step::Concat { parts: vec![13, 15] },
        Step::Affine { x: 16, by: 2.0, add: 0.5 },
        Step::Clip { x: 17, low: -1.0, high: 2.0 },
    ];
    let names = |what: &str, n: usize| (0..n).map(|i| format!("{what}{i}")).collect();
    PolicyFile {
        manifest: Manifest {
            task: "test".into(),
            agent: "none".into(),
            seed: 0,
            step: 1,
            weights_sha256: "0".repeat(64),
            album: "0.0.0".into(),
            observations: names("o", 3),
            actions: Actions::Continuous { names: names("a", 2), low: vec![-1.0; 2], high: vec![2.0; 2] },
            open_loop: 2,
            noise: Noise { normal: 2 * n, uniform: 1 },
        },
        graph: Graph { steps },
        tensors,
    }
}

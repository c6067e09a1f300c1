//! A plain f64 implementation of the engine's computations, and finite differences on it.
#![allow(dead_code)] // each test file uses its part
#![allow(clippy::unwrap_used)]

use album_nn::{Activation, Matrix, Mlp, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// A matrix of values in [-scale, scale).
pub fn random(rng: &mut impl Rng, rows: usize, cols: usize, scale: f32) -> Matrix {
    let mut value = || scale * (2.0 * (rng.next_u32() as f64 / 2f64.powi(32)) as f32 - 1.0);
    Matrix::from_vec(rows, cols, (0..rows * cols).map(|_| value()).collect())
}

/// Moves every parameter away from its initial value, so that no bias is zero and no scale is one.
pub fn perturb(net: &mut Mlp, rng: &mut impl Rng, by: f32) {
    let mut tensors = net.tensors();
    for tensor in &mut tensors {
        let noise = random(rng, 1, tensor.data.len(), by);
        tensor.data.iter_mut().zip(noise.data()).for_each(|(x, n)| *x += n);
    }
    net.load(&tensors).unwrap();
}

/// Parameters as f64, tensor by tensor, in the engine's order.
pub fn as_f64(tensors: &[Tensor]) -> Vec<Vec<f64>> {
    tensors.iter().map(|t| t.data.iter().map(|&x| f64::from(x)).collect()).collect()
}

pub fn gelu(z: f64) -> f64 {
    let u = (2.0 / std::f64::consts::PI).sqrt() * (z + 0.044715 * z.powi(3));
    0.5 * z * (1.0 + u.tanh())
}

pub fn activate(activation: Activation, z: f64) -> f64 {
    match activation {
        Activation::Gelu => gelu(z),
        Activation::Relu => z.max(0.0),
        Activation::Mish => z * z.exp().ln_1p().tanh(),
    }
}

/// Applies `net`'s architecture with parameters `params` to each row; members side by side.
pub fn forward(net: &Mlp, params: &[Vec<f64>], x: &[f64], rows: usize) -> Vec<f64> {
    let spec = net.spec();
    let per_member = params.len() / spec.members;
    let columns = spec.members * spec.outputs;
    let mut out = vec![0.0; rows * columns];
    for member in 0..spec.members {
        for row in 0..rows {
            let mut tensors = params[member * per_member..].iter();
            let mut h = x[row * spec.inputs..][..spec.inputs].to_vec();
            for layer in 0..=spec.hidden.len() {
                let kernel = tensors.next().unwrap();
                let width = kernel.len() / h.len();
                let mut z = if spec.bias { tensors.next().unwrap().clone() } else { vec![0.0; width] };
                for (i, x) in h.iter().enumerate() {
                    for j in 0..width {
                        z[j] += x * kernel[i * width + j];
                    }
                }
                if layer < spec.hidden.len() {
                    z.iter_mut().for_each(|z| *z = activate(spec.activation, *z));
                    if spec.layer_norm {
                        let (scale, shift) = (tensors.next().unwrap(), tensors.next().unwrap());
                        let n = width as f64;
                        let mean = z.iter().sum::<f64>() / n;
                        let variance = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / n;
                        for j in 0..width {
                            z[j] = (z[j] - mean) / (variance + 1e-6).sqrt() * scale[j] + shift[j];
                        }
                    }
                }
                h = z;
            }
            out[row * columns + member * spec.outputs..][..spec.outputs].copy_from_slice(&h);
        }
    }
    out
}

/// Central differences of `f` at `x`.
pub fn differences(x: &mut [f64], mut f: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let h = 1e-6;
    (0..x.len())
        .map(|i| {
            let middle = x[i];
            x[i] = middle + h;
            let above = f(x);
            x[i] = middle - h;
            let below = f(x);
            x[i] = middle;
            (above - below) / (2.0 * h)
        })
        .collect()
}

/// Fails unless `found` is within `tolerance` of `expected`, relative to the largest expected entry.
#[track_caller]
pub fn assert_close(what: &str, found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}: length");
    let size = expected.iter().fold(1e-3, |m: f64, x| m.max(x.abs()));
    for (i, (&f, e)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(f) - e).abs() / size;
        assert!(error <= tolerance, "{what}[{i}] = {f}, expected {e} (error {error:.1e} of {size:.3})");
    }
}

pub fn matrix_f64(matrix: &Matrix) -> Vec<f64> {
    matrix.data().iter().map(|&x| f64::from(x)).collect()
}

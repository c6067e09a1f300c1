//! The encoding of observations. The paper feeds them in unchanged; two options go beyond that, for tasks
//! with very few coordinates: with LayerNorm after the activation, a network on two raw coordinates sees
//! little more than the angle of its input.

use album_base::rng;
use album_data::{Dataset, View};
use serde::{Deserialize, Serialize};

/// Observation -> network input: unchanged, or standardised and extended by random Fourier features.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Encoding {
    observation_dim: usize,
    /// `(x - mean) / std` per coordinate, if standardisation is on.
    standard: Option<Vec<(f32, f32)>>,
    /// One frequency vector per pair of features `sin(w'x), cos(w'x)`, row by row.
    frequencies: Vec<f32>,
}

impl Encoding {
    /// Unchanged observations.
    pub fn identity(observation_dim: usize) -> Self {
        Encoding { observation_dim, standard: None, frequencies: Vec::new() }
    }

    /// Standardised with the statistics of the data if `standardize` is on, and extended by `fourier` random
    /// features (an even number) with frequencies drawn from N(0, scale^2) by `seed`.
    pub fn new(data: &Dataset, standardize: bool, fourier: usize, scale: f64, seed: u64) -> Self {
        let dim = data.observation_dim();
        let mut draw = rng::stream(seed, "encoding");
        let mut frequencies = Vec::with_capacity(fourier / 2 * dim);
        while frequencies.len() < fourier / 2 * dim {
            frequencies.extend(rng::normal_pair(&mut draw).map(|x| (scale * x) as f32));
        }
        frequencies.truncate(fourier / 2 * dim);
        let standard = standardize.then(|| standardise(data));
        Encoding { observation_dim: dim, standard, frequencies }
    }

    /// Dimension of the network input.
    pub fn dim(&self) -> usize {
        self.observation_dim + 2 * (self.frequencies.len() / self.observation_dim.max(1))
    }

    /// Whether observations are unchanged.
    pub fn is_identity(&self) -> bool {
        self.standard.is_none() && self.frequencies.is_empty()
    }

    /// Dimension of an observation.
    pub fn observation_dim(&self) -> usize {
        self.observation_dim
    }

    /// Mean and 1 / standard deviation of each coordinate, if standardisation is on.
    pub fn standard(&self) -> Option<&[(f32, f32)]> {
        self.standard.as_deref()
    }

    /// The frequency vectors of Fourier features, row by row: each gives `sin(w'x), cos(w'x)`.
    pub fn frequencies(&self) -> &[f32] {
        &self.frequencies
    }

    /// Encodes rows of observations into `out`, [`Encoding::dim`] numbers each.
    pub fn encode(&self, observations: View<'_>, out: &mut [f32]) {
        for (row, out) in observations.iter().zip(out.chunks_exact_mut(self.dim().max(1))) {
            let (x, features) = out.split_at_mut(self.observation_dim);
            x.copy_from_slice(row);
            if let Some(standard) = &self.standard {
                x.iter_mut().zip(standard).for_each(|(x, (mean, inverse))| *x = (*x - mean) * inverse);
            }
            let frequencies = self.frequencies.chunks_exact(self.observation_dim);
            for (w, pair) in frequencies.zip(features.chunks_exact_mut(2)) {
                let phase: f32 = w.iter().zip(&*x).map(|(w, x)| w * x).sum();
                pair.copy_from_slice(&[phase.sin(), phase.cos()]);
            }
        }
    }

    /// Whether the parts have consistent sizes; those read from a file may not.
    pub(crate) fn is_consistent(&self) -> bool {
        let dim = self.observation_dim;
        dim > 0
            && self.standard.as_ref().is_none_or(|standard| standard.len() == dim)
            && self.frequencies.len().is_multiple_of(dim)
    }
}

/// Mean and 1 / standard deviation of each column.
fn standardise(data: &Dataset) -> Vec<(f32, f32)> {
    let n = data.episodes().rows().max(1) as f64;
    (0..data.observation_dim())
        .map(|j| {
            let column = || data.states().map(|state| f64::from(state[j]));
            let mean = column().sum::<f64>() / n;
            let variance = column().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            (mean as f32, (1.0 / variance.sqrt().max(1e-6)) as f32)
        })
        .collect()
}

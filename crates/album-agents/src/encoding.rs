//! What the networks see of an observation. The paper feeds it in as it is; two switches go beyond that, for tasks with
//! very few coordinates: with LayerNorm after the activation, a network of two raw coordinates sees little but the angle
//! of its input.

use album_base::rng;
use album_data::Dataset;

/// Observation -> network input: as it is, or standardised and extended by random Fourier features.
#[derive(Clone, Debug)]
pub struct Encoding {
    observation_dim: usize,
    /// `(x - mean) / std` per coordinate, where standardisation is on.
    standard: Option<Vec<(f32, f32)>>,
    /// One frequency vector per pair of features `sin(w'x), cos(w'x)`, row by row.
    frequencies: Vec<f32>,
}

impl Encoding {
    /// Observations as they are.
    pub fn identity(observation_dim: usize) -> Self {
        Encoding { observation_dim, standard: None, frequencies: Vec::new() }
    }

    /// Standardised by the data where `standardize` is on, and extended by `fourier` random features (an even number)
    /// with frequencies drawn from N(0, scale^2) by `seed`.
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

    /// Columns of the network input.
    pub fn dim(&self) -> usize {
        self.observation_dim + 2 * (self.frequencies.len() / self.observation_dim.max(1))
    }

    /// Whether observations pass through unchanged.
    pub fn is_identity(&self) -> bool {
        self.standard.is_none() && self.frequencies.is_empty()
    }

    /// Encodes rows of observations into `out`.
    pub fn encode(&self, observations: &[f32], out: &mut Vec<f32>) {
        out.clear();
        for row in observations.chunks_exact(self.observation_dim) {
            let start = out.len();
            match &self.standard {
                Some(standard) => {
                    out.extend(row.iter().zip(standard).map(|(x, (mean, inverse))| (x - mean) * inverse));
                }
                None => out.extend_from_slice(row),
            }
            for w in self.frequencies.chunks_exact(self.observation_dim) {
                let x = &out[start..start + self.observation_dim];
                let phase: f32 = w.iter().zip(x).map(|(w, x)| w * x).sum();
                out.extend([phase.sin(), phase.cos()]);
            }
        }
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

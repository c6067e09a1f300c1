//! Random actions and noise.

use album_base::rng;
use album_data::ActionSpace;
use rand_chacha::ChaCha8Rng;

use super::Recipe;

/// The exploration noise of one episode.
#[derive(Debug, Clone)]
pub(super) struct Explorer {
    rng: ChaCha8Rng,
    noise: f64,
    epsilon: f64,
}

impl Explorer {
    /// The random stream of an episode follows from its index.
    pub fn new(recipe: &Recipe, episode: usize) -> Self {
        let mut rng = rng::stream(recipe.seed, "record/exploration");
        rng.set_stream(episode as u64);
        Self { rng, noise: recipe.noise, epsilon: recipe.epsilon }
    }

    /// Draws a uniformly random action.
    pub fn random(&mut self, space: &ActionSpace, action: &mut Vec<f32>) {
        match space {
            ActionSpace::Discrete { n } => action.push(rng::below(&mut self.rng, *n as u64) as f32),
            ActionSpace::Continuous { low, high } => {
                for (&low, &high) in low.iter().zip(high) {
                    let (low, high) = (f64::from(low), f64::from(high));
                    action.push((low + (high - low) * rng::unit(&mut self.rng)) as f32);
                }
            }
        }
    }

    /// Replaces the policy's action or adds noise to it, and clips the result: the recorded action is what
    /// the environment received.
    pub fn disturb(&mut self, space: &ActionSpace, action: &mut Vec<f32>) {
        if self.epsilon > 0.0 && rng::unit(&mut self.rng) < self.epsilon {
            action.clear();
            self.random(space, action);
        }
        let ActionSpace::Continuous { low, high } = space else { return };
        for ((x, &low), &high) in action.iter_mut().zip(low).zip(high) {
            if self.noise > 0.0 {
                let [noise, _] = rng::normal_pair(&mut self.rng);
                let half = 0.5 * (f64::from(high) - f64::from(low));
                *x = (f64::from(*x) + self.noise * half * noise) as f32;
            }
            *x = x.clamp(low, high);
        }
    }
}

//! The random numbers of an update.

use album_base::rng;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// What an update draws: a function of the run's seed and the step, so that nothing of it needs to be stored.
pub enum Noise {
    /// From a random stream.
    Stream(Box<ChaCha8Rng>),
    /// What was recorded elsewhere, draw by draw, to be used again.
    Recorded(VecDeque<Vec<f32>>),
}

impl Noise {
    /// The noise of step `step`.
    pub fn at(seed: u64, step: u64) -> Self {
        let mut stream = rng::stream(seed, "noise");
        stream.set_stream(step);
        Noise::Stream(Box::new(stream))
    }

    /// Standard normal numbers.
    pub fn normal(&mut self, n: usize) -> Vec<f32> {
        self.draw(n, normal)
    }

    /// Numbers uniform on [0, 1).
    pub fn uniform(&mut self, n: usize) -> Vec<f32> {
        self.draw(n, |stream, n| (0..n).map(|_| rng::unit(stream) as f32).collect())
    }

    fn draw(&mut self, n: usize, draw: impl Fn(&mut ChaCha8Rng, usize) -> Vec<f32>) -> Vec<f32> {
        match self {
            Noise::Stream(stream) => draw(stream, n),
            Noise::Recorded(draws) => {
                let next = draws.pop_front().unwrap_or_default();
                assert_eq!(next.len(), n, "a draw of {n} numbers where {} were recorded", next.len());
                next
            }
        }
    }
}

/// Standard normal numbers of a stream.
pub(crate) fn normal(stream: &mut ChaCha8Rng, n: usize) -> Vec<f32> {
    let pairs = (0..n.div_ceil(2)).flat_map(|_| rng::normal_pair(stream));
    pairs.map(|x| x as f32).take(n).collect()
}

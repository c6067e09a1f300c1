//! The random numbers of an update.

use album_base::rng;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// The random draws of an update: a function of the run's seed and the step, so a checkpoint need not store
/// them.
#[derive(Debug)]
pub struct Noise {
    stream: ChaCha8Rng,
    /// Draws recorded elsewhere, used instead of the stream.
    recorded: Option<VecDeque<Vec<f32>>>,
}

impl Noise {
    /// The noise of step `step`.
    pub fn at(seed: u64, step: u64) -> Self {
        let mut stream = rng::stream(seed, "noise");
        stream.set_stream(step);
        Noise { stream, recorded: None }
    }

    /// Recorded draws, in order.
    pub fn recorded(draws: impl IntoIterator<Item = Vec<f32>>) -> Self {
        Noise { recorded: Some(draws.into_iter().collect()), ..Noise::at(0, 0) }
    }

    /// Fills `out` with standard normal numbers.
    pub fn normal(&mut self, out: &mut [f32]) {
        if !self.replays(out) {
            normal(&mut self.stream, out);
        }
    }

    /// Fills `out` with numbers uniform on [0, 1).
    pub fn uniform(&mut self, out: &mut [f32]) {
        if !self.replays(out) {
            out.iter_mut().for_each(|x| *x = rng::unit_f32(&mut self.stream));
        }
    }

    fn replays(&mut self, out: &mut [f32]) -> bool {
        let Some(recorded) = &mut self.recorded else { return false };
        let next = recorded.pop_front().unwrap_or_default();
        assert_eq!(
            next.len(),
            out.len(),
            "a draw of {} numbers where {} were recorded",
            out.len(),
            next.len()
        );
        out.copy_from_slice(&next);
        true
    }
}

/// Fills `out` with standard normal numbers of a stream.
pub(crate) fn normal(stream: &mut ChaCha8Rng, out: &mut [f32]) {
    for pair in out.chunks_mut(2) {
        let draws = rng::normal_pair(stream);
        pair.iter_mut().zip(draws).for_each(|(x, draw)| *x = draw as f32);
    }
}

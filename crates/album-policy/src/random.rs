//! The noise of stochastic policies: xoshiro256++ and Box-Muller. Not for cryptography.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        // SplitMix64, as the authors of xoshiro recommend.
        let mut state = seed;
        Random([(); 4].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Uniform on [0, 1), in steps of 2^-24.
    pub fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 * 0.5f32.powi(24)
    }

    /// Standard normal numbers.
    pub fn normal(&mut self, out: &mut [f32]) {
        for pair in out.chunks_mut(2) {
            let unit = |bits: u64| (bits >> 11) as f64 * 0.5f64.powi(53);
            let radius = (-2.0 * (1.0 - unit(self.next())).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * unit(self.next())).sin_cos();
            pair.iter_mut().zip([radius * cos, radius * sin]).for_each(|(x, draw)| *x = draw as f32);
        }
    }
}

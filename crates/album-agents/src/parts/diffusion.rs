//! Diffusion policies: a network that predicts the noise in a noisy action, noise schedules, and a sampler.
//!
//! The network is IDQL's, also used by SRPO: a time embedding of `c` columns, then residual blocks of width
//! `w`:
//!
//! ```text
//! c = Dense_c . mish . Dense_c (features(t)),     h = Dense_w([x, s, c])
//! h = h + Dense_w . mish . Dense_4w . LayerNorm . dropout (h)          for every block
//! eps(s, x, t) = Dense . mish (h)
//! ```

use crate::agent::AgentError;
use crate::algorithm::Inputs;
use crate::common::{at_least_one, fail};
use crate::networks::{Lookup, NetworkId, Networks};
use crate::parts::flow::Through;
use crate::parts::times::Times;
use album_nn::{Activation, MlpSpec, Var};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// The size of the network; part of the configuration of the agents that use one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoiseNetConfig {
    /// Width of the noise network between its blocks; four times as wide inside.
    pub noise_width: usize,
    /// Number of residual blocks of the noise network, at least 1.
    pub noise_blocks: usize,
    /// Number of time features, sines and cosines together: an even number.
    pub time_features: usize,
    /// Width of the time embedding.
    pub time_width: usize,
    /// Dropout rate before each block in training.
    pub dropout: f64,
}

impl Default for NoiseNetConfig {
    fn default() -> Self {
        NoiseNetConfig { noise_width: 256, noise_blocks: 3, time_features: 64, time_width: 128, dropout: 0.1 }
    }
}

impl NoiseNetConfig {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<(), AgentError> {
        at_least_one(&[
            ("noise_width", self.noise_width),
            ("noise_blocks", self.noise_blocks),
            ("time_width", self.time_width),
        ])?;
        if self.time_features == 0 || self.time_features % 2 == 1 {
            return fail("time_features", self.time_features.to_string(), "an even number of at least 2");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return fail("dropout", self.dropout.to_string(), "a number of at least 0 and below 1");
        }
        Ok(())
    }

    /// Dropout in training. Draws a number from U[0, 1] for every entry; draws nothing if the rate is 0.
    fn drop<'t>(&self, x: &Inputs<'t, '_>, h: Var<'t>) -> Var<'t> {
        if self.dropout == 0.0 {
            return h;
        }
        let rate = self.dropout as f32;
        h * (x.uniform(h.cols()).ge(rate) / (1.0 - rate))
    }
}

/// The time features: sines and cosines of `phase = 2 pi w t` with frequencies `w`.
#[derive(Clone, Copy)]
pub enum Frequencies {
    /// Trained frequencies, as `[cos, sin]` (IDQL).
    Learned,
    /// Fixed random frequencies, as `[sin, cos]` (SRPO).
    Fixed,
}

impl Frequencies {
    /// The standard deviation of their initial distribution.
    fn deviation(self) -> f64 {
        match self {
            Frequencies::Learned => 0.2,
            Frequencies::Fixed => 30.0,
        }
    }
}

/// The noise network, by the ids of its parts.
pub struct NoiseNet {
    frequencies: Frequencies,
    width: usize,
    time: NetworkId,
    condition: NetworkId,
    input: NetworkId,
    /// LayerNorm's scale minus 1 and its shift side by side, then dense layers.
    blocks: Vec<[NetworkId; 2]>,
    output: NetworkId,
}

impl NoiseNet {
    /// Creates the networks for states of `s` columns and noisy inputs of `x` columns.
    pub fn new(
        nets: &mut Networks,
        frequencies: Frequencies,
        (s, x): (usize, usize),
        c: &NoiseNetConfig,
        lr: f64,
    ) -> Self {
        let w = c.noise_width;
        let dense = |inputs, hidden: &[usize], outputs| {
            MlpSpec::new(inputs, hidden, outputs).activation(Activation::Mish)
        };
        let spec = MlpSpec::parameter(1, c.time_features / 2);
        let time = match frequencies {
            Frequencies::Learned => nets.policy("noise_time", spec, lr),
            Frequencies::Fixed => nets.fixed("noise_time", spec),
        };
        nets.draw_normal(time, frequencies.deviation());
        let condition =
            nets.policy("noise_condition", dense(c.time_features, &[c.time_width], c.time_width), lr);
        let input = nets.policy("noise_input", dense(x + s + c.time_width, &[], w), lr);
        let blocks = (0..c.noise_blocks).map(|i| {
            let norm = nets.policy(&format!("noise_norm{i}"), MlpSpec::parameter(1, 2 * w), lr);
            [norm, nets.policy(&format!("noise_block{i}"), dense(w, &[4 * w], w), lr)]
        });
        let blocks = blocks.collect();
        let output = nets.policy("noise_output", dense(w, &[], x), lr);
        NoiseNet { frequencies, width: w, time, condition, input, blocks, output }
    }

    /// A moving average of the trained network at `rate`.
    pub fn moving_average(&self, nets: &mut Networks, rate: f64) -> Self {
        let mut blocks = Vec::new();
        let time = nets.target("ema_time", self.time, rate);
        let condition = nets.target("ema_condition", self.condition, rate);
        let input = nets.target("ema_input", self.input, rate);
        for (i, &[norm, block]) in self.blocks.iter().enumerate() {
            let norm = nets.target(&format!("ema_norm{i}"), norm, rate);
            blocks.push([norm, nets.target(&format!("ema_block{i}"), block, rate)]);
        }
        let output = nets.target("ema_output", self.output, rate);
        NoiseNet { frequencies: self.frequencies, width: self.width, time, condition, input, blocks, output }
    }

    /// Predicts the noise in `x`, with one time per row. `drop` is the dropout, which acting omits.
    pub fn predict<'t>(
        &self,
        nets: Lookup<'_>,
        s: Var<'t>,
        x: Var<'t>,
        times: Times<'t, '_>,
        drop: impl Fn(Var<'t>) -> Var<'t>,
        through: Through,
    ) -> Var<'t> {
        let tape = s.tape();
        let features = match self.frequencies {
            Frequencies::Learned => {
                let phase = TAU as f32 * through.apply(&nets[self.time], times.column(|t| t));
                tape.concat_cols(&[phase.cos(), phase.sin()])
            }
            Frequencies::Fixed => fixed_features(tape.parameter_frozen(&nets[self.time]), times),
        };
        let condition = through.apply(&nets[self.condition], features);
        let mut h = through.apply(&nets[self.input], tape.concat_cols(&[x, s, condition]));
        for &[norm, dense] in &self.blocks {
            let norm = match through {
                Through::Trained => tape.parameter(&nets[norm]),
                Through::Frozen => tape.parameter_frozen(&nets[norm]),
            };
            let (scale, shift) =
                (1.0 + norm.slice_cols(0, self.width), norm.slice_cols(self.width, 2 * self.width));
            h = h + through.apply(&nets[dense], drop(h).normalize_rows(1e-6) * scale + shift);
        }
        through.apply(&nets[self.output], h.mish())
    }

    /// `|eps(s, x_t, t) - z|^2` of each row, where `x_t = alpha_t a + sigma_t z`. Draws `z` from N(0, I),
    /// then the dropout masks.
    pub fn error<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        c: &NoiseNetConfig,
        times: Times<'t, '_>,
        level: impl Fn(f64) -> Level,
    ) -> Var<'t> {
        let a = x.a();
        let z = x.normal(a.cols());
        let (alpha, sigma) = levels(times, level);
        let noisy = alpha * a + sigma * z;
        let predicted = self.predict(nets, x.s(), noisy, times, |h| c.drop(x, h), Through::Trained);
        (predicted - z).square().sum_cols()
    }
}

/// `[sin, cos]` of the phases. In double precision: the phases reach a hundred turns, where single precision
/// would leave five digits.
fn fixed_features<'t>(frequencies: Var<'t>, times: Times<'t, '_>) -> Var<'t> {
    let count = frequencies.cols();
    times.rows_with(frequencies, 2 * count, |t, frequencies, row| {
        let (sines, cosines) = row.split_at_mut(count);
        for (&w, (sine, cosine)) in frequencies.iter().zip(sines.iter_mut().zip(cosines)) {
            let turns = f64::from(w) * t;
            let phase = (TAU * (turns - turns.round())) as f32;
            (*sine, *cosine) = (phase.sin(), phase.cos());
        }
    })
}

/// The proportions of action and noise at a time.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// Factor of the action.
    pub alpha: f64,
    /// Factor of the noise.
    pub sigma: f64,
}

/// The columns `alpha_t` and `sigma_t`.
pub fn levels<'t>(times: Times<'t, '_>, level: impl Fn(f64) -> Level) -> (Var<'t>, Var<'t>) {
    (times.column(|t| level(t).alpha), times.column(|t| level(t).sigma))
}

/// The continuous-time variance-preserving process with rates from 0.1 to 20.
pub fn continuous(t: f64) -> Level {
    let alpha = (-t * t * (20.0 - 0.1) / 4.0 - 0.05 * t).exp();
    Level { alpha, sigma: (1.0 - alpha * alpha).sqrt() }
}

/// The variance-preserving process in `T` steps, counted from 0, with rates from 0.1 to 10.
pub struct Steps {
    /// The variance that each step adds.
    betas: Vec<f64>,
    /// The remaining share of the action's variance after each step.
    alpha_hats: Vec<f64>,
}

impl Steps {
    /// The schedule.
    pub fn new(steps: usize) -> Self {
        let total = steps as f64;
        let beta =
            |t: usize| 1.0 - (-0.1 / total - 0.5 * (10.0 - 0.1) * (2 * t - 1) as f64 / (total * total)).exp();
        let betas: Vec<f64> = (1..=steps).map(beta).collect();
        let product = |left: &mut f64, beta: &f64| {
            *left *= 1.0 - beta;
            Some(*left)
        };
        let alpha_hats = betas.iter().scan(1.0, product).collect();
        Steps { betas, alpha_hats }
    }

    /// Maps a number from [0, 1) to a step.
    pub fn drawn(&self, u: f64) -> f64 {
        (u * self.betas.len() as f64).floor()
    }

    /// The level after step `t`.
    pub fn level(&self, t: f64) -> Level {
        let left = self.alpha_hats[t as usize];
        Level { alpha: left.sqrt(), sigma: (1.0 - left).sqrt() }
    }

    /// Denoises `x` into actions, clipped to [-1, 1] after every step. `noise` is added after all but the
    /// last.
    pub fn sample<'t>(
        &self,
        net: &NoiseNet,
        nets: Lookup<'_>,
        s: Var<'t>,
        mut x: Var<'t>,
        noise: impl Fn() -> Var<'t>,
    ) -> Var<'t> {
        for t in (0..self.betas.len()).rev() {
            let (beta, left) = (self.betas[t], self.alpha_hats[t]);
            let time = |_| t as f64;
            let times = Times { drawn: s.tape().zeros(s.rows(), 1), time: &time };
            let predicted = net.predict(nets, s, x, times, |h| h, Through::Frozen);
            let share = (beta / (1.0 - left).sqrt()) as f32;
            x = (x - share * predicted) / (1.0 - beta).sqrt() as f32;
            if t > 0 {
                x = x + beta.sqrt() as f32 * noise();
            }
            x = x.clip(-1.0, 1.0);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_steps_leave_little_of_the_action() {
        let steps = Steps::new(5);
        // beta_1 = 1 - exp(-0.02 - 0.198), beta_5 = 1 - exp(-0.02 - 9 * 0.198)
        assert!((steps.betas[0] - (1.0 - (-0.218f64).exp())).abs() < 1e-12);
        assert!((steps.betas[4] - (1.0 - (-1.802f64).exp())).abs() < 1e-12);
        // The exponents add up to -(0.1 + 0.5 * 9.9).
        assert!((steps.level(4.0).alpha - (-0.5f64 * 5.05).exp()).abs() < 1e-12);
    }

    #[test]
    fn levels_preserve_variance() {
        let steps = Steps::new(5);
        let all = (0..5).map(|t| steps.level(t.into())).chain([0.02, 0.5, 0.98].map(continuous));
        for Level { alpha, sigma } in all {
            assert!((alpha * alpha + sigma * sigma - 1.0).abs() < 1e-12);
        }
    }
}

//! CAC: consistency actor-critic (Ding and Jin, 2024).
//!
//! ```text
//! f(s,x,t) = c_skip(t) x + c_out(t) F(s,x,t),     c_skip = 0.25 / ((t - 0.002)^2 + 0.25),
//!                                                 c_out  = 0.5 (t - 0.002) / sqrt(t^2 + 0.25)
//! L(Q)     = E[ sum_i (Q_i(s,a) - y)^2 ],         y = r + gamma m min_i Qbar_i(s', a'),   a' of the moving average fbar
//! L_c      = E[ w |f(s, a + t_(n+1) z, t_(n+1)) - sg fbar(s, a + t_n z, t_n)|^2 / d ],    w = 100 / (t_(n+1) - t_n)
//! L(psi)   = L_c - eta E[Q_i(s, pi)] / sg(E|Q_j(s, pi)|),     (i, j) = (1, 2) or (2, 1) with equal chance
//! ```
//!
//! `d` is the number of action dimensions; `t_1 = 0.002, ..., t_N = 80` with `t^(1/7)` evenly spaced; N grows
//! from 2 to 150 and starts over every `schedule_steps` steps; `n` is uniform on `1..N-1`. With `q_norm`, `y`
//! is divided by its standard deviation in the batch; with `max_q_backup`, each `Qbar_i` is the largest over
//! ten actions. Sampling an action from `f` starts at `80 z`; at each level `t` of 80, ..., 2 (evenly spaced)
//! noise `sqrt(t^2 - 0.002^2) z` is added (except at the first) and `f(., t)` is applied; the result is
//! clipped to [-1, 1].
//! The critic is updated first, then the actor with the new critic, then the targets with the new weights.
//! Draws the noise of `a'` level by level, `z`, `n`, the noise of `pi` level by level, and which Q is
//! maximised (one draw per row, of which the first is used).
//!
//! Acts by one of `num_samples` actions sampled from `f`, drawn with probabilities proportional to
//! `exp(min_i Qbar_i(s, a))`.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes, Stage};
use crate::common::{Common, at_least_one, fail, nonnegative, rate};
use crate::networks::{Lookup, NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, one_step_target};
use crate::parts::flow::Through;
use crate::parts::times::Times;
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::{Activation, MlpSpec, Var};
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "cac",
    "consistency",
    "arXiv 2309.16984",
    include_str!("../../presets/cac.toml"),
);

/// The smallest and largest noise level.
const LEAST: f64 = 0.002;
const MOST: f64 = 80.0;
/// The lowest noise level of sampling.
const LOWEST: f64 = 2.0;
/// The standard deviation of actions that `f` is scaled for.
const SIGMA_DATA: f64 = 0.5;
/// Number of time features.
const FEATURES: usize = 16;
/// Number of boundaries at the first and last step of a schedule.
const SCALES: [f64; 2] = [2.0, 150.0];
/// Number of actions that `max_q_backup` maximises over.
const BACKUP_ACTIONS: usize = 10;

/// Hyperparameters. Defaults are those of the original code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks of the critic (mish), batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic; at least two members.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// Widths of the hidden layers of `F` (mish), each at least 1.
    pub policy_hidden: Vec<usize>,
    /// Beyond the original: `F` sees `x / sqrt(t^2 + 0.25)`, which has the same scale at every noise level.
    pub scale_input: bool,
    /// Beyond the original: layer normalisation in the critic, which keeps Q in range where `eta` is large.
    pub critic_layer_norm: bool,
    /// Weight of Q in the actor's loss, at least 0. Chosen per environment.
    pub eta: f64,
    /// Number of noise levels in sampling, at least 1.
    pub levels: usize,
    /// Rate of the policy's moving average, above 0 and at most 1.
    pub ema_rate: f64,
    /// Steps between updates of the moving average, at least 1.
    pub ema_every: u64,
    /// Step of the first update of the moving average.
    pub ema_after: u64,
    /// Gradient-norm limit of the critic, and of the actor; 0 for none. Chosen per environment.
    pub max_grad_norm: f64,
    /// Divide the targets of Q by their standard deviation in the batch. Chosen per environment.
    pub q_norm: bool,
    /// Use the largest Q of ten actions in targets. Chosen per environment.
    pub max_q_backup: bool,
    /// Steps over which the number of boundaries grows before it starts over; 0: once over the run.
    pub schedule_steps: u64,
    /// Number of sampled actions, one of which is drawn, at least 1.
    pub num_samples: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common { hidden: vec![256; 3], ..Common::default() },
            critic: CriticConfig { q_agg: Aggregate::Min, ..CriticConfig::default() },
            policy_hidden: vec![256; 3],
            scale_input: false,
            critic_layer_norm: false,
            eta: 1.0,
            levels: 2,
            ema_rate: 0.005,
            ema_every: 5,
            ema_after: 1000,
            max_grad_norm: 1.0,
            q_norm: false,
            max_q_backup: false,
            schedule_steps: 50_000,
            num_samples: 50,
        }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        nonnegative(&[("eta", self.eta), ("max_grad_norm", self.max_grad_norm)])?;
        rate(&[("ema_rate", self.ema_rate)])?;
        at_least_one(&[
            ("levels", self.levels),
            ("ema_every", usize::try_from(self.ema_every).unwrap_or(usize::MAX)),
            ("num_samples", self.num_samples),
        ])?;
        if self.critic.ensemble < 2 {
            return fail(
                "ensemble",
                self.critic.ensemble.to_string(),
                "at least 2: one Q is scaled by another",
            );
        }
        if self.policy_hidden.contains(&0) {
            return fail("policy_hidden", format!("{:?}", self.policy_hidden), "layer widths of at least 1");
        }
        Ok(())
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let spec = |inputs, hidden: &[usize], outputs| {
            MlpSpec::new(inputs, hidden, outputs).activation(Activation::Mish)
        };
        let lr = self.critic.lr;
        let q = spec(sizes.s + sizes.a, &self.common.hidden, 1).layer_norm(self.critic_layer_norm);
        let critic = Critic::of(nets, ["q", "q_target"], q, &self.critic);
        let time = nets.policy("actor_time", spec(FEATURES, &[2 * FEATURES], FEATURES), lr);
        let net = nets.policy("actor", spec(sizes.a + FEATURES + sizes.s, &self.policy_hidden, sizes.a), lr);
        let average = Consistency {
            time: nets.target("ema_time", time, self.ema_rate),
            net: nets.target("ema", net, self.ema_rate),
            scale_input: self.scale_input,
        };
        let policy = Consistency { time, net, scale_input: self.scale_input };
        Box::new(Cac { config: self.clone(), a: sizes.a, critic, policy, average })
    }
}

/// The policy, by the ids of its networks.
#[derive(Clone, Copy)]
struct Consistency {
    time: NetworkId,
    net: NetworkId,
    scale_input: bool,
}

impl Consistency {
    /// `f(s, x, t)` with one time per row.
    fn f<'t>(
        &self,
        nets: Lookup<'_>,
        s: Var<'t>,
        x: Var<'t>,
        times: Times<'t, '_>,
        through: Through,
    ) -> Var<'t> {
        let variance = SIGMA_DATA * SIGMA_DATA;
        let skip = times.column(|t| variance / ((t - LEAST).powi(2) + variance));
        let out = times.column(|t| SIGMA_DATA * (t - LEAST) / (t * t + variance).sqrt());
        let time = through.apply(&nets[self.time], times.rows(FEATURES, features));
        let seen = if self.scale_input { times.column(|t| 1.0 / (t * t + variance).sqrt()) * x } else { x };
        skip * x + out * through.apply(&nets[self.net], s.tape().concat_cols(&[seen, time, s]))
    }

    /// Samples actions. `noise` is called once per level.
    fn sample<'t>(
        &self,
        nets: Lookup<'_>,
        s: Var<'t>,
        levels: usize,
        through: Through,
        noise: impl Fn() -> Var<'t>,
    ) -> Var<'t> {
        let mut x = MOST as f32 * noise();
        for i in 0..levels {
            let t = MOST + (LOWEST - MOST) * i as f64 / (levels - 1).max(1) as f64;
            if i > 0 {
                x = x + (t * t - LEAST * LEAST).sqrt() as f32 * noise();
            }
            let times = Times { drawn: s.tape().zeros(s.rows(), 1), time: &|_| t };
            x = self.f(nets, s, x, times, through);
        }
        x.clip(-1.0, 1.0)
    }
}

/// `[sin(w t), cos(w t)]` with frequencies `w` from 1 down to 1/10000.
fn features(t: f64, row: &mut [f32]) {
    let half = FEATURES / 2;
    for i in 0..half {
        let phase = t * 10000f64.powf(-(i as f64) / (half - 1) as f64);
        (row[i], row[half + i]) = (phase.sin() as f32, phase.cos() as f32);
    }
}

/// Number of boundaries at a step, for schedules of `period` steps.
fn boundaries(step: u64, period: u64) -> usize {
    let [first, last] = SCALES;
    let period = period.max(1);
    let grown = (step % period) as f64 * (last * last - first * first) / period as f64;
    ((grown + first * first).sqrt() - 1.0).ceil() as usize + 1
}

/// Boundary `i` of `n`, counted from 0.
fn boundary(i: usize, n: usize) -> f64 {
    let (low, high) = (LEAST.powf(1.0 / 7.0), MOST.powf(1.0 / 7.0));
    (low + i as f64 / (n - 1) as f64 * (high - low)).powi(7)
}

struct Cac {
    config: Config,
    a: usize,
    critic: Critic,
    policy: Consistency,
    average: Consistency,
}

impl Cac {
    /// The values of the next states.
    fn v_next<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Var<'t> {
        let c = &self.config;
        let (rows, times) = (x.rows(), if c.max_q_backup { BACKUP_ACTIONS } else { 1 });
        let s_next = x.s_next().repeat_rows(times);
        let noise = || x.normal_rows(rows * times, self.a);
        let a_next = self.average.sample(nets, s_next, c.levels, Through::Frozen, noise);
        // The members' values of all actions of a state, side by side.
        let members = c.critic.ensemble;
        let q = self.critic.target(nets, s_next, a_next).reshape(rows, times * members);
        let of_action = |i: usize| q.slice_cols(i * members, (i + 1) * members);
        c.critic.q_agg.of((1..times).fold(of_action(0), |best, i| best.max(of_action(i))))
    }

    fn critic_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let mut y = one_step_target(x, self.config.common.gamma, self.v_next(nets, x));
        if self.config.q_norm {
            let variance = (y - y.mean()).square().sum() / (x.rows() as f32 - 1.0);
            y = y / (variance.sqrt() + 1e-6);
        }
        let q = self.critic.online(nets, x.s_a());
        let loss = (q - y).square().sum_cols().mean();
        measures.mean("critic/critic_loss", loss).q(q);
        loss
    }

    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let (c, s) = (&self.config, x.s());
        let consistency = self.consistency(nets, x);
        let action = self.policy.sample(nets, s, c.levels, Through::Trained, || x.normal(self.a));
        let q = self.critic.frozen(nets, s, action);
        let first = x.uniform(1).with_value(|u| u[0] >= 0.5);
        let (i, j) = if first { (0, 1) } else { (1, 0) };
        let [up, by] = [i, j].map(|k| q.slice_cols(k, k + 1));
        let q_loss = -(up.mean() / by.abs().mean().detach());
        let loss = consistency + c.eta as f32 * q_loss;
        measures
            .mean("actor/actor_loss", loss)
            .mean("actor/consistency_loss", consistency)
            .mean("actor/q_loss", q_loss)
            .value("actor/q", q);
        loss
    }

    /// L_c.
    fn consistency<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Var<'t> {
        let (s, a) = (x.s(), x.a());
        let period = if self.config.schedule_steps == 0 { x.total_steps } else { self.config.schedule_steps };
        let n = boundaries(x.step, period);
        let z = x.normal(self.a);
        let drawn = x.uniform(1);
        // The boundary with index `u (n - 1) + up`, where `u` is uniform.
        let at = |u: f64, up: usize| boundary((u * (n - 1) as f64) as usize + up, n);
        let f = |policy: &Consistency, up, through| {
            let time = move |u| at(u, up);
            let times = Times { drawn, time: &time };
            policy.f(nets, s, a + times.column(|t| t) * z, times, through)
        };
        let online = f(&self.policy, 1, Through::Trained);
        let target = f(&self.average, 0, Through::Frozen);
        let weight = Times { drawn, time: &|u| 100.0 / (at(u, 1) - at(u, 0)) }.column(|weight| weight);
        (weight * (online - target).square()).mean()
    }
}

impl Algorithm for Cac {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn stages(&self) -> &'static [Stage] {
        &[Stage::Critic, Stage::Actor]
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let total = match x.stage {
            Stage::Actor => self.actor_loss(nets, x, &mut measures),
            _ => self.critic_loss(nets, x, &mut measures),
        };
        Loss { total, measures }
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        Some((self.critic.q, self.config.critic.q_agg))
    }

    fn decide(&self, nets: &Networks) -> Decide {
        let (nets, policy, q) = (nets.snapshot(), self.policy, self.critic.target);
        let (n, a, levels) = (self.config.num_samples, self.a, self.config.levels);
        Box::new(move |x| {
            let s = x.repeated(n);
            let actions = policy.sample(&nets, s, levels, Through::Frozen, || x.normal(n, a));
            let q = x.tape.apply_frozen(&nets[q], x.tape.concat_cols(&[s, actions])).min_cols();
            x.drawn(n, actions, q)
        })
    }

    fn moves(&self, target: NetworkId, step: u64) -> bool {
        let c = &self.config;
        let is_average = target == self.average.time || target == self.average.net;
        !is_average || (step >= c.ema_after && step.is_multiple_of(c.ema_every))
    }

    fn max_grad_norm(&self) -> Option<f64> {
        (self.config.max_grad_norm > 0.0).then_some(self.config.max_grad_norm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_grow_from_2_to_150() {
        assert_eq!(boundaries(0, 1000), 2);
        assert_eq!(boundaries(999, 1000), 150);
        assert_eq!(boundaries(250, 1000), 76);
        assert_eq!(boundaries(1000, 1000), 2, "and start anew");
        assert!((1..1000).all(|k| boundaries(k, 1000) >= boundaries(k - 1, 1000)));
        assert!((boundary(0, 9) - LEAST).abs() < 1e-12);
        assert!((boundary(8, 9) - MOST).abs() < 1e-9);
    }
}

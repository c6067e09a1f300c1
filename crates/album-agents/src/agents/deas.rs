//! DEAS: detached value learning with action sequences (Kim et al., 2025), written from a description,
//! because its code was not available. IQL on sequences `c` of `h` actions, with categorical value
//! distributions and two discounts:
//!
//! ```text
//! L(Q)   = E[ w sum_i H( HLGauss(y), Q_i(s,c) ) / N ],   y = r_0 + ... + gamma_1^(h-1) r_(h-1) + gamma_2^h m_h V(s_h)
//! L(V)   = E[ w |tau - 1(Qbar(s,c) < V(s))| H( Qbar(s,c), V(s) ) ]
//! L(psi) = FQL's actor loss over sequences, the flow only at valid actions, Q = mean_i Q_i(s,c)
//! ```
//!
//! `H(p, q)` is the cross-entropy of distributions; where `Q` and `V` are numbers, they are the expectations.
//! `w` is 1 if the window lies inside its episode, else 0. A sequence is executed to its end before the next
//! decision. An update draws `x_0`, `t` and `z` of the actor.

use crate::agent::AgentError;
use crate::agents::fql::{ACTOR_COLUMNS, Actor, ActorSpec};
use crate::agents::qc_fql::{column_mask, segments};
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, fail, nonnegative, open_unit, positive};
use crate::networks::{NetworkId, Networks};
use crate::parts::categorical::{Bins, cross_entropy};
use crate::parts::critic::{Critic, CriticConfig, bootstrap_ratio};
use crate::registry::AgentKind;
use album_data::{Dataset, SegmentConfig};
use album_nn::{MlpSpec, Var};
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "deas",
    "flow, chunks",
    "arXiv 2510.07730",
    include_str!("../../presets/deas.toml"),
);

/// Source of the value range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// From the 1st to the 99th percentile of the returns in the data.
    #[default]
    Data,
    /// `v_min` to `v_max`.
    Given,
}

/// Hyperparameters. Those that the description does not specify are marked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, and the discount from one sequence to the next (`gamma_2`).
    #[serde(flatten)]
    pub common: Common,
    /// The critic.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// Number of actions in a sequence and of steps in its window, at least 1.
    pub h: usize,
    /// Discount within a sequence (`gamma_1`), between 0 and 1.
    pub gamma_1: f64,
    /// The expectile that V estimates, between 0 and 1. Not in the description: IQL's.
    pub expectile: f64,
    /// Number of bins of a distribution, at least 2. Not in the description.
    pub bins: usize,
    /// Standard deviation of a target in bin widths, positive.
    pub sigma: f64,
    /// Source of the range of the bins: `data` or `given`.
    pub support: Support,
    /// Lower end of a given range, in units of scaled rewards.
    pub v_min: f64,
    /// Upper end of a given range, above `v_min`.
    pub v_max: f64,
    /// Weight of the distillation, at least 0; chosen per environment.
    pub alpha: f64,
    /// Euler steps from noise to actions, at least 1.
    pub flow_steps: usize,
    /// Divide Q by the mean of |Q| in the actor loss.
    pub normalize_q_loss: bool,
    /// LayerNorm in the actor's networks.
    pub actor_layer_norm: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common { gamma: 0.999, ..Common::default() },
            critic: CriticConfig::default(),
            h: 8,
            gamma_1: 0.9,
            expectile: 0.9,
            bins: 101,
            sigma: 0.75,
            support: Support::Data,
            v_min: -100.0,
            v_max: 0.0,
            alpha: 100.0,
            flow_steps: 10,
            normalize_q_loss: false,
            actor_layer_norm: false,
        }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        open_unit(&[("gamma_1", self.gamma_1), ("expectile", self.expectile)])?;
        positive(&[("sigma", self.sigma)])?;
        nonnegative(&[("alpha", self.alpha)])?;
        at_least_one(&[("h", self.h), ("flow_steps", self.flow_steps)])?;
        if self.bins < 2 {
            return fail("bins", self.bins.to_string(), "at least 2");
        }
        if !self.v_min.is_finite() {
            return fail("v_min", self.v_min.to_string(), "a number");
        }
        if !(self.v_max > self.v_min && self.v_max.is_finite()) {
            return fail("v_max", self.v_max.to_string(), "a number above v_min");
        }
        Ok(())
    }

    fn value_range(&self, data: &Dataset) -> Option<[f32; 2]> {
        (self.support == Support::Data).then(|| self.range(data))
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let (hidden, lr) = (&self.common.hidden, self.critic.lr);
        let [low, high] = sizes.value_range.map_or([self.v_min, self.v_max], |range| range.map(f64::from));
        let x = self.h * sizes.a;
        let logits = |inputs| MlpSpec::new(inputs, hidden, self.bins).layer_norm(true);
        let spec = ActorSpec {
            names: ["flow", "actor"],
            s: sizes.s,
            x,
            hidden,
            layer_norm: self.actor_layer_norm,
            lr,
            alpha: self.alpha,
            normalize_q_loss: self.normalize_q_loss,
            flow_steps: self.flow_steps,
        };
        Box::new(Deas {
            v: nets.value("v", logits(sizes.s), lr),
            critic: Critic::of(nets, ["q", "q_target"], logits(sizes.s + x), &self.critic),
            actor: Actor::new(nets, &spec),
            bins: Bins { low, high, count: self.bins, sigma: self.sigma },
            a: sizes.a,
            config: self.clone(),
        })
    }
}

impl Config {
    /// The 1st and 99th percentile of the returns-to-go of the data, discounted like the values and without a
    /// bootstrap at the end of an episode.
    fn range(&self, data: &Dataset) -> [f32; 2] {
        let n = data.len();
        let rewards: Vec<f64> = (0..n).map(|i| data.reward(i).into()).collect();
        let masks: Vec<f32> = (0..n).map(|i| data.mask(i)).collect();
        let mut returns = vec![0.0; n];
        let mut left = 0;
        for i in (0..n).rev() {
            left = if data.terminal(i) { 1 } else { left + 1 };
            let h = self.h.min(left);
            let within = rewards[i..i + h].iter().rev().fold(0.0, |sum, r| r + self.gamma_1 * sum);
            let goes_on = h < left && !masks[i..i + h].contains(&0.0);
            let after = if goes_on { self.common.gamma.powi(h as i32) * returns[i + h] } else { 0.0 };
            returns[i] = within + after;
        }
        returns.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * returns.len().saturating_sub(1) as f64).round() as usize;
            (self.common.reward_scale * returns.get(rank).copied().unwrap_or(0.0)) as f32
        };
        let (low, high) = (at(0.01), at(0.99));
        // If all returns are equal, there is no range to divide into bins.
        if high > low { [low, high] } else { [low - 0.5, low + 0.5] }
    }
}

struct Deas {
    config: Config,
    v: NetworkId,
    critic: Critic,
    actor: Actor,
    bins: Bins,
    /// Dimension of a single action.
    a: usize,
}

impl Deas {
    /// L(Q) + L(V).
    fn critic_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let c = &self.config;
        let (bins, members) = (&self.bins, c.critic.ensemble);
        let (s_chunk, w) = (x.s_chunk(), x.w_k());

        let ratio = bootstrap_ratio(c.common.gamma, c.gamma_1, c.h);
        let v_last = bins.log_probabilities(x.tape.apply_frozen(&nets[self.v], x.s_last()));
        let y = x.r_k() + ratio * x.g_k() * bins.expectation(v_last, 1);
        let q = bins.log_probabilities(self.critic.online(nets, s_chunk));
        let critic = (w * cross_entropy(bins.around(y), q, members)).mean();

        let v = bins.log_probabilities(x.tape.apply(&nets[self.v], x.s()));
        let q_bar = bins.log_probabilities(self.critic.recorded_target(nets, s_chunk));
        let value = bins.expectation(v, 1);
        let advantage = (c.critic.q_agg.of(bins.expectation(q_bar, members)) - value).detach();
        let p_bar = bins.aggregate(q_bar, members, c.critic.q_agg);
        let weight = w * advantage.expectile_weights(c.expectile as f32);
        let value_loss = (weight * cross_entropy(p_bar, v, 1)).mean();

        measures
            .mean("critic/critic_loss", critic)
            .q(bins.expectation(q, members))
            .mean("value/value_loss", value_loss)
            .v(value)
            .value("value/adv", advantage);
        critic + value_loss
    }

    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let (bins, members) = (&self.bins, self.config.critic.ensemble);
        let mask = column_mask(x.valids(), self.a);
        let losses = self.actor.losses(nets, x, x.chunk(), Some(mask), |pi| {
            let log_p = bins.log_probabilities(self.critic.frozen(nets, x.s(), pi));
            bins.expectation(log_p, members).mean_cols()
        });
        losses.measure(measures, ACTOR_COLUMNS);
        losses.total
    }
}

impl Algorithm for Deas {
    fn segments(&self) -> SegmentConfig {
        segments(self.config.h, self.config.h, self.config.gamma_1)
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let critic = self.critic_loss(nets, x, &mut measures);
        let actor = self.actor_loss(nets, x, &mut measures);
        Loss { total: critic + actor, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        self.actor.decide(nets)
    }

    fn open_loop(&self) -> usize {
        self.config.h
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use album_data::Rows;

    fn data(rewards: [f32; 7], masks: [f32; 7]) -> Dataset {
        Dataset::from_rows(Rows {
            observation_dim: 1,
            action_dim: 1,
            observations: vec![0.0; 7],
            actions: vec![0.0; 7],
            rewards: rewards.to_vec(),
            masks: masks.to_vec(),
            terminals: vec![false, false, false, false, false, false, true],
        })
        .unwrap()
    }

    fn config() -> Config {
        let common = Common { gamma: 0.8, reward_scale: 10.0, ..Common::default() };
        Config { common, h: 2, gamma_1: 0.5, ..Config::default() }
    }

    #[test]
    fn the_range_is_that_of_returns_with_both_discounts() {
        // Windows of 2 from the end of 6 transitions: -1, -1.5, -1 + ..., each followed by 0.8^2 of the next but one.
        let [low, high] = config().range(&data([-1.0; 7], [1.0; 7]));
        assert!((high + 10.0).abs() < 1e-6, "the last transition: {high}");
        assert!((low + 10.0 * 1.5 * (1.0 + 0.64 + 0.64 * 0.64)).abs() < 1e-5, "the first one: {low}");
        // Solved in the fourth state: later windows do not count, but the window itself is summed to its end.
        let solved = [1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0];
        let [low, _] = config().range(&data([-1.0; 7], solved));
        assert!((low + 10.0 * 1.5 * 1.64).abs() < 1e-5, "{low}");
    }

    #[test]
    fn equal_returns_still_have_a_range() {
        assert_eq!(config().range(&data([0.0; 7], [1.0; 7])), [-0.5, 0.5]);
    }
}

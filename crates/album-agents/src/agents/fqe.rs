//! FQE: fitted Q evaluation (Le et al., 2019) with an ensemble that is bootstrapped over episodes (Hao et al., 2021).
//!
//! ```text
//! L(Q_i) = E[ w_i (Q_i(s,a) - y_i)^2 ],   y_i = clip( r + gamma m Qbar_i(s', a'), [least, greatest] )
//! ```
//!
//! `a'` is the evaluated policy's action in `s'`; with the recorded action instead, Q is the value of the behaviour.
//! `Qbar` is the network as of the last multiple of `target_every` steps, so the fit is a sequence of regressions.
//! `w_i` is how many times the row's episode was drawn into member `i`'s bootstrap resample. It is 0 for about a
//! third of the episodes, and rows without a gradient skip the backward pass. `least` and `greatest` bound the value
//! of any policy, given the data's rewards; clipping to them keeps the targets of a policy far from the data from
//! diverging.
//!
//! All members process the same batch in one pass. `Fqe` is not an agent: it has no policy.

use crate::agent::{AgentError, NetworkState};
use crate::algorithm::{Sizes, Stage};
use crate::blueprint::value_range;
use crate::common::{Common, at_least_one, positive};
use crate::encoding::Encoding;
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::value_spec;
use crate::parts::flow::Through;
use crate::parts::head::taken;
use crate::schedule::Decay;
use album_data::{ActionSpace, Batch, Dataset, View};
use album_nn::{Mlp, Pool, Tape, Tensor, Var};

/// Hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Network sizes, batch size, discount.
    pub common: Common,
    /// Learning rate.
    pub lr: f64,
    /// Number of ensemble members.
    pub ensemble: usize,
    /// Number of steps per regression.
    pub target_every: u64,
}

impl Default for Config {
    fn default() -> Self {
        let common = Common { standardize: true, lr_decay: Decay::Cosine, ..Common::default() };
        Config { common, lr: 3e-4, ensemble: 5, target_every: 50 }
    }
}

/// An ensemble that estimates the values of a policy.
pub struct Fqe {
    critic: Critic,
    nets: Networks,
    q: NetworkId,
    target: NetworkId,
    tape: Tape,
}

/// The networks and the encoding of their inputs.
#[derive(Debug)]
struct Critic {
    config: Config,
    encoding: Encoding,
    choices: Option<usize>,
    /// Smallest and largest value that the data's rewards allow, after scaling.
    range: [f32; 2],
}

impl std::fmt::Debug for Fqe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fqe").field("critic", &self.critic).finish_non_exhaustive()
    }
}

impl Critic {
    /// Q of every member.
    fn q<'t>(&self, tape: &'t Tape, net: &Mlp, s: View<'_>, a: View<'_>, through: Through) -> Var<'t> {
        let s = tape.constant_with(s.rows(), self.encoding.dim(), |out| self.encoding.encode(s, out));
        let a = tape.constant_slice(a.rows(), a.cols(), a.data());
        match self.choices {
            None => through.apply(net, tape.concat_cols(&[s, a])),
            Some(choices) => taken(through.apply(net, s), a, choices),
        }
    }

    fn loss<'t>(&self, tape: &'t Tape, [net, target]: [&Mlp; 2], batch: &Batch, weights: &[f32]) -> Var<'t> {
        let Common { gamma, reward_scale, .. } = self.config.common;
        let column = |data: &[f32]| tape.constant_slice(batch.len(), 1, data);
        let (r, m) = (reward_scale as f32 * column(batch.rewards()), column(batch.masks()));
        let w = tape.constant_slice(batch.len(), self.config.ensemble, weights);

        let q_next = self.q(tape, target, batch.next_observations(), batch.next_actions(), Through::Frozen);
        let [least, greatest] = self.range;
        let y = (r + gamma as f32 * m * q_next).clip(least, greatest).detach();
        let q = self.q(tape, net, batch.observations(), batch.actions(), Through::Trained);
        (w * (q - y).square()).sum_cols().mean()
    }
}

impl Fqe {
    /// New networks for `data`, initialised from `seed`.
    pub fn new(config: Config, data: &Dataset, seed: u64, pool: &Pool) -> Result<Self, AgentError> {
        let common = &config.common;
        common.check()?;
        positive(&[("lr", config.lr)])?;
        at_least_one(&[("ensemble", config.ensemble), ("target_every", config.target_every as usize)])?;
        let encoding = common.encoding(data, seed);
        let choices = match data.action_space() {
            ActionSpace::Discrete { n } => Some(*n),
            ActionSpace::Continuous { .. } => None,
        };
        let sizes = Sizes { s: encoding.dim(), a: data.action_dim(), choices, value_range: None };
        let mut nets = Networks::new(seed);
        let spec = sizes.q_spec(|inputs| value_spec(inputs, &common.hidden)).members(config.ensemble);
        let q = nets.value("q", spec, config.lr);
        let target = nets.target("q_target", q, 1.0);
        let range = value_range(data, common.gamma).map(|value| (common.reward_scale * value) as f32);
        Ok(Fqe {
            critic: Critic { config, encoding, choices, range },
            nets,
            q,
            target,
            tape: Tape::new(pool),
        })
    }

    /// The hyperparameters.
    pub fn config(&self) -> &Config {
        &self.critic.config
    }

    /// Does step `step` of `total` on a batch whose next actions are the evaluated policy's. `weights` has one row
    /// per batch row and one column per member. Returns the loss.
    pub fn update(&mut self, batch: &Batch, weights: &[f32], step: u64, total: u64) -> f64 {
        let config = &self.critic.config;
        if step.is_multiple_of(config.target_every) {
            self.nets.track(|_| true, self.tape.pool());
        }
        let factor = config.common.lr_decay.factor(step, total);
        let nets = [&self.nets[self.q], &self.nets[self.target]];
        let loss = self.critic.loss(self.tape.begin(), nets, batch, weights);
        let gradients = loss.backward();
        self.nets.step(&gradients, Stage::All, factor, None);
        f64::from(loss.item())
    }

    /// Snapshot of all weights and optimiser moments.
    pub fn state(&self) -> Vec<NetworkState> {
        self.nets.state()
    }

    /// Restores a snapshot.
    pub fn load(&mut self, state: &[NetworkState]) -> Result<(), AgentError> {
        self.nets.load(state)
    }

    /// Computes the loss and its gradients without an update.
    pub fn gradients(&mut self, batch: &Batch, weights: &[f32]) -> (f64, Vec<Tensor>) {
        let nets = [&self.nets[self.q], &self.nets[self.target]];
        let loss = self.critic.loss(self.tape.begin(), nets, batch, weights);
        (f64::from(loss.item()), loss.backward().of(&self.nets[self.q]))
    }

    /// Q of every member, side by side, in units of the data's rewards. Actions are as in a [`Dataset`]:
    /// within [-1, 1], or the index of a choice.
    pub fn q(&mut self, observations: View<'_>, actions: View<'_>) -> Vec<f32> {
        let scale = self.critic.config.common.reward_scale;
        let net = &self.nets[self.q];
        let q = self.critic.q(self.tape.begin(), net, observations, actions, Through::Frozen);
        q.with_value(|q| q.iter().map(|&q| (f64::from(q) / scale) as f32).collect())
    }
}

#[cfg(test)]
mod tests;

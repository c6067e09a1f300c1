//! ALBUM: Approximate Lifted Bellman Unconstrained Minimization (arXiv 2609.24489).
//!
//! One Q, one V, a Gaussian actor; no target networks, no ensembles. The critic minimises
//!
//! ```text
//! L(theta, phi) = omega_Q E[Q(s,a)] + omega_V E[V(s)]
//!               + lambda_B E[ y_1 - Q(s,a) ]+  + lambda_E E[ Q(s,a) - V(s) ]+
//!               + lambda_K ( E[ sg(y_K) - Q(s,a) ]+ + E[ sg(y_K) - V(s) ]+ )
//!
//! y_1 = r + gamma m V(s')        y_K = sum_(t<h) gamma^t r_t + gamma^h V(s_h)
//! ```
//!
//! over segments of recorded trajectories: the hinge relaxation of the Lifted Bellman LP. `y_1` carries its gradient
//! through `V(s')`, `y_K` does not. The actor maximises Q near the data (DDPG+BC):
//!
//! ```text
//! L(psi) = - E[ Q(s, pi(s)) ] / sg(E|Q|) + alpha_BC E[ |pi(s) - a|^2 ]
//! ```

use crate::agent::{Agent, AgentError, AgentState, Metrics, NetworkState, Policy};
use crate::{Decay, Encoding};
use album_data::{AfterGoal, Batch, Dataset, KStepTail, SegmentConfig, rng};
use album_nn::{Adam, Mlp, MlpSpec, Pool, Tape, Var};
use album_tabular::{Boundedness, Coefficients, boundedness};
use serde::{Deserialize, Serialize};

/// How the actor's mean becomes an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Squash {
    /// Clipped to [-1, 1] before Q sees it; the BC term sees the mean itself.
    #[default]
    Clip,
    /// `tanh(mean)` throughout.
    Tanh,
}

/// Hyperparameters. Defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Widths of the hidden layers of all three networks.
    pub hidden: Vec<usize>,
    /// Segments in a minibatch.
    pub batch_size: usize,
    /// Discount factor.
    pub gamma: f64,
    /// Length of the recorded rollouts.
    pub k: usize,
    /// Weight of `E[Q]` in the objective.
    pub omega_q: f64,
    /// Weight of `E[V]` in the objective.
    pub omega_v: f64,
    /// Penalty of the one-step constraint y_1 <= Q.
    pub lambda_b: f64,
    /// Penalty of the epigraph constraint Q <= V.
    pub lambda_e: f64,
    /// Penalty of the rollout constraints y_K <= Q and y_K <= V.
    pub lambda_k: f64,
    /// Weight of the behaviour cloning term of the actor; chosen per environment.
    pub alpha_bc: f64,
    /// Learning rate of Q and V.
    pub critic_lr: f64,
    /// Learning rate of the actor.
    pub actor_lr: f64,
    /// Treat y_K as a constant in the update.
    pub stop_gradient: bool,
    /// Critics; each has its own losses, which are averaged, and the actor follows their mean.
    pub ensemble: usize,
    /// Divide Q by the mean of |Q| in the actor loss.
    pub normalize_q: bool,
    /// How the actor's mean becomes an action.
    pub squash: Squash,
    /// What becomes of a rollout that the end of its trajectory cuts short: `truncate`, `drop` or `qc_valid`.
    pub kstep_tail: KStepTail,
    /// What follows a solved task in a rollout: `stop` or `qc_sum`.
    pub kstep_after_goal: AfterGoal,
    /// Beyond the paper: multiplies all rewards.
    pub reward_scale: f64,
    /// Beyond the paper: how the learning rates fall over the run.
    pub lr_decay: Decay,
    /// Beyond the paper: standardise observations by the data.
    pub standardize: bool,
    /// Beyond the paper: random Fourier features added to the observation (an even number; 0 for none).
    pub fourier_features: usize,
    /// Beyond the paper: standard deviation of their frequencies.
    pub fourier_scale: f64,
}

impl Default for Config {
    fn default() -> Self {
        let c = Coefficients::default();
        Config {
            hidden: vec![512; 4],
            batch_size: 256,
            gamma: 0.995,
            k: 10,
            omega_q: c.omega_q,
            omega_v: c.omega_v,
            lambda_b: c.lambda_b,
            lambda_e: c.lambda_e,
            lambda_k: c.lambda_k,
            alpha_bc: 0.01,
            critic_lr: 1e-4,
            actor_lr: 3e-4,
            stop_gradient: true,
            ensemble: 1,
            normalize_q: true,
            squash: Squash::Clip,
            kstep_tail: KStepTail::Truncate,
            kstep_after_goal: AfterGoal::Stop,
            reward_scale: 1.0,
            lr_decay: Decay::None,
            standardize: false,
            fourier_features: 0,
            fourier_scale: 1.0,
        }
    }
}

impl Config {
    /// Refuses what is outside its domain.
    pub fn check(&self) -> Result<(), AgentError> {
        let fail = |key, found: String, expected| Err(AgentError::Config { key, found, expected });
        let positive = [
            ("omega_q", self.omega_q),
            ("omega_v", self.omega_v),
            ("critic_lr", self.critic_lr),
            ("actor_lr", self.actor_lr),
            ("reward_scale", self.reward_scale),
        ];
        for (key, value) in positive {
            if !(value > 0.0 && value.is_finite()) {
                return fail(key, value.to_string(), "a positive number");
            }
        }
        let nonnegative = [
            ("lambda_b", self.lambda_b),
            ("lambda_e", self.lambda_e),
            ("lambda_k", self.lambda_k),
            ("alpha_bc", self.alpha_bc),
            ("fourier_scale", self.fourier_scale),
        ];
        for (key, value) in nonnegative {
            if !(value >= 0.0 && value.is_finite()) {
                return fail(key, value.to_string(), "a nonnegative number");
            }
        }
        if !(self.gamma > 0.0 && self.gamma < 1.0) {
            return fail("gamma", self.gamma.to_string(), "a number between 0 and 1");
        }
        for (key, value) in [("k", self.k), ("batch_size", self.batch_size), ("ensemble", self.ensemble)] {
            if value == 0 {
                return fail(key, value.to_string(), "at least 1");
            }
        }
        if self.hidden.contains(&0) {
            return fail("hidden", format!("{:?}", self.hidden), "layer widths of at least 1");
        }
        if self.fourier_features % 2 == 1 {
            return fail("fourier_features", self.fourier_features.to_string(), "an even number");
        }
        Ok(())
    }

    /// The condition that keeps the values from falling without bound.
    pub fn boundedness(&self) -> Boundedness {
        let c = Coefficients {
            omega_q: self.omega_q,
            omega_v: self.omega_v,
            lambda_b: self.lambda_b,
            lambda_e: self.lambda_e,
            lambda_k: self.lambda_k,
        };
        boundedness(&c, self.gamma, self.k, self.stop_gradient)
    }
}

/// The agent.
pub struct Album {
    config: Config,
    total_steps: u64,
    encoding: Encoding,
    q: Mlp,
    v: Mlp,
    actor: Mlp,
    adam_q: Adam,
    adam_v: Adam,
    adam_actor: Adam,
    tape: Tape,
    /// Encoded states [s; s'; s_K], reused.
    states: Vec<f32>,
}

/// The terms of the two losses, each a number on the tape.
struct Losses<'t> {
    critic: Var<'t>,
    actor: Var<'t>,
    q: Var<'t>,
    v: Var<'t>,
    hinge_b: Var<'t>,
    hinge_e: Var<'t>,
    hinge_kq: Var<'t>,
    hinge_kv: Var<'t>,
    /// The residuals g_B, g_E, g_KQ, g_KV, row by row.
    residuals: [Var<'t>; 4],
    q_pi: Var<'t>,
    bc: Var<'t>,
}

impl Album {
    /// A fresh agent for `data`; `total_steps` is what a decaying learning rate falls over.
    pub fn new(
        config: Config,
        data: &Dataset,
        total_steps: u64,
        seed: u64,
        pool: &Pool,
    ) -> Result<Self, AgentError> {
        config.check()?;
        let encoding = if config.standardize || config.fourier_features > 0 {
            Encoding::new(data, config.standardize, config.fourier_features, config.fourier_scale, seed)
        } else {
            Encoding::identity(data.observation_dim())
        };
        let (s, a) = (encoding.dim(), data.action_dim());
        let mut init = rng::stream(seed, "init");
        let critic = |inputs| MlpSpec::new(inputs, &config.hidden, 1).layer_norm(true);
        let q = Mlp::new(critic(s + a).members(config.ensemble), &mut init);
        let v = Mlp::new(critic(s), &mut init);
        let actor = Mlp::new(MlpSpec::new(s, &config.hidden, a).output_scale(0.01), &mut init);
        Ok(Album {
            adam_q: Adam::new(&q, config.critic_lr),
            adam_v: Adam::new(&v, config.critic_lr),
            adam_actor: Adam::new(&actor, config.actor_lr),
            tape: Tape::new(pool),
            states: Vec::new(),
            config,
            total_steps,
            encoding,
            q,
            v,
            actor,
        })
    }

    /// The hyperparameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Floating-point operations of the matrix products of one update, no row left out: forward once, backward twice
    /// that (into inputs and into weights; the first layer of a trained network needs no gradient of its input).
    pub fn operations_per_step(&self) -> f64 {
        let products = |net: &Mlp| {
            let kernels: Vec<f64> = (net.tensors().iter())
                .filter(|t| t.shape.len() == 2)
                .map(|t| 2.0 * (t.data.len() * self.config.batch_size) as f64)
                .collect();
            let first: f64 = kernels.iter().take(1).sum();
            (kernels.iter().sum::<f64>(), first)
        };
        let [(q, q_1), (v, v_1), (pi, pi_1)] = [&self.q, &self.v, &self.actor].map(products);
        let trained = |forward: f64, first: f64| 3.0 * forward - first;
        // Q(s,a); V on s and s', forward only on s_K; pi(s); Q(s,pi(s)) forward and back into its input.
        trained(q, q_1) + 2.0 * trained(v, v_1) + v + trained(pi, pi_1) + 2.0 * q
    }
}

/// The critic loss of the paper and the DDPG+BC actor loss, on one tape at the same parameters.
fn losses<'t>(
    c: &Config,
    nets: (&Mlp, &Mlp, &Mlp),
    tape: &'t Tape,
    batch: &Batch,
    states: &[f32],
) -> Losses<'t> {
    let (q_net, v_net, actor_net) = nets;
    let b = batch.len();
    let column = |x: &[f32]| tape.constant_slice(b, 1, x);
    let f = |x: f64| x as f32;

    let dim = states.len() / (3 * b);
    let (both, last) = states.split_at(2 * b * dim);
    let s = tape.constant_slice(b, dim, &states[..b * dim]);
    let a = tape.constant_slice(b, batch.action_dim(), batch.actions());
    // V sees s and s' in one product; s_K needs no activations kept where y_K carries no gradient.
    let values = tape.apply(v_net, tape.constant_slice(2 * b, dim, both));
    let v = values.slice_rows(0, b);
    let v_next = values.slice_rows(b, 2 * b);
    let last = tape.constant_slice(b, dim, last);
    let v_last = if c.stop_gradient { tape.apply_frozen(v_net, last) } else { tape.apply(v_net, last) };
    let q = tape.apply(q_net, tape.concat_cols(&[s, a]));

    let y_1 = f(c.reward_scale) * column(batch.rewards()) + f(c.gamma) * column(batch.masks()) * v_next;
    let y_k = f(c.reward_scale) * column(batch.returns_k()) + column(batch.bootstraps_k()) * v_last;
    let y_k = if c.stop_gradient { y_k.detach() } else { y_k };
    let weights_k = column(batch.weights_k());

    let [g_b, g_e, g_kq, g_kv] = [y_1 - q, q - v, y_k - q, y_k - v];
    let hinge_b = g_b.relu().mean();
    let hinge_e = g_e.relu().mean();
    let hinge_kq = (weights_k * g_kq.relu()).mean();
    let hinge_kv = (weights_k * g_kv.relu()).mean();
    let critic = f(c.omega_q) * q.mean()
        + f(c.omega_v) * v.mean()
        + f(c.lambda_b) * hinge_b
        + f(c.lambda_e) * hinge_e
        + f(c.lambda_k) * (hinge_kq + hinge_kv);

    let mean = tape.apply(actor_net, s);
    let (pi, into_q) = match c.squash {
        Squash::Clip => (mean, mean.clip(-1.0, 1.0)),
        Squash::Tanh => (mean.tanh(), mean.tanh()),
    };
    let q_pi = tape.apply_frozen(q_net, tape.concat_cols(&[s, into_q])).mean_cols();
    let bc = (pi - a).square().sum_cols().mean();
    let q_term = if c.normalize_q { q_pi.mean() / (q_pi.abs().mean().detach() + 1e-6) } else { q_pi.mean() };
    let actor = f(c.alpha_bc) * bc - q_term;

    Losses {
        critic,
        actor,
        q,
        v,
        hinge_b,
        hinge_e,
        hinge_kq,
        hinge_kv,
        residuals: [g_b, g_e, g_kq, g_kv],
        q_pi,
        bc,
    }
}

impl Agent for Album {
    fn name(&self) -> &'static str {
        "album"
    }

    fn segments(&self) -> SegmentConfig {
        SegmentConfig {
            k: self.config.k,
            chunk: 1,
            gamma: self.config.gamma,
            tail: self.config.kstep_tail,
            after_goal: self.config.kstep_after_goal,
        }
    }

    fn batch_size(&self) -> usize {
        self.config.batch_size
    }

    fn update(&mut self, batch: &Batch, step: u64, metrics: Option<&mut Metrics>) -> f64 {
        let factor = self.config.lr_decay.factor(step, self.total_steps);
        self.adam_q.learning_rate = self.config.critic_lr * factor;
        self.adam_v.learning_rate = self.config.critic_lr * factor;
        self.adam_actor.learning_rate = self.config.actor_lr * factor;

        let states = encoded(&self.encoding, batch, &mut self.states);
        let tape = self.tape.begin();
        let losses = losses(&self.config, (&self.q, &self.v, &self.actor), tape, batch, states);
        let loss = losses.critic + losses.actor;
        let gradients = loss.backward();
        if let Some(metrics) = metrics {
            let [q, v, actor] = [&self.q, &self.v, &self.actor].map(|net| gradients.norm(net));
            report(&losses, metrics);
            metrics.extend([
                ("grad/norm", (q * q + v * v + actor * actor).sqrt()),
                ("grad/norm_q", q),
                ("grad/norm_v", v),
                ("grad/norm_actor", actor),
            ]);
        }
        self.adam_q.step(&mut self.q, &gradients);
        self.adam_v.step(&mut self.v, &gradients);
        self.adam_actor.step(&mut self.actor, &gradients);
        f64::from(loss.item())
    }

    fn assess(&mut self, batch: &Batch, metrics: &mut Metrics) {
        let states = encoded(&self.encoding, batch, &mut self.states);
        let tape = self.tape.begin();
        report(&losses(&self.config, (&self.q, &self.v, &self.actor), tape, batch, states), metrics);
    }

    fn policy(&self) -> Box<dyn Policy> {
        Box::new(Mean {
            encoding: self.encoding.clone(),
            actor: self.actor.clone(),
            squash: self.config.squash,
            // Few rows at a time: more threads would wait for each other.
            tape: Tape::new(&Pool::new(1)),
        })
    }

    fn value(&mut self, observations: &[f32], values: &mut Vec<f32>) -> bool {
        values.clear();
        forward(&mut self.tape, &self.encoding, &self.v, observations, values);
        true
    }

    fn parameters(&self) -> usize {
        self.q.parameter_count() + self.v.parameter_count() + self.actor.parameter_count()
    }

    fn state(&self) -> AgentState {
        let networks = [
            ("q", &self.q, &self.adam_q),
            ("v", &self.v, &self.adam_v),
            ("actor", &self.actor, &self.adam_actor),
        ];
        AgentState { networks: networks.map(|(name, net, adam)| NetworkState::of(name, net, adam)).into() }
    }

    fn load(&mut self, state: &AgentState) -> Result<(), AgentError> {
        let [q, v, actor] = state.networks.as_slice() else {
            return Err(AgentError::Networks { found: state.networks.len(), expected: 3 });
        };
        q.restore("q", &mut self.q, &mut self.adam_q)?;
        v.restore("v", &mut self.v, &mut self.adam_v)?;
        actor.restore("actor", &mut self.actor, &mut self.adam_actor)
    }
}

/// The mean of the Gaussian policy.
struct Mean {
    encoding: Encoding,
    actor: Mlp,
    squash: Squash,
    tape: Tape,
}

impl Policy for Mean {
    fn act(&mut self, observations: &[f32], actions: &mut Vec<f32>) {
        let squash = match self.squash {
            Squash::Clip => |x: f32| x.clamp(-1.0, 1.0),
            Squash::Tanh => f32::tanh,
        };
        actions.clear();
        forward(&mut self.tape, &self.encoding, &self.actor, observations, actions);
        actions.iter_mut().for_each(|x| *x = squash(*x));
    }
}

/// Applies a network to observations, without gradients.
fn forward(tape: &mut Tape, encoding: &Encoding, net: &Mlp, observations: &[f32], out: &mut Vec<f32>) {
    let mut encoded = Vec::new();
    encoding.encode(observations, &mut encoded);
    let tape = tape.begin();
    let x = tape.constant_slice(encoded.len() / encoding.dim(), encoding.dim(), &encoded);
    tape.apply_frozen(net, x).with_value(|y| out.extend_from_slice(y));
}

/// The states [s; s'; s_K] of a batch as the networks see them.
fn encoded<'a>(encoding: &Encoding, batch: &'a Batch, buffer: &'a mut Vec<f32>) -> &'a [f32] {
    if encoding.is_identity() {
        return batch.states();
    }
    encoding.encode(batch.states(), buffer);
    buffer
}

fn report(l: &Losses<'_>, metrics: &mut Metrics) {
    let item = |x: Var<'_>| f64::from(x.item());
    let range = |x: Var<'_>| {
        x.with_value(|x| {
            x.iter().fold((f64::INFINITY, 0.0, f64::NEG_INFINITY), |(lo, sum, hi), &x| {
                let x = f64::from(x);
                (lo.min(x), sum + x, hi.max(x))
            })
        })
    };
    let share =
        |x: Var<'_>| x.with_value(|x| x.iter().filter(|g| **g <= 0.0).count() as f64 / x.len().max(1) as f64);
    let (q_min, _, q_max) = range(l.q);
    let (v_min, _, v_max) = range(l.v);
    metrics.clear();
    metrics.extend([
        ("critic/critic_loss", item(l.critic)),
        ("critic/hinge_b", item(l.hinge_b)),
        ("critic/hinge_e", item(l.hinge_e)),
        ("critic/hinge_kq", item(l.hinge_kq)),
        ("critic/hinge_kv", item(l.hinge_kv)),
        ("critic/q_mean", item(l.q.mean())),
        ("critic/q_max", q_max),
        ("critic/q_min", q_min),
        ("value/v_mean", item(l.v.mean())),
        ("value/v_max", v_max),
        ("value/v_min", v_min),
        ("critic/g_b_satisfied", share(l.residuals[0])),
        ("critic/g_e_satisfied", share(l.residuals[1])),
        ("critic/g_kq_satisfied", share(l.residuals[2])),
        ("critic/g_kv_satisfied", share(l.residuals[3])),
        ("actor/actor_loss", item(l.actor)),
        ("actor/q", item(l.q_pi.mean())),
        ("actor/bc_loss", item(l.bc)),
    ]);
}

#[cfg(test)]
mod tests;

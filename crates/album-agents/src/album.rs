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

use crate::agent::{Agent, AgentError, AgentState, Metrics, NetworkState};
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
    /// Weight of E[Q] in the objective.
    pub omega_q: f64,
    /// Weight of E[V] in the objective.
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
    #[serde(with = "tail")]
    pub kstep_tail: KStepTail,
    /// What follows a solved task in a rollout: `stop` or `qc_sum`.
    #[serde(with = "after_goal")]
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

        let states = if self.encoding.is_identity() {
            batch.states()
        } else {
            self.encoding.encode(batch.states(), &mut self.states);
            &self.states
        };
        let tape = self.tape.begin();
        let losses = losses(&self.config, (&self.q, &self.v, &self.actor), tape, batch, states);
        let loss = losses.critic + losses.actor;
        let gradients = loss.backward();
        if let Some(metrics) = metrics {
            let norm = |net: &Mlp| gradients.norm(net);
            report(&losses, [norm(&self.q), norm(&self.v), norm(&self.actor)], metrics);
        }
        self.adam_q.step(&mut self.q, &gradients);
        self.adam_v.step(&mut self.v, &gradients);
        self.adam_actor.step(&mut self.actor, &gradients);
        f64::from(loss.item())
    }

    fn act(&mut self, observations: &[f32], actions: &mut Vec<f32>) {
        let squash = match self.config.squash {
            Squash::Clip => |x: f32| x.clamp(-1.0, 1.0),
            Squash::Tanh => f32::tanh,
        };
        actions.clear();
        forward(&mut self.tape, &self.encoding, &self.actor, observations, actions);
        actions.iter_mut().for_each(|x| *x = squash(*x));
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

/// Applies a network to observations, without gradients.
fn forward(tape: &mut Tape, encoding: &Encoding, net: &Mlp, observations: &[f32], out: &mut Vec<f32>) {
    let mut encoded = Vec::new();
    encoding.encode(observations, &mut encoded);
    let tape = tape.begin();
    let x = tape.constant_slice(encoded.len() / encoding.dim(), encoding.dim(), &encoded);
    tape.apply_frozen(net, x).with_value(|y| out.extend_from_slice(y));
}

fn report(l: &Losses<'_>, [norm_q, norm_v, norm_actor]: [f64; 3], metrics: &mut Metrics) {
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
        ("grad/norm", (norm_q * norm_q + norm_v * norm_v + norm_actor * norm_actor).sqrt()),
        ("grad/norm_q", norm_q),
        ("grad/norm_v", norm_v),
        ("grad/norm_actor", norm_actor),
    ]);
}

/// The rules of the data crate by the names that configuration files use.
macro_rules! named {
    ($module:ident, $type:ty, $($variant:path => $name:literal),+) => {
        mod $module {
            use super::*;
            use serde::de::Error;
            pub fn serialize<S: serde::Serializer>(x: &$type, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(match x { $($variant => $name),+ })
            }
            pub fn deserialize<'de, D: serde::Deserializer<'de>>(d: D) -> Result<$type, D::Error> {
                let found = String::deserialize(d)?;
                match found.as_str() {
                    $($name => Ok($variant),)+
                    _ => Err(D::Error::custom(format!("found \"{found}\", expected one of {}", [$($name),+].join(", ")))),
                }
            }
        }
    };
}
named!(tail, KStepTail, KStepTail::Truncate => "truncate", KStepTail::Drop => "drop", KStepTail::QcValid => "qc_valid");
named!(after_goal, AfterGoal, AfterGoal::Stop => "stop", AfterGoal::QcSum => "qc_sum");

#[cfg(test)]
mod tests {
    use super::*;
    use album_data::{Rows, Sampler, Segments};
    use album_nn::Tensor;

    /// Episodes of random states and actions; `goal` solves the task in the last state of every other episode.
    fn data(observation_dim: usize, action_dim: usize, goal: bool) -> Dataset {
        let (episodes, rows) = (6, 30);
        let mut draw = rng::stream(3, "test");
        let mut normal = |n: usize| -> Vec<f32> {
            (0..n.div_ceil(2)).flat_map(|_| rng::normal_pair(&mut draw)).map(|x| x as f32).take(n).collect()
        };
        let n = episodes * rows;
        let solved = |row: usize| goal && row % (2 * rows) == rows - 4;
        Dataset::from_rows(Rows {
            observation_dim,
            action_dim,
            observations: normal(n * observation_dim),
            actions: normal(n * action_dim).into_iter().map(|x| x.tanh()).collect(),
            rewards: (0..n).map(|row| if solved(row) { 0.0 } else { -1.0 }).collect(),
            masks: (0..n).map(|row| if solved(row) { 0.0 } else { 1.0 }).collect(),
            terminals: (0..n).map(|row| row % rows == rows - 1).collect(),
        })
        .unwrap()
    }

    fn small() -> Config {
        Config { hidden: vec![16, 16], batch_size: 32, gamma: 0.9, k: 4, ..Config::default() }
    }

    fn batch(agent: &Album, data: &Dataset, step: u64) -> Batch {
        let mut batch = Batch::new(data, agent.batch_size());
        Sampler::new(1, data.len()).fill(step, batch.indices_mut());
        Segments::new(agent.segments()).unwrap().gather(data, &mut batch);
        batch
    }

    fn agent(config: Config, data: &Dataset) -> Album {
        Album::new(config, data, 100, 7, &Pool::new(1)).unwrap()
    }

    #[test]
    fn the_paper_sized_agent_has_the_papers_parameters() {
        let rows = Rows {
            observation_dim: 29,
            action_dim: 8,
            observations: vec![0.0; 2 * 29],
            actions: vec![0.0; 2 * 8],
            rewards: vec![0.0; 2],
            masks: vec![1.0; 2],
            terminals: vec![false, true],
        };
        let data = Dataset::from_rows(rows).unwrap();
        assert_eq!(agent(Config::default(), &data).parameters(), 2_427_402);
        let b = Config::default().boundedness();
        assert!((b.left - 2.0125).abs() < 1e-12 && (b.right - 0.15).abs() < 1e-12);
    }

    /// A network in f64, straight from its definition.
    fn forward64(tensors: &[Tensor], x: &[f64], layer_norm: bool) -> Vec<f64> {
        let mut x = x.to_vec();
        let mut tensors = tensors.iter().peekable();
        while let (Some(kernel), Some(bias)) = (tensors.next(), tensors.next()) {
            let (n, m) = (kernel.shape[0], kernel.shape[1]);
            let mut y: Vec<f64> = (0..m)
                .map(|j| {
                    f64::from(bias.data[j])
                        + (0..n).map(|i| x[i] * f64::from(kernel.data[i * m + j])).sum::<f64>()
                })
                .collect();
            if tensors.peek().is_none() {
                return y;
            }
            let c = (2.0 / std::f64::consts::PI).sqrt();
            y.iter_mut().for_each(|y| *y = 0.5 * *y * (1.0 + (c * (*y + 0.044715 * y.powi(3))).tanh()));
            if layer_norm && let (Some(scale), Some(shift)) = (tensors.next(), tensors.next()) {
                let mean = y.iter().sum::<f64>() / m as f64;
                let variance = y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / m as f64;
                for (j, y) in y.iter_mut().enumerate() {
                    let standard = (*y - mean) / (variance + 1e-6).sqrt();
                    *y = standard * f64::from(scale.data[j]) + f64::from(shift.data[j]);
                }
            }
            x = y;
        }
        x
    }

    #[test]
    fn the_losses_are_their_definitions() {
        let data = data(5, 2, true);
        let mut agent = agent(small(), &data);
        // Some updates, so that nothing is at its initial value.
        for step in 0..20 {
            let batch = batch(&agent, &data, step);
            agent.update(&batch, step, None);
        }
        let batch = batch(&agent, &data, 50);
        let c = agent.config.clone();
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let [q_net, v_net, actor] = [&agent.q, &agent.v, &agent.actor].map(Mlp::tensors);
        let (mut critic, mut q_pi, mut bc, b) = (0.0, Vec::new(), 0.0, batch.len());
        for i in 0..b {
            let row = |x: &[f32], dim: usize| wide(&x[i * dim..(i + 1) * dim]);
            let (s, a) = (row(batch.observations(), 5), row(batch.actions(), 2));
            let v = |s: &[f64]| forward64(&v_net, s, true)[0];
            let q = |s: &[f64], a: &[f64]| forward64(&q_net, &[s, a].concat(), true)[0];
            let hinge = |x: f64| x.max(0.0);
            let (q_sa, v_s) = (q(&s, &a), v(&s));
            let y_1 = f64::from(batch.rewards()[i])
                + c.gamma * f64::from(batch.masks()[i]) * v(&row(batch.next_observations(), 5));
            let y_k = f64::from(batch.returns_k()[i])
                + f64::from(batch.bootstraps_k()[i]) * v(&row(batch.last_observations(), 5));
            critic += c.omega_q * q_sa
                + c.omega_v * v_s
                + c.lambda_b * hinge(y_1 - q_sa)
                + c.lambda_e * hinge(q_sa - v_s)
                + c.lambda_k * (hinge(y_k - q_sa) + hinge(y_k - v_s));
            let mean = forward64(&actor, &s, false);
            let clipped: Vec<f64> = mean.iter().map(|x| x.clamp(-1.0, 1.0)).collect();
            q_pi.push(q(&s, &clipped));
            bc += mean.iter().zip(&a).map(|(m, a)| (m - a).powi(2)).sum::<f64>();
        }
        let n = b as f64;
        let q_term = q_pi.iter().sum::<f64>() / q_pi.iter().map(|q| q.abs()).sum::<f64>().max(1e-9);
        let expected = [critic / n, c.alpha_bc * bc / n - q_term];

        let mut metrics = Metrics::new();
        agent.update(&batch, 50, Some(&mut metrics));
        let found = |name: &str| metrics.iter().find(|m| m.0 == name).unwrap().1;
        for (found, expected) in
            [found("critic/critic_loss"), found("actor/actor_loss")].into_iter().zip(expected)
        {
            assert!((found - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{found} {expected}");
        }
    }

    /// Gradients of V at one state, as one vector.
    fn value_gradient(v: &Mlp, state: &[f32]) -> Vec<f64> {
        let mut tape = Tape::new(&Pool::new(1));
        let tape = tape.begin();
        let value = tape.apply(v, tape.constant_slice(1, state.len(), state)).mean();
        flatten(&value.backward().of(v))
    }

    fn flatten(tensors: &[Tensor]) -> Vec<f64> {
        tensors.iter().flat_map(|t| t.data.iter().map(|&x| f64::from(x))).collect()
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn detaching_removes_the_inner_product_of_the_remark() {
        // One descent step on lambda_K [y_K - V(s)]+ moves V(s) by eta lambda_K (|grad V(s)|^2 - gamma^K <grad V(s),
        // grad V(s_K)>); detached, the second part is gone.
        let mut init = rng::stream(5, "remark");
        let v = Mlp::new(MlpSpec::new(3, &[12, 12], 1).layer_norm(true), &mut init);
        let (s, s_k) = ([0.3, -0.2, 0.5], [-0.7, 0.1, 0.9]);
        let (lambda_k, gamma_k) = (1.5f32, 0.9f32.powi(4));
        let step = |detached: bool| {
            let mut tape = Tape::new(&Pool::new(1));
            let tape = tape.begin();
            let values = tape.apply(&v, tape.constant_slice(2, 3, &[s, s_k].concat()));
            let y_k = 10.0 + gamma_k * values.slice_rows(1, 2); // far above V(s): the hinge is active
            let y_k = if detached { y_k.detach() } else { y_k };
            let loss = lambda_k * (y_k - values.slice_rows(0, 1)).relu().mean();
            flatten(&loss.backward().of(&v)).iter().map(|g| -g).collect::<Vec<f64>>()
        };
        let (at_s, at_k) = (value_gradient(&v, &s), value_gradient(&v, &s_k));
        let (plain, detached) = (dot(&step(false), &at_s), dot(&step(true), &at_s));
        let (lambda_k, gamma_k) = (f64::from(lambda_k), f64::from(gamma_k));
        assert!((detached - lambda_k * dot(&at_s, &at_s)).abs() < 1e-4 * detached.abs());
        let removed = lambda_k * gamma_k * dot(&at_s, &at_k);
        assert!(removed.abs() > 1e-2, "the test needs states that share parameters");
        assert!((detached - plain - removed).abs() < 1e-4 * removed.abs(), "{} {removed}", detached - plain);
    }

    #[test]
    fn a_common_shift_moves_at_the_two_predicted_rates() {
        let data = data(4, 2, false);
        for stop_gradient in [true, false] {
            let config = Config { stop_gradient, ..small() };
            let mut agent = agent(config, &data);
            // Far below every target, all hinges but the epigraph's are active.
            for net in [&mut agent.q, &mut agent.v] {
                let mut tensors = net.tensors();
                tensors.last_mut().unwrap().data[0] = -1e4;
                net.load(&tensors).unwrap();
            }
            // Windows of full length only: a shorter one has another gamma^h.
            let mut batch = Batch::new(&data, agent.batch_size());
            let full: Vec<usize> = (0..data.len()).filter(|t| t % 29 < 29 - 4).take(batch.len()).collect();
            batch.indices_mut().copy_from_slice(&full);
            Segments::new(agent.segments()).unwrap().gather(&data, &mut batch);

            let mut tape = Tape::new(&Pool::new(1));
            let tape = tape.begin();
            let nets = (&agent.q, &agent.v, &agent.actor);
            let losses = losses(&agent.config, nets, tape, &batch, batch.states());
            let gradients = losses.critic.backward();
            // The output biases are the direction in which all outputs shift together.
            let along: f64 = [&agent.q, &agent.v]
                .iter()
                .map(|net| flatten(&gradients.of(net)).last().copied().unwrap())
                .sum();
            // g_E = Q - V is untouched by the shift and contributes equal and opposite parts.
            let predicted = -agent.config.boundedness().slope();
            assert!((along - predicted).abs() < 1e-4, "stop_gradient {stop_gradient}: {along} {predicted}");
        }
    }

    #[test]
    fn state_goes_back_and_forth_and_other_states_are_refused() {
        let data = data(4, 2, true);
        let mut one = agent(small(), &data);
        for step in 0..5 {
            let batch = batch(&one, &data, step);
            one.update(&batch, step, None);
        }
        let mut two = Album::new(small(), &data, 100, 99, &Pool::new(1)).unwrap();
        assert_ne!(one.state(), two.state());
        two.load(&one.state()).unwrap();
        assert_eq!(one.state(), two.state());
        for step in 5..8 {
            let batch = batch(&one, &data, step);
            one.update(&batch, step, None);
            two.update(&batch, step, None);
        }
        assert_eq!(one.state(), two.state());

        let mut state = one.state();
        state.networks.swap(0, 1);
        assert!(two.load(&state).unwrap_err().to_string().contains("`v` where `q` is expected"));
        let wide = agent(Config { hidden: vec![8, 8], ..small() }, &data);
        assert!(two.load(&wide.state()).is_err());
        assert_eq!(one.state(), two.state());
    }

    #[test]
    fn every_switch_trains_without_breaking() {
        let data = data(4, 2, true);
        let switches: [Config; 8] = [
            Config { ensemble: 3, ..small() },
            Config { squash: Squash::Tanh, ..small() },
            Config { normalize_q: false, ..small() },
            Config { stop_gradient: false, ..small() },
            Config { kstep_tail: KStepTail::Drop, ..small() },
            Config { kstep_tail: KStepTail::QcValid, kstep_after_goal: AfterGoal::QcSum, ..small() },
            Config { reward_scale: 0.3, lr_decay: Decay::Cosine, ..small() },
            Config { standardize: true, fourier_features: 8, fourier_scale: 2.0, ..small() },
        ];
        let mut seen = Vec::new();
        for config in switches {
            let mut agent = agent(config.clone(), &data);
            let mut metrics = Metrics::new();
            for step in 0..30 {
                let batch = batch(&agent, &data, step);
                agent.update(&batch, step, Some(&mut metrics));
                assert!(metrics.iter().all(|m| m.1.is_finite()), "{config:?}: {metrics:?}");
            }
            let mut actions = Vec::new();
            agent.act(&[0.5; 12], &mut actions);
            assert_eq!(actions.len(), 6);
            assert!(actions.iter().all(|a| (-1.0..=1.0).contains(a)));
            let weights = [flatten(&agent.q.tensors()), flatten(&agent.actor.tensors())];
            assert!(!seen.contains(&weights), "{config:?} changes nothing");
            seen.push(weights);
        }
    }

    #[test]
    fn the_learning_rate_falls_to_zero() {
        let data = data(4, 2, false);
        let mut agent = agent(Config { lr_decay: Decay::Cosine, ..small() }, &data);
        let batch = batch(&agent, &data, 0);
        let before = agent.state().networks[0].weights.clone();
        agent.update(&batch, 100, None); // the last of 100 steps and beyond
        assert_eq!(before, agent.state().networks[0].weights);
    }
}

//! The agent against its definitions, the remark on stopping gradients, and the two drift rates.

use super::*;
use crate::agent::Agent;
use crate::{Decay, Learner, Metrics, Moment, Noise, Policy};
use album_base::rng;
use album_data::{Batch, Dataset, Rows, Sampler, Segments, View};
use album_nn::{Mlp, MlpSpec, Pool, Tape, Tensor};

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

fn common() -> Common {
    Common { hidden: vec![16, 16], batch_size: 32, gamma: 0.9, ..Common::default() }
}

fn small() -> Config {
    Config { common: common(), critic: HingeCritic { k: 4, ..HingeCritic::default() }, ..Config::default() }
}

fn critic(change: impl Fn(&mut HingeCritic)) -> Config {
    let mut config = small();
    change(&mut config.critic);
    config
}

fn batch(agent: &Learner, data: &Dataset, step: u64) -> Batch {
    let mut batch = Batch::new(data, agent.batch_size());
    Sampler::new(1, data.len()).fill(step, batch.indices_mut());
    Segments::new(agent.segments()).unwrap().gather(data, &mut batch);
    batch
}

fn agent(config: Config, data: &Dataset) -> Learner {
    Learner::new(&config, data, 100, 7, &Pool::new(1)).unwrap()
}

/// The weights of Q, V and the actor.
fn weights(agent: &Learner) -> [Vec<Tensor>; 3] {
    let networks = agent.state().networks;
    ["q", "v", "actor"].map(|name| networks.iter().find(|n| n.name == name).unwrap().weights.clone())
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
    let b = Config::default().boundedness().unwrap().sides;
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

/// What the update treats as constants: the detached targets y_K and the normaliser of Q in the actor loss.
struct Constants {
    y_k: Vec<f64>,
    divisor: f64,
}

/// Critic and actor loss in f64, straight from their definitions, for weights of (q, v, actor). The constants
/// are computed from these weights unless given.
fn losses64(
    c: &Config,
    nets: &[Vec<Tensor>; 3],
    batch: &Batch,
    held: Option<&Constants>,
) -> ([f64; 2], Constants) {
    let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let [q_net, v_net, actor] = nets;
    let n = batch.len() as f64;
    let (mut critic, mut q_pi, mut bc, mut y_ks) = (0.0, Vec::new(), 0.0, Vec::new());
    for i in 0..batch.len() {
        let row = |x: View<'_>| wide(x.row(i));
        let (s, a) = (row(batch.observations()), row(batch.actions()));
        let v = |s: &[f64]| forward64(v_net, s, true)[0];
        let q = |s: &[f64], a: &[f64]| forward64(q_net, &[s, a].concat(), true)[0];
        let hinge = |x: f64| x.max(0.0);
        let (q_sa, v_s) = (q(&s, &a), v(&s));
        let y_1 = f64::from(batch.rewards()[i])
            + c.common.gamma * f64::from(batch.masks()[i]) * v(&row(batch.next_observations()));
        let y_k = match held {
            Some(held) => held.y_k[i],
            None => {
                let last = v(&row(batch.last_observations()));
                f64::from(batch.returns_k()[i]) + f64::from(batch.bootstraps_k()[i]) * last
            }
        };
        y_ks.push(y_k);
        critic += c.critic.coefficients.omega_q * q_sa
            + c.critic.coefficients.omega_v * v_s
            + c.critic.coefficients.lambda_b * hinge(y_1 - q_sa)
            + c.critic.coefficients.lambda_e * hinge(q_sa - v_s)
            + c.critic.coefficients.lambda_k * (hinge(y_k - q_sa) + hinge(y_k - v_s));
        let mean = forward64(actor, &s, false);
        let each = |f: fn(f64) -> f64| mean.iter().copied().map(f).collect::<Vec<f64>>();
        let (pi, into_q) = match c.squash {
            Squash::Clip => (mean.clone(), each(|x| x.clamp(-1.0, 1.0))),
            Squash::Tanh => (each(f64::tanh), each(f64::tanh)),
        };
        q_pi.push(q(&s, &into_q));
        bc += pi.iter().zip(&a).map(|(pi, a)| (pi - a).powi(2)).sum::<f64>();
    }
    let divisor =
        held.map_or_else(|| q_pi.iter().map(|q| q.abs()).sum::<f64>() / n + 1e-6, |held| held.divisor);
    let losses = [critic / n, c.alpha_bc * bc / n - q_pi.iter().sum::<f64>() / n / divisor];
    (losses, Constants { y_k: y_ks, divisor })
}

/// An agent after some updates, so that no weight is at its initial value, and a batch.
fn trained(config: &Config, data: &Dataset) -> (Learner, Batch) {
    let mut agent = agent(config.clone(), data);
    for step in 0..20 {
        let batch = batch(&agent, data, step);
        agent.update(&batch, step, None);
    }
    let batch = batch(&agent, data, 50);
    (agent, batch)
}

/// Both ways to make an action of the mean.
fn both() -> [Config; 2] {
    [Squash::Clip, Squash::Tanh].map(|squash| Config { squash, ..small() })
}

#[test]
fn the_losses_are_their_definitions() {
    both().iter().for_each(check_losses);
}

fn check_losses(config: &Config) {
    let data = data(5, 2, true);
    let (mut agent, batch) = trained(config, &data);
    let (expected, _) = losses64(config, &weights(&agent), &batch, None);
    let mut metrics = Metrics::new();
    let total = agent.update(&batch, 50, Some(&mut metrics));
    let found = |name: &str| metrics.iter().find(|m| m.0 == name).unwrap().1;
    for (found, expected) in
        [found("critic/critic_loss"), found("actor/actor_loss")].into_iter().zip(expected)
    {
        assert!((found - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{found} {expected}");
    }
    assert!((total - expected[0] - expected[1]).abs() < 1e-4);
}

#[test]
fn gradients_are_finite_differences_of_the_losses() {
    both().iter().for_each(check_gradients);
}

fn check_gradients(config: &Config) {
    let data = data(5, 2, true);
    let (mut agent, batch) = trained(config, &data);
    let weights = weights(&agent);
    let (_, held) = losses64(config, &weights, &batch, None);
    let (_, gradients) = agent.gradients(&batch, 50, &mut Noise::at(0, 50));
    for (net, (_, gradient)) in gradients.iter().enumerate() {
        // Q and V follow the critic loss, the actor its own: the actor loss does not change Q's weights.
        let part = usize::from(net == 2);
        let size = flatten(gradient).iter().fold(0.0f64, |m, g| m.max(g.abs()));
        for (t, tensor) in gradient.iter().enumerate() {
            for i in (0..tensor.data.len()).step_by(tensor.data.len() / 3 + 1) {
                let at = |offset: f32| {
                    let mut moved = weights.clone();
                    moved[net][t].data[i] += offset;
                    let exact = f64::from(moved[net][t].data[i]) - f64::from(weights[net][t].data[i]);
                    (losses64(config, &moved, &batch, Some(&held)).0[part], exact)
                };
                let ((up, plus), (down, minus)) = (at(1e-4), at(-1e-4));
                let slope = (up - down) / (plus - minus);
                let found = f64::from(tensor.data[i]);
                assert!((found - slope).abs() < 2e-3 * size, "{net} {} [{i}]: {found} {slope}", tensor.name);
            }
        }
    }
}

/// The gradient of V at one state, as one vector.
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
    // One gradient step on lambda_K [y_K - V(s)]+ moves V(s) by eta lambda_K (|grad V(s)|^2 - gamma^K <grad
    // V(s), grad V(s_K)>); with a stopped gradient, the second part vanishes.
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
        let config = critic(|c| c.stop_gradient = stop_gradient);
        let boundedness = config.boundedness().unwrap().sides;
        let mut agent = agent(config, &data);
        // Far below every target, all hinges but those of family E are active.
        let mut state = agent.state();
        for network in &mut state.networks[..2] {
            network.weights.last_mut().unwrap().data[0] = -1e4;
        }
        agent.load(&state).unwrap();
        // Full-length windows only: a shorter one has another gamma^h.
        let mut batch = Batch::new(&data, agent.batch_size());
        let full: Vec<usize> = (0..data.len()).filter(|t| t % 29 < 29 - 4).take(batch.len()).collect();
        batch.indices_mut().copy_from_slice(&full);
        Segments::new(agent.segments()).unwrap().gather(&data, &mut batch);

        let (_, gradients) = agent.gradients(&batch, 0, &mut Noise::at(0, 0));
        // Changing the output biases shifts all outputs together.
        let along: f64 = gradients[..2].iter().map(|(_, g)| flatten(g).last().copied().unwrap()).sum();
        // g_E = Q - V is invariant under the shift: its contributions cancel.
        let predicted = -boundedness.slope();
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
    let mut two = Learner::new(&small(), &data, 100, 99, &Pool::new(1)).unwrap();
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
    let wide = agent(Config { common: Common { hidden: vec![8, 8], ..common() }, ..small() }, &data);
    assert!(two.load(&wide.state()).is_err());
    assert_eq!(one.state(), two.state());
}

fn moments(rows: usize) -> Vec<Moment> {
    (0..rows as u64).map(|episode| Moment { episode, step: 0 }).collect()
}

#[test]
fn every_switch_trains_without_breaking() {
    let data = data(4, 2, true);
    let switches: [Config; 10] = [
        Config { critic_first: true, ..small() },
        critic(|c| c.ensemble = 3),
        Config { squash: Squash::Clip, ..small() },
        Config { normalize_q: false, ..small() },
        critic(|c| c.stop_gradient = false),
        critic(|c| c.kstep_tail = KStepTail::Drop),
        critic(|c| c.initial_value = InitialValue::Lowest),
        critic(|c| (c.kstep_tail, c.kstep_after_goal) = (KStepTail::QcValid, AfterGoal::QcSum)),
        Config { common: Common { reward_scale: 0.3, lr_decay: Decay::Cosine, ..common() }, ..small() },
        Config {
            common: Common { standardize: true, fourier_features: 8, fourier_scale: 2.0, ..common() },
            ..small()
        },
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
        agent.policy().act(&[0.5; 12], &moments(3), &mut actions);
        assert_eq!(actions.len(), 6);
        assert!(actions.iter().all(|a| (-1.0..=1.0).contains(a)));
        let [q, _, actor] = weights(&agent);
        let weights = [flatten(&q), flatten(&actor)];
        assert!(!seen.contains(&weights), "{config:?} changes nothing");
        seen.push(weights);
    }
}

#[test]
fn assessing_tells_what_the_update_would_and_changes_nothing() {
    let data = data(4, 2, true);
    let mut agent = agent(Config { common: Common { standardize: true, ..common() }, ..small() }, &data);
    let batch = batch(&agent, &data, 0);
    let before = agent.state();
    let (mut assessed, mut updated) = (Metrics::new(), Metrics::new());
    agent.assess(&batch, &mut assessed);
    assert_eq!(agent.state(), before);
    agent.update(&batch, 0, Some(&mut updated));
    assert_eq!(assessed, updated[..assessed.len()]);
    assert!(updated[assessed.len()..].iter().all(|(name, _)| name.starts_with("grad/")));
}

#[test]
fn a_policy_is_a_copy_and_its_rows_are_independent() {
    let data = data(4, 2, true);
    let mut agent = agent(small(), &data);
    let observations: Vec<f32> = data.states().take(9).flatten().copied().collect();
    let act = |policy: &mut dyn Policy, rows: &[f32]| {
        let mut actions = Vec::new();
        policy.act(rows, &moments(rows.len() / 4), &mut actions);
        actions
    };
    let mut policy = agent.policy();
    let all = act(policy.as_mut(), &observations);
    for (row, action) in observations.chunks(4).zip(all.chunks(2)) {
        assert_eq!(act(policy.as_mut(), row), action);
    }
    for step in 0..5 {
        let batch = batch(&agent, &data, step);
        agent.update(&batch, step, None);
    }
    assert_eq!(act(policy.as_mut(), &observations), all);
    assert_ne!(act(agent.policy().as_mut(), &observations), all);
}

#[test]
fn values_can_start_at_the_lowest_that_rewards_allow() {
    let start = |initial_value, goal: bool| {
        let mut config = critic(|c| c.initial_value = initial_value);
        (config.common.reward_scale, config.critic.ensemble) = (0.5, 2);
        let data = data(3, 2, goal);
        let mut agent = agent(config, &data);
        let states = View::new(data.observation(0), 1, 3);
        let (v, q) =
            (agent.value(states).unwrap(), agent.q(states, View::new(data.action(0), 1, 2)).unwrap());
        (v[0], q[0])
    };
    let (zero, lowest) = (start(InitialValue::Zero, true), start(InitialValue::Lowest, true));
    // -1 at every step, gamma = 0.9.
    let close = |found: f32, expected: f32| assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    close(lowest.0, zero.0 - 10.0);
    close(lowest.1, zero.1 - 10.0);
    // With the same reward everywhere there is nothing to learn.
    assert_eq!(start(InitialValue::Lowest, false), start(InitialValue::Zero, false));
}

#[test]
fn the_learning_rate_falls_to_zero() {
    let data = data(4, 2, false);
    let mut agent =
        agent(Config { common: Common { lr_decay: Decay::Cosine, ..common() }, ..small() }, &data);
    let batch = batch(&agent, &data, 0);
    let before = agent.state().networks[0].weights.clone();
    agent.update(&batch, 100, None); // past the last of 100 steps
    assert_eq!(before, agent.state().networks[0].weights);
}

#[test]
fn with_the_critic_first_the_actor_follows_the_new_critic() {
    let data = data(4, 2, true);
    for extraction in [Extraction::DdpgBc, Extraction::Awr] {
        let config = Config { extraction, ..small() };
        let updated = |mut agent: Learner| {
            let batch = batch(&agent, &data, 0);
            agent.update(&batch, 0, None);
            agent
        };
        let first = updated(agent(Config { critic_first: true, ..config.clone() }, &data));
        let at_once = updated(agent(config.clone(), &data));
        assert_eq!(weights(&first)[..2], weights(&at_once)[..2], "the critic does not depend on the actor");
        assert_ne!(weights(&first)[2], weights(&at_once)[2]);

        // The new critic from the start, with the actor's first weights.
        let mut given = agent(config, &data);
        let mut state = given.state();
        for (network, new) in state.networks.iter_mut().zip(at_once.state().networks) {
            if network.name != "actor" {
                *network = new;
            }
        }
        given.load(&state).unwrap();
        assert_eq!(weights(&first)[2], weights(&updated(given))[2]);
    }
}

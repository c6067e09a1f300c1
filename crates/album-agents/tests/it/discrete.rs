//! Discrete actions: refusals, losses and gradients against double precision, learning, values, and physical units.
#![allow(clippy::unwrap_used)]

use crate::support;

use album_agents::{AGENTS, Agent, AgentKind, Blueprint, Learner, Metrics, Moment, Noise};
use album_base::rng;
use album_data::{ActionSpace, Batch, Dataset, Rows, Sampler, Segments, View};
use album_nn::{Pool, Tensor};

const CHOICES: usize = 4;

fn data() -> Dataset {
    support::discrete_data(3, 21, CHOICES)
}

/// One number per row.
type Column = Vec<f64>;

/// A network in double precision, straight from its definition: one member's outputs for one row.
fn forward(tensors: &[Tensor], member: Option<usize>, x: &[f32], layer_norm: bool) -> Column {
    let prefix = member.map_or(String::new(), |member| format!("member{member}/"));
    let own = tensors.iter().filter(|tensor| tensor.name.starts_with(&prefix));
    let mut own = own.map(|tensor| tensor.data.iter().map(|&x| f64::from(x)).collect::<Column>()).peekable();
    let mut x: Column = x.iter().map(|&x| x.into()).collect();
    while let (Some(kernel), Some(bias)) = (own.next(), own.next()) {
        let m = bias.len();
        let dot = |j: usize| x.iter().enumerate().map(|(i, x)| x * kernel[i * m + j]).sum::<f64>();
        let y: Column = (0..m).map(|j| bias[j] + dot(j)).collect();
        if own.peek().is_none() {
            return y;
        }
        let c = (2.0 / std::f64::consts::PI).sqrt();
        let gelu = |y: &f64| 0.5 * y * (1.0 + (c * (y + 0.044715 * y.powi(3))).tanh());
        x = y.iter().map(gelu).collect();
        if layer_norm {
            let (scale, shift) = (own.next().unwrap(), own.next().unwrap());
            let mean = x.iter().sum::<f64>() / m as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / m as f64;
            let normal = |(j, x): (usize, &f64)| (x - mean) / (variance + 1e-6).sqrt() * scale[j] + shift[j];
            x = x.iter().enumerate().map(normal).collect();
        }
    }
    unreachable!("a network ends with a layer")
}

/// The weights of all networks by name, in double precision, so that they can be shifted for finite
/// differences.
struct Reference<'a> {
    weights: Vec<(String, Vec<Tensor>)>,
    batch: &'a Batch,
    members: usize,
}

/// Quantities that an update treats as constants.
#[derive(Clone)]
struct Constants {
    y_k: Column,
    y: Column,
    q_bar: Column,
    weights: Column,
}

fn mean(x: impl Iterator<Item = f64>) -> f64 {
    let all: Column = x.collect();
    all.iter().sum::<f64>() / all.len() as f64
}

impl Reference<'_> {
    fn rows(&self) -> usize {
        self.batch.len()
    }

    fn net(&self, name: &str) -> &[Tensor] {
        &self.weights.iter().find(|(own, _)| own == name).unwrap().1
    }

    /// State `block` (0: s, 1: s', 2: s_K) of a row.
    fn state(&self, block: usize, row: usize) -> &[f32] {
        self.batch.states().row(block * self.rows() + row)
    }

    fn v(&self, block: usize) -> Column {
        (0..self.rows()).map(|row| forward(self.net("v"), None, self.state(block, row), true)[0]).collect()
    }

    /// Q of the recorded action, member by member in each row.
    fn q(&self, name: &str) -> Vec<Column> {
        let value = |row: usize, member: usize| {
            let member = (self.members > 1).then_some(member);
            let q = forward(self.net(name), member, self.state(0, row), true);
            assert_eq!(q.len(), CHOICES);
            q[self.batch.actions().row(row)[0] as usize]
        };
        (0..self.rows()).map(|row| (0..self.members).map(|member| value(row, member)).collect()).collect()
    }

    fn log_p(&self) -> Column {
        let log_probability = |row: usize| {
            let logits = forward(self.net("actor"), None, self.state(0, row), false);
            let sum = logits.iter().map(|x| x.exp()).sum::<f64>();
            logits[self.batch.actions().row(row)[0] as usize] - sum.ln()
        };
        (0..self.rows()).map(log_probability).collect()
    }

    fn bc(&self) -> f64 {
        -mean(self.log_p().into_iter())
    }

    fn column(&self, values: &[f32]) -> Column {
        values.iter().map(|&x| x.into()).collect()
    }

    fn album_constants(&self) -> Constants {
        let b = self.batch;
        let targets = b.returns_k().iter().zip(b.bootstraps_k()).zip(self.v(2));
        let y_k = targets.map(|((r, g), v)| f64::from(*r) + f64::from(*g) * v).collect();
        let members = self.members as f64;
        let advantages = self.q("q").into_iter().map(|q| q.iter().sum::<f64>() / members).zip(self.v(0));
        let advantages: Column = advantages.map(|(q, v)| q - v).collect();
        let size = mean(advantages.iter().map(|a| a.abs())) + 1e-6;
        let weights = advantages.iter().map(|a| (3.0 * a / size).exp().min(100.0)).collect();
        Constants { y_k, y: vec![], q_bar: vec![], weights }
    }

    /// The six terms of the paper at the recorded actions, and the weighted cross-entropy.
    fn album(&self, gamma: f64, k: &Constants) -> f64 {
        let b = self.batch;
        let (q, v, v_next) = (self.q("q"), self.v(0), self.v(1));
        let (r, m, w_k) = (self.column(b.rewards()), self.column(b.masks()), self.column(b.weights_k()));
        let hinge = |x: f64| x.max(0.0);
        let each = |f: &dyn Fn(usize, f64) -> f64| {
            mean(q.iter().enumerate().flat_map(|(row, q)| q.iter().map(move |&q| f(row, q))))
        };
        let rows = |f: &dyn Fn(usize) -> f64| mean((0..v.len()).map(f));
        let critic = 0.1 * each(&|_, q| q)
            + 0.05 * rows(&|i| v[i])
            + 2.5 * each(&|i, q| hinge(r[i] + gamma * m[i] * v_next[i] - q))
            + 2.5 * each(&|i, q| hinge(q - v[i]))
            + each(&|i, q| w_k[i] * hinge(k.y_k[i] - q))
            + rows(&|i| w_k[i] * hinge(k.y_k[i] - v[i]));
        let actor = -mean(self.log_p().iter().zip(&k.weights).map(|(log_p, w)| w * log_p));
        critic + actor
    }

    fn least(q: &[f64]) -> f64 {
        q.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn iql_constants(&self, gamma: f64) -> Constants {
        let b = self.batch;
        let targets = b.rewards().iter().zip(b.masks()).zip(self.v(1));
        let y = targets.map(|((r, m), v)| f64::from(*r) + gamma * f64::from(*m) * v).collect();
        let q_bar = self.q("q_target").iter().map(|q| Self::least(q)).collect();
        let advantages = self.q("q").into_iter().zip(self.v(0)).map(|(q, v)| Self::least(&q) - v);
        let weights = advantages.map(|a| (10.0 * a).exp().min(100.0)).collect();
        Constants { y_k: vec![], y, q_bar, weights }
    }

    fn iql(&self, k: &Constants) -> f64 {
        let expectile = |u: f64| if u < 0.0 { 0.1 * u * u } else { 0.9 * u * u };
        let value = mean(self.v(0).iter().zip(&k.q_bar).map(|(v, q)| expectile(q - v)));
        let square = |(q, y): (&Column, &f64)| q.iter().map(|q| (q - y).powi(2)).sum::<f64>();
        let critic = mean(self.q("q").iter().zip(&k.y).map(square));
        let actor = -mean(self.log_p().iter().zip(&k.weights).map(|(log_p, w)| w * log_p));
        value + critic + actor
    }
}

/// Compares loss and gradients with finite differences in double precision, along one direction per network.
fn check_gradients(
    name: &str,
    settings: &str,
    members: usize,
    loss: impl Fn(&Reference<'_>, &Constants) -> f64,
) {
    let data = data();
    let mut agent = support::agent(name, &format!("batch_size = 16\n{settings}"), &data, 100);
    // Trained apart, so that a target network is not mistaken for its online network.
    support::train(&mut agent, &data, 3);
    let batch = support::batch(&agent, &data, &(0..16).map(|i| 3 * i).collect::<Vec<_>>());
    let (found, gradients) = agent.gradients(&batch, 0, &mut Noise::at(0, 0));
    let weights = agent.state().networks.into_iter().map(|network| (network.name, network.weights));
    let mut reference = Reference { weights: weights.collect(), batch: &batch, members };
    let gamma = if name == "album" { 0.995 } else { 0.99 };
    let constants = match name {
        "album" => reference.album_constants(),
        "iql" => reference.iql_constants(gamma),
        _ => Constants { y_k: vec![], y: vec![], q_bar: vec![], weights: vec![] },
    };
    let expected = loss(&reference, &constants);
    assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0), "{name}: {found} against {expected}");
    for (network, gradient) in gradients {
        // Weights are in single precision: the step is large enough to be represented well.
        let step = 1.0 / 8192.0;
        let original = reference.net(&network).to_vec();
        let mut moved = |sign: f32| {
            let own = &mut reference.weights.iter_mut().find(|(own, _)| *own == network).unwrap().1;
            own.clone_from(&original);
            own.iter_mut().flat_map(|tensor| &mut tensor.data).enumerate().for_each(|(i, x)| {
                *x += sign * step * (1.0 + i as f32).sin();
            });
            // The actual displacement, after rounding.
            let moved: Column = own.iter().flat_map(|tensor| &tensor.data).map(|&x| x.into()).collect();
            (loss(&reference, &constants), moved)
        };
        let ((up, high), (down, low)) = (moved(1.0), moved(-1.0));
        let difference = up - down;
        let slope: f64 = (gradient.iter().flat_map(|tensor| &tensor.data).zip(high.iter().zip(&low)))
            .map(|(&g, (high, low))| f64::from(g) * (high - low))
            .sum();
        reference.weights.iter_mut().find(|(own, _)| *own == network).unwrap().1 = original;
        let size = difference.abs().max(1e-5);
        assert!((slope - difference).abs() < 5e-3 * size, "{name} {network}: {slope} against {difference}");
    }
}

#[test]
fn losses_and_gradients_are_those_of_their_equations() {
    check_gradients("bc", "", 1, |x, _| x.bc());
    let awr = "discrete_policy = \"awr\"";
    check_gradients("album", awr, 1, |x, k| x.album(0.995, k));
    check_gradients("album", &format!("{awr}\nensemble = 2"), 2, |x, k| x.album(0.995, k));
    let best = |x: &Reference<'_>, k: &Constants| {
        let even = Constants { weights: vec![1.0; x.rows()], ..k.clone() };
        x.album(0.995, &even)
    };
    check_gradients("album", "", 1, best);
    check_gradients("iql", "", 2, |x, k| x.iql(k));
}

#[test]
fn agents_for_continuous_actions_refuse_choices_and_name_those_that_learn_them() {
    let data = data();
    let discrete: Vec<&str> =
        AGENTS.iter().filter(|kind| kind.learns_discrete()).map(|kind| kind.name).collect();
    assert!(["album", "bc", "hinge-iql", "iql"].iter().all(|name| discrete.contains(name)), "{discrete:?}");
    for kind in AGENTS {
        let setup = kind.setup(&kind.defaults().unwrap()).unwrap();
        let made = Learner::new(setup.as_ref(), &data, 10, 0, &Pool::new(1));
        if kind.learns_discrete() {
            assert!(made.is_ok(), "{}: KIND has `with_discrete`, but: {:?}", kind.name, made.err());
            continue;
        }
        let Err(error) = made else {
            panic!("{}: takes discrete actions, but KIND lacks `with_discrete`", kind.name);
        };
        let error = error.to_string();
        assert!(
            error.contains("4 discrete actions") && error.contains(&discrete.join(", ")),
            "{}: {error}",
            kind.name
        );
    }
    let iql = AgentKind::find("iql").unwrap();
    let mut settings = iql.defaults().unwrap();
    settings.insert("extraction".into(), "ddpgbc".into());
    let setup = iql.setup(&settings).unwrap();
    let error = Learner::new(setup.as_ref(), &data, 10, 0, &Pool::new(1)).unwrap_err().to_string();
    assert!(error.contains("extraction = ddpgbc; expected awr"), "{error}");
}

const LENGTH: usize = 6;

/// A walk along a line to its right end: left (preferred by the data), right or stay, and a fourth choice
/// that was never recorded.
fn chain() -> Dataset {
    let mut draw = rng::stream(1, "chain");
    let mut rows = Rows { observation_dim: LENGTH, action_dim: 1, ..Rows::default() };
    for _ in 0..150 {
        let mut place = (rng::unit(&mut draw) * (LENGTH - 1) as f64) as usize;
        for step in 0..25 {
            let solved = place + 1 == LENGTH;
            let u = rng::unit(&mut draw);
            let action = if u < 0.45 { 0 } else { 1 + usize::from(u > 0.8) };
            rows.observations.extend((0..LENGTH).map(|i| f32::from(u8::from(i == place))));
            rows.actions.push(action as f32);
            rows.rewards.push(if solved { 0.0 } else { -1.0 });
            rows.masks.push(if solved { 0.0 } else { 1.0 });
            rows.terminals.push(step == 24);
            place = match action {
                0 => place.saturating_sub(1),
                1 => (place + 1).min(LENGTH - 1),
                _ => place,
            };
        }
    }
    Dataset::in_space(rows, ActionSpace::Discrete { n: 4 }).unwrap()
}

/// One observation for each position on the line but the last.
fn places() -> Vec<f32> {
    let place = |place| (0..LENGTH).map(move |i| f32::from(u8::from(i == place)));
    (0..LENGTH - 1).flat_map(place).collect()
}

fn act(agent: &Learner, observations: &[f32]) -> Vec<f32> {
    let rows = observations.len() / agent.blueprint().encoding.observation_dim();
    let moments: Vec<Moment> = (0..rows as u64).map(|episode| Moment { episode, step: 0 }).collect();
    let mut actions = Vec::new();
    agent.policy().act(observations, &moments, &mut actions);
    actions
}

fn learned(name: &str, settings: &str, data: &Dataset) -> Learner {
    let kind = AgentKind::find(name).unwrap();
    let mut table = kind.defaults().unwrap();
    let small = "hidden = [32, 32]\nbatch_size = 64\ngamma = 0.9";
    for text in [small, settings] {
        table.extend(text.parse::<toml::Table>().unwrap());
    }
    let setup = kind.setup(&table).unwrap();
    let mut agent = Learner::new(setup.as_ref(), data, 1500, 0, &Pool::new(1)).unwrap();
    support::train(&mut agent, data, 1500);
    agent
}

#[test]
fn on_a_chain_all_learn_the_way_and_cloning_does_not() {
    let data = chain();
    let fast = "critic_lr = 1e-3\nactor_lr = 1e-3";
    let right = vec![1.0; LENGTH - 1];
    for (name, settings) in [
        ("album", fast.to_owned()),
        ("album", format!("{fast}\ndiscrete_policy = \"awr\"")),
        ("iql", "lr = 1e-3".to_owned()),
    ] {
        let mut agent = learned(name, &settings, &data);
        assert_eq!(act(&agent, &places()), right, "{name} {settings}");
        // The values reflect the distance.
        let v = agent.value(View::new(&places(), LENGTH - 1, LENGTH)).unwrap();
        assert!(v.windows(2).all(|pair| pair[0] < pair[1]), "{name}: {v:?}");
    }
    assert_eq!(act(&learned("bc", "lr = 1e-3", &data), &places()), vec![0.0; LENGTH - 1]);
}

#[test]
fn q_of_a_choice_is_its_column_and_stands_in_units_of_the_datas_rewards() {
    let data = data();
    let observations = data.states().take(5).flatten().copied().collect::<Vec<f32>>();
    let (states, actions) = (View::new(&observations, 5, 3), [0.0, 3.0, 1.0, 2.0, 2.0]);
    for (name, settings) in [("album", "ensemble = 3"), ("iql", ""), ("hinge-iql", "")] {
        let q_of = |scale: &str| {
            let mut agent = support::agent(name, &format!("{settings}\nreward_scale = {scale}"), &data, 10);
            let all = agent.q_of_choices(states).unwrap();
            let q = agent.q(states, View::new(&actions, 5, 1)).unwrap();
            assert_eq!((all.len(), q.len()), (5 * CHOICES, 5));
            for (row, (q, a)) in q.iter().zip(actions).enumerate() {
                assert_eq!(*q, all[row * CHOICES + a as usize], "{name}");
            }
            all
        };
        for (one, tenth) in q_of("1.0").into_iter().zip(q_of("0.1")) {
            assert!((10.0 * one - tenth).abs() < 1e-4 * tenth.abs().max(1e-3), "{name}: {one} {tenth}");
        }
    }
    let mut bc = support::agent("bc", "", &data, 10);
    assert!(bc.q_of_choices(states).is_none() && bc.value(states).is_none());
}

#[test]
fn q_of_continuous_actions_is_what_the_log_says() {
    let data = support::data(2, 31);
    // Their Q is that of chunks.
    let of_chunks = ["deas", "qc-fql"];
    for kind in AGENTS {
        let mut agent = support::agent(kind.name, "batch_size = 8\nreward_scale = 0.5", &data, 10);
        let batch = support::batch(&agent, &data, &[0, 7, 14, 21, 28, 35, 42, 49]);
        let mut metrics = Metrics::new();
        agent.assess(&batch, &mut metrics);
        let states = batch.states().range(0..8);
        assert!(agent.q_of_choices(states).is_none(), "{}", kind.name);
        let Some(q) = agent.q(states, batch.actions()) else {
            let logged = metrics.iter().any(|metric| metric.0 == "critic/q_min");
            assert!(
                !logged || of_chunks.contains(&kind.name),
                "{}: logs Q, but `Algorithm::q` returns no network; if its Q is that of chunks, add it to `of_chunks`",
                kind.name
            );
            continue;
        };
        let (least, most) =
            (support::metric(&metrics, "critic/q_min"), support::metric(&metrics, "critic/q_max"));
        for q in q.into_iter().map(f64::from) {
            assert!((least - 1e-4..=most + 1e-4).contains(&q), "{}: {q} in {least}..{most}", kind.name);
        }
    }
}

#[test]
fn a_policy_acts_in_physical_units() {
    // Twice the unit box: every internal number is exactly half of the physical one.
    let rows = |scale: f32| {
        let data = support::data(2, 31);
        let actions = data.episodes().rows();
        let mut draw = rng::stream(9, "physical");
        let mut numbers =
            |n: usize| -> Vec<f32> { (0..n).map(|_| rng::unit(&mut draw) as f32 - 0.5).collect() };
        Rows {
            observation_dim: 3,
            action_dim: 2,
            observations: numbers(3 * actions),
            actions: numbers(2 * actions).into_iter().map(|x| scale * x).collect(),
            rewards: vec![-1.0; actions],
            masks: vec![1.0; actions],
            terminals: (0..actions).map(|row| row % 31 == 30).collect(),
        }
    };
    let inside = Dataset::from_rows(rows(1.0)).unwrap();
    let volts = ActionSpace::Continuous { low: vec![-2.0; 2], high: vec![2.0; 2] };
    let outside = Dataset::in_space(rows(2.0), volts).unwrap();
    for name in ["album", "qc-fql", "idql"] {
        let small = "batch_size = 8\nactor_lr = 0.1";
        let small = if name == "album" { small } else { "batch_size = 8\nlr = 0.01" };
        let agents = [&inside, &outside].map(|data| {
            let mut agent = support::agent(name, small, data, 10);
            support::train(&mut agent, data, 5);
            agent
        });
        let weights = agents.each_ref().map(|agent| agent.state().networks);
        assert!(weights[0] == weights[1], "{name}: units changed the training");
        let observations = [0.1, 0.2, -0.3, 0.3, 0.0, 0.1];
        let [one, two] = agents.each_ref().map(|agent| act(agent, &observations));
        assert_eq!(one.iter().map(|x| 2.0 * x).collect::<Vec<f32>>(), two, "{name}");
        assert!(one.iter().any(|&x| x != 0.0));
        let [mut inner, mut outer] = agents;
        let states = View::new(&observations, 2, 3);
        let pair = [(&mut inner, &one), (&mut outer, &two)];
        let [q, physical] = pair.map(|(agent, actions)| agent.q(states, View::new(&actions[..4], 2, 2)));
        assert_eq!(q, physical, "{name}");
    }
}

#[test]
fn a_checkpoint_holds_the_action_space() {
    let data = data();
    for kind in AGENTS.iter().filter(|kind| kind.learns_discrete()) {
        let mut agent = support::agent(kind.name, "batch_size = 8", &data, 10);
        support::train(&mut agent, &data, 3);
        let state = agent.state();
        let text = serde_json::to_string(&state.blueprint).unwrap();
        let blueprint: Blueprint = serde_json::from_str(&text).unwrap();
        assert_eq!(blueprint.action_space(), ActionSpace::Discrete { n: CHOICES });
        let mut settings = kind.defaults().unwrap();
        settings.extend("hidden = [8]\nbatch_size = 8".parse::<toml::Table>().unwrap());
        let setup = kind.setup(&settings).unwrap();
        let mut again = Learner::from_blueprint(setup.as_ref(), &blueprint, 10, 0, &Pool::new(1)).unwrap();
        again.load(&state).unwrap();
        let observations = data.states().take(4).flatten().copied().collect::<Vec<f32>>();
        assert_eq!(act(&again, &observations), act(&agent, &observations), "{}", kind.name);

        let mut other = state.clone();
        other.blueprint.action_space = Some(ActionSpace::Discrete { n: 5 });
        let error = again.load(&other).unwrap_err().to_string();
        assert!(error.contains("5 choices; expected 4 choices"), "{error}");
        other.blueprint.action_space = Some(ActionSpace::Discrete { n: 0 });
        let made = Learner::from_blueprint(setup.as_ref(), &other.blueprint, 10, 0, &Pool::new(1));
        assert!(made.unwrap_err().to_string().contains("contradict"));
    }
    // Checkpoints from before action spaces existed are those of the unit box.
    let old = r#"{"encoding":{"observation_dim":1,"standard":null,"frequencies":[]},"action_dim":2,"value_range":null}"#;
    let blueprint: Blueprint = serde_json::from_str(old).unwrap();
    assert_eq!(blueprint.action_space(), ActionSpace::unit(2));
    assert_eq!(serde_json::to_string(&blueprint).unwrap(), old);
}

#[test]
fn resuming_with_choices_is_bit_exact() {
    let data = data();
    for kind in AGENTS.iter().filter(|kind| kind.learns_discrete()) {
        let agent = || support::agent(kind.name, "batch_size = 8", &data, 10);
        let (mut whole, mut begun, mut resumed) = (agent(), agent(), agent());
        support::train(&mut whole, &data, 6);
        support::train(&mut begun, &data, 2);
        resumed.load(&begun.state()).unwrap();
        let segments = Segments::new(resumed.segments()).unwrap();
        let mut batch = segments.batch(&data, resumed.batch_size());
        for step in 2..6 {
            Sampler::new(1, data.len()).fill(step, batch.indices_mut());
            segments.gather(&data, &mut batch);
            resumed.update(&batch, step, None);
        }
        assert!(whole.state() == resumed.state(), "{}", kind.name);
    }
}

//! Properties of every agent: resumption, threads, acting, presets, refusals.
#![allow(clippy::unwrap_used)]

use album_agents::{AGENTS, Agent, AgentKind, Learner, Metrics, Moment};
use album_base::rng;
use album_data::{Batch, Dataset, Rows, Sampler, Segments, View};
use album_nn::Pool;

const STEPS: u64 = 8;

/// Episodes of 40 steps; the task is solved in the last state of every other one.
fn data() -> Dataset {
    let (episodes, rows, observation_dim, action_dim) = (6, 41, 4, 2);
    let n = episodes * rows;
    let mut draw = rng::stream(3, "test");
    let mut numbers =
        |n: usize| -> Vec<f32> { (0..n).map(|_| 2.0 * rng::unit(&mut draw) as f32 - 1.0).collect() };
    let solved = |row: usize| row % (2 * rows) == rows - 4;
    Dataset::from_rows(Rows {
        observation_dim,
        action_dim,
        observations: numbers(n * observation_dim),
        actions: numbers(n * action_dim),
        rewards: (0..n).map(|row| if solved(row) { 0.0 } else { -1.0 }).collect(),
        masks: (0..n).map(|row| if solved(row) { 0.0 } else { 1.0 }).collect(),
        terminals: (0..n).map(|row| row % rows == rows - 1).collect(),
    })
    .unwrap()
}

/// The agent with small networks, if their size is a setting.
fn agent(kind: &AgentKind, data: &Dataset, seed: u64, threads: usize) -> Learner {
    let mut settings = kind.defaults().unwrap();
    let small = "hidden = [8, 8]\nbatch_size = 8\nstandardize = true\npolicy_hidden = [8]\nnoise_width = 8\nnum_samples = 4";
    for (key, value) in small.parse::<toml::Table>().unwrap() {
        if settings.contains_key(&key) {
            settings.insert(key, value);
        }
    }
    let setup = kind.setup(&settings).unwrap();
    Learner::new(setup.as_ref(), data, STEPS, seed, &Pool::new(threads)).unwrap()
}

fn batch(agent: &Learner, data: &Dataset, step: u64) -> Batch {
    let segments = Segments::new(agent.segments()).unwrap();
    let mut batch = segments.batch(data, agent.batch_size());
    Sampler::new(1, data.len()).fill(step, batch.indices_mut());
    segments.gather(data, &mut batch);
    batch
}

fn train(agent: &mut Learner, data: &Dataset, steps: std::ops::Range<u64>) {
    for step in steps {
        let batch = batch(agent, data, step);
        assert!(agent.update(&batch, step, None).is_finite());
    }
}

#[test]
fn resuming_is_bit_exact_and_threads_change_nothing() {
    let data = data();
    for kind in AGENTS {
        let mut whole = agent(kind, &data, 5, 1);
        train(&mut whole, &data, 0..STEPS);
        let mut begun = agent(kind, &data, 5, 3);
        train(&mut begun, &data, 0..3);
        let mut resumed = agent(kind, &data, 5, 2);
        resumed.load(&begun.state()).unwrap();
        train(&mut resumed, &data, 3..STEPS);
        assert!(whole.state() == resumed.state(), "{}", kind.name);
        let mut other = agent(kind, &data, 6, 1);
        train(&mut other, &data, 0..STEPS);
        assert!(whole.state() != other.state(), "{}: the seed changes nothing", kind.name);
    }
}

#[test]
fn measuring_changes_nothing_and_names_are_unique() {
    let data = data();
    for kind in AGENTS {
        let (mut quiet, mut told) = (agent(kind, &data, 5, 1), agent(kind, &data, 5, 1));
        let mut metrics = Metrics::new();
        for step in 0..4 {
            let batch = batch(&quiet, &data, step);
            quiet.update(&batch, step, None);
            told.update(&batch, step, Some(&mut metrics));
            assert!(metrics.iter().all(|m| m.1.is_finite()), "{}: {metrics:?}", kind.name);
        }
        assert!(quiet.state() == told.state(), "{}", kind.name);
        let mut names: Vec<&str> = metrics.iter().map(|m| m.0.as_ref()).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{}: {metrics:?}", kind.name);
        assert!(names.contains(&"actor/actor_loss"), "{}: {names:?}", kind.name);
    }
}

#[test]
fn a_row_is_acted_on_the_same_whatever_is_beside_it() {
    let data = data();
    for kind in AGENTS {
        let mut agent = agent(kind, &data, 5, 1);
        train(&mut agent, &data, 0..3);
        let observations = &data.states().take(3).flatten().copied().collect::<Vec<f32>>();
        let moment = |episode, step| Moment { episode, step };
        let mut all = Vec::new();
        let mut actions = Vec::new();
        let mut together = agent.policy();
        for step in 0..3 {
            together.act(observations, &[moment(7, step), moment(8, step), moment(9, step)], &mut actions);
            assert_eq!(actions.len(), 6, "{}", kind.name);
            assert!(actions.iter().all(|a| (-1.0..=1.0).contains(a)), "{}: {actions:?}", kind.name);
            all.push(actions.clone());
        }
        let mut alone = agent.policy();
        for (step, all) in all.iter().enumerate() {
            alone.act(&observations[4..8], &[moment(8, step as u64)], &mut actions);
            assert_eq!(actions, all[2..4], "{} step {step}", kind.name);
        }
    }
}

#[test]
fn numbers_outside_their_domains_are_refused_by_name() {
    for kind in AGENTS {
        let defaults = kind.defaults().unwrap();
        let mut refused = 0;
        for (key, value) in &defaults {
            let bad: toml::Value = match value {
                toml::Value::Float(_) => (-7.5).into(),
                toml::Value::Integer(_) if !key.starts_with("fourier") => (-1).into(),
                toml::Value::String(_) => "nonsense".into(),
                toml::Value::Array(_) => vec![0].into(),
                _ => continue,
            };
            // The value range may lie anywhere.
            if key == "v_min" || key == "v_max" {
                continue;
            }
            let mut settings = defaults.clone();
            settings.insert(key.clone(), bad);
            let error =
                kind.setup(&settings).err().unwrap_or_else(|| panic!("{}: {key} is not checked", kind.name));
            // An empty range is refused under the name of its upper end.
            let named = error.to_string().contains(key.as_str());
            assert!(named, "{}: {key} is refused by another name: {error}", kind.name);
            refused += 1;
        }
        assert!(refused > 5, "{}", kind.name);
    }
}

#[test]
fn states_of_other_agents_are_refused() {
    let data = data();
    let states: Vec<_> = AGENTS.iter().map(|kind| agent(kind, &data, 5, 1).state()).collect();
    for (i, kind) in AGENTS.iter().enumerate() {
        for (j, state) in states.iter().enumerate() {
            let mut agent = agent(kind, &data, 5, 1);
            let names =
                |s: &album_agents::AgentState| s.networks.iter().map(|n| n.name.clone()).collect::<Vec<_>>();
            let before = agent.state();
            let loaded = agent.load(state);
            // The trainer distinguishes agents with the same networks by the name in the checkpoint.
            if names(&states[i]) != names(state) {
                assert!(loaded.is_err(), "{} took the state of {}", kind.name, AGENTS[j].name);
                assert!(agent.state() == before, "{} took a part of {}", kind.name, AGENTS[j].name);
            }
        }
    }
}

#[test]
fn a_state_with_another_number_of_networks_is_refused() {
    let data = data();
    for kind in AGENTS {
        let mut agent = agent(kind, &data, 5, 1);
        let before = agent.state();
        let expected = before.networks.len();
        let (mut fewer, mut more) = (before.clone(), before.clone());
        fewer.networks.pop();
        more.networks.push(before.networks[0].clone());
        for (state, found) in [(fewer, expected - 1), (more, expected + 1)] {
            let error = agent.load(&state).unwrap_err().to_string();
            let message = format!("the checkpoint holds {found} networks; expected {expected}");
            assert_eq!(error, message, "{}", kind.name);
            assert!(agent.state() == before, "{} took a part of it", kind.name);
        }
    }
}

#[test]
fn values_are_in_units_of_the_datas_rewards() {
    // Before the first update the networks are independent of rewards: their outputs are equal, and represent
    // ten times as much if rewards are scaled by a tenth.
    let data = data();
    let observations = data.states().take(5).flatten().copied().collect::<Vec<f32>>();
    for kind in AGENTS.iter().filter(|kind| kind.name != "deas") {
        let scaled = |scale: f64| {
            let mut settings = kind.defaults().unwrap();
            settings.extend(
                format!("hidden = [8]\nbatch_size = 8\nreward_scale = {scale:?}")
                    .parse::<toml::Table>()
                    .unwrap(),
            );
            let setup = kind.setup(&settings).unwrap();
            let mut agent = Learner::new(setup.as_ref(), &data, STEPS, 5, &Pool::new(1)).unwrap();
            let batch = batch(&agent, &data, 0);
            let mut metrics = Metrics::new();
            agent.assess(&batch, &mut metrics);
            (agent.value(View::new(&observations, 5, 4)), metrics)
        };
        let ((one, metrics), (tenth, scaled)) = (scaled(1.0), scaled(0.1));
        let near = |x: f64, y: f64| (x - y).abs() <= 1e-5 * y.abs().max(1e-5);
        if let (Some(one), Some(tenth)) = (one, tenth) {
            assert_eq!(one.len(), 5);
            for (x, y) in tenth.into_iter().zip(one) {
                assert!(near(x.into(), 10.0 * f64::from(y)), "{}: {x} against {y}", kind.name);
            }
        }
        for ((name, value), (_, scaled)) in metrics.iter().zip(&scaled) {
            if name.contains("/q_m") || name.contains("/v_m") {
                assert!(near(*scaled, 10.0 * value), "{} {name}: {scaled} against {value}", kind.name);
            }
        }
    }
}

#[test]
fn a_state_is_all_that_an_agent_needs_of_its_data() {
    let data = data();
    let observations = data.states().take(3).flatten().copied().collect::<Vec<f32>>();
    for kind in AGENTS {
        let mut settings = kind.defaults().unwrap();
        let small = "hidden = [8]\nbatch_size = 8\nstandardize = true\nfourier_features = 4";
        settings.extend(small.parse::<toml::Table>().unwrap());
        let setup = kind.setup(&settings).unwrap();
        let mut agent = Learner::new(setup.as_ref(), &data, STEPS, 5, &Pool::new(1)).unwrap();
        train(&mut agent, &data, 0..2);
        let state = agent.state();
        let mut again =
            Learner::from_blueprint(setup.as_ref(), &state.blueprint, STEPS, 5, &Pool::new(1)).unwrap();
        again.load(&state).unwrap();
        assert!(again.state() == state, "{}", kind.name);
        let view = View::new(&observations, 3, 4);
        assert_eq!(again.value(view), agent.value(view), "{}", kind.name);
        let moments = [1, 2, 3].map(|episode| Moment { episode, step: 0 });
        let [mut before, mut after] = [Vec::new(), Vec::new()];
        agent.policy().act(&observations, &moments, &mut before);
        again.policy().act(&observations, &moments, &mut after);
        assert_eq!(before, after, "{}", kind.name);

        let mut other = state.clone();
        other.blueprint.action_dim = 3;
        let error = again.load(&other).unwrap_err().to_string();
        assert!(error.contains("actions of dimension 3; expected 4 and 2"), "{error}");
    }
}

#[test]
fn the_gradient_of_every_trained_network_is_logged() {
    let data = data();
    for (name, blocks) in [("idql", "noise_blocks = 7"), ("cgq", ""), ("album", "")] {
        let kind = AGENTS.iter().find(|kind| kind.name == name).unwrap();
        let mut settings = kind.defaults().unwrap();
        settings.extend(format!("hidden = [8]\nbatch_size = 8\n{blocks}").parse::<toml::Table>().unwrap());
        let setup = kind.setup(&settings).unwrap();
        let mut agent = Learner::new(setup.as_ref(), &data, STEPS, 5, &Pool::new(1)).unwrap();
        let batch = batch(&agent, &data, 0);
        let mut metrics = Metrics::new();
        agent.update(&batch, 0, Some(&mut metrics));
        for network in agent.state().networks.iter().filter(|network| !network.first_moments.is_empty()) {
            let column = format!("grad/norm_{}", network.name);
            assert!(metrics.iter().any(|m| m.0 == column), "{name}: no {column}");
        }
    }
}

/// The memory shown before a run is computed from shapes alone, and close to that of the actual networks.
#[test]
fn memory_is_counted_before_networks_are_made() {
    let data = data();
    for kind in AGENTS {
        let mut settings = kind.defaults().unwrap();
        settings.insert("hidden".into(), toml::Value::Array(vec![toml::Value::Integer(64); 2]));
        settings.insert("batch_size".into(), toml::Value::Integer(8));
        let setup = kind.setup(&settings).unwrap();
        let agent = Learner::new(setup.as_ref(), &data, 10, 0, &Pool::new(1)).unwrap();
        let weights = 4 * agent.networks().parameters() as u64;
        assert!(agent.memory() > 3 * weights, "{}: {} for {weights}", kind.name, agent.memory());
    }
    let kind = &AGENTS[0];
    let mut settings = kind.defaults().unwrap();
    settings.insert("hidden".into(), toml::Value::Array(vec![toml::Value::Integer(65_536); 50]));
    let setup = kind.setup(&settings).unwrap();
    let error = Learner::new(setup.as_ref(), &data, 10, 0, &Pool::new(1)).unwrap_err().to_string();
    assert!(error.contains("needs about") && error.contains("hidden"), "{error}");
}

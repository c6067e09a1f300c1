//! What holds for every agent: resuming, threads, acting, presets, refusals.
#![allow(clippy::unwrap_used)]

use album_agents::{AGENTS, Agent, Kind, Learner, Metrics, Moment, SMALL};
use album_base::rng;
use album_data::ogbench::ENVIRONMENTS;
use album_data::{Batch, Dataset, Rows, Sampler, Segments};
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

/// The agent with small networks, where their size is a setting.
fn agent(kind: &Kind, data: &Dataset, seed: u64, threads: usize) -> Learner {
    let mut settings = kind.defaults().unwrap();
    let small = "hidden = [8, 8]\nbatch_size = 8\nstandardize = true\npolicy_width = 8\nnoise_width = 8\nnum_samples = 4";
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
        let mut names: Vec<&str> = metrics.iter().map(|m| m.0).collect();
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
fn presets_have_no_unknown_keys_and_are_within_their_domains() {
    for kind in AGENTS {
        let paper = ENVIRONMENTS.iter().map(|e| vec![(kind.paper)(e.name)]);
        for preset in paper.chain([vec![SMALL.to_owned(), kind.small.to_owned()]]) {
            let mut settings = kind.defaults().unwrap();
            for (key, value) in preset.iter().flat_map(|values| values.parse::<toml::Table>().unwrap()) {
                assert!(settings.insert(key.clone(), value).is_some(), "{}: unknown key {key}", kind.name);
            }
            kind.setup(&settings).unwrap();
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
            // A support may lie anywhere.
            if key == "v_min" || key == "v_max" {
                continue;
            }
            let mut settings = defaults.clone();
            settings.insert(key.clone(), bad);
            let message =
                kind.setup(&settings).err().unwrap_or_else(|| panic!("{}: {key} is not checked", kind.name));
            assert!(!message.to_string().is_empty());
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
            // The trainer tells agents with the same networks apart by the name in the checkpoint.
            if names(&states[i]) != names(state) {
                assert!(loaded.is_err(), "{} took the state of {}", kind.name, AGENTS[j].name);
                assert!(agent.state() == before, "{} took a part of {}", kind.name, AGENTS[j].name);
            }
        }
    }
}

//! The agent against a trace of 100 updates recorded in JAX by `benches/peers/record_trace.py`: losses at
//! every step, all weights after the first and last. With a clipped mean of the policy, and with a squashed one.
#![allow(clippy::unwrap_used)]

use album_agents::agents::album::{Config, HingeCritic, Squash};
use album_agents::{Agent, Common, Learner, Metrics};
use album_data::{Batch, Dataset, Rows, Segments};
use album_nn::Pool;
use album_tabular::Coefficients;
use album_xla::Device;
use serde_json::Value;

const K: usize = 25;
const GAMMA: f64 = 0.995;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// One episode of K steps for each row of each batch: it starts in s with a and r_1, goes to s_1, and ends in
/// s_K with the discounted rewards r_k.
fn dataset(batches: &[Value], observation_dim: usize, action_dim: usize, rows: usize) -> Dataset {
    let mut data = Rows {
        observation_dim,
        action_dim,
        observations: vec![],
        actions: vec![],
        rewards: vec![],
        masks: vec![],
        terminals: vec![],
    };
    for batch in batches {
        let part = |name: &str, row: usize, dim: usize| -> Vec<f32> {
            numbers(&batch[name])[row * dim..(row + 1) * dim].iter().map(|&x| x as f32).collect()
        };
        for row in 0..rows {
            let (r_1, r_k) = (part("r_1", row, 1)[0], part("r_k", row, 1)[0]);
            for t in 0..=K {
                let state = ["s", "s_1", "s_k"][if t == K { 2 } else { t.min(1) }];
                data.observations.extend(part(state, row, observation_dim));
                data.actions.extend(part("a", row, action_dim));
                let rest = (f64::from(r_k) - f64::from(r_1)) / GAMMA;
                data.rewards.push(if t == 0 {
                    r_1
                } else if t == 1 {
                    rest as f32
                } else {
                    0.0
                });
                data.masks.push(1.0);
                data.terminals.push(t == K);
            }
        }
    }
    Dataset::from_rows(data).unwrap()
}

fn close(what: &str, found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    // Relative to the scale of the tensor, as single entries may be arbitrarily close to zero.
    let size = expected.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
    for (found, expected) in found.iter().zip(expected) {
        let difference = (f64::from(*found) - expected).abs();
        assert!(difference <= tolerance * size, "{what}: {found} against {expected}");
    }
}

#[test]
fn a_hundred_updates_match_jax() {
    replay(Squash::Clip, None);
    replay(Squash::Tanh, None);
}

#[test]
fn a_hundred_updates_on_a_device_match_jax() {
    if let Some(device) = crate::support::device() {
        replay(Squash::Clip, Some(&device));
        replay(Squash::Tanh, Some(&device));
    }
}

fn replay(squash: Squash, device: Option<&Device>) {
    let trace: Value = serde_json::from_str(include_str!("../data/album_trace.json")).unwrap();
    let recorded = match squash {
        Squash::Clip => &trace,
        Squash::Tanh => &trace["tanh"],
    };
    let shape = |name: &str| trace["shape"][name].as_u64().unwrap() as usize;
    let (rows, batches) = (shape("rows"), trace["batches"].as_array().unwrap());
    let data = dataset(batches, shape("observation"), shape("action"), rows);
    let coefficients = Coefficients { omega_q: 0.05, omega_v: 0.1, ..Coefficients::default() };
    let config = Config {
        common: Common {
            hidden: vec![shape("width"); shape("layers")],
            batch_size: rows,
            gamma: GAMMA,
            ..Common::default()
        },
        critic: HingeCritic { k: K, coefficients, ..HingeCritic::default() },
        alpha_bc: 0.01,
        squash,
        ..Config::default()
    };
    let mut agent = Learner::new(&config, &data, 100, 0, &Pool::new(2)).unwrap();
    let mut state = agent.state();
    for network in &mut state.networks {
        for (tensor, values) in
            network.weights.iter_mut().zip(trace["initial"][&network.name].as_array().unwrap())
        {
            tensor.data = numbers(values).into_iter().map(|x| x as f32).collect();
        }
    }
    agent.load(&state).unwrap();
    if let Some(device) = device {
        agent.move_to(device);
    }
    let compare = |agent: &Learner, expected: &Value, when: &str, tolerance: f64| {
        for network in agent.state().networks {
            let expected = expected[&network.name].as_array().unwrap();
            assert_eq!(network.weights.len(), expected.len());
            for (tensor, values) in network.weights.iter().zip(expected) {
                let what = format!("{}/{} {when}", network.name, tensor.name);
                close(&what, &tensor.data, &numbers(values), tolerance);
            }
        }
    };

    let segments = Segments::new(agent.segments()).unwrap();
    let mut batch = Batch::new(&data, rows);
    let mut metrics = Metrics::new();
    for (i, expected) in recorded["losses"].as_array().unwrap().iter().enumerate() {
        let first = (i % batches.len()) * rows;
        batch.indices_mut().iter_mut().enumerate().for_each(|(row, index)| *index = (first + row) * K);
        segments.gather(&data, &mut batch);
        agent.update(&batch, i as u64, Some(&mut metrics));
        let metric = |name: &str| metrics.iter().find(|m| m.0 == name).unwrap().1 as f32;
        let found = [metric("critic/critic_loss"), metric("actor/actor_loss")];
        close(&format!("losses of step {i}"), &found, &numbers(expected), if i == 0 { 1e-5 } else { 1e-3 });
        if i == 0 {
            compare(&agent, &recorded["after_first"], "after the first step", 1e-5);
        }
    }
    compare(&agent, &recorded["after_last"], "after the last step", 1e-3);
}

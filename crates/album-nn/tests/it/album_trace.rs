//! ALBUM updates against the same updates in JAX.
//!
//! `benches/peers/record_trace.py` recorded the trace: initial weights, batches, losses of 100 steps, and
//! the weights after the first and the last.
#![allow(clippy::unwrap_used)]

use crate::support;

use album_nn::{Adam, Matrix, Mlp, MlpSpec, Pool, Tape};
use serde_json::Value;
use support::{assert_close, rng};

const GAMMA: f32 = 0.995;
const K: i32 = 25;
const NETWORKS: [&str; 3] = ["q", "v", "actor"];

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn number(trace: &Value, name: &str) -> usize {
    trace["shape"][name].as_u64().unwrap() as usize
}

fn network(trace: &Value, name: &str) -> Mlp {
    let (observation, action) = (number(trace, "observation"), number(trace, "action"));
    let hidden = vec![number(trace, "width"); number(trace, "layers")];
    let spec = match name {
        "q" => MlpSpec::new(observation + action, &hidden, 1).layer_norm(true),
        "v" => MlpSpec::new(observation, &hidden, 1).layer_norm(true),
        _ => MlpSpec::new(observation, &hidden, action),
    };
    let mut net = Mlp::new(spec, &mut rng(0));
    let mut tensors = net.tensors();
    for (tensor, values) in tensors.iter_mut().zip(trace["initial"][name].as_array().unwrap()) {
        tensor.data = numbers(values).into_iter().map(|x| x as f32).collect();
    }
    net.load(&tensors).unwrap();
    net
}

/// The losses of the critic and the actor at every step, and all weights after the first and the last.
#[test]
fn a_hundred_updates_match_jax() {
    let text = include_str!("../data/album_trace.json");
    let trace: Value = serde_json::from_str(text).unwrap();
    let rows = number(&trace, "rows");
    let batches = trace["batches"].as_array().unwrap();
    let mut nets = NETWORKS.map(|name| network(&trace, name));
    let rates = [1e-4, 1e-4, 3e-4];
    let mut optimisers: Vec<Adam> = nets.iter().zip(rates).map(|(net, rate)| Adam::new(net, rate)).collect();
    let mut tape = Tape::new(&Pool::new(2));
    let losses = trace["losses"].as_array().unwrap();
    for (i, expected) in losses.iter().enumerate() {
        let tape = tape.begin();
        let batch = |name: &str| {
            let data: Vec<f32> =
                numbers(&batches[i % batches.len()][name]).into_iter().map(|x| x as f32).collect();
            tape.constant(&Matrix::from_vec(rows, data.len() / rows, data))
        };
        let [q_net, v_net, actor] = &nets;
        let (s, a) = (batch("s"), batch("a"));

        let q = tape.apply(q_net, tape.concat_cols(&[s, a]));
        let values = tape.apply(v_net, tape.concat_rows(&[s, batch("s_1"), batch("s_k")]));
        let v = values.slice_rows(0, rows);
        let y_1 = batch("r_1") + GAMMA * values.slice_rows(rows, 2 * rows);
        let y_k = (batch("r_k") + GAMMA.powi(K) * values.slice_rows(2 * rows, 3 * rows)).detach();
        let critic_loss = 0.05 * q.mean()
            + 0.1 * v.mean()
            + 2.5 * (y_1 - q).relu().mean()
            + 2.5 * (q - v).relu().mean()
            + 1.0 * ((y_k - q).relu().mean() + (y_k - v).relu().mean());

        let pi = tape.apply(actor, s);
        let q_pi = tape.apply_frozen(q_net, tape.concat_cols(&[s, pi.clip(-1.0, 1.0)]));
        let actor_loss =
            -(q_pi.mean() / (q_pi.abs().mean().detach() + 1e-6)) + 0.01 * (pi - a).square().sum_cols().mean();

        let tolerance = if i == 0 { 1e-5 } else { 1e-3 };
        let found = [critic_loss.item(), actor_loss.item()];
        assert_close(&format!("losses of step {i}"), &found, &numbers(expected), tolerance);

        let gradients = (critic_loss + actor_loss).backward();
        for (optimiser, net) in optimisers.iter_mut().zip(&mut nets) {
            optimiser.step(net, &gradients);
        }
        if i == 0 {
            compare(&nets, &trace["after_first"], "after the first step", 1e-5);
        }
    }
    compare(&nets, &trace["after_last"], "after the last step", 1e-3);
}

fn compare(nets: &[Mlp; 3], expected: &Value, when: &str, tolerance: f64) {
    for (net, name) in nets.iter().zip(NETWORKS) {
        let expected = expected[name].as_array().unwrap();
        assert_eq!(net.tensors().len(), expected.len());
        for (tensor, values) in net.tensors().iter().zip(expected) {
            assert_close(
                &format!("{name}/{} {when}", tensor.name),
                &tensor.data,
                &numbers(values),
                tolerance,
            );
        }
    }
}

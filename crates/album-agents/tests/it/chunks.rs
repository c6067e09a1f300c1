//! Action chunks: actions beyond the end of an episode are not learned from, and some agents execute chunks
//! to their end.
#![allow(clippy::unwrap_used)]

use crate::support;

use album_agents::{Agent, Learner, Moment, Noise};
use album_data::{Batch, Dataset};
use album_nn::Tensor;

/// Three episodes of 12 transitions.
fn data() -> Dataset {
    support::data(3, 13)
}

fn agent(name: &str, settings: &str, data: &Dataset) -> Learner {
    support::agent(name, &format!("batch_size = 3\n{settings}"), data, 100)
}

/// The batch of some transitions.
fn batch(agent: &Learner, data: &Dataset, indices: [usize; 3]) -> Batch {
    support::batch(agent, data, &indices)
}

fn gradient(agent: &mut Learner, batch: &Batch, network: &str) -> Vec<Tensor> {
    let (_, gradients) = agent.gradients(batch, 0, &mut Noise::at(0, 0));
    gradients.into_iter().find(|(name, _)| *name == network).unwrap().1
}

fn is_zero(gradient: &[Tensor]) -> bool {
    gradient.iter().all(|tensor| tensor.data.iter().all(|g| *g == 0.0))
}

#[test]
fn windows_cut_short_do_not_teach_values() {
    let data = data();
    let values: [(&str, &[&str]); 5] = [
        ("nfql", &["q"]),
        ("qc-fql", &["q"]),
        ("cgq", &["chunk_q"]),
        ("dqc", &["q_chunk", "q", "v", "flow"]),
        ("deas", &["q", "v"]),
    ];
    for (name, networks) in values {
        let mut agent = agent(name, "h = 4", &data);
        // With 4 steps left, the window ends on the last transition and counts; with 3 it is truncated.
        let (whole, short) = (batch(&agent, &data, [8, 20, 32]), batch(&agent, &data, [9, 21, 33]));
        for network in networks {
            assert!(!is_zero(&gradient(&mut agent, &whole, network)), "{name} {network}");
            assert!(is_zero(&gradient(&mut agent, &short, network)), "{name} {network}");
        }
    }
}

#[test]
fn single_actions_are_learned_to_the_end_of_an_episode() {
    let data = data();
    for (name, networks) in [("nfql", ["flow", "actor"]), ("cgq", ["q", "flow"])] {
        let mut agent = agent(name, "h = 4", &data);
        let last = batch(&agent, &data, [11, 23, 35]);
        for network in networks {
            assert!(!is_zero(&gradient(&mut agent, &last, network)), "{name} {network}");
        }
    }
}

#[test]
fn only_recorded_actions_are_cloned() {
    let data = data();
    for (name, flow) in [("qc-fql", "flow"), ("deas", "flow"), ("cgq", "chunk_flow")] {
        let mut agent = agent(name, "h = 4", &data);
        // Two transitions left: of four actions, the last two are padding.
        let batch = batch(&agent, &data, [10, 22, 34]);
        let gradient = gradient(&mut agent, &batch, flow);
        let bias = &gradient.last().unwrap().data;
        assert_eq!(bias.len(), 8);
        assert!(bias[..4].iter().all(|g| *g != 0.0), "{name}: {bias:?}");
        assert!(bias[4..].iter().all(|g| *g == 0.0), "{name}: {bias:?}");
    }
}

#[test]
fn the_critic_of_chunks_is_not_pulled_back() {
    let data = data();
    let gradients = |beta: &str| {
        let mut agent = agent("cgq", &format!("h = 4\nbeta = {beta}"), &data);
        let batch = batch(&agent, &data, [1, 14, 27]);
        ["chunk_q", "q"].map(|network| gradient(&mut agent, &batch, network))
    };
    let (without, with) = (gradients("0.0"), gradients("10.0"));
    assert!(without[0] == with[0], "the anchor is a constant");
    assert!(without[1] != with[1], "it pulls the critic of single actions");
}

#[test]
fn chunks_are_executed_to_their_end() {
    let data = data();
    let agents = [
        ("nfql", "h = 4", 1),
        ("cgq", "h = 4", 1),
        // The best of many samples of an untrained flow is often the same corner.
        ("dqc", "h = 4\nnum_samples = 1", 1),
        ("dqc", "h = 4\nnum_samples = 1\nha = 2", 2),
        ("qc-fql", "h = 4", 4),
        ("deas", "h = 4", 4),
    ];
    for (name, settings, h) in agents {
        let mut policy = agent(name, settings, &data).policy();
        let mut decisions = |seen: [f32; 3]| {
            let mut actions = Vec::new();
            let mut act = |step: u64, state: [f32; 3]| {
                policy.act(&state, &[Moment { episode: 1, step }], &mut actions);
                actions.clone()
            };
            // One state at the start of every chunk; the observations within it are the caller's.
            (0..8).map(|step| act(step, if step % h == 0 { [0.5; 3] } else { seen })).collect::<Vec<_>>()
        };
        let (calm, wild) = (decisions([0.5; 3]), decisions([-0.9, 0.9, 0.4]));
        assert_eq!(calm, wild, "{name}: nothing that is seen within {h} actions changes them");
        assert_ne!(calm[0], calm[h as usize], "{name}: the next decision is another one");

        let (mut first, mut second) = (Vec::new(), Vec::new());
        policy.act(&[0.5; 3], &[Moment { episode: 2, step: h }], &mut first);
        policy.act(&[-0.9, 0.9, 0.4], &[Moment { episode: 2, step: h }], &mut second);
        assert_ne!(first, second, "{name}: what is seen at the start of a chunk counts");
    }
}

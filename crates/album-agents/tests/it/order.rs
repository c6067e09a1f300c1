//! The order of operations in an update: details of the original implementations that affect results.
#![allow(clippy::unwrap_used)]

use crate::support;

use album_agents::{Agent, AgentState, Learner, Noise};
use album_data::{Batch, Dataset};

fn data() -> Dataset {
    support::data(2, 31)
}

fn agent(name: &str, settings: &str, data: &Dataset) -> (Learner, Batch) {
    let agent = support::agent(name, &format!("batch_size = 8\n{settings}"), data, 100);
    let batch = support::batch(&agent, data, &[0, 7, 14, 21, 28, 35, 42, 49]);
    (agent, batch)
}

fn weights(state: &AgentState, name: &str) -> Vec<f32> {
    let network = state.networks.iter().find(|network| network.name == name).unwrap();
    network.weights.iter().flat_map(|tensor| tensor.data.clone()).collect()
}

/// Moves the target away from its online network, so that the two can be told apart.
fn part_target(agent: &mut Learner, name: &str) {
    let mut state = agent.state();
    for tensor in &mut state.networks.iter_mut().find(|network| network.name == name).unwrap().weights {
        tensor.data.iter_mut().for_each(|x| *x += 0.25);
    }
    agent.load(&state).unwrap();
}

#[test]
fn targets_mix_in_the_weights_from_before_the_step() {
    let data = data();
    for name in ["fawac", "fbrac", "fql", "ifql", "iql", "rebrac"] {
        let (mut agent, batch) = agent(name, "tau = 0.5", &data);
        part_target(&mut agent, "q_target");
        let before = agent.state();
        agent.update(&batch, 0, None);
        let after = agent.state();
        let (old, new) = (weights(&before, "q"), weights(&after, "q"));
        assert_ne!(old, new);
        let old_target = weights(&before, "q_target");
        for (i, target) in weights(&after, "q_target").into_iter().enumerate() {
            assert!((target - 0.5 * (old[i] + old_target[i])).abs() < 1e-6, "{name} {i}");
        }
    }
}

#[test]
fn all_networks_move_at_once_from_the_same_parameters() {
    // The actor's first step is the same whether the critic learns fast or not at all: it sees the old
    // critic.
    let data = data();
    for name in ["album", "fql", "iql", "rebrac"] {
        let (mut agent, batch) = agent(name, "", &data);
        let (_, expected) = agent.gradients(&batch, 0, &mut Noise::at(0, 0));
        let gradient = &expected.iter().find(|(network, _)| *network == "actor").unwrap().1;
        let before = weights(&agent.state(), "actor");
        agent.update_with(&batch, 0, &mut Noise::at(0, 0), None);
        let after = weights(&agent.state(), "actor");
        // Adam's first step has the sign of the gradient and the size of the learning rate.
        for ((before, after), g) in before.iter().zip(&after).zip(gradient.iter().flat_map(|t| &t.data)) {
            if g.abs() > 1e-4 {
                assert!((after - before + 3e-4 * g.signum()).abs() < 3e-6, "{name}: {before} {after} {g}");
            }
        }
    }
}

#[test]
fn a_delayed_actor_rests_with_its_targets_but_drifts_on() {
    let data = data();
    let (mut agent, batch) = agent("rebrac", "", &data);
    part_target(&mut agent, "actor_target");
    agent.update(&batch, 0, None);
    let first = agent.state();
    let (_, gradients) = agent.gradients(&batch, 1, &mut Noise::at(0, 1));
    let actor = gradients.iter().find(|(name, _)| *name == "actor").unwrap();
    assert!(
        actor.1.iter().all(|tensor| tensor.data.iter().all(|g| *g == 0.0)),
        "the actor rests at odd steps"
    );
    agent.update(&batch, 1, None);
    let second = agent.state();
    for name in ["q_target", "actor_target"] {
        assert_eq!(weights(&first, name), weights(&second, name), "{name} rests with the actor");
    }
    assert_ne!(weights(&first, "actor"), weights(&second, "actor"), "what is left of its momentum moves it");
    agent.update(&batch, 2, None);
    assert_ne!(weights(&second, "actor_target"), weights(&agent.state(), "actor_target"));

    let (mut every, batch) = self::agent("rebrac", "actor_every = 1", &data);
    let (_, gradients) = every.gradients(&batch, 1, &mut Noise::at(0, 1));
    let actor = gradients.iter().find(|(name, _)| *name == "actor").unwrap();
    assert!(actor.1.iter().any(|tensor| tensor.data.iter().any(|g| *g != 0.0)));
}

#[test]
fn a_clipped_action_passes_no_gradient_of_q() {
    // The actor's first component is far outside: Q sees it clipped, and nothing else pulls it back.
    let data = data();
    for (name, settings) in [("iql", "extraction = \"ddpgbc\"\nalpha = 0.0"), ("fql", "alpha = 0.0")] {
        let (mut agent, batch) = agent(name, settings, &data);
        let mut state = agent.state();
        let actor = state.networks.iter_mut().find(|network| network.name == "actor").unwrap();
        actor.weights.last_mut().unwrap().data = vec![50.0, 0.0];
        agent.load(&state).unwrap();
        let (_, gradients) = agent.gradients(&batch, 0, &mut Noise::at(0, 0));
        let actor = gradients.iter().find(|(name, _)| *name == "actor").unwrap();
        let bias = &actor.1.last().unwrap().data;
        assert_eq!(bias[0], 0.0, "{name}");
        assert_ne!(bias[1], 0.0, "{name}");
    }
}

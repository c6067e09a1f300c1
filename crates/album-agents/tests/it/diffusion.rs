//! Which networks of the diffusion and consistency policies act, stay fixed and move.
#![allow(clippy::unwrap_used)]

use crate::support;

use album_agents::{Agent, AgentKind, AgentState, Learner, Moment};
use album_base::rng;
use album_data::{Batch, Dataset, Rows, Sampler, Segments};
use album_nn::Pool;

fn data() -> Dataset {
    support::data(3, 20)
}

fn agent(name: &str, settings: &str, data: &Dataset) -> (Learner, Batch) {
    let agent = support::agent(name, &format!("batch_size = 8\n{settings}"), data, 2000);
    let batch = support::batch(&agent, data, &[3, 9, 14, 22, 31, 40, 47, 55]);
    (agent, batch)
}

/// All weights of the networks whose names have this prefix.
fn weights(state: &AgentState, begins: &str) -> Vec<f32> {
    let networks = state.networks.iter().filter(|network| network.name.starts_with(begins));
    networks.flat_map(|network| &network.weights).flat_map(|tensor| tensor.data.clone()).collect()
}

fn act(agent: &Learner) -> Vec<f32> {
    let mut actions = Vec::new();
    agent.policy().act(&[0.1, 0.2, -0.3], &[Moment { episode: 3, step: 0 }], &mut actions);
    actions
}

/// The policy's actions after all weights of some networks are changed.
fn act_with(agent: &mut Learner, begins: &str, change: impl Fn(f32) -> f32) -> Vec<f32> {
    let before = agent.state();
    let mut state = before.clone();
    for network in state.networks.iter_mut().filter(|network| network.name.starts_with(begins)) {
        network.weights.iter_mut().flat_map(|tensor| &mut tensor.data).for_each(|x| *x = change(*x));
    }
    agent.load(&state).unwrap();
    let actions = act(agent);
    agent.load(&before).unwrap();
    actions
}

#[test]
fn idql_acts_by_the_moving_average_and_the_target_critic() {
    let data = data();
    let (mut agent, batch) = agent("idql", "noise_width = 8\nnum_samples = 16", &data);
    agent.update(&batch, 0, None);
    let actions = act(&agent);
    for resting in ["noise_", "v"] {
        assert_eq!(act_with(&mut agent, resting, |x| x + 0.3), actions, "{resting}");
    }
    assert_ne!(act_with(&mut agent, "ema_", |x| x + 0.3), actions);
    // With its last layer negated, the target critic prefers the worst action.
    let before = agent.state();
    let mut state = before.clone();
    let target = state.networks.iter_mut().find(|network| network.name == "q_target").unwrap();
    let last = target.weights.iter_mut().filter(|tensor| tensor.name.contains("layer1"));
    last.flat_map(|tensor| &mut tensor.data).for_each(|x| *x = -*x);
    agent.load(&state).unwrap();
    assert_ne!(act(&agent), actions);
}

#[test]
fn cac_acts_by_the_trained_policy() {
    let data = data();
    let (mut agent, _) = agent("cac", "policy_hidden = [8]", &data);
    let actions = act(&agent);
    assert_eq!(act_with(&mut agent, "ema", |x| x + 0.3), actions);
    assert_ne!(act_with(&mut agent, "actor", |x| x + 0.3), actions);
}

#[test]
fn the_average_of_cac_rests_for_a_thousand_steps_and_then_moves_at_every_fifth() {
    let data = data();
    let (mut agent, batch) = agent("cac", "policy_hidden = [8]", &data);
    for (step, moves) in [(0, false), (5, false), (999, false), (1000, true), (1001, false), (1005, true)] {
        let before = agent.state();
        agent.update(&batch, step, None);
        let after = agent.state();
        assert_eq!(weights(&before, "ema") != weights(&after, "ema"), moves, "step {step}");
        assert_ne!(weights(&before, "actor"), weights(&after, "actor"));
        assert_ne!(weights(&before, "q_target"), weights(&after, "q_target"));
    }
}

#[test]
fn the_policy_of_srpo_waits_and_its_frequencies_stay() {
    let data = data();
    let (mut agent, batch) = agent("srpo", "noise_width = 8\npolicy_hidden = [8]\npolicy_from = 2", &data);
    for step in 0..4 {
        let before = agent.state();
        agent.update(&batch, step, None);
        let after = agent.state();
        assert_eq!(weights(&before, "actor") != weights(&after, "actor"), step >= 2, "step {step}");
        assert_ne!(weights(&before, "noise_block0"), weights(&after, "noise_block0"));
        assert_eq!(weights(&before, "noise_time"), weights(&after, "noise_time"));
    }
    let frequencies = weights(&agent.state(), "noise_time");
    let deviation = (frequencies.iter().map(|x| x * x).sum::<f32>() / frequencies.len() as f32).sqrt();
    assert!((15.0..50.0).contains(&deviation), "{deviation}");
}

/// The policy's actions in many episodes, after learning from actions around -0.5 and 0.5 in equal numbers,
/// of which those above 0 are rewarded.
fn learned(name: &str, settings: &str) -> Vec<f32> {
    let n = 2000;
    let mut draw = rng::stream(9, "test");
    let actions: Vec<f32> = (0..n)
        .map(|i| if i % 4 < 2 { 0.5 } else { -0.5 } + 0.1 * (rng::unit(&mut draw) as f32 - 0.5))
        .collect();
    let data = Dataset::from_rows(Rows {
        observation_dim: 1,
        action_dim: 1,
        observations: (0..n).map(|_| rng::unit(&mut draw) as f32).collect(),
        rewards: actions.iter().map(|&a| if a > 0.0 { 1.0 } else { -1.0 }).collect(),
        actions,
        masks: vec![0.0; n],
        terminals: (0..n).map(|row| row % 2 == 1).collect(),
    })
    .unwrap();
    let kind = AgentKind::find(name).unwrap();
    let mut all = kind.defaults().unwrap();
    let common = "hidden = [32, 32]\nbatch_size = 64\nlr = 2e-3\nlr_decay = \"cosine\"\n";
    all.extend(format!("{common}{settings}").parse::<toml::Table>().unwrap());
    let steps = 800;
    let mut agent = Learner::new(kind.setup(&all).unwrap().as_ref(), &data, steps, 0, &Pool::new(1)).unwrap();
    let segments = Segments::new(agent.segments()).unwrap();
    let mut batch = segments.batch(&data, agent.batch_size());
    for step in 0..steps {
        Sampler::new(1, data.len()).fill(step, batch.indices_mut());
        segments.gather(&data, &mut batch);
        agent.update(&batch, step, None);
    }
    let mut actions = Vec::new();
    let moments: Vec<Moment> = (0..200).map(|episode| Moment { episode, step: 0 }).collect();
    agent.policy().act(&[0.5; 200], &moments, &mut actions);
    actions
}

/// The fraction of actions within 0.2 of a value.
fn near(actions: &[f32], place: f32) -> f64 {
    actions.iter().filter(|a| (**a - place).abs() < 0.2).count() as f64 / actions.len() as f64
}

const NOISE_NET: &str = "noise_width = 24\nnoise_blocks = 2\ntime_features = 16\ntime_width = 16\n";

#[test]
fn idql_samples_the_behaviour_and_chooses_the_better_half() {
    // With the original's five steps, a third of the samples lie between the modes.
    let trained = |steps: usize, n: usize| {
        let settings = format!("ema_rate = 0.02\ndiffusion_steps = {steps}\nnum_samples = {n}");
        learned("idql", &format!("{NOISE_NET}{settings}"))
    };
    let one = trained(20, 1);
    let (low, high) = (near(&one, -0.5), near(&one, 0.5));
    assert!(low > 0.3 && high > 0.3 && low + high > 0.8, "{low} and {high}");
    let best = near(&trained(5, 16), 0.5);
    assert!(best > 0.9, "{best}");
}

#[test]
fn srpo_finds_the_better_of_two_modes() {
    let actions = learned("srpo", &format!("{NOISE_NET}policy_hidden = [32]\nbeta = 0.1"));
    assert!(near(&actions, 0.5) == 1.0, "{:?}", &actions[..3]);
}

#[test]
fn cac_samples_both_halves_and_with_values_the_better_one() {
    let trained = |eta: f64, n: usize| {
        let average = "ema_after = 0\nema_every = 1\nema_rate = 0.05";
        let settings = format!(
            "policy_hidden = [32, 32]\nscale_input = true\n{average}\neta = {eta:?}\nnum_samples = {n}"
        );
        let actions = learned("cac", &settings);
        actions.iter().filter(|a| **a > 0.0).count() as f64 / actions.len() as f64
    };
    let behaviour = trained(0.0, 1);
    assert!((0.3..0.7).contains(&behaviour), "{behaviour}");
    let better = trained(1.0, 50);
    assert!(better > 0.9, "{better}");
}

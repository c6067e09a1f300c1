//! How fast values move through a target network: the settling time that `album train` warns about.
#![allow(clippy::unwrap_used)]

use crate::support;

use album_agents::{AGENTS, Agent};
use album_data::{Dataset, Rows};

/// Every step costs 1 and nothing ends, so all values are -1 / (1 - gamma).
fn endless() -> Dataset {
    let rows = 64;
    let number = |i: usize| (i as f32 * 0.7).sin();
    Dataset::from_rows(Rows {
        observation_dim: 2,
        action_dim: 1,
        observations: (0..2 * rows).map(number).collect(),
        actions: (0..rows).map(|i| 0.9 * number(3 * i)).collect(),
        rewards: vec![-1.0; rows],
        masks: vec![1.0; rows],
        terminals: (0..rows).map(|i| i + 1 == rows).collect(),
    })
    .unwrap()
}

#[test]
fn values_settle_when_their_agent_says_so() {
    let (data, gamma) = (endless(), 0.9);
    let mut tried = Vec::new();
    for kind in AGENTS {
        let mut table = kind.defaults().unwrap();
        let settings = "gamma = 0.9\ntau = 0.005\nlr = 0.001\nbatch_size = 32\nhidden = [16]";
        for (key, value) in settings.parse::<toml::Table>().unwrap() {
            if table.contains_key(&key) {
                table.insert(key, value);
            }
        }
        let Some(settling) = kind.setup(&table).unwrap().settling_steps() else { continue };
        tried.push(kind.name);
        let text = toml::to_string(&table).unwrap();
        // After one time constant; later, the little networks overshoot.
        let steps = (settling / 3.0) as u64;
        let mut agent = support::agent(kind.name, &text, &data, steps);
        support::train(&mut agent, &data, steps);
        let batch = support::batch(&agent, &data, &[3, 20, 41]);
        let mut metrics = Default::default();
        agent.update(&batch, steps, Some(&mut metrics));
        let target = -(1.0 - f64::exp(-1.0)) / (1.0 - gamma);
        let expected = -1.0 + gamma * target; // the critic is one backup ahead
        let found = support::metric(&metrics, "critic/q_mean");
        assert!((found - expected).abs() < 0.8, "{}: {found} after {steps} steps, not {expected}", kind.name);
    }
    assert_eq!(tried, ["fawac", "fbrac", "fql", "ifql", "iql", "rebrac"]);
}

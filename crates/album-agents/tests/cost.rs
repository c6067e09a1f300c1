//! Parameters and value networks of agents with networks of their own, at the sizes of antmaze-large, from the shapes that
//! their papers' code has.
#![allow(clippy::unwrap_used)]

use album_agents::{Agent, Learner};
use album_data::{Dataset, Rows};
use album_nn::Pool;

const S: usize = 29;
const A: usize = 8;

/// A dense layer.
fn dense(inputs: usize, outputs: usize) -> usize {
    inputs * outputs + outputs
}

/// Dense layers one after the other.
fn mlp(widths: &[usize]) -> usize {
    widths.windows(2).map(|w| dense(w[0], w[1])).sum()
}

#[test]
fn networks_of_their_own_have_the_sizes_of_the_original_code() {
    let values = mlp(&[S, 256, 256, 1]) + 4 * mlp(&[S + A, 256, 256, 1]);
    let block = 2 * 256 + mlp(&[256, 1024, 256]);
    let noise_net = 32 + mlp(&[64, 128, 128]) + dense(A + S + 128, 256) + 3 * block + dense(256, A);
    let consistency = mlp(&[16, 32, 16]) + mlp(&[A + 16 + S, 256, 256, 256, A]);
    let expected = [
        ("idql", "", values + 2 * noise_net, 3_672_149, 5),
        ("srpo", "", values + noise_net + mlp(&[S, 256, 256, A]), 2_100_021, 5),
        (
            "srpo",
            "policy_hidden = [256, 256, 256, 256]",
            values + noise_net + mlp(&[S, 256, 256, 256, 256, A]),
            2_231_605,
            5,
        ),
        ("cac", "", 4 * mlp(&[S + A, 256, 256, 256, 1]) + 2 * consistency, 863_348, 4),
    ];
    let data = Dataset::from_rows(Rows {
        observation_dim: S,
        action_dim: A,
        observations: vec![0.0; 2 * S],
        actions: vec![0.0; 2 * A],
        rewards: vec![-1.0; 2],
        masks: vec![1.0; 2],
        terminals: vec![false, true],
    })
    .unwrap();
    for (name, settings, by_shape, parameters, value_networks) in expected {
        let kind = album_agents::find(name).unwrap();
        let mut all = kind.defaults().unwrap();
        all.extend(settings.parse::<toml::Table>().unwrap());
        let agent = Learner::new(kind.setup(&all).unwrap().as_ref(), &data, 1, 0, &Pool::new(1)).unwrap();
        assert_eq!(by_shape, parameters, "{name} {settings}");
        assert_eq!(agent.parameters(), parameters, "{name} {settings}");
        assert_eq!(agent.value_networks(), value_networks, "{name} {settings}");
    }
}

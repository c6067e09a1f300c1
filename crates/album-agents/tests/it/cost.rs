//! Parameters and value networks at the sizes of antmaze-large (29 observations, 8 actions, four layers of
//! 512), equal to the paper's cost table for the agents that it lists.
#![allow(clippy::unwrap_used)]

use crate::support;

use album_agents::{Agent, AgentKind, Learner};
use album_data::{Dataset, Rows};
use album_nn::Pool;

/// Agent, settings, parameters, value networks.
const AGENTS: &[(&str, &str, usize, usize)] = &[
    ("album", "", 2_427_402, 2),
    ("bc", "", 807_432, 0),
    ("cac", "", 863_348, 4),
    ("cgq", "", 10_054_840, 8),
    ("deas", "", 6_165_625, 5),
    ("dqc", "", 6_692_879, 7),
    ("fawac", "", 4_868_109, 5),
    ("fbrac", "", 4_060_172, 4),
    ("fql", "", 4_871_700, 4),
    ("fql", "ensemble = 1", 3_247_634, 2),
    ("fql", "target_network = false", 3_247_634, 2),
    ("fql", "ensemble = 1\ntarget_network = false", 2_435_601, 1),
    ("idql", "", 3_672_149, 5),
    ("ifql", "", 4_868_109, 5),
    ("ifql-album", "", 2_432_010, 2),
    ("iql", "", 4_863_501, 5),
    ("nfql", "", 4_871_700, 4),
    ("qc-fql", "", 5_002_836, 4),
    ("rebrac", "", 4_862_996, 4),
    ("sac", "", 380_693, 4),
    ("srpo", "", 2_100_021, 5),
    ("srpo", "policy_hidden = [256, 256, 256, 256]", 2_231_605, 5),
];

#[test]
fn every_agent_has_its_parameters() {
    let data = Dataset::from_rows(Rows {
        observation_dim: 29,
        action_dim: 8,
        observations: vec![0.0; 2 * 29],
        actions: vec![0.0; 2 * 8],
        rewards: vec![0.0; 2],
        masks: vec![1.0; 2],
        terminals: vec![false, true],
    })
    .unwrap();
    for &(name, settings, parameters, value_networks) in AGENTS {
        let kind = AgentKind::find(name).unwrap();
        let mut table = kind.defaults().unwrap();
        table.extend(settings.parse::<toml::Table>().unwrap());
        let agent = Learner::new(kind.setup(&table).unwrap().as_ref(), &data, 1, 0, &Pool::new(1)).unwrap();
        assert_eq!(
            (agent.parameters(), agent.value_networks()),
            (parameters, value_networks),
            "{name} {settings}"
        );
    }
}

/// The matrix products of a network for one row, in multiply-adds.
struct Products {
    all: f64,
    first: f64,
}

impl Products {
    /// Forward, weight gradients, and backward to the first layer: no gradient with respect to inputs that
    /// are data.
    fn trained(&self) -> f64 {
        3.0 * self.all - self.first
    }

    /// Forward, weight gradients, and backward to the inputs.
    fn trained_and_passed_on(&self) -> f64 {
        3.0 * self.all
    }

    /// Forward, and backward to the inputs, without weight gradients.
    fn passed_through(&self) -> f64 {
        2.0 * self.all
    }
}

fn net(widths: &[usize]) -> Products {
    let product = |pair: &[usize]| (pair[0] * pair[1]) as f64;
    Products { all: widths.windows(2).map(product).sum(), first: product(&widths[..2]) }
}

/// Multiply-adds of an update for one row, counted by hand, with 5 observation and 3 action dimensions,
/// hidden layers of 8 and 12, and two critics.
fn counted(name: &str) -> f64 {
    let (s, a, members) = (5, 3, 2.0);
    let values = |outputs| net(&[s, 8, 12, outputs]);
    let q_of = |actions, outputs| net(&[s + actions * a, 8, 12, outputs]);
    let field = |actions| net(&[s + actions * a + 1, 8, 12, actions * a]);
    let one_step = |actions| net(&[s + actions * a, 8, 12, actions * a]);
    let (v, q, pi, flow) = (values(1), q_of(1, 1), values(a), field(1));

    // V at s and s' and at s_K, Q at (s, a).
    let album_critic = 2.0 * v.trained() + v.all + q.trained();
    // V, Qbar and Q at the data, V at s'.
    let iql_critic = v.trained() + members * q.all + members * q.trained() + v.all;
    // The one-step policy at s', Qbar there, Q; then the flow, ten Euler steps, the one-step policy, and its
    // Q.
    let fql = |actions: usize, bins: usize| {
        let (q, flow, mu) = (q_of(actions, bins), field(actions), one_step(actions));
        let critic = members * (q.all + q.trained());
        let actor = flow.trained() + 10.0 * flow.all + mu.trained() + members * q.passed_through();
        (mu.all, critic, actor)
    };
    let fql_sum = |actions| {
        let (at_next, critic, actor) = fql(actions, 1);
        at_next + critic + actor
    };
    // The noise network: 64 time features, an embedding of 128, three blocks of 256.
    let condition = net(&[64, 128, 128]);
    let input = net(&[a + s + 128, 256]);
    let block = net(&[256, 1024, 256]);
    let output = net(&[256, a]);
    let noise_tail =
        input.trained_and_passed_on() + 3.0 * block.trained_and_passed_on() + output.trained_and_passed_on();
    match name {
        "album" => album_critic + pi.trained() + q.passed_through(),
        "bc" => pi.trained(),
        "cac" => {
            let (time, f) = (net(&[16, 32, 16]), net(&[a + 16 + s, 256, 256, 256, a]));
            // Two levels of noise for a'; Qbar and Q.
            let critic = 2.0 * (time.all + f.all) + members * (q.all + q.trained());
            // The consistency loss of the network and its average, two levels of the policy, and its Q.
            let online = time.trained() + f.trained_and_passed_on();
            critic + online + (time.all + f.all) + 2.0 * online + members * q.passed_through()
        }
        "cgq" => fql_sum(10) + fql_sum(1),
        "deas" => {
            let v = values(101);
            let (_, critic, actor) = fql(8, 101);
            v.all + v.trained() + critic + actor
        }
        "dqc" => {
            let chunk = q_of(25, 1);
            let critics = members * (chunk.trained() + q.trained() + q.all);
            v.all + v.trained() + critics + flow.trained()
        }
        "fawac" => 10.0 * flow.all + members * (2.0 * q.all + q.trained()) + v.trained() + flow.trained(),
        "fbrac" => {
            let critic = 10.0 * flow.all + members * (q.all + q.trained());
            // Gradients pass through nine of ten steps: the first starts from noise.
            let sample = flow.trained() + 9.0 * flow.trained_and_passed_on();
            critic + flow.trained() + sample + members * q.passed_through()
        }
        "fql" => fql_sum(1),
        "hinge-iql" => iql_critic + v.all + pi.trained(),
        "idql" => {
            // Learned frequencies: one product into 32 phases, whose gradient comes from embedding and input.
            let time = net(&[1, 32]).trained();
            iql_critic + time + condition.trained_and_passed_on() + noise_tail
        }
        "ifql" => iql_critic + flow.trained(),
        "ifql-album" => album_critic + flow.trained(),
        "iql" => iql_critic + pi.trained(),
        "nfql" => fql_sum(1),
        "qc-fql" => fql_sum(5),
        "rebrac" => {
            let critic = pi.all + members * (q.all + q.trained());
            // The actor learns at every other step.
            critic + 0.5 * (pi.trained() + members * q.passed_through())
        }
        "sac" => {
            let pi = values(2 * a);
            let critic = pi.all + members * (q.all + q.trained());
            critic + pi.trained() + members * q.passed_through()
        }
        "srpo" => {
            let behaviour = condition.trained() + noise_tail;
            let predicted = condition.all + input.all + 3.0 * block.all + output.all;
            let policy = net(&[s, 256, 256, a]).trained() + predicted + members * q.passed_through();
            iql_critic + behaviour + policy
        }
        _ => panic!("count the products of {name}"),
    }
}

#[test]
fn operations_are_those_counted_by_hand() {
    let rows = 60;
    let data = Dataset::from_rows(Rows {
        observation_dim: 5,
        action_dim: 3,
        observations: vec![0.1; rows * 5],
        actions: vec![0.2; rows * 3],
        rewards: vec![-1.0; rows],
        masks: vec![1.0; rows],
        terminals: (0..rows).map(|row| row + 1 == rows).collect(),
    })
    .unwrap();
    for kind in album_agents::AGENTS {
        let mut agent = support::agent(kind.name, "hidden = [8, 12]\nbatch_size = 16", &data, 100);
        let batch = support::batch(&agent, &data, &(0..16).collect::<Vec<_>>());
        // A multiply-add is two operations.
        assert_eq!(agent.operations(&batch), 2.0 * 16.0 * counted(kind.name), "{}", kind.name);
    }
}

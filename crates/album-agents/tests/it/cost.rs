//! Parameters and value networks at the sizes of antmaze-large (29 observations, 8 actions, four layers of 512), which
//! are those of the paper's cost table where it has the agent.
#![allow(clippy::unwrap_used)]

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

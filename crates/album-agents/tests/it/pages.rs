//! Every agent has a page that names all its hyperparameters, and every logged column is in the glossary.
#![allow(clippy::unwrap_used)]

use crate::support;

use album_agents::{AGENTS, Agent, Common, Metrics};
use std::path::Path;

fn page(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_agent_has_a_page_with_its_keys() {
    let shared = toml::Table::try_from(Common::default()).unwrap();
    let index = page("agents/README.md");
    for key in shared.keys() {
        assert!(index.contains(&format!("`{key}`")), "agents/README.md does not explain {key}");
    }
    let mut missing = Vec::new();
    for kind in AGENTS {
        assert!(
            index.contains(&format!("({}.md)", kind.name)),
            "agents/README.md does not list {}",
            kind.name
        );
        let text = page(&format!("agents/{}.md", kind.name));
        assert!(
            text.contains(&format!("--agent {}", kind.name)) || kind.name == "album",
            "{}: no command",
            kind.name
        );
        // A page may refer to the page of the agent that it builds on.
        let built_on = ["iql", "album", "fql", "qc-fql", "idql"].into_iter();
        let linked: String = (built_on.filter(|name| text.contains(&format!("]({name}.md)"))))
            .map(|name| page(&format!("agents/{name}.md")))
            .collect();
        for key in kind.defaults().unwrap().keys().filter(|key| !shared.contains_key(*key)) {
            let quoted = format!("`{key}`");
            if !text.contains(&quoted) && !linked.contains(&quoted) {
                missing.push(format!("{}: {key}", kind.name));
            }
        }
    }
    assert!(missing.is_empty(), "keys without a word: {missing:?}");
}

#[test]
fn every_logged_column_is_in_the_glossary() {
    let glossary = page("columns.md");
    let (numbers, choices) = (support::data(3, 41), support::discrete_data(3, 41, 4));
    let discrete = AGENTS.iter().filter(|kind| kind.learns_discrete()).map(|kind| (kind, &choices));
    let mut missing = Vec::new();
    for (kind, data) in AGENTS.iter().map(|kind| (kind, &numbers)).chain(discrete) {
        let mut agent = support::agent(kind.name, "batch_size = 4", data, 100);
        let batch = support::batch(&agent, data, &[0, 13, 29, 50]);
        let mut metrics = Metrics::new();
        agent.update(&batch, 0, Some(&mut metrics));
        for (name, _) in metrics {
            // `critic/q_mean`, `q_max`: the group is written once. The columns of chunks share an entry.
            let (group, short) = name.split_once('/').unwrap();
            let known = glossary.contains(&format!("`{name}`")) || glossary.contains(&format!("`{short}`"));
            if !known && !glossary.contains(&format!("`{group}/...`")) {
                missing.push(format!("{}: {name}", kind.name));
            }
        }
    }
    assert!(missing.is_empty(), "columns without a word: {missing:?}");
}

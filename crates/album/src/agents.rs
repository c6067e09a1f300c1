//! The algorithms with their sizes and defaults.

use crate::error::Error;
use crate::sizes::antmaze_large;
use album_agents::{AGENTS, Agent, AgentKind, Learner};
use album_base::number::grouped;
use album_nn::Pool;
use album_report::table::Table;
use serde::Serialize;
use std::fmt;

/// All algorithms.
#[derive(Debug, Serialize)]
pub struct AgentList {
    /// Agents, in the order of the registry.
    pub agents: Vec<AgentSummary>,
}

/// One algorithm.
#[derive(Debug, Serialize)]
pub struct AgentSummary {
    /// The name that `--agent` takes.
    pub name: &'static str,
    /// The kind of policy.
    pub policy: &'static str,
    /// The publication.
    pub reference: &'static str,
    /// Number of parameters at the sizes of antmaze-large, including target networks.
    pub parameters: usize,
    /// Number of value networks, including ensemble members and targets.
    pub value_networks: usize,
    /// Hyperparameters and their defaults.
    pub defaults: toml::Table,
}

impl AgentList {
    /// Builds each agent once, at the sizes of antmaze-large.
    pub fn new() -> Result<Self, Error> {
        Ok(AgentList { agents: AGENTS.iter().map(summary).collect::<Result<_, _>>()? })
    }
}

fn summary(kind: &AgentKind) -> Result<AgentSummary, Error> {
    let defaults = kind.defaults()?;
    let learner = Learner::new(kind.setup(&defaults)?.as_ref(), &antmaze_large(1)?, 1, 0, &Pool::new(1))?;
    Ok(AgentSummary {
        name: kind.name,
        policy: kind.policy,
        reference: kind.reference,
        parameters: learner.parameters(),
        value_networks: learner.value_networks(),
        defaults,
    })
}

impl fmt::Display for AgentList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = Table::new(["agent", "policy", "parameters", "Q/V nets", "reference"]);
        let table = self.agents.iter().fold(table, |table, agent| {
            let (parameters, networks) = (grouped(agent.parameters as i64), agent.value_networks.to_string());
            table.row([agent.name, agent.policy, &parameters, &networks, agent.reference])
        });
        write!(
            f,
            "{}Parameters at the sizes of antmaze-large. `--json` has the hyperparameters with their defaults; \
             docs/agents/NAME.md explains them.\nalbum train TASK --agent NAME --set KEY=VALUE",
            table.to_text()
        )
    }
}

//! `album agents`: the algorithms that `album train --agent` knows.

use crate::output;
use album::Error as Failure;
use album::sizes::antmaze_large;
use album_agents::{AGENTS, Agent, AgentKind, Learner};
use album_base::number::grouped;
use album_nn::Pool;
use album_report::table::Table;
use serde::Serialize;

/// The list of algorithms.
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Output {
    agents: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    policy: &'static str,
    reference: &'static str,
    /// At the sizes of antmaze-large, targets included.
    parameters: usize,
    /// Ensemble members and targets included.
    value_networks: usize,
    defaults: toml::Table,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let output = Output { agents: AGENTS.iter().map(entry).collect::<Result<_, _>>()? };
    if args.json { output::print_json(&output) } else { output::print(&text(&output)) }
}

fn entry(kind: &AgentKind) -> Result<Entry, Failure> {
    let defaults = kind.defaults()?;
    let learner = Learner::new(kind.setup(&defaults)?.as_ref(), &antmaze_large(1)?, 1, 0, &Pool::new(1))?;
    Ok(Entry {
        name: kind.name,
        policy: kind.policy,
        reference: kind.reference,
        parameters: learner.parameters(),
        value_networks: learner.value_networks(),
        defaults,
    })
}

fn text(output: &Output) -> String {
    let table = Table::new(["agent", "policy", "parameters", "Q/V nets", "reference"]);
    let table = output.agents.iter().fold(table, |table, agent| {
        table.row([
            agent.name.to_owned(),
            agent.policy.to_owned(),
            grouped(agent.parameters as i64),
            agent.value_networks.to_string(),
            agent.reference.to_owned(),
        ])
    });
    format!(
        "{}Parameters at the sizes of antmaze-large. `--json` has the hyperparameters with their defaults; docs/agents/NAME.md \
         explains them.\nalbum train TASK --agent NAME --set KEY=VALUE",
        table.to_text()
    )
}

//! `album agents`: the algorithms that `album train --agent` knows.

use crate::output;
use album::Error as Failure;
use album::agents::AgentList;

/// Arguments of `album agents`.
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let list = AgentList::new()?;
    output::show(args.json, &list, || list.to_string())
}

//! `album verify`: checks every statement of the theory, with numbers and figures.

use crate::output;
use album::Error as Failure;
use album::verify::verify;
use album_base::progress::{self, Amount};
use album_tabular::theory::Group;
use std::path::{Path, PathBuf};

/// Arguments of `album verify`.
#[derive(clap::Args)]
pub struct Args {
    /// Groups of statements [default: all]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(Group::ALL.map(Group::name)))]
    groups: Vec<String>,
    /// Number of MudWorlds, each with its own layout and data
    #[arg(long, default_value_t = SEEDS, value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: u16,
    /// Folder for report.html, checks.csv and the figures
    #[arg(long, default_value = "album-verify", value_name = "DIR")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const SEEDS: u16 = 8;

impl Args {
    /// Verifies everything, with the files in `out`.
    pub fn all(out: &Path) -> Self {
        Args { groups: Vec::new(), seeds: SEEDS, out: out.to_path_buf(), json: false }
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    // Before any work: minutes later is a bad time to learn that the folder is not writable.
    std::fs::create_dir_all(&args.out).map_err(Failure::io(&args.out))?;
    let named = |group: &Group| args.groups.is_empty() || args.groups.iter().any(|name| name == group.name());
    let groups: Vec<Group> = Group::ALL.into_iter().filter(named).collect();
    let bar = progress::bar(1000, Amount::Share);
    let verified = verify(&groups, args.seeds, &|group, what, share| {
        bar.set_prefix(group.to_owned());
        bar.set_message(what.to_owned());
        bar.set_position((1000.0 * share) as u64);
    })?;
    bar.finish_and_clear();
    let page = verified.write(&args.out)?;
    output::show(args.json, &verified.json(&page), || format!("{verified}; figures in {}", page.display()))?;
    match verified.failed() {
        0 => Ok(()),
        failed => Err(Failure::Numerical(format!("{failed} of {} checks failed", verified.checks.len()))),
    }
}

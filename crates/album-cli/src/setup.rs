//! `album setup`: what cargo alone does not install.

use crate::output;
use album::Error as Failure;
use album::setup::{gymnasium, ogbench};
use album_base::say;
use std::path::PathBuf;

/// The subcommands of `album setup`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a private Python environment with ogbench, and try one environment of each family
    Ogbench(Place),
    /// Install packages with gymnasium environments beside ogbench, by name, e.g. `minigrid` or `gymnasium[box2d]`
    Gymnasium(GymnasiumArgs),
}

#[derive(clap::Args)]
struct Place {
    /// Where to make it [default: in album's cache folder]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// The Python to make it from, 3.10 to 3.13
    #[arg(long, value_name = "PYTHON3", default_value = "python3")]
    python: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct GymnasiumArgs {
    /// What to install; packages that album pins keep their versions
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    #[command(flatten)]
    place: Place,
}

/// Runs `album setup`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let say = &mut |line: &str| say!("{line}");
    let (made, json) = match &args.command {
        Command::Ogbench(Place { path, python, json }) => (ogbench(path.as_deref(), python, say)?, *json),
        Command::Gymnasium(GymnasiumArgs { packages, place: Place { path, python, json } }) => {
            (gymnasium(path.as_deref(), python, packages, say)?, *json)
        }
    };
    output::show(json, &made, || made.to_string())
}

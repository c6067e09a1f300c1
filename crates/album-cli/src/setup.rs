//! `album setup`: installs what cargo cannot.

use crate::output;
use album::Error as Failure;
use album::setup::{gymnasium, ogbench};
use album::setup_xla::{self, Plugin};
use album_base::say;
use std::path::{Path, PathBuf};

/// The subcommands of `album setup`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Create a private Python environment with ogbench, and try one environment of each family
    Ogbench(Place),
    /// Install packages with gymnasium environments beside ogbench, by name, e.g. `minigrid` or
    /// `gymnasium[box2d]`
    Gymnasium(GymnasiumArgs),
    /// Install an XLA compiler plugin for `train --device xla`, and try its devices
    Xla(XlaArgs),
}

#[derive(clap::Args)]
struct Place {
    /// Where to create the Python environment [default: in album's cache]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// The Python to create it from, 3.10 to 3.13
    #[arg(long, value_name = "PYTHON3", default_value = "python3")]
    python: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct GymnasiumArgs {
    /// Packages to install; those that album pins keep their versions
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(clap::Args)]
struct XlaArgs {
    /// cpu, cuda12, cuda13 or tpu, or the path of a plugin library
    #[arg(long, value_name = "PLUGIN", default_value = "cpu")]
    plugin: String,
    /// The Python whose pip downloads the plugin, 3.10 to 3.13
    #[arg(long, value_name = "PYTHON3", default_value = "python3")]
    python: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Only print the devices of this library, in a process of its own, because a bad library may crash it
    #[arg(long, hide = true, value_name = "LIBRARY")]
    try_out: Option<PathBuf>,
}

fn xla(args: &XlaArgs) -> Result<(), Failure> {
    if let Some(library) = &args.try_out {
        return output::print(&album_xla::try_out(library)?.join("\n"));
    }
    let plugin: Plugin = args.plugin.parse().map_err(Failure::Usage)?;
    let mut album =
        std::process::Command::new(std::env::current_exe().map_err(Failure::io(Path::new("album")))?);
    let say = &mut |line: &str| say!("{line}");
    let made = setup_xla::xla(&plugin, &args.python, album.args(["setup", "xla", "--try-out"]), say)?;
    output::show(args.json, &made, || made.to_string())
}

/// Runs `album setup`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let say = &mut |line: &str| say!("{line}");
    let (made, json) = match &args.command {
        Command::Ogbench(Place { path, python, json }) => (ogbench(path.as_deref(), python, say)?, *json),
        Command::Gymnasium(GymnasiumArgs { packages, place: Place { path, python, json } }) => {
            (gymnasium(path.as_deref(), python, packages, say)?, *json)
        }
        Command::Xla(args) => return xla(args),
    };
    output::show(json, &made, || made.to_string())
}

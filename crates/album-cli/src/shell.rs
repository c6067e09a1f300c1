//! `album completions` and `album man`: what a shell and `man` know about the command line.

use crate::output;
use album::Error as Failure;
use album_agents::AGENTS;
use album_base::atomic;
use album_experiments::ExperimentList;
use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// Arguments of `album completions`.
#[derive(clap::Args)]
pub struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// Arguments of `album man`.
#[derive(clap::Args)]
pub struct ManArgs {
    /// Write a page for every command into this folder, e.g. ~/.local/share/man/man1
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs `album completions`.
pub fn completions(args: &CompletionArgs, command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_names(command)?, "album", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end())
}

/// Names that the options themselves accept as any text, because files are accepted too or because their
/// errors suggest the nearest one.
fn with_names(command: Command) -> Result<Command, Failure> {
    let agents: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
    let experiments: Vec<&str> = ExperimentList::new()?.experiments.iter().map(|one| one.name).collect();
    let name = |command: Command, of: &'static str, arg: &'static str, names: Vec<&'static str>| {
        command.mut_subcommand(of, |sub| {
            sub.mut_arg(arg, |arg| arg.value_parser(PossibleValuesParser::new(names)))
        })
    };
    let command = name(command, "train", "agent", agents);
    Ok(name(command, "reproduce", "name", experiments))
}

/// Runs `album man`.
pub fn man(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let mut command = examples_last(command).disable_help_subcommand(true);
    command.build(); // gives subcommands their full names
    let Some(folder) = &args.out else {
        let page = page(&command).map_err(Failure::io(Path::new("album.1")))?;
        return output::print(String::from_utf8_lossy(&page).trim_end());
    };
    std::fs::create_dir_all(folder).map_err(Failure::io(folder))?;
    let mut written = 0;
    write_pages(&command, folder, &mut written)?;
    output::print(&format!("{written} pages in {}", folder.display()))
}

/// clap_mangen leaves out what stands before the help.
fn examples_last(command: Command) -> Command {
    let example = command.get_before_help().cloned();
    let command = match example {
        Some(example) => command.after_help(example),
        None => command,
    };
    command.mut_subcommands(examples_last)
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text)?;
    Ok(text)
}

/// A page for a command and for each below it; `help` needs none.
fn write_pages(command: &Command, folder: &Path, written: &mut usize) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = folder.join(format!("{name}.1"));
    page(command).and_then(|text| atomic::write(&file, &text)).map_err(Failure::io(&file))?;
    *written += 1;
    let below = command.get_subcommands().filter(|sub| sub.get_name() != "help");
    below.into_iter().try_for_each(|sub| write_pages(sub, folder, written))
}

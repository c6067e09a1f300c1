//! The command-line reference of the book, from the same definitions as `--help`.
//! After a change, `ALBUM_BLESS=1 cargo test -p album-cli reference` rewrites docs/cli.md.

use crate::{Cli, help};
use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;
use std::path::Path;

const INTRODUCTION: &str = "# Command line

Written from the definitions of `album --help`; a test keeps it current. `album man --out DIR` writes the same as manual pages,
`album completions bash` the completions of a shell.

Every command takes `--quiet` (only the result, warnings and errors), `--verbose` (every row of the log, every checkpoint, where data is
read from) and `--help`. Results go to standard output, everything else to standard error. Colours appear only on a terminal, and never if
`NO_COLOR` is set. [Getting started](getting-started.md#three-things-to-know) lists the exit codes.
";

#[test]
fn the_reference_is_current() {
    let mut command = help::arrange(Cli::command());
    command.build();
    let mut page = INTRODUCTION.to_owned();
    commands(&command, 2, &mut page);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    album_testing::golden(&path, &page);
}

fn commands(command: &Command, level: usize, page: &mut String) {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        describe(sub, level, page);
        commands(sub, level + 1, page);
    }
}

fn describe(command: &Command, level: usize, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_default();
    let about = command.get_about().map(line).unwrap_or_default();
    writeln!(page, "\n{} {name}\n\n{about}.", "#".repeat(level)).unwrap();
    if let Some(example) = command.get_before_help() {
        let example = example.to_string();
        writeln!(page, "\n```sh\n{}\n```", example.trim_start_matches("Example: ")).unwrap();
    }
    let mut heading = None;
    let global = ["help", "quiet", "verbose", "version"];
    let mut args: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    args.retain(|arg| !global.contains(&arg.get_id().as_str()));
    // As in --help: options with a heading come after those without.
    args.sort_by_key(|arg| (arg.get_help_heading().is_some(), !arg.is_positional()));
    for arg in args {
        if heading != Some(arg.get_help_heading()) {
            heading = Some(arg.get_help_heading());
            let title = arg.get_help_heading().unwrap_or("option");
            writeln!(page, "\n| {} | meaning |\n|---|---|", title.to_lowercase()).unwrap();
        }
        writeln!(page, "| `{}` | {} |", written(arg), meaning(arg)).unwrap();
    }
}

/// As on the command line: `--steps <STEPS>`.
fn written(arg: &Arg) -> String {
    arg.to_string().replace('|', "\\|")
}

fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(line).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|value| {
            let help = value.get_help().map(|help| format!(" ({})", line(help))).unwrap_or_default();
            format!("`{}`{help}", value.get_name())
        })
        .collect();
    if !values.is_empty() {
        write!(text, ": {}", values.join(", ")).unwrap();
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() && !arg.is_hide_default_value_set() {
        write!(text, " [default: {}]", defaults.join(",")).unwrap();
    }
    text
}

/// Help in one line of a table.
fn line(text: &StyledStr) -> String {
    text.to_string().replace('\n', " ").replace('|', "\\|")
}

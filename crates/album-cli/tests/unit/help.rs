//! Unit tests of the help.

use super::*;
use crate::Cli;
use clap::{CommandFactory, Parser};

fn all(command: &Command, path: &str, found: &mut Vec<String>) {
    for sub in command.get_subcommands() {
        let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
        found.push(path.clone());
        all(sub, &path, found);
    }
}

#[test]
fn every_command_has_a_group_and_an_example_that_is_accepted() {
    let command = arrange(Cli::command());
    for sub in command.get_subcommands() {
        assert!(GROUPS.iter().any(|(_, names)| names.contains(&sub.get_name())), "{}", sub.get_name());
    }
    let mut found = Vec::new();
    all(&command, "", &mut found);
    for path in found {
        let example = EXAMPLES.iter().find(|(of, _)| *of == path);
        let (_, example) = example.unwrap_or_else(|| panic!("`album {path}` has no example"));
        Cli::try_parse_from(example.split(' ')).unwrap_or_else(|e| panic!("{example}: {e}"));
    }
}

#[test]
fn the_overview_fits_a_screen() {
    let text = arrange(Cli::command()).render_help().to_string();
    assert!(text.lines().count() <= 32, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

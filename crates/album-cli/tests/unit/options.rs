//! Unit tests of the options.

use super::*;
use std::any::TypeId;
use std::num::NonZero;

/// Integer options that are not sizes, or have a range of their own.
const FREE: [&str; 5] = ["seed", "seeds", "min_count", "parent", "check"];

fn numbers_without_bound(command: &clap::Command, found: &mut Vec<String>) {
    let numbers = [
        TypeId::of::<usize>(),
        TypeId::of::<u64>(),
        TypeId::of::<u32>(),
        TypeId::of::<NonZero<usize>>(),
        TypeId::of::<i64>(),
    ];
    for arg in command.get_arguments() {
        let (kind, name) = (arg.get_value_parser().type_id(), arg.get_id().as_str());
        if numbers.iter().any(|number| kind == *number)
            && limits::most(name).is_none()
            && !FREE.contains(&name)
        {
            found.push(format!("{} --{name}", command.get_name()));
        }
    }
    command.get_subcommands().for_each(|inner| numbers_without_bound(inner, found));
}

#[test]
fn every_number_of_an_option_has_a_bound() {
    let mut found = Vec::new();
    numbers_without_bound(&Cli::command(), &mut found);
    assert!(found.is_empty(), "{found:?}: give them one in album_base::limits");
}

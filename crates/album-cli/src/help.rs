//! The pages of `--help`: commands grouped by purpose, and an example at the top of every page.

use clap::Command;

/// Command groups, in the order of use.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Learn", &["train", "resume", "agents"]),
    ("Judge", &["eval", "fqe", "report", "log"]),
    ("Ship", &["export", "act"]),
    ("Data", &["data"]),
    ("Exact", &["solve", "verify"]),
    ("Paper", &["reproduce"]),
    ("Machine", &["setup", "bench", "completions", "man"]),
];

/// The example of every command.
const EXAMPLES: &[(&str, &str)] = &[
    ("train", "album train cube-single-play-singletask-v0 --seed 1"),
    ("resume", "album resume runs/cube-single-play-singletask-v0/album-seed1"),
    ("agents", "album agents"),
    ("eval", "album eval runs/cube-single-play-singletask-v0/album-seed1 --episodes 100 --video 2"),
    ("fqe", "album fqe runs/valve/album-seed0 --json"),
    ("export", "album export runs/pump/album-seed0 --format onnx --out pump.onnx --check 100"),
    ("act", "album act pump.safetensors"),
    ("report", "album report runs --out comparison"),
    ("log", "album log runs/cube-single-play-singletask-v0/album-seed1 --wandb"),
    ("data list", "album data list"),
    ("data fetch", "album data fetch antmaze-large-navigate-v0"),
    ("data generate", "album data generate cube-single-play-v0"),
    ("data expert", "album data expert ant --out ant.safetensors"),
    ("data record", "album data record --env gymnasium:Pendulum-v1 --episodes 200 --out pendulum.npz"),
    ("data inspect", "album data inspect log.npz"),
    ("data import", "album data import log.npz --out log.columns"),
    ("solve", "album solve log.npz --gamma 0.99 --k 10"),
    ("verify", "album verify"),
    ("reproduce", "album reproduce k-sweep --scale small"),
    ("setup ogbench", "album setup ogbench"),
    ("setup gymnasium", "album setup gymnasium minigrid"),
    ("setup xla", "album setup xla --plugin cuda12"),
    ("bench step", "album bench step"),
    ("bench cost", "album bench cost --agents album,iql"),
    ("bench solve", "album bench solve"),
    ("data", "album data list"),
    ("setup", "album setup ogbench"),
    ("bench", "album bench step"),
    ("completions", "album completions bash"),
    ("man", "album man --out man1"),
];

/// Adds groups and examples to the command line.
pub fn arrange(command: Command) -> Command {
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}\nOptions:\n{{options}}\n\n`album COMMAND --help` begins with an example. \
         `album train` alone is a good start.\n",
        groups(&command)
    );
    with_examples(command, "").help_template(template)
}

fn groups(command: &Command) -> String {
    let about = |name: &str| {
        command.find_subcommand(name).and_then(|found| found.get_about()).map(ToString::to_string)
    };
    let mut text = String::new();
    for (title, names) in GROUPS {
        for (i, name) in names.iter().enumerate() {
            let title = if i == 0 { title } else { "" };
            text.push_str(&format!("  {title:<8} {name:<12} {}\n", about(name).unwrap_or_default()));
        }
    }
    text
}

fn with_examples(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}").trim_start().to_owned();
        let example = EXAMPLES.iter().find(|(of, _)| *of == path).map(|(_, example)| *example);
        command.mut_subcommand(name, |sub| {
            let sub = match example {
                Some(example) => sub.before_help(format!("Example: {example}")),
                None => sub,
            };
            with_examples(sub, &path)
        })
    })
}

#[cfg(test)]
#[path = "../tests/unit/help.rs"]
mod tests;

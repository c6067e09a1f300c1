//! `album data list`.

use crate::output;
use album::Error as Failure;
use album::catalogue::{Catalogue, Group, catalogue};
use album_base::number::bytes;
use album_data::ogbench::Recording;

/// The arguments of `album data list`.
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album data list`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let found = catalogue()?;
    output::show(args.json, &found, || text(&found))
}

fn text(found: &Catalogue) -> String {
    // Fixed widths, so that the groups are aligned and 80 columns are enough.
    let line = |cells: [&str; 8]| {
        let [name, obs, act, steps, task, here, episodes, get] = cells;
        format!("  {name:<31} {obs:>3} {act:>3} {steps:>5} {task:>4} {here:>7} {episodes:>8}  {get}")
    };
    let mut lines = Vec::new();
    for (group, title) in
        [(Group::Paper, "The paper's ten"), (Group::PointMaze, "PointMaze"), (Group::Other, "Others")]
    {
        lines.push(title.to_owned());
        lines.push(line(["", "obs", "act", "steps", "task", "here", "episodes", "get by"]));
        for d in found.datasets.iter().filter(|d| d.group == group) {
            lines.push(line([
                &d.name,
                &d.observation_dim.to_string(),
                &d.action_dim.to_string(),
                &d.horizon.to_string(),
                &d.default_task.to_string(),
                &d.bytes.map(bytes).unwrap_or_else(|| "-".into()),
                &d.recording.as_ref().map(episodes).unwrap_or_default(),
                d.get[0].name(),
            ]));
        }
        lines.push(String::new());
    }
    let notes = [
        "obs, act  numbers in an observation and in an action",
        "   steps  length of an episode",
        "    task  the default of the five tasks",
        "episodes  in the file; 50/1000 is a partial recording of a dataset of 1000",
        "    here  size of the file on this machine, looked for in",
    ];
    lines.extend(notes.map(|note| format!("  {note}")));
    lines.extend(found.folders.iter().map(|folder| format!("              {}", folder.display())));
    lines.push("    get by  fetch: `album data fetch NAME`, which works for all".into());
    lines.push("            generate: `album data generate NAME`; first use: by `album train`".into());
    lines.join("\n")
}

/// `1000`, or `50/1000` of a partial recording.
fn episodes(recording: &Recording) -> String {
    match recording.published_episodes.filter(|_| recording.complete == Some(false)) {
        Some(published) => format!("{}/{published}", recording.episodes),
        None => recording.episodes.to_string(),
    }
}

//! `album data list`.

use crate::output;
use album::Error as Failure;
use album_base::cache;
use album_data::ogbench::{Environment, Family, Recording, TaskName};
use serde::Serialize;
use std::path::PathBuf;

/// The arguments of `album data list`.
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output {
    /// Where files are looked for.
    folders: Vec<PathBuf>,
    datasets: Vec<Dataset>,
}

#[derive(Serialize)]
struct Dataset {
    name: String,
    group: Group,
    environment: &'static str,
    kind: &'static str,
    observation_dim: usize,
    action_dim: usize,
    horizon: usize,
    tasks: usize,
    default_task: usize,
    /// The name of the default task.
    task: String,
    /// The paper's coefficient of behaviour cloning, on its ten datasets.
    alpha_bc: Option<f64>,
    /// How to get it.
    get: Vec<Way>,
    file: Option<PathBuf>,
    bytes: Option<u64>,
    /// How many episodes the file has, and whether those are all.
    recording: Option<Recording>,
    validation_file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Group {
    Paper,
    PointMaze,
    Other,
}

/// A way to get a dataset.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    FirstUse,
    Generate,
    Fetch,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::FirstUse => "first use",
            Way::Generate => "generate",
            Way::Fetch => "fetch",
        }
    }
}

/// Runs `album data list`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let folders = vec![cache::folder()?, cache::ogbench_folder()?];
    let mut datasets: Vec<Dataset> =
        TaskName::all().filter(TaskName::is_default).map(|task| dataset(&task, &folders)).collect();
    datasets.sort_by_key(|dataset| dataset.group as u8); // stable: the order of families stays
    let output = Output { folders, datasets };
    if args.json { output::print_json(&output) } else { output::print(&text(&output)) }
}

fn dataset(task: &TaskName, folders: &[PathBuf]) -> Dataset {
    let environment = task.environment();
    let kind = task.data_kind();
    let find = |name: String| folders.iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
    let file = find(task.dataset_file());
    // The paper's datasets are `navigate` and `play`, the first kind of each environment.
    let published = album_agents::agents::album::KIND
        .preset_file()
        .ok()
        .and_then(|file| file.paper.get(environment.name));
    let alpha_bc = published.and_then(|section| section.values.get("alpha_bc")?.as_float());
    let alpha_bc = alpha_bc.filter(|_| kind == environment.data_kinds[0]);
    let point = matches!(environment.family, Family::PointMaze(_));
    let arm = matches!(environment.family, Family::Cube(_) | Family::Scene | Family::Puzzle { .. });
    Dataset {
        name: task.dataset_name(),
        group: match alpha_bc {
            Some(_) => Group::Paper,
            None if point => Group::PointMaze,
            None => Group::Other,
        },
        environment: environment.name,
        kind,
        observation_dim: environment.observation_dim,
        action_dim: environment.action_dim,
        horizon: environment.horizon,
        tasks: Environment::TASKS,
        default_task: environment.default_task,
        task: task.to_string(),
        alpha_bc,
        get: match kind {
            "navigate" if point => vec![Way::FirstUse, Way::Generate, Way::Fetch],
            "play" | "noisy" if arm => vec![Way::Generate, Way::Fetch],
            _ => vec![Way::Fetch],
        },
        recording: file.as_ref().and_then(|path| Recording::read(path, task).ok()),
        bytes: file.as_ref().and_then(|path| path.metadata().ok()).map(|metadata| metadata.len()),
        validation_file: find(task.validation_file()),
        file,
    }
}

fn text(output: &Output) -> String {
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
        for d in output.datasets.iter().filter(|d| d.group == group) {
            lines.push(line([
                &d.name,
                &d.observation_dim.to_string(),
                &d.action_dim.to_string(),
                &d.horizon.to_string(),
                &d.default_task.to_string(),
                &d.bytes.map(size).unwrap_or_else(|| "-".into()),
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
    lines.extend(output.folders.iter().map(|folder| format!("              {}", folder.display())));
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

/// Bytes in a unit that suits them.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "kB", "MB", "GB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", album_base::number::compact(value), UNITS[unit])
}

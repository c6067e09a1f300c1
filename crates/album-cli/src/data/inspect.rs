//! `album data inspect`.

use crate::output;
use crate::source_args::SourceArgs;
use album::Error as Failure;
use album::doctor::{self, Diagnosis, Warning};
use album_base::number::{compact, fixed, grouped, percent};
use album_base::text::wrapped;
use album_data::ogbench::{Environment, TaskName, looks_like};
use album_data::{
    ActionSpace, DataError, Description, EndCounts, Format, Labels, Unchecked, has_own_rewards,
    load_unchecked, needs_task,
};
use album_tabular::ValueSummary;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The arguments of `album data inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// Files or folders that are one dataset: npz, npy, HDF5 (D4RL, robomimic, Minari), Parquet, CSV, a Minari or LeRobot
    /// dataset, or a folder that `album data import` made
    #[arg(required = true, value_name = "SOURCE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    /// The task that gives rewards: a name, or a number from 1 to 5 if the file has its official name; by default the
    /// file's own rewards, else the default task of the dataset that the file is named after
    #[arg(long)]
    task: Option<String>,
    /// The discount of the values
    #[arg(long, default_value_t = 0.995)]
    gamma: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output {
    file: PathBuf,
    bytes: u64,
    task: Option<String>,
    own_rewards: bool,
    format: Format,
    observation: Observation,
    action: Action,
    ends: EndCounts,
    guesses: Vec<String>,
    #[serde(flatten)]
    diagnosis: Diagnosis,
}

#[derive(Serialize)]
struct Observation {
    dim: usize,
    names: Vec<String>,
}

#[derive(Serialize)]
struct Action {
    dim: usize,
    names: Vec<String>,
    #[serde(flatten)]
    space: ActionSpace,
}

/// What the doctor looks at.
struct Patient {
    data: Unchecked,
    description: Description,
    task: Option<TaskName>,
    own_rewards: bool,
    /// What is known before the data is looked at.
    first_warnings: Vec<Warning>,
}

/// Runs `album data inspect`.
pub fn run(args: &Args) -> Result<(), Failure> {
    if !(0.0..1.0).contains(&args.gamma) {
        return Err(Failure::Usage(format!(
            "--gamma is {}; expected at least 0 and less than 1",
            args.gamma
        )));
    }
    let source = args.source.source(args.files.clone());
    let format = source.format()?;
    let recording = match &args.files[..] {
        [one]
            if args.source.is_empty()
                && (format == Format::Columns || format == Format::Npz && one.is_file()) =>
        {
            (args.task.is_some() || needs_task(one)?).then_some(one.as_path())
        }
        _ => None,
    };
    let patient = match recording {
        Some(file) => of_recording(file, format, args.task.as_deref())?,
        None if args.task.is_some() => {
            return Err(Failure::Usage(
                "--task labels one npz file or imported folder without options for its columns".into(),
            ));
        }
        None => {
            let (data, description) = source.read_unchecked()?;
            Patient { data, description, task: None, own_rewards: true, first_warnings: Vec::new() }
        }
    };
    let Patient { data, description, task, own_rewards, first_warnings } = patient;
    let mut diagnosis = doctor::examine(&data, args.gamma)?;
    diagnosis.warnings.splice(0..0, first_warnings);
    if let Some(file) = recording.filter(|_| diagnosis.labels.is_none()) {
        let like = looks_like(file)?;
        diagnosis.warnings.push(Warning { code: "no_labels", message: no_labels(&like) });
    }
    let mut size = 0;
    for file in args.files.iter().filter(|file| file.exists()) {
        size += bytes(file).map_err(Failure::io(file))?;
    }
    let output = Output {
        file: args.files[0].clone(),
        bytes: size,
        task: task.map(|task| task.to_string()),
        own_rewards,
        format,
        observation: Observation {
            dim: data.dataset.observation_dim(),
            names: description.observation_names,
        },
        action: Action {
            dim: data.dataset.action_dim(),
            names: description.action_names,
            space: description.action_space,
        },
        ends: description.ends,
        guesses: description.guesses,
        diagnosis,
    };
    if args.json { output::print_json(&output) } else { output::print(&text(&output)) }
}

/// A recording of OGBench, whose rewards come from a task.
fn of_recording(file: &Path, format: Format, asked: Option<&str>) -> Result<Patient, Failure> {
    let asked = asked.map(|name| task(name, file)).transpose()?;
    let own_rewards = asked.is_none() && has_own_rewards(file)?;
    let named = TaskName::of_file(file);
    let mut task = if own_rewards { None } else { asked.or(named) };
    let labels = match &task {
        Some(task) => Labels::Task(task),
        None if own_rewards => Labels::Own,
        None => Labels::None,
    };
    let mut first_warnings = Vec::new();
    let data = match load_unchecked(file, labels) {
        // A name that was not given as the task is only a hint.
        Err(
            error @ (DataError::OtherEnvironment { .. }
            | DataError::WrongShape { .. }
            | DataError::Missing { .. }),
        ) if asked.is_none() && task.is_some() => {
            task = None;
            let message = format!("the contents are not what the name of the file says: {error}");
            first_warnings.push(Warning { code: "other_environment", message });
            load_unchecked(file, Labels::None)?
        }
        result => result?,
    };
    if let (Some(asked), Some(named)) = (asked, named)
        && asked.environment() != named.environment()
    {
        let message = format!(
            "the file is named after {}, the task is one of {}: its goals may lie elsewhere",
            named.environment().name,
            asked.environment().name
        );
        first_warnings.insert(0, Warning { code: "file_name", message });
    }
    let description = Description::of(&data.dataset, format);
    Ok(Patient { data, description, task, own_rewards, first_warnings })
}

/// The size of a file, or of the files in a folder.
fn bytes(path: &Path) -> std::io::Result<u64> {
    if !path.is_dir() {
        return Ok(path.metadata()?.len());
    }
    let mut sum = 0;
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        sum += bytes(&path)?;
    }
    Ok(sum)
}

/// The task that `--task` means for this file.
fn task(name: &str, file: &Path) -> Result<TaskName, Failure> {
    let Ok(number) = name.parse::<usize>() else {
        return name.parse().map_err(|e| Failure::Config(format!("{e}")));
    };
    if !(1..=Environment::TASKS).contains(&number) {
        return Err(Failure::Usage(format!("--task is {number}; expected 1 to {}", Environment::TASKS)));
    }
    let named = TaskName::of_file(file).ok_or_else(|| {
        Failure::Usage(format!(
            "--task {number}: the name of {} is not that of a dataset, such as cube-single-play-v0.npz; give the \
             whole name of the task, such as cube-single-play-singletask-task{number}-v0",
            file.display()
        ))
    })?;
    Ok(named.with_number(number))
}

fn no_labels(like: &[&Environment]) -> String {
    let mut message =
        "the file has no rewards, and no task was named with --task: nothing is said about goals and \
                       values"
            .to_owned();
    if let Some(first) = like.first() {
        let names: Vec<&str> = like.iter().map(|environment| environment.name).collect();
        let kind = first.data_kinds[0];
        message += &format!(
            "; it looks like data of {}: try --task {}-{kind}-singletask-v0",
            names.join(", "),
            first.name
        );
    }
    message
}

/// Lines are at most this wide, so that nothing wraps on a narrow terminal.
const WIDTH: usize = 80;
/// Names stand to the left of this.
const NAMES: usize = 16;

/// A page of sections, each with named lines.
struct Page {
    lines: Vec<String>,
}

impl Page {
    fn section(&mut self, title: &str) {
        self.lines.extend([String::new(), title.to_owned()]);
    }

    /// A named line; without a name, more of the one before. Long values go on below themselves.
    fn line(&mut self, name: &str, value: &str) {
        for (i, part) in wrapped(value, WIDTH - NAMES - 2).iter().enumerate() {
            let name = if i == 0 { name } else { "" };
            self.lines.push(format!("{name:>NAMES$}  {part}"));
        }
    }
}

fn count(n: usize) -> String {
    grouped(n as i64)
}

fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

fn text(output: &Output) -> String {
    let diagnosis = &output.diagnosis;
    let mut page = Page { lines: Vec::new() };
    page.line("file", &format!("{} ({})", output.file.display(), album_base::number::bytes(output.bytes)));
    let task = match (&output.task, output.own_rewards) {
        (Some(task), _) => task.as_str(),
        (None, true) => "none; the rewards are the file's own",
        (None, false) => "none",
    };
    page.line("task", task);
    page.line("format", output.format.name());
    if !output.guesses.is_empty() {
        page.line("guessed", &output.guesses.join("; "));
    }
    contents(&mut page, diagnosis);
    meaning(&mut page, output);
    rewards(&mut page, diagnosis);
    match diagnosis.warnings.len() {
        0 => page.section("No warnings"),
        n => page.section(&plural(n, "warning", "warnings").to_uppercase()),
    }
    for Warning { code, message } in &diagnosis.warnings {
        page.lines.push(format!("  ! {code}"));
        page.lines.extend(wrapped(message, WIDTH - 4).iter().map(|line| format!("    {line}")));
    }
    page.lines.join("\n")
}

fn contents(page: &mut Page, diagnosis: &Diagnosis) {
    page.section("Contents");
    page.line("transitions", &count(diagnosis.transitions));
    let lengths = diagnosis.episode_length;
    let long = if lengths.min == lengths.max {
        format!("each {} long", count(lengths.min))
    } else {
        format!("{} to {} long, median {}", count(lengths.min), count(lengths.max), count(lengths.median))
    };
    page.line("episodes", &format!("{}, {long}", count(diagnosis.episodes)));
    for (name, columns) in [("observations", &diagnosis.observations), ("actions", &diagnosis.actions)] {
        let least = columns.iter().map(|c| c.min).fold(f64::INFINITY, f64::min);
        let most = columns.iter().map(|c| c.max).fold(f64::NEG_INFINITY, f64::max);
        let (flattest, widest) = (
            columns.iter().map(|c| c.std).fold(f64::INFINITY, f64::min),
            columns.iter().map(|c| c.std).fold(0.0, f64::max),
        );
        page.line(
            name,
            &format!(
                "{} from {} to {}, deviations {} to {}",
                plural(columns.len(), "number", "numbers"),
                compact(least),
                compact(most),
                compact(flattest),
                compact(widest)
            ),
        );
    }
    page.line("", &format!("{} of the actions' numbers at ±1", percent(diagnosis.saturated_action_share, 1)));
    let repeats = &diagnosis.repeats;
    let states = if repeats.distinct_states == diagnosis.rows {
        format!("no state occurs twice among {}", count(diagnosis.rows))
    } else {
        format!("{} different states among {}", count(repeats.distinct_states), count(diagnosis.rows))
    };
    page.line("repetitions", &states);
    if repeats.repeated_pairs > 0 {
        page.line(
            "",
            &format!(
                "{} with the same state and action, {} of them with different outcomes; {} exactly like an earlier one",
                plural(repeats.repeated_pairs, "pair", "pairs"),
                count(repeats.pairs_with_several_successors.max(repeats.pairs_with_several_rewards)),
                plural(repeats.duplicate_transitions, "transition", "transitions")
            ),
        );
    }
}

/// What the numbers are outside.
fn meaning(page: &mut Page, output: &Output) {
    const SHOWN: usize = 12;
    let list = |names: &[String]| {
        let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
    };
    page.line("observed", &list(&output.observation.names));
    match &output.action.space {
        ActionSpace::Discrete { n } => {
            let named =
                if output.action.names.len() == *n { list(&output.action.names) } else { String::new() };
            page.line("choices", format!("{n} {named}").trim());
        }
        ActionSpace::Continuous { low, high } => {
            let bound = |i: usize| {
                let name = output.action.names.get(i).map_or("", String::as_str);
                format!("{name} {} to {}", compact(f64::from(low[i])), compact(f64::from(high[i])))
            };
            page.line("bounds", &list(&(0..low.len()).map(bound).collect::<Vec<_>>()));
        }
    }
    let EndCounts { terminal, timeout } = output.ends;
    page.line("ends", &format!("{} by the end of the task, {} cut", count(terminal), count(timeout)));
}

fn rewards(page: &mut Page, diagnosis: &Diagnosis) {
    let Some(labels) = &diagnosis.labels else { return };
    page.section("Rewards");
    let total: usize = labels.reward_histogram.iter().map(|bin| bin.count).sum();
    let names: Vec<String> = labels
        .reward_histogram
        .iter()
        .map(|bin| {
            if bin.from == bin.to {
                compact(bin.from)
            } else {
                format!("{} to {}", compact(bin.from), compact(bin.to))
            }
        })
        .collect();
    let most = labels.reward_histogram.iter().map(|bin| bin.count).max().unwrap_or(1).max(1);
    let counts: Vec<String> = labels.reward_histogram.iter().map(|bin| count(bin.count)).collect();
    let wide = counts.iter().map(String::len).max().unwrap_or(0);
    for (i, bin) in labels.reward_histogram.iter().enumerate() {
        let bar = "#".repeat((30 * bin.count).div_ceil(most));
        let share = percent(bin.count as f64 / total as f64, 1);
        page.lines.push(format!("{:>NAMES$}  {:>wide$} {share:>7}  {bar}", names[i], counts[i]));
    }
    page.line("sum", &compact_sum(labels.reward_sum));
    page.line(
        "goal",
        &format!(
            "reached in {} of the episodes; {} solved",
            percent(labels.goal_episode_share, 1),
            plural(labels.mask_zeros, "transition is", "transitions are")
        ),
    );
    page.section(&format!("Values (discount {})", labels.gamma));
    page.lines.push(format!("{:>NAMES$}  {:>10} {:>10} {:>10}", "", "max", "mean", "min"));
    let values = |v: &ValueSummary| [v.max, v.mean, v.min].map(|x| format!("{:>10}", fixed(x, 2))).join(" ");
    if let Some(v_star) = &labels.v_star {
        page.lines.push(format!("{:>NAMES$}  {}", "V*_D", values(v_star)));
    }
    if let Some(returns) = &labels.return_to_go {
        page.lines.push(format!("{:>NAMES$}  {}", "return-to-go", values(returns)));
    }
    if let (Some(share), Some(most)) = (labels.v_star_above_return_share, labels.v_star_above_return_max) {
        let note = if share > 0.0 {
            format!(
                "trajectories meet: V*_D is above the recorded return in {} of the transitions, by up to {}",
                percent(share, 1),
                compact(most)
            )
        } else {
            "the same: no trajectory could have gone on as a better one".to_owned()
        };
        page.line("", &note);
    }
}

/// A sum that is mostly a whole number of steps.
fn compact_sum(sum: f64) -> String {
    if sum.fract() == 0.0 { fixed(sum, 0) } else { fixed(sum, 3) }
}

//! `album reproduce`: a table or figure of the paper as one command.

mod local;
mod one;
mod plan;
mod results;
mod slurm;
mod status;
pub mod studies;

use crate::output;
use crate::resources::ResourceArgs;
use album::Error as Failure;
use album_base::number::grouped;
use album_experiments::{Experiment, Scale, Selection, names};
use album_report::table::Table;
use clap::ValueEnum;
use plan::Plan;
pub use results::Results;
use results::State;
use serde::Serialize;
use status::Status;
use std::path::{Path, PathBuf};

/// An experiment, or a part of it.
#[derive(clap::Args)]
pub struct Args {
    /// The experiment, or a file of your own that ends in .toml
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List the experiments
    #[arg(long)]
    list: bool,
    /// How much to run
    #[arg(long, value_enum, default_value_t = Size::Small)]
    scale: Size,
    /// Only these tasks: OGBench names, or environments such as cube-single-play
    #[arg(long, num_args = 1.., value_delimiter = ',')]
    tasks: Vec<String>,
    /// Only these seeds, or others than the experiment's: 0,1,5 or 0-7
    #[arg(long, num_args = 1.., value_delimiter = ',')]
    seeds: Vec<String>,
    /// Only these variants, by their labels
    #[arg(long, num_args = 1.., value_delimiter = ';', value_name = "LABEL")]
    variants: Vec<String>,
    /// Where runs and reports are kept
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Where runs are done
    #[arg(long, value_enum, default_value_t = Executor::Local)]
    executor: Executor,
    /// Show what would be run, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Show how far the runs are
    #[arg(long)]
    status: bool,
    /// Only write the report of the runs that there are
    #[arg(long)]
    report_only: bool,
    /// Do one run, by its identifier, in this process
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Runs side by side (default: by cores and memory)
    #[arg(long)]
    jobs: Option<usize>,
    /// Memory for all runs together in GiB (default: what is available)
    #[arg(long, value_name = "GIB")]
    memory: Option<f64>,
    #[command(flatten)]
    resources: ResourceArgs,
    /// The executor of a run; used by the command itself
    #[arg(long, hide = true)]
    parent: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    // Last, because its heading is for all that follow.
    #[command(flatten)]
    slurm: slurm::SlurmOptions,
}

/// `--scale`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// On PointMaze with small networks: minutes on two cores
    Small,
    /// As in the paper
    Paper,
}

/// `--executor`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Executor {
    /// This machine, several runs side by side
    Local,
    /// A cluster: job arrays of Slurm, and a job that writes the report after them
    Slurm,
}

/// Runs `album reproduce`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let name = match &args.name {
        Some(name) if !args.list => name,
        _ => return list(args.json),
    };
    let scale = match args.scale {
        Size::Small => Scale::Small,
        Size::Paper => Scale::Paper,
    };
    let selection =
        Selection { tasks: args.tasks.clone(), seeds: seeds(&args.seeds)?, variants: args.variants.clone() };
    let plan = Plan::new(Experiment::find(name)?, scale, &selection)?;
    let results = Results::at(&args.results)?;
    if args.dry_run {
        let draft = match args.executor {
            Executor::Local => None,
            Executor::Slurm => Some(slurm::draft(&jobs(args, name, &plan, &absolute(args)?)?, &args.slurm)?),
        };
        return dry_run(&plan, &results, draft.as_ref(), args.json);
    }
    if args.status {
        let status = Status::read(&plan, &results);
        return if args.json {
            output::print_json(&status.json(None))
        } else {
            output::print(&status.text())
        };
    }
    if let Some(id) = &args.run {
        if let Some(parent) = args.parent {
            local::follow(parent);
        }
        let run = plan.find(id)?;
        results.create()?;
        return one::run(&results, run, &args.resources.get());
    }
    if !args.report_only {
        plan.check(args.resources.python.as_deref())?;
        if args.executor == Executor::Slurm {
            return submit(args, name, &plan);
        }
        let limits = local::Limits { jobs: args.jobs, memory: args.memory };
        local::execute(&plan, &results, &arguments(args, name, &results), &limits, &args.resources.get())?;
    }
    finish(&plan, &results, args.json)
}

/// Hands the runs that are not finished to Slurm.
fn submit(args: &Args, name: &str, plan: &Plan) -> Result<(), Failure> {
    let results = absolute(args)?;
    let jobs = jobs(args, name, plan, &results)?;
    if jobs.runs.is_empty() {
        eprintln!("{}: all {} runs are finished already", plan.name(), plan.runs.len());
        return finish(plan, &results, args.json);
    }
    let submission = slurm::submit(&jobs, &args.slurm)?;
    if args.json { output::print_json(&submission) } else { output::print(&submission.text(&plan.name())) }
}

/// The results folder by a name that holds wherever a job starts.
fn absolute(args: &Args) -> Result<Results, Failure> {
    Results::at(&std::path::absolute(&args.results).map_err(Failure::io(&args.results))?)
}

/// The jobs of a plan; each has the processors that Slurm gives it, if it is not told otherwise.
fn jobs<'a>(args: &Args, name: &str, plan: &Plan, results: &'a Results) -> Result<slurm::Jobs<'a>, Failure> {
    let mut arguments = arguments(args, name, results);
    let or = |asked: usize| if asked == 0 { args.slurm.cpus.to_string() } else { asked.to_string() };
    arguments.extend(["--threads".into(), or(args.resources.threads)]);
    arguments.extend(["--workers".into(), or(args.resources.workers)]);
    if let Some(python) = &args.resources.python {
        arguments.extend(["--python".into(), python.display().to_string()]);
    }
    let open = |run: &&plan::Planned| !matches!(results.state(run), State::Finished);
    Ok(slurm::Jobs {
        album: std::env::current_exe().map_err(Failure::io(Path::new("album")))?,
        arguments,
        runs: plan.runs.iter().filter(open).map(|run| run.id.clone()).collect(),
        name: plan.name(),
        results,
    })
}

/// The arguments with which a process does a part of the same plan.
fn arguments(args: &Args, name: &str, results: &Results) -> Vec<String> {
    let scale = if args.scale == Size::Small { "small" } else { "paper" };
    let mut all: Vec<String> = ["reproduce", name, "--scale", scale, "--results"].map(str::to_owned).into();
    all.push(results.folder().display().to_string());
    let lists = [("--tasks", &args.tasks), ("--seeds", &args.seeds), ("--variants", &args.variants)];
    for (option, values) in lists {
        if !values.is_empty() {
            all.push(option.to_owned());
            all.extend(values.iter().cloned());
        }
    }
    all
}

/// Writes the report, and says which runs failed and why.
fn finish(plan: &Plan, results: &Results, json: bool) -> Result<(), Failure> {
    let study = studies::study(plan, results)?;
    let written = album_experiments::write(&[study], &results.report(&plan.name()))?;
    let status = Status::read(plan, results);
    if json {
        output::print_json(&status.json(Some(&written.page)))?;
    } else {
        output::print(&format!("{}\nreport   {}", status.headline(), written.page.display()))?;
    }
    let mut failures = plan.runs.iter().filter_map(|run| match results.state(run) {
        State::Failed(note) => Some((run, note)),
        _ => None,
    });
    let Some((run, note)) = failures.next() else { return Ok(()) };
    let log = results.log(&run.id);
    let more = match failures.count() {
        0 => String::new(),
        n => format!(" ({n} more failed; --status lists them)"),
    };
    Err(Failure::Runs {
        code: note.code.unwrap_or(5),
        message: format!(
            "{} failed: {}{more}\nthe end of {}:\n{}\nthe same command tries again",
            run.id,
            note.message,
            log.display(),
            local::tail(&log, 10)
        ),
    })
}

/// `0,1,5` and `0-7` as numbers.
fn seeds(texts: &[String]) -> Result<Vec<u64>, Failure> {
    let mut seeds = Vec::new();
    for text in texts {
        let wrong = || Failure::Usage(format!("--seeds {text}: expected a number or a range such as 0-7"));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        match text.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last || last - first > 10_000 {
                    return Err(wrong());
                }
                seeds.extend(first..=last);
            }
            None => seeds.push(number(text)?),
        }
    }
    seeds.sort_unstable();
    seeds.dedup();
    Ok(seeds)
}

fn dry_run(plan: &Plan, results: &Results, slurm: Option<&slurm::Draft>, json: bool) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Line {
        id: String,
        state: &'static str,
        command: String,
    }
    let lines: Vec<Line> = plan
        .runs
        .iter()
        .enumerate()
        .map(|(place, run)| Line {
            id: run.id.clone(),
            state: results.state(run).word(),
            command: run.command(plan.specs.iter().find(|(_, at)| *at == place).map(|(spec, _)| spec)),
        })
        .collect();
    if json {
        return output::print_json(&serde_json::json!({
            "experiment": plan.experiment.name,
            "scale": plan.scale.to_string(),
            "runs": lines,
            "slurm": slurm,
        }));
    }
    let mut text = format!("{}: {} runs\n", plan.name(), lines.len());
    for line in lines {
        text.push_str(&format!("{:<12} {}\n             {}\n", line.state, line.id, line.command));
    }
    if let Some(draft) = slurm {
        text.push_str(&format!("\n{}", draft.text()));
    }
    output::print(text.trim_end())
}

fn list(json: bool) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Line {
        name: String,
        title: String,
        reference: String,
        small: usize,
        paper: usize,
    }
    let mut lines = Vec::new();
    for name in names() {
        let experiment = Experiment::find(name)?;
        let runs = |scale| experiment.run_count(scale);
        lines.push(Line {
            name: name.to_owned(),
            small: runs(Scale::Small)?,
            paper: runs(Scale::Paper)?,
            title: experiment.title,
            reference: experiment.reference,
        });
    }
    if json {
        return output::print_json(&serde_json::json!({ "experiments": lines }));
    }
    let mut table = Table::new(["experiment", "what", "in the paper", "runs, small", "runs, paper"]);
    for line in lines {
        table = table.row([
            line.name,
            line.title,
            line.reference,
            grouped(line.small as i64),
            grouped(line.paper as i64),
        ]);
    }
    output::print(&table.to_text())
}

//! `album reproduce`: a table or figure of the paper as one command.

mod screen;
mod slurm;

use crate::bench;
use crate::output;
use crate::resources::ResourceArgs;
use crate::{train, verify};
use album::Error as Failure;
use album_base::number::grouped;
use album_experiments::executor::slurm::Draft;
use album_experiments::executor::{Assignment, Executor as _, Local, Outcome, Slurm, follow};
use album_experiments::job::{self, Host, Job};
use album_experiments::{
    Command, Experiment, Plan, Request, Results, Scale, Selection, State, Status, names, studies,
};
use album_report::table::Table;
use album_train::StopFlag;
use clap::ValueEnum;
use screen::Screen;
use serde::Serialize;
use slurm::SlurmArgs;
use std::path::{Path, PathBuf};

/// An experiment, or a part of it.
#[derive(clap::Args)]
pub struct Args {
    /// The experiment, or a file of your own that ends in .toml
    #[arg(required_unless_present_any = ["list", "job"])]
    name: Option<String>,
    /// List the experiments
    #[arg(long)]
    list: bool,
    /// The budget: which tasks, how many seeds and steps
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
    /// Do what a file says; used by executors
    #[arg(long, hide = true, value_name = "FILE")]
    job: Option<PathBuf>,
    /// The process to stop with; used by executors
    #[arg(long, hide = true)]
    parent: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    // Last, because its heading is for all that follow.
    #[command(flatten)]
    slurm: SlurmArgs,
}

/// `--scale`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// What a small machine affords: PointMaze, minutes on two cores
    Small,
    /// The paper's tasks, seeds and steps
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
    if let Some(file) = &args.job {
        return do_job(file, args);
    }
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
    let request = Request { experiment: name.clone(), scale, selection };
    let plan = request.plan()?;
    // Jobs of a cluster start elsewhere, so the folder needs a name that holds everywhere.
    let results = Results::at(&match args.executor {
        Executor::Local => args.results.clone(),
        Executor::Slurm => std::path::absolute(&args.results).map_err(Failure::io(&args.results))?,
    })?;
    let resources = args.resources.get();
    if args.status {
        let status = Status::read(&plan, &results);
        return if args.json {
            output::print_json(&status.json(None))
        } else {
            output::print(&status.text())
        };
    }
    if let Some(id) = &args.run {
        let run = plan.find(id)?;
        results.create()?;
        return job::run(&results, run, &resources, &mut CommandLine);
    }
    let album = std::env::current_exe().map_err(Failure::io(Path::new("album")))?;
    let work = Assignment {
        plan: &plan,
        request: &request,
        results: &results,
        album: &album,
        resources: &resources,
    };
    if args.dry_run {
        let draft = match args.executor {
            Executor::Local => None,
            Executor::Slurm => Some(Slurm { options: args.slurm.get() }.draft(&work)?),
        };
        return dry_run(&plan, &results, draft.as_ref(), args.json);
    }
    if !args.report_only {
        plan.check(args.resources.python.as_deref())?;
        let mut screen = Screen::new(&plan);
        let outcome = match args.executor {
            Executor::Local => {
                let stop = StopFlag::on_signals()?;
                Local { jobs: args.jobs, memory: args.memory, stop }
                    .execute(&work, &mut |event| screen.show(event))
            }
            Executor::Slurm => {
                Slurm { options: args.slurm.get() }.execute(&work, &mut |event| screen.show(event))
            }
        };
        screen.clear();
        if let Outcome::Submitted(submission) = outcome? {
            return if args.json {
                output::print_json(&submission)
            } else {
                output::print(&submission.text(&plan.name()))
            };
        }
    }
    finish(&plan, &results, args.json)
}

/// What an executor started this process for.
fn do_job(file: &Path, args: &Args) -> Result<(), Failure> {
    if let Some(parent) = args.parent {
        follow(parent);
    }
    let (job, results) = Job::read(file)?;
    match job {
        Job::Run(run) => job::run(&results, &run, &args.resources.get(), &mut CommandLine),
        Job::Report(request) => finish(&request.plan()?, &results, args.json),
    }
}

/// Runs and commands as the command line does them: with a live line and a summary.
struct CommandLine;

impl Host for CommandLine {
    fn train(&mut self, run: album::Run) -> Result<(), Failure> {
        train::go(run, false)
    }

    fn command(&mut self, command: &Command, out: &Path) -> Result<(), Failure> {
        match command {
            Command::Cost(options) => bench::cost::run(&bench::cost::Args::new(options, out)),
            Command::Verify => verify::run(&verify::Args::all(out)),
        }
    }
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
    let listing = results.list();
    let mut failures = plan.runs.iter().filter_map(|run| match listing.state(run) {
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
            results.log_end(&run.id, 10)
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

fn dry_run(plan: &Plan, results: &Results, slurm: Option<&Draft>, json: bool) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Row<'a> {
        id: &'a str,
        state: &'static str,
        command: String,
    }
    let listing = results.list();
    // The first spec of each run names it.
    let mut specs: Vec<Option<&album_experiments::Spec>> = vec![None; plan.runs.len()];
    for (spec, place) in plan.specs.iter().rev() {
        specs[*place] = Some(spec);
    }
    let rows: Vec<Row<'_>> = (plan.runs.iter().zip(specs))
        .map(|(run, spec)| Row { id: &run.id, state: listing.state(run).word(), command: run.command(spec) })
        .collect();
    if json {
        return output::print_json(&serde_json::json!({
            "experiment": plan.experiment.name,
            "scale": plan.scale.to_string(),
            "runs": rows,
            "slurm": slurm,
        }));
    }
    let mut text = format!("{}: {} runs\n", plan.name(), rows.len());
    for row in rows {
        text.push_str(&format!("{:<12} {}\n             {}\n", row.state, row.id, row.command));
    }
    if let Some(draft) = slurm {
        text.push_str(&format!("\n{}", draft.text()));
    }
    output::print(text.trim_end())
}

fn list(json: bool) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Row {
        name: String,
        title: String,
        reference: String,
        small: usize,
        paper: usize,
    }
    let mut rows = Vec::new();
    for name in names() {
        let experiment = Experiment::find(name)?;
        let runs = |scale| experiment.run_count(scale);
        rows.push(Row {
            name: name.to_owned(),
            small: runs(Scale::Small)?,
            paper: runs(Scale::Paper)?,
            title: experiment.title,
            reference: experiment.reference,
        });
    }
    if json {
        return output::print_json(&serde_json::json!({ "experiments": rows }));
    }
    let mut table = Table::new(["experiment", "what", "in the paper", "runs, small", "runs, paper"]);
    for row in rows {
        table = table.row([
            row.name,
            row.title,
            row.reference,
            grouped(row.small as i64),
            grouped(row.paper as i64),
        ]);
    }
    output::print(&table.to_text())
}

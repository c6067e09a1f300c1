//! `album reproduce`: one command for each table or figure of the paper.

mod screen;
mod slurm;

use crate::bench;
use crate::choices::choices;
use crate::output;
use crate::resources::ResourceArgs;
use crate::{train, verify};
use album::Error as Failure;
use album_experiments::executor::{Assignment, Executor, Local, Outcome, Slurm, follow};
use album_experiments::job::{self, Host, Job};
use album_experiments::{
    Command, ExperimentList, Plan, Preview, Request, Results, Scale, Selection, Status, studies,
};
use album_train::StopFlag;
use clap::ValueEnum;
use clap::builder::TypedValueParser;
use screen::Screen;
use slurm::SlurmArgs;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Arguments of `album reproduce`.
#[derive(clap::Args)]
pub struct Args {
    /// The experiment, or your own .toml file
    #[arg(required_unless_present_any = ["list", "job"])]
    name: Option<String>,
    /// List the experiments
    #[arg(long)]
    list: bool,
    /// The budget: which tasks, how many seeds and steps
    #[arg(long, value_parser = scales(), default_value = "small")]
    scale: Scale,
    /// Restrict to these tasks: OGBench names, or environments such as cube-single-play
    #[arg(long, num_args = 1.., value_delimiter = ',')]
    tasks: Vec<String>,
    /// Run these seeds instead of the experiment's: 0,1,5 or 0-7
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = seeds)]
    seeds: Vec<RangeInclusive<u64>>,
    /// Restrict to these variants, by label
    #[arg(long, num_args = 1.., value_delimiter = ';', value_name = "LABEL")]
    variants: Vec<String>,
    /// Folder for runs and reports
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Where to execute the runs
    #[arg(long, value_enum, default_value_t = Place::Local)]
    executor: Place,
    /// List the runs without starting any
    #[arg(long)]
    dry_run: bool,
    /// Show the progress of the runs
    #[arg(long)]
    status: bool,
    /// Only write the report, from the runs finished so far
    #[arg(long)]
    report_only: bool,
    /// Execute one run, by its identifier, in this process
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Number of runs in parallel [default: by cores and memory]
    #[arg(long)]
    jobs: Option<usize>,
    /// Memory for all parallel runs together, in GiB [default: what is available]
    #[arg(long, value_name = "GIB")]
    memory: Option<f64>,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Execute the job in this file; used by executors
    #[arg(long, hide = true, value_name = "FILE")]
    job: Option<PathBuf>,
    /// Stop when this process ends; used by executors
    #[arg(long, hide = true)]
    parent: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    // Last, because its help heading applies to everything after it.
    #[command(flatten)]
    slurm: SlurmArgs,
}

fn scales() -> impl TypedValueParser<Value = Scale> {
    choices([
        ("small", Scale::Small, "A budget for two cores: minutes on PointMaze, hours for `per-task`"),
        ("paper", Scale::Paper, "The paper's tasks, seeds and steps"),
    ])
}

/// `--executor`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// This machine, several runs in parallel
    Local,
    /// A Slurm cluster: job arrays, and a final job that writes the report
    Slurm,
}

/// Runs `album reproduce`.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(file) = &args.job {
        return do_job(file, args);
    }
    let name = match &args.name {
        Some(name) if !args.list => name,
        _ => {
            let all = ExperimentList::new()?;
            return output::show(args.json, &all, || all.to_string());
        }
    };
    let seeds: BTreeSet<u64> = args.seeds.iter().cloned().flatten().collect();
    let selection = Selection {
        tasks: args.tasks.clone(),
        seeds: seeds.into_iter().collect(),
        variants: args.variants.clone(),
    };
    let request = Request { experiment: name.clone(), scale: args.scale, selection };
    let plan = request.plan()?;
    // Cluster jobs start in other directories, so the path must be absolute.
    let results = Results::at(&match args.executor {
        Place::Local => args.results.clone(),
        Place::Slurm => std::path::absolute(&args.results).map_err(Failure::io(&args.results))?,
    })?;
    let resources = args.resources.get();
    if args.status {
        let status = Status::read(&plan, &results);
        return output::show(args.json, &status, || status.text());
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
            Place::Local => None,
            Place::Slurm => Some(Slurm { options: args.slurm.get() }.draft(&work)?),
        };
        let preview = Preview::new(&plan, &results, draft);
        return output::show(args.json, &preview, || preview.to_string());
    }
    if !args.report_only {
        plan.check(args.resources.python.as_deref())?;
        let mut screen = Screen::new(&plan);
        let executor: Box<dyn Executor> = match args.executor {
            Place::Local => {
                let stop = StopFlag::on_signals()?;
                Box::new(Local { jobs: args.jobs, memory: args.memory, stop })
            }
            Place::Slurm => Box::new(Slurm { options: args.slurm.get() }),
        };
        let outcome = executor.execute(&work, &mut |event| screen.show(event));
        screen.clear();
        if let Outcome::Submitted(submission) = outcome? {
            return output::show(args.json, &submission, || submission.text(&plan.name()));
        }
    }
    finish(&plan, &results, args.json)
}

/// Executes the job that an executor started this process for.
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

/// Executes runs and commands as the command line does, with a live line and a summary.
struct CommandLine;

impl Host for CommandLine {
    fn train(&mut self, run: album::Run) -> Result<(), Failure> {
        train::go(vec![run], Vec::new(), None, None, false)
    }

    fn command(&mut self, command: &Command, out: &Path) -> Result<(), Failure> {
        match command {
            Command::Cost(options) => bench::cost::experiment(options, out),
            Command::Verify => verify::run(&verify::Args::all(out)),
        }
    }
}

/// Writes the report, and lists the failed runs with their reasons.
fn finish(plan: &Plan, results: &Results, json: bool) -> Result<(), Failure> {
    let written = studies::write_report(plan, results)?;
    let status = Status::read(plan, results);
    output::show(json, &status.json(Some(&written.page)), || {
        format!("{}\nreport   {}", status.headline(), written.page.display())
    })?;
    studies::failure(plan, results).map_or(Ok(()), Err)
}

/// `5` or `0-7`.
fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last && last - first <= 10_000 => Ok(first..=last),
        _ => Err("expected a number or a range such as 0-7".into()),
    }
}

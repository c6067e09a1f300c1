//! Runs as Slurm jobs: arrays with one run per task, and a final job that writes the report.
//!
//! ```text
//! slurm/NAME-SCALE/submissions.jsonl   the jobs and their runs
//! slurm/NAME-SCALE/N/runs.txt          the runs of one submission, a line for each task
//! slurm/NAME-SCALE/N/jobs/ID.json       what each task does
//! slurm/NAME-SCALE/N/job.sh            the script of the arrays
//! slurm/NAME-SCALE/N/report.sh         that of the report
//! slurm/NAME-SCALE/N/logs/             what the scripts and Slurm say; a run's own words are in logs/ID.log
//! ```

mod options;
mod queue;
mod script;

use super::{Assignment, Event, Executor, Outcome};
use crate::job::Job;
use crate::plan::{PlannedRun, shell};
use crate::results::Results;
use album::{Error, Resources};
use album_base::atomic;
pub use options::SlurmOptions;
use queue::Ledger;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A Slurm cluster.
#[derive(Clone, Debug)]
pub struct Slurm {
    /// Limits and options of the jobs.
    pub options: SlurmOptions,
}

/// The result of a submission.
#[derive(Debug, Serialize)]
pub struct Submission {
    /// The array jobs; several if the cluster limits their size, none if all runs were already queued.
    pub arrays: Vec<String>,
    /// The job that writes the report.
    pub report: Option<String>,
    /// The script of the arrays.
    pub script: Option<PathBuf>,
    /// The submitted runs.
    pub runs: Vec<String>,
    /// Runs of earlier submissions that are still queued.
    pub queued: Vec<String>,
}

/// A submission for a dry run.
#[derive(Debug, Serialize)]
pub struct Draft {
    commands: Vec<String>,
    script: String,
}

/// One submission: its runs, divided into arrays that the cluster allows.
pub(crate) struct Batch<'a> {
    work: &'a Assignment<'a>,
    options: &'a SlurmOptions,
    /// Threads and workers: the processors that Slurm assigns to a run, unless set otherwise.
    resources: Resources,
    folder: PathBuf,
    runs: Vec<&'a PlannedRun>,
    most: usize,
}

/// The folder of all submissions of a plan.
fn submissions(work: &Assignment<'_>) -> PathBuf {
    work.results.folder().join("slurm").join(work.plan.name())
}

/// A name without spaces, shown by `squeue`.
fn job_name(work: &Assignment<'_>) -> String {
    format!("album-{}", work.plan.name().replace(char::is_whitespace, "_"))
}

impl<'a> Batch<'a> {
    fn new(
        work: &'a Assignment<'a>,
        options: &'a SlurmOptions,
        runs: Vec<&'a PlannedRun>,
        most: usize,
    ) -> Self {
        let given = work.resources;
        let asked_or_all_cpus = |asked: usize| if asked == 0 { options.cpus as usize } else { asked };
        let resources = Resources {
            threads: asked_or_all_cpus(given.threads),
            workers: asked_or_all_cpus(given.workers),
            python: given.python.clone(),
        };
        Batch { work, options, resources, folder: next(&submissions(work)), runs, most }
    }

    /// The arguments of `sbatch` for the array whose first run is `first`.
    fn array(&self, first: usize, count: usize, previous: Option<&String>) -> Vec<String> {
        let mut args = self.options.arguments(&job_name(self.work));
        let mut array = format!("--array=0-{}", count - 1);
        if let Some(concurrent) = self.options.concurrent {
            array.push_str(&format!("%{concurrent}"));
            // The limit on concurrent runs applies per array, so arrays run one after the other.
            args.extend(previous.map(|job| format!("--dependency=afterany:{job}")));
        }
        args.push(array);
        args.extend(["--requeue".into(), "--open-mode=append".into()]);
        args.push(format!("--signal=B:USR1@{}", options::NOTICE));
        args.push(self.output("%A_%a.log"));
        args.extend([self.path("job.sh").display().to_string(), first.to_string()]);
        args
    }

    /// The arguments of `sbatch` for the report job after these jobs.
    fn report(&self, after: &[String]) -> Vec<String> {
        let mut args = self.options.arguments(&job_name(self.work));
        args.push(format!("--dependency=afterany:{}", after.join(":")));
        args.extend([self.output("report.log"), self.path("report.sh").display().to_string()]);
        args
    }

    /// Escaped, because Slurm interprets `%`.
    fn output(&self, name: &str) -> String {
        format!("--output={}/{name}", self.path("logs").display().to_string().replace('%', "%%"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write(&self) -> Result<(), Error> {
        for folder in ["logs", "jobs"].map(|name| self.path(name)) {
            fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        }
        let results = self.work.results;
        for &run in &self.runs {
            Job::Run(run.clone()).write(results, &self.path("jobs").join(format!("{}.json", run.id)))?;
        }
        Job::Report(self.work.request.clone()).write(results, &self.path("report.json"))?;
        let write = |name: &str, text: String| {
            let path = self.path(name);
            atomic::write(&path, text.as_bytes()).map_err(Error::io(&path))
        };
        let ids: Vec<&str> = self.runs.iter().map(|run| run.id.as_str()).collect();
        write("runs.txt", ids.join("\n") + "\n")?;
        write("job.sh", script::array(self))?;
        write("report.sh", script::report(self))
    }

    /// Submits everything or nothing; returns the ids of the arrays and finally of the report job, which also
    /// waits for the jobs `earlier`.
    fn submit(
        &self,
        ledger: &mut Ledger,
        earlier: impl IntoIterator<Item = String>,
    ) -> Result<Vec<String>, Error> {
        let mut taken: Vec<String> = Vec::new();
        let all = || -> Result<(), Error> {
            self.write()?;
            for (k, runs) in self.runs.chunks(self.most).enumerate() {
                let job = queue::submit(&self.array(k * self.most, runs.len(), taken.last()))?;
                taken.push(job.clone());
                ledger.note(&job, &runs.iter().map(|run| run.id.clone()).collect::<Vec<_>>())?;
            }
            let after: Vec<String> = taken.iter().cloned().chain(earlier).collect();
            let job = queue::submit(&self.report(&after))?;
            taken.push(job.clone());
            ledger.note(&job, &[])
        };
        let Err(failure) = all() else { return Ok(taken) };
        let list = taken.join(" ");
        if !taken.is_empty()
            && let Err(e) = queue::ask("scancel", &taken)
        {
            // These jobs still need the files.
            return Err(Error::Tool(format!(
                "{failure}\nthe jobs submitted before could not be cancelled ({e}); cancel them with: scancel {list}"
            )));
        }
        // Created by this process a moment ago.
        let _ = fs::remove_dir_all(&self.folder);
        if taken.is_empty() {
            return Err(failure);
        }
        Err(Error::Tool(format!("{failure}\nthe jobs submitted before were cancelled: job {list}")))
    }
}

impl Executor for Slurm {
    /// Submits the runs that are not already queued, and the report after all of them. If Slurm rejects part
    /// of it, everything is cancelled and the folder restored.
    fn execute(&self, work: &Assignment<'_>, observer: &mut dyn FnMut(Event<'_>)) -> Result<Outcome, Error> {
        let open = work.open();
        if open.is_empty() {
            let runs = work.plan.runs.len();
            observer(Event::Note(format!("{}: all {runs} runs are finished already", work.plan.name())));
            return Ok(Outcome::Done);
        }
        self.options.check()?;
        // Before any file is written: if sbatch is here, so are the other programs needed later.
        queue::ask("sbatch", &["--version".into()])?;
        let most = queue::largest_array()?;
        let before = Before::look(work.results.folder());
        let result = self.submit(work, open, most);
        if result.is_err() {
            before.restore(&submissions(work));
        }
        result.map(Outcome::Submitted)
    }
}

impl Slurm {
    fn submit(
        &self,
        work: &Assignment<'_>,
        open: Vec<&PlannedRun>,
        most: usize,
    ) -> Result<Submission, Error> {
        work.results.create()?;
        let folder = submissions(work);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let mut ledger = Ledger::open(&folder.join("submissions.jsonl"))?;
        let alive = ledger.alive(&job_name(work))?;
        let (queued, runs): (Vec<_>, Vec<_>) = open.into_iter().partition(|run| alive.runs.contains(&run.id));
        let ids = |runs: &[&PlannedRun]| runs.iter().map(|run| run.id.clone()).collect();
        let queued = ids(&queued);
        if runs.is_empty() {
            return Ok(Submission {
                arrays: Vec::new(),
                report: None,
                script: None,
                runs: Vec::new(),
                queued,
            });
        }
        let batch = Batch::new(work, &self.options, runs, most);
        let mut arrays = batch.submit(&mut ledger, alive.jobs)?;
        let report = arrays.pop();
        Ok(Submission { arrays, report, script: Some(batch.path("job.sh")), runs: ids(&batch.runs), queued })
    }

    /// What [`Executor::execute`] would do, as far as that is known without asking the queue.
    pub fn draft(&self, work: &Assignment<'_>) -> Result<Draft, Error> {
        self.options.check()?;
        let most = queue::largest_array().unwrap_or(queue::USUAL_ARRAY);
        let batch = Batch::new(work, &self.options, work.open(), most);
        let mut lines = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (k, runs) in batch.runs.chunks(most).enumerate() {
            lines.push(batch.array(k * most, runs.len(), names.last()));
            names.push(format!("ARRAY{}", k + 1));
        }
        if !names.is_empty() {
            lines.push(batch.report(&names));
        }
        let commands = lines.iter().map(|args| {
            let words: Vec<String> = args.iter().map(|word| shell(word)).collect();
            format!("sbatch {}", words.join(" "))
        });
        Ok(Draft { commands: commands.collect(), script: script::array(&batch) })
    }
}

impl Draft {
    /// The text for a terminal.
    pub fn text(&self) -> String {
        format!("{}\n\n{}", self.commands.join("\n"), self.script.trim_end())
    }
}

impl Submission {
    /// The text for a terminal.
    pub fn text(&self, name: &str) -> String {
        let runs = |runs: &[String]| format!("{} run{}", runs.len(), if runs.len() == 1 { "" } else { "s" });
        let mut lines = Vec::new();
        if !self.queued.is_empty() {
            lines.push(format!("{name}: {} in the queue already", runs(&self.queued)));
        }
        if let Some(report) = &self.report {
            let arrays = self.arrays.join(" ");
            lines.push(format!(
                "{name}: {} submitted as job {arrays}, the report as job {report}",
                runs(&self.runs)
            ));
            lines.push(format!("cancel with: scancel {arrays} {report}"));
        }
        lines.join("\n")
    }
}

/// The folder of the next submission.
fn next(folder: &Path) -> PathBuf {
    let mut number = 1;
    while folder.join(number.to_string()).exists() {
        number += 1;
    }
    folder.join(number.to_string())
}

/// The state before a submission.
struct Before {
    folder: PathBuf,
    exists: bool,
    is_results: bool,
}

impl Before {
    fn look(folder: &Path) -> Self {
        Before { folder: folder.into(), exists: folder.exists(), is_results: Results::is_one(folder) }
    }

    /// Removes new empty folders; a folder with files in it is kept.
    fn restore(&self, submissions: &Path) {
        let ledger = submissions.join("submissions.jsonl");
        if fs::metadata(&ledger).is_ok_and(|file| file.len() == 0) {
            let _ = fs::remove_file(&ledger);
        }
        let _ = fs::remove_dir(submissions);
        let _ = submissions.parent().map(fs::remove_dir);
        if self.is_results {
            return;
        }
        let entries =
            |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries(&self.folder) {
            let _ = fs::remove_dir(path);
        }
        if let [format] = &entries(&self.folder).collect::<Vec<_>>()[..]
            && Results::is_one(&self.folder)
        {
            let _ = fs::remove_file(format);
        }
        if !self.exists {
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

//! Executors run a plan on this machine or on a cluster. Each run is an album process with its own
//! [`Job`](crate::job::Job).

mod local;
pub mod slurm;

pub use local::{Local, follow};
pub use slurm::{Slurm, SlurmOptions, Submission};

use crate::plan::{Plan, PlannedRun, Request};
use crate::results::{Results, State};
use album::{Error, Resources};
use std::ffi::OsString;
use std::path::Path;

/// Executes the runs of a plan, or submits them to a queue.
pub trait Executor {
    /// Executes every unfinished run. A failed run does not stop the others; its failure is recorded in the
    /// results.
    fn execute(&self, work: &Assignment<'_>, observer: &mut dyn FnMut(Event<'_>)) -> Result<Outcome, Error>;
}

/// The task of an executor.
#[derive(Debug)]
pub struct Assignment<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The request that the plan was expanded from.
    pub request: &'a Request,
    /// The results folder.
    pub results: &'a Results,
    /// The program that executes jobs.
    pub album: &'a Path,
    /// Resources per run; zeros leave the choice to the executor.
    pub resources: &'a Resources,
}

impl<'a> Assignment<'a> {
    /// The unfinished runs.
    pub fn open(&self) -> Vec<&'a PlannedRun> {
        let listing = self.results.list();
        self.plan.runs.iter().filter(|run| !matches!(listing.state(run), State::Finished)).collect()
    }
}

/// The outcome of executing a plan.
#[derive(Debug)]
pub enum Outcome {
    /// Every run was tried.
    Done,
    /// The runs are queued.
    Submitted(Submission),
}

/// Progress of an executor.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message for the user.
    Note(String),
    /// A run has started.
    Started(&'a PlannedRun),
    /// A run has reached a step.
    Step(&'a PlannedRun, u64),
    /// A run has ended, successfully or not.
    Ended(&'a PlannedRun),
    /// Total steps done by all runs of the plan.
    Total(u64),
}

/// The arguments of album for a job file.
fn arguments(job: &Path, resources: &Resources) -> Vec<OsString> {
    let mut all = resource_arguments(resources);
    all.extend(["--job".into(), job.into()]);
    all
}

/// The arguments common to all jobs.
fn resource_arguments(resources: &Resources) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec!["reproduce".into()];
    all.extend(["--threads".into(), resources.threads.to_string().into()]);
    all.extend(["--workers".into(), resources.workers.to_string().into()]);
    if let Some(python) = &resources.python {
        all.extend(["--python".into(), python.into()]);
    }
    all
}

//! Executors: they do the runs of a plan on this machine or on a cluster. Each run is a process of album with a
//! [`Job`](crate::job::Job) of its own.

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
    /// Executes every run that is not finished. A failed run stops no other; its failure is noted in the results.
    fn execute(&self, work: &Assignment<'_>, observer: &mut dyn FnMut(Event<'_>)) -> Result<Outcome, Error>;
}

/// What an executor is asked to do.
#[derive(Debug)]
pub struct Assignment<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// What the plan was made of.
    pub request: &'a Request,
    /// Where results go.
    pub results: &'a Results,
    /// The program that does jobs.
    pub album: &'a Path,
    /// What a run may use; zeros leave it to the executor.
    pub resources: &'a Resources,
}

impl<'a> Assignment<'a> {
    /// The runs that are not finished.
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
    /// The runs wait in a queue.
    Submitted(Submission),
}

/// Progress of an executor.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something happened that is worth a line.
    Note(String),
    /// A run has started.
    Started(&'a PlannedRun),
    /// A run has reached a step.
    Step(&'a PlannedRun, u64),
    /// A run has ended, well or not.
    Ended(&'a PlannedRun),
    /// Steps done by all runs of the plan together.
    Total(u64),
}

/// The arguments of album for the job in a file.
fn arguments(job: &Path, resources: &Resources) -> Vec<OsString> {
    let mut all = resource_arguments(resources);
    all.extend(["--job".into(), job.into()]);
    all
}

/// The arguments that all jobs have in common.
fn resource_arguments(resources: &Resources) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec!["reproduce".into()];
    all.extend(["--threads".into(), resources.threads.to_string().into()]);
    all.extend(["--workers".into(), resources.workers.to_string().into()]);
    if let Some(python) = &resources.python {
        all.extend(["--python".into(), python.into()]);
    }
    all
}

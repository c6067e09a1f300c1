//! The scripts that Slurm runs.

use super::Batch;
use crate::executor::{arguments, resource_arguments};
use crate::plan::shell;
use std::ffi::OsString;
use std::path::Path;

/// The fixed part of the array script, after the file names.
const JOB: &str = include_str!("job.sh");

/// The script of an array; each task executes the run on its line of `runs.txt`.
pub fn array(batch: &Batch<'_>) -> String {
    let results = batch.work.results.folder();
    format!(
        "#!/bin/bash\n# One run of {}. Slurm has a copy of this file from the time of its submission.\n\
         album=({})\nruns={}\njobs={}\nlogs={}\nfailed={}\n{JOB}",
        batch.work.plan.name(),
        command(batch, &resource_arguments(&batch.resources)),
        path(&batch.path("runs.txt")),
        path(&batch.path("jobs")),
        path(&results.join("logs")),
        path(&results.join("failed")),
    )
}

/// The script of the job that waits for all arrays.
pub fn report(batch: &Batch<'_>) -> String {
    format!(
        "#!/bin/bash\n# The report of {}, when its runs have ended.\nexec {}\n",
        batch.work.plan.name(),
        command(batch, &arguments(&batch.path("report.json"), &batch.resources))
    )
}

fn command(batch: &Batch<'_>, arguments: &[OsString]) -> String {
    let words = arguments.iter().map(|word| shell(&word.to_string_lossy()));
    std::iter::once(path(batch.work.album)).chain(words).collect::<Vec<_>>().join(" ")
}

fn path(path: &Path) -> String {
    shell(&path.display().to_string())
}

//! The scripts that Slurm runs.

use super::Jobs;
use crate::reproduce::plan::shell;
use std::path::{Path, PathBuf};

/// What follows the names of files in the script of an array.
const JOB: &str = include_str!("job.sh");

/// The script of an array, whose tasks each do the run on their line of `runs`.
pub fn array(jobs: &Jobs<'_>, runs: &Path) -> String {
    format!(
        "#!/bin/bash\n# One run of {}. Slurm has a copy of this file from the time of its submission.\n\
         album=({})\nruns={}\nlogs={}\nfailed={}\n{JOB}",
        jobs.name,
        command(jobs),
        path(runs.into()),
        path(jobs.results.folder().join("logs")),
        path(jobs.results.folder().join("failed")),
    )
}

/// The script of the job that waits for all arrays.
pub fn report(jobs: &Jobs<'_>) -> String {
    format!(
        "#!/bin/bash\n# The report of {}, when its runs have ended.\nexec {} --report-only\n",
        jobs.name,
        command(jobs)
    )
}

fn command(jobs: &Jobs<'_>) -> String {
    let mut words = vec![path(jobs.album.clone())];
    words.extend(jobs.arguments.iter().map(|word| shell(word)));
    words.join(" ")
}

fn path(path: PathBuf) -> String {
    shell(&path.display().to_string())
}

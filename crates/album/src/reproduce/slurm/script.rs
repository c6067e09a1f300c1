//! The scripts that Slurm runs.

use super::Jobs;
use crate::reproduce::plan::shell;
use std::path::Path;

/// What follows the names of files in the script of an array.
const JOB: &str = include_str!("job.sh");

/// The script of an array, whose tasks each do the run on their line of `runs`.
pub fn array(jobs: &Jobs<'_>, runs: &Path) -> String {
    format!(
        "#!/bin/bash\n# One run of {}. Slurm has a copy of this file from the time of its submission.\n\
         album=({})\nruns={}\nlogs={}\n{JOB}",
        jobs.name,
        command(jobs),
        shell(&runs.display().to_string()),
        shell(&jobs.results.folder().join("logs").display().to_string()),
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
    let mut words = vec![shell(&jobs.album.display().to_string())];
    words.extend(jobs.arguments.iter().map(|word| shell(word)));
    words.join(" ")
}

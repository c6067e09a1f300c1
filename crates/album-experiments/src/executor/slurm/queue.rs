//! The interface to Slurm's programs, and a record of submissions.

use album::Error;
use album_base::files::{self, Links};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The default limit on array sizes.
pub const USUAL_ARRAY: usize = 1001;

/// The output of a Slurm program, or its error message.
pub fn ask(program: &str, args: &[String]) -> Result<String, Error> {
    let output = Command::new(program).args(args).output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::Tool(format!(
            "--executor slurm needs {program}, a program of Slurm, which is not in PATH; run this on a machine of the \
             cluster, or use --executor local"
        )),
        _ => Error::Tool(format!("cannot start {program}: {e}")),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Tool(format!("{program} failed ({}): {}", output.status, said.trim())))
}

/// Submits a job and returns its id.
pub fn submit(args: &[String]) -> Result<String, Error> {
    let said = ask("sbatch", args)?;
    // With several clusters, the cluster's name follows.
    let id = said.trim().split(';').next().unwrap_or_default();
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Error::Tool(format!("sbatch printed `{}`, expected a job id", said.trim())));
    }
    Ok(id.to_owned())
}

/// The maximum array size of the cluster.
pub fn largest_array() -> Result<usize, Error> {
    let settings = ask("scontrol", &["show".into(), "config".into()])?;
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    };
    let value = |name: &str| {
        let line =
            settings.lines().find(|line| line.split('=').next().is_some_and(|key| key.trim() == name))?;
        line.split_once('=').map(|(_, value)| value.trim())
    };
    let size = value("MaxArraySize").and_then(number).unwrap_or(USUAL_ARRAY);
    let tasks = value("SchedulerParameters")
        .and_then(|all| all.split(',').find_map(|one| one.strip_prefix("max_array_tasks=")))
        .and_then(number);
    match size.min(tasks.unwrap_or(size)) {
        0 => Err(Error::Tool("this cluster does not allow job arrays (MaxArraySize is 0)".into())),
        most => Ok(most),
    }
}

/// One job of an earlier submission.
#[derive(Serialize, Deserialize)]
struct Record {
    job: String,
    /// The runs of an array by task index; empty for a report.
    runs: Vec<String>,
}

/// The jobs submitted from a folder. While it is open, no other process can submit from there.
pub struct Ledger {
    path: PathBuf,
    file: File,
    records: Vec<Record>,
}

/// Jobs that are still queued or running.
#[derive(Default)]
pub struct Alive {
    /// Arrays and reports.
    pub jobs: BTreeSet<String>,
    /// Runs of the arrays.
    pub runs: BTreeSet<String>,
}

impl Ledger {
    /// Opens the list of jobs, creating it if necessary.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let options = OpenOptions::new().read(true).append(true).create(true).clone();
        let mut file = files::open_with(&options, path, Links::Refuse).map_err(Error::io(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Tool(format!(
                    "{}: another process is submitting the same experiment",
                    path.display()
                )));
            }
            Err(TryLockError::Error(e)) => return Err(Error::io(path)(e)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(Error::io(path))?;
        // A line truncated by a crash is harmless: the lock of the run directory still guards its job.
        let records = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Ledger { path: path.into(), file, records })
    }

    /// Records a submitted job.
    pub fn note(&mut self, job: &str, runs: &[String]) -> Result<(), Error> {
        let record = Record { job: job.into(), runs: runs.into() };
        let line = serde_json::to_string(&record).map_err(|e| Error::Tool(e.to_string()))?;
        let written = self.file.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(Error::io(&self.path))
    }

    /// Which of the jobs are queued or running. They are matched by `name` too, because Slurm reuses ids.
    pub fn alive(&self, name: &str) -> Result<Alive, Error> {
        if self.records.is_empty() {
            return Ok(Alive::default());
        }
        let queue =
            ask("squeue", &["--noheader", "--me", "--array", "--format=%F %K %j"].map(str::to_owned))?;
        Ok(self.among(&queue, name))
    }

    fn among(&self, queue: &str, name: &str) -> Alive {
        let mut alive = Alive::default();
        for line in queue.lines() {
            let mut words = line.split_whitespace();
            let (Some(job), Some(task), Some(found)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            for record in self.records.iter().filter(|record| record.job == job && found == name) {
                alive.jobs.insert(job.into());
                alive.runs.extend(task.parse().ok().and_then(|k: usize| record.runs.get(k)).cloned());
            }
        }
        alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_the_queue_are_known_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("submissions.jsonl");
        let mut ledger = Ledger::open(&path).unwrap();
        assert!(ledger.alive("album-x").unwrap().jobs.is_empty(), "nothing is asked without jobs");
        ledger.note("12", &["a".into(), "b".into()]).unwrap();
        ledger.note("13", &[]).unwrap();
        assert!(Ledger::open(&path).is_err(), "two at once");
        drop(ledger);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"job\":\"1").unwrap();
        let ledger = Ledger::open(&path).unwrap();
        let alive = ledger.among("12 1 album-x\n13 N/A album-x\n14 0 album-x\n12 0 other\n", "album-x");
        assert_eq!(alive.jobs.into_iter().collect::<Vec<_>>(), ["12", "13"]);
        assert_eq!(alive.runs.into_iter().collect::<Vec<_>>(), ["b"]);
    }
}

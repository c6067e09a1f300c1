//! One process that records chunks.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use super::parts::Chunk;
use super::{Recipe, RecordError};
use crate::python::Python;

const SCRIPT: &str = include_str!("../../python/play.py");

/// Lines of standard error that are quoted.
const LAST_WORDS: usize = 8;

/// What a process with this number said.
pub(super) type Said = (usize, Option<String>);

pub(super) struct Worker {
    pub number: usize,
    pub chunk: Chunk,
    /// Episodes of the chunk so far.
    pub recorded: usize,
    child: Child,
    requests: Option<ChildStdin>,
    log: PathBuf,
}

impl Worker {
    /// Starts a process with its first chunk. Its lines go to `answers`, `None` at the end.
    pub fn start(
        number: usize,
        python: &Python,
        recipe: &Recipe,
        work: &Path,
        chunk: Chunk,
        answers: &Sender<Said>,
    ) -> Result<Self, RecordError> {
        // A file holds all that was said when the process is gone, and needs no reader.
        let log = work.join(format!("worker-{number}.log"));
        let errors = File::create(&log).map_err(RecordError::io(&log))?;
        let mut child = python
            .command()
            .args(["-c", SCRIPT, recipe.environment.name, &recipe.kind.to_string(), &recipe.rows.to_string()])
            .arg(work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|source| RecordError::Start {
                interpreter: python.interpreter().to_path_buf(),
                source,
            })?;
        let requests = child.stdin.take();
        if let Some(output) = child.stdout.take() {
            let answers = answers.clone();
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if answers.send((number, Some(line))).is_err() {
                        return; // nobody listens any more
                    }
                }
                let _ = answers.send((number, None)); // likewise
            });
        }
        let mut worker = Self { number, chunk, recorded: 0, child, requests, log };
        worker.request();
        Ok(worker)
    }

    /// Goes on with another chunk.
    pub fn next(&mut self, chunk: Chunk) {
        self.chunk = chunk;
        self.recorded = 0;
        self.request();
    }

    fn request(&mut self) {
        let seeds: Vec<String> = self.chunk.seeds.iter().map(u64::to_string).collect();
        let line = format!("{}\t{}\n", seeds.join(" "), self.chunk.name);
        if let Some(requests) = &mut self.requests {
            // If the process is gone, the end of its answers says so.
            let _ = requests.write_all(line.as_bytes());
        }
    }

    /// Ends the process and says what became of it.
    pub fn last_words(&mut self) -> String {
        // One that dies closes its pipes a little before it has a status.
        for _ in 0..50 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let status = self.end();
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let mut lines: Vec<&str> = log.lines().rev().take(LAST_WORDS).collect();
        lines.reverse();
        match lines.is_empty() {
            true => format!("{status}, without a word"),
            false => format!("{status}, after it said\n{}", lines.join("\n")),
        }
    }

    fn end(&mut self) -> String {
        drop(self.requests.take());
        // It may be gone already, with a status that tells more than that of a kill.
        let status = match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            _ => self.child.kill().and_then(|()| self.child.wait()),
        };
        status.map_or_else(|e| e.to_string(), |status| status.to_string())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
        // Useful only to explain a loss, which has been told by now.
        let _ = fs::remove_file(&self.log);
    }
}

//! One worker process.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::protocol::{Broken, Message, Reader};
use crate::python::Python;

const SCRIPT: &str = include_str!("../../python/worker.py");

/// Lines of standard error that are kept for messages.
const KEPT_LINES: usize = 12;

/// Of each line, no more than this.
const KEPT_BYTES: u64 = 1000;

/// A running worker. Dropped, it is ended.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    reader: Reader,
    last_lines: Arc<Mutex<VecDeque<String>>>,
}

impl Worker {
    /// Starts a worker.
    pub fn start(python: &Python, environment: &str, observation_dim: usize) -> io::Result<Self> {
        let mut command = python.command();
        command.args(["-c", SCRIPT, environment]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let last_lines = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(pipe) = child.stderr.take() {
            let last_lines = Arc::clone(&last_lines);
            thread::spawn(move || keep_last_lines(BufReader::new(pipe), &last_lines));
        }
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, input, output, reader: Reader::new(observation_dim), last_lines })
    }

    /// Where what it says comes from.
    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Reads what is there of its output, or waits for some.
    pub fn read(&mut self) {
        self.reader.read(&mut self.output);
    }

    /// The next message of what was read.
    pub fn next(&mut self) -> Option<Result<Message, Broken>> {
        self.reader.next()
    }

    /// Sends a request. That the worker is gone is told by its output, so it is no error here.
    pub fn send(&mut self, request: &[u8]) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(request);
        }
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the worker. Returns how it ended, where it had done so by itself, and what it
    /// said last on standard error.
    pub fn end(&mut self) -> (Option<String>, String) {
        self.input = None;
        // Whoever closed its output is about to end; wait for its status.
        let status = self.exit_within(Duration::from_millis(100));
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Standard error comes through a thread, which may be a little behind.
        thread::sleep(Duration::from_millis(20));
        let lines = self.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        (status, lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n"))
    }

    /// Asks the worker to end, without waiting for it.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    fn exit_within(&mut self, limit: Duration) -> Option<String> {
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status.to_string()),
                Ok(None) if start.elapsed() < limit => thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.hang_up();
        if self.exit_within(Duration::from_millis(300)).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn keep_last_lines(mut pipe: impl BufRead, kept: &Mutex<VecDeque<String>>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match io::Read::take(&mut pipe, KEPT_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(text);
    }
}

//! One worker process and its pipes.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::interpreter::Python;
use super::protocol::{Broken, Message, Reader};
use super::suites::Suite;

/// The host that every worker runs.
const HOST: &str = include_str!("worker.py");

/// Lines of standard error kept for messages.
const KEPT_LINES: usize = 12;

/// Maximum bytes kept per line.
const KEPT_BYTES: u64 = 1000;

/// A running worker, killed on drop.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    reader: Reader,
    last_lines: Arc<Mutex<VecDeque<String>>>,
    /// Fills `last_lines`.
    errors: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a worker.
    pub fn start(python: &Python, suite: &Suite) -> io::Result<Self> {
        let mut command = python.command();
        command.args(["-c", HOST, suite.file, suite.source]).args(&suite.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let last_lines = Arc::new(Mutex::new(VecDeque::new()));
        let errors = child.stderr.take().map(|pipe| {
            let last_lines = Arc::clone(&last_lines);
            thread::spawn(move || keep_last_lines(BufReader::new(pipe), &last_lines))
        });
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, input, output, reader: Reader::new(), last_lines, errors })
    }

    /// The pipe of its output.
    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Reads the available output; blocks if there is none.
    pub fn read(&mut self) {
        self.reader.read(&mut self.output);
    }

    /// The next complete message.
    pub fn next(&mut self) -> Option<Result<Message, Broken>> {
        self.reader.next()
    }

    /// Sends a request. A dead worker is noticed at the end of its output, so a failure here is ignored.
    pub fn send(&mut self, request: &[u8]) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(request);
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the worker. Returns its exit status, if it exited by itself, and its last lines on standard
    /// error.
    pub fn end(&mut self) -> (Option<String>, String) {
        self.input = None;
        // A worker that closed its output is about to exit; wait for its status.
        let status = self.exit_by(Instant::now() + Duration::from_millis(100));
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A thread reads standard error and may lag behind. It ends with the worker, unless a child process
        // keeps the pipe open.
        let patience = Instant::now() + Duration::from_millis(500);
        while self.errors.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < patience {
            thread::sleep(Duration::from_millis(5));
        }
        let lines = self.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        (status, lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n"))
    }

    /// Asks the worker to exit, without waiting.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Waits until this time for the worker to exit, then kills it.
    pub fn end_by(&mut self, deadline: Instant) {
        if self.exit_by(deadline).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn exit_by(&mut self, deadline: Instant) -> Option<String> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status.to_string()),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.hang_up();
        self.end_by(Instant::now());
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

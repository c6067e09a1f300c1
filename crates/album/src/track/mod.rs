//! Sends the logs of a run to a tracking server.
//!
//! A background thread does the sending; training only puts rows into a queue and never blocks. If the server is
//! slow, refuses or disappears, its copy lacks rows and the user gets a warning; the run directory is always
//! complete.
//!
//! `tracker.json` in the run directory holds the server's id of the run, so that a resumed run continues there.

mod mlflow;
#[cfg(test)]
mod tests;
pub mod wandb;

use crate::error::Error;
use crate::record_file;
use crate::run::{Finished, Run};
use album_train::Event;
use mlflow::{Client, Failure};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Name of the file with the server's id of the run.
const NOTE: &str = "tracker.json";
/// Capacity of the queue; further rows are dropped.
const QUEUE: usize = 4096;
/// Timeout of a request, and of the wait for the last rows at the end of a run.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The server that a run is logged to: `mlflow:http://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Address of the MLflow server.
    uri: String,
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |found: &str| {
            Err(Error::Usage(format!("--track {text}: found {found}; expected mlflow:http://HOST:PORT")))
        };
        let Some(uri) = text.strip_prefix("mlflow:") else { return refuse("no tracker that album knows") };
        let Some(host) = uri.strip_prefix("http://").or(uri.strip_prefix("https://")) else {
            return refuse("an address that is neither http nor https");
        };
        if host.split('/').next().is_none_or(|host| host.is_empty() || host.contains('@')) {
            // A password would end up in the run directory, where the address is stored.
            return refuse("no host, or a password in the address");
        }
        Ok(Target { uri: uri.trim_end_matches('/').to_owned() })
    }
}

/// Contents of `tracker.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    tracker: String,
    uri: String,
    run_id: String,
}

/// Description of a new run for the server.
#[derive(Clone, Debug, Default)]
struct About {
    experiment: String,
    name: String,
    params: Vec<(String, String)>,
}

/// A message to the background thread.
enum Entry {
    Row { step: u64, time: u64, row: Vec<(String, f64)> },
    End(&'static str),
}

/// Sends the rows of a run to a server.
pub struct Tracker {
    queue: SyncSender<Entry>,
    said: Receiver<String>,
    /// Set when the run has ended; nothing is attempted after it.
    deadline: Arc<Mutex<Option<Instant>>>,
    thread: JoinHandle<()>,
    uri: String,
    patience: Duration,
    dropped: u64,
}

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracker").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl Tracker {
    /// The tracker of a run: `target` if given, else the server that the run was logged to before, if any.
    pub fn of_run(target: Option<&Target>, run: &Run) -> Result<Option<Self>, Error> {
        let note = read_note(run.path())?;
        let uri = match (target, &note) {
            (Some(target), _) => target.uri.clone(),
            // Parse it again: the file may have been written by someone else.
            (None, Some(note)) => format!("mlflow:{}", note.uri).parse::<Target>()?.uri,
            (None, None) => return Ok(None),
        };
        let config = run.config();
        let about = About {
            experiment: config.problem.to_string(),
            name: format!("{}-seed{}", config.agent, config.seed),
            params: params(&config.to_toml()?)?,
        };
        let note = note.filter(|note| note.uri == uri);
        Ok(Some(Self::start(&uri, run.path(), note, about, PATIENCE)))
    }

    fn start(uri: &str, run: &Path, note: Option<Note>, about: About, patience: Duration) -> Self {
        let (queue, entries) = sync_channel(QUEUE);
        let (say, said) = channel();
        let deadline: Arc<Mutex<Option<Instant>>> = Arc::default();
        let sending = Sending {
            uri: uri.to_owned(),
            run: run.to_path_buf(),
            note,
            about,
            entries,
            say,
            deadline: Arc::clone(&deadline),
            patience,
            unreachable: false,
        };
        let thread = std::thread::spawn(move || sending.work());
        Tracker { queue, said, deadline, thread, uri: uri.to_owned(), patience, dropped: 0 }
    }

    /// Queues an event without blocking; returns warnings for the user.
    pub fn observe(&mut self, event: &Event<'_>) -> Vec<String> {
        let (step, row) = match event {
            Event::Logged { step, row, .. } => (*step, row.to_vec()),
            Event::Evaluated { evaluation, .. } => (evaluation.step, evaluation.summary().row()),
            _ => return self.said.try_iter().collect(),
        };
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Entry::Row { step, time: now(), row }) {
            self.dropped += 1;
        }
        self.said.try_iter().collect()
    }

    /// Reports how the run ended, and waits at most a few seconds for queued rows; returns warnings.
    pub fn finish(self, outcome: &Result<Finished, Error>) -> Vec<String> {
        let status = match outcome {
            Ok(finished) if finished.result.finished => "FINISHED",
            Ok(_) => "KILLED",
            Err(_) => "FAILED",
        };
        self.end(status)
    }

    fn end(self, status: &'static str) -> Vec<String> {
        let Tracker { queue, said, deadline, thread, uri, patience, dropped } = self;
        *deadline.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + patience);
        let _ = queue.try_send(Entry::End(status));
        drop(queue);
        // A request in progress ends by its own timeout; wait no longer than for both timeouts.
        let until = Instant::now() + 2 * patience + Duration::from_secs(1);
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut told: Vec<String> = said.try_iter().collect();
        if dropped > 0 {
            told.push(format!(
                "{uri}: {dropped} rows were not sent: the server was too slow; the run's own logs have them"
            ));
        }
        told
    }
}

/// State of the background thread.
struct Sending {
    uri: String,
    run: PathBuf,
    note: Option<Note>,
    about: About,
    entries: Receiver<Entry>,
    say: Sender<String>,
    deadline: Arc<Mutex<Option<Instant>>>,
    patience: Duration,
    /// Whether the user has been told that the server does not respond.
    unreachable: bool,
}

impl Sending {
    fn work(mut self) {
        let client = Client::new(&self.uri, self.patience);
        let Some(run_id) = self.attempt(|sending| sending.open(&client)) else {
            let rows = self.entries.iter().filter(|entry| matches!(entry, Entry::Row { .. })).count();
            self.tell(format!("the run was not logged there ({rows} rows)"));
            return;
        };
        let mut lost = 0;
        let mut ended = None;
        while ended.is_none() {
            let Some(first) = self.next() else { break };
            let mut metrics = Vec::new();
            let mut rows = 0;
            // Batch all queued rows into one request, up to the server's limits.
            let mut entry = Some(first);
            while let Some(found) = entry.take() {
                match found {
                    Entry::End(status) => ended = Some(status),
                    Entry::Row { step, time, row } => {
                        rows += 1;
                        metrics.extend(mlflow::metrics(step, time, &row));
                        if metrics.len() + 200 < mlflow::MOST_METRICS {
                            entry = self.entries.try_recv().ok();
                        }
                    }
                }
            }
            if rows > 0 && self.attempt(|_| client.log(&run_id, &metrics, &[])).is_none() {
                lost += rows;
            }
        }
        if lost > 0 {
            self.tell(format!("{lost} rows were not sent; the run's own logs have them"));
        }
        let status = ended.unwrap_or("KILLED");
        if self.attempt(|_| client.update(&run_id, status, Some(now()))).is_none() {
            self.tell(format!("the end of the run ({status}) was not sent"));
        }
    }

    /// The next entry; `None` when the queue is closed.
    fn next(&self) -> Option<Entry> {
        loop {
            match self.entries.recv_timeout(Duration::from_millis(100)) {
                Ok(entry) => return Some(entry),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Continues the existing run on the server, or creates a new one.
    fn open(&mut self, client: &Client) -> Result<String, Failure> {
        if let Some(note) = &self.note {
            match client.update(&note.run_id, "RUNNING", None) {
                Ok(()) => return Ok(note.run_id.clone()),
                Err(Failure::Missing(_)) => {
                    self.tell(format!("its run {} is gone; a new one begins", note.run_id));
                    self.note = None;
                }
                Err(other) => return Err(other),
            }
        }
        let experiment = client.experiment(&self.about.experiment)?;
        let run_id = client.create(&experiment, &self.about.name, now())?;
        for params in self.about.params.chunks(mlflow::MOST_PARAMS) {
            client.log(&run_id, &[], params)?;
        }
        let note = Note { tracker: "mlflow".into(), uri: self.uri.clone(), run_id: run_id.clone() };
        record_file::write(&self.run.join(NOTE), &note).map_err(|e| Failure::Refused(e.to_string()))?;
        Ok(run_id)
    }

    /// Retries until it succeeds, the server refuses, or the deadline after the end of the run has passed.
    fn attempt<T>(&mut self, mut what: impl FnMut(&mut Self) -> Result<T, Failure>) -> Option<T> {
        let mut pause = self.patience / 10;
        loop {
            match what(self) {
                Ok(done) => {
                    if std::mem::take(&mut self.unreachable) {
                        self.tell("it answers again".into());
                    }
                    return Some(done);
                }
                Err(Failure::Refused(reason) | Failure::Missing(reason)) => {
                    self.tell(format!("it refuses: {reason}"));
                    return None;
                }
                Err(Failure::Unreachable(reason)) => {
                    if !std::mem::replace(&mut self.unreachable, true) {
                        self.tell(format!("{reason}; training goes on, and rows wait"));
                    }
                }
            }
            let again = Instant::now() + pause;
            while Instant::now() < again {
                let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return None;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    fn tell(&self, what: String) {
        let _ = self.say.send(format!("{}: {what}", self.uri)); // nobody may be left to hear
    }
}

fn read_note(run: &Path) -> Result<Option<Note>, Error> {
    record_file::read(&run.join(NOTE)).map_err(|e| match e {
        Error::Load(problem) => {
            Error::Load(format!("{problem}; delete it to begin a new run in the tracker"))
        }
        other => other,
    })
}

/// Flattens the configuration into pairs such as `album.k` and `10`.
fn params(config: &str) -> Result<Vec<(String, String)>, Error> {
    let table: toml::Table = config.parse().map_err(|e: toml::de::Error| Error::Config(e.to_string()))?;
    let mut pairs = Vec::new();
    flatten("", &table, &mut pairs);
    Ok(pairs)
}

fn flatten(prefix: &str, table: &toml::Table, pairs: &mut Vec<(String, String)>) {
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => flatten(&format!("{prefix}{key}."), inner, pairs),
            toml::Value::String(text) => pairs.push((format!("{prefix}{key}"), text.clone())),
            other => pairs.push((format!("{prefix}{key}"), other.to_string())),
        }
    }
}

/// Unix time in milliseconds.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

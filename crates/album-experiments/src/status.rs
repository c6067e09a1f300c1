//! The progress of a plan.

use crate::plan::{Plan, PlannedRun};
use crate::results::{Pace, Results, State};
use album_base::number::{grouped, plural, seconds};
use serde::{Serialize, Serializer};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The states of all runs of a plan.
#[derive(Debug)]
pub struct Status<'a> {
    plan: &'a Plan,
    results: &'a Results,
    rows: Vec<StatusRow<'a>>,
}

#[derive(Debug)]
struct StatusRow<'a> {
    run: &'a PlannedRun,
    state: State,
    step: u64,
    ms_per_step: f64,
}

/// The status as JSON.
#[derive(Debug, Serialize)]
pub struct StatusJson {
    experiment: String,
    scale: String,
    finished: usize,
    running: usize,
    interrupted: usize,
    failed: usize,
    waiting: usize,
    /// Remaining seconds of work if runs were sequential; `None` without measurements.
    seconds_left: Option<f64>,
    /// The report page, if written.
    report: Option<PathBuf>,
    runs: Vec<JsonRun>,
}

#[derive(Debug, Serialize)]
struct JsonRun {
    id: String,
    state: &'static str,
    step: u64,
    steps: u64,
    success: Option<f64>,
    path: String,
    log: String,
    failure: Option<String>,
}

impl<'a> Status<'a> {
    /// Reads the states. Files of waiting or finished runs are not opened, except for a few whose speed
    /// predicts the remaining time.
    pub fn read(plan: &'a Plan, results: &'a Results) -> Self {
        const TIMED: usize = 16;
        let listing = results.list();
        let mut timed = 0;
        let row = |run: &'a PlannedRun| {
            let state = listing.state(run);
            let pace = match state {
                State::Waiting => Pace::default(),
                State::Finished if timed >= TIMED => Pace::default(),
                _ => {
                    timed += usize::from(matches!(state, State::Finished));
                    results.pace(&run.id)
                }
            };
            let step = if matches!(state, State::Finished) { run.steps() } else { pace.step };
            StatusRow { run, state, step, ms_per_step: pace.ms_per_step }
        };
        Status { plan, results, rows: plan.runs.iter().map(row).collect() }
    }

    fn count(&self, word: &str) -> usize {
        self.rows.iter().filter(|row| row.state.word() == word).count()
    }

    /// Remaining seconds of work, by the speed of the runs so far.
    fn seconds_left(&self) -> Option<f64> {
        let speeds: Vec<f64> = self.rows.iter().map(|row| row.ms_per_step).filter(|ms| *ms > 0.0).collect();
        let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
        let left = |row: &StatusRow<'_>| {
            let ms = if row.ms_per_step > 0.0 { row.ms_per_step } else { mean };
            (row.run.steps().saturating_sub(row.step)) as f64 * ms / 1e3
        };
        (!speeds.is_empty()).then(|| self.rows.iter().map(left).sum())
    }

    /// One line: the number of runs in each state.
    pub fn headline(&self) -> String {
        let words = ["finished", "running", "interrupted", "failed", "waiting"];
        let parts: Vec<String> = words
            .iter()
            .map(|word| (self.count(word), word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{} {word}", grouped(count as i64)))
            .collect();
        format!("{}: {}, {}", self.plan.name(), plural(self.rows.len(), "run", "runs"), parts.join(", "))
    }

    /// The text for a terminal.
    pub fn text(&self) -> String {
        let mut text = self.headline();
        let (done, all): (u64, u64) =
            self.rows.iter().fold((0, 0), |sum, row| (sum.0 + row.step, sum.1 + row.run.steps()));
        let _ = write!(text, "\n{}", bar(done, all));
        let beside = self.count("running").max(1) as f64;
        match self.seconds_left() {
            Some(left) if left > 0.0 => {
                let _ = write!(text, "  about {} left", seconds(left / beside));
                if beside > 1.0 {
                    let _ = write!(text, " with {beside} in parallel");
                }
            }
            _ => {}
        }
        for row in &self.rows {
            match &row.state {
                State::Running | State::Interrupted => {
                    let _ = write!(
                        text,
                        "\n{:<12} {}  {} of {} steps  {}",
                        row.state.word(),
                        bar(row.step, row.run.steps()),
                        grouped(row.step as i64),
                        grouped(row.run.steps() as i64),
                        row.run.id
                    );
                }
                State::Failed(note) => {
                    let log = self.results.log(&row.run.id);
                    let code = note.code.map_or("ended by a signal".into(), |code| format!("exit {code}"));
                    let first = note.message.lines().next().unwrap_or_default();
                    let _ = write!(
                        text,
                        "\nfailed       {}: {code}: {first}\n             log {}",
                        row.run.id,
                        log.display()
                    );
                }
                State::Waiting | State::Finished => {}
            }
        }
        text
    }

    /// The status as JSON.
    pub fn json(&self, report: Option<&Path>) -> StatusJson {
        let run = |row: &StatusRow<'_>| JsonRun {
            id: row.run.id.clone(),
            state: row.state.word(),
            step: row.step,
            steps: row.run.steps(),
            success: match row.state {
                State::Waiting => None,
                _ => self.results.result(&row.run.id).and_then(|result| result.success),
            },
            path: self.results.run(&row.run.id).display().to_string(),
            log: self.results.log(&row.run.id).display().to_string(),
            failure: match &row.state {
                State::Failed(note) => Some(note.message.clone()),
                _ => None,
            },
        };
        StatusJson {
            experiment: self.plan.experiment.name.clone(),
            scale: self.plan.scale.to_string(),
            finished: self.count("finished"),
            running: self.count("running"),
            interrupted: self.count("interrupted"),
            failed: self.count("failed"),
            waiting: self.count("waiting"),
            seconds_left: self.seconds_left(),
            report: report.map(Path::to_path_buf),
            runs: self.rows.iter().map(run).collect(),
        }
    }
}

/// As [`Status::json`], put together only where it is written: a plan has thousands of runs.
impl Serialize for Status<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json(None).serialize(serializer)
    }
}

/// `[=====>    ] 52 %`.
fn bar(done: u64, all: u64) -> String {
    const WIDTH: usize = 25;
    let share = if all == 0 { 1.0 } else { (done as f64 / all as f64).min(1.0) };
    let full = (share * WIDTH as f64) as usize;
    let head = if full < WIDTH && full > 0 { ">" } else { "" };
    let body = format!("{}{head}", "=".repeat(full.saturating_sub(head.len())));
    format!("[{body:<WIDTH$}] {:>3.0} %", (100.0 * share).floor())
}

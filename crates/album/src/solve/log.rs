//! Solves a log: from its files to a policy in the log's own labels.

use crate::Error;
use album_base::atomic;
use album_base::number::compact;
use album_data::table::{Table, TableWriter};
use album_tabular::log::{Advice, Interval, Log, LogColumns, Question};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A solved log.
#[derive(Debug)]
pub struct LogRun {
    /// The summary.
    pub summary: LogSummary,
    /// The log.
    pub log: Log,
    /// The policy and its values.
    pub advice: Advice,
}

/// The summary of a solved log; the JSON object of `album solve` on a log.
#[derive(Debug, Serialize)]
pub struct LogSummary {
    /// The files.
    pub input: Vec<String>,
    /// The discount factor.
    pub gamma: f64,
    /// Rows that an action must have to be recommended.
    pub min_count: u64,
    /// Resamples of the bootstrap; 0 for none.
    pub bootstrap: usize,
    /// Number of transitions.
    pub transitions: usize,
    /// Number of episodes.
    pub episodes: usize,
    /// Number of distinct states.
    pub states: usize,
    /// Number of distinct actions.
    pub actions: usize,
    /// Number of recorded state-action pairs.
    pub pairs: usize,
    /// States with more than one recorded action.
    pub choices: usize,
    /// States where the best action is not the most frequent one.
    pub changes: usize,
    /// States where no action has enough rows.
    pub unsupported: usize,
    /// States where the gain of the best action is significantly above 0.
    pub certain: Option<usize>,
    /// The policy's value at initial states.
    pub initial_value: f64,
    /// Its 95 % interval.
    pub initial_value_interval: Option<Interval>,
    /// The value of the recorded behaviour at initial states in the same model, to compare the policy's with.
    pub initial_behaviour_value: f64,
    /// The recorded discounted return.
    pub recorded_return: f64,
    /// Its 95 % interval.
    pub recorded_return_interval: Option<Interval>,
    /// The 95 % interval of the policy's improvement over the recorded return.
    pub improvement_interval: Option<Interval>,
    /// The largest residual of the Bellman equation.
    pub bellman_residual: f64,
    /// Time to read the files.
    pub seconds_read: f64,
    /// Time for the policy and the bootstrap.
    pub seconds_solution: f64,
    /// Warnings about the log.
    pub warnings: Vec<String>,
}

/// Output files of a solved log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOutputs<'a> {
    policy: Option<&'a Path>,
    page: Option<&'a Path>,
}

impl<'a> LogOutputs<'a> {
    /// The policy as a table (.parquet, .csv or .npz) and an HTML page, each if given.
    pub fn new(policy: Option<&'a Path>, page: Option<&'a Path>) -> Result<Self, Error> {
        if let Some(path) = policy {
            let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
            if !["parquet", "csv", "npz"].contains(&end.as_str()) {
                return Err(Error::Usage(format!(
                    "--out is {}; expected a name that ends in .parquet, .csv or .npz",
                    path.display()
                )));
            }
        }
        Ok(LogOutputs { policy, page })
    }
}

/// The files of a log: itself, or the tables of a folder in order of name.
fn table_files(sources: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for source in sources {
        if !source.is_dir() {
            files.push(source.clone());
            continue;
        }
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(source).map_err(Error::io(source))? {
            let path = entry.map_err(Error::io(source))?.path();
            let name =
                path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
            if [".parquet", ".csv", ".csv.gz", ".tsv", ".npz"].iter().any(|end| name.ends_with(end)) {
                inside.push(path);
            }
        }
        if inside.is_empty() {
            let problem =
                format!("{}: no .parquet, .csv, .csv.gz, .tsv or .npz file in it", source.display());
            return Err(Error::Load(problem));
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// A warning if the model misjudges the recorded behaviour, so that its other values are unreliable too.
fn misfit(advice: &Advice) -> Option<String> {
    let (model, recorded) = (advice.initial_behaviour_value, advice.recorded_return);
    ((model - recorded).abs() > 0.1 * model.abs().max(recorded.abs())).then(|| {
        format!(
            "the model puts the recorded behaviour at {}, its episodes returned {}: the state leaves out something that \
             values depend on, such as the time that is left; compare the policy with the behaviour, not with the returns",
            compact(model),
            compact(recorded)
        )
    })
}

impl LogRun {
    /// Reads and solves a log given as files or folders. Refuses first if an output would overwrite an input.
    pub fn new(
        sources: &[PathBuf],
        columns: &LogColumns,
        question: &Question,
        outputs: &LogOutputs<'_>,
    ) -> Result<Self, Error> {
        let files = &table_files(sources)?;
        super::check_outputs(files, [("--out", outputs.policy), ("--report", outputs.page)])?;
        album_tabular::check_gamma(question.gamma)?;
        let start = Instant::now();
        let log = Log::read(&Table::open(files)?, columns)?;
        let seconds_read = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let advice = Advice::new(&log, question)?;
        let states = 0..advice.states();
        let count = |holds: &dyn Fn(usize) -> bool| states.clone().filter(|&s| holds(s)).count();
        let mut actions = advice.empirical.pair_actions.clone();
        actions.sort_unstable();
        actions.dedup();
        let intervals = advice.intervals.as_ref();
        let summary = LogSummary {
            input: files.iter().map(|file| file.display().to_string()).collect(),
            gamma: question.gamma,
            min_count: question.min_count,
            bootstrap: question.bootstrap,
            transitions: log.data.len(),
            episodes: log.episodes(),
            states: advice.states(),
            actions: actions.len(),
            pairs: advice.empirical.mdp.pairs(),
            choices: count(&|s| advice.is_choice(s)),
            changes: count(&|s| advice.pair(s) != advice.usual[s]),
            unsupported: count(&|s| advice.best[s].is_none()),
            certain: intervals.map(|intervals| intervals.certain.iter().filter(|&&certain| certain).count()),
            initial_value: advice.initial_value,
            initial_value_interval: intervals.map(|intervals| intervals.initial_value),
            initial_behaviour_value: advice.initial_behaviour_value,
            recorded_return: advice.recorded_return,
            recorded_return_interval: intervals.map(|intervals| intervals.recorded_return),
            improvement_interval: intervals.map(|intervals| intervals.improvement),
            bellman_residual: advice.residual,
            seconds_read,
            seconds_solution: start.elapsed().as_secs_f64(),
            warnings: log.warnings.iter().cloned().chain(misfit(&advice)).collect(),
        };
        Ok(Self { summary, log, advice })
    }

    /// Writes the policy and the page; both are complete before either replaces a file.
    pub fn write(&self, outputs: &LogOutputs<'_>) -> Result<(), Error> {
        let table = outputs
            .policy
            .map(|path| TableWriter::write(path, &self.log.policy_columns(&self.advice)))
            .transpose()?;
        if let Some(path) = outputs.page {
            let html = super::page(self).render();
            atomic::write(path, html.as_bytes()).map_err(Error::io(path))?;
        }
        Ok(table.map_or(Ok(()), TableWriter::commit)?)
    }
}

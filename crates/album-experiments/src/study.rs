//! Runs side by side: what a report is about.

use crate::experiment::{Protocol, Scale, Source};
use album_train::Records;
use std::path::PathBuf;

/// A comparison, from an [`Experiment`](crate::Experiment) or from run directories alone.
#[derive(Clone, Debug)]
pub struct Study {
    /// A short name, fit for a file.
    pub name: String,
    /// One line.
    pub title: String,
    /// What is asked; may be empty.
    pub question: String,
    /// Tables and figures of the paper; may be empty.
    pub reference: String,
    /// The scale of an experiment.
    pub scale: Option<Scale>,
    /// The table with the paper's numbers.
    pub published: Option<String>,
    /// Which evaluations count.
    pub protocol: Protocol,
    /// What is measured, in the words of the published tables.
    pub metrics: Vec<String>,
    /// Whether to show value maps.
    pub value_maps: bool,
    /// The command that makes all of it.
    pub command: String,
    /// What is compared, variant by variant and in each task by task.
    pub arms: Vec<Arm>,
    /// A folder that a command filled with figures and tables, instead of arms.
    pub outputs: Option<PathBuf>,
}

/// One variant on one task, with a run for each seed.
#[derive(Clone, Debug)]
pub struct Arm {
    /// The variant, as tables call it.
    pub label: String,
    /// The published method; empty where none stands beside it.
    pub method: String,
    /// The published setting.
    pub setting: String,
    /// The OGBench name of the task.
    pub task: String,
    /// The variant, by its label, that changes in success are measured from.
    pub baseline: Option<String>,
    /// The step of the evaluation that counts, where it is not the end.
    pub at: Option<u64>,
    /// Where the numbers come from.
    pub source: Source,
    /// The runs, by seed.
    pub runs: Vec<Run>,
}

/// One run of an arm.
#[derive(Clone, Debug)]
pub struct Run {
    /// The master seed.
    pub seed: u64,
    /// Its directory.
    pub path: PathBuf,
    /// The command that makes it.
    pub command: String,
    /// What it has written; nothing if it has not begun.
    pub records: Option<Records>,
    /// Why it failed, if it did; its numbers do not count then.
    pub failure: Option<String>,
}

impl Run {
    /// Whether all its updates are done.
    pub fn finished(&self) -> bool {
        self.records.as_ref().and_then(|r| r.result.as_ref()).is_some_and(|result| result.finished)
    }
}

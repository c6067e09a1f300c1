//! Studies: the runs that a report compares.

use crate::experiment::{Protocol, Scale, Source};
use album_train::Records;
use std::path::PathBuf;

/// A comparison, from an [`Experiment`](crate::Experiment) or from run directories alone.
#[derive(Clone, Debug)]
pub struct Study {
    /// A short name, valid in file names.
    pub name: String,
    /// One line.
    pub title: String,
    /// The question; may be empty.
    pub question: String,
    /// Tables and figures of the paper; may be empty.
    pub reference: String,
    /// The scale of an experiment.
    pub scale: Option<Scale>,
    /// The table with the paper's numbers.
    pub published: Option<String>,
    /// Which evaluations count.
    pub protocol: Protocol,
    /// The metrics, named as in the published tables.
    pub metrics: Vec<String>,
    /// Whether to show value maps.
    pub value_maps: bool,
    /// The command that reproduces it.
    pub command: String,
    /// The arms, by variant and task.
    pub arms: Vec<Arm>,
    /// A folder of figures and tables written by a command, instead of arms.
    pub outputs: Option<PathBuf>,
}

/// One variant on one task, with a run for each seed.
#[derive(Clone, Debug)]
pub struct Arm {
    /// The variant's name in tables.
    pub label: String,
    /// The published method; empty for none.
    pub method: String,
    /// The published setting.
    pub setting: String,
    /// The OGBench name of the task.
    pub task: String,
    /// The label of the variant that changes in success are relative to.
    pub baseline: Option<String>,
    /// The step of the evaluation that counts, if not the last.
    pub at: Option<u64>,
    /// The source of the numbers.
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
    /// The command that reproduces it.
    pub command: String,
    /// Its files; `None` if it has not started.
    pub records: Option<Records>,
    /// Why it failed, if it did; its numbers then do not count.
    pub failure: Option<String>,
}

impl Run {
    /// Whether all updates are done.
    pub fn finished(&self) -> bool {
        self.records.as_ref().and_then(|r| r.result.as_ref()).is_some_and(|result| result.finished)
    }
}

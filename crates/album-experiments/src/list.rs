//! The list of built-in experiments.

use crate::error::ExperimentError;
use crate::experiment::{Experiment, Scale, names};
use album_base::number::grouped;
use album_report::table::Table;
use serde::Serialize;
use std::fmt;

/// All built-in experiments, in the order of the paper.
#[derive(Debug, Serialize)]
pub struct ExperimentList {
    /// The experiments.
    pub experiments: Vec<ListedExperiment>,
}

/// An experiment and its size.
#[derive(Debug, Serialize)]
pub struct ListedExperiment {
    /// The argument of `album reproduce`.
    pub name: &'static str,
    /// One-line title.
    pub title: String,
    /// Its tables and figures in the paper.
    pub reference: String,
    /// Number of runs at the small scale.
    pub small: usize,
    /// Number of runs at the paper's scale.
    pub paper: usize,
}

impl ExperimentList {
    /// Reads all of them.
    pub fn new() -> Result<Self, ExperimentError> {
        let listed = |name| {
            let experiment = Experiment::find(name)?;
            let (small, paper) = (experiment.run_count(Scale::Small)?, experiment.run_count(Scale::Paper)?);
            Ok(ListedExperiment {
                name,
                title: experiment.title,
                reference: experiment.reference,
                small,
                paper,
            })
        };
        Ok(ExperimentList { experiments: names().map(listed).collect::<Result<_, ExperimentError>>()? })
    }
}

impl fmt::Display for ExperimentList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["experiment", "what", "in the paper", "runs, small", "runs, paper"];
        let table = self.experiments.iter().fold(Table::new(header), |table, listed| {
            let [small, paper] = [listed.small, listed.paper].map(|runs| grouped(runs as i64));
            table.row([listed.name, &listed.title, &listed.reference, &small, &paper])
        });
        f.write_str(&table.to_text())
    }
}

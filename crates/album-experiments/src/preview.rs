//! A preview of executing a plan.

use crate::executor::slurm::Draft;
use crate::plan::Plan;
use crate::results::Results;
use album_base::number::plural;
use serde::Serialize;
use std::fmt;

/// A plan before it is executed.
#[derive(Debug, Serialize)]
pub struct Preview {
    /// The name of the experiment.
    pub experiment: String,
    /// `small` or `paper`.
    pub scale: String,
    /// The runs.
    pub runs: Vec<PreviewRun>,
    /// What would be submitted to Slurm.
    pub slurm: Option<Draft>,
}

/// A run before it starts.
#[derive(Debug, Serialize)]
pub struct PreviewRun {
    /// Its identifier.
    pub id: String,
    /// `waiting`, `finished`, ...
    pub state: &'static str,
    /// The equivalent command line.
    pub command: String,
}

impl Preview {
    /// Reads the current state; nothing is started.
    pub fn new(plan: &Plan, results: &Results, slurm: Option<Draft>) -> Self {
        let listing = results.list();
        // The first spec of each run names it.
        let mut specs = vec![None; plan.runs.len()];
        for (spec, place) in plan.specs.iter().rev() {
            specs[*place] = Some(spec);
        }
        let runs = plan.runs.iter().zip(specs).map(|(run, spec)| PreviewRun {
            id: run.id.clone(),
            state: listing.state(run).word(),
            command: run.command(spec),
        });
        Preview {
            experiment: plan.experiment.name.clone(),
            scale: plan.scale.to_string(),
            runs: runs.collect(),
            slurm,
        }
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}: {}", self.experiment, self.scale, plural(self.runs.len(), "run", "runs"))?;
        for run in &self.runs {
            write!(f, "\n{:<12} {}\n             {}", run.state, run.id, run.command)?;
        }
        self.slurm.as_ref().map_or(Ok(()), |draft| write!(f, "\n\n{}", draft.text().trim_end()))
    }
}

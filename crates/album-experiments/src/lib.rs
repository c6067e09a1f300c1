//! The paper's experiments as data, their execution, and their results beside the published numbers.
//!
//! From an experiment file to a report:
//!
//! - [`Experiment`]: what `experiments/NAME.toml` holds, compiled in or from a user's file: the question, the grid of
//!   variants, tasks and seeds at two scales, the protocol, the published table;
//! - [`Plan`]: its runs, each once, with names that follow from what they do; [`Results`]: the folder they are kept in;
//! - [`executor`]: does the runs of a plan, on this machine or on a Slurm cluster; [`job`]: one run in its own process;
//! - [`Study`]: runs side by side, from a plan or from run directories alone ([`collect()`]);
//! - [`measure`]: what runs scored, in the words of the published tables; [`mod@estimate`]: each number with its interval,
//!   beside the published one;
//! - [`tables`], [`figures`], [`cost`]: what a report shows; [`write()`]: the report;
//! - [`mod@bench`]: the time and memory of a training step on this machine.
//!
//! ```
//! use album_experiments::{Experiment, Plan, Results, Scale, Selection, Status};
//!
//! let experiment = Experiment::find("k-sweep")?;
//! let plan = Plan::new(experiment, Scale::Small, &Selection { seeds: vec![1], ..Selection::default() })?;
//! assert_eq!(plan.runs.len(), 3); // one for each K
//! println!("{}", plan.runs[0].command(Some(&plan.specs[0].0))); // album train pointmaze-medium-...
//!
//! let results = Results::at(&std::env::temp_dir().join("album-no-such-folder"))?;
//! assert_eq!(Status::read(&plan, &results).headline(), "k-sweep-small: 3 runs, 3 waiting");
//! # Ok::<(), album::Error>(())
//! ```

/// Pairs of a name and the text of `experiments/NAME.ENDING`, compiled in.
macro_rules! embedded {
    ($folder:literal, $ending:literal: $($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../experiments/", $folder, $name, $ending)))),*]
    };
}

pub mod bench;
mod change;
mod check;
mod collect;
pub mod cost;
mod error;
pub mod estimate;
pub mod executor;
mod experiment;
pub mod figures;
pub mod job;
mod list;
mod maps;
pub mod measure;
mod outputs;
mod own;
mod page;
mod plan;
mod preview;
pub mod published;
mod reference;
mod results;
mod runs;
mod status;
pub mod studies;
mod study;
pub mod tables;

pub use collect::{Collection, Skipped, collect};
pub use error::{ExperimentError, ReportError};
pub use experiment::{
    Command, CostOptions, Experiment, Grid, PresetName, Protocol, Scale, Selection, Source, Spec, Variant,
    environment, names,
};
pub use list::{ExperimentList, ListedExperiment};
pub use own::OwnRun;
pub use page::{Written, write};
pub use plan::{Plan, PlannedRun, Request, Work, shell};
pub use preview::{Preview, PreviewRun};
pub use reference::{Reference, methods, same_setting};
pub use results::{FailureNote, Listing, Pace, Results, State};
pub use runs::Tally;
pub use status::{Status, StatusJson};
pub use study::{Arm, Run, Study};

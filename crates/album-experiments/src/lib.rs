//! The experiments of the paper, and what runs say about them.
//!
//! - [`Experiment`]: what `experiments/NAME.toml` holds, compiled in or from a user's file: the question, the grid of
//!   variants, tasks and seeds at two scales, the protocol, the published table;
//! - [`Study`]: runs side by side, from an experiment or from run directories alone; what a report is about;
//! - [`measure`]: what runs scored, in the words of the published tables;
//! - [`mod@estimate`]: each number with its interval, beside the published one;
//! - [`tables`], [`figures`]: what a report shows;
//! - [`write()`]: the report.

mod change;
mod check;
pub mod cost;
mod error;
pub mod estimate;
mod experiment;
pub mod figures;
mod maps;
pub mod measure;
mod outputs;
mod page;
pub mod published;
mod reference;
mod runs;
mod study;
pub mod tables;

pub use error::{ExperimentError, ReportError};
pub use experiment::{
    Experiment, Grid, Protocol, Scale, Selection, Source, Spec, Variant, environment, names,
};
pub use page::{Written, write};
pub use reference::{Reference, methods, same_setting};
pub use runs::Tally;
pub use study::{Arm, Run, Study};

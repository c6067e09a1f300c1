//! The experiments of the paper, and what runs say about them.
//!
//! - [`Experiment`]: what `experiments/NAME.toml` holds, compiled in or from a user's file: the question, the grid of
//!   variants, tasks and seeds at two scales, the protocol, the published table;
//! - [`Study`]: runs side by side, from an experiment or from run directories alone; what a report is about.

mod error;
mod experiment;
mod study;

pub use error::ExperimentError;
pub use experiment::{
    Experiment, Grid, Protocol, Scale, Selection, Source, Spec, Variant, environment, names,
};
pub use study::{Cell, Run, Study};

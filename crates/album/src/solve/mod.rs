//! Exact values: of a tabular dataset as a linear program with its certificate, and of a log with its owner's labels.

mod log;
mod page;
mod program;
mod text;

pub use log::{LogReport, LogRun, table_files};
pub use page::page;
pub use program::{ProgramReport, Sandwich, SolvedProgram, read_program};

use crate::Error;
use std::path::Path;

/// Refuses to write a result over what it was made from.
pub fn refuse_overwriting(input: &Path, output: &Path) -> Result<(), Error> {
    let same = match (input.canonicalize(), output.canonicalize()) {
        (Ok(input), Ok(output)) => input == output,
        _ => input == output,
    };
    match same {
        true => Err(Error::Usage(format!(
            "{} is the input; choose another name for the output",
            output.display()
        ))),
        false => Ok(()),
    }
}

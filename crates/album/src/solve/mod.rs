//! Exact values: of a tabular dataset as a linear program with its certificate, and of a log with its owner's labels.

mod log;
mod page;
mod program;
mod text;

pub use log::{LogReport, LogRun, table_files};
pub use page::page;
pub use program::{ProgramReport, Sandwich, SolvedProgram, read_program};

use crate::Error;
use album_base::files;
use std::path::Path;

/// Refuses to write a result over what it was made from, whatever name or link it is given by.
pub fn refuse_overwriting(input: &Path, output: &Path) -> Result<(), Error> {
    match files::same(input, output) {
        true => Err(Error::Usage(format!(
            "{} is the input; choose another name for the output",
            output.display()
        ))),
        false => Ok(()),
    }
}

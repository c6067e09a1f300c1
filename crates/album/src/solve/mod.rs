//! Exact values: of a tabular dataset as a linear program with its certificate, and of a log with its owner's labels.

mod log;
mod page;
mod program;
mod text;

pub use log::{LogOutputs, LogReport, LogRun};
pub use page::page;
pub use program::{ProgramReport, Sandwich, SolvedProgram, mudworld, read_program};

use crate::Error;
use album_base::files;
use std::path::{Path, PathBuf};

/// Refuses to write results over what they are made from, by whatever name or link, or over each other. Outputs are named by
/// their options.
pub fn check_outputs<const N: usize>(
    inputs: &[PathBuf],
    outputs: [(&str, Option<&Path>); N],
) -> Result<(), Error> {
    for (at, (option, output)) in outputs.iter().enumerate() {
        let Some(output) = output else { continue };
        if inputs.iter().any(|input| files::same(input, output)) {
            let output = output.display();
            return Err(Error::Usage(format!("{output} is the input; choose another name for the output")));
        }
        if let Some((other, _)) = outputs[..at].iter().find(|(_, other)| *other == Some(output)) {
            return Err(Error::Usage(format!("{other} and {option} name the same file")));
        }
    }
    Ok(())
}

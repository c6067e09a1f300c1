//! Exact values: of a tabular dataset, as a certified linear program; of a log, in its own labels.

mod log;
mod page;
mod program;
mod text;

pub use log::{LogOutputs, LogRun, LogSummary};
pub use page::page;
pub use program::{ProgramSummary, Sandwich, SolvedProgram, mudworld, read_program};

use crate::Error;
use album_base::files;
use std::path::{Path, PathBuf};

/// Refuses outputs that would overwrite the inputs, through any name or link, or each other. Outputs are
/// named by their options.
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

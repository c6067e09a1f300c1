//! Standard output.

use album::Error as Failure;
use album_base::console;
use serde::Serialize;

/// Prints the result of a command: one JSON object with `--json`, otherwise text.
pub fn show(json: bool, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    if json { print_json(value) } else { print(&text()) }
}

/// Writes to standard output; a closed pipe (`album ... | head`) ends quietly.
pub fn print(text: &str) -> Result<(), Failure> {
    console::print(text).map_err(|source| Failure::Io { what: "standard output".into(), source })
}

/// Writes the one JSON object of a `--json` run.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Numerical(e.to_string()))?;
    print(&text)
}

//! Shell scripts that stand in for programs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a shell script that can be executed at once.
///
/// A child process writes it. If this process had the file open, a program that another test starts at that moment
/// would inherit it, and to execute a file that is open for writing fails ("text file busy").
///
/// # Panics
///
/// If it cannot be written.
pub fn script(path: &Path, body: &str) {
    let mut child = Command::new("sh")
        .args(["-c", r#"cat > "$0" && chmod 755 "$0""#])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("sh: {e}"));
    let written = child.stdin.take().map(|mut input| write!(input, "#!/bin/sh\n{body}\n"));
    let status = child.wait().unwrap_or_else(|e| panic!("sh: {e}"));
    assert!(matches!(written, Some(Ok(()))) && status.success(), "{}: {status}, {written:?}", path.display());
}

//! `cargo xtask audit`: what a release guarantees beyond its tests: licences, and the oldest supported
//! compiler.

use crate::{answers, cargo, cargo_of, run, target};

pub fn run_task() -> Result<(), String> {
    let licences = if answers("cargo-deny", &["--version"]) {
        run("licences, bans and sources", cargo(&["deny", "check", "licenses", "bans", "sources"]))
    } else {
        eprintln!("SKIPPED licences, bans and sources: cargo-deny is not installed");
        Ok(())
    };
    licences.and(oldest_compiler())
}

/// A build with the compiler of `rust-version`, if installed.
fn oldest_compiler() -> Result<(), String> {
    let version = env!("CARGO_PKG_RUST_VERSION");
    if !answers("cargo", &[&format!("+{version}"), "--version"]) {
        // Clippy's `incompatible_msrv` is on by default.
        eprintln!(
            "SKIPPED a build with Rust {version}, which is not installed; `cargo xtask test` finds newer functions"
        );
        return Ok(());
    }
    let mut check = cargo_of(version);
    check.args(["check", "--package", "album-cli", "--locked"]);
    check.env("CARGO_TARGET_DIR", target().join("msrv"));
    run(&format!("build with Rust {version}"), check)
}

//! `cargo xtask sanitize`: the crates with unsafe code under LLVM's sanitizers, and the loom model of the
//! thread pool.

use std::process::Command;

use crate::fuzz::host;
use crate::{cargo, cargo_of, has_nightly, root, run, target};

/// Tests of the unsafe code: the folder to build in, the package, its tests. album-nn is built alone (`xtask/nn`).
const TESTS: [(&str, &str, &[&str]); 2] = [
    ("xtask/nn", "album-nn-alone", &["--locked", "--lib", "--test", "it"]),
    (".", "album-data", &["--test", "it", "columns"]),
];

pub fn run_task(args: &[String]) -> Result<(), String> {
    if let Some(other) = args.iter().find(|arg| !["--quick", "--if-possible"].contains(&arg.as_str())) {
        return Err(format!(
            "sanitize: {other}: expected --quick (album-nn under AddressSanitizer only) or --if-possible"
        ));
    }
    let [quick, if_possible] =
        ["--quick", "--if-possible"].map(|option| args.iter().any(|arg| arg == option));
    let model = model();
    if !has_nightly() {
        let reason = "sanitizers need a nightly toolchain (rustup toolchain install nightly)";
        eprintln!("SKIPPED {reason}");
        return if if_possible { model } else { model.and(Err(reason.into())) };
    }
    // What ThreadSanitizer reports of locks that it cannot see depends on timing: for a person to judge, not for CI.
    let sanitizers: &[&str] = if quick { &["address"] } else { &["address", "thread"] };
    for &sanitizer in sanitizers {
        for (folder, package, filter) in TESTS {
            // Tests that read mapped columns start no threads, and all that they depend on is compiled for them.
            if package != "album-data" || (sanitizer == "address" && !quick) {
                let mut command = tests(sanitizer, package, filter)?;
                command.current_dir(root().join(folder));
                run(&format!("{package} under {sanitizer} sanitizer"), command)?;
            }
        }
    }
    model
}

/// Runs cargo's tests of a package with a sanitizer.
fn tests(sanitizer: &str, package: &str, filter: &[&str]) -> Result<Command, String> {
    let mut flags = vec![format!("-Zsanitizer={sanitizer}")];
    if sanitizer == "thread" {
        // The standard library is not instrumented: only its code inlined into album is checked.
        flags.push("-Cunsafe-allow-abi-mismatch=sanitizer".into());
    }
    let mut command = cargo_of("nightly");
    command.args(["test", "--package", package, "--target", &host()?]).args(filter);
    if sanitizer == "thread" {
        // The channel of the test harness cannot be seen either.
        command.args(["--", "--test-threads=1"]);
        let known = root().join("xtask/nn/tsan.txt");
        command.env("TSAN_OPTIONS", format!("suppressions={}", known.display()));
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    command.env("CARGO_TARGET_DIR", target().join(format!("sanitize-{sanitizer}")));
    Ok(command)
}

/// The pool's own source with loom's types.
fn model() -> Result<(), String> {
    let mut command = cargo(&["test", "--locked", "model::"]);
    command.current_dir(root().join("xtask/loom")).env("CARGO_TARGET_DIR", target().join("loom"));
    run("model of the thread pool", command)
}

//! `cargo xtask test`: all tests, and a closing list of results and skips; `cargo xtask lint`: what needs no run.

use crate::{api, cargo, python, run, slurm, target};
use album_testing::{LOG, REQUIRE, required};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

pub fn run_all() -> Result<(), String> {
    let start = Instant::now();
    let log = target().join("skipped.txt");
    let _ = std::fs::remove_file(&log);
    let mut skipped = Vec::new();
    // In parallel: pip waits for the network, the compiler for the processor.
    let (pythons, built) = std::thread::scope(|scope| {
        let pythons = scope.spawn(|| {
            let environments = [python::TESTS, python::OGBENCH, python::WHEEL];
            (environments.map(python::Environment::set_up), plugin())
        });
        let built = run("build", cargo(&["test", "--workspace", "--no-run"]));
        (pythons.join().map_err(|_| "the set-up of Python panicked".to_owned()), built)
    });
    built?;
    let mut test = cargo(&["test", "--workspace", "--no-fail-fast"]);
    test.env(LOG, &log);
    let ([tests, ogbench, wheel], plugin) = pythons?;
    let plugin = match plugin {
        Ok(plugin) => plugin,
        Err(reason) => {
            skipped.push(missing("xla", &reason)?);
            None
        }
    };
    if let Some(plugin) = &plugin {
        test.env(python::XLA_PLUGIN, plugin);
    }
    for (variable, python) in [("ALBUM_TEST_PYTHON", tests), ("ALBUM_PYTHON", ogbench)] {
        match python {
            Ok(interpreter) => _ = test.env(variable, interpreter),
            Err(reason) => skipped.push(missing("python", &reason)?),
        }
    }
    let cluster = match slurm::start() {
        Ok(cluster) => Some(cluster),
        Err(reason) => {
            skipped.push(missing("slurm", &reason)?);
            None
        }
    };
    if let Some(cluster) = &cluster {
        cluster.reach(&mut test);
    }
    // The package waits for pip and one core at a time, so it goes beside the tests; what it says comes after them.
    let ((results, passed), packaged) = std::thread::scope(|scope| {
        let packaged = match wheel {
            Ok(interpreter) => Ok(scope.spawn({
                let (log, plugin) = (&log, plugin.as_deref());
                move || python::test_package(&interpreter, log, plugin)
            })),
            Err(reason) => Err(missing("python", &reason)?),
        };
        let tested = follow("tests", test)?;
        let packaged = match packaged {
            Ok(thread) => thread.join().map_err(|_| "the tests of Python panicked".to_owned())?,
            Err(skip) => {
                skipped.push(skip);
                Ok(String::new())
            }
        };
        Ok::<_, String>((tested, packaged))
    })?;
    drop(cluster);
    let packaged = packaged.inspect(|said| eprint!("{said}"));

    eprintln!("== results");
    results.iter().for_each(|line| eprintln!("{line}"));
    skipped.extend(std::fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned));
    skipped.sort();
    eprintln!("== skipped: {}", if skipped.is_empty() { "nothing" } else { "" });
    skipped.iter().for_each(|line| eprintln!("{line}"));
    passed.and(packaged)?;
    eprintln!("== all passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Formatting, clippy and documentation. Apart from [`run_all`], because clippy analyses every dependency once more.
pub fn lint() -> Result<(), String> {
    run("formatting", cargo(&["fmt", "--all", "--check"]))?;
    api::check()?;
    let mut clippy = cargo(&["clippy", "--workspace", "--all-targets"]);
    // On the command line, because a change of the workspace's lints compiles everything anew.
    clippy.args(["--", "-D", "warnings", "-D", "clippy::undocumented_unsafe_blocks"]);
    let linted = run("clippy", clippy);
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    linted.and(run("documentation", doc))
}

/// The plugin for tests on a device: the one that the environment names, else a private one where it is required. Without
/// either, each test says that it is skipped.
fn plugin() -> Result<Option<PathBuf>, String> {
    match std::env::var_os(python::XLA_PLUGIN).filter(|path| !path.is_empty()) {
        Some(path) => Ok(Some(path.into())),
        None if required("xla") => python::xla_plugin().map(Some),
        None => Ok(None),
    }
}

/// Tests that take HiGHS from the Cargo feature `highs`. Apart from [`run_all`], because compiling HiGHS takes longer
/// than all of album; there SciPy's HiGHS is the independent witness.
pub fn highs() -> Result<(), String> {
    let python = python::TESTS.set_up()?;
    let tabular = ["--package", "album-tabular", "--features", "highs"];
    let cli = ["--package", "album-cli", "--features", "highs", "--test", "it"];
    let filters = ["--", "solve::", "verify::", "bad_input::"];
    for args in [tabular.to_vec(), [&cli[..], &filters].concat()] {
        let mut command = cargo(&["test"]);
        command.args(args).env("ALBUM_TEST_PYTHON", &python);
        python::with_highs(&mut command)?;
        run("tests with HiGHS", command)?;
    }
    Ok(())
}

/// The line for a missing tool; an error if `ALBUM_REQUIRE` lists it.
fn missing(need: &str, reason: &str) -> Result<String, String> {
    if required(need) {
        return Err(format!("{REQUIRE} lists {need}: {reason}"));
    }
    Ok(format!("SKIPPED all tests that need {need}: {reason}"))
}

/// Runs cargo's tests, forwards their output, and keeps the lines with results; also returns whether all
/// passed.
fn follow(what: &str, mut command: Command) -> Result<(Vec<String>, Result<(), String>), String> {
    eprintln!("== {what}");
    let start = Instant::now();
    let (reader, writer) = std::io::pipe().map_err(|e| e.to_string())?;
    command.stderr(writer.try_clone().map_err(|e| e.to_string())?).stdout(writer);
    let shown = format!("{command:?}");
    let mut child = command.spawn().map_err(|e| format!("cannot start {shown}: {e}"))?;
    drop(command); // closes its end of the pipe
    let (sender, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            eprintln!("{line}");
            let result = ["     Running ", "   Doc-tests ", "test result: "];
            if result.iter().any(|start| line.starts_with(start)) && sender.send(line).is_err() {
                break;
            }
        }
    });
    let status = child.wait().map_err(|e| e.to_string())?;
    // A process left behind by a test may keep the pipe open.
    let patience = Duration::from_secs(2);
    let lines = std::iter::from_fn(|| lines.recv_timeout(patience).ok()).collect();
    eprintln!("== {what}: {status} in {:.0} s", start.elapsed().as_secs_f64());
    Ok((lines, if status.success() { Ok(()) } else { Err(format!("{what} failed ({status}): {shown}")) }))
}

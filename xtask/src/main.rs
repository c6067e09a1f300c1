//! Development tasks. `cargo xtask test` sets up what it needs on a machine with cargo and python3, and runs
//! everything that must pass.

#![allow(clippy::print_stderr)] // a development task may die with its standard error

mod api;
mod audit;
mod bench_peers;
mod book;
mod fuzz;
mod neon;
mod power;
mod python;
mod sanitize;
mod slurm;
mod soak;
mod storm;
mod test;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask <task>

  test          all tests with doc tests, and those of the Python package; lists what was skipped, and why.
                ALBUM_REQUIRE=slurm,browser,python,strace: a test skipped for want of these fails instead
  lint          formatting, public interfaces (as `api`), clippy without warnings, documentation
  test-highs    the tests of the Cargo feature `highs`, which builds HiGHS from source (needs a C++ compiler)
  test-python   only the tests of the Python package album_rl, in a wheel made of what `test` has compiled
  bench-solve   album's exact solvers against SciPy's linprog, and how they scale
  bench-peers   one training step of ALBUM, IQL, ReBRAC and FQL (or those named): album against JAX and PyTorch;
                with --bf16 ALBUM's step in bfloat16 against its own in f32 and PyTorch's under autocast
  bench-envs    OGBench: steps per second of the worker processes against a plain Python loop
  slurm         the Slurm tests against a real Slurm, private to target/slurm/; with a command behind it, runs
                that command against the cluster instead. --install: Debian's packages first (as root)
  fuzz          every reader fed with bytes that lie: fuzz [TARGET ...] [--seconds N] [--asan] [--quick]
                [--if-possible]. Needs a C++ compiler; --asan a nightly toolchain; --quick builds with less optimisation
  storm         kills, signals, full disks, failing streams, second processes, clocks that jump, over all agents;
                ends compared byte for byte: storm [--kills N] [--seed N] [--only WORLD] [--without KIND].
                ALBUM_BINARY names a program other than the workspace's
  power         the states that a power cut may leave on the disk during a run, an import and a page, one after the
                other: power [--states N]. Needs strace
  sanitize      unsafe code under AddressSanitizer and ThreadSanitizer (needs a nightly toolchain), and loom's model of
                the thread pool: sanitize [--quick] [--if-possible]; --quick is AddressSanitizer on album-nn alone
  neon          album-nn's tests on an emulated Arm processor, and its bits compared with this one's. Takes compiler and
                emulator from Debian 12's packages (unpacked under target/neon): neon [--if-possible]
  soak          everything in turns for --minutes N (default 120) under a memory limit: memory, descriptors, threads
                and temporary files must stay flat
  audit         licences and sources, the oldest supported compiler (a build with it if installed); cargo deny if
                installed
  api           public interfaces against xtask/api; --accept writes these files again
  book          the documentation as a book in target/book, its links followed (needs mdbook: cargo install mdbook)
  setup         only the Python environments under target/ that the tests need";

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let rest: Vec<String> = std::env::args().skip(2).collect();
    let result = match task.as_str() {
        "test" => test::run_all(),
        "lint" => test::lint(),
        "test-highs" => test::highs(),
        "bench-solve" => bench_solve(&rest),
        "bench-peers" => bench_peers::run_all(&rest),
        "bench-envs" => bench_envs(&rest),
        "slurm" => slurm::run_task(&rest),
        "book" => book::build(),
        "fuzz" => fuzz::run_task(&rest),
        "api" => api::run_task(&rest),
        "audit" => audit::run_task(),
        "sanitize" => sanitize::run_task(&rest),
        "soak" => soak::run_task(&rest),
        "neon" => neon::run_task(&rest),
        "power" => power::run_task(&rest),
        "storm" => storm::run_task(&rest),
        "test-python" => python::WHEEL
            .set_up()
            .and_then(|interpreter| python::test_package(&interpreter, &target().join("skipped.txt"), None))
            .map(|said| eprint!("{said}")),
        "setup" => [python::TESTS, python::OGBENCH, python::WHEEL]
            .into_iter()
            .try_for_each(|environment| environment.set_up().map(|_| ())),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn bench_solve(args: &[String]) -> Result<(), String> {
    let mut command = cargo(&["run", "--release", "--package", "album-cli", "--features", "highs"]);
    command.args(["--", "bench", "solve"]).args(args).env("ALBUM_PYTHON", python::TESTS.set_up()?);
    python::with_highs(&mut command)?;
    run("bench solve", command)
}

fn bench_envs(args: &[String]) -> Result<(), String> {
    let mut command =
        cargo(&["run", "--release", "--package", "album-envs", "--example", "throughput", "--"]);
    command.args(args).env("ALBUM_PYTHON", python::OGBENCH.set_up()?);
    run("bench envs", command)
}

fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

fn cargo(args: &[&str]) -> Command {
    command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()), args)
}

fn run(what: &str, mut command: Command) -> Result<(), String> {
    eprintln!("== {what}");
    let start = Instant::now();
    let status = command.status().map_err(|e| format!("{what}: cannot start {command:?}: {e}"))?;
    if !status.success() {
        return Err(format!("{what} failed ({status}): {command:?}"));
    }
    eprintln!("== {what}: done in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// The same for a command that runs beside others: its output is returned, or in the error.
fn captured(what: &str, mut command: Command) -> Result<String, String> {
    let start = Instant::now();
    let output = command.output().map_err(|e| format!("{what}: cannot start {command:?}: {e}"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if !output.status.success() {
        return Err(format!("{what} failed ({}): {command:?}\n{said}", output.status));
    }
    Ok(format!("== {what}\n{said}== {what}: done in {:.0} s\n", start.elapsed().as_secs_f64()))
}

/// Whether a program can be run successfully.
fn answers(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether `cargo +nightly` works.
fn has_nightly() -> bool {
    answers("cargo", &["+nightly", "--version"])
}

/// Cargo of a different toolchain than the current one.
fn cargo_of(toolchain: &str) -> Command {
    let mut command = command("cargo", &[&format!("+{toolchain}")]);
    command.env_remove("RUSTC").env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// The build directory.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The workspace root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

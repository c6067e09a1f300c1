//! Development tasks. `cargo xtask test` does all of its own set-up on a machine that has cargo, a C++ compiler and
//! python3, and then runs everything that must pass.

mod bench_peers;
mod python;
mod slurm;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask <task>

  test          set up, then formatting, clippy, all tests (HiGHS included), doc tests, documentation
  bench-solve   album's exact solvers against SciPy's linprog, and how they scale
  bench-peers   one training step of ALBUM, IQL, ReBRAC and FQL (or those named): album against JAX and PyTorch in turns
  bench-envs    environments of OGBench: steps a second of workers against a plain loop in Python
  slurm         the Slurm executor against a real Slurm, private to target/slurm/; with a command behind it, that
                command in reach of the cluster instead. --install: Debian's packages first (as root)
  setup         only the set-up: private Python environments under target/";

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let rest: Vec<String> = std::env::args().skip(2).collect();
    if task == "slurm"
        && rest.first().is_none_or(|first| first != "--install")
        && let Some(what) = slurm::missing()
    {
        eprintln!("{what}");
        return ExitCode::from(slurm::SKIPPED);
    }
    let result = match task.as_str() {
        "test" => test(),
        "bench-solve" => bench_solve(),
        "bench-peers" => bench_peers::run_all(&rest),
        "bench-envs" => bench_envs(),
        "slurm" => slurm_test(&rest),
        "setup" => python::tools(&root()).and_then(|_| python::ogbench()).map(|_| ()),
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

/// Features that are off by default, because they need more than cargo.
const FEATURES: [&str; 2] = ["--features", "album-cli/highs,album-tabular/highs"];

fn test() -> Result<(), String> {
    let start = Instant::now();
    run("formatting", cargo(&["fmt", "--all", "--check"]))?;
    let tools = python::tools(&root())?;
    let ogbench = python::ogbench()?;
    let with = |args: &[&str]| {
        let mut command = cargo(args);
        command.args(FEATURES);
        tools.apply(&mut command);
        command.env(album_envs::python::VARIABLE, ogbench.interpreter());
        command
    };
    let mut clippy = with(&["clippy", "--workspace", "--all-targets"]);
    clippy.args(["--", "-D", "warnings"]);
    run("clippy", clippy)?;
    run("tests", with(&["test", "--workspace", "--all-targets", "--no-fail-fast"]))?;
    slurm::test(&target(), with(&["test", "--package", "album-cli", "--test", "it", "slurm::"]))?;
    run("doc tests", with(&["test", "--workspace", "--doc"]))?;
    let mut doc = with(&["doc", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    run("documentation", doc)?;
    eprintln!("all passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// `cargo xtask slurm [--install] [COMMAND...]`.
fn slurm_test(args: &[String]) -> Result<(), String> {
    let args = match args {
        [first, rest @ ..] if first == "--install" => {
            slurm::install()?;
            rest
        }
        args => args,
    };
    let command = match args {
        [] => cargo(&["test", "--package", "album-cli", "--test", "it", "slurm::", "--", "--nocapture"]),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args);
            command
        }
    };
    slurm::with_cluster(&target(), "slurm", command)
}

fn bench_solve() -> Result<(), String> {
    let python = python::tools(&root())?;
    let mut command = cargo(&["run", "--release", "--package", "album-cli", "--features", "highs"]);
    command.args(["--", "bench", "solve"]).args(std::env::args().skip(2));
    python.apply(&mut command);
    command.env("ALBUM_PYTHON", &python.interpreter);
    run("bench solve", command)
}

fn bench_envs() -> Result<(), String> {
    let python = python::ogbench()?;
    let mut command =
        cargo(&["run", "--release", "--package", "album-envs", "--example", "throughput", "--"]);
    command.args(std::env::args().skip(2)).env(album_envs::python::VARIABLE, python.interpreter());
    run("bench envs", command)
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

fn run(what: &str, mut command: Command) -> Result<(), String> {
    eprintln!("== {what}");
    let start = Instant::now();
    let status =
        command.status().map_err(|e| format!("{what}: cannot start {:?}: {e}", command.get_program()))?;
    if !status.success() {
        return Err(format!("{what} failed ({status}): {command:?}"));
    }
    eprintln!("== {what}: passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Where everything that is built goes.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

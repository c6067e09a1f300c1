//! `cargo xtask fuzz`: libFuzzer on every reader, seeded with inputs that album wrote itself.
//!
//! A stable toolchain and a C++ compiler suffice: coverage comes from LLVM's own pass, and an allocator in
//! `fuzz/` limits memory. `--asan` adds AddressSanitizer, which needs a nightly toolchain.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::{answers, cargo_of, has_nightly, root, run, target};

/// Coverage for libFuzzer, with the flags of cargo-fuzz.
const COVERAGE: [&str; 8] = [
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

/// Limits of every run: total memory, memory per allocation (with a sanitizer), seconds per input.
const LIMITS: [&str; 4] =
    ["-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-timeout=20", "-print_final_stats=1"];

struct Options {
    targets: Vec<String>,
    seconds: u64,
    asan: bool,
    /// Whether a quick build matters more than many inputs.
    quick: bool,
    if_possible: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options =
            Options { targets: vec![], seconds: 60, asan: false, quick: false, if_possible: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--seconds" => {
                    let value = args.next().and_then(|value| value.parse().ok());
                    options.seconds = value.ok_or("--seconds: expected a whole number behind it")?;
                }
                "--asan" => options.asan = true,
                "--quick" => options.quick = true,
                "--if-possible" => options.if_possible = true,
                name if !name.starts_with('-') => options.targets.push(name.to_owned()),
                other => {
                    return Err(format!(
                        "{other}: expected TARGET, --seconds N, --asan, --quick or --if-possible"
                    ));
                }
            }
        }
        Ok(options)
    }
}

pub fn run_task(args: &[String]) -> Result<(), String> {
    let mut options = Options::parse(args)?;
    let all = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !all.contains(name)) {
        return Err(format!("fuzz: found no target {unknown}; there are {}", all.join(", ")));
    }
    if options.targets.is_empty() {
        options.targets = all;
    }
    if let Err(reason) = possible(&options) {
        if options.if_possible {
            eprintln!("SKIPPED fuzzing: {reason}");
            return Ok(());
        }
        return Err(format!("fuzz: {reason}"));
    }
    let built = build(&options)?;
    let folder = target().join("fuzz");
    let corpus = folder.join("corpus");
    let mut seeds = Command::new(built.join("seeds"));
    seeds.arg(&corpus);
    run("fuzz: seeds", seeds)?;
    let mut findings = Vec::new();
    let mut runs = 0;
    for name in &options.targets {
        let (count, ended_well) = fuzz(name, &built, &folder, options.seconds)?;
        runs += count;
        if !ended_well {
            findings.push(name.as_str());
        }
    }
    eprintln!(
        "== fuzz: {runs} runs of {} targets, logs in {}",
        options.targets.len(),
        folder.join("log").display()
    );
    if findings.is_empty() {
        return Ok(());
    }
    Err(format!(
        "fuzz: findings in {}; the inputs are in {}, and `{}/TARGET INPUT` repeats one",
        findings.join(", "),
        folder.join("artifacts").display(),
        built.display()
    ))
}

/// The names of the targets, from their files.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let files = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten();
    let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut names: Vec<String> = files.filter_map(|entry| stem(entry.path())).collect();
    names.sort();
    Ok(names)
}

/// Whether this machine has the necessary tools.
fn possible(options: &Options) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("it is set up for Linux only".into());
    }
    if !answers(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()), &["--version"]) {
        return Err("libFuzzer is written in C++, and there is no compiler `c++` (Debian: g++)".into());
    }
    if options.asan && !has_nightly() {
        return Err("--asan needs a nightly toolchain (rustup toolchain install nightly)".into());
    }
    let mut fetch = cargo(options.asan);
    fetch.args(["fetch", "--locked"]);
    if !fetch.output().is_ok_and(|output| output.status.success()) {
        return Err("the packages of fuzz/Cargo.lock cannot be fetched (cargo fetch)".into());
    }
    Ok(())
}

/// Cargo in `fuzz/`.
fn cargo(nightly: bool) -> Command {
    let mut command = if nightly { cargo_of("nightly") } else { crate::cargo(&[]) };
    command.current_dir(root().join("fuzz"));
    command
}

/// Builds all targets and returns the folder of the programs.
fn build(options: &Options) -> Result<PathBuf, String> {
    let host = host()?;
    let folder = target().join(if options.asan { "fuzz-asan" } else { "fuzz" });
    let mut flags = COVERAGE.to_vec();
    if options.asan {
        flags.push("-Zsanitizer=address");
    }
    let mut command = cargo(options.asan);
    let profile = if options.quick { "quick" } else { "release" };
    command.args(["build", "--profile", profile, "--locked", "--target", &host, "--bin", "seeds"]);
    command.args(options.targets.iter().flat_map(|name| ["--bin", name]));
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env("CARGO_TARGET_DIR", &folder);
    run("fuzz: build", command)?;
    Ok(folder.join(host).join(profile))
}

/// The host triple. With an explicit target, flags do not reach build scripts.
pub fn host() -> Result<String, String> {
    let said = Command::new("rustc").arg("-vV").output().map_err(|e| format!("rustc: {e}"))?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".into())
}

/// Runs one target; returns the number of inputs, and whether it found nothing.
fn fuzz(name: &str, built: &Path, folder: &Path, seconds: u64) -> Result<(u64, bool), String> {
    let subfolder = |part: &str| {
        let path = folder.join(part).join(name);
        fs::create_dir_all(&path).map(|()| path.clone()).map_err(|e| format!("{}: {e}", path.display()))
    };
    let (corpus, artifacts, scratch) = (subfolder("corpus")?, subfolder("artifacts")?, subfolder("scratch")?);
    let logs = folder.join("log");
    fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    let log = logs.join(format!("{name}.{}.log", std::process::id()));
    let file = fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let mut command = Command::new(built.join(name));
    command.arg(&corpus).args(LIMITS).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    let dictionary = root().join("fuzz/dictionaries").join(format!("{name}.dict"));
    if dictionary.exists() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    // Leak detection reports threads that the allocator outlives; memory has its own limit.
    command.env("ASAN_OPTIONS", "detect_leaks=0").env("RUST_BACKTRACE", "1");
    if !Path::new("/dev/shm").is_dir() {
        command.env("ALBUM_FUZZ_SCRATCH", &scratch);
    }
    command.stdout(Stdio::null()).stderr(file);
    let start = Instant::now();
    let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
    let id = child.id();
    let status = child.wait().map_err(|e| format!("{name}: {e}"))?;
    let _ = fs::remove_dir_all(format!("/dev/shm/album-fuzz-{id}"));
    let _ = fs::remove_dir_all(&scratch);
    let said = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
    let number =
        |key: &str| said.lines().rev().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    let runs = number("stat::number_of_executed_units:").unwrap_or(0);
    let coverage = said.lines().rev().find_map(|line| line.split("cov: ").nth(1)?.split(' ').next());
    eprintln!(
        "{name:<12} {runs:>10} runs in {:>5.0} s, {} edges, {}",
        start.elapsed().as_secs_f64(),
        coverage.unwrap_or("?"),
        if status.success() { "no finding" } else { "A FINDING" }
    );
    if !status.success() {
        let finding = said.lines().skip_while(|line| !line.starts_with("====")).take(12);
        finding.for_each(|line| eprintln!("    {line}"));
        eprintln!("    log {}", log.display());
    }
    Ok((runs, status.success()))
}

//! `cargo xtask soak`: training, evaluation, checkpoints, off-policy evaluation, exports and Python for a
//! long time, under a memory limit; resident memory, descriptors, threads and temporary files must not grow.
//!
//! One process, which could leak, trains all the time; the others are started repeatedly beside it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::storm::{self, World};
use crate::target;

/// Address-space limit of a process in kilobytes: its use plus some thread stacks and allocator arenas.
const MEMORY: u64 = 4 << 20;

/// The largest slopes that count as flat, per hour: kilobytes, descriptors, threads, files, fitted to the
/// second half.
const MOST_SLOPE: [f64; 4] = [4096.0, 1.0, 1.0, 4.0];
const NAMES: [&str; 4] = ["resident memory (kB)", "descriptors", "threads", "temporary files"];

struct Sample {
    hours: f64,
    values: [f64; 4],
}

pub fn run_task(args: &[String]) -> Result<(), String> {
    let minutes: f64 = match args {
        [option, value] if option == "--minutes" => {
            value.parse().map_err(|_| format!("--minutes {value}: expected a number"))?
        }
        [] => 120.0,
        _ => return Err("soak: expected --minutes N".into()),
    };
    if !Path::new("/proc/self/status").exists() {
        return Err("soak: it reads /proc, which is Linux's".into());
    }
    let folder = target().join("soak");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let album = storm::program()?;
    let (worlds, skipped) = storm::worlds(&folder, &album)?;
    skipped.iter().for_each(|reason| eprintln!("SKIPPED {reason}"));
    let (start, place) = (Instant::now(), folder.join("long"));
    let mut long = trainer(&worlds, &album, &place)?;
    let in_turns = ["fqe", "export", "report", "import", "python-fit", "worker", "mudworld", "album", "fql"];
    let turns: Vec<&World> = worlds.iter().filter(|world| in_turns.contains(&world.name.as_str())).collect();
    let (mut samples, mut done) = (Vec::new(), 0);
    while start.elapsed().as_secs_f64() < 60.0 * minutes {
        let place = folder.join("turn");
        let world = turns[done % turns.len()];
        let _ = fs::remove_dir_all(&place);
        world.prepare(&place)?;
        let output = limited(&world.begin(&place), &place).output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return stop(
                long,
                Err(format!("soak: {} after {done} turns: {}: {said}", world.name, output.status)),
            );
        }
        done += 1;
        if let Some(status) = long.try_wait().map_err(|e| e.to_string())? {
            return Err(format!("soak: the long run ended by itself: {status}"));
        }
        samples.push(Sample { hours: start.elapsed().as_secs_f64() / 3600.0, values: look(&long, &folder) });
        sleep(Duration::from_millis(200));
    }
    let record = folder.join("soak.csv");
    let row = |sample: &Sample| {
        let values: Vec<String> = sample.values.iter().map(f64::to_string).collect();
        format!("{:.5},{}\n", sample.hours, values.join(","))
    };
    let rows: String = samples.iter().map(row).collect();
    fs::write(&record, format!("hours,{}\n{rows}", NAMES.join(","))).map_err(|e| e.to_string())?;
    eprintln!("== soak: {minutes} minutes, {done} turns, {} samples in {}", samples.len(), record.display());
    stop(long, judge(&samples))
}

/// A run that never ends by itself, with continual evaluations and checkpoints.
fn trainer(worlds: &[World], album: &Path, place: &Path) -> Result<Child, String> {
    let like = worlds.iter().find(|world| world.name == "pointmaze").ok_or("soak: no pointmaze")?;
    like.prepare(place)?;
    let mut command = Command::new(album);
    command.args(["train", "--threads", "1", "--steps", "1000000000", "--out"]).arg(place.join("run"));
    let set = ["log_every=200", "save_every=500", "eval_every=1000", "eval_episodes=2", "hidden=[32, 32]"];
    command.args(set.iter().flat_map(|pair| ["--set", pair]));
    command.envs(like.begin(place).get_envs().filter_map(|(key, value)| Some((key, value?))));
    let mut command = limited(&command, place);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|e| format!("{command:?}: {e}"))
}

/// The same command under the memory limit.
fn limited(command: &Command, place: &Path) -> Command {
    let mut limited = Command::new("bash");
    limited.args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")]);
    limited.arg(command.get_program()).args(command.get_args()).current_dir(place);
    limited.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    limited
}

fn look(child: &Child, folder: &Path) -> [f64; 4] {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let field = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN)
    };
    let descriptors =
        fs::read_dir(format!("/proc/{}/fd", child.id())).map_or(f64::NAN, |all| all.count() as f64);
    [field("VmRSS:"), descriptors, field("Threads:"), temporaries(&folder.join("long")) as f64]
}

/// The number of temporary files.
fn temporaries(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let count = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = name.ends_with(".tmp") || name.starts_with("tmp-") || name.starts_with("replaced-");
        usize::from(temporary) + if path.is_dir() { temporaries(path) } else { 0 }
    };
    entries.map(|entry| count(&entry.path())).sum()
}

/// Checks the slopes of the second half, when everything has run once.
fn judge(samples: &[Sample]) -> Result<(), String> {
    let half = &samples[samples.len() / 2..];
    let n = half.len() as f64;
    let mean = |f: &dyn Fn(&Sample) -> f64| half.iter().map(f).sum::<f64>() / n;
    let hours = mean(&|sample| sample.hours);
    let spread: f64 = half.iter().map(|sample| (sample.hours - hours).powi(2)).sum();
    let mut rising = Vec::new();
    for (i, name) in NAMES.iter().enumerate() {
        let value = mean(&|sample| sample.values[i]);
        let along: f64 = half.iter().map(|sample| (sample.hours - hours) * (sample.values[i] - value)).sum();
        let slope = along / spread;
        let (least, most) = half
            .iter()
            .map(|sample| sample.values[i])
            .fold((f64::MAX, f64::MIN), |(least, most), x| (least.min(x), most.max(x)));
        eprintln!("{name:<22} mean {value:>10.1}, {least:.0} to {most:.0}, slope {slope:+.1} per hour");
        if !(slope <= MOST_SLOPE[i]) && most > least {
            rising.push(*name);
        }
    }
    if rising.is_empty() { Ok(()) } else { Err(format!("soak: {} rise", rising.join(", "))) }
}

/// Stops the long run, which must save its state.
fn stop(mut long: Child, outcome: Result<(), String>) -> Result<(), String> {
    let _ = Command::new("kill").args(["-s", "TERM", &long.id().to_string()]).status();
    let status = long.wait().map_err(|e| e.to_string())?;
    outcome?;
    if status.code() == Some(75) { Ok(()) } else { Err(format!("soak: the long run ended with {status}")) }
}

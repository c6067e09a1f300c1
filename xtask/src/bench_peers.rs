//! `cargo xtask bench-peers [--bf16 | AGENT...]`: the same training step in album and in other frameworks, in turns.

use crate::{cargo, python, root, run, target};
use std::path::Path;
use std::process::Command;

/// Number of rounds; each program runs once per round, because the speed of a shared machine varies.
const ROUNDS: usize = 9;

/// The agents with peer implementations.
const AGENTS: [&str; 4] = ["album", "iql", "rebrac", "fql"];

/// The contest of ALBUM's step in bfloat16.
const BF16: &str = "--bf16";

pub fn run_all(agents: &[String]) -> Result<(), String> {
    let asked_for_bf16 = [BF16.to_owned()] == *agents;
    let unknown = agents.iter().find(|name| !AGENTS.contains(&name.as_str()));
    if let Some(unknown) = unknown.filter(|_| !asked_for_bf16) {
        return Err(format!("there is no peer of `{unknown}`; there are {}", AGENTS.join(", ")));
    }
    let python = python::PEERS.set_up()?;
    run("build", cargo(&["build", "--release", "--package", "album-cli"]))?;
    let album = target().join("release").join("album");
    if asked_for_bf16 {
        return contest(BF16, &album, &python);
    }
    for agent in AGENTS.iter().filter(|name| agents.is_empty() || agents.iter().any(|asked| asked == *name)) {
        contest(agent, &album, &python)?;
    }
    Ok(())
}

/// The programs that take turns: names and command lines.
fn contestants(agent: &str, album: &Path, python: &Path) -> Vec<(&'static str, Vec<String>)> {
    let command = |program: &Path, arguments: &[&str]| {
        let arguments = arguments.iter().map(|x| (*x).to_owned());
        std::iter::once(program.display().to_string()).chain(arguments).collect::<Vec<_>>()
    };
    let ours =
        |more: &[&str]| command(album, &[&["bench", "step", "--rounds", "40", "--json"], more].concat());
    let script = |name: &str| root().join("benches").join("peers").join(name).display().to_string();
    if agent == "album" {
        let peer = |name| command(python, &[&script(name), "--rounds", "40", "--json"]);
        return vec![
            ("album", ours(&[])),
            ("jax", peer("album_step_jax.py")),
            ("torch", peer("album_step_torch.py")),
        ];
    }
    if agent == BF16 {
        let torch = [&script("album_step_torch.py"), "--rounds", "40", "--json", "--bf16"];
        return vec![
            ("album", ours(&["--precision", "bf16"])),
            ("f32", ours(&[])),
            ("torch", command(python, &torch)),
        ];
    }
    let peer = [&script("baseline_step_jax.py"), "--agent", agent, "--rounds", "40", "--json"];
    vec![
        ("album", command(album, &["bench", "cost", "--measure", agent, "--steps", "40"])),
        ("jax", command(python, &peer)),
    ]
}

/// A comparison is meaningful only if all compute the same: the peers reproduce the traces of album's tests.
/// For ALBUM, JAX itself recorded the trace.
fn check(agent: &str, python: &Path) -> Result<(), String> {
    let data = |path: &str| root().join("crates").join(path);
    let (script, trace) = match agent {
        "album" | BF16 => ("album_step_torch.py", data("album-nn/tests/data/album_trace.json")),
        "iql" => ("baseline_step_jax.py", data("album-agents/tests/data/iql-awr.npz")),
        _ => ("baseline_step_jax.py", data(&format!("album-agents/tests/data/{agent}.npz"))),
    };
    let mut check = Command::new(python);
    check.arg(root().join("benches").join("peers").join(script));
    if !matches!(agent, "album" | BF16) {
        check.args(["--agent", agent]);
    }
    check.arg("--check").arg(trace);
    run(&format!("the peer of {agent} repeats its trace"), check)
}

fn contest(agent: &str, album: &Path, python: &Path) -> Result<(), String> {
    check(agent, python)?;
    let contestants = contestants(agent, album, python);
    let mut times: Vec<Vec<(f64, f64)>> = contestants.iter().map(|_| Vec::new()).collect();
    for round in 1..=ROUNDS {
        eprintln!("{agent}: round {round} of {ROUNDS}");
        for ((_, words), times) in contestants.iter().zip(&mut times) {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            times.push(measure(command)?);
        }
    }
    let middle = |times: &[(f64, f64)], part: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = times.iter().map(part).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let ours = middle(&times[0], |x| x.0);
    for ((name, _), times) in contestants.iter().zip(&times) {
        let (ms, mib) = (middle(times, |x| x.0), middle(times, |x| x.1));
        eprintln!(
            "{agent} by {name:>6}: {ms:6.1} ms/step, {mib:5.0} MiB; album is {:.2} times as fast",
            ms / ours
        );
    }
    Ok(())
}

/// Runs a program that prints a JSON object with `ms_per_step` and a peak memory, and reads these two
/// numbers.
fn measure(mut command: Command) -> Result<(f64, f64), String> {
    let output = command.output().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |key: &str| {
        let after = text.split(&format!("\"{key}\":")).nth(1)?;
        let end = after.find([',', '}', '\n']).unwrap_or(after.len());
        after[..end].trim().parse::<f64>().ok()
    };
    match (number("ms_per_step"), number("peak_rss_mib")) {
        (Some(ms), Some(mib)) => Ok((ms, mib)),
        _ => Err(format!(
            "{command:?}: no ms_per_step and peak_rss_mib in\n{text}{}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

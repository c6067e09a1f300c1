//! `cargo xtask bench-peers`: the same ALBUM step by album, JAX and PyTorch, in turns.

use crate::{cargo, python, root, run};
use std::collections::BTreeMap;
use std::process::Command;

/// Rounds; each program runs once per round, because a shared machine is never equally fast twice.
const ROUNDS: usize = 9;

pub fn run_all() -> Result<(), String> {
    let python = python::peers(&root())?;
    run("build", cargo(&["build", "--release", "--package", "album"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let album = target.join("release").join("album");
    let peers = root().join("benches").join("peers");
    // A comparison means something only if all three compute the same: PyTorch repeats the trace that JAX recorded and
    // that album's tests repeat.
    let mut check = Command::new(python.interpreter());
    check.arg(peers.join("album_step_torch.py")).arg("--check");
    check.arg(root().join("crates/album-nn/tests/data/album_trace.json"));
    run("PyTorch repeats the trace of JAX", check)?;
    let mut times: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        let mut ours = Command::new(&album);
        ours.args(["bench", "step", "--rounds", "40", "--json"]);
        times.entry("album").or_default().push(measure(ours)?);
        for (name, script) in [("jax", "album_step_jax.py"), ("torch", "album_step_torch.py")] {
            let mut peer = Command::new(python.interpreter());
            peer.arg(peers.join(script)).args(["--rounds", "40", "--json"]);
            times.entry(name).or_default().push(measure(peer)?);
        }
    }
    let middle = |name: &str, part: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = times[name].iter().map(part).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let ours = middle("album", |x| x.0);
    for name in ["album", "jax", "torch"] {
        let (ms, mib) = (middle(name, |x| x.0), middle(name, |x| x.1));
        eprintln!("{name:>6}: {ms:6.1} ms/step, {mib:5.0} MiB; album is {:.2} times as fast", ms / ours);
    }
    Ok(())
}

/// Runs a program that prints a JSON object with `ms_per_step` and a peak memory; one number each is all that is read.
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

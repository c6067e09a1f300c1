//! The exact solvers against SciPy's linprog in interleaved rounds, and how they scale.

use super::{median, peak_mib};
use album::Error;
use album_base::number::{compact, grouped, seconds};
use album_data::NpzWriter;
use album_report::table::Table;
use album_tabular::{EmpiricalMdp, Lblp, MudWorld, Solver, TabularDataset, solve};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

const GAMMA: f64 = 0.95;
const K: usize = 10;
const OMEGA_Q: f64 = 0.1;
const OMEGA_V: f64 = 0.05;
const PEER: &str = include_str!("lblp_scipy.py");

/// The result of [`measure`].
#[derive(Debug, Serialize)]
pub struct SolveTimes {
    rounds: usize,
    solvers: Vec<Timing>,
    scaling: Vec<Scaling>,
}

#[derive(Debug, Serialize)]
struct Timing {
    solver: String,
    /// Median seconds for counting and assembly, and in total with the solution (and certificate).
    assembly: f64,
    seconds: f64,
    /// Speed-up over SciPy, if that was measured.
    times_faster_than_scipy: Option<f64>,
    objective: f64,
}

#[derive(Debug, Serialize)]
struct Scaling {
    size: usize,
    transitions: usize,
    pairs: usize,
    policies: usize,
    seconds: f64,
    microseconds_per_pair: f64,
    /// Peak memory of the process so far; `None` if the system does not report it.
    peak_mib: Option<f64>,
}

/// Times the solvers in interleaved rounds, with HiGHS if this build has it and with SciPy if a Python is
/// given; then the structural solver on worlds of these sizes. `progress` receives the current task and the
/// completed fraction.
pub fn measure(
    rounds_wanted: usize,
    sizes: &[usize],
    python: Option<&Path>,
    mut progress: impl FnMut(String, f64),
) -> Result<SolveTimes, Error> {
    if rounds_wanted == 0 || sizes.iter().any(|size| !(2..=2000).contains(size)) {
        return Err(Error::Usage("expected --rounds of at least 1 and --sizes between 2 and 2000".into()));
    }
    let data = MudWorld::new(MudWorld::SIZE, 0).down_right(2000);
    let mut solvers = vec![("bellman", Solver::Bellman)];
    if Solver::Highs.is_built() {
        solvers.push(("highs", Solver::Highs));
    }
    let mut peer = python.map(|python| Peer::start(python, &data)).transpose()?;
    // (assembly, total, objective) of every round; SciPy's last.
    let mut rounds: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new(); solvers.len() + 1];
    for round in 0..rounds_wanted {
        progress(
            format!("round {} of {}", round + 1, rounds_wanted),
            0.5 * round as f64 / rounds_wanted as f64,
        );
        for (i, (_, solver)) in solvers.iter().enumerate() {
            let start = Instant::now();
            let empirical = EmpiricalMdp::new(&data, GAMMA)?;
            let lblp = Lblp::of_data(&empirical, OMEGA_Q, OMEGA_V, K)?;
            let assembly = start.elapsed().as_secs_f64();
            let solution = solve(&lblp, *solver)?;
            rounds[i].push((assembly, start.elapsed().as_secs_f64(), solution.objective));
        }
        if let Some(peer) = &mut peer {
            let found = peer.round()?;
            rounds[solvers.len()].push((found.assembly, found.assembly + found.solution, found.objective));
        }
    }
    let scipy = peer.as_ref().map(|_| median(rounds[solvers.len()].iter().map(|r| r.1)));
    let mut names: Vec<&str> = solvers.iter().map(|s| s.0).collect();
    if peer.is_some() {
        names.push("scipy linprog(highs)");
    }
    let timings = names
        .into_iter()
        .zip(&rounds)
        .map(|(solver, rounds)| {
            let seconds = median(rounds.iter().map(|r| r.1));
            Timing {
                solver: solver.into(),
                assembly: median(rounds.iter().map(|r| r.0)),
                seconds,
                times_faster_than_scipy: scipy.map(|scipy| scipy / seconds),
                objective: rounds[0].2,
            }
        })
        .collect();
    drop(peer);

    let mut scaling = Vec::new();
    for (i, &size) in sizes.iter().enumerate() {
        progress(format!("MudWorld of {size} x {size} cells"), 0.5 + 0.5 * i as f64 / sizes.len() as f64);
        scaling.push(scale(size)?);
    }
    Ok(SolveTimes { rounds: rounds_wanted, solvers: timings, scaling })
}

fn scale(size: usize) -> Result<Scaling, Error> {
    let data = MudWorld::new(size, 0).down_right(2000);
    let start = Instant::now();
    let empirical = EmpiricalMdp::new(&data, GAMMA)?;
    let lblp = Lblp::of_data(&empirical, OMEGA_Q, OMEGA_V, K)?;
    let solution = solve(&lblp, Solver::Bellman)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(Scaling {
        size,
        transitions: data.len(),
        pairs: lblp.pairs(),
        policies: solution.iterations,
        seconds,
        microseconds_per_pair: 1e6 * seconds / lblp.pairs() as f64,
        peak_mib: peak_mib(),
    })
}

/// The SciPy process, one round per line.
struct Peer {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    folder: PathBuf,
}

#[derive(Deserialize)]
struct Round {
    assembly: f64,
    solution: f64,
    objective: f64,
    status: i64,
}

impl Peer {
    fn start(python: &Path, data: &TabularDataset) -> Result<Self, Error> {
        let folder = std::env::temp_dir().join(format!("album-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let (file, script) = (folder.join("data.npz"), folder.join("peer.py"));
        let mut npz = NpzWriter::create_stored(&file)?;
        let rows = [data.len()];
        npz.array_i64("states", &rows, &data.states)?;
        npz.array_i64("actions", &rows, &data.actions)?;
        npz.array_i64("next_states", &rows, &data.next_states)?;
        npz.array_f64("rewards", &rows, &data.rewards)?;
        npz.array_bool("terminals", &rows, &data.terminals)?;
        npz.finish()?;
        std::fs::write(&script, PEER).map_err(Error::io(&script))?;
        let failed = |e: std::io::Error| Error::Tool(format!("cannot run {}: {e}", python.display()));
        let mut child = Command::new(python)
            .arg(&script)
            .arg(&file)
            .args([GAMMA.to_string(), K.to_string(), OMEGA_Q.to_string(), OMEGA_V.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = from.ok_or_else(|| Error::Tool("the peer has no output".into()))?;
        let mut peer = Peer { child, to, from: BufReader::new(from), folder };
        peer.line()?; // its versions, sent once its imports are done
        Ok(peer)
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(n) if n > 0 => Ok(line),
            _ => Err(Error::Tool(
                "the SciPy peer ended early; is SciPy installed in the Python given by --python?".into(),
            )),
        }
    }

    fn round(&mut self) -> Result<Round, Error> {
        let broken = |e: std::io::Error| Error::Tool(format!("the SciPy peer exited: {e}"));
        if let Some(to) = &mut self.to {
            to.write_all(b"go\n").and_then(|()| to.flush()).map_err(broken)?;
        }
        let line = self.line()?;
        let round: Round =
            serde_json::from_str(&line).map_err(|e| Error::Tool(format!("SciPy peer: {e}: {line}")))?;
        match round.status {
            0 => Ok(round),
            status => Err(Error::Tool(format!("linprog ended with status {status}"))),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.to = None; // end of input: the peer exits
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl SolveTimes {
    /// The table for a terminal.
    pub fn text(&self) -> String {
        let report = self;
        let table = report.solvers.iter().fold(
            Table::new(["solver", "assembly", "whole", "against SciPy", "objective"]).caption(format!(
                "MudWorld 100 x 100, K = {K}: medians of {} interleaved rounds",
                report.rounds
            )),
            |table, t| {
                let ratio =
                    t.times_faster_than_scipy.map_or("not measured".into(), |r| format!("{r:.1} x faster"));
                table.row([
                    t.solver.clone(),
                    seconds(t.assembly),
                    seconds(t.seconds),
                    ratio,
                    format!("{:.12}", t.objective),
                ])
            },
        );
        let scaling = report.scaling.iter().fold(
            Table::new([
                "cells a side",
                "transitions",
                "pairs",
                "policies",
                "time",
                "µs per pair",
                "peak MiB",
            ])
            .caption("bellman with counting, duals and certificate"),
            |table, s| {
                table.row([
                    s.size.to_string(),
                    grouped(s.transitions as i64),
                    grouped(s.pairs as i64),
                    s.policies.to_string(),
                    seconds(s.seconds),
                    compact(s.microseconds_per_pair),
                    s.peak_mib.map_or("unknown".into(), |m| format!("{m:.0}")),
                ])
            },
        );
        format!("{}\n{}", table.to_text(), scaling.to_text())
    }
}

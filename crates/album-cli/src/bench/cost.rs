//! `album bench cost`: the paper's cost table on this machine, for every agent, and the Pareto figure.
//!
//! Every measurement is a process of its own, so that peak memory is that of one agent, and the agents take turns round by
//! round, so that a machine that slows down for a while slows all of them down.

use super::{median, peak_mib, time_steps};
use crate::output;
use album::Error as Failure;
use album::sizes::antmaze_large;
use album_agents::{AGENTS, Agent, Learner, find};
use album_base::number::{compact, grouped};
use album_base::{atomic, suggest};
use album_data::Segments;
use album_experiments::published::Published;
use album_nn::Pool;
use album_plot::{Plot, panels};
use album_report::table::Table;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The cost of a training step of each agent.
#[derive(clap::Args)]
pub struct Args {
    /// Which agents, separated by commas; `rebrac*` updates its actor at every step (default: all)
    #[arg(long, value_delimiter = ',')]
    agents: Vec<String>,
    /// Threads (0: all processors)
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Rounds in which all agents take turns; medians are reported
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Steps that are timed in a round
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Where the figure and the table are written
    #[arg(long, value_name = "DIR", default_value = "album-cost")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Measure one agent in this process; used by the command itself
    #[arg(long, hide = true)]
    measure: Option<String>,
}

/// What one process measures.
#[derive(Serialize, Deserialize)]
struct Measured {
    ms_per_step: f64,
    peak_rss_mib: f64,
}

#[derive(Serialize)]
struct Row {
    agent: String,
    parameters: usize,
    /// Counted from the shapes of all products, no row left out.
    gflop_per_step: f64,
    ms_per_step: f64,
    value_networks: usize,
    peak_rss_mib: f64,
}

#[derive(Serialize)]
struct Report {
    threads: usize,
    rounds: usize,
    rows: Vec<Row>,
    figure: PathBuf,
}

/// The paper's name of ReBRAC with the actor updated at every step.
const EVERY_STEP: &str = "rebrac*";

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.rounds == 0 || args.steps == 0 {
        return Err(Failure::Usage("--rounds and --steps must be at least 1".into()));
    }
    if let Some(agent) = &args.measure {
        return output::print_json(&measure(agent, args)?);
    }
    let names = names(&args.agents)?;
    let bar = output::progress_bar();
    bar.set_length((args.rounds * names.len()) as u64);
    let mut measured: Vec<Vec<Measured>> = names.iter().map(|_| Vec::new()).collect();
    for round in 0..args.rounds {
        for (name, measured) in names.iter().zip(&mut measured) {
            bar.set_prefix(format!("round {}", round + 1));
            bar.set_message(name.clone());
            measured.push(in_a_process(name, args)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let rows =
        names.iter().zip(&measured).map(|(name, measured)| row(name, measured)).collect::<Result<_, _>>()?;
    let figure = args.out.join("pareto.svg");
    let report = Report { threads: Pool::new(args.threads).threads(), rounds: args.rounds, rows, figure };
    write(&report, &args.out)?;
    if args.json { output::print_json(&report) } else { output::print(&text(&report)) }
}

/// The agents asked for, or all of them in the order of the paper's table where they are in it.
fn names(asked: &[String]) -> Result<Vec<String>, Failure> {
    let mut all: Vec<&str> = AGENTS.iter().map(|kind| kind.name).collect();
    all.push(EVERY_STEP);
    for name in asked {
        if !all.contains(&name.as_str()) {
            let hint = suggest::hint(name, all.iter().copied());
            return Err(Failure::Usage(format!("there is no agent `{name}`{hint}")));
        }
    }
    Ok(if asked.is_empty() { all.into_iter().map(str::to_owned).collect() } else { asked.to_vec() })
}

fn learner(name: &str, threads: usize) -> Result<(Learner, album_data::Dataset), Failure> {
    let kind = find(name.trim_end_matches('*'))?;
    let mut settings = kind.defaults()?;
    if name == EVERY_STEP {
        settings.insert("actor_every".into(), 1.into());
    }
    let data = antmaze_large(20)?;
    let agent = Learner::new(kind.setup(&settings)?.as_ref(), &data, 1_000_000, 0, &Pool::new(threads))?;
    Ok((agent, data))
}

fn measure(name: &str, args: &Args) -> Result<Measured, Failure> {
    let (mut agent, data) = learner(name, args.threads)?;
    let times = time_steps(&mut agent, &data, args.steps)?;
    // The mean of an even and an odd step, because some agents do not do the same at both.
    let pairs: Vec<f64> =
        times.chunks(2).map(|t| t.iter().map(|t| t.0).sum::<f64>() / t.len() as f64).collect();
    Ok(Measured { ms_per_step: 1e3 * median(&pairs, |t| *t), peak_rss_mib: peak_mib().unwrap_or(f64::NAN) })
}

fn in_a_process(name: &str, args: &Args) -> Result<Measured, Failure> {
    let failed = |what: String| Failure::Numerical(format!("measuring {name}: {what}"));
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let output = Command::new(program)
        .args(["bench", "cost", "--measure", name])
        .args(["--threads", &args.threads.to_string(), "--steps", &args.steps.to_string()])
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| failed(e.to_string()))
}

fn row(name: &str, measured: &[Measured]) -> Result<Row, Failure> {
    let (mut agent, data) = learner(name, 0)?;
    let segments = Segments::new(agent.segments()).map_err(|e| Failure::Config(e.to_string()))?;
    let mut batch = segments.batch(&data, agent.batch_size());
    segments.gather(&data, &mut batch);
    Ok(Row {
        agent: name.to_owned(),
        parameters: agent.parameters(),
        gflop_per_step: agent.operations(&batch) / 1e9,
        ms_per_step: median(measured, |m| m.ms_per_step),
        value_networks: agent.value_networks(),
        peak_rss_mib: median(measured, |m| m.peak_rss_mib),
    })
}

fn table(rows: &[Row]) -> Table {
    let header = ["agent", "parameters", "GFLOP/step", "ms/step", "Q/V nets", "peak MiB"];
    rows.iter().fold(Table::new(header), |table, row| {
        table.row([
            row.agent.clone(),
            grouped(row.parameters as i64),
            compact(row.gflop_per_step),
            compact(row.ms_per_step),
            row.value_networks.to_string(),
            format!("{:.0}", row.peak_rss_mib),
        ])
    })
}

fn text(report: &Report) -> String {
    format!(
        "{}antmaze-large sizes, default settings, {} threads, medians of {} rounds. Average success against cost: {}",
        table(&report.rows).to_text(),
        report.threads,
        report.rounds,
        report.figure.display()
    )
}

fn write(report: &Report, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(Failure::io(folder))?;
    let json = serde_json::to_string_pretty(report).map_err(|e| Failure::Numerical(e.to_string()))?;
    let files = [
        ("pareto.svg", pareto(&report.rows)?),
        ("cost.csv", table(&report.rows).to_csv()),
        ("cost.json", json + "\n"),
    ];
    for (name, content) in files {
        let path = folder.join(name);
        atomic::write(&path, content.as_bytes()).map_err(Failure::io(&path))?;
    }
    Ok(())
}

/// Average success of the published tables against the measured cost, for each of the paper's two sets of tasks.
fn pareto(rows: &[Row]) -> Result<String, Failure> {
    let published = Published::load().map_err(|e| Failure::Numerical(e.to_string()))?;
    let panel = |title: &str, table: &str| {
        let scores = published.scores(table).map_err(|e| Failure::Numerical(e.to_string()))?;
        let mut points: Vec<(f64, f64, &str)> = (scores.filter(|score| score.environment == "average"))
            .filter_map(|score| {
                let row = rows.iter().find(|row| row.agent == score.method.to_lowercase())?;
                Some((row.ms_per_step, score.mean, row.agent.as_str()))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut best = f64::NEG_INFINITY;
        let frontier: Vec<(f64, f64)> = (points.iter())
            .filter(|p| {
                let better = p.1 > best;
                best = best.max(p.1);
                better
            })
            .map(|p| (p.0, p.1))
            .collect();
        let plot = Plot::new(title)
            .size(470.0, 330.0)
            .x_label("ms per step on this machine")
            .y_label("average success in the paper (%)")
            .x_include(0.0)
            .y_include(0.0)
            .labelled("agents", &points)
            .dashed("Pareto frontier", &frontier);
        Ok::<_, Failure>(plot)
    };
    let both = [panel("Ten environments", "main")?, panel("Five environments, with chunking", "chunking")?];
    Ok(panels("Average success against the cost of a step", both, 2).render())
}

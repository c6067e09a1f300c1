//! `album bench cost`: the paper's cost table and figures on this machine, for every agent.
//!
//! Every measurement is a process of its own, so that peak memory is that of one agent, and the agents take turns round by
//! round, so that a machine that slows down for a while slows all of them down.

use super::{median, peak_mib, time_steps};
use crate::output;
use album::Error as Failure;
use album::sizes::antmaze_large;
use album_agents::{AGENTS, Agent, AgentKind, Learner};
use album_base::progress::{self, Amount};
use album_base::{atomic, suggest};
use album_data::Segments;
use album_experiments::CostOptions;
use album_experiments::cost::{ACTOR_EVERY_STEP, AgentCost, Costs, StepTime};
use album_experiments::published::Published;
use album_nn::Pool;
use album_stats::{Divisor, deviation};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The cost of a training step of each agent.
#[derive(clap::Args)]
pub struct Args {
    /// Which agents, separated by commas; `rebrac*` updates its actor at every step (default: all)
    #[arg(long, value_delimiter = ',')]
    agents: Vec<String>,
    /// Numbers of threads to time steps with, separated by commas (0: all processors)
    #[arg(long, value_delimiter = ',', default_values_t = [1, 0])]
    threads: Vec<usize>,
    /// Seeds, one a round in which all agents take turns; medians are reported
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Steps to time in a round
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Where the figures and the table are written
    #[arg(long, value_name = "DIR", default_value = "album-cost")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Measure one agent in this process; used by the command itself
    #[arg(long, hide = true)]
    measure: Option<String>,
    /// Its seed
    #[arg(long, hide = true, default_value_t = 0)]
    seed: u64,
}

impl Args {
    /// All agents, as an experiment asks for them.
    pub fn new(options: &CostOptions, out: &Path) -> Self {
        Args {
            agents: Vec::new(),
            threads: vec![1, 0],
            rounds: options.rounds,
            steps: 20,
            out: out.to_path_buf(),
            json: false,
            measure: None,
            seed: 0,
        }
    }
}

/// What one process measures.
#[derive(Serialize, Deserialize)]
struct Measured {
    ms_per_step: f64,
    peak_rss_mib: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.rounds == 0 || args.steps == 0 || args.threads.is_empty() {
        return Err(Failure::Usage(
            "--rounds, --steps and the numbers of --threads must be at least 1".into(),
        ));
    }
    if let Some(agent) = &args.measure {
        return output::print_json(&measure(agent, args)?);
    }
    let names = names(&args.agents)?;
    let mut threads: Vec<usize> = args.threads.iter().map(|&threads| Pool::new(threads).threads()).collect();
    threads.sort_unstable();
    threads.dedup();
    let bar = progress::bar((args.rounds * names.len() * threads.len()) as u64, Amount::Share);
    // By agent, by number of threads, by seed.
    let mut measured: Vec<Vec<Vec<Measured>>> =
        names.iter().map(|_| threads.iter().map(|_| Vec::new()).collect()).collect();
    for seed in 0..args.rounds {
        bar.set_prefix(format!("seed {seed}"));
        for (name, by_threads) in names.iter().zip(&mut measured) {
            bar.set_message(name.clone());
            for (&threads, measured) in threads.iter().zip(by_threads) {
                measured.push(in_a_process(name, threads, seed, args.steps)?);
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    let agents = names.iter().zip(&measured).map(|(name, measured)| cost(name, &threads, measured));
    let costs = Costs { seeds: args.rounds, agents: agents.collect::<Result<_, _>>()? };
    write(&costs, &args.out)?;
    if args.json {
        return output::print_json(&costs);
    }
    output::print(&format!(
        "{}antmaze-large sizes, default settings, medians and deviations over {} seeds; figures in {}",
        costs.table().to_text(),
        costs.seeds,
        args.out.display()
    ))
}

/// The agents asked for, or all of them in the order of the paper's table where they are in it.
fn names(asked: &[String]) -> Result<Vec<String>, Failure> {
    let mut all: Vec<&str> = AGENTS.iter().map(|kind| kind.name).collect();
    all.push(ACTOR_EVERY_STEP);
    for name in asked {
        if !all.contains(&name.as_str()) {
            let hint = suggest::hint(name, all.iter().copied());
            return Err(Failure::Usage(format!("there is no agent `{name}`{hint}")));
        }
    }
    Ok(if asked.is_empty() { all.into_iter().map(str::to_owned).collect() } else { asked.to_vec() })
}

fn learner(name: &str, threads: usize, seed: u64) -> Result<(Learner, album_data::Dataset), Failure> {
    let kind = AgentKind::find(name.trim_end_matches('*'))?;
    let mut settings = kind.defaults()?;
    if name == ACTOR_EVERY_STEP {
        settings.insert("actor_every".into(), 1.into());
    }
    let data = antmaze_large(20)?;
    let agent = Learner::new(kind.setup(&settings)?.as_ref(), &data, 1_000_000, seed, &Pool::new(threads))?;
    Ok((agent, data))
}

fn measure(name: &str, args: &Args) -> Result<Measured, Failure> {
    let (mut agent, data) = learner(name, args.threads.last().copied().unwrap_or(0), args.seed)?;
    let times = time_steps(&mut agent, &data, args.steps)?;
    // The mean of an even and an odd step, because some agents do not do the same at both.
    let pairs: Vec<f64> =
        times.chunks(2).map(|t| t.iter().map(|t| t.0).sum::<f64>() / t.len() as f64).collect();
    Ok(Measured { ms_per_step: 1e3 * median(&pairs, |t| *t), peak_rss_mib: peak_mib().unwrap_or(f64::NAN) })
}

fn in_a_process(name: &str, threads: usize, seed: usize, steps: usize) -> Result<Measured, Failure> {
    let failed = |what: String| Failure::Numerical(format!("measuring {name}: {what}"));
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let output = Command::new(program)
        .args(["bench", "cost", "--measure", name, "--seed", &seed.to_string()])
        .args(["--threads", &threads.to_string(), "--steps", &steps.to_string()])
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| failed(e.to_string()))
}

fn cost(name: &str, threads: &[usize], measured: &[Vec<Measured>]) -> Result<AgentCost, Failure> {
    let (mut agent, data) = learner(name, 0, 0)?;
    let segments = Segments::new(agent.segments()).map_err(|e| Failure::Config(e.to_string()))?;
    let mut batch = segments.batch(&data, agent.batch_size());
    segments.gather(&data, &mut batch);
    let time = |(&threads, measured): (&usize, &Vec<Measured>)| {
        let times: Vec<f64> = measured.iter().map(|m| m.ms_per_step).collect();
        let deviation = deviation(&times, Divisor::Count).unwrap_or(f64::NAN);
        StepTime { threads, ms_per_step: median(&times, |ms| *ms), deviation }
    };
    Ok(AgentCost {
        agent: name.to_owned(),
        parameters: agent.parameters(),
        gflop_per_step: agent.operations(&batch) / 1e9,
        times: threads.iter().zip(measured).map(time).collect(),
        value_networks: agent.value_networks(),
        peak_rss_mib: measured.last().map_or(f64::NAN, |measured| median(measured, |m| m.peak_rss_mib)),
    })
}

fn write(costs: &Costs, folder: &Path) -> Result<(), Failure> {
    let published = Published::load().map_err(|e| Failure::Numerical(e.to_string()))?;
    std::fs::create_dir_all(folder).map_err(Failure::io(folder))?;
    let json = serde_json::to_string_pretty(costs).map_err(|e| Failure::Numerical(e.to_string()))?;
    let files = [
        ("cost.svg", costs.bars(&published).render()),
        ("pareto.svg", costs.pareto(&published).render()),
        ("cost.csv", costs.table().to_csv()),
        ("cost.json", json + "\n"),
    ];
    for (name, content) in files {
        let path = folder.join(name);
        atomic::write(&path, content.as_bytes()).map_err(Failure::io(&path))?;
    }
    Ok(())
}

//! `album solve`: the exact in-sample values of a finite dataset.

use crate::choices::choices;
use crate::output;
use album::Error as Failure;
use album::solve::{LogOutputs, LogRun, SolvedProgram, check_outputs, mudworld, read_program};
use album_base::warn;
use album_tabular::log::{LogColumns, Question};
use album_tabular::{Behaviour, MudWorld, Solver, TabularError};
use clap::builder::TypedValueParser;
use std::fmt::Display;
use std::path::PathBuf;

/// Arguments of `album solve`.
#[derive(clap::Args)]
pub struct Args {
    /// `mudworld`; a log (Parquet, CSV, CSV.gz, npz; several files or a folder form one log) with --state,
    /// --action, --reward and --episode; or an npz file with the integer arrays `states`, `actions`,
    /// `next_states`, the floats `rewards` and the flags `terminals` (true where a recorded trajectory ends)
    #[arg(required = true, value_name = "SOURCE")]
    input: Vec<PathBuf>,
    #[command(flatten)]
    log: LogArgs,
    /// Behaviour policy of the MudWorld dataset
    #[arg(long, value_parser = behaviours(), default_value = "down-right")]
    data: Behaviour,
    /// Seed of the MudWorld layout and dataset, and of the bootstrap
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Side length of the MudWorld, in cells
    #[arg(long, default_value_t = MudWorld::SIZE, value_name = "N")]
    size: usize,
    /// Length of the rollout constraints
    #[arg(long, default_value_t = 10, allow_negative_numbers = true)]
    k: i64,
    /// Discount factor in [0, 1)
    #[arg(long, default_value_t = 0.95, allow_negative_numbers = true)]
    gamma: f64,
    /// Objective weight of Q
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true)]
    omega_q: f64,
    /// Objective weight of V
    #[arg(long, default_value_t = 0.05, allow_negative_numbers = true)]
    omega_v: f64,
    /// The solver; all but `bellman` assemble the whole program, and `highs` needs a build with
    /// `--features highs`
    #[arg(long, value_parser = solvers(), default_value = "bellman")]
    solver: Solver,
    /// Also write the linear program as an MPS file
    #[arg(long, value_name = "FILE")]
    mps: Option<PathBuf>,
    /// Write the solution: for a log the policy, as .parquet, .csv or .npz; otherwise an npz file with
    /// states, v, pair_states, pair_actions, q, dual_b, dual_e
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The meaning of the columns of a log.
#[derive(clap::Args)]
#[command(next_help_heading = "Logs")]
struct LogArgs {
    /// Columns that together form the state
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires_all = ["action", "reward", "episode"], conflicts_with = "mps")]
    state: Vec<String>,
    /// Column of the action
    #[arg(long, value_name = "COLUMN", requires = "state")]
    action: Option<String>,
    /// Column of the reward
    #[arg(long, value_name = "COLUMN", requires = "state")]
    reward: Option<String>,
    /// Column that identifies the episode
    #[arg(long, value_name = "COLUMN", requires = "state")]
    episode: Option<String>,
    /// Column that orders the rows of an episode [default: the order of the file]
    #[arg(long, value_name = "COLUMN", requires = "state")]
    step: Option<String>,
    /// Columns of the next state, in the order of --state [default: the state of the next row]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires = "state")]
    next_state: Vec<String>,
    /// Column of flags that mark where an episode terminates [default: every episode terminates at its last
    /// row]
    #[arg(long, value_name = "COLUMN", requires = "state")]
    terminal: Option<String>,
    /// Discretise a numeric state column into N bins with equally many rows
    #[arg(long, value_name = "COLUMN=N", value_delimiter = ',', value_parser = bin, requires = "state")]
    bin: Vec<(String, usize)>,
    /// Recommend only actions with at least N rows in a state
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_count: u64,
    /// Compute intervals from N bootstrap resamples of the episodes; 200 are enough for most logs
    #[arg(long, value_name = "N", default_value_t = 0)]
    bootstrap: usize,
    /// Write an HTML report
    #[arg(long, value_name = "FILE.html", requires = "state")]
    report: Option<PathBuf>,
}

fn bin(text: &str) -> Result<(String, usize), String> {
    let (column, parts) = text.rsplit_once('=').ok_or("expected COLUMN=N, such as age=10")?;
    let parts = parts.parse().map_err(|_| format!("found `{parts}`, expected a number of parts"))?;
    Ok((column.to_owned(), parts))
}

fn behaviours() -> impl TypedValueParser<Value = Behaviour> {
    choices([
        ("down-right", Behaviour::DownRight, "2,000 episodes that go down or right at random"),
        ("eps-greedy", Behaviour::EpsGreedy, "300 near-optimal episodes from all over the grid"),
    ])
}

fn solvers() -> impl TypedValueParser<Value = Solver> {
    choices([
        ("bellman", Solver::Bellman, "Policy iteration, duals from the occupancy flow"),
        ("interior-point", Solver::InteriorPoint, "An interior-point method on the assembled program"),
        ("highs", Solver::Highs, "HiGHS on the assembled program"),
    ])
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let outputs = [
        ("--out", args.out.as_deref()),
        ("--mps", args.mps.as_deref()),
        ("--report", args.log.report.as_deref()),
    ];
    check_outputs(&args.input, outputs)?;
    if args.log.state.is_empty() { program(args) } else { log(args) }
}

fn log(args: &Args) -> Result<(), Failure> {
    let log = &args.log;
    let columns = LogColumns {
        state: log.state.clone(),
        action: log.action.clone().unwrap_or_default(),
        reward: log.reward.clone().unwrap_or_default(),
        episode: log.episode.clone().unwrap_or_default(),
        step: log.step.clone(),
        next_state: log.next_state.clone(),
        terminal: log.terminal.clone(),
        bins: log.bin.clone(),
    };
    let question =
        Question { gamma: args.gamma, min_count: log.min_count, bootstrap: log.bootstrap, seed: args.seed };
    let outputs = LogOutputs::new(args.out.as_deref(), log.report.as_deref())?;
    let run = LogRun::new(&args.input, &columns, &question, &outputs)?;
    run.write(&outputs)?;
    run.summary.warnings.iter().for_each(|warning| warn!("{warning}"));
    output::show(args.json, &run.summary, || {
        text(&run.summary, [("policy in", &args.out), ("page in", &args.log.report)])
    })
}

fn program(args: &Args) -> Result<(), Failure> {
    let [input] = &args.input[..] else {
        return Err(Failure::Usage(
            "several files form one log; name its columns (--state, --action, ...)".into(),
        ));
    };
    let name = input.display().to_string();
    let k = usize::try_from(args.k).map_err(|_| TabularError::RolloutLength(args.k))?;
    album_tabular::check_gamma(args.gamma)?;
    let world = (name == "mudworld").then(|| mudworld(args.size, args.seed)).transpose()?;
    let data = match &world {
        Some(world) => world.dataset(args.data, args.gamma)?,
        None => read_program(input)?,
    };
    let weights = (args.omega_q, args.omega_v);
    let mut solved = SolvedProgram::new(&name, &data, world.as_ref(), (args.gamma, k), weights, args.solver)?;
    solved.write(args.mps.as_deref(), args.out.as_deref())?;
    solved.summary.warnings.iter().for_each(|warning| warn!("{warning}"));
    output::show(args.json, &solved.summary, || {
        text(&solved.summary, [("program in", &args.mps), ("solution in", &args.out)])
    })
}

/// The summary, and the names of the files that were written.
fn text(summary: &dyn Display, files: [(&str, &Option<PathBuf>); 2]) -> String {
    let named = |(name, path): (&str, &Option<PathBuf>)| {
        path.as_ref().map_or_else(String::new, |path| format!("\n{name:>15}  {}", path.display()))
    };
    summary.to_string() + &files.map(named).concat()
}

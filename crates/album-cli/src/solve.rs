//! `album solve`: the exact in-sample values of a finite dataset.

use crate::output;
use album::Error as Failure;
use album_base::atomic::AtomicFile;
use album_data::DataError;
use album_tabular::lp::LinearProgram;
use album_tabular::theory::sandwich::{self, Comparison};
use album_tabular::{
    Behaviour, Certificate, EmpiricalMdp, Lblp, MudWorld, Solution, Solver, TabularDataset, TabularError,
    max_difference, solve, value_iteration_from,
};
use clap::ValueEnum;
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What to solve, and how.
#[derive(clap::Args)]
pub struct Args {
    /// `mudworld`, or an npz file with the integer arrays `states`, `actions`, `next_states`, the floats `rewards`
    /// and the flags `terminals` (they mark where a recorded trajectory ends)
    input: String,
    /// How the MudWorld dataset is collected
    #[arg(long, value_enum, default_value_t = Data::DownRight)]
    data: Data,
    /// Seed of the MudWorld layout and dataset
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Cells a side of the MudWorld
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
    /// The solver; all but `bellman` assemble the whole program, and `highs` needs a build with `--features highs`
    #[arg(long, value_enum, default_value_t = SolverName::Bellman)]
    solver: SolverName,
    /// Also write the linear program as an MPS file
    #[arg(long, value_name = "FILE")]
    mps: Option<PathBuf>,
    /// Write the solution: states, v, pair_states, pair_actions, q, dual_b, dual_e
    #[arg(long, value_name = "FILE.npz")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Data {
    /// 2,000 episodes of Down or Right at random
    DownRight,
    /// 300 nearly optimal episodes from everywhere
    EpsGreedy,
}

#[derive(Clone, Copy, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum SolverName {
    /// Policy iteration, duals from the occupancy flow
    Bellman,
    /// The program itself, by an interior-point method
    InteriorPoint,
    /// The program itself, by HiGHS
    Highs,
}

/// The JSON object of this command.
#[derive(Serialize)]
struct Report {
    input: String,
    solver: SolverName,
    gamma: f64,
    k: usize,
    transitions: usize,
    trajectories: usize,
    deterministic: bool,
    /// States with an action in the data, each a variable V.
    states: usize,
    absorbing_states: usize,
    pairs: usize,
    variables: usize,
    constraints: usize,
    /// Entries of the constraint matrix, where `--mps` assembles it.
    nonzeros: Option<usize>,
    objective: f64,
    v_min: f64,
    v_mean: f64,
    v_max: f64,
    /// Assembly, solution and certificate together.
    seconds: f64,
    seconds_assembly: f64,
    seconds_solution: f64,
    seconds_certificate: f64,
    certificate: Certificate,
    max_dual_b: f64,
    max_dual_e: f64,
    diff_vs_value_iteration: f64,
    sandwich: Sandwich,
    warnings: Vec<String>,
}

#[derive(Default, Serialize)]
struct Sandwich {
    applies: bool,
    /// What was compared with what, or why nothing was.
    what: String,
    compared: Option<usize>,
    violations: Option<usize>,
    max_violation: Option<f64>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let k = usize::try_from(args.k).map_err(|_| TabularError::RolloutLength(args.k))?;
    album_tabular::check_gamma(args.gamma)?;
    if args.mps.is_some() && args.mps == args.out {
        return Err(Failure::Usage("--mps and --out name the same file".into()));
    }
    let world = (args.input == "mudworld").then(|| mudworld(args)).transpose()?;
    let data = match &world {
        Some(world) => world.dataset(behaviour(args.data), args.gamma)?,
        None => read(Path::new(&args.input))?,
    };

    let start = Instant::now();
    let empirical = EmpiricalMdp::new(&data, args.gamma)?;
    let lblp = Lblp::of_data(&empirical, args.omega_q, args.omega_v, k)?;
    let assembly = start.elapsed().as_secs_f64();
    let solver = match args.solver {
        SolverName::Bellman => Solver::Bellman,
        SolverName::InteriorPoint => Solver::InteriorPoint,
        SolverName::Highs => Solver::Highs,
    };
    let solution = solve(&lblp, solver)?;
    let program = args.mps.as_ref().map(|_| lblp.assemble()).transpose()?;

    let (q, v) = value_iteration_from(&empirical.mdp, solution.v.clone(), 1e-12);
    let (max_dual_b, max_dual_e) = solution.penalty_thresholds();
    let (seconds_solution, seconds_certificate) =
        (solution.solve_time.as_secs_f64(), solution.certificate_time.as_secs_f64());
    let report = Report {
        input: args.input.clone(),
        solver: args.solver,
        gamma: args.gamma,
        k,
        transitions: empirical.rows(),
        trajectories: empirical.row_end.iter().filter(|&&end| end).count(),
        deterministic: empirical.mdp.is_deterministic(),
        states: lblp.states(),
        absorbing_states: empirical.mdp.states() - lblp.states(),
        pairs: lblp.pairs(),
        variables: lblp.variables(),
        constraints: lblp.constraints(),
        nonzeros: program.as_ref().map(|program| program.matrix.nonzeros()),
        objective: solution.objective,
        v_min: solution.v.iter().copied().fold(f64::INFINITY, f64::min),
        v_mean: solution.v.iter().sum::<f64>() / solution.v.len() as f64,
        v_max: solution.v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        seconds: assembly + seconds_solution + seconds_certificate,
        seconds_assembly: assembly,
        seconds_solution,
        seconds_certificate,
        certificate: solution.certificate.clone(),
        max_dual_b,
        max_dual_e,
        diff_vs_value_iteration: max_difference(&q, &solution.q).max(max_difference(&v, &solution.v)),
        sandwich: Sandwich::new(sandwich::compare(&empirical, &solution.q, world.as_ref())?, world.is_some()),
        warnings: warnings(&data),
    };
    write_files(args, &empirical, &lblp, program.as_ref(), &solution)?;
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    if args.json { output::print_json(&report) } else { output::print(&text(&report, args)) }
}

fn mudworld(args: &Args) -> Result<MudWorld, Failure> {
    if !(2..=2000).contains(&args.size) {
        return Err(Failure::Usage(format!("--size is {}; expected 2 to 2000 cells a side", args.size)));
    }
    Ok(MudWorld::new(args.size, args.seed))
}

fn behaviour(data: Data) -> Behaviour {
    match data {
        Data::DownRight => Behaviour::DownRight,
        Data::EpsGreedy => Behaviour::EpsGreedy,
    }
}

fn read(path: &Path) -> Result<TabularDataset, Failure> {
    TabularDataset::read_npz(path).map_err(|e| match e {
        // A name that is neither a world nor a file is most likely a slip of the pen.
        TabularError::Data(DataError::Io { place, source })
            if source.kind() == std::io::ErrorKind::NotFound && path.extension().is_none() =>
        {
            Failure::Usage(format!(
                "`{}` is neither a known world (mudworld) nor a file",
                place.file.display()
            ))
        }
        e => e.into(),
    })
}

fn warnings(data: &TabularDataset) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some((row, count)) = data.unmarked_ends() {
        warnings.push(format!(
            "row {row} leads to state {}, but row {} starts in state {} and terminals[{row}] is false; trajectories \
             are taken to end at such rows ({count} in all)",
            data.next_states[row],
            row + 1,
            data.states[row + 1]
        ));
    }
    warnings
}

impl Sandwich {
    fn new(comparison: Comparison, known_world: bool) -> Self {
        let not_compared = |why: &str| Sandwich { what: why.into(), ..Sandwich::default() };
        match comparison {
            Comparison::Stochastic => not_compared(
                "the data is stochastic: some pair has several successors, and a lucky recorded return may exceed \
                 every value",
            ),
            Comparison::NoCompleteReturn => not_compared(
                "no recorded trajectory ends in a state that the data never leaves, so there is no complete return",
            ),
            Comparison::Compared(violations) => Sandwich {
                applies: true,
                what: if known_world { "G_D <= Q*_D <= Q*" } else { "G_D <= Q*_D" }.into(),
                compared: Some(violations.compared),
                violations: Some(violations.count),
                max_violation: Some(violations.largest),
            },
        }
    }
}

/// Writes both files completely before either takes its place.
fn write_files(
    args: &Args,
    data: &EmpiricalMdp,
    lblp: &Lblp<'_>,
    program: Option<&LinearProgram>,
    solution: &Solution,
) -> Result<(), Failure> {
    let mps = match args.mps.as_ref().zip(program) {
        Some((path, program)) => {
            let file = AtomicFile::create(path).map_err(Failure::io(path))?;
            let mut buffer = BufWriter::with_capacity(1 << 20, file);
            lblp.write_mps(program, &mut buffer, data).map_err(Failure::io(path))?;
            buffer.flush().map_err(Failure::io(path))?;
            Some((path, buffer.into_inner().map_err(|e| Failure::io(path)(e.into_error()))?))
        }
        None => None,
    };
    let npz = args.out.as_ref().map(|path| solution.write_npz(path, data)).transpose()?;
    if let Some((path, file)) = mps {
        file.commit().map_err(Failure::io(path))?;
    }
    if let Some(npz) = npz {
        npz.finish()?;
    }
    Ok(())
}

fn text(r: &Report, args: &Args) -> String {
    use album_base::number::{compact, grouped, seconds};
    let count = |n: usize| grouped(n as i64);
    let sandwich = match (r.sandwich.violations, r.sandwich.max_violation) {
        (Some(count), Some(largest)) => {
            format!("{}: {count} violations, largest {}", r.sandwich.what, compact(largest))
        }
        _ => format!("not checked: {}", r.sandwich.what),
    };
    let mut lines = vec![
        (
            "data",
            format!(
                "{}: {} transitions in {} {}",
                r.input,
                count(r.transitions),
                count(r.trajectories),
                if r.trajectories == 1 { "trajectory" } else { "trajectories" }
            ),
        ),
        (
            "empirical MDP",
            format!(
                "{} pairs, {} states with actions, {} absorbing, {}",
                count(r.pairs),
                count(r.states),
                count(r.absorbing_states),
                if r.deterministic { "deterministic" } else { "stochastic" }
            ),
        ),
        (
            "program",
            format!(
                "{} variables, {} constraints{} (K = {}, gamma = {})",
                count(r.variables),
                count(r.constraints),
                r.nonzeros.map_or(String::new(), |n| format!(", {} nonzeros", count(n))),
                r.k,
                r.gamma
            ),
        ),
        ("objective", format!("{:.12}", r.objective)),
        ("V*_D", format!("min {}, mean {}, max {}", compact(r.v_min), compact(r.v_mean), compact(r.v_max))),
        (
            "certificate",
            format!(
                "primal {}, dual {}, slackness {}, gap {}",
                compact(r.certificate.primal),
                compact(r.certificate.dual),
                compact(r.certificate.slackness),
                compact(r.certificate.gap)
            ),
        ),
        ("largest duals", format!("lambda_B {}, lambda_E {}", compact(r.max_dual_b), compact(r.max_dual_e))),
        ("value iteration", format!("differs by {}", compact(r.diff_vs_value_iteration))),
        ("sandwich", sandwich),
        (
            "time",
            format!(
                "{} (assembly {}, solution {}, certificate {})",
                seconds(r.seconds),
                seconds(r.seconds_assembly),
                seconds(r.seconds_solution),
                seconds(r.seconds_certificate)
            ),
        ),
    ];
    for (name, path) in [("program in", &args.mps), ("solution in", &args.out)] {
        if let Some(path) = path {
            lines.push((name, path.display().to_string()));
        }
    }
    lines.iter().map(|(name, value)| format!("{name:>15}  {value}")).collect::<Vec<_>>().join("\n")
}

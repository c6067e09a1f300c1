//! `album solve`: the exact in-sample values of a finite dataset.

use crate::output;
use album::Error as Failure;
use album_base::atomic::AtomicFile;
use album_data::{DataError, NpzWriter};
use album_tabular::theory::sandwich;
use album_tabular::{
    Behaviour, Certificate, EmpiricalMdp, Lblp, MudWorld, Solution, Solver, TabularDataset, TabularError,
    max_difference, solve, value_iteration,
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
    /// The solver; `highs` needs a build with `--features highs`
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
#[serde(rename_all = "lowercase")]
enum SolverName {
    /// Policy iteration, duals from the occupancy flow
    Bellman,
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
    nonzeros: usize,
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
    let k = usize::try_from(args.k).map_err(|_| {
        Failure::Tabular(TabularError::Coefficient {
            name: "K",
            value: args.k as f64,
            expected: "rollout length of at least 1",
        })
    })?;
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
        SolverName::Highs => Solver::Highs,
    };
    let solution = solve(&empirical.mdp, &lblp, solver)?;

    let (q, v) = value_iteration(&empirical.mdp, 1e-12);
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
        nonzeros: lblp.nonzeros(),
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
        sandwich: sandwich_report(world.as_ref(), &empirical, &solution.q, args.gamma)?,
        warnings: warnings(&data),
    };
    write_files(args, &empirical, &lblp, &solution)?;
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

fn sandwich_report(
    world: Option<&MudWorld>,
    data: &EmpiricalMdp,
    q_d: &[f64],
    gamma: f64,
) -> Result<Sandwich, Failure> {
    let Some(mut violations) = sandwich::lower_bound(data, q_d) else {
        return Ok(Sandwich {
            what: "the data is stochastic: some pair has several successors, and a lucky recorded return may exceed \
                   every value"
                .into(),
            ..Sandwich::default()
        });
    };
    let mut what = "G_D <= Q*_D".to_owned();
    if let Some(world) = world {
        violations.see_all(q_d, &sandwich::world_values(world, data, gamma)?);
        what += " <= Q*";
    }
    if violations.compared == 0 {
        return Ok(Sandwich {
            what: "no recorded trajectory ends in a state that the data never leaves, so there is no complete return"
                .into(),
            ..Sandwich::default()
        });
    }
    Ok(Sandwich {
        applies: true,
        what,
        compared: Some(violations.compared),
        violations: Some(violations.count),
        max_violation: Some(violations.largest),
    })
}

/// Writes both files completely before either takes its place.
fn write_files(args: &Args, data: &EmpiricalMdp, lblp: &Lblp, solution: &Solution) -> Result<(), Failure> {
    let mps = match &args.mps {
        Some(path) => {
            let file = AtomicFile::create(path).map_err(Failure::io(path))?;
            let mut buffer = BufWriter::with_capacity(1 << 20, file);
            lblp.write_mps(&mut buffer, data).map_err(Failure::io(path))?;
            buffer.flush().map_err(Failure::io(path))?;
            Some((path, buffer.into_inner().map_err(|e| Failure::io(path)(e.into_error()))?))
        }
        None => None,
    };
    let npz = match &args.out {
        Some(path) => {
            let (states, pairs) = (lblp.states(), lblp.pairs());
            let mut npz = NpzWriter::create(path)?;
            npz.array_i64("states", &[states], &data.state_labels[..states])?;
            npz.array_f64("v", &[states], &solution.v)?;
            let pair_states: Vec<i64> = (0..pairs).map(|pair| data.pair_state_label(pair)).collect();
            npz.array_i64("pair_states", &[pairs], &pair_states)?;
            npz.array_i64("pair_actions", &[pairs], &data.pair_actions)?;
            npz.array_f64("q", &[pairs], &solution.q)?;
            npz.array_f64("dual_b", &[pairs], solution.dual_b())?;
            npz.array_f64("dual_e", &[pairs], solution.dual_e())?;
            Some(npz)
        }
        None => None,
    };
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
                "{} variables, {} constraints, {} nonzeros (K = {}, gamma = {})",
                count(r.variables),
                count(r.constraints),
                count(r.nonzeros),
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

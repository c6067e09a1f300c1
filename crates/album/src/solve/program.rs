//! The linear program of a tabular dataset: solution, certificate, comparisons, files.

use crate::Error;
use album_base::atomic::AtomicFile;
use album_data::DataError;
use album_data::table::Table;
use album_tabular::lp::LinearProgram;
use album_tabular::theory::sandwich::{self, Comparison};
use album_tabular::{
    Certificate, EmpiricalMdp, Lblp, MudWorld, Solution, Solver, TabularDataset, TabularError,
    max_difference, solve, value_iteration_from,
};
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

/// The summary of a solved program; the JSON object of `album solve`.
#[derive(Debug, Serialize)]
pub struct ProgramSummary {
    /// The file or world.
    pub input: String,
    /// The solver's name.
    pub solver: &'static str,
    /// The discount factor.
    pub gamma: f64,
    /// Rollout length.
    pub k: usize,
    /// Number of transitions.
    pub transitions: usize,
    /// Number of recorded trajectories.
    pub trajectories: usize,
    /// Whether every state-action pair has one successor.
    pub deterministic: bool,
    /// States with an action in the data; each has a variable V.
    pub states: usize,
    /// States without a recorded action.
    pub absorbing_states: usize,
    /// Recorded state-action pairs.
    pub pairs: usize,
    /// Number of variables.
    pub variables: usize,
    /// Number of constraints.
    pub constraints: usize,
    /// Nonzeros of the constraint matrix, if it was assembled.
    pub nonzeros: Option<usize>,
    /// The minimum of the objective.
    pub objective: f64,
    /// The smallest V*_D.
    pub v_min: f64,
    /// The mean V*_D over states.
    pub v_mean: f64,
    /// The largest V*_D.
    pub v_max: f64,
    /// Time for assembly, solution and certificate together.
    pub seconds: f64,
    /// Time to count transitions and weights.
    pub seconds_assembly: f64,
    /// Time of the solver.
    pub seconds_solution: f64,
    /// Time to check the solution.
    pub seconds_certificate: f64,
    /// Residuals of the optimality conditions.
    pub certificate: Certificate,
    /// The largest dual variable of family B.
    pub max_dual_b: f64,
    /// The largest dual variable of family E.
    pub max_dual_e: f64,
    /// The largest difference from value iteration.
    pub diff_vs_value_iteration: f64,
    /// The check of G_D <= Q*_D <= Q*, where it applies.
    pub sandwich: Sandwich,
    /// Warnings about the data.
    pub warnings: Vec<String>,
}

/// Comparison of Q*_D with recorded returns and with the true Q*.
#[derive(Debug, Default, Serialize)]
pub struct Sandwich {
    /// Whether there was something to compare.
    pub applies: bool,
    /// What was compared, or why nothing was.
    pub what: String,
    /// Number of pairs compared.
    pub compared: Option<usize>,
    /// Number of pairs that violate the order.
    pub violations: Option<usize>,
    /// The largest violation.
    pub max_violation: Option<f64>,
}

/// A solved program with the contents of its output files.
#[derive(Debug)]
pub struct SolvedProgram {
    /// The summary.
    pub summary: ProgramSummary,
    /// The data as an empirical MDP.
    pub empirical: EmpiricalMdp,
    /// Primal and dual solution.
    pub solution: Solution,
    weights: (f64, f64),
}

impl SolvedProgram {
    /// Solves the program of a dataset; `world` is the environment it was collected in, if known.
    pub fn new(
        input: &str,
        data: &TabularDataset,
        world: Option<&MudWorld>,
        (gamma, k): (f64, usize),
        weights: (f64, f64),
        solver: Solver,
    ) -> Result<Self, Error> {
        let start = Instant::now();
        let empirical = EmpiricalMdp::new(data, gamma)?;
        let lblp = Lblp::of_data(&empirical, weights.0, weights.1, k)?;
        let assembly = start.elapsed().as_secs_f64();
        let solution = solve(&lblp, solver)?;
        let (q, v) = value_iteration_from(&empirical.mdp, solution.v.clone(), 1e-12);
        let (max_dual_b, max_dual_e) = solution.penalty_thresholds();
        let (seconds_solution, seconds_certificate) =
            (solution.solve_time.as_secs_f64(), solution.certificate_time.as_secs_f64());
        let summary = ProgramSummary {
            input: input.to_owned(),
            solver: solver.name(),
            gamma,
            k,
            transitions: empirical.rows(),
            trajectories: empirical.row_end.iter().filter(|&&end| end).count(),
            deterministic: empirical.mdp.is_deterministic(),
            states: lblp.states(),
            absorbing_states: empirical.mdp.states() - lblp.states(),
            pairs: lblp.pairs(),
            variables: lblp.variables(),
            constraints: lblp.constraints(),
            nonzeros: None,
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
            sandwich: Sandwich::new(sandwich::compare(&empirical, &solution.q, world)?, world.is_some()),
            warnings: warnings(data),
        };
        Ok(Self { summary, empirical, solution, weights })
    }

    /// Writes the program and the solution; both are complete before either replaces a file.
    pub fn write(&mut self, mps: Option<&Path>, npz: Option<&Path>) -> Result<(), Error> {
        let lblp = Lblp::of_data(&self.empirical, self.weights.0, self.weights.1, self.summary.k)?;
        let program = mps.map(|_| lblp.assemble()).transpose()?;
        self.summary.nonzeros = program.as_ref().map(|program| program.matrix.nonzeros());
        let mps = match mps.zip(program.as_ref()) {
            Some((path, program)) => Some((path, write_mps(path, &lblp, program, &self.empirical)?)),
            None => None,
        };
        let npz = npz.map(|path| self.solution.write_npz(path, &self.empirical)).transpose()?;
        if let Some((path, file)) = mps {
            file.commit().map_err(Error::io(path))?;
        }
        if let Some(npz) = npz {
            npz.finish()?;
        }
        Ok(())
    }
}

fn write_mps(
    path: &Path,
    lblp: &Lblp<'_>,
    program: &LinearProgram,
    data: &EmpiricalMdp,
) -> Result<AtomicFile, Error> {
    let file = AtomicFile::create(path).map_err(Error::io(path))?;
    let mut buffer = BufWriter::with_capacity(1 << 20, file);
    lblp.write_mps(program, &mut buffer, data).map_err(Error::io(path))?;
    buffer.flush().map_err(Error::io(path))?;
    buffer.into_inner().map_err(|e| Error::io(path)(e.into_error()))
}

fn warnings(data: &TabularDataset) -> Vec<String> {
    let warning = |(row, count): (usize, usize)| {
        format!(
            "row {row} leads to state {}, but row {} starts in state {} and terminals[{row}] is false; trajectories \
             are taken to end at such rows ({count} in all)",
            data.next_states[row],
            row + 1,
            data.states[row + 1]
        )
    };
    data.unmarked_ends().map(warning).into_iter().collect()
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

/// The MudWorld of a seed with this side length in cells.
pub fn mudworld(size: usize, seed: u64) -> Result<MudWorld, Error> {
    match size {
        2..=2000 => Ok(MudWorld::new(size, seed)),
        _ => Err(Error::Usage(format!("--size is {size}; expected 2 to 2000 cells a side"))),
    }
}

/// Reads the arrays of a tabular dataset from an npz file.
pub fn read_program(path: &Path) -> Result<TabularDataset, Error> {
    if Table::recognises(path) {
        let table = Table::open(&[path])?;
        return Err(Error::Usage(format!(
            "{} is a table; say what its columns mean (--state, --action, --reward, --episode). It has {}",
            path.display(),
            table
                .names()
                .iter()
                .take(20)
                .map(|name| format!("`{}`", name.escape_debug()))
                .collect::<Vec<_>>()
                .join(", ")
        )));
    }
    TabularDataset::read_npz(path).map_err(|e| match e {
        // A name that is neither a world nor a file is most likely a typo.
        TabularError::Data(DataError::Io { place, source })
            if source.kind() == std::io::ErrorKind::NotFound && path.extension().is_none() =>
        {
            Error::Usage(format!("`{}` is neither a known world (mudworld) nor a file", place.file.display()))
        }
        e => e.into(),
    })
}

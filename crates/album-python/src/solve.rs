//! Solves the exact tabular program on arrays in memory.

use crate::arrays::{column, integers};
use crate::dataset::json;
use crate::errors::raise;
use album::solve::SolvedProgram;
use album_tabular::{Solver, TabularDataset, check_gamma};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Solves the program of numbered states and actions. Returns arrays by name, and the summary as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the keywords of solve, which Python has named")]
pub fn solve<'py>(
    py: Python<'py>,
    states: PyReadonlyArray1<'py, i64>,
    actions: PyReadonlyArray1<'py, i64>,
    rewards: PyReadonlyArray1<'py, f64>,
    next_states: PyReadonlyArray1<'py, i64>,
    terminals: PyReadonlyArray1<'py, bool>,
    gamma: f64,
    k: usize,
    weights: (f64, f64),
) -> PyResult<(Bound<'py, PyDict>, String)> {
    let data = TabularDataset {
        states: integers(&states)?,
        actions: integers(&actions)?,
        rewards: rewards.as_slice()?.to_vec(),
        next_states: integers(&next_states)?,
        terminals: terminals.as_slice()?.to_vec(),
    };
    let solved = py.detach(|| -> Result<_, album::Error> {
        data.check("arrays in memory")?;
        check_gamma(gamma)?;
        SolvedProgram::new("arrays in memory", &data, None, (gamma, k), weights, Solver::Bellman)
    });
    let SolvedProgram { summary, empirical, solution, .. } = solved.map_err(|e| raise(py, e))?;
    let found = PyDict::new(py);
    let (states, pairs) = (solution.v.len(), solution.q.len());
    found.set_item("states", column(py, empirical.state_labels[..states].to_vec()))?;
    found.set_item("v", column(py, solution.v))?;
    let pair_states = (0..pairs).map(|pair| empirical.pair_state_label(pair)).collect();
    found.set_item("pair_states", column(py, pair_states))?;
    found.set_item("pair_actions", column(py, empirical.pair_actions.clone()))?;
    found.set_item("counts", column(py, empirical.counts.clone()))?;
    found.set_item("q", column(py, solution.q))?;
    let duals = solution.duals;
    for (name, duals) in [("b", duals.b), ("e", duals.e), ("kq", duals.kq), ("kv", duals.kv)] {
        found.set_item(format!("dual_{name}"), column(py, duals))?;
    }
    Ok((found, json(&summary)?))
}

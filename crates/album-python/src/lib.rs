//! The native part of the Python package `album_rl`: passes arrays and callbacks to the library `album`.
//!
//! Decisions are left to the library. `python/album_rl/` wraps these functions in the API that Python users
//! see; the two exchange arrays, and JSON for anything with many named fields.

mod agent;
mod arrays;
mod dataset;
mod env;
mod errors;
mod fit;
mod solve;

use album_agents::AGENTS;
use pyo3::prelude::*;
use serde_json::json;

/// Every agent with its hyperparameters and their defaults, as JSON.
#[pyfunction]
fn agents(py: Python<'_>) -> PyResult<String> {
    let mut all = Vec::new();
    for kind in AGENTS {
        let defaults = kind.defaults().map_err(|e| errors::raise(py, e.into()))?;
        all.push(json!({
            "name": kind.name,
            "policy": kind.policy,
            "discrete": kind.learns_discrete(),
            "reference": kind.reference,
            "defaults": defaults,
        }));
    }
    Ok(serde_json::Value::from(all).to_string())
}

/// Refuses hyperparameters that the agent does not have, or with values of another type.
#[pyfunction]
fn check(py: Python<'_>, agent: &str, settings: &str) -> PyResult<()> {
    let refuse = |e: album::Error| errors::raise(py, e);
    let mut fit = album::Fit::new(agent).map_err(refuse)?;
    for (key, value) in fit::table(settings)? {
        fit = fit.set(&key, value).map_err(refuse)?;
    }
    fit.check().map_err(refuse)
}

/// The module `album_rl._album`.
#[pymodule]
fn _album(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<dataset::Dataset>()?;
    module.add_class::<agent::Agent>()?;
    module.add_function(wrap_pyfunction!(agents, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(agent::load, module)?)?;
    module.add_function(wrap_pyfunction!(solve::solve, module)?)
}

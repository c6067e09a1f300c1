//! A trained agent.

use crate::arrays::{Rows, column};
use crate::dataset::{Dataset, json};
use crate::errors::{exception, raise};
use album::export::{Export, Format, export};
use album::fqe::{Request, evaluate_run, evaluate_trained};
use album::{Fitted, Resources, RunConfig, Trained, run};
use album_agents::Moment;
use album_data::ActionSpace;
use album_train::{Records, RunResult, StopFlag};
use numpy::{PyArrayMethods, PyReadonlyArray1};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Up to this many rows, releasing the GIL costs more than it gains.
const FEW: usize = 16;

/// Where an agent's run directory is.
#[derive(Debug)]
pub enum Home {
    /// A temporary directory, deleted with the agent.
    Temporary(TempDir),
    /// A directory of the user's.
    Saved(PathBuf),
}

impl Home {
    fn path(&self) -> PathBuf {
        match self {
            Home::Temporary(folder) => folder.path().join("run"),
            Home::Saved(path) => path.clone(),
        }
    }
}

/// A policy and its critic, as a checkpoint of a run has them.
#[pyclass(frozen, module = "album_rl._album")]
pub struct Agent {
    fitted: Mutex<Fitted>,
    config: RunConfig,
    step: u64,
    home: Home,
    result: Option<RunResult>,
    chosen: Vec<String>,
    observation_dim: usize,
    action_space: ActionSpace,
    weights_sha256: String,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("config", &self.config)
            .field("step", &self.step)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl Agent {
    pub fn new(
        trained: Trained,
        home: Home,
        result: Option<RunResult>,
        chosen: Vec<String>,
    ) -> PyResult<Self> {
        let (config, step) = (trained.config.clone(), trained.checkpoint.step());
        let fitted = Fitted::from(trained);
        Ok(Agent {
            observation_dim: fitted.observation_dim(),
            action_space: fitted.action_space(),
            weights_sha256: fitted.weights_sha256(),
            fitted: Mutex::new(fitted),
            config,
            step,
            home,
            result,
            chosen,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Fitted> {
        self.fitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies `of` to the agent, releasing the GIL if there are enough rows.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        rows: usize,
        use_agent: impl FnOnce(&mut Fitted) -> T + Send,
    ) -> T {
        if rows <= FEW { use_agent(&mut self.lock()) } else { py.detach(|| use_agent(&mut self.lock())) }
    }

    /// Converts actions for Python: floats, or integers for discrete actions.
    fn actions(&self, py: Python<'_>, rows: &Rows<'_>, actions: Vec<f32>) -> PyResult<Py<PyAny>> {
        match (&self.action_space, rows.single) {
            (ActionSpace::Discrete { .. }, true) => actions.first().map(|&x| x as i64).into_py_any(py),
            (ActionSpace::Discrete { .. }, false) => {
                column(py, actions.into_iter().map(|x| x as i64).collect()).into_py_any(py)
            }
            (ActionSpace::Continuous { .. }, true) => column(py, actions).into_py_any(py),
            (ActionSpace::Continuous { low, .. }, false) => {
                column(py, actions).reshape([rows.rows, low.len()])?.into_py_any(py)
            }
        }
    }

    /// Converts values for Python: one per row.
    fn values(
        &self,
        py: Python<'_>,
        single: bool,
        what: &str,
        values: Option<Vec<f32>>,
    ) -> PyResult<Py<PyAny>> {
        let Some(values) = values else {
            let message = format!("the agent `{}` learns no {what}", self.config.agent);
            return Err(exception(py, "Unsupported", message));
        };
        if single { values.first().into_py_any(py) } else { column(py, values).into_py_any(py) }
    }
}

#[pymethods]
impl Agent {
    /// The actions for some observations.
    fn predict(&self, py: Python<'_>, observations: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let rows = Rows::new("observations", observations, self.observation_dim)?;
        let numbers = rows.numbers()?;
        let actions = self.with(py, rows.rows, |fitted| fitted.act(numbers));
        self.actions(py, &rows, actions)
    }

    /// The action at a step of an episode.
    fn act(
        &self,
        py: Python<'_>,
        observation: &Bound<'_, PyAny>,
        episode: u64,
        step: u64,
    ) -> PyResult<Py<PyAny>> {
        let rows = Rows::new("observation", observation, self.observation_dim)?;
        let numbers = rows.numbers()?;
        let moments: Vec<Moment> =
            (0..rows.rows as u64).map(|row| Moment { episode: episode.wrapping_add(row), step }).collect();
        let actions = self.with(py, rows.rows, |fitted| fitted.act_at(numbers, &moments));
        self.actions(py, &rows, actions)
    }

    /// The values of some observations.
    fn value(&self, py: Python<'_>, observations: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let rows = Rows::new("observations", observations, self.observation_dim)?;
        let numbers = rows.numbers()?;
        let values = self.with(py, rows.rows, |fitted| fitted.value(numbers));
        self.values(py, rows.single, "state value", values)
    }

    /// The values of actions in their observations.
    fn q(
        &self,
        py: Python<'_>,
        observations: &Bound<'_, PyAny>,
        actions: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let rows = Rows::new("observations", observations, self.observation_dim)?;
        let width = self.action_space.dim();
        let chosen = match (&self.action_space, rows.single) {
            // One discrete action per row is a matrix of one column.
            (ActionSpace::Discrete { .. }, false) => Rows::new(
                "actions",
                &actions.py().import("numpy")?.call_method1("reshape", (actions, (-1, 1)))?,
                1,
            )?,
            _ => Rows::new("actions", actions, width)?,
        };
        if chosen.rows != rows.rows {
            let message =
                format!("actions: found {} rows, expected {} as in observations", chosen.rows, rows.rows);
            return Err(exception(py, "DataError", message));
        }
        let (observations, actions) = (rows.numbers()?, chosen.numbers()?);
        if let ActionSpace::Discrete { n } = self.action_space
            && let Some(&found) =
                actions.iter().find(|&&x| !(x >= 0.0 && (x as usize) < n && x.fract() == 0.0))
        {
            let message = format!("actions: found {found}, expected a whole number from 0 to {}", n - 1);
            return Err(exception(py, "DataError", message));
        }
        let values = self.with(py, rows.rows, |fitted| fitted.q(observations, actions));
        self.values(py, rows.single, "value of single actions", values)
    }

    /// Copies the run to a place where there is nothing.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| run::copy(&self.home.path(), &path)).map_err(|e| raise(py, e))
    }

    /// Writes the policy into one file; what was written, as JSON.
    #[pyo3(signature = (path, format, check))]
    fn export(&self, py: Python<'_>, path: PathBuf, format: &str, check: Option<usize>) -> PyResult<String> {
        let format = match format {
            "onnx" => Format::Onnx,
            "safetensors" => Format::Safetensors,
            other => {
                let message = format!("format = `{other}`; expected onnx or safetensors");
                return Err(exception(py, "ConfigError", message));
            }
        };
        let how = Export { step: Some(self.step), format, out: path, check };
        json(&py.detach(|| export(&self.home.path(), &how)).map_err(|e| raise(py, e))?)
    }

    /// Judges the policy on data, or on the episodes that the run held out; what came of it, as JSON.
    #[pyo3(signature = (data, propensities, ensemble, updates, seed, threads))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of fqe, which Python has named")]
    fn fqe(
        &self,
        py: Python<'_>,
        data: Option<&Dataset>,
        propensities: Option<PyReadonlyArray1<'_, f64>>,
        ensemble: Option<usize>,
        updates: Option<u64>,
        seed: u64,
        threads: usize,
    ) -> PyResult<String> {
        let request = Request { step: Some(self.step), ensemble, updates, seed, ..Request::default() };
        let (path, resources) = (self.home.path(), Resources { threads, ..Resources::default() });
        let data = data.map(|data| &data.data.dataset);
        let propensities = propensities.map(|array| array.as_slice().map(<[f64]>::to_vec)).transpose()?;
        let found = attended(py, |stop| match data {
            None => evaluate_run(&path, &request, &resources, stop, &mut |_, _| {}),
            Some(data) => {
                let mut trained = Trained::open(&path, request.step, &resources)?;
                let propensities = propensities.as_deref();
                evaluate_trained(&mut trained, data, propensities, &request, &resources, stop)
            }
        })?;
        json(&found.map_err(|e| raise(py, e))?)
    }

    /// The share of the episodes that the run held out.
    #[getter]
    fn holdout(&self) -> f64 {
        self.config.train.holdout
    }

    /// The run directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.home.path()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.config.agent
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.config.seed
    }

    #[getter]
    fn step(&self) -> u64 {
        self.step
    }

    #[getter]
    fn observation_dim(&self) -> usize {
        self.observation_dim
    }

    #[getter]
    fn weights_sha256(&self) -> &str {
        &self.weights_sha256
    }

    /// What was chosen from the data, and why.
    #[getter]
    fn chosen(&self) -> Vec<String> {
        self.chosen.clone()
    }

    /// What actions are, as JSON.
    fn action_space(&self) -> PyResult<String> {
        json(&self.action_space)
    }

    /// All hyperparameters, as JSON.
    fn settings(&self) -> PyResult<String> {
        json(&self.config.settings)
    }

    /// What `result.json` holds, as JSON.
    fn result(&self) -> PyResult<String> {
        json(&self.result)
    }
}

/// Runs `work` without the GIL; a signal handler that raises, as for Ctrl-C, stops it.
fn attended<T: Send>(py: Python<'_>, work: impl FnOnce(&StopFlag) -> T + Send) -> PyResult<T> {
    let stop = StopFlag::new();
    py.detach(|| {
        std::thread::scope(|scope| {
            let working = scope.spawn(|| work(&stop));
            let mut raised = Ok(());
            while !working.is_finished() {
                std::thread::sleep(Duration::from_millis(10));
                if raised.is_ok() {
                    raised = Python::attach(|py| py.check_signals());
                }
                if raised.is_err() {
                    stop.set();
                }
            }
            let panicked =
                |_| pyo3::exceptions::PyRuntimeError::new_err("album panicked; please report this");
            let done = working.join().map_err(panicked);
            raised.and(done)
        })
    })
}

/// Reads the agent of a run.
#[pyfunction]
#[pyo3(signature = (path, step, threads))]
pub fn load(py: Python<'_>, path: PathBuf, step: Option<u64>, threads: usize) -> PyResult<Agent> {
    let resources = Resources { threads, ..Resources::default() };
    let open = |path: &Path| -> Result<_, album::Error> {
        Ok((Trained::open(path, step, &resources)?, Records::result_of(path)?))
    };
    let (trained, result) = py.detach(|| open(&path)).map_err(|e| raise(py, e))?;
    Agent::new(trained, Home::Saved(std::path::absolute(&path)?), result, Vec::new())
}

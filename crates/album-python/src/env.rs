//! The caller's Python environment, stepped in the caller's own thread.

use crate::errors::exception;
use crate::fit::Caller;
use album_envs::python::GYMNASIUM;
use album_envs::{ActionSpace, Answer, EnvError, EnvPool, EnvShape, Step};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyModuleNotFoundError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;
use std::sync::Arc;

/// One environment. Requests are sent to the thread that called `fit`, where the environment was created:
/// environments that render or hold files often must stay in their thread.
pub struct CallersEnv {
    adapter: Arc<Py<PyAny>>,
    shape: EnvShape,
    versions: BTreeMap<String, String>,
    caller: Caller,
    steps: usize,
    answer: Option<Answer>,
}

impl fmt::Debug for CallersEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallersEnv").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// Wraps an environment, or the result of a function without arguments, in the adapter that worker processes use.
pub fn adapt(env: &Bound<'_, PyAny>) -> PyResult<(Py<PyAny>, EnvShape)> {
    let py = env.py();
    let env = if !env.hasattr("step")? && env.is_callable() { env.call0()? } else { env.clone() };
    if let Err(error) = py.import("gymnasium") {
        if error.is_instance_of::<PyModuleNotFoundError>(py) {
            let message = "env: gymnasium is not installed; `pip install gymnasium` brings it".to_owned();
            return Err(exception(py, "EnvError", message));
        }
        return Err(error);
    }
    // In a worker process, these names are in the main module.
    let source = GYMNASIUM.replace("from __main__ import", "from album_rl._host import");
    let module = PyModule::from_code(
        py,
        CString::new(source)?.as_c_str(),
        c"album_rl/_gymnasium.py",
        c"album_rl._gymnasium",
    )?;
    let adapter = module.getattr("make")?.call1(("object", env))?;
    let number = |name: &str| adapter.getattr(name)?.extract::<usize>();
    let actions = match number("choices")? {
        0 => {
            let bound = |name: &str| -> PyResult<Vec<f32>> {
                adapter.getattr(name)?.call_method1("tolist", ())?.extract()
            };
            ActionSpace::Continuous { low: bound("low")?, high: bound("high")? }
        }
        n => ActionSpace::Discrete { n },
    };
    let shape =
        EnvShape { observation_dim: number("observation_dim")?, actions, horizon: number("horizon")? };
    Ok((adapter.unbind(), shape))
}

impl CallersEnv {
    pub fn new(adapter: Py<PyAny>, shape: EnvShape, caller: Caller) -> Self {
        let versions = BTreeMap::new();
        CallersEnv { adapter: Arc::new(adapter), shape, versions, caller, steps: 0, answer: None }
    }
}

impl EnvPool for CallersEnv {
    fn shape(&self) -> &EnvShape {
        &self.shape
    }

    fn slots(&self) -> usize {
        1
    }

    fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn is_next(&self, _slot: usize, _waiting: usize) -> bool {
        true
    }

    fn reset(&mut self, _slot: usize, seed: u64, _frames: bool) -> Result<(), EnvError> {
        self.steps = 0;
        let adapter = Arc::clone(&self.adapter);
        let observation =
            self.caller.call(move |py| numbers(&adapter.bind(py).call_method1("reset", (seed,))?))?;
        self.answer = Some(Answer::Started { observation, frame: None });
        Ok(())
    }

    fn step(&mut self, _slot: usize, action: &[f32]) -> Result<(), EnvError> {
        self.steps += 1;
        let at_the_end = self.steps >= self.shape.horizon;
        let (adapter, action) = (Arc::clone(&self.adapter), self.clipped(action));
        let step = self.caller.call(move |py| {
            let found = adapter.bind(py).call_method1("step", (PyArray1::from_vec(py, action),))?;
            let at = |i: usize| found.get_item(i);
            let success = at(4)?;
            Ok(Step {
                observation: numbers(&at(0)?)?,
                reward: at(1)?.extract()?,
                terminated: at(2)?.is_truthy()?,
                truncated: at(3)?.is_truthy()? || at_the_end,
                success: (!success.is_none()).then(|| success.is_truthy()).transpose()?,
                frame: None,
            })
        })?;
        self.answer = Some(Answer::Stepped(step));
        Ok(())
    }

    fn wait(&mut self) -> Result<Vec<(usize, Answer)>, EnvError> {
        Ok(self.answer.take().map(|answer| (0, answer)).into_iter().collect())
    }
}

impl CallersEnv {
    /// Clips an action to the environment's bounds, which may be tighter than those of the data.
    fn clipped(&self, action: &[f32]) -> Vec<f32> {
        match &self.shape.actions {
            ActionSpace::Discrete { .. } => action.to_vec(),
            ActionSpace::Continuous { low, high } => {
                let bounds = low.iter().zip(high);
                action.iter().zip(bounds).map(|(x, (low, high))| x.max(*low).min(*high)).collect()
            }
        }
    }
}

fn numbers(array: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    Ok(array.cast::<PyArray1<f32>>()?.try_readonly()?.as_slice()?.to_vec())
}

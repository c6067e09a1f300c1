//! Datasets from arrays or files, and the doctor's report on them.

use crate::arrays::{Lent, column};
use crate::errors::{exception, raise};
use album::Error;
use album::doctor::Inspection;
use album_data::{ColumnMap, Format, LentArray, Source, SourceData, Unchecked};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Logged decisions, checked and copied.
#[pyclass(frozen, module = "album_rl._album")]
pub struct Dataset {
    /// Where the data came from.
    pub source: Source,
    pub data: SourceData,
}

impl std::fmt::Debug for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dataset").field("source", &self.source).finish_non_exhaustive()
    }
}

/// The options that cannot be inferred from the data, parsed from JSON and the text of a `ColumnMap`.
fn source(py: Python<'_>, options: &str, columns: Option<&str>) -> PyResult<Source> {
    let refuse = |message: String| exception(py, "ConfigError", message);
    let mut source: Source = serde_json::from_str(options).map_err(|e| refuse(e.to_string()))?;
    if let Some(columns) = columns {
        source.columns = columns.parse::<ColumnMap>().map_err(|e| refuse(e.to_string()))?;
    }
    Ok(source)
}

#[pymethods]
impl Dataset {
    /// Reads named arrays.
    #[staticmethod]
    fn from_arrays(
        py: Python<'_>,
        arrays: Vec<(String, Bound<'_, PyAny>)>,
        options: &str,
        columns: Option<&str>,
    ) -> PyResult<Self> {
        let source = Source { format: Some(Format::Memory), ..source(py, options, columns)? };
        let lent = arrays.iter().map(|(name, array)| Ok((name, Lent::new(name, array)?)));
        let lent = lent.collect::<PyResult<Vec<_>>>()?;
        let mut views = Vec::new();
        for (name, array) in &lent {
            let (name, shape) = ((*name).clone(), array.shape().to_vec());
            views.push(LentArray { name, shape, elements: array.elements()? });
        }
        // The GIL is held while the arrays are copied, so no Python code changes them meanwhile.
        let data = source.read_lent(&views).map_err(|e| raise(py, e.into()))?;
        Ok(Dataset { source, data })
    }

    /// Reads files and folders.
    #[staticmethod]
    fn load(py: Python<'_>, paths: Vec<PathBuf>, options: &str, columns: Option<&str>) -> PyResult<Self> {
        let mut source = source(py, options, columns)?;
        for path in paths {
            // A path that does not exist may be the id of a Minari dataset.
            let path = if path.exists() { std::path::absolute(&path)? } else { path };
            source.paths.push(path);
        }
        let data = py.detach(|| source.read()).map_err(|e| raise(py, e.into()))?;
        Ok(Dataset { source, data })
    }

    fn __len__(&self) -> usize {
        self.data.dataset.len()
    }

    /// What it turned out to be, as JSON.
    fn description(&self) -> PyResult<String> {
        json(&self.data.description)
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.data.warnings.clone()
    }

    fn content_hash(&self, py: Python<'_>) -> String {
        py.detach(|| self.data.dataset.content_hash())
    }

    /// What the doctor says, as JSON.
    fn inspect(&self, py: Python<'_>, gamma: f64) -> PyResult<String> {
        if !(0.0..1.0).contains(&gamma) {
            let message = format!("gamma = {gamma}; expected at least 0 and less than 1");
            return Err(exception(py, "ConfigError", message));
        }
        let SourceData { dataset, description, warnings } = self.data.clone();
        let data = Unchecked { dataset, warnings, labelled: true, bad: Vec::new(), unfinished: false };
        let found = py.detach(|| Inspection::of(&data, description, gamma));
        json(&found.map_err(|e| raise(py, e.into()))?)
    }

    /// Training and held-out episodes, as `fit(holdout=share)` draws them.
    fn split(&self, py: Python<'_>, share: f64, seed: u64) -> PyResult<(Self, Self)> {
        let (training, held_out) =
            self.data.dataset.hold_out(share, seed).map_err(|e| raise(py, Error::Config(e.to_string())))?;
        let part = |dataset: album_data::Dataset| {
            let mut data = SourceData { dataset, ..self.data.clone() };
            data.description.episodes = data.dataset.episodes().len();
            Dataset { source: Source { format: Some(Format::Memory), ..Source::default() }, data }
        };
        Ok((part(training), part(held_out)))
    }

    /// Observations and next observations, actions in physical units, rewards, masks, and the episode of each
    /// transition: copies.
    #[allow(clippy::type_complexity, reason = "a tuple of arrays, which Python takes apart at once")]
    fn transitions<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(
        Bound<'py, PyArray2<f32>>,
        Bound<'py, PyArray2<f32>>,
        Bound<'py, PyArray2<f32>>,
        Bound<'py, PyArray1<f32>>,
        Bound<'py, PyArray1<f32>>,
        Bound<'py, PyArray1<i64>>,
    )> {
        let data = &self.data.dataset;
        let all = || 0..data.len();
        let observations = all().flat_map(|t| data.observation(t)).copied().collect();
        let next = all().flat_map(|t| data.next_observation(t)).copied().collect();
        let mut actions: Vec<f32> = all().flat_map(|t| data.action(t)).copied().collect();
        data.action_space().to_physical(&mut actions);
        let rewards = all().map(|t| data.reward(t)).collect();
        let masks = all().map(|t| data.mask(t)).collect();
        let episodes = data.episodes();
        let numbers =
            (0..episodes.len()).flat_map(|e| std::iter::repeat_n(e as i64, episodes.length(e))).collect();
        let matrix = |numbers: Vec<f32>, width: usize| column(py, numbers).reshape([data.len(), width]);
        Ok((
            matrix(observations, data.observation_dim())?,
            matrix(next, data.observation_dim())?,
            matrix(actions, data.action_dim())?,
            column(py, rewards),
            column(py, masks),
            column(py, numbers),
        ))
    }
}

/// Serializes to JSON, which never fails for types of the library.
pub fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))
}

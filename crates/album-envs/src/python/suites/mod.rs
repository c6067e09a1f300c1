//! What workers run. A suite is a Python file in this folder, which `worker.py` loads, and a constructor here that
//! names its arguments. `worker.py` documents what the file must define.

use album_data::ogbench::{Environment, TaskName};

use crate::env::EnvSpec;

/// The pinned packages that the suites run with.
pub const REQUIREMENTS: &str = include_str!("requirements.txt");

/// A Python adapter and its arguments.
#[derive(Debug, Clone)]
pub struct Suite {
    /// What runs, as messages name it.
    pub(super) name: String,
    pub(super) file: &'static str,
    pub(super) source: &'static str,
    pub(super) arguments: Vec<String>,
    /// What the worker must report; `None` accepts any.
    pub(super) expected: Option<EnvSpec>,
}

impl Suite {
    /// The environment of a task in the package `ogbench`.
    pub fn ogbench(task: &TaskName) -> Self {
        let id = task.environment_id();
        Self {
            name: id.clone(),
            file: "ogbench.py",
            source: include_str!("ogbench.py"),
            arguments: vec![id],
            expected: Some(EnvSpec::of(task.environment())),
        }
    }

    /// Episodes of `rows` rows that oracles of the package `ogbench` record; `kind` is `play` or `noisy`.
    pub(crate) fn play(environment: &Environment, kind: &str, rows: usize) -> Self {
        Self {
            name: format!("{}-v0", environment.name),
            file: "play.py",
            source: include_str!("play.py"),
            arguments: vec![environment.name.to_owned(), kind.to_owned(), rows.to_string()],
            expected: Some(EnvSpec { horizon: rows, ..EnvSpec::of(environment) }),
        }
    }
}

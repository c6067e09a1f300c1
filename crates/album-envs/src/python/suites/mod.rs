//! What workers run. A suite is a Python file in this folder, loaded by `worker.py`, and a constructor here
//! that sets its arguments. `worker.py` documents what the file must define.

use album_data::ogbench::{Environment, TaskName};

use crate::env::EnvShape;
use crate::spec::{EnvSource, EnvSpec};

/// The pinned packages that the suites run with.
pub const REQUIREMENTS: &str = include_str!("requirements.txt");

/// The adapter for gymnasium environments, also usable in-process; see the file.
pub const GYMNASIUM: &str = include_str!("gymnasium.py");

/// A Python adapter and its arguments.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The name shown in messages.
    pub(super) name: String,
    /// The `album setup` target that installs its packages.
    pub(super) setup: &'static str,
    pub(super) file: &'static str,
    pub(super) source: &'static str,
    pub(super) arguments: Vec<String>,
    /// The shape that the worker must report; `None` accepts any.
    pub(super) expected: Option<EnvShape>,
}

impl Suite {
    /// The environment of a task in the `ogbench` package.
    pub fn ogbench(task: &TaskName) -> Self {
        let id = task.environment_id();
        Self {
            name: id.clone(),
            setup: "ogbench",
            file: "ogbench.py",
            source: include_str!("ogbench.py"),
            arguments: vec![id],
            expected: Some(EnvShape::of(task.environment())),
        }
    }

    /// Walking in commanded directions, in an `ogbench` environment such as `online-ant-v0`.
    pub fn directions(environment: &str) -> Self {
        Self {
            name: environment.to_owned(),
            setup: "ogbench",
            file: "directions.py",
            source: include_str!("directions.py"),
            arguments: vec![environment.to_owned()],
            expected: None,
        }
    }

    /// Any environment with the gymnasium interface.
    pub fn gymnasium(spec: &EnvSpec) -> Self {
        let (kind, name) = match spec.source() {
            EnvSource::Gymnasium { id } => ("id", id.clone()),
            EnvSource::File { path, function } => ("file", format!("{}:{function}", path.display())),
        };
        Self {
            name: spec.to_string(),
            setup: "gymnasium",
            file: "gymnasium.py",
            source: GYMNASIUM,
            arguments: vec![kind.to_owned(), name, spec.args_json()],
            expected: None,
        }
    }

    /// A function in a Python file as a policy: `name` is FILE:FUNCTION; `numbers` are the observation and
    /// action dimensions and the number of discrete actions.
    pub(crate) fn policy(name: String, numbers: [usize; 3]) -> Self {
        Self {
            name: name.clone(),
            setup: "gymnasium",
            file: "policy.py",
            source: include_str!("policy.py"),
            arguments: [name].into_iter().chain(numbers.map(|n| n.to_string())).collect(),
            expected: None,
        }
    }

    /// Episodes of `rows` rows recorded by oracles of the `ogbench` package; `kind` is `play` or `noisy`.
    pub(crate) fn play(environment: &Environment, kind: &str, rows: usize) -> Self {
        Self {
            name: format!("{}-v0", environment.name),
            setup: "ogbench",
            file: "play.py",
            source: include_str!("play.py"),
            arguments: vec![environment.name.to_owned(), kind.to_owned(), rows.to_string()],
            expected: Some(EnvShape { horizon: rows, ..EnvShape::of(environment) }),
        }
    }

    /// Episodes of `rows` rows in which the policy file `expert` walks; `kind` is `navigate`, `stitch` or
    /// `explore`.
    pub(crate) fn locomaze(environment: &Environment, kind: &str, rows: usize, expert: String) -> Self {
        let play = Self::play(environment, kind, rows);
        let arguments = play.arguments.into_iter().chain([expert]).collect();
        Self { file: "locomaze.py", source: include_str!("locomaze.py"), arguments, ..play }
    }
}

//! Names of tasks, such as `pointmaze-medium-navigate-singletask-task1-v0`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::ogbench::environment::{ENVIRONMENTS, Environment};
use crate::ogbench::goal::Goal;
use album_base::suggest;

/// An OGBench task: an environment, a kind of data, and one of five goals.
///
/// Written `<environment>-<data>-singletask[-taskN]-v0`; without `-taskN` it is the environment's default
/// task.
///
/// ```
/// use album_data::ogbench::TaskName;
///
/// # fn main() -> Result<(), album_data::ogbench::UnknownTask> {
/// let task: TaskName = "puzzle-3x3-play-singletask-v0".parse()?;
/// assert_eq!(task.task(), 4);
/// assert_eq!(task.environment_id(), "puzzle-3x3-singletask-v0");
/// assert_eq!(task.validation_file(), "puzzle-3x3-play-v0-val.npz");
///
/// let error = "pointmaze-medum-navigate-singletask-task1-v0".parse::<TaskName>().unwrap_err();
/// assert_eq!(error.suggestions[0], "pointmaze-medium-navigate-singletask-task1-v0");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskName {
    environment: &'static Environment,
    data_kind: &'static str,
    /// The number in the name; `None` for the default task.
    number: Option<usize>,
}

/// No dataset has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown dataset `{}`{}", .found.escape_debug(), dataset_hint(.suggestions))]
pub struct UnknownDataset {
    /// The given name.
    pub found: String,
    /// Similar names of datasets, or of tasks if one was meant, nearest first. May be empty.
    pub suggestions: Vec<String>,
}

fn dataset_hint(suggestions: &[String]) -> String {
    if suggestions.is_empty() {
        return ", expected a name such as `antmaze-large-navigate-v0`".to_owned();
    }
    suggest::did_you_mean(suggestions)
}

/// No task has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown task `{}`{}", .found.escape_debug(), hint(.suggestions))]
pub struct UnknownTask {
    /// The given name.
    pub found: String,
    /// Similar names of tasks, nearest first. May be empty.
    pub suggestions: Vec<String>,
}

fn hint(suggestions: &[String]) -> String {
    if suggestions.is_empty() {
        return ", expected a name such as `pointmaze-medium-navigate-singletask-task1-v0`".to_owned();
    }
    suggest::did_you_mean(suggestions)
}

impl TaskName {
    /// All tasks, the default of each environment before its numbered ones.
    pub fn all() -> impl Iterator<Item = Self> {
        ENVIRONMENTS.iter().flat_map(|environment| {
            environment.data_kinds.iter().flat_map(move |&data_kind| {
                let numbers = [None].into_iter().chain((1..=Environment::TASKS).map(Some));
                numbers.map(move |number| Self { environment, data_kind, number })
            })
        })
    }

    /// The default task of a dataset, e.g. `antmaze-large-navigate-v0`.
    ///
    /// The `-v0` is optional, and the name of one of the dataset's tasks is accepted, too.
    ///
    /// ```
    /// use album_data::ogbench::TaskName;
    /// for name in ["scene-play-v0", "scene-play", "scene-play-singletask-task3-v0"] {
    ///     assert_eq!(TaskName::of_dataset(name).unwrap().dataset_name(), "scene-play-v0");
    /// }
    /// let error = TaskName::of_dataset("scene-pley").unwrap_err();
    /// assert_eq!(error.suggestions[0], "scene-play-v0");
    /// ```
    pub fn of_dataset(name: &str) -> Result<Self, UnknownDataset> {
        let whole = if name.ends_with("-v0") { name.to_owned() } else { format!("{name}-v0") };
        let datasets: Vec<(String, Self)> = Self::all()
            .filter(|task| task.number.is_none())
            .map(|task| (task.dataset_name(), task))
            .collect();
        if let Some((_, task)) = datasets.iter().find(|(known, _)| *known == whole) {
            return Ok(*task);
        }
        match whole.parse::<Self>() {
            Ok(task) => Ok(Self { number: None, ..task }),
            Err(UnknownTask { suggestions: tasks, .. }) => {
                let names = datasets.iter().map(|(known, _)| known.as_str());
                // The typed text first: with `-v0` appended, the beginning of a name would no longer be one.
                let mut near = suggest::nearest(name, names.clone(), 3);
                if near.is_empty() {
                    near = suggest::nearest(&whole, names, 3);
                }
                let near: Vec<String> = near.into_iter().map(str::to_owned).collect();
                Err(UnknownDataset {
                    found: name.to_owned(),
                    suggestions: if near.is_empty() { tasks } else { near },
                })
            }
        }
    }

    /// The default task of the dataset whose training or validation file has this name, in any folder.
    ///
    /// ```
    /// use album_data::ogbench::TaskName;
    /// let task = TaskName::of_file("data/cube-single-play-v0-val.npz").unwrap();
    /// assert_eq!(task.with_number(3).to_string(), "cube-single-play-singletask-task3-v0");
    /// assert_eq!(TaskName::of_file("mine.npz"), None);
    /// ```
    pub fn of_file(path: impl AsRef<Path>) -> Option<Self> {
        let stem = path.as_ref().file_stem()?.to_str()?;
        let name = stem.strip_suffix("-val").unwrap_or(stem);
        Self::all().find(|task| task.is_default() && task.dataset_name() == name)
    }

    /// Whether the name has no number, and so means the default task.
    pub fn is_default(&self) -> bool {
        self.number.is_none()
    }

    /// Another task of the same dataset, from 1 to 5.
    pub fn with_number(self, number: usize) -> Self {
        Self { number: Some(number), ..self }
    }

    /// The environment.
    pub fn environment(&self) -> &'static Environment {
        self.environment
    }

    /// The kind of data, e.g. `navigate`.
    pub fn data_kind(&self) -> &'static str {
        self.data_kind
    }

    /// The task's number from 1 to 5; that of the default if the name has none.
    pub fn task(&self) -> usize {
        self.number.unwrap_or(self.environment.default_task)
    }

    /// The goal, which determines rewards and masks.
    pub fn goal(&self) -> Goal {
        self.environment.goal(self.task())
    }

    /// The id of the environment in the `ogbench` package.
    pub fn environment_id(&self) -> String {
        format!("{}-singletask{}-v0", self.environment.name, self.suffix())
    }

    /// The name of the dataset, shared by all tasks of the environment.
    pub fn dataset_name(&self) -> String {
        format!("{}-{}-v0", self.environment.name, self.data_kind)
    }

    /// The file with the training data.
    pub fn dataset_file(&self) -> String {
        format!("{}.npz", self.dataset_name())
    }

    /// The file with the validation data.
    pub fn validation_file(&self) -> String {
        format!("{}-val.npz", self.dataset_name())
    }

    // A plan of thousands of runs parses a name per cell; comparing with the text of all names took a third of it.
    fn parse(name: &str) -> Option<Self> {
        let (dataset, suffix) = name.strip_suffix("-v0")?.split_once("-singletask")?;
        let number = match suffix {
            "" => None,
            suffix => Some((1..=Environment::TASKS).find(|number| suffix == format!("-task{number}"))?),
        };
        ENVIRONMENTS.iter().find_map(|environment| {
            let kind = dataset.strip_prefix(environment.name)?.strip_prefix('-')?;
            let data_kind = environment.data_kinds.iter().find(|known| **known == kind)?;
            Some(Self { environment, data_kind, number })
        })
    }

    fn suffix(&self) -> String {
        self.number.map(|number| format!("-task{number}")).unwrap_or_default()
    }
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-singletask{}-v0", self.environment.name, self.data_kind, self.suffix())
    }
}

impl FromStr for TaskName {
    type Err = UnknownTask;

    fn from_str(name: &str) -> Result<Self, UnknownTask> {
        if let Some(task) = Self::parse(name) {
            return Ok(task);
        }
        let tasks: Vec<String> = Self::all().map(|task| task.to_string()).collect();
        let suggestions = suggest::nearest(name, tasks.iter().map(String::as_str), 3);
        Err(UnknownTask {
            found: name.to_owned(),
            suggestions: suggestions.into_iter().map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive() {
        assert_eq!(TaskName::all().count(), 252);
        for task in TaskName::all() {
            assert_eq!(task.to_string().parse(), Ok(task));
        }
        for number in ["task0", "task6", "task01", "task+1", "task"] {
            let name = format!("antmaze-large-navigate-singletask-{number}-v0");
            assert_eq!(name.parse::<TaskName>().unwrap_err().found, name);
        }
    }

    #[test]
    fn near_names_are_suggested() {
        let message = |name: &str| name.parse::<TaskName>().unwrap_err().to_string();
        assert_eq!(
            message("antmaze-large-navigate-singletask-task6-v0"),
            "unknown task `antmaze-large-navigate-singletask-task6-v0`; did you mean \
             `antmaze-large-navigate-singletask-task1-v0`, `antmaze-large-navigate-singletask-task2-v0` or \
             `antmaze-large-navigate-singletask-task3-v0`?"
        );
        assert!(message("pointmaze-giant").contains("`pointmaze-giant-navigate-singletask-v0`"));
        assert_eq!(
            message("breakout\n"),
            "unknown task `breakout\\n`, expected a name such as `pointmaze-medium-navigate-singletask-task1-v0`"
        );
    }

    #[test]
    fn datasets_by_any_of_their_names() {
        for task in TaskName::all() {
            for name in [task.dataset_name(), task.to_string()] {
                let short = name.strip_suffix("-v0").unwrap();
                for name in [&name, short] {
                    let found = TaskName::of_dataset(name).unwrap();
                    assert_eq!(found.dataset_name(), task.dataset_name(), "{name}");
                    assert_eq!(found.task(), task.environment().default_task, "{name}");
                }
            }
        }
        let message = |name: &str| TaskName::of_dataset(name).unwrap_err().to_string();
        assert_eq!(
            message("antmaze-large"),
            "unknown dataset `antmaze-large`; did you mean `antmaze-large-navigate-v0`, \
             `antmaze-large-stitch-v0` or `antmaze-large-explore-v0`?"
        );
        assert!(message("antmaze-lage-navigate-v0").contains("did you mean `antmaze-large-navigate-v0`"));
        assert!(
            message("cube-single-play-singletask-task7-v0")
                .contains("`cube-single-play-singletask-task1-v0`")
        );
        assert_eq!(
            message("\u{1b}x"),
            "unknown dataset `\\u{1b}x`, expected a name such as `antmaze-large-navigate-v0`"
        );
    }

    #[test]
    fn goals_of_the_table() {
        let xy = |name: &str| match name.parse::<TaskName>().unwrap().goal() {
            Goal::Reach { xy, qpos, tolerance } => (xy, qpos, tolerance),
            Goal::Arrange { .. } => panic!("not a place"),
        };
        assert_eq!(xy("pointmaze-medium-navigate-singletask-v0"), ([20.0, 20.0], 0, 1.0));
        assert_eq!(xy("antmaze-giant-navigate-singletask-task4-v0"), ([44.0, 16.0], 0, 0.5));
        assert_eq!(xy("antsoccer-arena-navigate-singletask-v0"), ([0.0, 20.0], 15, 0.5));
        assert_eq!(xy("antsoccer-medium-navigate-singletask-task4-v0"), ([8.0, 16.0], 15, 0.5));
    }

    #[test]
    fn every_task_has_a_goal_that_its_rows_can_meet() {
        for task in TaskName::all() {
            let environment = task.environment();
            let needs = task.goal().needs();
            assert!(needs.qpos <= environment.qpos_dim, "{task}");
            assert_eq!(needs.button_states, environment.buttons(), "{task}");
        }
    }
}

//! OGBench: names of tasks, facts about environments, goals, and files.
//!
//! One file, such as `pointmaze-medium-navigate-v0.npz`, has states and actions for all five tasks of an
//! environment. It has no rewards: they follow from the [`Goal`] of the task given by a [`TaskName`].
//!
//! ```
//! use album_data::ogbench::{Goal, TaskName};
//!
//! # fn main() -> Result<(), album_data::ogbench::UnknownTask> {
//! let task: TaskName = "pointmaze-large-navigate-singletask-task2-v0".parse()?;
//! assert_eq!(task.dataset_file(), "pointmaze-large-navigate-v0.npz");
//! assert_eq!(task.environment().horizon, 1000);
//! assert_eq!(task.goal(), Goal::Reach { qpos: 0, xy: [0.0, 24.0], tolerance: 1.0 });
//! # Ok(())
//! # }
//! ```

mod environment;
pub(crate) mod fit;
mod goal;
mod locomaze;
mod manipulation;
mod recording;
mod task_name;

pub use environment::{ENVIRONMENTS, Environment, Family, RecipeKind};
pub use fit::looks_like;
pub use goal::{Goal, Label, Needs, RowState, within};
pub use locomaze::{CELL_SIZE, Cell, MazeSize, MazeTask};
pub use recording::Recording;
pub use task_name::{TaskName, UnknownDataset, UnknownTask};

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::load::{Labels, load};

/// [`load`] with the labels of a task, without the warnings.
pub fn load_task(path: impl AsRef<std::path::Path>, task: &TaskName) -> Result<Dataset, DataError> {
    load(path, Labels::Task(task)).map(|loaded| loaded.dataset)
}

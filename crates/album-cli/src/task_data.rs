//! The dataset of a task: made on first use where album can, found where it was put otherwise.

use crate::failure::Failure;
use album_base::cache;
use album_data::Dataset;
use album_data::ogbench::{Family, TaskName, load_task};
use album_envs::navigate::{Recipe, cached};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Datasets of native environments are made with this seed, so that everyone trains on the same data.
const SEED: u64 = 0;

/// Loads the data of a task, from `file` or from its default place.
pub fn load(task: &TaskName, file: Option<&Path>) -> Result<Dataset, Failure> {
    load_task(find(task, file)?, task).map_err(|e| Failure::Load(e.to_string()))
}

/// Where the data of a task is: `file` or its default place.
pub fn find(task: &TaskName, file: Option<&Path>) -> Result<PathBuf, Failure> {
    file.map_or_else(|| default_file(task), |path| Ok(path.to_path_buf()))
}

/// The cached file of the task; PointMaze data is made if it is not there.
fn default_file(task: &TaskName) -> Result<PathBuf, Failure> {
    if let Family::PointMaze(size) = task.environment().family
        && task.data_kind() == "navigate"
    {
        let folder = cache::folder()?;
        std::fs::create_dir_all(&folder).map_err(Failure::io(&folder))?;
        let path = folder.join(task.dataset_file());
        if path.is_file() && fetched(&path) {
            return Ok(path);
        }
        let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        if cached(&path, &Recipe::train(size, SEED), threads).map_err(|e| Failure::Load(e.to_string()))? {
            eprintln!("made {}", path.display());
        }
        return Ok(path);
    }
    let places = [cache::folder()?, cache::ogbench_folder()?].map(|folder| folder.join(task.dataset_file()));
    places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        Failure::Config(format!(
            "no data for {task}: looked for {} and {}; get it with `{}`, or name a file with --data FILE",
            places[0].display(),
            places[1].display(),
            how_to_get(task)
        ))
    })
}

/// Whether `album data fetch` put a file there: it leaves a note beside it.
fn fetched(path: &Path) -> bool {
    let mut note = path.as_os_str().to_owned();
    note.push(".json");
    Path::new(&note).is_file()
}

/// The command that brings a dataset.
pub fn how_to_get(task: &TaskName) -> String {
    let verb = match task.data_kind() {
        "play" | "noisy" => "generate",
        _ => "fetch",
    };
    format!("album data {verb} {}", task.dataset_name())
}

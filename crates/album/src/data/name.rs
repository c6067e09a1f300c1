//! Names of datasets as a user types them.

use crate::failure::Failure;
use album_data::ogbench::TaskName;
use album_data::suggest;

/// The default task of a dataset, which stands for its environment and kind of data: from the dataset's name
/// (`cube-single-play-v0`, also without `-v0`) or from the name of any of its tasks.
pub fn dataset(name: &str) -> Result<TaskName, Failure> {
    if let Ok(task) = name.parse() {
        return Ok(task);
    }
    let mut names: Vec<String> = Vec::new();
    for task in TaskName::all() {
        let known = task.dataset_name();
        if known == name || known.strip_suffix("-v0") == Some(name) {
            return Ok(task);
        }
        if names.last() != Some(&known) {
            names.push(known);
        }
    }
    let near = suggest::nearest(name, names.iter().map(String::as_str), 3);
    let near: Vec<String> = near.into_iter().map(str::to_owned).collect();
    let hint = match near.is_empty() {
        true => ", expected a name such as `cube-single-play-v0`".to_owned(),
        false => suggest::did_you_mean(&near),
    };
    Err(Failure::Config(format!("unknown dataset `{}`{hint}", name.escape_debug())))
}

#[cfg(test)]
mod tests {
    use super::dataset;

    #[test]
    fn names_of_datasets_and_tasks() {
        for name in [
            "cube-single-play-v0",
            "cube-single-play",
            "cube-single-play-singletask-v0",
            "cube-single-play-singletask-task3-v0",
        ] {
            assert_eq!(
                dataset(name).map(|task| task.dataset_name()).ok().as_deref(),
                Some("cube-single-play-v0")
            );
        }
        let message = |name| dataset(name).map(|_| ()).map_err(|e| e.to_string()).err().unwrap_or_default();
        assert_eq!(
            message("cube-singel-play"),
            "unknown dataset `cube-singel-play`; did you mean `cube-single-play-v0`?"
        );
        assert!(message("puzzle-3x3").contains("`puzzle-3x3-play-v0` or `puzzle-3x3-noisy-v0`"));
        assert!(message("").contains("expected a name such as `cube-single-play-v0`"));
    }
}

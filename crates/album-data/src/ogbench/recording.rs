//! How much of a published dataset a file contains.

use std::path::Path;

use serde::Serialize;

use crate::error::DataError;
use crate::load::arrays::{Arrays, RowKind};
use crate::ogbench::TaskName;

/// The size of a recorded dataset compared with the published one.
///
/// A partial recording has the same name and path as a full one, so every printed result shows this with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// Episodes in the file.
    pub episodes: usize,
    /// Transitions in the file.
    pub transitions: usize,
    /// Number of episodes of the published dataset, if known.
    pub published_episodes: Option<usize>,
    /// Whether all published episodes are present; `None` if their number is unknown.
    pub complete: Option<bool>,
}

impl Recording {
    /// Reads only the episode ends of a file or folder of columns.
    pub fn read(path: impl AsRef<Path>, task: &TaskName) -> Result<Self, DataError> {
        let path = path.as_ref();
        let source = Arrays::open(path)?;
        let (rows, episodes) = match &source {
            Arrays::Folder(folder) => (source.rows()?, folder.episodes()?.len()),
            Arrays::Npz(_) => {
                let ends = source.read_flags("terminals")?;
                (ends.len(), ends.iter().filter(|end| **end).count())
            }
        };
        let transitions =
            if source.row_kind() == RowKind::State { rows.saturating_sub(episodes) } else { rows };
        let validation = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("-val"));
        let published = task.environment().published_episodes(task.data_kind());
        let published_episodes = published.map(|train| if validation { train.div_ceil(10) } else { train });
        let complete = published_episodes.map(|published| episodes >= published);
        Ok(Self { episodes, transitions, published_episodes, complete })
    }
}

/// `1000 episodes`, or `50 of 1000 episodes` of a partial recording.
impl std::fmt::Display for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.published_episodes {
            Some(published) if self.episodes < published => {
                write!(f, "{} of {published} episodes", self.episodes)
            }
            _ => write!(f, "{} episodes", self.episodes),
        }
    }
}

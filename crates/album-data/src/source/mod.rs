//! Anyone's log as a dataset: where it is, what its columns mean, what became of it.
//!
//! ```text
//! open         formats, from the contents of files
//! log          what a format must offer: named fields, read in parts
//! episodes     that for logs with a file or group for each episode
//! lent         that for arrays in memory, as a file would hold them
//! column_map   which column is what, in the user's words
//! roles        which column is what, with guesses from the usual names
//! ends         what flags mean
//! categories   which texts a text column has
//! layout       where each column's numbers go
//! builder      parts of a table -> chunks, rows of numbers
//! assemble     rows -> episodes of states: the one place that knows what ends an episode, and how
//! complaints   what is wrong with a row, and where it is
//! sink         where assembled rows go
//! space        bounds or choices of the actions
//! opened       an open source, and the way of its rows from the first to the last
//! describe     what it turned out to be
//! read         all of it in a row
//! ```

mod assemble;
mod builder;
mod categories;
mod chunk;
mod column_map;
mod complaints;
pub(crate) mod describe;
mod ends;
pub(crate) mod episodes;
mod layout;
pub(crate) mod lent;
pub(crate) mod log;
pub(crate) mod open;
pub(crate) mod opened;
pub(crate) mod read;
mod roles;
pub(crate) mod sink;
mod space;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::action_space::ActionSpace;
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::load::Unchecked;

pub use column_map::{ColumnMap, ColumnMapError};
pub use lent::{Elements, LentArray};
pub use open::Format;

/// A log of decisions: files or folders that are one dataset, and what cannot be read off them.
///
/// Kept in a run's configuration, so that a run which goes on reads the same.
///
/// ```
/// use album_data::{Ends, NpzWriter, Source};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("valve.npz");
/// let mut writer = NpzWriter::create(&path)?;
/// writer.array_f32("observations", &[3, 1], &[0.0, 1.0, 2.0])?;
/// writer.array_f32("actions", &[3, 1], &[20.0, 60.0, 100.0])?; // percent
/// writer.array_f32("rewards", &[3], &[-1.0, -1.0, 10.0])?;
/// writer.array_bool("dones", &[3], &[false, false, true])?;
/// writer.finish()?;
///
/// let source = Source { ends: Some(Ends::Terminal), ..Source::of(&path) };
/// let data = source.read()?;
/// assert_eq!((data.dataset.len(), data.description.ends.terminal), (3, 1));
/// assert_eq!((data.dataset.action(1), data.dataset.mask(2)), (&[0.0][..], 0.0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Files and folders, whose episodes follow each other. The id of a Minari dataset stands for its folder.
    pub paths: Vec<PathBuf>,
    /// The format, where its contents do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Which column is what, where the names do not tell it.
    #[serde(default, skip_serializing_if = "ColumnMap::is_empty")]
    pub columns: ColumnMap,
    /// What ends episodes, where the columns do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Ends>,
    /// What integer actions are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<ActionKind>,
    /// The least and greatest value of actions: one pair for all numbers of an action, or one for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub action_bounds: Vec<[f32; 2]>,
    /// The action space of an agent that goes on learning from these files: actions beyond its bounds are clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_space: Option<ActionSpace>,
    /// The reward of the last transition of every episode, in place of recorded rewards; the others are 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward_last: Option<f32>,
}

/// What ends an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// The task was over: nothing follows, and so no value does.
    Terminal,
    /// The recording was cut: the last state has a value like any other.
    Timeout,
}

/// What an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// One of several choices.
    Discrete,
    /// Numbers within bounds.
    Continuous,
}

/// A source, read.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceData {
    /// The data.
    pub dataset: Dataset,
    /// What it is.
    pub description: Description,
    /// What is not in the dataset or looks wrong: one sentence each.
    pub warnings: Vec<String>,
}

/// What a source turned out to be. Kept with imported columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Of the files.
    pub format: Format,
    /// The names of the numbers in an observation.
    pub observation_names: Vec<String>,
    /// The categories of every text column among the observations, in the order of their one-hot numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub categories: BTreeMap<String, Vec<String>>,
    /// Bounds or choices.
    pub action_space: ActionSpace,
    /// The names of the numbers in an action, or of the choices where they have some.
    pub action_names: Vec<String>,
    /// Recordings.
    pub episodes: usize,
    /// What ended them.
    pub ends: EndCounts,
    /// What was guessed, and from what: one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guesses: Vec<String>,
}

/// How many episodes ended in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndCounts {
    /// The task was over.
    pub terminal: usize,
    /// The recording was cut.
    pub timeout: usize,
}

impl Source {
    /// One file or folder that speaks for itself.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        Self { paths: vec![path.into()], ..Self::default() }
    }

    /// Whether the files have to speak for themselves.
    pub fn says_nothing(&self) -> bool {
        *self == Self { paths: self.paths.clone(), ..Self::default() }
    }

    /// Reads everything. Rows of one episode follow each other in the order of their steps; a transition whose
    /// successor was not recorded is kept where the task was over (its successor does not matter) and dropped where
    /// the recording was cut.
    pub fn read(&self) -> Result<SourceData, DataError> {
        let (data, description) = read::read(self, crate::load::checks::OnBad::Refuse)?;
        Ok(SourceData { dataset: data.dataset, description, warnings: data.warnings })
    }

    /// [`read`](Self::read) of arrays in memory, by the names that they would have in an npz file; `paths` is not asked.
    /// Each number is copied once, into the dataset.
    ///
    /// ```
    /// use album_data::{Elements, Ends, LentArray, Source};
    ///
    /// # fn main() -> Result<(), album_data::DataError> {
    /// let array = |name: &str, elements| LentArray { name: name.into(), shape: vec![3], elements };
    /// let arrays = [
    ///     array("observations", Elements::F32(&[0.0, 1.0, 2.0])),
    ///     array("actions", Elements::F64(&[20.0, 60.0, 100.0])),
    ///     array("rewards", Elements::F64(&[-1.0, -1.0, 10.0])),
    ///     array("dones", Elements::Bool(&[false, false, true])),
    /// ];
    /// let data = Source { ends: Some(Ends::Terminal), ..Source::default() }.read_lent(&arrays)?;
    /// assert_eq!((data.dataset.len(), data.dataset.action(1)), (3, &[0.0][..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_lent(&self, arrays: &[LentArray<'_>]) -> Result<SourceData, DataError> {
        let (data, description) = read::read_lent(self, arrays, crate::load::checks::OnBad::Refuse)?;
        Ok(SourceData { dataset: data.dataset, description, warnings: data.warnings })
    }

    /// [`read`](Self::read) that counts the numbers it would refuse, for those who want to know all that is wrong.
    pub fn read_unchecked(&self) -> Result<(Unchecked, Description), DataError> {
        read::read(self, crate::load::checks::OnBad::Count)
    }

    /// The format of the files, from their contents.
    pub fn format(&self) -> Result<Format, DataError> {
        Ok(open::files(self)?.0)
    }

    /// The files and folders that are read, in order: those of a folder, and that of an id.
    pub fn files(&self) -> Result<Vec<PathBuf>, DataError> {
        Ok(open::files(self)?.1)
    }
}

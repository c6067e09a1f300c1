//! Logs of any supported format as datasets: finding the files, assigning roles to columns, building
//! episodes.
//!
//! ```text
//! open         detects the format from file contents and opens the files
//! log          the interface of a format: named fields, read in parts
//! episodes     implements it for logs with one file or group per episode
//! lent         arrays borrowed from the caller, named as they would be in a file
//! column_map   column roles given by the user
//! roles        column roles, guessed from common names unless the user gives them
//! ends         whether a flag marks termination or truncation
//! categories   the categories of text columns
//! layout       where each column goes in an observation or action vector
//! builder      parts of a table -> chunks of numeric rows
//! assemble     rows -> episodes; the only module that decides where and how an episode ends
//! complaints   errors that name the offending row
//! sink         receives the assembled rows
//! space        the action space: bounds, or number of choices
//! opened       an open source; streams its rows through the assembler
//! describe     the description of a source that has been read
//! read         the whole pipeline
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

/// The files or folders that make up a dataset, and whatever cannot be inferred from them.
///
/// Stored in a run's configuration, so that a resumed run reads the same data.
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
    /// Files and folders, concatenated in this order. A Minari dataset may be given by its id.
    pub paths: Vec<PathBuf>,
    /// The format, if it cannot be detected from the contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The roles of columns whose names do not reveal them.
    #[serde(default, skip_serializing_if = "ColumnMap::is_empty")]
    pub columns: ColumnMap,
    /// How episodes end, if the columns leave it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Ends>,
    /// Whether integer actions are discrete or continuous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<ActionKind>,
    /// Lower and upper bounds of the actions: one pair for all components, or one per component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub action_bounds: Vec<[f32; 2]>,
    /// The action space of an existing agent that is trained further on these files; actions are clipped to
    /// its bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_space: Option<ActionSpace>,
    /// Replaces recorded rewards: the last transition of every episode gets this reward, all others 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward_last: Option<f32>,
}

/// How an episode ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// Termination: the value after the last transition is 0.
    Terminal,
    /// Truncation: the last state is bootstrapped from like any other.
    Timeout,
}

/// The kind of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// A choice from a finite set.
    Discrete,
    /// A vector within bounds.
    Continuous,
}

/// The contents of a [`Source`].
#[derive(Debug, Clone, PartialEq)]
pub struct SourceData {
    /// The data.
    pub dataset: Dataset,
    /// Names, action space and episode counts.
    pub description: Description,
    /// One sentence for everything that was left out or looks wrong.
    pub warnings: Vec<String>,
}

/// The description of a source that has been read. Imported columns store it in their manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The format of the files.
    pub format: Format,
    /// The names of the observation components.
    pub observation_names: Vec<String>,
    /// The categories of every text column among the observations, in the order of their one-hot encoding.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub categories: BTreeMap<String, Vec<String>>,
    /// The action space.
    pub action_space: ActionSpace,
    /// The names of the action components, or of the choices if they have names.
    pub action_names: Vec<String>,
    /// Number of episodes.
    pub episodes: usize,
    /// How the episodes ended.
    pub ends: EndCounts,
    /// One sentence for every guess, with its evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guesses: Vec<String>,
}

/// Number of episodes by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndCounts {
    /// Terminated episodes.
    pub terminal: usize,
    /// Truncated episodes.
    pub timeout: usize,
}

impl Source {
    /// A single file or folder, with everything inferred from its contents.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        Self { paths: vec![path.into()], ..Self::default() }
    }

    /// Whether everything but the paths is left to be inferred.
    pub fn says_nothing(&self) -> bool {
        *self == Self { paths: self.paths.clone(), ..Self::default() }
    }

    /// Reads the whole source. The rows of an episode become consecutive and ordered by step. A transition
    /// without a recorded next state is kept if it is terminal, since its next state is never used, and
    /// dropped if the episode was truncated.
    pub fn read(&self) -> Result<SourceData, DataError> {
        let (data, description) = read::read(self, crate::load::checks::OnBad::Refuse)?;
        Ok(SourceData { dataset: data.dataset, description, warnings: data.warnings })
    }

    /// Like [`read`](Self::read), for arrays in memory, named as they would be in an npz file; `paths` is
    /// ignored. Every number is copied only once, into the dataset.
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

    /// Like [`read`](Self::read), but counts invalid numbers instead of stopping at the first, for reports on
    /// all that is wrong with the data.
    pub fn read_unchecked(&self) -> Result<(Unchecked, Description), DataError> {
        read::read(self, crate::load::checks::OnBad::Count)
    }

    /// The format of the files, detected from their contents.
    pub fn format(&self) -> Result<Format, DataError> {
        Ok(open::files(self)?.0)
    }

    /// The files and folders that are read, in order, with folders expanded and Minari ids resolved.
    pub fn files(&self) -> Result<Vec<PathBuf>, DataError> {
        Ok(open::files(self)?.1)
    }
}

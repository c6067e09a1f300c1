//! The dataset doctor: what a dataset contains, what its labels imply, and what is wrong with it.
//!
//! Where a loader refuses at the first bad number, the doctor counts them all.
//!
//! ```
//! use album::doctor::examine;
//! use album_data::{Labels, NpzWriter, load_unchecked};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("own.npz");
//! # let mut writer = NpzWriter::create(&path)?;
//! # writer.array_f32("observations", &[3, 1], &[0.0, 1.0, f32::NAN])?;
//! # writer.array_f32("actions", &[3, 1], &[1.0, 1.0, 0.0])?;
//! # writer.array_f32("rewards", &[3], &[-1.0, -1.0, 0.0])?;
//! # writer.array_bool("terminals", &[3], &[false, false, true])?;
//! # writer.finish()?;
//! let diagnosis = examine(&load_unchecked(&path, Labels::Own)?, 0.5)?;
//! assert_eq!((diagnosis.transitions, diagnosis.episodes), (2, 1));
//! assert_eq!(diagnosis.non_finite[0].row, 2);
//! assert_eq!(diagnosis.labels.ok_or("none")?.v_star.ok_or("none")?.min, -1.5);
//! # Ok(())
//! # }
//! ```

mod columns;
mod inspection;
mod labels;
mod repeats;
mod text;
mod warnings;

use album_data::{ACTION_LIMIT, ActionSpace, BadNumbers, Description, EndCounts, Format, Problem, Unchecked};
use album_tabular::{JoinedStates, TabularError};
use serde::Serialize;

pub use columns::Column;
pub use inspection::FileInspection;
pub use labels::{Bin, LabelStatistics};
pub use repeats::Repeats;
pub use warnings::Warning;

/// The paper's K; shorter episodes cause a warning.
pub const K: usize = 10;

/// What the doctor found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Number of states; each episode has one more than transitions.
    pub rows: usize,
    /// Number of transitions: pairs of consecutive states.
    pub transitions: usize,
    /// Number of episodes.
    pub episodes: usize,
    /// Episode lengths in transitions.
    pub episode_length: Lengths,
    /// Dimension of an observation.
    pub observation_dim: usize,
    /// Dimension of an action.
    pub action_dim: usize,
    /// Statistics of each observation dimension, over all states.
    pub observations: Vec<Column>,
    /// Statistics of each action dimension, over all transitions, in the units of the recording.
    pub actions: Vec<Column>,
    /// Arrays containing NaN or infinity, and where it occurs first.
    pub non_finite: Vec<BadNumbers>,
    /// Actions outside [-1, 1], if there are any.
    pub actions_outside: Option<BadNumbers>,
    /// Fraction of all action components at or beyond their bounds.
    pub saturated_action_share: f64,
    /// States and actions that occur more than once.
    pub repeats: Repeats,
    /// Statistics of rewards and masks, if there are any.
    #[serde(flatten)]
    pub labels: Option<LabelStatistics>,
    /// Likely problems in training.
    pub warnings: Vec<Warning>,
}

/// Shortest, median and longest length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lengths {
    /// The shortest.
    pub min: usize,
    /// The median.
    pub median: usize,
    /// The longest.
    pub max: usize,
}

/// A description of a log and a diagnosis of its problems.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Format of the files.
    pub format: Format,
    /// What the policy observes.
    pub observation: Observation,
    /// What the policy controls.
    pub action: Action,
    /// What ended the episodes.
    pub ends: EndCounts,
    /// What was guessed, and on what grounds.
    pub guesses: Vec<String>,
    /// What the doctor found.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// The observation space.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    /// Number of dimensions.
    pub dim: usize,
    /// Their names.
    pub names: Vec<String>,
}

/// The action space.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Action {
    /// Number of dimensions.
    pub dim: usize,
    /// Names of the dimensions, or of the choices.
    pub names: Vec<String>,
    /// Bounds, or the number of choices.
    #[serde(flatten)]
    pub space: ActionSpace,
}

impl Inspection {
    /// Examines a log; see [`examine`].
    pub fn of(data: &Unchecked, description: Description, gamma: f64) -> Result<Self, TabularError> {
        let dataset = &data.dataset;
        Ok(Inspection {
            format: description.format,
            observation: Observation { dim: dataset.observation_dim(), names: description.observation_names },
            action: Action {
                dim: dataset.action_dim(),
                names: description.action_names,
                space: description.action_space,
            },
            ends: description.ends,
            guesses: description.guesses,
            diagnosis: examine(data, gamma)?,
        })
    }
}

/// Examines a dataset. The discount `gamma` must be in [0, 1).
pub fn examine(data: &Unchecked, gamma: f64) -> Result<Diagnosis, TabularError> {
    let dataset = &data.dataset;
    let episodes = dataset.episodes();
    let mut lengths: Vec<usize> = (0..episodes.len()).map(|episode| episodes.length(episode)).collect();
    lengths.sort_unstable();
    let actions = || (0..episodes.len()).flat_map(|episode| dataset.episode_actions(episode).iter());
    let saturated = match dataset.action_space() {
        ActionSpace::Continuous { .. } => actions().flatten().filter(|x| x.abs() >= ACTION_LIMIT).count(),
        ActionSpace::Discrete { .. } => 0, // choices have no bounds
    };
    let joined = JoinedStates::new(dataset);
    let bad = |problem: Problem| data.bad.iter().filter(move |bad| bad.problem == problem).cloned();
    let mut diagnosis = Diagnosis {
        rows: episodes.rows(),
        transitions: dataset.len(),
        episodes: episodes.len(),
        episode_length: Lengths {
            min: lengths[0],
            median: lengths[lengths.len() / 2],
            max: lengths[lengths.len() - 1],
        },
        observation_dim: dataset.observation_dim(),
        action_dim: dataset.action_dim(),
        observations: columns::ranges(dataset.states(), dataset.observation_dim()),
        actions: columns::in_units(columns::ranges(actions(), dataset.action_dim()), dataset.action_space()),
        non_finite: bad(Problem::NotFinite).collect(),
        actions_outside: bad(Problem::OutOfRange).next(),
        saturated_action_share: saturated as f64 / (dataset.len() * dataset.action_dim()) as f64,
        repeats: Repeats::count(dataset, &joined),
        labels: data.labelled.then(|| labels::examine(dataset, &joined, gamma)).transpose()?,
        warnings: Vec::new(),
    };
    let short = lengths.partition_point(|&length| length < K);
    diagnosis.warnings = warnings::all(&diagnosis, short, data);
    Ok(diagnosis)
}

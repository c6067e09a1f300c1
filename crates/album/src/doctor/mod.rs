//! The dataset doctor: what is in a dataset, what its labels make of it, and what is wrong with it.
//!
//! Where a loader refuses the first bad number, the doctor counts them all.
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

/// The paper's K, below which the length of an episode matters.
pub const K: usize = 10;

/// What the doctor found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// States, of which each episode has one more than transitions.
    pub rows: usize,
    /// Pairs of consecutive states.
    pub transitions: usize,
    /// Number of episodes.
    pub episodes: usize,
    /// Transitions of an episode.
    pub episode_length: Lengths,
    /// Numbers in an observation.
    pub observation_dim: usize,
    /// Numbers in an action.
    pub action_dim: usize,
    /// The range of each column of the observations, over all states.
    pub observations: Vec<Column>,
    /// The range of each column of the actions, over all transitions.
    pub actions: Vec<Column>,
    /// Arrays containing NaN or infinity, and where the first one is.
    pub non_finite: Vec<BadNumbers>,
    /// Actions beyond ±1, if there are any.
    pub actions_outside: Option<BadNumbers>,
    /// The share of all numbers in actions that are at ±1 or beyond.
    pub saturated_action_share: f64,
    /// States and actions that occur more than once.
    pub repeats: Repeats,
    /// What follows from rewards and masks, where there are any.
    #[serde(flatten)]
    pub labels: Option<LabelStatistics>,
    /// What may go wrong in training.
    pub warnings: Vec<Warning>,
}

/// Shortest, median and longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lengths {
    /// The shortest.
    pub min: usize,
    /// The median.
    pub median: usize,
    /// The longest.
    pub max: usize,
}

/// What a log turned out to be, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Of the files.
    pub format: Format,
    /// What the policy sees.
    pub observation: Observation,
    /// What it chooses.
    pub action: Action,
    /// What ended the episodes.
    pub ends: EndCounts,
    /// What was guessed, and from what.
    pub guesses: Vec<String>,
    /// What the doctor found.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// The numbers of an observation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    /// How many there are.
    pub dim: usize,
    /// Their names.
    pub names: Vec<String>,
}

/// The numbers of an action, or the choices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Action {
    /// Numbers in an action.
    pub dim: usize,
    /// The names of the numbers, or of the choices.
    pub names: Vec<String>,
    /// Bounds, or how many choices there are.
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

/// Examines a dataset. Values are discounted by `gamma`, which must be at least 0 and less than 1.
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
        actions: columns::ranges(actions(), dataset.action_dim()),
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

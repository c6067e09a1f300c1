//! The dataset doctor: what is in a file, what a task makes of it, and what is wrong with it.
//!
//! Where a loader refuses the first bad number, the doctor counts them all and goes on.
//!
//! ```
//! use album_data::NpzWriter;
//! use album::doctor::{Labels, examine};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("own.npz");
//! # let mut writer = NpzWriter::create(&path, true)?;
//! # writer.array_f32("observations", &[3, 1], &[0.0, 1.0, f32::NAN])?;
//! # writer.array_f32("actions", &[3, 1], &[1.0, 1.0, 0.0])?;
//! # writer.array_f32("rewards", &[3], &[-1.0, -1.0, 0.0])?;
//! # writer.array_bool("terminals", &[3], &[false, false, true])?;
//! # writer.finish()?;
//! let report = examine(&path, Labels::Own, 0.5)?;
//! assert_eq!((report.transitions, report.episodes), (2, 1));
//! assert_eq!(report.non_finite[0].row, 2);
//! assert_eq!(report.labels.ok_or("none")?.v_star.ok_or("none")?.min, -1.5);
//! # Ok(())
//! # }
//! ```

mod columns;
mod labels;
mod repeats;
mod warnings;

use std::path::Path;

use album_data::ogbench::{
    Environment, Label, Needs, Raw, TaskName, environments_like, load_labelled, load_task,
};
use album_data::{ACTION_LIMIT, DataError, Episodes, Npz, Place, RowsView};
use album_tabular::{JoinedStates, TabularError};
use serde::Serialize;

pub use columns::{Column, Located};
pub use labels::{Bin, LabelReport};
pub use repeats::Repeats;
pub use warnings::Warning;

/// The paper's K, below which the length of an episode matters.
pub const K: usize = 10;

/// Where rewards and masks come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Labels<'a> {
    /// From the goal of a task.
    Task(&'a TaskName),
    /// From the file's own `rewards` and `masks`.
    Own,
    /// There are none.
    None,
}

/// What the doctor found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// States, of which each episode has one more than transitions.
    pub rows: usize,
    /// Pairs of consecutive states.
    pub transitions: usize,
    /// Recordings.
    pub episodes: usize,
    /// Transitions of an episode.
    pub episode_length: Lengths,
    /// Numbers in an observation.
    pub observation_dim: usize,
    /// Numbers in an action.
    pub action_dim: usize,
    /// The numbers of each column of the observations, over all rows.
    pub observations: Vec<Column>,
    /// The numbers of each column of the actions, over all transitions.
    pub actions: Vec<Column>,
    /// Arrays with numbers that are none, and where the first one stands.
    pub non_finite: Vec<Located>,
    /// Actions beyond ±1, if there are any.
    pub actions_outside: Option<Located>,
    /// The share of all numbers in actions that are at ±1 or beyond.
    pub saturated_action_share: f64,
    /// States and actions that occur more than once.
    pub repeats: Repeats,
    /// What follows from rewards and masks, where there are any.
    #[serde(flatten)]
    pub labels: Option<LabelReport>,
    /// What may go wrong in training.
    pub warnings: Vec<Warning>,
}

/// Shortest, middle and longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lengths {
    /// The shortest.
    pub min: usize,
    /// As many are shorter as are longer.
    pub median: usize,
    /// The longest.
    pub max: usize,
}

/// Whether a file has rewards of its own. A folder of columns never has.
pub fn has_own_rewards(path: impl AsRef<Path>) -> Result<bool, DataError> {
    let path = path.as_ref();
    Ok(!path.is_dir() && Npz::open(path)?.contains("rewards"))
}

/// Examines a file or a folder of columns. Values are discounted by `gamma`, which must be at least 0 and less than 1.
///
/// Only what cannot be read at all is an error: a damaged archive, a missing array, shapes that do not fit each other
/// or the task's environment, no transition. The numbers in a folder were checked when it was imported.
pub fn examine(path: impl AsRef<Path>, labels: Labels<'_>, gamma: f64) -> Result<Report, TabularError> {
    let path = path.as_ref();
    if path.is_dir() {
        let dataset = match labels {
            Labels::Task(task) => load_task(path, task)?,
            _ => load_labelled(path, Needs::default(), |_| Label { reward: 0.0, mask: 1.0 })?,
        };
        let mut rows = dataset.view();
        if !matches!(labels, Labels::Task(_)) {
            (rows.rewards, rows.masks) = Default::default();
        }
        return examine_rows(rows, gamma, path);
    }
    let Raw { rows, bad_qpos } = match labels {
        Labels::Task(task) => Raw::task(path, task)?,
        Labels::Own => Raw::own(path)?,
        Labels::None => Raw::unlabelled(path)?,
    };
    let mut report = examine_rows(rows.view(), gamma, path)?;
    if let Some((row, column, found)) = bad_qpos {
        let bad = Located::new("qpos", None, row, Some(column), found);
        report.warnings.insert(0, warnings::bad_qpos(&bad));
        report.non_finite.push(bad);
    }
    Ok(report)
}

/// The environments whose data looks like this. More than one where mazes differ only in size.
pub fn looks_like(path: impl AsRef<Path>) -> Result<Vec<&'static Environment>, DataError> {
    environments_like(path.as_ref())
}

fn examine_rows(mut rows: RowsView<'_>, gamma: f64, path: &Path) -> Result<Report, TabularError> {
    let unfinished = rows.terminals.last() == Some(&false);
    if let Some(last) = rows.terminals.to_mut().last_mut() {
        *last = true;
    }
    let episodes = Episodes::from_last_rows(&rows.terminals);
    if episodes.transitions() == 0 {
        return Err(DataError::NoTransitions { place: Place::file(path) }.into());
    }
    let mut lengths: Vec<usize> = (0..episodes.len()).map(|episode| episodes.length(episode)).collect();
    lengths.sort_unstable();

    let all = |_: usize| true;
    let acting = |row: usize| !rows.terminals[row];
    let (observations, bad_observations) =
        columns::columns("observations", &rows.observations, rows.observation_dim, all);
    let (actions, bad_actions) = columns::columns("actions", &rows.actions, rows.action_dim, acting);
    let (_, bad_rewards) = columns::columns("rewards", &rows.rewards, 1, acting);
    let (_, bad_masks) = columns::columns("masks", &rows.masks, 1, acting);
    let non_finite: Vec<Located> =
        [bad_observations, bad_actions, bad_rewards, bad_masks].into_iter().flatten().collect();
    let outside = columns::first("actions", &rows.actions, rows.action_dim, acting, |a| {
        a.is_finite() && a.abs() > 2.0 - ACTION_LIMIT
    });
    let saturated =
        columns::first("actions", &rows.actions, rows.action_dim, acting, |a| a.abs() >= ACTION_LIMIT);
    let entries = episodes.transitions() * rows.action_dim;

    let joined = JoinedStates::new(&rows);
    let labels = (!rows.rewards.is_empty()).then(|| labels::examine(&rows, &episodes, &joined, gamma));
    let mut report = Report {
        rows: rows.terminals.len(),
        transitions: episodes.transitions(),
        episodes: episodes.len(),
        episode_length: Lengths {
            min: lengths[0],
            median: lengths[lengths.len() / 2],
            max: lengths[lengths.len() - 1],
        },
        observation_dim: rows.observation_dim,
        action_dim: rows.action_dim,
        observations,
        actions,
        non_finite,
        actions_outside: outside,
        saturated_action_share: saturated.and_then(|s| s.count).unwrap_or(0) as f64 / entries as f64,
        repeats: Repeats::count(&rows, &joined),
        labels: labels.transpose()?,
        warnings: Vec::new(),
    };
    let short = lengths.partition_point(|&length| length < K);
    report.warnings = warnings::all(&report, short, unfinished);
    Ok(report)
}

//! The loader: from a file or folder to a checked [`Dataset`].

pub(crate) mod arrays;
pub(crate) mod checks;
pub(crate) mod ignored;
mod labels;
pub(crate) mod transitions;
mod validation;

use std::path::Path;

pub use checks::{BadNumbers, Problem};
pub use validation::validation_beside;

pub(crate) use ignored::ignored;

use crate::column::Column;
use crate::dataset::{Dataset, Role, UNFINISHED};
use crate::episodes::Episodes;
use crate::error::DataError;
use crate::formats::npz::array::value_error;
use crate::load::arrays::{Arrays, RowKind};
use crate::load::checks::{OnBad, read};
use crate::load::labels::{RowLabels, read_labels};
use crate::load::transitions::{Transitions, read_transitions};
use crate::ogbench::{TaskName, fit};

/// The source of rewards and masks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Labels<'a> {
    /// The goal of a task, computed from the arrays `qpos` and `button_states`.
    Task(&'a TaskName),
    /// The arrays `rewards` and `masks` of the file itself.
    Own,
    /// None: every reward is 0 and every mask 1.
    None,
}

/// A dataset, and what was left out of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The data.
    pub dataset: Dataset,
    /// Ignored arrays and rows, and why: one sentence each.
    pub warnings: Vec<String>,
}

/// A dataset whose bad numbers were counted instead of refused. It is for inspection, not for training.
#[derive(Debug, Clone, PartialEq)]
pub struct Unchecked {
    /// The data as it is.
    pub dataset: Dataset,
    /// Ignored arrays and rows, and why: one sentence each.
    pub warnings: Vec<String>,
    /// Whether rewards and masks are meaningful: not with [`Labels::None`].
    pub labelled: bool,
    /// Numbers that [`load`] would refuse.
    pub bad: Vec<BadNumbers>,
    /// Whether the last row does not end an episode, which [`load`] refuses too.
    pub unfinished: bool,
}

/// Loads a dataset from an npz file or a folder made by [`columns::import`](crate::columns::import()).
///
/// Two layouts are supported. With an array `next_observations` or `timeouts`, a row is a *transition*, as in
/// D4RL and most replay buffers; otherwise it is a *state*, as in OGBench, and an episode of T transitions
/// has T + 1 rows. In both, `terminals` is true in the last row of an episode, and actions are within ±1.
///
/// | array | row = state | row = transition |
/// |---|---|---|
/// | `observations` `[rows, n]` | s_0 ... s_T of each episode | s |
/// | `actions` `[rows, m]` | a_0 ... a_{T-1}, then anything | a |
/// | `terminals` `[rows]` | the episode ends here: s_T | the episode ends here |
/// | `timeouts` `[rows]` | | the episode was cut here |
/// | `next_observations` `[rows, n]` | | s' |
/// | `rewards` `[rows]` | of s and a | of s and a |
/// | `masks` `[rows]` | 0 where no value follows; without it: 1 | without it: 0 at `terminals` that are no `timeouts` |
///
/// An episode of transitions also ends where the next row does not start in this row's next state. The table
/// of `docs/data.md` has more.
///
/// Arrays are read in parts, so that loading takes little more memory than the dataset. Observations and
/// actions of a folder stay on disk. With [`Labels::Task`], the widths of all arrays must match the task's
/// environment.
///
/// ```
/// use album_data::{Labels, NpzWriter, load};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("own.npz");
/// let mut writer = NpzWriter::create(&path)?;
/// writer.array_f32("observations", &[3, 1], &[0.0, 1.0, 2.0])?;
/// writer.array_f32("actions", &[3, 1], &[1.0, 1.0, 0.0])?;
/// writer.array_f32("rewards", &[3], &[-1.0, 0.0, 0.0])?;
/// writer.array_f32("masks", &[3], &[1.0, 0.0, 1.0])?;
/// writer.array_bool("terminals", &[3], &[false, false, true])?;
/// writer.array_f32("weights", &[3], &[1.0, 1.0, 1.0])?;
/// writer.finish()?;
///
/// let loaded = load(&path, Labels::Own)?;
/// assert_eq!((loaded.dataset.len(), loaded.dataset.mask(1)), (2, 0.0));
/// assert!(loaded.warnings[0].starts_with("array `weights` is ignored"));
/// # Ok(())
/// # }
/// ```
pub fn load(path: impl AsRef<Path>, labels: Labels<'_>) -> Result<Loaded, DataError> {
    let Unchecked { dataset, warnings, .. } = read_source(path.as_ref(), labels, OnBad::Refuse)?;
    Ok(Loaded { dataset, warnings })
}

/// [`load`] that counts the numbers it would refuse, to list everything that is wrong.
///
/// Only what cannot be read at all is an error: a damaged archive, a missing array, mismatched shapes, no
/// transitions.
pub fn load_unchecked(path: impl AsRef<Path>, labels: Labels<'_>) -> Result<Unchecked, DataError> {
    read_source(path.as_ref(), labels, OnBad::Count)
}

/// Whether a file or folder has its own rewards.
pub fn has_own_rewards(path: impl AsRef<Path>) -> Result<bool, DataError> {
    Ok(Arrays::open(path.as_ref())?.contains("rewards"))
}

/// Whether an npz file or an imported folder is a recording whose rewards come from a task: it has none of
/// its own, or it has the arrays that OGBench's tasks are labelled by.
pub fn needs_task(path: impl AsRef<Path>) -> Result<bool, DataError> {
    let arrays = Arrays::open(path.as_ref())?;
    Ok(!arrays.contains("rewards") || arrays.contains("qpos") || arrays.contains("button_states"))
}

fn read_source(path: &Path, labels: Labels<'_>, on_bad: OnBad) -> Result<Unchecked, DataError> {
    let (source, labelled) = (Arrays::open(path)?, labels != Labels::None);
    if let Labels::Task(task) = labels {
        fit::check(&source, task.environment())?;
    }
    let mut warnings = ignored(&source, Some(labels));
    if source.row_kind() == RowKind::Transition {
        let Transitions { dataset, bad, dropped, .. } = read_transitions(&source, labels, on_bad)?;
        if dropped > 0 {
            warnings.push(dropped_transitions(dropped));
        }
        return Ok(Unchecked { dataset, warnings, bad, labelled, unfinished: false });
    }
    let Arrays::Folder(folder) = &source else { return read_states(&source, labels, on_bad, warnings) };
    let episodes = folder.episodes()?;
    let mut last = vec![false; episodes.rows()];
    episodes.last_rows().for_each(|row| last[row] = true);
    let RowLabels { rewards, masks, bad } = read_labels(&source, labels, &last, None, on_bad)?;
    let dims = [folder.width("observations")?, folder.width("actions")?];
    let columns = [folder.map("observations")?, folder.map("actions")?, rewards, masks];
    let space = folder.action_space(dims[1])?;
    let dataset = Dataset::from_columns(dims, columns, episodes).with_action_space(space);
    Ok(Unchecked { dataset, warnings, bad, labelled, unfinished: false })
}

pub(crate) fn dropped_transitions(count: usize) -> String {
    format!(
        "{count} transitions that were cut by `timeouts` or by the end of the file are dropped: without \
         `next_observations` their next states are unknown"
    )
}

/// Reads a file with one row per state.
fn read_states(
    source: &Arrays,
    labels: Labels<'_>,
    on_bad: OnBad,
    warnings: Vec<String>,
) -> Result<Unchecked, DataError> {
    let mut last = source.read_flags("terminals")?;
    let (count, place) = (last.len(), source.place());
    let unfinished = last.last() == Some(&false);
    if unfinished {
        if on_bad == OnBad::Refuse {
            return Err(value_error(place.array("terminals"), &[count], count - 1, false, UNFINISHED));
        }
        last[count - 1] = true;
    }
    let episodes = Episodes::from_last_rows(&last);
    if episodes.transitions() == 0 {
        return Err(DataError::NoTransitions { place });
    }
    let (observations, others) = both(
        || read(source.matrix("observations", count, 1)?, Role::State, &last, on_bad),
        || {
            let actions = read(source.matrix("actions", count, 1)?, Role::Action, &last, on_bad)?;
            Ok::<_, DataError>((actions, read_labels(source, labels, &last, None, on_bad)?))
        },
    );
    let (observations, (actions, RowLabels { rewards, masks, bad })) = (observations?, others?);
    let columns: [Column; 4] = [observations.data.into(), actions.data.into(), rewards, masks];
    let bad = [observations.bad, actions.bad, bad].concat();
    let dataset = Dataset::from_columns([observations.width, actions.width], columns, episodes);
    Ok(Unchecked { dataset, warnings, bad, labelled: labels != Labels::None, unfinished })
}

/// Runs both, on two threads if possible.
fn both<A: Send, B>(first: impl Fn() -> A + Sync, second: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, &first) {
        Ok(thread) => {
            let second = second();
            (thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
        }
        Err(_) => (first(), second()),
    })
}

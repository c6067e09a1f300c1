//! Reports arrays that a load or an import leaves out, so that nobody unknowingly learns from less.

use album_base::suggest;

use crate::load::Labels;
use crate::load::arrays::{Arrays, RowKind};

/// The arrays of every dataset.
const READ: [&str; 3] = ["observations", "actions", "terminals"];
/// Arrays read only if a row is a transition.
const READ_OF_TRANSITIONS: [&str; 2] = ["next_observations", "timeouts"];
const LABELS: [&str; 2] = ["rewards", "masks"];
/// The simulator's state, which labels are computed from, and the episodes of a folder: not expected to be
/// seen by an agent.
const ASIDE: [&str; 4] = ["qpos", "qvel", "button_states", "episodes"];

/// Whether an array is album's own note on the recording.
pub(crate) fn is_note(name: &str) -> bool {
    name.starts_with("album_")
}

/// A sentence for every array that is not read, and why. Without `labels`, all known arrays are kept.
pub(crate) fn ignored(source: &Arrays, labels: Option<Labels<'_>>) -> Vec<String> {
    let own = match labels {
        None | Some(Labels::Own) => None,
        Some(Labels::Task(task)) => Some(format!("rewards and masks are those of the task {task}")),
        Some(Labels::None) => Some("no rewards were asked for".to_owned()),
    };
    let transitions = source.row_kind() == RowKind::Transition;
    let known = || READ.iter().chain(&READ_OF_TRANSITIONS).chain(&LABELS).copied();
    let why = |name: &str| {
        if READ.contains(&name)
            || ASIDE.contains(&name)
            || is_note(name)
            || (transitions && READ_OF_TRANSITIONS.contains(&name))
        {
            return None;
        }
        if LABELS.contains(&name) {
            return own.clone();
        }
        let near: Vec<String> = suggest::nearest(name, known(), 1).into_iter().map(str::to_owned).collect();
        Some(format!("no dataset has an array of this name{}", suggest::did_you_mean(&near)))
    };
    let sentence = |name: &str| Some(format!("array `{}` is ignored: {}", name.escape_debug(), why(name)?));
    source.names().into_iter().filter_map(sentence).collect()
}

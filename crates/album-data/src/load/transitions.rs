//! Files with one row per transition, as in replay buffers.

use crate::dataset::{Dataset, Role};
use crate::episodes::Episodes;
use crate::error::DataError;
use crate::load::Labels;
use crate::load::arrays::Arrays;
use crate::load::checks::{BadNumbers, OnBad, read};
use crate::load::labels::{RowLabels, read_labels};

/// Such a file, converted to one row per state.
pub(crate) struct Transitions {
    pub dataset: Dataset,
    /// The file's row that each row of the dataset comes from.
    pub sources: Vec<usize>,
    pub bad: Vec<BadNumbers>,
    /// Transitions left out because their next state was not recorded.
    pub dropped: usize,
}

/// Converts a file to rows of states: the last transition of each episode is followed by its next state.
pub(crate) fn read_transitions(
    source: &Arrays,
    labels: Labels<'_>,
    on_bad: OnBad,
) -> Result<Transitions, DataError> {
    let terminals = source.read_flags("terminals")?;
    let count = terminals.len();
    let timeouts = match source.contains("timeouts") {
        true => source.read_flags("timeouts")?,
        false => vec![false; count],
    };
    if timeouts.len() != count {
        let expected = format!("[{count}], since there are {count} `terminals`");
        return Err(source.flags("timeouts")?.wrong_shape(expected));
    }
    // Every row has a state, an action and a label.
    let last = vec![false; count];
    let states = read(source.matrix("observations", count, 1)?, Role::State, &last, on_bad)?;
    let actions = read(source.matrix("actions", count, 1)?, Role::Action, &last, on_bad)?;
    let (dim, action_dim) = (states.width, actions.width);
    let successors = match source.contains("next_observations") {
        true => {
            let reader = source.array("next_observations")?;
            if reader.shape() != [count, dim] {
                return Err(reader.wrong_shape(format!("[{count}, {dim}], the shape of `observations`")));
            }
            Some(read(reader, Role::State, &last, on_bad)?)
        }
        false => None,
    };
    let ended: Vec<bool> = terminals.iter().zip(&timeouts).map(|(ended, cut)| *ended && !cut).collect();
    let RowLabels { rewards, masks, bad: bad_labels } =
        read_labels(source, labels, &last, Some(&ended), on_bad)?;

    let state = |row: usize| &states.data[row * dim..(row + 1) * dim];
    let next = |row: usize| successors.as_ref().map(|next| &next.data[row * dim..(row + 1) * dim]);
    let (mut sources, mut ends, mut dropped) = (Vec::new(), Vec::new(), 0);
    for row in 0..count {
        let cut = timeouts[row] || row + 1 == count;
        let is_transition = next(row).is_some() || terminals[row] || !cut;
        // Without next states, the row of a timeout is only the final state of its episode.
        let is_end = terminals[row] || cut || next(row).is_some_and(|next| next != state(row + 1));
        dropped += usize::from(!is_transition);
        for end in [is_transition.then_some(false), is_end.then_some(true)].into_iter().flatten() {
            sources.push(row);
            ends.push(end);
        }
    }
    let episodes = Episodes::from_last_rows(&ends);
    if episodes.transitions() == 0 {
        return Err(DataError::NoTransitions { place: source.place() });
    }
    let mut observations = Vec::with_capacity(sources.len() * dim);
    for (&row, &end) in sources.iter().zip(&ends) {
        // After a terminal with an unknown next state any state will do: nothing follows.
        observations.extend_from_slice(next(row).filter(|_| end).unwrap_or(state(row)));
    }
    let gathered = |role: Role, data: &[f32], width: usize| {
        let mut all: Vec<f32> =
            sources.iter().flat_map(|&row| &data[row * width..(row + 1) * width]).copied().collect();
        role.clear(&mut all, width, &ends);
        all.into()
    };
    let columns = [
        observations.into(),
        gathered(Role::Action, &actions.data, action_dim),
        gathered(Role::Reward, &rewards, 1),
        gathered(Role::Mask, &masks, 1),
    ];
    let bad =
        [states.bad, successors.map(|next| next.bad).unwrap_or_default(), actions.bad, bad_labels].concat();
    let dataset = Dataset::from_columns([dim, action_dim], columns, episodes);
    Ok(Transitions { dataset, sources, bad, dropped })
}

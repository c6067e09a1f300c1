//! Files with one row for each transition, as replay buffers have them. The layout is described in
//! [`load`](super::load).

use crate::dataset::Rows;
use crate::error::DataError;
use crate::npz::Npz;
use crate::ogbench::raw::{read_flags, read_floats, read_numbers, wrong_shape};

/// Reads such a file into rows: behind the last transition of each episode comes the state that it led to.
pub(super) fn read(npz: &mut Npz) -> Result<Rows, DataError> {
    let ended = read_flags(npz, "terminals")?;
    let count = ended.len();
    let cut = if npz.contains("timeouts") {
        read_numbers(npz, "timeouts", count)?.iter().map(|&flag| flag != 0.0).collect()
    } else {
        vec![false; count]
    };
    let rewards = read_numbers(npz, "rewards", count)?;
    let (dim, states) = read_floats(npz, "observations", count, 1)?;
    let (action_dim, actions) = read_floats(npz, "actions", count, 1)?;
    let successors = if npz.contains("next_observations") {
        let array = npz.read("next_observations")?;
        if array.shape != [count, dim] {
            return Err(wrong_shape(array, format!("[{count}, {dim}], the shape of `observations`")));
        }
        Some(array.into_f32()?)
    } else {
        None
    };

    let mut rows = Rows { observation_dim: dim, action_dim, ..Rows::default() };
    let state = |i: usize| &states[i * dim..(i + 1) * dim];
    let mut push = |state: &[f32], action: &[f32], reward, mask, last| {
        rows.observations.extend_from_slice(state);
        rows.actions.extend_from_slice(action);
        rows.rewards.push(reward);
        rows.masks.push(mask);
        rows.terminals.push(last);
    };
    let nothing = vec![0.0; action_dim];
    for i in 0..count {
        let action = &actions[i * action_dim..(i + 1) * action_dim];
        let mask = f32::from(u8::from(!ended[i]));
        let end_of_file = i + 1 == count;
        match &successors {
            Some(successors) => {
                let next = &successors[i * dim..(i + 1) * dim];
                push(state(i), action, rewards[i], mask, false);
                if ended[i] || cut[i] || end_of_file || next != state(i + 1) {
                    push(next, &nothing, 0.0, 1.0, true);
                }
            }
            // What a time-out led to is unknown: its state is all there is.
            None if !ended[i] && (cut[i] || end_of_file) => push(state(i), &nothing, 0.0, 1.0, true),
            None => {
                push(state(i), action, rewards[i], mask, false);
                if ended[i] {
                    // Nothing follows, so that any state will do for what comes next.
                    push(state(i), &nothing, 0.0, 1.0, true);
                }
            }
        }
    }
    Ok(rows)
}

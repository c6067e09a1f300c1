//! Rewards and masks: those of a task's goal, those of the file, or none.

use crate::column::Column;
use crate::dataset::Role;
use crate::error::DataError;
use crate::formats::npz::row_reader::RowReader;
use crate::load::Labels;
use crate::load::arrays::{Arrays, reserve};
use crate::load::checks::{BadNumbers, OnBad, check, read};
use crate::ogbench::{Goal, RowState};

/// Rewards and masks, one per row of the source.
pub(crate) struct RowLabels {
    pub rewards: Column,
    pub masks: Column,
    pub bad: Vec<BadNumbers>,
}

/// Labels every row. `last` marks rows that have only a state. If the source has rewards but no masks,
/// `ended` marks where the task ended.
pub(crate) fn read_labels(
    source: &Arrays,
    labels: Labels<'_>,
    last: &[bool],
    ended: Option<&[bool]>,
    on_bad: OnBad,
) -> Result<RowLabels, DataError> {
    let rows = last.len();
    match labels {
        Labels::Task(task) => by_goal(source, &task.goal(), last, on_bad),
        Labels::None => {
            Ok(RowLabels { rewards: vec![0.0; rows].into(), masks: vec![1.0; rows].into(), bad: Vec::new() })
        }
        Labels::Own => {
            if let Arrays::Folder(folder) = source {
                let masks =
                    if source.contains("masks") { folder.map("masks")? } else { vec![1.0; rows].into() };
                return Ok(RowLabels { rewards: folder.map("rewards")?, masks, bad: Vec::new() });
            }
            let mut rewards = read(source.numbers("rewards", rows)?, Role::Reward, last, on_bad)?;
            let masks = if source.contains("masks") {
                let masks = read(source.numbers("masks", rows)?, Role::Mask, last, on_bad)?;
                rewards.bad.extend(masks.bad);
                masks.data
            } else {
                let follows = |row: usize| ended.is_none_or(|ended| !ended[row]);
                (0..rows).map(|row| f32::from(u8::from(follows(row)))).collect()
            };
            Ok(RowLabels { rewards: rewards.data.into(), masks: masks.into(), bad: rewards.bad })
        }
    }
}

/// The labelling loop. Columns needed only for labels are read in parts.
fn by_goal(source: &Arrays, goal: &Goal, last: &[bool], on_bad: OnBad) -> Result<RowLabels, DataError> {
    let (rows, place, needs) = (last.len(), source.place(), goal.needs());
    let wanted = |key, columns| (columns > 0).then(|| source.matrix(key, rows, columns)).transpose();
    let (mut qpos_reader, mut button_reader) =
        (wanted("qpos", needs.qpos)?, wanted("button_states", needs.button_states)?);
    let width = |reader: &Option<RowReader<'_>>| reader.as_ref().map_or(0, RowReader::width);
    let (qpos_dim, buttons) = (width(&qpos_reader), width(&button_reader));
    let step = qpos_reader.iter().chain(&button_reader).map(RowReader::chunk_rows).min().unwrap_or(rows);
    let (mut rewards, mut masks) = (reserve(rows, &place)?, reserve(rows, &place)?);
    let (mut qpos, mut button_states, mut bad) = (Vec::new(), Vec::new(), Vec::new());
    for first in (0..rows).step_by(step.max(1)) {
        let count = step.min(rows - first);
        if let Some(reader) = &mut qpos_reader {
            qpos.clear();
            reader.append_f32(count, &mut qpos)?;
            check(reader, Role::State, count, &qpos, on_bad, &mut bad)?;
        }
        if let Some(reader) = &mut button_reader {
            button_states = reader.integers(count)?;
        }
        for i in 0..count {
            let label = goal.label(&RowState {
                qpos: &qpos[i * qpos_dim..(i + 1) * qpos_dim],
                button_states: &button_states[i * buttons..(i + 1) * buttons],
            });
            rewards.push(label.reward);
            masks.push(label.mask);
        }
    }
    for reader in [qpos_reader, button_reader].into_iter().flatten() {
        reader.finish()?;
    }
    Role::Reward.clear(&mut rewards, 1, last);
    Role::Mask.clear(&mut masks, 1, last);
    Ok(RowLabels { rewards: rewards.into(), masks: masks.into(), bad })
}

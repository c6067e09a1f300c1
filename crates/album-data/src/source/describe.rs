//! The description of a source, made after all rows have been read.

use std::collections::BTreeMap;

use crate::action_space::ActionSpace;
use crate::dataset::Dataset;
use crate::error::DataError;
use crate::load::checks::{BadNumbers, OnBad, Problem};
use crate::source::assemble::Seen;
use crate::source::layout::Slot;
use crate::source::open::Format;
use crate::source::opened::Opened;
use crate::source::space::{decide, outside};
use crate::source::{Description, EndCounts, Source};

/// What is known only after all rows have been read.
pub(crate) struct Finished {
    pub space: ActionSpace,
    pub description: Description,
    pub warnings: Vec<String>,
    pub bad: Vec<BadNumbers>,
}

impl Opened<'_> {
    /// Determines the action space and the description from all rows.
    pub fn finish(&self, source: &Source, seen: Seen, on_bad: OnBad) -> Result<Finished, DataError> {
        let place = self.tables[0].place();
        let labels = match &self.layout.actions[..] {
            [slot] if slot.index => slot.categories.clone(),
            _ => None,
        };
        let known = self.known_space.as_ref();
        let (space, guess) =
            decide(source, &seen.actions, &self.action_kinds, labels.as_deref(), known, place)?;
        let mut guesses = self.guesses.clone();
        guesses.extend(guess);
        let mut warnings = self.warnings.clone();
        let mut bad = seen.bad;
        if source.action_bounds.is_empty()
            && known.is_some()
            && (outside(&space, &seen.actions.min).is_some() || outside(&space, &seen.actions.max).is_some())
        {
            warnings.push(
                "some actions lie outside the bounds of the known action space: they are clipped to it"
                    .to_owned(),
            );
        }
        if on_bad == OnBad::Count {
            bad.retain(|bad| bad.problem != Problem::OutOfRange || !source.action_bounds.is_empty());
        }
        if seen.dropped > 0 {
            warnings.push(format!(
                "{} transitions at timeouts or at the end of a recording are dropped: without next observations their \
                 next state is unknown",
                seen.dropped
            ));
        }
        if seen.unflagged > 0 {
            warnings.push(format!("{} episodes end without a flag: taken as timeouts", seen.unflagged));
        }
        if let Some(first) = &seen.first_jump {
            warnings.push(format!(
                "in {} rows the next observation is not the observation of the next row, first in {first}: episodes are \
                 cut there, as by a timeout",
                seen.jumps
            ));
        }
        let description = Description {
            format: self.format,
            observation_names: self.names(&self.layout.observations),
            categories: self
                .layout
                .observations
                .iter()
                .filter_map(|slot| Some((self.layout.names[slot.column].clone(), slot.categories.clone()?)))
                .collect(),
            action_names: match labels {
                Some(labels) => labels,
                None => self.names(&self.layout.actions),
            },
            action_space: space.clone(),
            episodes: seen.ends.terminal + seen.ends.timeout,
            ends: seen.ends,
            guesses,
        };
        Ok(Finished { space, description, warnings, bad })
    }

    fn names(&self, slots: &[Slot]) -> Vec<String> {
        let of_slot = |slot: &Slot| {
            let name = &self.layout.names[slot.column];
            match &slot.categories {
                Some(categories) if !slot.index => categories.iter().map(|c| format!("{name}={c}")).collect(),
                _ => numbered(name, slot.width),
            }
        };
        slots.iter().flat_map(of_slot).collect()
    }
}

impl Description {
    /// The description of a dataset without column names.
    pub fn of(data: &Dataset, format: Format) -> Self {
        let episodes = data.episodes();
        let terminal = (0..episodes.len()).filter(|&e| data.episode_masks(e).last() == Some(&0.0)).count();
        Self {
            format,
            observation_names: numbered("observations", data.observation_dim()),
            categories: BTreeMap::new(),
            action_space: data.action_space().clone(),
            action_names: numbered("actions", data.action_dim()),
            episodes: episodes.len(),
            ends: EndCounts { terminal, timeout: episodes.len() - terminal },
            guesses: Vec::new(),
        }
    }
}

fn numbered(name: &str, width: usize) -> Vec<String> {
    if width == 1 {
        return vec![name.to_owned()];
    }
    (0..width).map(|i| format!("{name}[{i}]")).collect()
}

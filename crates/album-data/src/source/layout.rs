//! How the columns of a table map to observation and action vectors.

use std::collections::HashMap;

use crate::source::log::{Field, FieldType};
use crate::source::roles::Roles;

/// The place of a field within an observation or action vector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    /// Index among the fields that are read.
    pub column: usize,
    pub offset: usize,
    pub width: usize,
    /// The categories of a text column, sorted.
    pub categories: Option<Vec<String>>,
    /// Whether text is encoded as the index of its category rather than one-hot.
    pub index: bool,
    /// Whether the column is added to others: rewards may be sums of columns.
    pub adds: bool,
}

/// How fields map to rows; the same for every file of a source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub names: Vec<String>,
    pub observations: Vec<Slot>,
    pub next_observations: Vec<Slot>,
    pub actions: Vec<Slot>,
    pub rewards: Vec<Slot>,
    pub episode: Option<usize>,
    pub step: Option<usize>,
    pub mask: Option<usize>,
    pub terminal: Option<usize>,
    pub timeout: Option<usize>,
    pub end_state: Option<usize>,
    pub first_choice: i64,
}

impl Layout {
    pub fn new(roles: &Roles, fields: &[Field], categories: &HashMap<String, Vec<String>>) -> Self {
        let mut layout = Self::default();
        let mut column = |field: usize| {
            layout.names.push(fields[field].name.clone());
            layout.names.len() - 1
        };
        let mut slots = |all: &[usize], adds: bool| {
            let mut offset = 0;
            let mut slots = Vec::new();
            for &field in all {
                let categories = categories.get(&fields[field].name).cloned();
                let one_hot = fields[field].kind == FieldType::Text && !adds;
                let width = match &categories {
                    Some(categories) if one_hot => categories.len(),
                    _ => fields[field].width,
                };
                slots.push(Slot { column: column(field), offset, width, categories, index: false, adds });
                offset += if adds { 0 } else { width };
            }
            slots
        };
        let observations = slots(&roles.obs, false);
        let next_observations = slots(&roles.next_obs, false);
        let mut actions = slots(&roles.action, false);
        // A text action is a discrete choice: the index of its label, not one-hot.
        if let [one] = &mut actions[..]
            && one.categories.is_some()
        {
            one.width = 1;
            one.index = true;
        }
        let rewards = slots(&roles.reward, true);
        let mut one = |field: Option<usize>| field.map(&mut column);
        let episode = one(roles.episode);
        let step = one(roles.step);
        let mask = one(roles.mask);
        let terminal = one(roles.terminal);
        let timeout = one(roles.timeout);
        let end_state = one(roles.end_state);
        Self {
            observations,
            next_observations,
            actions,
            rewards,
            episode,
            step,
            mask,
            terminal,
            timeout,
            end_state,
            ..layout
        }
    }

    pub fn observation_dim(&self) -> usize {
        self.observations.iter().map(|slot| slot.width).sum()
    }

    pub fn action_dim(&self) -> usize {
        self.actions.iter().map(|slot| slot.width).sum()
    }
}

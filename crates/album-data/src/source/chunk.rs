//! Parts of a table as rows of numbers, with the meaning of each column.

use std::collections::HashMap;

use crate::error::{DataError, Place};
use crate::formats::table::Text;
use crate::source::columns::Roles;
use crate::source::log::{Field, Kind, LogFile, Part, Values};

/// Where the numbers of a field go within a row of observations or actions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    /// Position among the fields that are read.
    pub column: usize,
    pub offset: usize,
    pub width: usize,
    /// The categories of a text column, sorted.
    pub categories: Option<Vec<String>>,
    /// Whether a text is the index of its category, not one number for each category.
    pub index: bool,
    /// Of several columns that are added up: a reward.
    pub adds: bool,
}

/// How the fields that are read become rows. The same for every file of a source.
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
                let one_hot = fields[field].kind == Kind::Text && !adds;
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
        // A text action is the index of its label, not one number for each.
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

/// Some rows of a log. Row `i` is row `base + i` of its file.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub rows: usize,
    pub observations: Vec<f32>,
    pub next_observations: Vec<f32>,
    pub actions: Vec<f32>,
    pub rewards: Vec<f32>,
    pub masks: Vec<f32>,
    pub terminals: Vec<bool>,
    pub timeouts: Vec<bool>,
    pub end_states: Vec<bool>,
    pub episodes: Vec<i64>,
    pub steps: Vec<i64>,
    pub base: isize,
}

impl Chunk {
    pub fn state(&self, row: usize, dim: usize) -> &[f32] {
        &self.observations[row * dim..][..dim]
    }

    pub fn successor(&self, row: usize, dim: usize) -> Option<&[f32]> {
        (!self.next_observations.is_empty()).then(|| &self.next_observations[row * dim..][..dim])
    }

    /// Forgets all rows but the last one.
    pub fn keep_last(&mut self, layout: &Layout) {
        self.keep_from(self.rows.saturating_sub(1), layout);
    }

    /// Forgets the rows before this one.
    pub fn keep_from(&mut self, first: usize, layout: &Layout) {
        fn cut<T>(all: &mut Vec<T>, first: usize, width: usize) {
            let gone = (first * width).min(all.len());
            all.drain(..gone);
        }
        let (dim, action_dim) = (layout.observation_dim(), layout.action_dim());
        cut(&mut self.observations, first, dim);
        cut(&mut self.next_observations, first, dim);
        cut(&mut self.actions, first, action_dim);
        cut(&mut self.rewards, first, 1);
        cut(&mut self.masks, first, 1);
        cut(&mut self.terminals, first, 1);
        cut(&mut self.timeouts, first, 1);
        cut(&mut self.end_states, first, 1);
        cut(&mut self.episodes, first, 1);
        cut(&mut self.steps, first, 1);
        self.rows -= first;
        self.base += first as isize;
    }

    /// The same rows in another order.
    pub fn permuted(&self, order: &[usize], layout: &Layout) -> Self {
        fn pick<T: Copy>(all: &[T], order: &[usize], width: usize) -> Vec<T> {
            if all.is_empty() {
                return Vec::new();
            }
            order.iter().flat_map(|&row| &all[row * width..(row + 1) * width]).copied().collect()
        }
        let (dim, action_dim) = (layout.observation_dim(), layout.action_dim());
        Self {
            rows: self.rows,
            observations: pick(&self.observations, order, dim),
            next_observations: pick(&self.next_observations, order, dim),
            actions: pick(&self.actions, order, action_dim),
            rewards: pick(&self.rewards, order, 1),
            masks: pick(&self.masks, order, 1),
            terminals: pick(&self.terminals, order, 1),
            timeouts: pick(&self.timeouts, order, 1),
            end_states: pick(&self.end_states, order, 1),
            episodes: pick(&self.episodes, order, 1),
            steps: pick(&self.steps, order, 1),
            base: self.base,
        }
    }
}

/// Turns the parts of one file into rows.
pub(crate) struct Builder<'a> {
    table: &'a dyn LogFile,
    layout: &'a Layout,
}

impl<'a> Builder<'a> {
    pub fn new(table: &'a dyn LogFile, layout: &'a Layout) -> Self {
        Self { table, layout }
    }

    /// Appends a part.
    pub fn append(&self, part: Part, chunk: &mut Chunk) -> Result<(), DataError> {
        let layout = self.layout;
        chunk.base = part.first_row as isize - chunk.rows as isize;
        let (dim, action_dim) = (layout.observation_dim(), layout.action_dim());
        self.numbers(&part, &layout.observations, dim, &mut chunk.observations)?;
        if !layout.next_observations.is_empty() {
            self.numbers(&part, &layout.next_observations, dim, &mut chunk.next_observations)?;
        }
        let start = chunk.actions.len();
        self.numbers(&part, &layout.actions, action_dim, &mut chunk.actions)?;
        if layout.first_choice != 0 {
            chunk.actions[start..].iter_mut().for_each(|x| *x -= layout.first_choice as f32);
        }
        if layout.rewards.is_empty() {
            chunk.rewards.resize(chunk.rows + part.rows, 0.0);
        } else {
            self.numbers(&part, &layout.rewards, 1, &mut chunk.rewards)?;
        }
        if let Some(column) = layout.mask {
            let slot = Slot { column, offset: 0, width: 1, categories: None, index: false, adds: false };
            self.numbers(&part, &[slot], 1, &mut chunk.masks)?;
        }
        for (column, flags) in [
            (layout.terminal, &mut chunk.terminals),
            (layout.timeout, &mut chunk.timeouts),
            (layout.end_state, &mut chunk.end_states),
        ] {
            if let Some(column) = column {
                self.flags(&part, column, flags)?;
            }
        }
        if let Some(column) = layout.episode {
            self.labels(&part, column, &mut chunk.episodes)?;
        }
        if let Some(column) = layout.step {
            self.integers(&part, column, &mut chunk.steps)?;
        }
        chunk.rows += part.rows;
        Ok(())
    }

    /// Appends rows of `dim` numbers, of the columns that the slots name.
    fn numbers(&self, part: &Part, slots: &[Slot], dim: usize, to: &mut Vec<f32>) -> Result<(), DataError> {
        let start = to.len();
        // One array that is a whole row already: the usual case.
        if let [Slot { column, categories: None, .. }] = slots {
            match &part.columns[*column] {
                Values::F32(v) => to.extend_from_slice(v),
                Values::F64(v) => to.extend(v.iter().map(|&x| x as f32)),
                Values::I64(v) => to.extend(v.iter().map(|&x| x as f32)),
                Values::Bool(v) => to.extend(v.iter().map(|&x| f32::from(u8::from(x)))),
                Values::Text(v) => return Err(self.text(part, *column, 0, v, "a number")),
            }
            return Ok(());
        }
        to.resize(start + part.rows * dim, 0.0);
        let to = &mut to[start..];
        for slot in slots {
            let &Slot { column, offset, width, adds, .. } = slot;
            macro_rules! place {
                ($v:expr, $convert:expr) => {
                    for (row, values) in $v.chunks_exact(width).enumerate() {
                        for (x, value) in to[row * dim + offset..].iter_mut().zip(values) {
                            let number = $convert(*value);
                            *x = if adds { *x + number } else { number };
                        }
                    }
                };
            }
            match &part.columns[column] {
                Values::F32(v) => place!(v, |x: f32| x),
                Values::F64(v) => place!(v, |x: f64| x as f32),
                Values::I64(v) => place!(v, |x: i64| x as f32),
                Values::Bool(v) => place!(v, |x: bool| f32::from(u8::from(x))),
                Values::Text(v) => {
                    let Some(categories) = &slot.categories else {
                        return Err(self.text(part, column, 0, v, "a number"));
                    };
                    let places: Vec<_> =
                        v.categories.iter().map(|text| categories.binary_search(text)).collect();
                    for (row, &code) in v.codes.iter().enumerate() {
                        let Ok(index) = places[code as usize] else {
                            let expected = "one of the categories seen before; the file changed meanwhile";
                            return Err(self.text(part, column, row, v, expected));
                        };
                        if slot.index {
                            to[row * dim + offset] = index as f32;
                        } else {
                            to[row * dim + offset + index] = 1.0;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn flags(&self, part: &Part, column: usize, to: &mut Vec<bool>) -> Result<(), DataError> {
        const EXPECTED: &str = "0 or 1, or true or false";
        macro_rules! flags {
            ($v:expr, $zero:expr, $one:expr) => {
                for (row, &x) in $v.iter().enumerate() {
                    if x != $zero && x != $one {
                        return Err(self.cell(part, column, row, &x.to_string(), EXPECTED));
                    }
                    to.push(x == $one);
                }
            };
        }
        match &part.columns[column] {
            Values::Bool(v) => to.extend_from_slice(v),
            Values::I64(v) => flags!(v, 0, 1),
            Values::F32(v) => flags!(v, 0.0, 1.0),
            Values::F64(v) => flags!(v, 0.0, 1.0),
            Values::Text(v) => return Err(self.text(part, column, 0, v, EXPECTED)),
        }
        Ok(())
    }

    fn integers(&self, part: &Part, column: usize, to: &mut Vec<i64>) -> Result<(), DataError> {
        const EXPECTED: &str = "a whole number";
        let mut float = |row: usize, x: f64| {
            if x.fract() != 0.0 || x.abs() > 9e15 || x.is_nan() {
                return Err(self.cell(part, column, row, &x.to_string(), EXPECTED));
            }
            to.push(x as i64);
            Ok(())
        };
        match &part.columns[column] {
            Values::F32(v) => v.iter().enumerate().try_for_each(|(row, &x)| float(row, f64::from(x))),
            Values::F64(v) => v.iter().enumerate().try_for_each(|(row, &x)| float(row, x)),
            Values::I64(v) => {
                to.extend_from_slice(v);
                Ok(())
            }
            Values::Bool(v) => {
                to.extend(v.iter().map(|&x| i64::from(x)));
                Ok(())
            }
            Values::Text(v) => Err(self.text(part, column, 0, v, EXPECTED)),
        }
    }

    /// Episodes by number or by name: the codes of names mean the same in all parts of a file.
    fn labels(&self, part: &Part, column: usize, to: &mut Vec<i64>) -> Result<(), DataError> {
        let Values::Text(names) = &part.columns[column] else {
            return self.integers(part, column, to);
        };
        to.extend(names.codes.iter().map(|&code| i64::from(code)));
        Ok(())
    }

    fn cell(&self, part: &Part, column: usize, row: usize, found: &str, expected: &'static str) -> DataError {
        DataError::Cell {
            place: Box::new(Place::file(&self.table.place().file)),
            column: self.layout.names[column].clone(),
            row: self.table.row_name(part.first_row + row),
            found: found.to_owned(),
            expected,
        }
    }

    fn text(&self, part: &Part, column: usize, row: usize, text: &Text, expected: &'static str) -> DataError {
        let label = text.codes.get(row).map_or("", |&code| text.categories[code as usize].as_str());
        let short: String = label.chars().take(60).collect();
        self.cell(part, column, row, &format!("`{}`", short.escape_debug()), expected)
    }
}

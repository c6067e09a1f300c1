//! Converts parts of a table to numeric rows.

use crate::error::{DataError, Place};
use crate::formats::table::Text;
use crate::source::chunk::Chunk;
use crate::source::layout::{Layout, Slot};
use crate::source::log::{LogFile, Part, Stop, Values};

/// Rows that are filled together.
const BLOCK: usize = 128;

/// Writes the numbers of a column to its place within rows of `dim` numbers.
fn place<T: Copy>(values: &[T], number: impl Fn(T) -> f32, slot: &Slot, dim: usize, to: &mut [f32]) {
    let rows = to.chunks_exact_mut(dim).map(|row| &mut row[slot.offset..][..slot.width]);
    if slot.adds {
        for (row, values) in rows.zip(values.chunks_exact(slot.width)) {
            row.iter_mut().zip(values).for_each(|(x, &value)| *x += number(value));
        }
    } else if slot.width == 1 {
        let column = to[slot.offset..].iter_mut().step_by(dim);
        column.zip(values).for_each(|(x, &value)| *x = number(value));
    } else {
        for (row, values) in rows.zip(values.chunks_exact(slot.width)) {
            row.iter_mut().zip(values).for_each(|(x, &value)| *x = number(value));
        }
    }
}

/// Converts the parts of one file to rows.
pub(crate) struct Builder<'a> {
    table: &'a dyn LogFile,
    layout: &'a Layout,
}

impl<'a> Builder<'a> {
    pub fn new(table: &'a dyn LogFile, layout: &'a Layout) -> Self {
        Self { table, layout }
    }

    /// Appends a part to a chunk.
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

    /// Appends vectors of `dim` numbers, gathered from the columns of the slots.
    fn numbers(&self, part: &Part, slots: &[Slot], dim: usize, to: &mut Vec<f32>) -> Result<(), DataError> {
        let start = to.len();
        // Fast path for the common case: one array holds the whole vector.
        if let [Slot { column, categories: None, .. }] = slots {
            match &part.columns[*column] {
                Values::F32(v) => to.extend_from_slice(v),
                Values::F64(v) => to.extend(v.iter().map(|&x| x as f32)),
                Values::I64(v) => to.extend(v.iter().map(|&x| x as f32)),
                Values::Bool(v) => to.extend(v.iter().map(|&x| f32::from(u8::from(x)))),
                Values::Text(v) => return Err(self.no_number(part, *column, v)),
            }
            return Ok(());
        }
        to.resize(start + part.rows * dim, 0.0);
        let to = &mut to[start..];
        for slot in slots {
            if let (Values::Text(text), Some(categories)) = (&part.columns[slot.column], &slot.categories) {
                self.encode(part, slot, text, categories, dim, to)?;
            } else if let Values::Text(text) = &part.columns[slot.column] {
                return Err(self.no_number(part, slot.column, text));
            }
        }
        // Block by block, so that the rows being filled stay in the cache while the columns pass by.
        for first in (0..part.rows).step_by(BLOCK) {
            let rows = first..part.rows.min(first + BLOCK);
            let to = &mut to[first * dim..rows.end * dim];
            for slot in slots {
                let rows = rows.start * slot.width..rows.end * slot.width;
                match &part.columns[slot.column] {
                    Values::F32(v) => place(&v[rows], |x| x, slot, dim, to),
                    Values::F64(v) => place(&v[rows], |x| x as f32, slot, dim, to),
                    Values::I64(v) => place(&v[rows], |x| x as f32, slot, dim, to),
                    Values::Bool(v) => place(&v[rows], |x| f32::from(u8::from(x)), slot, dim, to),
                    Values::Text(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Writes the categories of a text column, one-hot or as indices.
    fn encode(
        &self,
        part: &Part,
        slot: &Slot,
        text: &Text,
        categories: &[String],
        dim: usize,
        to: &mut [f32],
    ) -> Result<(), DataError> {
        let places: Vec<_> = text.categories.iter().map(|text| categories.binary_search(text)).collect();
        for (row, &code) in text.codes.iter().enumerate() {
            let Ok(index) = places[code as usize] else {
                let expected = "one of the categories seen before; the file changed meanwhile";
                return Err(self.text(part, slot.column, row, text, expected));
            };
            if slot.index {
                to[row * dim + slot.offset] = index as f32;
            } else {
                to[row * dim + slot.offset + index] = 1.0;
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
            Values::Text(v) => {
                let is_flag = |label: &str| ["0", "1", "true", "false"].contains(&&*label.to_lowercase());
                return Err(self.misfit(part, column, v, EXPECTED, is_flag));
            }
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
            Values::Text(v) => {
                Err(self.misfit(part, column, v, EXPECTED, |label| label.parse::<i64>().is_ok()))
            }
        }
    }

    /// Appends episode ids, which are integers or text. The codes of text are consistent across the parts of
    /// a file.
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

    fn no_number(&self, part: &Part, column: usize, text: &Text) -> DataError {
        self.misfit(part, column, text, "a number", |label| label.parse::<f64>().is_ok())
    }

    /// The error for text in a numeric column. A single bad cell turns the whole column into text; this finds
    /// that cell, which may lie in a later part.
    fn misfit(
        &self,
        part: &Part,
        column: usize,
        text: &Text,
        expected: &'static str,
        fits: impl Fn(&str) -> bool,
    ) -> DataError {
        let odd = |text: &Text| text.codes.iter().position(|&code| !fits(&text.categories[code as usize]));
        if let Some(row) = odd(text) {
            return self.text(part, column, row, text, expected);
        }
        let mut found = None;
        let name = &self.layout.names[column];
        if let Some(field) = self.table.fields().iter().position(|field| field.name == *name) {
            let mut look = |later: Part| match &later.columns[..] {
                [Values::Text(text)] => match odd(text) {
                    Some(row) => {
                        found = Some(self.text(&later, column, row, text, expected));
                        Err(Stop::Enough)
                    }
                    None => Ok(()),
                },
                _ => Err(Stop::Enough),
            };
            // Either the bad cell, or an error that reading further would have hit anyway.
            if let Err(Stop::Data(error)) = self.table.visit(&[field], &mut look) {
                return error;
            }
        }
        found.unwrap_or_else(|| self.text(part, column, 0, text, expected))
    }

    fn text(&self, part: &Part, column: usize, row: usize, text: &Text, expected: &'static str) -> DataError {
        let label = text.codes.get(row).map_or("", |&code| text.categories[code as usize].as_str());
        let short: String = label.chars().take(60).collect();
        self.cell(part, column, row, &format!("`{}`", short.escape_debug()), expected)
    }
}

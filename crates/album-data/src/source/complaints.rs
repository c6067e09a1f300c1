//! Errors about single rows, with their place in the file.

use crate::error::{DataError, Place};
use crate::load::checks::{BadNumbers, OnBad, Problem};
use crate::source::assemble::Assembler;
use crate::source::chunk::Chunk;

impl Assembler<'_> {
    /// Reports an invalid number: an error, or one more in the count.
    #[allow(clippy::too_many_arguments, reason = "each is a part of one message")]
    pub fn bad(
        &mut self,
        chunk: &Chunk,
        row: usize,
        array: &str,
        column: usize,
        value: f32,
        problem: Problem,
        expected: &'static str,
    ) -> Result<(), DataError> {
        if self.on_bad == OnBad::Refuse {
            return Err(DataError::Cell {
                place: Box::new(self.place()),
                column: self.column_name(array, column),
                row: self.row_name(chunk, row),
                found: value.to_string(),
                expected,
            });
        }
        let row = self.row_number(chunk, row);
        match self.seen.bad.iter_mut().find(|bad| bad.array == array && bad.problem == problem) {
            Some(known) => known.count += 1,
            None => self.seen.bad.push(BadNumbers {
                array: array.to_owned(),
                count: 1,
                row,
                column: Some(column).filter(|_| !["rewards", "masks"].contains(&array)),
                value: value.to_string(),
                problem,
            }),
        }
        Ok(())
    }

    pub fn goes_on(&self, chunk: &Chunk, row: usize) -> DataError {
        let name = self.layout.terminal.or(self.layout.timeout).map_or("", |i| &self.layout.names[i]);
        let problem = format!(
            "the episode ends here by its flag, but goes on in the next row; if `{}` is no end of an episode, leave it \
             out with --columns terminal=,timeout= and say what ends episodes with --ends",
            name.escape_debug()
        );
        self.episode_error(chunk, row, problem)
    }

    pub fn episode_error(&self, chunk: &Chunk, row: usize, problem: String) -> DataError {
        DataError::Episode { place: self.place(), row: self.row_name(chunk, row), problem }
    }

    pub fn place(&self) -> Place {
        self.table.place().clone()
    }

    fn row_number(&self, chunk: &Chunk, row: usize) -> usize {
        match self.order {
            Some(order) => order[row],
            None => (chunk.base + row as isize).max(0) as usize,
        }
    }

    pub fn row_name(&self, chunk: &Chunk, row: usize) -> String {
        self.table.row_name(self.row_number(chunk, row))
    }

    /// The column that a component came from.
    fn column_name(&self, array: &str, number: usize) -> String {
        let slots = match array {
            "observations" => &self.layout.observations,
            "next_observations" => &self.layout.next_observations,
            "actions" => &self.layout.actions,
            "rewards" => &self.layout.rewards,
            _ => return self.layout.mask.map_or_else(String::new, |i| self.layout.names[i].clone()),
        };
        let slot = slots.iter().rev().find(|slot| slot.offset <= number);
        match slot {
            Some(slot) if slot.width == 1 => self.layout.names[slot.column].clone(),
            Some(slot) => format!("{}[{}]", self.layout.names[slot.column], number - slot.offset),
            None => array.to_owned(),
        }
    }
}

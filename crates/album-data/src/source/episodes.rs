//! Logs with one file or group per episode.

use std::sync::{Mutex, PoisonError};

use crate::error::{DataError, Place};
use crate::source::log::{END_STATE, EPISODE, Facts, Field, FieldType, LogFile, Part, Stop, Values, Visit};

/// The arrays of one episode.
pub(crate) struct EpisodeArrays {
    /// One row per action, or one more for states.
    pub columns: Vec<Values>,
    /// Number of actions.
    pub steps: usize,
    /// Whether all arrays have an extra last row that holds only a state. If not, the states alone may have
    /// one.
    pub padded: bool,
}

/// Access to the episodes of a log.
pub(crate) trait EpisodeStore: Sync {
    fn len(&self) -> usize;
    /// The name of an episode in messages.
    fn name(&self, episode: usize) -> String;
    /// Reads the given fields of an episode.
    fn read(&self, episode: usize, fields: &[&Field]) -> Result<EpisodeArrays, DataError>;
}

/// The concatenated episodes as a table.
pub(crate) struct EpisodesTable<S> {
    store: S,
    place: Place,
    fields: Vec<Field>,
    facts: Facts,
    /// The first row of every episode read so far.
    starts: Mutex<Vec<usize>>,
}

impl<S: EpisodeStore> EpisodesTable<S> {
    pub fn new(store: S, place: Place, mut fields: Vec<Field>, facts: Facts) -> Self {
        fields.push(Field::new(EPISODE, FieldType::Integer, 1));
        fields.push(Field::new(END_STATE, FieldType::Bool, 1));
        Self { store, place, fields, facts, starts: Mutex::new(Vec::new()) }
    }
}

impl<S: EpisodeStore> LogFile for EpisodesTable<S> {
    fn place(&self) -> &Place {
        &self.place
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn row_name(&self, row: usize) -> String {
        let starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        match starts.partition_point(|&start| start <= row).checked_sub(1) {
            Some(episode) => format!("{}, row {}", self.store.name(episode), row - starts[episode]),
            None => format!("row {row}"),
        }
    }

    fn visit(&self, fields: &[usize], each: Visit<'_>) -> Result<(), Stop> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let fields: Vec<&Field> = fields.iter().map(|&i| &self.fields[i]).collect();
        let mut row = 0;
        for episode in 0..self.store.len() {
            let part = self.part(episode, row, &fields)?;
            self.starts.lock().unwrap_or_else(PoisonError::into_inner).push(row);
            row += part.rows;
            each(part)?;
        }
        Ok(())
    }
}

impl<S: EpisodeStore> EpisodesTable<S> {
    fn part(&self, episode: usize, row: usize, fields: &[&Field]) -> Result<Part, DataError> {
        let made_up = |field: &Field| [EPISODE, END_STATE].contains(&field.name.as_str());
        let real: Vec<&Field> = fields.iter().copied().filter(|field| !made_up(field)).collect();
        let EpisodeArrays { columns, steps, padded } = self.store.read(episode, &real)?;
        let longer = columns.iter().zip(&real).any(|(column, field)| column.rows(field.width) == steps + 1);
        let end_state = padded || longer;
        let rows = steps + usize::from(end_state);
        let mut columns = columns.into_iter();
        let mut all = Vec::with_capacity(fields.len());
        for field in fields {
            let column = match field.name.as_str() {
                EPISODE => Values::I64(vec![episode as i64; rows]),
                END_STATE => Values::Bool((0..rows).map(|row| end_state && row == steps).collect()),
                _ => {
                    let Some(mut column) = columns.next() else { continue };
                    let found = column.rows(field.width);
                    if found != rows && !(found == steps && end_state) {
                        let path = format!("{}/{}", self.store.name(episode), field.name);
                        return Err(DataError::WrongShape {
                            place: self.place.array(&path),
                            found: vec![found, field.width],
                            expected: format!("{steps} rows, as many as there are actions"),
                        });
                    }
                    column.resize(rows * field.width);
                    column
                }
            };
            all.push(column);
        }
        Ok(Part { first_row: row, rows, columns: all })
    }
}

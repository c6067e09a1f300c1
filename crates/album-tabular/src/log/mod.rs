//! Logs as tables: labelled columns become a [`TabularDataset`], and its solution is mapped back to the
//! labels.
//!
//! ```
//! use album_data::table::Table;
//! use album_tabular::log::{Advice, Log, LogColumns, Question};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("log.csv");
//! std::fs::write(&path, "patient,severity,drug,score\n1,high,A,0\n1,low,none,1\n2,high,B,0\n2,high,A,0\n2,low,none,1\n")?;
//! let columns = LogColumns {
//!     state: vec!["severity".into()],
//!     action: "drug".into(),
//!     reward: "score".into(),
//!     episode: "patient".into(),
//!     ..LogColumns::default()
//! };
//! let log = Log::read(&Table::open(&[&path])?, &columns)?;
//! let advice = Advice::new(&log, &Question { gamma: 0.9, ..Question::default() })?;
//! assert_eq!(log.state_label(0), "high");
//! assert_eq!(log.action_label(&advice, 0), "A"); // it led to `low`, B did not
//! assert_eq!(advice.value, [0.9, 1.0]);
//! # Ok(())
//! # }
//! ```

mod advice;
mod bootstrap;
mod labels;
mod order;
mod output;

#[cfg(test)]
mod tests;

pub use advice::{Advice, Question};
pub use bootstrap::{Interval, Intervals};

use album_data::table::{ColumnData, ColumnType, Table};
use album_data::{DataError, Place};

use std::cell::RefCell;

use crate::{TabularDataset, TabularError};
use labels::{Labels, States};
use order::Order;

/// The role of each column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogColumns {
    /// The columns that together form the state.
    pub state: Vec<String>,
    /// The action.
    pub action: String,
    /// The reward.
    pub reward: String,
    /// The column that identifies the episode.
    pub episode: String,
    /// The order of an episode's rows; by default that of the file.
    pub step: Option<String>,
    /// The columns of the successor, in the order of `state`; by default the state of the episode's next row.
    pub next_state: Vec<String>,
    /// Flags that mark where an episode terminates; by default every episode terminates at its last row.
    pub terminal: Option<String>,
    /// Numeric state columns to be discretised into this many quantile bins.
    pub bins: Vec<(String, usize)>,
}

/// A log, ready to be solved.
#[derive(Debug)]
pub struct Log {
    /// The transitions, episode by episode, with numbered states and actions.
    pub data: TabularDataset,
    /// The start of each episode in `data`, and the end of the last.
    pub starts: Vec<usize>,
    /// Warnings about the log.
    pub warnings: Vec<String>,
    pub(crate) states: States,
    pub(crate) actions: Labels,
}

impl Log {
    /// Reads the columns, orders the rows and numbers the labels.
    pub fn read(table: &Table, columns: &LogColumns) -> Result<Self, TabularError> {
        if columns.state.is_empty() {
            return Err(TabularError::Log("no state column is given; name at least one".into()));
        }
        if !columns.next_state.is_empty() && columns.next_state.len() != columns.state.len() {
            let (state, next) = (columns.state.len(), columns.next_state.len());
            let problem =
                format!("{next} columns of the next state are given for {state} columns of the state");
            return Err(TabularError::Log(problem));
        }
        if let Some((name, _)) = columns.bins.iter().find(|(name, _)| !columns.state.contains(name)) {
            return Err(TabularError::Log(format!("column `{name}` has bins, but is not a state column")));
        }
        if let Some((name, bins)) = columns.bins.iter().find(|(_, bins)| !(2..=1_000_000).contains(bins)) {
            return Err(TabularError::Log(format!(
                "column `{name}` has {bins} bins; expected 2 to 1,000,000"
            )));
        }
        let table = Source::new(table, columns)?;
        let rewards = table.rewards(&columns.reward)?;
        if rewards.is_empty() {
            return Err(TabularError::Empty { file: table.table.place(0).file.display().to_string() });
        }
        let terminal = columns.terminal.as_deref().map(|name| table.flags(name)).transpose()?;
        let order = Order::of(&table, &columns.episode, columns.step.as_deref())?;
        let (actions, action_codes) = Labels::of_column(&table, &columns.action, None)?;
        let mut warnings = order.warnings.clone();

        let mut states = States::default();
        for (i, name) in columns.state.iter().enumerate() {
            let bins = columns.bins.iter().find(|(binned, _)| binned == name).map(|(_, bins)| *bins);
            states.add(&table, name, columns.next_state.get(i).map(String::as_str), bins)?;
        }
        let end = states.count() as i64;
        let has_next = !columns.next_state.is_empty();
        let (current, next) = (&states.current, &states.next);

        let rows = rewards.len();
        let mut data = TabularDataset {
            states: Vec::with_capacity(rows),
            actions: Vec::with_capacity(rows),
            rewards: Vec::with_capacity(rows),
            next_states: Vec::with_capacity(rows),
            terminals: Vec::with_capacity(rows),
        };
        let mut starts = Vec::new();
        let mut unknown = 0usize;
        for episode in order.starts.windows(2) {
            let first = data.len();
            for i in episode[0]..episode[1] {
                let (row, last) = (order.row(i), i + 1 == episode[1]);
                let ends = match &terminal {
                    Some(flags) => flags[row],
                    None => last && !has_next,
                };
                if ends && !last {
                    let name = columns.terminal.as_deref().unwrap_or_default();
                    let expected = "false, since the episode continues";
                    return Err(table.table.bad_value(name, row, true, expected).into());
                }
                let following = match has_next {
                    true => next[row],
                    false if last => MISSING_STATE,
                    false => current[order.row(i + 1)],
                };
                let successor = match following {
                    _ if ends => end,
                    MISSING_STATE if !last => {
                        let (name, expected) =
                            (&columns.next_state[0], "a state, since the episode continues");
                        return Err(table.table.bad_value(name, row, "", expected).into());
                    }
                    // The last row of a truncated episode: its successor is unknown.
                    MISSING_STATE => {
                        unknown += 1;
                        continue;
                    }
                    state => i64::from(state),
                };
                data.push(
                    i64::from(current[row]),
                    i64::from(action_codes[row]),
                    rewards[row],
                    successor,
                    last,
                );
            }
            if data.len() > first {
                let at = data.len() - 1;
                data.terminals[at] = true;
                starts.push(first);
            }
        }
        starts.push(data.len());
        if unknown > 0 {
            warnings.push(format!(
                "{unknown} episodes were cut: what followed their last row is not known, so that row is left out"
            ));
        }
        data.check("the log")?;
        Ok(Self { data, starts, warnings, states, actions })
    }

    /// Names of the state columns.
    pub fn state_columns(&self) -> impl Iterator<Item = &str> {
        self.states.columns.iter().map(|column| column.name.as_str())
    }

    /// Number of episodes with at least one transition.
    pub fn episodes(&self) -> usize {
        self.starts.len() - 1
    }
}

/// A successor that is empty in the log.
pub(crate) const MISSING_STATE: u32 = u32::MAX;

/// A table whose columns are converted to what the analysis needs.
pub(crate) struct Source<'a> {
    pub table: &'a Table,
    /// Columns read and not yet used.
    columns: RefCell<Vec<(String, ColumnData)>>,
}

impl<'a> Source<'a> {
    /// Reads all columns at once, because reading any of them from a CSV file means reading the whole file.
    fn new(table: &'a Table, columns: &LogColumns) -> Result<Self, TabularError> {
        let mut names: Vec<&str> =
            columns.state.iter().chain(&columns.next_state).map(String::as_str).collect();
        names.extend([columns.action.as_str(), &columns.reward, &columns.episode]);
        names.extend(columns.step.as_deref().into_iter().chain(columns.terminal.as_deref()));
        let data = table.read(&names)?;
        let columns = names.into_iter().map(str::to_owned).zip(data).collect();
        Ok(Self { table, columns: RefCell::new(columns) })
    }

    /// Takes one column out, so that its memory is freed after use.
    pub fn column(&self, name: &str) -> Result<ColumnData, TabularError> {
        let mut columns = self.columns.borrow_mut();
        match columns.iter().position(|(known, _)| known == name) {
            Some(place) => Ok(columns.swap_remove(place).1),
            None => Ok(self.table.read(&[name])?.remove(0)),
        }
    }

    /// A column of finite numbers.
    pub fn rewards(&self, name: &str) -> Result<Vec<f64>, TabularError> {
        let numbers = self.numbers(name)?;
        match numbers.iter().position(|x| !x.is_finite()) {
            Some(row) => Err(self.table.bad_value(name, row, numbers[row], "a finite number").into()),
            None => Ok(numbers),
        }
    }

    /// A column of numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, TabularError> {
        let column = self.column(name)?;
        self.refuse_lists(name, &column)?;
        match column {
            ColumnData::Float(numbers) => Ok(numbers),
            column => column.numbers().map_err(|row| self.bad(name, row, &column, "a number")),
        }
    }

    fn flags(&self, name: &str) -> Result<Vec<bool>, TabularError> {
        let column = self.column(name)?;
        self.refuse_lists(name, &column)?;
        column.flags().map_err(|row| self.bad(name, row, &column, "true or false, or 1 or 0"))
    }

    pub fn refuse_lists(&self, name: &str, column: &ColumnData) -> Result<(), TabularError> {
        if column.kind() != ColumnType::List {
            return Ok(());
        }
        let problem = "holds lists; expected one label or number in each row".to_owned();
        Err(DataError::Column { place: self.place(), column: name.to_owned(), problem }.into())
    }

    pub fn bad(&self, name: &str, row: usize, column: &ColumnData, expected: &'static str) -> TabularError {
        self.table.bad_value(name, row, column.label(row), expected).into()
    }

    pub fn place(&self) -> Place {
        self.table.place(0)
    }
}

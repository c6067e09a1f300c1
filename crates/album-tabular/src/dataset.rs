//! A tabular dataset: transitions with integer states and actions, in the order they were recorded.

use crate::TabularError;
use album_data::Npz;
use std::path::Path;

/// Recorded transitions `(s, a, r, s')` that keep their trajectories.
///
/// `terminals[i]` marks the end of a recorded trajectory at row `i`; it says nothing about the state. A state
/// is absorbing exactly if it occurs as a successor and no row starts there.
#[derive(Clone, Debug, Default)]
pub struct TabularDataset {
    /// State of each row.
    pub states: Vec<i64>,
    /// Action of each row.
    pub actions: Vec<i64>,
    /// Reward of each row.
    pub rewards: Vec<f64>,
    /// Successor of each row.
    pub next_states: Vec<i64>,
    /// Whether a recorded trajectory ends with the row.
    pub terminals: Vec<bool>,
}

/// The arrays of a tabular npz file.
pub const KEYS: [&str; 5] = ["states", "actions", "next_states", "rewards", "terminals"];

impl TabularDataset {
    /// Number of transitions.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there are no transitions.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Appends one transition.
    pub fn push(&mut self, state: i64, action: i64, reward: f64, next_state: i64, terminal: bool) {
        self.states.push(state);
        self.actions.push(action);
        self.rewards.push(reward);
        self.next_states.push(next_state);
        self.terminals.push(terminal);
    }

    /// Reads the arrays [`KEYS`] from an npz file and checks them.
    pub fn read_npz(path: &Path) -> Result<Self, TabularError> {
        let file = path.display().to_string();
        let mut npz = Npz::open(path)?;
        if let Some(key) = npz.names().iter().find(|name| !KEYS.contains(&name.as_str())) {
            return Err(TabularError::UnknownKey { file, key: key.clone() });
        }
        if let Some(key) = KEYS.into_iter().find(|key| !npz.contains(key)) {
            return Err(TabularError::MissingKey { file, key });
        }
        let mut column = |key: &'static str| {
            let array = npz.read(key)?;
            if array.shape.len() != 1 {
                return Err(TabularError::Shape { file: file.clone(), key, shape: array.shape });
            }
            Ok(array)
        };
        let states = column("states")?.into_integers()?;
        let actions = column("actions")?.into_integers()?;
        let next_states = column("next_states")?.into_integers()?;
        let rewards = column("rewards")?.into_floats()?;
        let terminals = column("terminals")?.into_bools()?;
        let data = TabularDataset { states, actions, rewards, next_states, terminals };
        data.check(&file)?;
        Ok(data)
    }

    /// Checks for equal lengths, at least one row, and finite rewards.
    pub fn check(&self, file: &str) -> Result<(), TabularError> {
        let file = file.to_owned();
        let rows = self.states.len();
        let lengths = [
            ("actions", self.actions.len()),
            ("next_states", self.next_states.len()),
            ("rewards", self.rewards.len()),
            ("terminals", self.terminals.len()),
        ];
        if let Some(&(key, found)) = lengths.iter().find(|(_, length)| *length != rows) {
            return Err(TabularError::Length { file, key, found, rows });
        }
        if rows == 0 {
            return Err(TabularError::Empty { file });
        }
        match self.rewards.iter().position(|r| !r.is_finite()) {
            Some(row) => Err(TabularError::Reward { file, row, found: self.rewards[row] }),
            None => Ok(()),
        }
    }

    /// Where trajectories end: at a terminal, at the last row, and where the next row does not start in this
    /// row's successor (an unmarked cut).
    pub fn trajectory_ends(&self) -> Vec<bool> {
        let last = self.len().saturating_sub(1);
        (0..self.len())
            .map(|i| self.terminals[i] || i == last || self.next_states[i] != self.states[i + 1])
            .collect()
    }

    /// Rows where a trajectory is cut without a terminal: the first one and the count. The last row does not
    /// count.
    pub fn unmarked_ends(&self) -> Option<(usize, usize)> {
        let mut cuts = (0..self.len().saturating_sub(1))
            .filter(|&i| !self.terminals[i] && self.next_states[i] != self.states[i + 1]);
        cuts.next().map(|first| (first, 1 + cuts.count()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trajectories_end_at_terminals_jumps_and_the_last_row() {
        let mut data = TabularDataset::default();
        data.push(0, 0, 0.0, 1, false);
        data.push(1, 0, 0.0, 2, true); // marked
        data.push(2, 0, 0.0, 3, false);
        data.push(7, 0, 0.0, 8, false); // row 2 led to 3, not to 7
        assert_eq!(data.trajectory_ends(), vec![false, true, true, true]);
        assert_eq!(data.unmarked_ends(), Some((2, 1)));
    }

    #[test]
    fn the_first_bad_row_is_named() {
        let mut data = TabularDataset::default();
        assert!(data.check("d").unwrap_err().to_string().contains("empty"));
        data.push(0, 0, 0.0, 1, false);
        data.push(0, 0, f64::NAN, 1, false);
        let message = data.check("d.npz").unwrap_err().to_string();
        assert!(
            message.contains("d.npz") && message.contains("row 1") && message.contains("NaN"),
            "{message}"
        );
        data.rewards.pop();
        assert!(data.check("d").unwrap_err().to_string().contains("`rewards` has 1 rows"));
    }
}

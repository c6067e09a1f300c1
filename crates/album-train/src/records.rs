//! Reads back the files of a run.

use std::path::Path;

use album_base::files::{self, Links};
use serde::de::DeserializeOwned;

use crate::error::TrainError;
use crate::evaluate::Evaluation;
use crate::logs::{EPISODES, EVAL, TRAIN, VALUE_MAPS};
use crate::result::RunResult;
use crate::run_dir::RunDir;
use crate::trainer::RESULT;
use crate::value_map::ValueMap;

/// Everything that a run has written so far. An incomplete last line is ignored.
#[derive(Clone, Debug)]
pub struct Records {
    /// The resolved configuration.
    pub config: String,
    /// The outcome, if the run has one yet.
    pub result: Option<RunResult>,
    /// `train.csv`.
    pub train: Columns,
    /// `eval.csv`.
    pub eval: Columns,
    /// `episodes.jsonl`.
    pub evaluations: Vec<Evaluation>,
    /// `value_maps.jsonl`.
    pub value_maps: Vec<ValueMap>,
}

impl Records {
    /// Reads a run directory that another process may be writing to.
    pub fn read(run: &Path) -> Result<Self, TrainError> {
        let config = RunDir::config_of(run)?;
        Ok(Records {
            config,
            result: Self::result_of(run)?,
            train: Columns::read(&run.join(TRAIN))?,
            eval: Columns::read(&run.join(EVAL))?,
            evaluations: lines(&run.join(EPISODES))?,
            value_maps: lines(&run.join(VALUE_MAPS))?,
        })
    }

    /// Reads `result.json`, if it exists.
    pub fn result_of(run: &Path) -> Result<Option<RunResult>, TrainError> {
        let path = run.join(RESULT);
        match text(&path)? {
            text if text.is_empty() => Ok(None),
            text => {
                serde_json::from_str(&text).map(Some).map_err(|e| TrainError::damaged(&path, e.to_string()))
            }
        }
    }
}

/// A CSV file of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    names: Vec<String>,
    /// The numbers, row by row.
    rows: Vec<Vec<f64>>,
}

impl Columns {
    fn read(path: &Path) -> Result<Self, TrainError> {
        let text = text(path)?;
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let damaged =
            |line: usize, what: &str| TrainError::damaged(path, format!("line {line}: expected {what}"));
        let header = reader.headers().map_err(|_| damaged(1, "the names of columns"))?;
        let names: Vec<String> = header.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for (number, record) in reader.records().enumerate() {
            let row = record.ok().and_then(|record| record.iter().map(|x| x.parse().ok()).collect());
            rows.push(row.ok_or_else(|| damaged(number + 2, &format!("{} numbers", names.len())))?);
        }
        Ok(Columns { names, rows })
    }

    /// The names of the columns; `step` is the last.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// A column as pairs of step and value; empty if there is no such column.
    pub fn series(&self, name: &str) -> Vec<(f64, f64)> {
        let place = |name: &str| self.names.iter().position(|found| found == name);
        let (Some(x), Some(y)) = (place("step"), place(name)) else { return Vec::new() };
        self.rows.iter().map(|row| (row[x], row[y])).collect()
    }
}

/// The complete lines of a file; empty if it does not exist.
fn text(path: &Path) -> Result<String, TrainError> {
    match files::read_text(path, Links::Refuse, files::LONGEST_TEXT) {
        Ok(mut text) => {
            text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
            Ok(text)
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(TrainError::io("read", path)(e)),
    }
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, TrainError> {
    let read = |(number, line)| {
        serde_json::from_str(line).map_err(|e| TrainError::damaged(path, format!("line {}: {e}", number + 1)))
    };
    text(path)?.lines().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn half_a_line_is_left_out_and_nonsense_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        fs::write(&path, "a,b,step\n1,2.5,10\n3,-1e-7,20\n4,").unwrap();
        let columns = Columns::read(&path).unwrap();
        assert_eq!(columns.series("b"), [(10.0, 2.5), (20.0, -1e-7)]);
        assert!(columns.series("c").is_empty());
        fs::write(&path, "a,step\n1,2\n1,2,3\n").unwrap();
        let message = Columns::read(&path).unwrap_err().to_string();
        assert!(message.ends_with("x.csv: damaged: line 3: expected 2 numbers"), "{message}");
        assert_eq!(Columns::read(&dir.path().join("none")).unwrap().series("a"), []);
    }
}

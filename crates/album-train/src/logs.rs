//! The log files of a run. A resumed run truncates them to the state of its checkpoint.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use album_agents::Metrics;
use album_base::files::{self, Links};

use crate::error::TrainError;
use crate::evaluate::Evaluation;
use crate::files::sync_directory;
use crate::run_dir::RunDir;
use crate::tensorboard;
use crate::value_map::ValueMap;

/// All logs of a run.
pub(crate) struct Logs {
    directory: PathBuf,
    train: Log,
    eval: Log,
    timing: Log,
    episodes: Log,
    value_maps: Log,
    events: Log,
}

pub(crate) const TRAIN: &str = "train.csv";
pub(crate) const EVAL: &str = "eval.csv";
const TIMING: &str = "timing.csv";
pub(crate) const EPISODES: &str = "episodes.jsonl";
pub(crate) const VALUE_MAPS: &str = "value_maps.jsonl";
const EVENTS: &str = "events.out.tfevents.album";

impl Logs {
    /// Opens the logs and truncates them to these lengths. Adds to `warnings` what is missing from them.
    pub(crate) fn open(
        run: &RunDir,
        lengths: &BTreeMap<String, u64>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, TrainError> {
        let mut open = |name: &'static str| {
            let length = lengths.get(name).copied().unwrap_or(0);
            Log::open(name, run.file(name), length, warnings)
        };
        Ok(Logs {
            directory: run.path().to_path_buf(),
            train: open(TRAIN)?,
            eval: open(EVAL)?,
            timing: open(TIMING)?,
            episodes: open(EPISODES)?,
            value_maps: open(VALUE_MAPS)?,
            events: open(EVENTS)?,
        })
    }

    /// Writes one row of metrics, on the last batch and on held-out data; returns it with timings.
    pub(crate) fn training(
        &mut self,
        step: u64,
        metrics: &Metrics,
        held_out: &Metrics,
        ms_per_step: f64,
        total_seconds: f64,
    ) -> Result<Vec<(String, f64)>, TrainError> {
        let prefixed = |prefix, metrics: &Metrics| -> Vec<(String, f64)> {
            metrics.iter().map(|(name, value)| (format!("{prefix}/{name}"), *value)).collect()
        };
        let mut named = prefixed("training", metrics);
        named.extend(prefixed("validation", held_out));
        self.train.row(step, &named)?;
        let times = vec![
            ("time/ms_per_step".to_owned(), ms_per_step),
            ("time/total_seconds".to_owned(), total_seconds),
        ];
        self.timing.row(step, &times)?;
        named.extend(times);
        self.scalars(step, &named)?;
        Ok(named)
    }

    /// Writes one row of evaluation results, and the episodes.
    pub(crate) fn evaluation(&mut self, evaluation: &Evaluation) -> Result<(), TrainError> {
        let row = evaluation.summary().row();
        self.eval.row(evaluation.step, &row)?;
        self.episodes.json(evaluation)?;
        self.scalars(evaluation.step, &row)
    }

    /// Writes one value map.
    pub(crate) fn value_map(&mut self, map: &ValueMap) -> Result<(), TrainError> {
        self.value_maps.json(map)
    }

    fn scalars<'a>(
        &mut self,
        step: u64,
        values: impl IntoIterator<Item = &'a (String, f64)>,
    ) -> Result<(), TrainError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        if self.events.length == 0 {
            self.events.append(&tensorboard::first_record(now))?;
        }
        let values = values.into_iter().map(|(name, value)| (name.as_str(), *value));
        self.events.append(&tensorboard::scalars(now, step, values))
    }

    /// Syncs all files to disk, and returns their lengths.
    pub(crate) fn sync(&mut self) -> Result<BTreeMap<String, u64>, TrainError> {
        let logs = [
            &mut self.train,
            &mut self.eval,
            &mut self.timing,
            &mut self.episodes,
            &mut self.value_maps,
            &mut self.events,
        ];
        let mut lengths = BTreeMap::new();
        for log in logs {
            if let Some(file) = &log.file {
                file.sync_data().map_err(TrainError::io("write", &log.path))?;
                lengths.insert(log.name.to_owned(), log.length);
            }
        }
        sync_directory(&self.directory)?;
        Ok(lengths)
    }
}

/// An append-only file, created with its first write.
struct Log {
    name: &'static str,
    path: PathBuf,
    file: Option<File>,
    length: u64,
    /// The first line of a CSV file.
    header: Option<String>,
}

impl Log {
    /// Opens a file and truncates it to `length` bytes.
    fn open(
        name: &'static str,
        path: PathBuf,
        length: u64,
        warnings: &mut Vec<String>,
    ) -> Result<Self, TrainError> {
        let mut log = Log { name, path, file: None, length: 0, header: None };
        let exists = log.path.exists();
        if length == 0 || !exists {
            if exists {
                fs::remove_file(&log.path).map_err(TrainError::io("remove", &log.path))?;
            }
            if length > 0 {
                warnings.push(format!(
                    "{}: found no file, expected {length} bytes of log; starting a new one",
                    log.path.display()
                ));
            }
            return Ok(log);
        }
        log.cut(length, warnings).map_err(TrainError::io("open", &log.path.clone()))?;
        Ok(log)
    }

    fn cut(&mut self, length: u64, warnings: &mut Vec<String>) -> std::io::Result<()> {
        let options = OpenOptions::new().read(true).write(true).clone();
        let mut file = files::open_with(&options, &self.path, Links::Refuse)?;
        let found = file.metadata()?.len();
        self.length = length;
        let mut text = Vec::new();
        let wanted = if self.name == EVENTS { 8 } else { length };
        Read::by_ref(&mut file).take(wanted).read_to_end(&mut text)?;
        if !text.is_empty() && !self.is_ours(&text) {
            let message = "it does not start like the log, so it is not truncated; move it away";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
        }
        if found < length {
            // Complete lines of text can be kept; in a binary file, a truncated record would hide all later
            // ones.
            self.length = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last as u64 + 1);
            warnings.push(format!(
                "{}: found {found} bytes, expected at least {length}; the missing rows cannot be recovered",
                self.path.display()
            ));
        }
        text.truncate(self.length as usize);
        if self.name.ends_with(".csv") {
            self.header = String::from_utf8_lossy(&text).lines().next().map(str::to_owned);
        }
        file.set_len(self.length)?;
        file.seek(SeekFrom::End(0))?;
        self.file = Some(file);
        Ok(())
    }

    /// Whether a file starts like this log, however short it was cut.
    fn is_ours(&self, start: &[u8]) -> bool {
        let begins = |beginning: &[u8]| {
            let common = start.len().min(beginning.len());
            start[..common] == beginning[..common]
        };
        match self.path.extension().and_then(|end| end.to_str()) {
            Some("csv") => ["training/", "validation/", "evaluation/", "time/", "step"]
                .iter()
                .any(|beginning| begins(beginning.as_bytes())),
            Some("jsonl") => begins(b"{"),
            _ => begins(&tensorboard::FIRST_LENGTH),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), TrainError> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = File::create_new(&self.path).map_err(TrainError::io("create", &self.path))?;
                self.file.insert(file)
            }
        };
        file.write_all(bytes).map_err(TrainError::io("write", &self.path))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Writes a CSV row; the first row fixes the columns. `step` is the last column.
    fn row(&mut self, step: u64, values: &[(String, f64)]) -> Result<(), TrainError> {
        let line = |fields: &mut dyn Iterator<Item = String>| -> String {
            let mut writer = csv::Writer::from_writer(Vec::new());
            // Writing to memory cannot fail.
            let _ = writer.write_record(fields);
            writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
        };
        let header = line(&mut values.iter().map(|(name, _)| name.clone()).chain(["step".to_owned()]));
        let header = header.trim_end().to_owned();
        let mut row = line(&mut values.iter().map(|(_, x)| x.to_string()).chain([step.to_string()]));
        match &self.header {
            Some(expected) if *expected != header => {
                return Err(TrainError::Columns {
                    path: self.path.clone(),
                    found: header,
                    expected: expected.clone(),
                });
            }
            Some(_) => {}
            None => {
                row = format!("{header}\n{row}");
                self.header = Some(header);
            }
        }
        self.append(row.as_bytes())
    }

    /// Writes a line of JSON.
    fn json(&mut self, value: &impl serde::Serialize) -> Result<(), TrainError> {
        let mut line =
            serde_json::to_vec(value).map_err(|e| TrainError::damaged(&self.path, e.to_string()))?;
        line.push(b'\n');
        self.append(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(run: &RunDir, lengths: &BTreeMap<String, u64>) -> (Logs, Vec<String>) {
        let mut warnings = Vec::new();
        let logs = Logs::open(run, lengths, &mut warnings).unwrap();
        (logs, warnings)
    }

    fn train(run: &RunDir) -> String {
        fs::read_to_string(run.file(TRAIN)).unwrap_or_default()
    }

    #[test]
    fn logs_are_cut_back() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path().join("run"), "").unwrap();
        let (mut logs, _) = open(&run, &BTreeMap::new());
        assert!(logs.sync().unwrap().is_empty());
        logs.training(10, &vec![("a/loss".into(), 0.1), ("b".into(), -2.0)], &vec![], 1.0, 2.0).unwrap();
        let lengths = logs.sync().unwrap();
        assert_eq!(train(&run), "training/a/loss,training/b,step\n0.1,-2,10\n");
        logs.training(20, &vec![("a/loss".into(), 0.2), ("b".into(), -2.0)], &vec![], 1.0, 2.0).unwrap();
        drop(logs);
        OpenOptions::new().append(true).open(run.file(TRAIN)).unwrap().write_all(b"0.3,").unwrap();

        let (mut logs, warnings) = open(&run, &lengths);
        assert!(warnings.is_empty());
        logs.training(20, &vec![("a/loss".into(), 0.25), ("b".into(), -2.0)], &vec![], 1.0, 2.0).unwrap();
        assert_eq!(train(&run), "training/a/loss,training/b,step\n0.1,-2,10\n0.25,-2,20\n");
        let error = logs.training(30, &vec![("a/loss".into(), 0.2)], &vec![], 1.0, 2.0).unwrap_err();
        assert!(matches!(error, TrainError::Columns { .. }), "{error}");
        drop(logs);

        open(&run, &BTreeMap::new());
        assert!(!run.file(TRAIN).exists() && !run.file(EVENTS).exists());
    }

    #[test]
    fn lost_logs_do_not_stop_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path().join("run"), "").unwrap();
        let (mut logs, _) = open(&run, &BTreeMap::new());
        logs.training(10, &vec![("a".into(), 0.5)], &vec![], 1.0, 2.0).unwrap();
        logs.training(20, &vec![("a".into(), 0.5)], &vec![], 1.0, 2.0).unwrap();
        let lengths = logs.sync().unwrap();
        drop(logs);
        fs::write(run.file(TRAIN), "training/a,step\n0.5,10\n0.5").unwrap();
        fs::write(run.file(EVENTS), [24, 0]).unwrap();
        fs::remove_file(run.file(TIMING)).unwrap();
        let (mut logs, warnings) = open(&run, &lengths);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        logs.training(30, &vec![("a".into(), 0.5)], &vec![], 1.0, 2.0).unwrap();
        assert_eq!(train(&run), "training/a,step\n0.5,10\n0.5,30\n");
        assert_eq!(fs::read_to_string(run.file(TIMING)).unwrap().lines().count(), 2);
        assert!(fs::read(run.file(EVENTS)).unwrap().starts_with(&24u64.to_le_bytes()));
    }
}

//! Converts npz files to a folder of columns, part by part.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::dataset::{Role, UNFINISHED};
use crate::error::{DataError, Place};
use crate::formats::columns::manifest::{COLUMNS, EPISODES, FILE, Manifest, dtype, file_name};
use crate::formats::columns::writer::{ColumnWriter, write_new};
use crate::formats::npz::array::DType;
use crate::formats::npz::row_reader::RowReader;
use crate::limits::Limits;
use crate::load::arrays::{Arrays, RowKind};
use crate::load::checks::{OnBad, check, clip, read};
use crate::load::transitions::{Transitions, read_transitions};
use crate::load::{Labels, dropped_transitions, ignored};
use crate::ogbench::{Environment, fit};
use album_base::atomic::AtomicFolder;
use album_base::disk;

/// What to import, and where to.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    /// Npz files that [`load`](crate::load()) understands, concatenated in this order.
    pub sources: &'a [PathBuf],
    /// The folder to create.
    pub target: &'a Path,
    /// Whether to replace an existing imported folder. Anything else is never replaced.
    pub replace: bool,
    /// If given, the data must have this environment's dimensions and the columns that its tasks need.
    pub environment: Option<&'static Environment>,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Number of transitions.
    pub transitions: usize,
    /// Number of episodes.
    pub episodes: usize,
    /// The width of each column.
    pub columns: BTreeMap<String, usize>,
    /// Total size of the columns in bytes.
    pub bytes: u64,
    /// One sentence for every array and all rows that were left out, with the reason.
    pub warnings: Vec<String>,
}

/// Imports npz files into a folder of columns.
///
/// Files with one row per state are streamed; files with one row per transition are loaded as a whole. All
/// numbers are checked as by [`load`](crate::load()). The files' own `rewards` and `masks` are kept, along
/// with the columns from which tasks compute theirs. A failed import leaves nothing behind. `go_on` receives
/// the bytes done and the total; if it returns false, the import is cancelled and the result is `None`.
///
/// ```
/// use album_data::columns::{Import, import};
/// use album_data::{Labels, load};
/// # use album_data::NpzWriter;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let (file, folder) = (dir.path().join("walk.npz"), dir.path().join("walk.columns"));
/// # let mut writer = NpzWriter::create(&file)?;
/// # writer.array_f32("observations", &[3, 1], &[0.0, 1.0, 2.0])?;
/// # writer.array_f32("actions", &[3, 1], &[1.0, 1.0, 0.0])?;
/// # writer.array_f32("rewards", &[3], &[1.0, 2.0, 0.0])?;
/// # writer.array_bool("terminals", &[3], &[false, false, true])?;
/// # writer.finish()?;
/// let what = Import { sources: &[file.clone()], target: &folder, replace: false, environment: None };
/// import(&what, &mut |_done, _all| true)?;
///
/// let (mapped, in_memory) = (load(&folder, Labels::Own)?, load(&file, Labels::Own)?);
/// assert_eq!(mapped, in_memory);
/// assert_eq!(mapped.dataset.content_hash(), in_memory.dataset.content_hash());
/// # Ok(())
/// # }
/// ```
pub fn import(
    what: &Import<'_>,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Imported>, DataError> {
    let target = Place::file(what.target);
    check_target(what.target, what.replace, &target)?;
    let plan = ImportPlan::new(what)?;
    let io_error = |source| DataError::Io { place: target.clone(), source };
    let folder = AtomicFolder::create(what.target).map_err(io_error)?;
    check_space(plan.bytes(), disk::free(folder.path())).map_err(io_error)?;

    let mut writer = Writer::new(&plan, folder.path(), go_on)?;
    for path in what.sources {
        writer.source(path)?;
        if writer.stopped {
            return Ok(None);
        }
    }
    let warnings = std::mem::take(&mut writer.warnings);
    let manifest = writer.finish(what.sources)?;
    let text = serde_json::to_vec_pretty(&manifest).map_err(|e| io_error(e.into()))?;
    write_new(&folder.path().join(FILE), &text)?;
    folder.commit().map_err(io_error)?;
    Ok(Some(Imported {
        transitions: manifest.rows - manifest.episodes,
        episodes: manifest.episodes,
        bytes: manifest.columns.values().map(|column| column.bytes).sum(),
        columns: manifest.columns.into_iter().map(|(name, column)| (name, column.width)).collect(),
        warnings,
    }))
}

/// Refuses to replace anything but an imported folder, and that too unless `replace` is set.
pub(super) fn check_target(target: &Path, replace: bool, place: &Place) -> Result<(), DataError> {
    let problem = match fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) => "exists and is not a readable folder; choose another name",
        Ok(true) => return Ok(()), // an empty folder
        Ok(false) if !Manifest::is_in(target) => {
            "exists and is not an imported folder, so it is not replaced; choose another name"
        }
        Ok(false) if !replace => "already exists; choose another name or pass --force",
        Ok(false) => match foreign(target) {
            None => return Ok(()),
            Some(found) => {
                let found = found.display().to_string();
                return Err(DataError::Foreign { place: place.clone(), found });
            }
        },
    };
    Err(DataError::Exists { place: place.clone(), problem })
}

/// Finds something in an imported folder that no import wrote.
fn foreign(folder: &Path) -> Option<PathBuf> {
    let ours =
        |name: &str| name == FILE || COLUMNS.iter().any(|(column, dtype)| name == file_name(column, *dtype));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut foreign = entries.filter(|entry| {
        let plain = entry.file_type().is_ok_and(|kind| kind.is_file());
        !plain || !entry.file_name().to_str().is_some_and(ours)
    });
    foreign.next().map(|entry| entry.path())
}

/// Sizes are unlimited, since archives are streamed and the output is bounded by free disk space.
fn limits() -> Limits {
    Limits { max_array_bytes: u64::MAX, max_total_bytes: u64::MAX, ..Limits::default() }
}

/// The columns to write, from the headers of the sources alone.
struct ImportPlan {
    /// The width of each column except `episodes`.
    widths: BTreeMap<&'static str, usize>,
    rows: usize,
}

impl ImportPlan {
    fn new(what: &Import<'_>) -> Result<Self, DataError> {
        let mut plan: Option<Self> = None;
        for path in what.sources {
            let found = Self::of_source(path, what.environment)?;
            match &mut plan {
                None => plan = Some(found),
                Some(plan) if plan.widths == found.widths => plan.rows += found.rows,
                Some(plan) => {
                    let first = what.sources[0].display();
                    return Err(DataError::WrongShape {
                        place: Place::file(path),
                        found: found.widths.values().copied().collect(),
                        expected: format!("the columns of {first}, {:?}", plan.widths),
                    });
                }
            }
        }
        plan.ok_or_else(|| DataError::NoTransitions { place: Place::file(what.target) })
    }

    fn of_source(path: &Path, environment: Option<&'static Environment>) -> Result<Self, DataError> {
        let source = Arrays::open_with(path, &limits())?;
        let Arrays::Npz(_) = source else {
            let (found, expected) = ("an imported folder".to_owned(), "an npz file");
            return Err(DataError::WrongFileKind { place: Place::file(path), found, expected });
        };
        let rows = source.rows()?;
        if rows == 0 {
            return Err(DataError::NoTransitions { place: Place::file(path) });
        }
        if let Some(environment) = environment {
            fit::check(&source, environment)?;
        }
        let mut widths = BTreeMap::new();
        for name in ["observations", "actions", "qpos", "button_states"] {
            if ["observations", "actions"].contains(&name) || source.contains(name) {
                widths.insert(name, source.matrix(name, rows, 1)?.width());
            }
        }
        let labelled = source.contains("rewards");
        for name in ["rewards", "masks"] {
            if source.contains(name) {
                source.numbers(name, rows)?;
            }
            // If rows are transitions, masks follow from `terminals` and `timeouts`.
            if source.contains(name) || (labelled && source.row_kind() == RowKind::Transition) {
                widths.insert(name, 1);
            }
        }
        Ok(Self { widths, rows })
    }

    /// Total size of the columns except `episodes`.
    fn bytes(&self) -> u64 {
        let size = |name: &str| dtype(name).map_or(0, DType::size) as u64;
        let row: u64 = self.widths.iter().map(|(name, &width)| size(name).saturating_mul(width as u64)).sum();
        row.saturating_mul(self.rows as u64)
    }
}

/// Writes the columns.
struct Writer<'a> {
    columns: BTreeMap<&'static str, ColumnWriter>,
    episodes: ColumnWriter,
    rows: usize,
    done: u64,
    total: u64,
    go_on: &'a mut dyn FnMut(u64, u64) -> bool,
    stopped: bool,
    warnings: Vec<String>,
}

impl<'a> Writer<'a> {
    fn new(
        plan: &ImportPlan,
        folder: &Path,
        go_on: &'a mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Self, DataError> {
        let mut columns = BTreeMap::new();
        for (&name, &width) in &plan.widths {
            columns.insert(name, ColumnWriter::create(folder, name, width)?);
        }
        let episodes = ColumnWriter::create(folder, EPISODES, 1)?;
        Ok(Self {
            columns,
            episodes,
            rows: 0,
            done: 0,
            total: plan.bytes(),
            go_on,
            stopped: false,
            warnings: Vec::new(),
        })
    }

    /// Appends all rows of a file.
    fn source(&mut self, path: &Path) -> Result<(), DataError> {
        let source = Arrays::open_with(path, &limits())?;
        for warning in ignored(&source, None) {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        match source.row_kind() {
            RowKind::State => self.states(&source),
            RowKind::Transition => self.transitions(&source),
        }
    }

    /// Appends a file with one row per state, part by part.
    fn states(&mut self, source: &Arrays) -> Result<(), DataError> {
        let mut flags = source.flags("terminals")?;
        let (rows, step) = (flags.shape()[0], flags.chunk_rows());
        // The number of states in the current episode, and of transitions in each completed one.
        let (mut states, mut lengths) = (0, Vec::new());
        for first in (0..rows).step_by(step) {
            for last in flags.bools(step.min(rows - first))? {
                if last {
                    lengths.push(states);
                }
                states = if last { 0 } else { states + 1 };
            }
        }
        if states > 0 {
            return Err(flags.value_error(1, 0, false, UNFINISHED));
        }
        flags.finish()?;
        self.episodes(&lengths, rows)?;
        for name in ["observations", "actions", "qpos"] {
            if self.columns.contains_key(name) {
                let role = if name == "actions" { Role::Action } else { Role::State };
                self.floats(name, source.matrix(name, rows, 1)?, role, source.flags("terminals")?)?;
            }
        }
        for (name, role) in [("rewards", Role::Reward), ("masks", Role::Mask)] {
            if self.columns.contains_key(name) {
                self.floats(name, source.numbers(name, rows)?, role, source.flags("terminals")?)?;
            }
        }
        if self.columns.contains_key("button_states") && !self.stopped {
            self.buttons(source.matrix("button_states", rows, 1)?)?;
        }
        Ok(())
    }

    /// Appends a file with one row per transition.
    fn transitions(&mut self, source: &Arrays) -> Result<(), DataError> {
        let labels = if source.contains("rewards") { Labels::Own } else { Labels::None };
        let Transitions { dataset, sources, dropped, .. } = read_transitions(source, labels, OnBad::Refuse)?;
        if dropped > 0 {
            self.warnings.push(dropped_transitions(dropped));
        }
        let episodes = dataset.episodes();
        let lengths: Vec<u64> = (0..episodes.len()).map(|episode| episodes.length(episode) as u64).collect();
        self.episodes(&lengths, episodes.rows())?;
        let names = ["observations", "actions", "rewards", "masks"];
        for (name, (column, _)) in names.into_iter().zip(dataset.columns()) {
            self.numbers(name, column)?;
        }
        let rows = source.rows()?;
        if self.columns.contains_key("qpos") {
            let qpos = read(source.matrix("qpos", rows, 1)?, Role::State, &vec![false; rows], OnBad::Refuse)?;
            let row = |&row: &usize| &qpos.data[row * qpos.width..(row + 1) * qpos.width];
            self.numbers("qpos", &sources.iter().flat_map(row).copied().collect::<Vec<f32>>())?;
        }
        if self.columns.contains_key("button_states") && !self.stopped {
            let mut reader = source.matrix("button_states", rows, 1)?;
            let (states, width) = (button_bytes(&mut reader, rows)?, reader.width());
            reader.finish()?;
            let row = |&row: &usize| &states[row * width..(row + 1) * width];
            self.append("button_states", &sources.iter().flat_map(row).copied().collect::<Vec<u8>>())?;
        }
        Ok(())
    }

    fn episodes(&mut self, lengths: &[u64], rows: usize) -> Result<(), DataError> {
        self.rows += rows;
        self.episodes.write(&lengths.iter().flat_map(|length| length.to_le_bytes()).collect::<Vec<u8>>())
    }

    /// Appends numbers to a column, if it exists.
    fn numbers(&mut self, name: &str, numbers: &[f32]) -> Result<(), DataError> {
        if self.stopped || !self.columns.contains_key(name) {
            return Ok(());
        }
        for part in numbers.chunks(1 << 16) {
            let bytes: Vec<u8> = part.iter().flat_map(|x| x.to_le_bytes()).collect();
            if !self.append(name, &bytes)? {
                break;
            }
        }
        Ok(())
    }

    /// Appends an array part by part; `flags` mark the last row of each episode.
    fn floats(
        &mut self,
        name: &str,
        mut reader: RowReader<'_>,
        role: Role,
        mut flags: RowReader<'_>,
    ) -> Result<(), DataError> {
        if self.stopped {
            return Ok(());
        }
        let (count, width, step) = (reader.shape()[0], reader.width(), reader.chunk_rows());
        let mut chunk = Vec::new();
        for first in (0..count).step_by(step) {
            let rows = step.min(count - first);
            chunk.clear();
            reader.append_f32(rows, &mut chunk)?;
            role.clear(&mut chunk, width, &flags.bools(rows)?);
            check(&reader, role, rows, &chunk, OnBad::Refuse, &mut Vec::new())?;
            if role == Role::Action {
                clip(&mut chunk);
            }
            self.numbers(name, &chunk)?;
            if self.stopped {
                return Ok(());
            }
        }
        reader.finish()
    }

    fn buttons(&mut self, mut reader: RowReader<'_>) -> Result<(), DataError> {
        let (count, step) = (reader.shape()[0], reader.chunk_rows());
        for first in (0..count).step_by(step) {
            let rows = step.min(count - first);
            let bytes = button_bytes(&mut reader, rows)?;
            if !self.append("button_states", &bytes)? {
                return Ok(());
            }
        }
        reader.finish()
    }

    /// Appends bytes to a column; returns whether to continue.
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<bool, DataError> {
        if let Some(column) = self.columns.get_mut(name) {
            column.write(bytes)?;
        }
        self.done += bytes.len() as u64;
        self.stopped |= !(self.go_on)(self.done, self.total);
        Ok(!self.stopped)
    }

    /// Flushes everything to disk; returns the manifest.
    fn finish(mut self, sources: &[PathBuf]) -> Result<Manifest, DataError> {
        let episodes = self.episodes.bytes() as usize / 8;
        if self.rows == episodes {
            return Err(DataError::NoTransitions { place: Place::file(&sources[0]) });
        }
        let mut columns = BTreeMap::new();
        for column in self.columns.values_mut().chain([&mut self.episodes]) {
            column.end()?;
        }
        for (name, column) in self.columns.into_iter().chain([(EPISODES, self.episodes)]) {
            columns.insert(name.to_owned(), column.finish()?);
        }
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Manifest::new(self.rows, episodes, sources.iter().map(name).collect(), columns))
    }
}

/// The next rows of button states, one byte each.
fn button_bytes(reader: &mut RowReader<'_>, rows: usize) -> Result<Vec<u8>, DataError> {
    let states = reader.integers(rows)?;
    let byte = |(i, &state): (usize, &i64)| match i8::try_from(state) {
        Ok(state) => Ok(state.to_le_bytes()[0]),
        Err(_) => Err(reader.value_error(rows, i, state, "-128 to 127")),
    };
    states.iter().enumerate().map(byte).collect()
}

fn check_space(needed: u64, free: Option<u64>) -> io::Result<()> {
    match free {
        Some(free) if free < needed => Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!("the columns take {needed} bytes, but {free} are free on this disk; nothing was written"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_too_small_is_named_before_anything_is_written() {
        assert!(check_space(10, Some(10)).is_ok() && check_space(10, None).is_ok());
        let message = check_space(11, Some(10)).unwrap_err().to_string();
        assert_eq!(message, "the columns take 11 bytes, but 10 are free on this disk; nothing was written");
    }
}

//! From npz files to a folder of columns, in parts.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::array::DType;
use crate::columns::folder::hex;
use crate::columns::manifest::{ColumnFile, EPISODES, FILE, Manifest, dtype, file_name};
use crate::dataset::{Refused, UNFINISHED, settle_recorded_actions};
use crate::error::{DataError, Place};
use crate::limits::Limits;
use crate::matrix::{matrix, only_finite, terminals};
use crate::npz::Npz;
use crate::ogbench::{Environment, fit};
use crate::row_reader::RowReader;
use album_base::atomic::AtomicFolder;
use album_base::disk;

/// What to import, and whereto.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    /// OGBench-layout npz files, whose rows follow each other in this order.
    pub sources: &'a [PathBuf],
    /// The folder to make.
    pub target: &'a Path,
    /// Whether an imported folder that is there already is replaced. Nothing else ever is.
    pub replace: bool,
    /// Where given, the data must have the dimensions of this environment, and the columns that its tasks need.
    pub environment: Option<&'static Environment>,
}

/// What was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Pairs of consecutive states.
    pub transitions: usize,
    /// Recordings.
    pub episodes: usize,
    /// Numbers in a row of each column.
    pub columns: BTreeMap<String, usize>,
    /// Size of all columns.
    pub bytes: u64,
}

/// Writes a folder of columns.
///
/// Files are read in parts and never held as a whole, with all checks of
/// [`load_labelled`](crate::ogbench::load_labelled). Nothing is left behind unless all went well.
/// `go_on` is told the bytes that are done and those there will be; the import is given up, with
/// `None` for a result, when it returns false.
///
/// ```
/// use album_data::columns::{Import, import};
/// use album_data::ogbench::{Label, Needs, RowState, load_labelled};
/// # use album_data::NpzWriter;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let (file, folder) = (dir.path().join("walk.npz"), dir.path().join("walk.columns"));
/// # let mut writer = NpzWriter::create(&file, true)?;
/// # writer.array_f32("observations", &[3, 1], &[0.0, 1.0, 2.0])?;
/// # writer.array_f32("actions", &[3, 1], &[1.0, 1.0, 0.0])?;
/// # writer.array_bool("terminals", &[3], &[false, false, true])?;
/// # writer.finish()?;
/// let what = Import { sources: &[file.clone()], target: &folder, replace: false, environment: None };
/// import(&what, &mut |_done, _all| true)?;
///
/// let label = |_: &RowState<'_>| Label { reward: -1.0, mask: 1.0 };
/// let mapped = load_labelled(&folder, Needs::default(), label)?;
/// let in_memory = load_labelled(&file, Needs::default(), label)?;
/// assert_eq!(mapped, in_memory);
/// assert_eq!(mapped.content_hash(), in_memory.content_hash());
/// # Ok(())
/// # }
/// ```
pub fn import(
    what: &Import<'_>,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Imported>, DataError> {
    let target = Place::file(what.target);
    check_target(what, &target)?;
    let plan = Plan::new(what)?;
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
    let manifest = writer.finish(what.sources)?;
    let text = serde_json::to_vec_pretty(&manifest).map_err(|e| io_error(e.into()))?;
    write_new(&folder.path().join(FILE), &text)?;
    folder.commit().map_err(io_error)?;
    Ok(Some(Imported {
        transitions: manifest.rows - manifest.episodes,
        episodes: manifest.episodes,
        bytes: manifest.columns.values().map(|column| column.bytes).sum(),
        columns: manifest.columns.into_iter().map(|(name, column)| (name, column.width)).collect(),
    }))
}

/// Refuses to replace what is not ours, or ours without leave.
fn check_target(what: &Import<'_>, place: &Place) -> Result<(), DataError> {
    let problem = match fs::read_dir(what.target).map(|mut entries| entries.next().is_none()) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) => "exists and is no folder that can be read; expected a new name",
        Ok(true) => return Ok(()), // an empty folder
        Ok(false) if !Manifest::is_in(what.target) => {
            "exists and is not a folder of imported columns; it is not replaced, expected a new name"
        }
        Ok(false) if !what.replace => {
            "exists already; expected a new name, or the wish to replace it (--force)"
        }
        Ok(false) => return Ok(()),
    };
    Err(DataError::Exists { place: place.clone(), problem })
}

/// Large archives pass by in parts, and the disk's free space bounds what is written.
fn limits() -> Limits {
    Limits { max_array_bytes: u64::MAX, max_total_bytes: u64::MAX, ..Limits::default() }
}

/// What the sources will become, from their headers alone.
struct Plan {
    /// The width of each column but the episodes.
    widths: BTreeMap<&'static str, usize>,
    rows: usize,
}

impl Plan {
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
        let npz = Npz::open_with(path, &limits())?;
        let rows = terminals(&npz)?.shape()[0];
        if rows == 0 {
            return Err(DataError::NoTransitions { place: Place::file(path) });
        }
        if let Some(environment) = environment {
            fit::check_npz(&npz, environment)?;
        }
        let mut widths = BTreeMap::new();
        for (name, must) in
            [("observations", true), ("actions", true), ("qpos", false), ("button_states", false)]
        {
            if must || npz.contains(name) {
                widths.insert(name, matrix(&npz, name, rows, 1)?.width());
            }
        }
        Ok(Self { widths, rows })
    }

    /// Size of the columns, without the episodes.
    fn bytes(&self) -> u64 {
        let size = |name: &str| dtype(name).map_or(0, DType::size) as u64;
        let row: u64 = self.widths.iter().map(|(name, &width)| size(name).saturating_mul(width as u64)).sum();
        row.saturating_mul(self.rows as u64)
    }
}

/// The columns on their way to the disk.
struct Writer<'a> {
    columns: BTreeMap<&'static str, ColumnWriter>,
    episodes: ColumnWriter,
    rows: usize,
    done: u64,
    total: u64,
    go_on: &'a mut dyn FnMut(u64, u64) -> bool,
    stopped: bool,
}

impl<'a> Writer<'a> {
    fn new(
        plan: &Plan,
        folder: &Path,
        go_on: &'a mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Self, DataError> {
        let mut columns = BTreeMap::new();
        for (&name, &width) in &plan.widths {
            columns.insert(name, ColumnWriter::create(folder, name, width)?);
        }
        let episodes = ColumnWriter::create(folder, EPISODES, 1)?;
        Ok(Self { columns, episodes, rows: 0, done: 0, total: plan.bytes(), go_on, stopped: false })
    }

    /// Appends all rows of one file.
    fn source(&mut self, path: &Path) -> Result<(), DataError> {
        let npz = Npz::open_with(path, &limits())?;
        let mut flags = terminals(&npz)?;
        let rows = flags.shape()[0];
        let actions = matrix(&npz, "actions", rows, 1)?;
        let width = actions.width();
        // States of the episode that goes on, and the transitions of those that ended.
        let (mut states, mut lengths): (u64, Vec<u8>) = (0, Vec::new());
        self.floats("actions", actions, |_, chunk, _| {
            let last = flags.bools(chunk.len() / width)?;
            for &last in &last {
                if last {
                    lengths.extend(states.to_le_bytes());
                }
                states = if last { 0 } else { states + 1 };
            }
            Ok(settle_recorded_actions(chunk, width, &last))
        })?;
        if self.stopped {
            return Ok(());
        }
        if states > 0 {
            return Err(flags.value_error(rows, rows - 1, false, UNFINISHED));
        }
        flags.finish()?;
        self.episodes.write(&lengths)?;
        self.rows += rows;
        for name in ["observations", "qpos"] {
            if self.columns.contains_key(name) {
                self.floats(name, matrix(&npz, name, rows, 1)?, |first, chunk, width| {
                    Ok(only_finite(first, chunk, width))
                })?;
            }
        }
        if self.columns.contains_key("button_states") {
            self.buttons(matrix(&npz, "button_states", rows, 1)?)?;
        }
        Ok(())
    }

    /// Appends a matrix, of which `settle` is given every part as in [`read_matrix`](crate::matrix::read_matrix).
    fn floats(
        &mut self,
        name: &str,
        mut reader: RowReader<'_>,
        mut settle: impl FnMut(usize, &mut [f32], usize) -> Result<Result<(), Refused>, DataError>,
    ) -> Result<(), DataError> {
        let (count, width, step) = (reader.shape()[0], reader.width(), reader.chunk_rows());
        let (mut chunk, mut bytes) = (Vec::new(), Vec::new());
        for first in (0..count).step_by(step) {
            let rows = step.min(count - first);
            chunk.clear();
            reader.append_f32(rows, &mut chunk)?;
            if let Err((i, expected)) = settle(first, &mut chunk, width)? {
                return Err(reader.value_error(rows, i, chunk[i], expected));
            }
            bytes.clear();
            bytes.extend(chunk.iter().flat_map(|x| x.to_le_bytes()));
            if !self.append(name, &bytes)? {
                return Ok(());
            }
        }
        reader.finish()
    }

    fn buttons(&mut self, mut reader: RowReader<'_>) -> Result<(), DataError> {
        let (count, step) = (reader.shape()[0], reader.chunk_rows());
        for first in (0..count).step_by(step) {
            let rows = step.min(count - first);
            let states = reader.integers(rows)?;
            let mut bytes = Vec::with_capacity(states.len());
            for (i, &state) in states.iter().enumerate() {
                let Ok(state) = i8::try_from(state) else {
                    return Err(reader.value_error(rows, i, state, "-128 to 127"));
                };
                bytes.extend(state.to_le_bytes());
            }
            if !self.append("button_states", &bytes)? {
                return Ok(());
            }
        }
        reader.finish()
    }

    /// Writes to a column and tells whether to go on.
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<bool, DataError> {
        if let Some(column) = self.columns.get_mut(name) {
            column.write(bytes)?;
        }
        self.done += bytes.len() as u64;
        self.stopped |= !(self.go_on)(self.done, self.total);
        Ok(!self.stopped)
    }

    /// Brings everything to the disk and tells what is there.
    fn finish(self, sources: &[PathBuf]) -> Result<Manifest, DataError> {
        let episodes = self.episodes.bytes as usize / 8;
        if self.rows == episodes {
            return Err(DataError::NoTransitions { place: Place::file(&sources[0]) });
        }
        let mut columns = BTreeMap::new();
        for (name, column) in self.columns.into_iter().chain([(EPISODES, self.episodes)]) {
            columns.insert(name.to_owned(), column.finish()?);
        }
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Manifest::new(self.rows, episodes, sources.iter().map(name).collect(), columns))
    }
}

/// One column on its way to the disk.
struct ColumnWriter {
    path: PathBuf,
    file: File,
    hash: Sha256,
    bytes: u64,
    dtype: DType,
    width: usize,
}

impl ColumnWriter {
    fn create(folder: &Path, name: &str, width: usize) -> Result<Self, DataError> {
        let dtype = dtype(name).unwrap_or(DType::F32);
        let path = folder.join(file_name(name, dtype));
        let file = create_new(&path)?;
        Ok(Self { path, file, hash: Sha256::new(), bytes: 0, dtype, width })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        self.file.write_all(bytes).map_err(io_error(&self.path))?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn finish(self) -> Result<ColumnFile, DataError> {
        keep(&self.file).map_err(io_error(&self.path))?;
        let Self { bytes, width, .. } = self;
        let hash: [u8; 32] = self.hash.finalize().into();
        Ok(ColumnFile { dtype: self.dtype.to_string(), width, bytes, sha256: hex(&hash) })
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    let mut file = create_new(path)?;
    file.write_all(bytes).and_then(|()| keep(&file)).map_err(io_error(path))
}

fn create_new(path: &Path) -> Result<File, DataError> {
    OpenOptions::new().write(true).create_new(true).open(path).map_err(io_error(path))
}

/// Brings a file to the disk and makes it read-only: those who map it rely on it.
fn keep(file: &File) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_readonly(true);
    file.set_permissions(permissions)?;
    file.sync_all()
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> DataError {
    let place = Place::file(path);
    move |source| DataError::Io { place, source }
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

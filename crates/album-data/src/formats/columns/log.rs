//! Converts a log of any format to a folder of columns, in constant memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use album_base::atomic::AtomicFolder;

use super::import::{Imported, check_target};
use super::manifest::{ColumnFile, EPISODES, FILE, Manifest};
use super::writer::{ColumnWriter, io_error, write_new};
use crate::action_space::ActionSpace;
use crate::error::{DataError, Place};
use crate::load::checks::OnBad;
use crate::source::describe::Finished;
use crate::source::log::Stop;
use crate::source::open::{self, Types};
use crate::source::opened::Opened;
use crate::source::read::bring_inside;
use crate::source::sink::{Sink, Step, Steps};
use crate::source::{Description, Format, Source};

/// Numbers buffered per column.
const BUFFERED: usize = 1 << 16;

/// Imports a source into a folder of columns. Training on either gives the same result.
///
/// Rows are streamed, unless a file is out of order and has to be sorted by step in memory. A failed import
/// leaves nothing behind. `go_on` receives the number of rows written; if it returns false, the import is
/// cancelled and the result is `None`.
///
/// ```
/// use album_data::Source;
/// use album_data::columns::import_source;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let (file, folder) = (dir.path().join("log.csv"), dir.path().join("log.columns"));
/// std::fs::write(&file, "episode,obs,action,reward,terminated\n0,1.5,20,0,0\n0,2.5,10,1,1\n")?;
/// let source = Source { actions: Some(album_data::ActionKind::Continuous), ..Source::of(&file) };
/// import_source(&source, &folder, false, &mut |_rows| true)?;
///
/// let (mapped, in_memory) = (Source::of(&folder).read()?, source.read()?);
/// assert_eq!(mapped.dataset.content_hash(), in_memory.dataset.content_hash());
/// assert_eq!(mapped.description, in_memory.description);
/// # Ok(())
/// # }
/// ```
pub fn import_source(
    source: &Source,
    target: &Path,
    replace: bool,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<(Imported, Description)>, DataError> {
    let place = Place::file(target);
    check_target(target, replace, &place)?;
    let (format, files) = open::files(source)?;
    if format == Format::Columns {
        let (found, expected) = ("an imported folder".to_owned(), "a log that is not imported yet");
        return Err(DataError::WrongFileKind { place: Place::file(&files[0]), found, expected });
    }
    open::by_types(format, |types| attempt(source, format, &files, types, target, go_on))
}

fn attempt(
    source: &Source,
    format: Format,
    files: &[PathBuf],
    types: Types,
    target: &Path,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<(Imported, Description)>, DataError> {
    let place = Place::file(target);
    let opened = Opened::new(source, format, open::tables(format, files, types)?)?;
    let create =
        || AtomicFolder::create(target).map_err(|source| DataError::Io { place: place.clone(), source });
    let dims = [opened.layout.observation_dim(), opened.layout.action_dim()];

    let mut folder = create()?;
    let mut writer = Writer::new(folder.path(), dims, go_on)?;
    let mut result = opened.stream(&mut writer, OnBad::Refuse);
    if let Err(Stop::Unsorted(_)) = &result {
        drop(folder);
        folder = create()?;
        writer = Writer::new(folder.path(), dims, writer.go_on)?;
        result = opened.sorted(&mut writer, OnBad::Refuse);
    }
    let seen = match result {
        Ok(seen) => seen,
        Err(Stop::Enough) => return Ok(None),
        Err(Stop::Data(_)) if writer.stopped => return Ok(None),
        Err(Stop::Data(error) | Stop::Unsorted(error)) => return Err(error),
    };
    let Finished { space, description, warnings, .. } = opened.finish(source, seen, OnBad::Refuse)?;
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names = files.iter().map(name).collect();
    let manifest = writer.finish(folder.path(), &space, names, opened.tables[0].place())?;
    let manifest = manifest.described(description.clone());
    let text = serde_json::to_vec_pretty(&manifest)
        .map_err(|e| DataError::Io { place: place.clone(), source: e.into() })?;
    write_new(&folder.path().join(FILE), &text)?;
    folder.commit().map_err(|source| DataError::Io { place, source })?;
    let imported = Imported {
        transitions: manifest.rows - manifest.episodes,
        episodes: manifest.episodes,
        bytes: manifest.columns.values().map(|column| column.bytes).sum(),
        columns: manifest.columns.into_iter().map(|(name, column)| (name, column.width)).collect(),
        warnings,
    };
    Ok(Some((imported, description)))
}

/// Writes rows to disk. Actions are first written as recorded, and converted to internal units once their
/// bounds are known.
struct Writer<'a> {
    observations: Buffer,
    actions: Buffer,
    rewards: Buffer,
    masks: Buffer,
    lengths: Vec<usize>,
    open: usize,
    action_dim: usize,
    rows: usize,
    go_on: &'a mut dyn FnMut(u64) -> bool,
    stopped: bool,
    /// Masks of rows that have none.
    ones: Vec<f32>,
}

const RAW: &str = "actions.raw";

impl<'a> Writer<'a> {
    fn new(
        folder: &Path,
        [observation_dim, action_dim]: [usize; 2],
        go_on: &'a mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, DataError> {
        Ok(Self {
            observations: Buffer::new(ColumnWriter::create(folder, "observations", observation_dim)?),
            actions: Buffer::new(ColumnWriter::create_as(&folder.join(RAW), "actions", action_dim)?),
            rewards: Buffer::new(ColumnWriter::create(folder, "rewards", 1)?),
            masks: Buffer::new(ColumnWriter::create(folder, "masks", 1)?),
            lengths: Vec::new(),
            open: 0,
            action_dim,
            rows: 0,
            go_on,
            stopped: false,
            ones: Vec::new(),
        })
    }

    /// Counts rows, and asks now and then whether to go on.
    fn count(&mut self, rows: usize) -> Result<(), DataError> {
        let before = self.rows / BUFFERED;
        self.rows += rows;
        if self.rows / BUFFERED != before && !(self.go_on)(self.rows as u64) {
            self.stopped = true;
            let source = io::Error::new(io::ErrorKind::Interrupted, "stopped");
            return Err(DataError::Io { place: Place::default(), source });
        }
        Ok(())
    }

    fn finish(
        self,
        folder: &Path,
        space: &ActionSpace,
        sources: Vec<String>,
        place: &Place,
    ) -> Result<Manifest, DataError> {
        let Self { mut observations, mut actions, mut rewards, mut masks, lengths, rows, action_dim, .. } =
            self;
        if rows == lengths.len() {
            return Err(DataError::NoTransitions { place: place.clone() });
        }
        for buffer in [&mut observations, &mut rewards, &mut masks] {
            buffer.flush()?;
            buffer.column.end()?;
        }
        actions.flush()?;
        actions.column.leave()?;
        let mut columns: BTreeMap<String, ColumnFile> = BTreeMap::new();
        columns.insert("actions".to_owned(), bring_file_inside(folder, space, &lengths, action_dim)?);
        for (name, buffer) in [("observations", observations), ("rewards", rewards), ("masks", masks)] {
            columns.insert(name.to_owned(), buffer.column.finish()?);
        }
        let mut episodes = ColumnWriter::create(folder, EPISODES, 1)?;
        for part in lengths.chunks(BUFFERED) {
            let bytes: Vec<u8> = part.iter().flat_map(|&length| (length as u64).to_le_bytes()).collect();
            episodes.write(&bytes)?;
        }
        episodes.end()?;
        columns.insert(EPISODES.to_owned(), episodes.finish()?);
        Ok(Manifest::new(rows, lengths.len(), sources, columns))
    }
}

impl Sink for Writer<'_> {
    fn row(&mut self, state: &[f32], step: Option<Step<'_>>) -> Result<(), DataError> {
        self.observations.extend(state)?;
        match step {
            Some(Step { action, reward, mask }) => {
                self.actions.extend(action)?;
                self.rewards.extend(&[reward])?;
                self.masks.extend(&[mask])?;
                self.open += 1;
            }
            None => {
                for _ in 0..self.action_dim {
                    self.actions.extend(&[0.0])?;
                }
                self.rewards.extend(&[0.0])?;
                self.masks.extend(&[1.0])?;
                self.lengths.push(std::mem::take(&mut self.open));
            }
        }
        self.count(1)
    }

    fn rows(&mut self, Steps { states, actions, rewards, masks }: Steps<'_>) -> Result<(), DataError> {
        self.observations.extend(states)?;
        self.actions.extend(actions)?;
        self.rewards.extend(rewards)?;
        self.masks.extend(masks)?;
        if masks.is_empty() {
            self.ones.resize(rewards.len(), 1.0);
            self.masks.extend(&self.ones)?;
        }
        self.open += rewards.len();
        self.count(rewards.len())
    }

    fn set_last_reward(&mut self, reward: f32) {
        if self.open > 0
            && let Some(last) = self.rewards.numbers.last_mut()
        {
            *last = reward;
        }
    }
}

/// A write buffer. The last number always stays in it, so that the last reward can still be changed.
struct Buffer {
    numbers: Vec<f32>,
    bytes: Vec<u8>,
    column: ColumnWriter,
}

impl Buffer {
    fn new(column: ColumnWriter) -> Self {
        Self { numbers: Vec::with_capacity(BUFFERED), bytes: Vec::new(), column }
    }

    fn extend(&mut self, numbers: &[f32]) -> Result<(), DataError> {
        for part in numbers.chunks(BUFFERED) {
            if self.numbers.len() >= BUFFERED {
                self.flush()?;
            }
            self.numbers.extend_from_slice(part);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DataError> {
        little_endian(&self.numbers, &mut self.bytes);
        self.numbers.clear();
        self.column.write(&self.bytes)
    }
}

/// Replaces `bytes` by the bytes of the numbers. This loop becomes a copy; a `flat_map` would not.
fn little_endian(numbers: &[f32], bytes: &mut Vec<u8>) {
    bytes.resize(4 * numbers.len(), 0);
    for (four, x) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
        *four = x.to_le_bytes();
    }
}

/// Writes the `actions` column from the recorded actions: several episodes at a time, long ones in pieces.
fn bring_file_inside(
    folder: &Path,
    space: &ActionSpace,
    lengths: &[usize],
    dim: usize,
) -> Result<ColumnFile, DataError> {
    let path = folder.join(RAW);
    let mut raw = File::open(&path).map_err(io_error(&path))?;
    let mut column = ColumnWriter::create(folder, "actions", dim)?;
    // The rows of each episode in the current batch, including its unused last action.
    let mut rows: Vec<usize> = Vec::new();
    let mut part = |raw: &mut File, rows: &[usize], last: bool| -> Result<(), DataError> {
        let count: usize = rows.iter().sum();
        let mut bytes = vec![0; count * dim * 4];
        raw.read_exact(&mut bytes).map_err(io_error(&path))?;
        let mut actions: Vec<f32> =
            bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
        // A piece from the middle of an episode has no unused last action.
        let whole = rows
            .iter()
            .enumerate()
            .map(|(i, &rows_of)| if i + 1 == rows.len() && !last { rows_of } else { rows_of - 1 });
        bring_inside(space, &mut actions, whole, OnBad::Refuse);
        little_endian(&actions, &mut bytes);
        column.write(&bytes)
    };
    let mut waiting = 0;
    for &length in lengths {
        let mut left = length + 1;
        while left > BUFFERED {
            part(&mut raw, &rows, true)?;
            rows.clear();
            waiting = 0;
            part(&mut raw, &[BUFFERED.min(left - 1)], false)?;
            left -= BUFFERED.min(left - 1);
        }
        rows.push(left);
        waiting += left;
        if waiting > BUFFERED {
            part(&mut raw, &rows, true)?;
            rows.clear();
            waiting = 0;
        }
    }
    part(&mut raw, &rows, true)?;
    drop(raw);
    let io = io_error(&path);
    column.end()?;
    let column = column.finish()?;
    fs::remove_file(&path).map_err(io)?;
    Ok(column)
}

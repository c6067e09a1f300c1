//! Reading an imported folder.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use album_base::hex::hex;
use sha2::{Digest, Sha256};

use crate::action_space::ActionSpace;
use crate::column::Column;
use crate::episodes::Episodes;
use crate::error::{DataError, Place};
use crate::formats::columns::manifest::{ColumnFile, EPISODES, Manifest, dtype, file_name};
use crate::formats::columns::map::MappedFile;
use crate::formats::file::open_regular;
use crate::formats::npz::array::DType;
use crate::formats::npz::row_reader::RowReader;
use crate::source::Description;

/// An imported folder whose file sizes agree with its manifest.
pub(crate) struct Folder {
    path: PathBuf,
    manifest: Manifest,
}

/// An open column file.
struct Opened<'a> {
    file: File,
    path: PathBuf,
    dtype: DType,
    column: &'a ColumnFile,
    entries: usize,
}

impl Folder {
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let folder = Self { path: path.to_path_buf(), manifest: Manifest::read(path)? };
        if cfg!(target_endian = "big") {
            return Err(DataError::WrongFileKind {
                place: Place::file(path),
                found: "columns of little-endian numbers on a big-endian machine".to_owned(),
                expected: "the npz file itself, whose numbers are converted",
            });
        }
        for name in folder.manifest.columns.keys() {
            folder.column(name)?;
        }
        Ok(folder)
    }

    /// The width of a column.
    pub fn width(&self, name: &str) -> Result<usize, DataError> {
        Ok(self.column(name)?.column.width)
    }

    /// Maps an `f32` column into memory.
    pub fn map(&self, name: &str) -> Result<Column, DataError> {
        let Opened { file, path, column, .. } = self.intact(name)?;
        let map =
            MappedFile::new(&file).map_err(|source| DataError::Io { place: Place::file(&path), source })?;
        // The hash is valid, or the manifest would have been refused.
        Ok(Column::Mapped(Arc::new(map), column.hash().unwrap_or_default()))
    }

    /// Reads a column row by row.
    pub fn rows(&self, name: &str) -> Result<RowReader<'static>, DataError> {
        let Opened { file, path, dtype, column, entries } = self.intact(name)?;
        Ok(RowReader::of_file(file, dtype, vec![entries, column.width], Place::file(&path)))
    }

    /// The action space, for actions of dimension `dim`.
    pub fn action_space(&self, dim: usize) -> Result<ActionSpace, DataError> {
        match &self.manifest.description {
            None => Ok(ActionSpace::unit(dim)),
            Some(description) if description.action_space.dim() == dim => {
                Ok(description.action_space.clone())
            }
            Some(description) => Err(DataError::DamagedColumns {
                place: Place::file(&self.path),
                problem: format!(
                    "found actions of dimension {dim}, expected {} as its action space has",
                    description.action_space.dim()
                ),
            }),
        }
    }

    /// The folder, for messages.
    pub fn place(&self) -> Place {
        Place::file(&self.path)
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.manifest.columns.keys().map(String::as_str)
    }

    /// The episode index.
    pub fn episodes(&self) -> Result<Episodes, DataError> {
        let Opened { mut file, path, entries, .. } = self.intact(EPISODES)?;
        let place = Place::file(&path);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| DataError::Io { place: place.clone(), source })?;
        let lengths: Vec<u64> =
            bytes.as_chunks::<8>().0.iter().map(|eight| u64::from_le_bytes(*eight)).collect();
        let transitions = lengths.iter().try_fold(0u64, |sum, length| sum.checked_add(*length));
        let expected = (self.manifest.rows - entries) as u64;
        if transitions != Some(expected) || lengths.len() != entries {
            return Err(DataError::DamagedColumns {
                place,
                problem: format!(
                    "its {} episodes have {} transitions, expected {entries} with {expected}",
                    lengths.len(),
                    transitions.map_or_else(|| "countless".to_owned(), |sum| sum.to_string())
                ),
            });
        }
        // The casts are safe: no length exceeds the sum, which is at most the number of rows.
        Ok(Episodes::from_lengths(&lengths.iter().map(|&length| length as usize).collect::<Vec<_>>()))
    }

    /// Opens the file of a column and verifies its hash. Nothing else would notice data changed since the
    /// import, because the dataset's hash is computed from the manifest.
    fn intact(&self, name: &str) -> Result<Opened<'_>, DataError> {
        let mut opened = self.column(name)?;
        let io_error = |source| DataError::Io { place: Place::file(&opened.path), source };
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
        loop {
            match opened.file.read(&mut buffer).map_err(io_error)? {
                0 => break,
                n => hash.update(&buffer[..n]),
            }
        }
        let found: [u8; 32] = hash.finalize().into();
        if Some(found) != opened.column.hash() {
            let expected = &opened.column.sha256;
            return Err(DataError::DamagedColumns {
                problem: format!(
                    "SHA-256 of the file is {}, expected {expected}: it was changed after the import",
                    hex(&found)
                ),
                place: Place::file(&opened.path),
            });
        }
        opened.file.rewind().map_err(io_error)?;
        Ok(opened)
    }

    /// Opens the file of a column and checks its size against the manifest.
    fn column(&self, name: &str) -> Result<Opened<'_>, DataError> {
        let (Some(column), Some(dtype)) = (self.manifest.columns.get(name), dtype(name)) else {
            let available = self.manifest.columns.keys().cloned().collect();
            return Err(DataError::Missing { place: Place::file(&self.path).array(name), available });
        };
        let path = self.path.join(file_name(name, dtype));
        let (file, found) = open_regular(&path)?;
        if found != column.bytes {
            let expected = column.bytes;
            let problem = format!("found {found} bytes, expected {expected}");
            return Err(DataError::DamagedColumns { place: Place::file(&path), problem });
        }
        Ok(Opened { file, path, dtype, column, entries: self.manifest.entries(name) })
    }
}

/// Whether this is an imported folder.
pub(crate) fn is_folder(path: &Path) -> bool {
    Manifest::is_in(path)
}

/// The description stored by the import, if any.
pub(crate) fn description(path: &Path) -> Result<Option<Description>, DataError> {
    Ok(Manifest::read(path)?.description)
}

/// Reads all files of an imported folder and verifies their hashes.
pub fn verify(path: impl AsRef<Path>) -> Result<(), DataError> {
    let folder = Folder::open(path.as_ref())?;
    folder.episodes()?;
    for name in folder.manifest.columns.keys() {
        folder.intact(name)?;
    }
    Ok(())
}

//! The manifest of an imported folder.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{DataError, Place};
use crate::formats::file::open_regular;
use crate::formats::npz::array::DType;
use crate::source::Description;

/// The manifest's file name.
pub(crate) const FILE: &str = "manifest.json";

const FORMAT: &str = "album columns";
const VERSION: u32 = 1;
/// The version that includes a description of the contents.
const DESCRIBED: u32 = 2;
const BYTE_ORDER: &str = "little";

/// Maximum size of a manifest; typical ones have a few kilobytes.
const MAX_BYTES: u64 = 16 << 20;

/// All possible columns and their types.
pub(super) const COLUMNS: [(&str, DType); 7] = [
    ("observations", DType::F32),
    ("actions", DType::F32),
    ("qpos", DType::F32),
    ("button_states", DType::I8),
    ("rewards", DType::F32),
    ("masks", DType::F32),
    (EPISODES, DType::U64),
];

/// The column with one entry per episode; the others have one per row.
pub(crate) const EPISODES: &str = "episodes";

/// The contents of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    format: String,
    version: u32,
    byte_order: String,
    /// Number of states; every episode has one more state than transitions.
    pub rows: usize,
    pub episodes: usize,
    /// The names of the imported files, in order.
    pub sources: Vec<String>,
    pub columns: BTreeMap<String, ColumnFile>,
    /// Names, categories and action space, if imported from a [`Source`](crate::Source).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Description>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnFile {
    pub dtype: String,
    /// Numbers per row.
    pub width: usize,
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

impl Manifest {
    pub fn new(
        rows: usize,
        episodes: usize,
        sources: Vec<String>,
        columns: BTreeMap<String, ColumnFile>,
    ) -> Self {
        let (format, byte_order) = (FORMAT.to_owned(), BYTE_ORDER.to_owned());
        Self { format, version: VERSION, byte_order, rows, episodes, sources, columns, description: None }
    }

    /// Adds a description of the contents.
    pub fn described(self, description: Description) -> Self {
        Self { version: DESCRIBED, description: Some(description), ..self }
    }

    /// Whether a folder has a manifest of this format, in any version.
    pub fn is_in(folder: &Path) -> bool {
        matches!(Head::read(folder), Ok((head, _)) if head.format == FORMAT)
    }

    /// Reads and checks the manifest of a folder.
    pub fn read(folder: &Path) -> Result<Self, DataError> {
        let place = Place::file(&folder.join(FILE));
        let damaged = |problem: String| DataError::DamagedColumns { place: place.clone(), problem };
        let (head, text) = Head::read(folder)?;
        if head.format != FORMAT {
            return Err(damaged(format!(
                "found format `{}`, expected `{FORMAT}`",
                head.format.escape_debug()
            )));
        }
        if ![VERSION, DESCRIBED].contains(&head.version) {
            return Err(damaged(format!(
                "found version {}, expected {VERSION} or {DESCRIBED}, which is all that this program reads",
                head.version
            )));
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        manifest.check().map_err(damaged)?;
        Ok(manifest)
    }

    /// Number of entries of a column.
    pub fn entries(&self, name: &str) -> usize {
        if name == EPISODES { self.episodes } else { self.rows }
    }

    fn check(&self) -> Result<(), String> {
        if self.byte_order != BYTE_ORDER {
            let found = self.byte_order.escape_debug();
            return Err(format!("found byte order `{found}`, expected `{BYTE_ORDER}`"));
        }
        if self.episodes == 0 || self.rows <= self.episodes {
            return Err(format!("found {} rows in {} episodes, expected more", self.rows, self.episodes));
        }
        for name in ["observations", "actions", EPISODES] {
            if !self.columns.contains_key(name) {
                return Err(format!("it lists no column `{name}`"));
            }
        }
        for (name, column) in &self.columns {
            let shown = name.escape_debug();
            let Some(dtype) = dtype(name) else {
                return Err(format!("it lists an unknown column `{shown}`"));
            };
            if column.dtype != dtype.to_string() {
                let found = column.dtype.escape_debug();
                return Err(format!("column `{shown}`: found dtype {found}, expected {dtype}"));
            }
            let size = self.entries(name).checked_mul(column.width).and_then(|n| n.checked_mul(dtype.size()));
            if column.width == 0 || size.map(|size| size as u64) != Some(column.bytes) {
                let entries = self.entries(name);
                return Err(format!(
                    "column `{shown}`: {} bytes are not {entries} rows of {} x {dtype}",
                    column.bytes, column.width
                ));
            }
            if column.hash().is_none() {
                return Err(format!("column `{shown}`: its sha256 is not 64 hexadecimal digits"));
            }
        }
        for name in [EPISODES, "rewards", "masks"] {
            if let Some(column) = self.columns.get(name).filter(|column| column.width != 1) {
                return Err(format!("column `{name}` is {} wide, expected 1", column.width));
            }
        }
        Ok(())
    }
}

impl ColumnFile {
    /// The hash as bytes.
    pub fn hash(&self) -> Option<[u8; 32]> {
        let digits: Vec<u8> =
            self.sha256.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
        let pairs: &[[u8; 2]; 32] = digits.as_chunks::<2>().0.try_into().ok()?;
        (digits.len() == 64).then(|| pairs.map(|[high, low]| high << 4 | low))
    }
}

/// The type of a column; `None` if there is no such column.
pub(crate) fn dtype(name: &str) -> Option<DType> {
    COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, dtype)| *dtype)
}

/// The file name of a column.
pub(crate) fn file_name(name: &str, dtype: DType) -> String {
    let descr = dtype.descr();
    let kind = &descr[1..2];
    format!("{name}.{kind}{}", 8 * dtype.size())
}

/// The part of the manifest that all versions share.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

impl Head {
    /// Also returns the whole file.
    fn read(folder: &Path) -> Result<(Self, Vec<u8>), DataError> {
        let path = folder.join(FILE);
        let place = Place::file(&path);
        std::fs::metadata(folder).map_err(|source| DataError::Io { place: Place::file(folder), source })?;
        if !path.exists() {
            return Err(DataError::WrongFileKind {
                place: Place::file(folder),
                found: format!("a folder without {FILE}"),
                expected: "an npz file, or a folder that `album data import` made",
            });
        }
        let (file, size) = open_regular(&path)?;
        if size > MAX_BYTES {
            let what = "the size of the file in bytes";
            return Err(DataError::Limit { place, what, found: size, limit: MAX_BYTES });
        }
        let mut text = Vec::new();
        file.take(MAX_BYTES)
            .read_to_end(&mut text)
            .map_err(|source| DataError::Io { place: place.clone(), source })?;
        match serde_json::from_slice(&text) {
            Ok(head) => Ok((head, text)),
            Err(e) => Err(DataError::DamagedColumns { place, problem: e.to_string() }),
        }
    }
}

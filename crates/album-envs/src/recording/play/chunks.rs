//! Chunks of episodes in the work folder, and joining them into a dataset.

use std::path::{Path, PathBuf};

use album_data::{DType, Data, DataError, Npz, NpzWriter, Place};

use super::{Recipe, Split};
use crate::recording::stamp::{self, STAMP};

/// The array with the versions of the packages, as text.
const PACKAGES: &str = "album_packages";

/// Episodes that are recorded together.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub split: Split,
    pub seeds: Vec<u64>,
    /// Its name in the work folder.
    pub name: String,
    /// Number of processes that failed to finish it.
    pub losses: usize,
}

impl Chunk {
    /// All chunks of a dataset, with this many episodes each.
    pub fn all(recipe: &Recipe, split: Split, episodes: usize) -> Vec<Self> {
        let prefix = match split {
            Split::Train => "train",
            Split::Validation => "validation",
        };
        let seeds = recipe.seeds(split);
        let chunks = seeds.chunks(episodes).enumerate();
        let chunk = |(number, seeds): (usize, &[u64])| Self {
            split,
            seeds: seeds.to_vec(),
            name: format!("{prefix}-{:06}-{}.npz", number * episodes, seeds.len()),
            losses: 0,
        };
        chunks.map(chunk).collect()
    }

    /// Checks the contents of the chunk's file.
    pub fn check(&self, recipe: &Recipe, work: &Path) -> Result<(), DataError> {
        for (name, dtype, width) in recipe.columns() {
            let data = self.read(recipe, work, name, dtype, width)?;
            let Data::Bool(terminals) = data else { continue };
            // Every episode has the full length.
            if let Some(row) =
                (0..terminals.len()).find(|&row| terminals[row] != (row + 1).is_multiple_of(recipe.rows))
            {
                return Err(DataError::Value {
                    place: Place::file(&work.join(&self.name)).array(name),
                    row,
                    column: None,
                    found: terminals[row].to_string(),
                    expected: "true in the last row of each episode only",
                });
            }
        }
        Ok(())
    }

    fn read(
        &self,
        recipe: &Recipe,
        work: &Path,
        name: &str,
        dtype: DType,
        width: Option<usize>,
    ) -> Result<Data, DataError> {
        let path = work.join(&self.name);
        let array = Npz::open(&path)?.read(name)?;
        let place = Place::file(&path).array(name);
        if array.dtype() != dtype {
            let expected = "that of the published files";
            return Err(DataError::WrongType { place, found: array.dtype(), expected });
        }
        let expected = shape(self.seeds.len() * recipe.rows, width);
        if array.shape != expected {
            let expected = format!("{expected:?}");
            return Err(DataError::WrongShape { place, found: array.shape, expected });
        }
        Ok(array.data)
    }
}

/// Joins the chunks of a dataset, with one column of one chunk in memory at a time.
pub(super) fn join(
    recipe: &Recipe,
    split: Split,
    chunks: &[Chunk],
    work: &Path,
    packages: &str,
    path: &PathBuf,
) -> Result<(), DataError> {
    let rows = recipe.episodes_of(split) * recipe.rows;
    let mut npz = NpzWriter::create(path)?;
    for (name, dtype, width) in recipe.columns() {
        let parts = chunks.iter().map(|chunk| chunk.read(recipe, work, name, dtype, width));
        npz.array_of_parts(name, dtype, &shape(rows, width), parts)?;
    }
    let stamp = stamp::numbers(&recipe.stamp(split));
    npz.array_i64(STAMP, &[stamp.len()], &stamp)?;
    let text = packages.as_bytes().to_vec();
    npz.array_of_parts(PACKAGES, DType::U8, &[text.len()], [Ok::<_, DataError>(Data::U8(text))])?;
    npz.finish()
}

fn shape(rows: usize, width: Option<usize>) -> Vec<usize> {
    [rows].into_iter().chain(width).collect()
}

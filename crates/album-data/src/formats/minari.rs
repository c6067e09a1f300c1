//! Minari datasets: a folder with `data/metadata.json` and episodes in HDF5 or Parquet.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use album_base::files::{self, Links};

use crate::action_space::ActionSpace;
use crate::error::{DataError, Place};
use crate::formats::file::open_regular;
use crate::formats::hdf5::groups;
use crate::formats::table_log::TableLog;
use crate::source::episodes::{EpisodeArrays, EpisodeStore, EpisodesTable};
use crate::source::log::{Facts, Field, LogFile, MAX_WIDTH, Part, Stop, Values};
use crate::source::open::natural;

/// Maximum size of `metadata.json`.
const MAX_METADATA: u64 = 16 << 20;

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    data_format: Option<String>,
    /// JSON encoded as a string.
    #[serde(default)]
    action_space: Option<String>,
}

/// The `data` folder, if `folder` is a Minari dataset or its `data` folder.
pub(crate) fn data_folder(folder: &Path) -> Option<PathBuf> {
    [folder.join("data"), folder.to_path_buf()].into_iter().find(|data| {
        data.join("metadata.json").is_file()
            && (data.join("main_data.hdf5").is_file() || data.join("0").is_dir())
    })
}

/// The dataset with this id in the user's Minari cache.
pub(crate) fn cached(id: &Path) -> Option<PathBuf> {
    let root = match std::env::var_os("MINARI_DATASETS_PATH") {
        Some(root) => PathBuf::from(root),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".minari").join("datasets"),
    };
    let inside = id.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    Some(root.join(id)).filter(|folder| inside && data_folder(folder).is_some())
}

/// Opens a dataset.
pub(crate) fn open(folder: &Path) -> Result<Box<dyn LogFile>, DataError> {
    let place = Place::file(folder);
    let Some(data) = data_folder(folder) else {
        return Err(DataError::WrongFileKind {
            place,
            found: "a folder without data/metadata.json and episodes".to_owned(),
            expected: "a Minari dataset",
        });
    };
    let text = read_text(&data.join("metadata.json"))?;
    let metadata: Metadata = serde_json::from_str(&text).map_err(|e| DataError::Columns {
        place: Place::file(&data.join("metadata.json")),
        problem: format!("bad metadata: {e}"),
    })?;
    let mut facts = Facts::default();
    if let Some(text) = &metadata.action_space {
        match space(text) {
            Some((space, first)) => (facts.action_space, facts.first_choice) = (Some(space), first),
            None => facts.warnings.push(
                "the action space in metadata.json is not understood: bounds are those of the data"
                    .to_owned(),
            ),
        }
    }
    let main = data.join("main_data.hdf5");
    if main.is_file() {
        return Ok(Box::new(groups::table(&main, None, "episode_", facts)?));
    }
    let format = metadata.data_format.as_deref().unwrap_or("parquet");
    if format != "parquet" {
        return Err(DataError::WrongFileKind {
            place,
            found: format!("a Minari dataset in the form `{}`", format.escape_debug()),
            expected: "its hdf5 or parquet form; convert it with `python -c \"import minari; d = minari.load_dataset('ID'); \
                       minari.create_dataset_from_buffers('NEW-ID', buffer=list(d.iterate_episodes()), \
                       observation_space=d.observation_space, action_space=d.action_space, data_format='parquet')\"`",
        });
    }
    let files = episodes(&data)?;
    let Some(first) = files.first() else { return Err(DataError::NoTransitions { place }) };
    let table = TableLog::open(first)?;
    facts.warnings.extend(table.facts().warnings);
    // Same names and order as in the HDF5 variant.
    let mut fields: Vec<Field> = table.fields().iter().map(with_slashes).collect();
    fields.sort_by_cached_key(|field| natural(&field.name));
    Ok(Box::new(EpisodesTable::new(Files { files }, place, fields, facts)))
}

fn read_text(path: &Path) -> Result<String, DataError> {
    let (_, size) = open_regular(path)?;
    if size > MAX_METADATA {
        let (what, limit) = ("the size of the file in bytes", MAX_METADATA);
        return Err(DataError::Limit { place: Place::file(path), what, found: size, limit });
    }
    files::read_text(path, Links::Follow, MAX_METADATA)
        .map_err(|source| DataError::Io { place: Place::file(path), source })
}

/// The files `data/0/part-0.parquet`, ..., in numeric order.
fn episodes(data: &Path) -> Result<Vec<PathBuf>, DataError> {
    let io_error = |source| DataError::Io { place: Place::file(data), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(data).map_err(io_error)? {
        let path = entry.map_err(io_error)?.path();
        let number =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u64>().ok());
        if let Some(number) = number {
            found.push((number, path.join("part-0.parquet")));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

struct Files {
    files: Vec<PathBuf>,
}

impl EpisodeStore for Files {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn name(&self, episode: usize) -> String {
        format!("episode {episode}")
    }

    /// Reads one file. Its last row holds the final state and padding.
    fn read(&self, episode: usize, fields: &[&Field]) -> Result<EpisodeArrays, DataError> {
        let table = TableLog::open(&self.files[episode])?;
        let mut wanted = Vec::new();
        for field in fields {
            match table.fields().iter().position(|found| with_slashes(found) == **field) {
                Some(i) => wanted.push(i),
                None => {
                    let available = table.fields().iter().map(|field| field.name.clone()).collect();
                    return Err(DataError::Missing { place: table.place().array(&field.name), available });
                }
            }
        }
        let mut all: Option<(usize, Vec<Values>)> = None;
        let mut gather = |part: Part| {
            match &mut all {
                None => all = Some((part.rows, part.columns)),
                Some((rows, columns)) => {
                    *rows += part.rows;
                    columns.iter_mut().zip(part.columns).for_each(|(all, more)| all.append(more));
                }
            }
            Ok(())
        };
        match table.visit(&wanted, &mut gather) {
            Ok(()) | Err(Stop::Enough) => {}
            Err(Stop::Data(error) | Stop::Unsorted(error)) => return Err(error),
        }
        let Some((rows, columns)) = all else {
            return Err(DataError::NoTransitions { place: table.place().clone() });
        };
        Ok(EpisodeArrays { columns, steps: rows.saturating_sub(1), padded: true })
    }
}

fn with_slashes(field: &Field) -> Field {
    Field { name: field.name.replace('.', "/"), ..field.clone() }
}

/// Parses Minari's description of a space; also returns the smallest choice of a discrete space. Python
/// writes `Infinity` and `NaN`, which are not valid JSON.
fn space(text: &str) -> Option<(ActionSpace, i64)> {
    // Safe, because none of the strings in a description contain these words.
    let text = text.replace("-Infinity", "\"-inf\"").replace("Infinity", "\"inf\"").replace("NaN", "\"nan\"");
    let value: Value = serde_json::from_str(&text).ok()?;
    match value.get("type")?.as_str()? {
        "Discrete" => {
            let n = usize::try_from(value.get("n")?.as_u64()?).ok()?;
            let first = value.get("start").and_then(Value::as_i64).unwrap_or(0);
            Some((ActionSpace::Discrete { n }, first))
        }
        "Box" => {
            let bounds = |key: &str| -> Option<Vec<f32>> {
                let mut all = Vec::new();
                flatten(value.get(key)?, &mut all)?;
                Some(all)
            };
            let (mut low, mut high) = (bounds("low")?, bounds("high")?);
            let shape = value.get("shape")?.as_array()?;
            let dim = shape.iter().try_fold(1u64, |dim, axis| dim.checked_mul(axis.as_u64()?))?;
            let dim = usize::try_from(dim).ok().filter(|&dim| dim <= MAX_WIDTH)?;
            // A single bound applies to all components.
            for all in [&mut low, &mut high] {
                if let [one] = all[..] {
                    *all = vec![one; dim];
                }
            }
            (low.len() == dim && high.len() == dim).then_some((ActionSpace::Continuous { low, high }, 0))
        }
        _ => None,
    }
}

fn flatten(value: &Value, all: &mut Vec<f32>) -> Option<()> {
    match value {
        Value::Array(values) => values.iter().try_for_each(|value| flatten(value, all)),
        Value::String(text) => {
            all.push(match text.as_str() {
                "inf" => f32::INFINITY,
                "-inf" => f32::NEG_INFINITY,
                _ => return None,
            });
            Some(())
        }
        number => {
            all.push(number.as_f64()? as f32);
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces() {
        let (found, first) = space(r#"{"type": "Discrete", "dtype": "int64", "start": 1, "n": 3}"#).unwrap();
        assert_eq!((found, first), (ActionSpace::Discrete { n: 3 }, 1));
        let text = r#"{"type": "Box", "dtype": "float32", "shape": [2], "low": [-5.0, -Infinity], "high": [5.0, Infinity]}"#;
        let expected =
            ActionSpace::Continuous { low: vec![-5.0, f32::NEG_INFINITY], high: vec![5.0, f32::INFINITY] };
        assert_eq!(space(text).unwrap().0, expected);
        for bad in ["", "{}", r#"{"type": "Box"}"#, r#"{"type": "Tuple", "subspaces": []}"#] {
            assert!(space(bad).is_none(), "{bad}");
        }
    }
}

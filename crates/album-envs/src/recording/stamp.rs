//! The recipe of a recorded file, stored as numbers in an extra array.

use std::fmt;
use std::path::Path;

use album_data::{Data, Npz};

use crate::error::EnvError;

/// The array's name.
pub(crate) const STAMP: &str = "album_recipe";

/// Checks that an existing file was recorded by a recipe whose stamp has these named numbers.
pub(crate) fn check(path: &Path, stamp: &[(&str, i64)], recipe: &dyn fmt::Display) -> Result<(), EnvError> {
    let mut npz = Npz::open(path)?;
    let found = if npz.contains(STAMP) {
        match npz.read(STAMP)?.data {
            Data::I64(found) if found.len() == stamp.len() => {
                let differ = stamp.iter().zip(&found).filter(|((_, expected), found)| expected != *found);
                let differences: Vec<String> = differ
                    .map(|(&(name, _), found)| match name {
                        "seed" | "episodes" | "rows" => format!("{name} {found}"),
                        _ => format!("another {name}"),
                    })
                    .collect();
                if differences.is_empty() {
                    return Ok(());
                }
                format!("a recording with {}", differences.join(", "))
            }
            _ => "a recording of another kind".to_owned(),
        }
    } else {
        "a file that album did not make".to_owned()
    };
    Err(EnvError::OtherData { path: path.to_path_buf(), found, expected: recipe.to_string() })
}

/// The numbers of a stamp as stored.
pub(crate) fn numbers(stamp: &[(&str, i64)]) -> Vec<i64> {
    stamp.iter().map(|&(_, number)| number).collect()
}

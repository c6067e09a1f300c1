//! Which recipe a recorded file was made by: numbers in an array of its own.

use std::fmt;
use std::path::Path;

use album_data::{Data, Npz};

use crate::error::EnvError;

/// The array's name.
pub(crate) const STAMP: &str = "album_recipe";

/// Makes sure that an existing file was made by the recipe with these numbers.
pub(crate) fn check(path: &Path, stamp: &[i64], recipe: &dyn fmt::Display) -> Result<(), EnvError> {
    let mut npz = Npz::open(path)?;
    let found = if npz.contains(STAMP) {
        match npz.read(STAMP)?.data {
            Data::I64(found) if found == stamp => return Ok(()),
            Data::I64(found) => format!("recipe {found:?} instead of {stamp:?}"),
            other => format!("a recipe of type {}", other.dtype()),
        }
    } else {
        "a file that album did not make".to_owned()
    };
    Err(EnvError::OtherData { path: path.to_path_buf(), found, expected: recipe.to_string() })
}

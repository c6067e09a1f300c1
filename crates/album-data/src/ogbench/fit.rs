//! Checks whether data belongs to an environment, by the widths of its columns.

use std::path::Path;

use crate::error::{DataError, Place};
use crate::formats::npz::row_reader::RowReader;
use crate::load::arrays::Arrays;
use crate::ogbench::environment::{ENVIRONMENTS, Environment};

/// Refuses data whose columns do not match the environment, and suggests which ones they match.
pub(crate) fn check(source: &Arrays, environment: &'static Environment) -> Result<(), DataError> {
    Shapes::read(source)?.check(environment)
}

/// The environments that the data matches; several if mazes differ only in size.
pub fn looks_like(path: impl AsRef<Path>) -> Result<Vec<&'static Environment>, DataError> {
    Ok(Shapes::read(&Arrays::open(path.as_ref())?)?.environments())
}

const COLUMNS: [&str; 4] = ["qpos", "button_states", "observations", "actions"];

/// The shape of each of the [`COLUMNS`], or why it is unknown.
struct Shapes {
    rows: usize,
    columns: [Result<(Place, Vec<usize>), DataError>; 4],
}

impl Shapes {
    /// Reads headers only.
    fn read(source: &Arrays) -> Result<Self, DataError> {
        Ok(Self { rows: source.rows()?, columns: COLUMNS.map(|key| source.array(key).map(shape)) })
    }

    fn check(self, environment: &'static Environment) -> Result<(), DataError> {
        let others = self.environments();
        self.check_widths(environment).map_err(|error| {
            if others.is_empty() || others.contains(&environment) {
                return error;
            }
            let looks_like = others.iter().map(|other| other.name).collect();
            DataError::OtherEnvironment { source: Box::new(error), environment: environment.name, looks_like }
        })
    }

    fn check_widths(self, environment: &Environment) -> Result<(), DataError> {
        let rows = self.rows;
        if rows == 0 {
            return Ok(()); // missing transitions are reported by the reader
        }
        let needed = (1..=Environment::TASKS).any(|task| environment.goal(task).needs().qpos > 0);
        let widths = [
            (needed, environment.qpos_dim),
            (environment.buttons() > 0, environment.buttons()),
            (true, environment.observation_dim),
            (true, environment.action_dim),
        ];
        for (column, (needed, width)) in self.columns.into_iter().zip(widths) {
            match column {
                Ok((place, found)) if width > 0 && found[..] != [rows, width] => {
                    let expected = format!(
                        "[{rows}, {width}] for {}, since there are {rows} `terminals`",
                        environment.name
                    );
                    return Err(DataError::WrongShape { place, found, expected });
                }
                Err(error) if needed => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn environments(&self) -> Vec<&'static Environment> {
        let width = |column: usize| match &self.columns[column] {
            Ok((_, shape)) => shape.get(1).copied().unwrap_or(0),
            Err(_) => 0,
        };
        let [_, buttons, observations, actions] = [0, 1, 2, 3].map(width);
        // These three columns distinguish all environments that can be distinguished.
        let fits = |e: &&Environment| {
            (e.observation_dim, e.action_dim, e.buttons() > 0) == (observations, actions, buttons > 0)
        };
        ENVIRONMENTS.iter().filter(fits).collect()
    }
}

fn shape(reader: RowReader<'_>) -> (Place, Vec<usize>) {
    (reader.place().clone(), reader.shape().to_vec())
}

//! Names of observation and action dimensions, stored with a run: whoever continues training its agent must
//! use the same dimensions in the same order.

use crate::error::Error;
use crate::record_file;
use album_data::Description;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "names.json";

/// Names of the observation dimensions, and of the action dimensions or choices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Of the observation dimensions.
    pub observations: Vec<String>,
    /// Of the action dimensions, or of the choices.
    pub actions: Vec<String>,
}

/// Writes the names of a run's data into its directory.
pub(crate) fn write(run: &Path, data: &Description) -> Result<(), Error> {
    record_file::write(&run.join(FILE), &Names::of(data))
}

/// Whether a run has them.
pub(crate) fn are_there(run: &Path) -> bool {
    run.join(FILE).exists()
}

/// The names of a run on a log.
pub(crate) fn read(run: &Path) -> Result<Option<Names>, Error> {
    record_file::read(&run.join(FILE))
}

impl Names {
    /// The names in a log.
    pub fn of(data: &Description) -> Self {
        Names { observations: data.observation_names.clone(), actions: data.action_names.clone() }
    }

    /// The first name that differs from the new data, and its name there. Names that are only numbered are
    /// not compared: formats number them differently.
    pub(crate) fn difference(&self, new: &Description) -> Option<[String; 2]> {
        let new = Names::of(new);
        let pairs = [
            ("observations", &self.observations, &new.observations),
            ("actions", &self.actions, &new.actions),
        ];
        pairs.into_iter().find_map(|(what, before, now)| {
            if counted(before) || counted(now) {
                return None;
            }
            let at = (0..before.len().max(now.len())).find(|&i| before.get(i) != now.get(i))?;
            let name = |names: &[String]| match names.get(at) {
                Some(name) => format!("`{}`", name.escape_debug()),
                None => "nothing".to_owned(),
            };
            Some([
                format!("{} as number {at} of its {what}", name(before)),
                format!(
                    "{} as in the new data; columns need the same meaning and order, which --columns can set",
                    name(now)
                ),
            ])
        })
    }
}

/// Whether all names are one name with a number, or there is only one name.
fn counted(names: &[String]) -> bool {
    let stem =
        |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit() || "[]".contains(c)).to_owned();
    names.windows(2).all(|pair| stem(&pair[0]) == stem(&pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_data::{ActionSpace, EndCounts, Format};

    fn data(observations: &[&str]) -> Description {
        Description {
            format: Format::Csv,
            observation_names: observations.iter().map(|&name| name.to_owned()).collect(),
            categories: Default::default(),
            action_space: ActionSpace::Discrete { n: 2 },
            action_names: vec!["left".into(), "right".into()],
            episodes: 1,
            ends: EndCounts::default(),
            guesses: Vec::new(),
        }
    }

    #[test]
    fn numbers_with_names_must_have_the_same_ones() {
        let before = Names::of(&data(&["level", "mode=busy", "mode=idle"]));
        assert_eq!(before.difference(&data(&["level", "mode=busy", "mode=idle"])), None);
        let [found, expected] = before.difference(&data(&["level", "mode=busy", "mode=off"])).unwrap();
        assert!(found.contains("`mode=idle` as number 2 of its observations"), "{found}");
        assert!(expected.starts_with("`mode=off` as in the new data"), "{expected}");
        assert!(before.difference(&data(&["mode=busy", "level", "mode=idle"])).is_some());
        // Numbered names may be numbered differently.
        assert_eq!(before.difference(&data(&["obs[0]", "obs[1]", "obs[2]"])), None);
        assert_eq!(Names::of(&data(&["x0", "x1"])).difference(&data(&["obs_0", "obs_1"])), None);
    }
}

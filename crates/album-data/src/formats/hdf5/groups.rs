//! Files with one group per episode: `episode_N` in Minari, `data/demo_N` in robomimic.

use std::path::Path;

use hdf5_reader::error::Error;
use hdf5_reader::group::Group;

use super::arrays::arrays;
use super::{damaged, open};
use crate::error::{DataError, Place};
use crate::source::episodes::{EpisodeArrays, EpisodeStore, EpisodesTable};
use crate::source::log::{Facts, Field};

pub(crate) struct Groups {
    parent: Group,
    place: Place,
    /// In numeric order; sorted as strings, `episode_10` would come before `episode_2`.
    names: Vec<String>,
}

/// Opens a file whose episodes are the groups `{prefix}N` within the group `parent`.
pub(crate) fn table(
    path: &Path,
    parent: Option<&str>,
    prefix: &str,
    facts: Facts,
) -> Result<EpisodesTable<Groups>, DataError> {
    let place = Place::file(path);
    let error = |e: Error| damaged(&place, &e);
    let mut group = open(path)?.root_group().map_err(error)?;
    if let Some(parent) = parent {
        group = group.group(parent).map_err(error)?;
    }
    let (groups, _) = group.member_names().map_err(error)?;
    let number = |name: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
    let mut names: Vec<(u64, String)> =
        groups.into_iter().filter_map(|name| Some((number(&name)?, name))).collect();
    names.sort();
    let names: Vec<String> = names.into_iter().map(|(_, name)| name).collect();
    let Some(first) = names.first() else {
        return Err(DataError::WrongFileKind {
            place,
            found: "an HDF5 file without groups of episodes".to_owned(),
            expected: "groups episode_0, ... (Minari) or data/demo_0, ... (robomimic)",
        });
    };
    let mut facts = facts;
    let first = group.group(first).map_err(error)?;
    let fields = arrays(&first, &place, &mut facts.warnings)?.into_iter().map(|array| array.field).collect();
    Ok(EpisodesTable::new(Groups { parent: group, place: place.clone(), names }, place, fields, facts))
}

impl EpisodeStore for Groups {
    fn len(&self) -> usize {
        self.names.len()
    }

    fn name(&self, episode: usize) -> String {
        self.names.get(episode).cloned().unwrap_or_default()
    }

    fn read(&self, episode: usize, fields: &[&Field]) -> Result<EpisodeArrays, DataError> {
        let name = &self.names[episode];
        let place = self.place.array(name);
        let group = self.parent.group(name).map_err(|e| damaged(&place, &e))?;
        let all = arrays(&group, &self.place, &mut Vec::new())?;
        let is_action = |name: &str| name.to_lowercase().starts_with("act");
        let steps = all.iter().find(|array| is_action(&array.field.name)).map(|array| array.rows);
        let mut columns = Vec::new();
        for field in fields {
            let found = all.iter().find(|array| array.field.name == field.name);
            match found {
                Some(array) if array.field == **field => {
                    columns.push(array.read(0, array.rows, &self.place)?);
                }
                found => {
                    let show = |field: &Field| format!("{:?} of width {}", field.kind, field.width);
                    let found = found.map_or_else(|| "none".to_owned(), |array| show(&array.field));
                    return Err(DataError::Columns {
                        place: self.place.clone(),
                        problem: format!(
                            "array `{name}/{}`: found {found}, expected {} as in `{}`",
                            field.name.escape_debug(),
                            show(field),
                            self.names[0]
                        ),
                    });
                }
            }
        }
        let Some(steps) = steps else {
            let available = all.into_iter().map(|array| array.field.name).collect();
            return Err(DataError::Missing {
                place: self.place.array(&format!("{name}/actions")),
                available,
            });
        };
        Ok(EpisodeArrays { columns, steps, padded: false })
    }
}

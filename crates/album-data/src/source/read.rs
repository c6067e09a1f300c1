//! The whole pipeline, from files to a dataset.

use crate::action_space::ActionSpace;
use crate::dataset::{Dataset, take_in};
use crate::episodes::Episodes;
use crate::error::{DataError, Place};
use crate::formats::npz::log::ArraysTable;
use crate::load::checks::OnBad;
use crate::load::{Labels, Unchecked, load, load_unchecked};
use crate::source::describe::Finished;
use crate::source::lent::LentArray;
use crate::source::log::LogFile;
use crate::source::open::{self, Format};
use crate::source::opened::Opened;
use crate::source::sink::Memory;
use crate::source::{Description, Source};

pub(crate) fn read(source: &Source, on_bad: OnBad) -> Result<(Unchecked, Description), DataError> {
    let (format, files) = open::files(source)?;
    if format == Format::Columns {
        return read_columns(source, &files[0], on_bad);
    }
    open::by_types(format, |types| {
        let opened = Opened::new(source, format, open::tables(format, &files, types)?)?;
        gathered(source, &opened, on_bad)
    })
}

/// Like [`read`], for arrays in memory.
pub(crate) fn read_lent(
    source: &Source,
    arrays: &[LentArray<'_>],
    on_bad: OnBad,
) -> Result<(Unchecked, Description), DataError> {
    let table: Box<dyn LogFile + '_> = Box::new(ArraysTable::lent(arrays)?);
    gathered(source, &Opened::new(source, Format::Memory, vec![table])?, on_bad)
}

/// Reads all rows into memory.
fn gathered(
    source: &Source,
    opened: &Opened<'_>,
    on_bad: OnBad,
) -> Result<(Unchecked, Description), DataError> {
    let mut memory = Memory { action_dim: opened.layout.action_dim(), ..Memory::default() };
    let seen = opened.feed(&mut memory, on_bad)?;
    let finished = opened.finish(source, seen, on_bad)?;
    let Finished { space, description, warnings, bad } = finished;

    let episodes = Episodes::from_lengths(&memory.lengths);
    if episodes.transitions() == 0 {
        return Err(DataError::NoTransitions { place: opened.tables[0].place().clone() });
    }
    bring_inside(&space, &mut memory.actions, memory.lengths.iter().copied(), on_bad);
    let dims = [opened.layout.observation_dim(), opened.layout.action_dim()];
    let columns =
        [memory.observations.into(), memory.actions.into(), memory.rewards.into(), memory.masks.into()];
    let dataset = Dataset::from_columns(dims, columns, episodes).with_action_space(space);
    Ok((Unchecked { dataset, warnings, labelled: true, bad, unfinished: false }, description))
}

/// Converts actions from physical to internal units. The unused action in the last row of each episode stays
/// 0.
pub(crate) fn bring_inside(
    space: &ActionSpace,
    actions: &mut [f32],
    lengths: impl Iterator<Item = usize>,
    on_bad: OnBad,
) {
    let dim = space.dim();
    let mut at = 0;
    for length in lengths {
        let part = &mut actions[at * dim..(at + length) * dim];
        if on_bad == OnBad::Refuse {
            // Cannot fail: choices were checked when the action space was determined.
            let _ = take_in(space, part);
        } else {
            space.from_physical(part);
        }
        at += length + 1;
    }
}

/// Imported columns already are a dataset: no roles to find, no episodes to assemble.
fn read_columns(
    source: &Source,
    path: &std::path::Path,
    on_bad: OnBad,
) -> Result<(Unchecked, Description), DataError> {
    let said = Source { paths: source.paths.clone(), format: source.format, ..Source::default() };
    if source.paths.len() != 1 || *source != said {
        return Err(DataError::Undecided {
            place: Place::file(path),
            question: "found an imported folder together with other files or with options for columns, ends or actions; \
                       expected the folder alone: what it is was settled by its import"
                .to_owned(),
        });
    }
    let data = match on_bad {
        OnBad::Count => load_unchecked(path, Labels::Own)?,
        OnBad::Refuse => {
            let loaded = load(path, Labels::Own)?;
            Unchecked {
                dataset: loaded.dataset,
                warnings: loaded.warnings,
                labelled: true,
                bad: Vec::new(),
                unfinished: false,
            }
        }
    };
    let description = match crate::formats::columns::description(path)? {
        Some(description) => description,
        None => Description::of(&data.dataset, Format::Columns),
    };
    Ok((data, description))
}

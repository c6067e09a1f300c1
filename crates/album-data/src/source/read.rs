//! From files to a dataset.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::action_space::ActionSpace;
use crate::dataset::{Dataset, take_in};
use crate::episodes::Episodes;
use crate::error::{DataError, Place};
use crate::formats::npz::log::ArraysTable;
use crate::formats::table::Text;
use crate::load::checks::{BadNumbers, OnBad, Problem};
use crate::load::{Labels, Unchecked, load, load_unchecked};
use crate::parallel::visit_ahead;
use crate::source::assemble::{Assembler, Rules, Seen};
use crate::source::chunk::{Builder, Chunk, Layout};
use crate::source::columns::{Roles, is_sure_terminal};
use crate::source::lent::LentArray;
use crate::source::log::{END_STATE, EPISODE, Field, Kind, LogFile, Part, Stop, Values};
use crate::source::open::{self, Format};
use crate::source::sink::{Memory, Sink};
use crate::source::space::{decide, given_bounds, outside};
use crate::source::{Description, EndCounts, Source};

/// Texts in one column that are still categories.
const MAX_CATEGORIES: usize = 1000;

/// A source whose files are open and whose columns have a meaning.
pub(crate) struct Opened<'a> {
    pub format: Format,
    pub tables: Vec<Box<dyn LogFile + 'a>>,
    pub layout: Layout,
    pub rules: Rules,
    /// The types of the action's columns.
    action_kinds: Vec<Kind>,
    bounds: Option<ActionSpace>,
    known_space: Option<ActionSpace>,
    guesses: Vec<String>,
    warnings: Vec<String>,
}

pub(crate) fn read(source: &Source, on_bad: OnBad) -> Result<(Unchecked, Description), DataError> {
    let (format, files) = open::files(source)?;
    if format == Format::Columns {
        return read_columns(source, &files[0], on_bad);
    }
    let opened = Opened::new(source, format, open::tables(format, &files)?)?;
    gathered(source, &opened, on_bad)
}

/// [`read`] of arrays in memory.
pub(crate) fn read_lent(
    source: &Source,
    arrays: &[LentArray<'_>],
    on_bad: OnBad,
) -> Result<(Unchecked, Description), DataError> {
    let table: Box<dyn LogFile + '_> = Box::new(ArraysTable::lent(arrays)?);
    gathered(source, &Opened::new(source, Format::Memory, vec![table])?, on_bad)
}

/// All rows, in memory.
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

/// Actions from physical units to those inside; the unused ones behind each episode stay 0.
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
            // Choices were checked when the space was decided.
            let _ = take_in(space, part);
        } else {
            space.from_physical(part);
        }
        at += length + 1;
    }
}

/// A folder of columns is a dataset already.
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

impl Description {
    /// What can be said of a dataset whose columns have no names.
    pub fn of(data: &Dataset, format: Format) -> Self {
        let episodes = data.episodes();
        let terminal = (0..episodes.len()).filter(|&e| data.episode_masks(e).last() == Some(&0.0)).count();
        Self {
            format,
            observation_names: numbered("observations", data.observation_dim()),
            categories: BTreeMap::new(),
            action_space: data.action_space().clone(),
            action_names: numbered("actions", data.action_dim()),
            episodes: episodes.len(),
            ends: EndCounts { terminal, timeout: episodes.len() - terminal },
            guesses: Vec::new(),
        }
    }
}

fn numbered(name: &str, width: usize) -> Vec<String> {
    if width == 1 {
        return vec![name.to_owned()];
    }
    (0..width).map(|i| format!("{name}[{i}]")).collect()
}

/// What is known once all rows were seen.
pub(crate) struct Finished {
    pub space: ActionSpace,
    pub description: Description,
    pub warnings: Vec<String>,
    pub bad: Vec<BadNumbers>,
}

impl<'a> Opened<'a> {
    pub fn new(
        source: &Source,
        format: Format,
        tables: Vec<Box<dyn LogFile + 'a>>,
    ) -> Result<Self, DataError> {
        let Some(first) = tables.first() else {
            return Err(DataError::NoTransitions { place: Place::default() });
        };
        let mut roles =
            Roles::find(&source.columns, first.fields(), first.place(), source.reward_last.is_none())?;
        if source.reward_last.is_some() {
            roles.reward.clear();
        }
        let arrays = matches!(format, Format::Npz | Format::Npy | Format::Memory);
        if arrays
            && roles.mask.is_some()
            && roles.timeout.is_none()
            && roles.next_obs.is_empty()
            && roles.episode.is_none()
            && roles.end_state.is_none()
            && !roles.flags_said
        {
            // OGBench's layout: a row is a state, and masks say where the task was over.
            roles.end_state = roles.terminal.take();
        }
        let mut guesses = std::mem::take(&mut roles.guesses);
        let rules = rules(source, &roles, first.as_ref(), &mut guesses)?;
        check_widths(&roles, first.as_ref())?;
        let categories = categories(&roles, &tables)?;
        let mut layout = Layout::new(&roles, first.fields(), &categories);
        let facts = first.facts();
        layout.first_choice = facts.first_choice;
        let mut warnings = facts.warnings;
        warnings.extend(ignored(&roles, first.fields()));
        let action_kinds = roles.action.iter().map(|&i| first.fields()[i].kind).collect();
        let bounds = given_bounds(source, layout.action_dim(), first.place())?;
        let known_space = source.action_space.clone().or(facts.action_space);
        if let Some(space) = &known_space
            && space.dim() != layout.action_dim()
        {
            return Err(DataError::Columns {
                place: first.place().clone(),
                problem: format!(
                    "found actions of {} numbers, expected {} as the known action space says",
                    layout.action_dim(),
                    space.dim()
                ),
            });
        }
        Ok(Self { format, tables, layout, rules, action_kinds, bounds, known_space, guesses, warnings })
    }

    /// Sends all rows through the assembler, sorted first if they have to be.
    pub fn feed(&self, sink: &mut Memory, on_bad: OnBad) -> Result<Seen, DataError> {
        match self.stream(sink, on_bad) {
            Ok(seen) => Ok(seen),
            Err(Stop::Data(error)) => Err(error),
            Err(Stop::Enough) => Ok(Seen::default()),
            Err(Stop::Unsorted(error)) => {
                *sink = Memory { action_dim: sink.action_dim, ..Memory::default() };
                match self.sorted(sink, on_bad) {
                    Ok(seen) => Ok(seen),
                    Err(Stop::Data(error)) => Err(error),
                    // Still out of order: the first complaint says where.
                    Err(Stop::Unsorted(_) | Stop::Enough) => Err(error),
                }
            }
        }
    }

    /// Sends all rows through the assembler as they come.
    pub fn stream(&self, sink: &mut dyn Sink, on_bad: OnBad) -> Result<Seen, Stop> {
        let mut assembler = Assembler::new(&self.layout, self.rules, on_bad, sink, self.tables[0].as_ref());
        assembler.bounds = self.bounds.clone();
        let mut chunk = Chunk::default();
        for table in &self.tables {
            let table = table.as_ref();
            let builder = Builder::new(table, &self.layout);
            let mut fresh = true;
            visit_ahead(table, &self.columns_of(table)?, &mut |part| {
                if part.rows == 0 {
                    return Ok(());
                }
                let mut known = chunk.rows;
                builder.append(part, &mut chunk)?;
                if fresh {
                    if known > 0 && !goes_on(&chunk) {
                        assembler.row(&chunk, 0, None)?;
                        chunk.keep_from(1, &self.layout);
                        known = 0;
                    }
                    assembler.next_file(table);
                    fresh = false;
                }
                assembler.check(&chunk, known)?;
                for row in 0..chunk.rows - 1 {
                    assembler.row(&chunk, row, Some(row + 1))?;
                }
                chunk.keep_last(&self.layout);
                Ok(())
            })?;
        }
        if chunk.rows > 0 {
            assembler.row(&chunk, 0, None)?;
        }
        Ok(assembler.seen)
    }

    /// Reads each file as a whole and sorts its rows by episode and step. Episodes with names keep the order in which they
    /// begin.
    pub fn sorted(&self, sink: &mut dyn Sink, on_bad: OnBad) -> Result<Seen, Stop> {
        let mut seen: Option<Seen> = None;
        for table in &self.tables {
            let table = table.as_ref();
            let (builder, mut chunk) = (Builder::new(table, &self.layout), Chunk::default());
            table.visit(&self.columns_of(table)?, &mut |part| Ok(builder.append(part, &mut chunk)?))?;
            let mut order: Vec<usize> = (0..chunk.rows).collect();
            order.sort_by_key(|&row| (chunk.episodes.get(row), chunk.steps[row]));
            let sorted = chunk.permuted(&order, &self.layout);
            drop(chunk);
            let mut assembler = Assembler::new(&self.layout, self.rules, on_bad, &mut *sink, table);
            assembler.bounds = self.bounds.clone();
            assembler.order = Some(&order);
            if let Some(seen) = seen.take() {
                assembler.seen = seen;
            }
            assembler.check(&sorted, 0)?;
            for row in 0..sorted.rows {
                assembler.row(&sorted, row, Some(row + 1).filter(|&next| next < sorted.rows))?;
            }
            seen = Some(assembler.seen);
        }
        Ok(seen.unwrap_or_default())
    }

    /// The positions of the layout's columns in one of the files.
    fn columns_of(&self, table: &dyn LogFile) -> Result<Vec<usize>, DataError> {
        let first = self.tables[0].fields();
        let mut columns = Vec::new();
        for name in &self.layout.names {
            let expected = first.iter().find(|field| field.name == *name);
            let found = table.fields().iter().position(|field| field.name == *name);
            match (found, expected) {
                (Some(i), Some(expected)) if same_kind(&table.fields()[i], expected) => columns.push(i),
                (found, expected) => {
                    let show = |field: Option<&Field>| {
                        field.map_or_else(
                            || "none".to_owned(),
                            |field| format!("{:?} of width {}", field.kind, field.width),
                        )
                    };
                    return Err(DataError::Columns {
                        place: table.place().clone(),
                        problem: format!(
                            "column `{}`: found {}, expected {} as in {}",
                            name.escape_debug(),
                            show(found.map(|i| &table.fields()[i])),
                            show(expected),
                            self.tables[0].place()
                        ),
                    });
                }
            }
        }
        Ok(columns)
    }

    /// Decides what only all rows together tell.
    pub fn finish(&self, source: &Source, seen: Seen, on_bad: OnBad) -> Result<Finished, DataError> {
        let place = self.tables[0].place();
        let labels = match &self.layout.actions[..] {
            [slot] if slot.index => slot.categories.clone(),
            _ => None,
        };
        let known = self.known_space.as_ref();
        let (space, guess) =
            decide(source, &seen.actions, &self.action_kinds, labels.as_deref(), known, place)?;
        let mut guesses = self.guesses.clone();
        guesses.extend(guess);
        let mut warnings = self.warnings.clone();
        let mut bad = seen.bad;
        if source.action_bounds.is_empty()
            && known.is_some()
            && (outside(&space, &seen.actions.min).is_some() || outside(&space, &seen.actions.max).is_some())
        {
            warnings.push(
                "some actions lie outside the bounds of the known action space: they are clipped to it"
                    .to_owned(),
            );
        }
        if on_bad == OnBad::Count {
            bad.retain(|bad| bad.problem != Problem::OutOfRange || !source.action_bounds.is_empty());
        }
        if seen.dropped > 0 {
            warnings.push(format!(
                "{} transitions at timeouts or at the end of a recording are dropped: without next observations nobody \
                 knows where they led",
                seen.dropped
            ));
        }
        if seen.unflagged > 0 {
            warnings.push(format!("{} episodes end without a flag: taken as timeouts", seen.unflagged));
        }
        if let Some(first) = &seen.first_jump {
            warnings.push(format!(
                "in {} rows the next observation is not the observation of the next row, first in {first}: episodes are \
                 cut there, as by a timeout",
                seen.jumps
            ));
        }
        let description = Description {
            format: self.format,
            observation_names: self.names(&self.layout.observations),
            categories: self
                .layout
                .observations
                .iter()
                .filter_map(|slot| Some((self.layout.names[slot.column].clone(), slot.categories.clone()?)))
                .collect(),
            action_names: match labels {
                Some(labels) => labels,
                None => self.names(&self.layout.actions),
            },
            action_space: space.clone(),
            episodes: seen.ends.terminal + seen.ends.timeout,
            ends: seen.ends,
            guesses,
        };
        Ok(Finished { space, description, warnings, bad })
    }

    fn names(&self, slots: &[crate::source::chunk::Slot]) -> Vec<String> {
        let of_slot = |slot: &crate::source::chunk::Slot| {
            let name = &self.layout.names[slot.column];
            match &slot.categories {
                Some(categories) if !slot.index => categories.iter().map(|c| format!("{name}={c}")).collect(),
                _ => numbered(name, slot.width),
            }
        };
        slots.iter().flat_map(of_slot).collect()
    }
}

/// Whether the episode of the first row, the last one of a file, goes on in the next file: where its steps do.
fn goes_on(chunk: &Chunk) -> bool {
    !chunk.episodes.is_empty()
        && !chunk.steps.is_empty()
        && chunk.episodes[0] == chunk.episodes[1]
        && chunk.steps[1] == chunk.steps[0].wrapping_add(1)
}

/// Numbers may be of another width or type in another file; text and numbers are not the same.
fn same_kind(found: &Field, expected: &Field) -> bool {
    found.width == expected.width && (found.kind == Kind::Text) == (expected.kind == Kind::Text)
}

/// What the flags mean. Asks where the names do not tell.
fn rules(
    source: &Source,
    roles: &Roles,
    table: &dyn LogFile,
    guesses: &mut Vec<String>,
) -> Result<Rules, DataError> {
    let name = |field: Option<usize>| field.map(|i| table.fields()[i].name.clone());
    let undecided = |question: String| Err(DataError::Undecided { place: table.place().clone(), question });
    let (terminal, timeout) = (name(roles.terminal), name(roles.timeout));
    let sure = terminal.as_deref().is_some_and(is_sure_terminal);
    match (&terminal, &timeout, source.ends) {
        (Some(terminal), Some(timeout), Some(_)) => {
            return undecided(format!(
                "--ends is given, but `{terminal}` and `{timeout}` say what ends episodes; leave --ends out, or one of them \
                 with --columns {}",
                if sure { "timeout=" } else { "terminal=" }
            ));
        }
        (Some(terminal), None, None) if !sure && !roles.flags_said && roles.mask.is_none() => {
            return undecided(format!(
                "found one column of flags, `{terminal}`, and cannot tell whether the task was over there or the recording \
                 was cut; say which with --ends terminal or --ends timeout"
            ));
        }
        (None, None, None) if roles.mask.is_none() => guesses.push(
            "ends: timeouts, since no column says what ended episodes (--ends terminal if the task was over)"
                .to_owned(),
        ),
        _ => {}
    }
    if roles.episode.is_none()
        && roles.end_state.is_none()
        && terminal.is_none()
        && timeout.is_none()
        && roles.next_obs.is_empty()
    {
        guesses.push("episodes: one for each file, since no column tells them apart".to_owned());
    }
    // Beside a timeout a flag that marks any end says nothing new; one that marks terminals does.
    Ok(Rules { ends: source.ends, terminal_wins: sure, reward_last: source.reward_last })
}

fn check_widths(roles: &Roles, table: &dyn LogFile) -> Result<(), DataError> {
    let width = |all: &[usize]| all.iter().map(|&i| table.fields()[i].width).sum::<usize>();
    let (obs, next) = (width(&roles.obs), width(&roles.next_obs));
    if next > 0 && (next != obs || roles.next_obs.len() != roles.obs.len()) {
        return Err(DataError::Columns {
            place: table.place().clone(),
            problem: format!(
                "found next observations of {next} numbers, expected {obs} as observations have"
            ),
        });
    }
    for &i in &roles.reward {
        if table.fields()[i].width != 1 {
            return Err(DataError::Columns {
                place: table.place().clone(),
                problem: format!("found rewards of {} numbers, expected one", table.fields()[i].width),
            });
        }
    }
    Ok(())
}

/// The texts of every text column among observations and actions, sorted; those of next observations are shared.
fn categories(
    roles: &Roles,
    tables: &[Box<dyn LogFile + '_>],
) -> Result<HashMap<String, Vec<String>>, DataError> {
    let fields = tables[0].fields();
    let is_text = |i: &usize| fields[*i].kind == Kind::Text;
    // Names of columns with the same categories.
    let mut groups: Vec<Vec<String>> = Vec::new();
    for (position, &i) in roles.obs.iter().enumerate().filter(|(_, i)| is_text(i)) {
        let next = roles.next_obs.get(position);
        groups.push([Some(&i), next].into_iter().flatten().map(|&i| fields[i].name.clone()).collect());
    }
    if let [one] = roles.action[..]
        && is_text(&one)
    {
        groups.push(vec![fields[one].name.clone()]);
    }
    let mut all = HashMap::new();
    if groups.is_empty() {
        return Ok(all);
    }
    let mut found: Vec<BTreeSet<String>> = vec![BTreeSet::new(); groups.len()];
    for table in tables {
        let position = |name: &String| table.fields().iter().position(|field| field.name == *name);
        let mut wanted = Vec::new();
        let mut group_of = Vec::new();
        for (group, names) in groups.iter().enumerate() {
            for column in names.iter().filter_map(position) {
                wanted.push(column);
                group_of.push(group);
            }
        }
        let mut seen: Vec<usize> = vec![0; wanted.len()];
        let mut check = |part: Part| {
            for (i, values) in part.columns.iter().enumerate() {
                let (Values::Text(text), group) = (values, group_of[i]) else { continue };
                found[group].extend(text.categories.iter().skip(seen[i]).cloned());
                seen[i] = text.categories.len();
                if found[group].len() > MAX_CATEGORIES {
                    return Err(Stop::Data(DataError::Columns {
                        place: table.place().clone(),
                        problem: format!(
                            "column `{}`: found more than {MAX_CATEGORIES} different texts, expected categories; leave it out \
                             with --columns",
                            groups[group][0].escape_debug()
                        ),
                    }));
                }
                check_not_numbers(table.as_ref(), &groups[group][0], &part, text)?;
            }
            Ok(())
        };
        match table.visit(&wanted, &mut check) {
            Ok(()) | Err(Stop::Enough) => {}
            Err(Stop::Data(error) | Stop::Unsorted(error)) => return Err(error),
        }
    }
    for (names, texts) in groups.into_iter().zip(found) {
        let texts: Vec<String> = texts.into_iter().collect();
        for name in names {
            all.insert(name, texts.clone());
        }
    }
    Ok(all)
}

/// A column of numbers with a word among them is read as text, which nobody meant.
fn check_not_numbers(table: &dyn LogFile, column: &str, part: &Part, text: &Text) -> Result<(), DataError> {
    let is_number = |label: &String| label.parse::<f64>().is_ok();
    let numbers = text.categories.iter().filter(|label| is_number(label)).count();
    if 2 * numbers <= text.categories.len() {
        return Ok(());
    }
    let odd = text.codes.iter().position(|&code| !is_number(&text.categories[code as usize]));
    let Some(row) = odd else { return Ok(()) };
    let label: String = text.categories[text.codes[row] as usize].chars().take(60).collect();
    Err(DataError::Cell {
        place: Box::new(table.place().clone()),
        column: column.to_owned(),
        row: table.row_name(part.first_row + row),
        found: if label.is_empty() { "nothing".to_owned() } else { format!("`{}`", label.escape_debug()) },
        expected: "a number as in the other rows",
    })
}

/// A sentence on the columns that nobody reads.
fn ignored(roles: &Roles, fields: &[Field]) -> Option<String> {
    let names: Vec<&str> = roles
        .ignored
        .iter()
        .map(|&i| fields[i].name.as_str())
        .filter(|name| ![EPISODE, END_STATE].contains(name))
        .collect();
    if names.is_empty() {
        return None;
    }
    let shown: Vec<String> = names.iter().take(8).map(|name| format!("`{}`", name.escape_debug())).collect();
    let more = if names.len() > 8 { format!(" and {} more", names.len() - 8) } else { String::new() };
    Some(format!("columns that are not read: {}{more}", shown.join(", ")))
}

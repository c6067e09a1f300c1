//! A source with open files and known column roles, and the passes over its rows.

use crate::action_space::ActionSpace;
use crate::error::{DataError, Place};
use crate::load::checks::OnBad;
use crate::parallel::visit_ahead;
use crate::source::Source;
use crate::source::assemble::{Assembler, Rules, Seen};
use crate::source::builder::Builder;
use crate::source::categories::categories;
use crate::source::chunk::Chunk;
use crate::source::ends;
use crate::source::layout::Layout;
use crate::source::log::{END_STATE, EPISODE, Field, FieldType, LogFile, Stop};
use crate::source::open::Format;
use crate::source::roles::Roles;
use crate::source::sink::{Memory, Sink};
use crate::source::space::given_bounds;

/// A source with open files and known column roles.
pub(crate) struct Opened<'a> {
    pub format: Format,
    pub tables: Vec<Box<dyn LogFile + 'a>>,
    pub layout: Layout,
    pub rules: Rules,
    /// The types of the action columns.
    pub action_kinds: Vec<FieldType>,
    pub bounds: Option<ActionSpace>,
    pub known_space: Option<ActionSpace>,
    pub guesses: Vec<String>,
    pub warnings: Vec<String>,
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
            // OGBench's layout: every row is a state, `terminals` marks the last state of an episode, masks
            // mark termination.
            roles.end_state = roles.terminal.take();
        }
        let mut guesses = std::mem::take(&mut roles.guesses);
        let rules = ends::rules(source, &roles, first.as_ref(), &mut guesses)?;
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
                    "found actions of dimension {}, expected {} as the known action space says",
                    layout.action_dim(),
                    space.dim()
                ),
            });
        }
        Ok(Self { format, tables, layout, rules, action_kinds, bounds, known_space, guesses, warnings })
    }

    /// Sends all rows through the assembler; sorts them first if they are out of order.
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
                    // Still out of order after sorting: the first error names the row in the file.
                    Err(Stop::Unsorted(_) | Stop::Enough) => Err(error),
                }
            }
        }
    }

    /// Sends all rows through the assembler in file order.
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
                assembler.rows(&chunk)?;
                chunk.keep_last(&self.layout);
                Ok(())
            })?;
        }
        if chunk.rows > 0 {
            assembler.row(&chunk, 0, None)?;
        }
        Ok(assembler.seen)
    }

    /// Reads each file as a whole and sorts its rows by episode and step. Episodes with names stay in order
    /// of first appearance.
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
            assembler.rows(&sorted)?;
            if let Some(last) = sorted.rows.checked_sub(1) {
                assembler.row(&sorted, last, None)?;
            }
            seen = Some(assembler.seen);
        }
        Ok(seen.unwrap_or_default())
    }

    /// The positions of the layout's columns in one file.
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
}

/// Whether an episode continues across two files: row 0, the last row of the first file, and row 1 belong to
/// the same episode and have consecutive steps.
fn goes_on(chunk: &Chunk) -> bool {
    !chunk.episodes.is_empty()
        && !chunk.steps.is_empty()
        && chunk.episodes[0] == chunk.episodes[1]
        && chunk.steps[1] == chunk.steps[0].wrapping_add(1)
}

/// Files may differ in a column's numeric type, but not in its width, and must not mix text with numbers.
fn same_kind(found: &Field, expected: &Field) -> bool {
    found.width == expected.width && (found.kind == FieldType::Text) == (expected.kind == FieldType::Text)
}

fn check_widths(roles: &Roles, table: &dyn LogFile) -> Result<(), DataError> {
    let width = |all: &[usize]| all.iter().map(|&i| table.fields()[i].width).sum::<usize>();
    let (obs, next) = (width(&roles.obs), width(&roles.next_obs));
    if next > 0 && (next != obs || roles.next_obs.len() != roles.obs.len()) {
        return Err(DataError::Columns {
            place: table.place().clone(),
            problem: format!(
                "found next observations of dimension {next}, expected {obs} as observations have"
            ),
        });
    }
    for &i in &roles.reward {
        if table.fields()[i].width != 1 {
            return Err(DataError::Columns {
                place: table.place().clone(),
                problem: format!("found rewards of dimension {}, expected one", table.fields()[i].width),
            });
        }
    }
    Ok(())
}

/// A sentence that names the ignored columns.
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

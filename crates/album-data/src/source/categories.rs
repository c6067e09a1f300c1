//! The categories of text columns.

use std::collections::{BTreeSet, HashMap};

use crate::error::DataError;
use crate::formats::table::Text;
use crate::source::log::{FieldType, LogFile, Part, Stop, Values};
use crate::source::roles::Roles;

/// Maximum number of categories of a column.
const MAX_CATEGORIES: usize = 1000;

/// The sorted categories of every text column among observations and actions. A next-observation column
/// shares those of its observation column.
pub(crate) fn categories(
    roles: &Roles,
    tables: &[Box<dyn LogFile + '_>],
) -> Result<HashMap<String, Vec<String>>, DataError> {
    let fields = tables[0].fields();
    let is_text = |i: &usize| fields[*i].kind == FieldType::Text;
    // Columns in a group share their categories.
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

/// Refuses a text column that is mostly numbers: a stray word turned a numeric column into text.
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

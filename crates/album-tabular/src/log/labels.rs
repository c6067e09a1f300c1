//! Labels and their codes, for one column and for several columns combined into a state.

use album_data::table::{ColumnData, Text};
use std::sync::Arc;

use super::{MISSING_STATE, Source};
use crate::TabularError;
use crate::empirical::Ranks;

/// The code of a missing value.
const MISSING: i64 = i64::MIN;

/// The distinct values of a column, ascending.
#[derive(Debug)]
pub(crate) struct Labels {
    pub name: String,
    keys: Vec<i64>,
    kind: LabelKind,
}

/// What a key represents.
#[derive(Debug)]
enum LabelKind {
    Bool,
    Int,
    Float,
    /// An index into these strings.
    Text(Vec<String>),
}

impl Labels {
    /// The labels of a column, and the code of each row. No value may be missing.
    pub fn of_column(
        source: &Source<'_>,
        name: &str,
        bins: Option<usize>,
    ) -> Result<(Self, Vec<u32>), TabularError> {
        let (labels, codes, _) = Self::of_columns(source, name, None, bins)?;
        Ok((labels, codes))
    }

    /// The labels of a column and of its counterpart one step later, in which values may be missing.
    pub fn of_columns(
        source: &Source<'_>,
        name: &str,
        later: Option<&str>,
        bins: Option<usize>,
    ) -> Result<(Self, Vec<u32>, Vec<u32>), TabularError> {
        let (kind, keys, later_keys) = match bins {
            Some(bins) => binned(source, name, later, bins)?,
            None => plain(source, name, later)?,
        };
        if let Some(row) = keys.iter().position(|&key| key == MISSING) {
            return Err(source.table.bad_value(name, row, "", "a value in every row").into());
        }
        let lowest = keys.iter().chain(&later_keys).copied().filter(|&key| key != MISSING).min().unwrap_or(0);
        let highest = keys.iter().chain(&later_keys).copied().max().unwrap_or(0);
        let both = Both { first: &keys, second: &later_keys, instead: lowest, at: 0 };
        let ranks = Ranks::within(lowest, highest, both);
        let code = |&key: &i64| if key == MISSING { MISSING_STATE } else { ranks.of_present(key) };
        let (codes, later) = (keys.iter().map(code).collect(), later_keys.iter().map(code).collect());
        Ok((Self { name: name.to_owned(), keys: ranks.labels, kind }, codes, later))
    }

    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The labels, if they are integers.
    pub fn integers(&self) -> Option<&[i64]> {
        matches!(self.kind, LabelKind::Int).then_some(&self.keys)
    }

    /// A label as text.
    pub fn text(&self, code: usize) -> String {
        match (&self.kind, self.keys[code]) {
            (LabelKind::Bool, key) => (key == 1).to_string(),
            (LabelKind::Int, key) => key.to_string(),
            (LabelKind::Float, key) => format!("{:?}", float(key)),
            (LabelKind::Text(labels), key) => labels[key as usize].clone(),
        }
    }

    /// These labels as a column of a table.
    pub fn column(&self, codes: impl Iterator<Item = usize>) -> ColumnData {
        let mut keys = codes.map(|code| self.keys[code]);
        match &self.kind {
            LabelKind::Bool => ColumnData::Bool(keys.map(|key| key == 1).collect()),
            LabelKind::Int => ColumnData::Int(keys.collect()),
            LabelKind::Float => ColumnData::Float(keys.map(float).collect()),
            LabelKind::Text(labels) => ColumnData::Text(Text {
                codes: keys.by_ref().map(|key| key as u32).collect(),
                categories: Arc::new(labels.clone()),
            }),
        }
    }
}

/// The keys of two columns, one after the other, with a placeholder for missing ones.
#[derive(Clone)]
struct Both<'a> {
    first: &'a [i64],
    second: &'a [i64],
    instead: i64,
    at: usize,
}

impl Iterator for Both<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let key = self.first.get(self.at).or_else(|| self.second.get(self.at - self.first.len()))?;
        self.at += 1;
        Some(if *key == MISSING { self.instead } else { *key })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.first.len() + self.second.len() - self.at;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Both<'_> {}

type Keys = (LabelKind, Vec<i64>, Vec<i64>);

/// Values as they are.
fn plain(source: &Source<'_>, name: &str, later: Option<&str>) -> Result<Keys, TabularError> {
    let column = source.column(name)?;
    source.refuse_lists(name, &column)?;
    let second = later.map(|later| source.column(later)).transpose()?;
    let (Some(second), Some(later)) = (second, later) else {
        return Ok(match column {
            ColumnData::Text(text) => {
                let (labels, order) = sorted(&text.categories, &[]);
                (
                    LabelKind::Text(labels),
                    text.codes.iter().map(|&code| order[code as usize]).collect(),
                    Vec::new(),
                )
            }
            ColumnData::Int(keys) => (LabelKind::Int, keys, Vec::new()),
            ColumnData::Bool(flags) => {
                (LabelKind::Bool, flags.into_iter().map(i64::from).collect(), Vec::new())
            }
            column => (LabelKind::Float, float_keys(&column.numbers().unwrap_or_default()), Vec::new()),
        });
    };
    source.refuse_lists(later, &second)?;
    match (&column, &second) {
        (ColumnData::Text(first), ColumnData::Text(second)) => {
            let (labels, order) = sorted(&first.categories, &second.categories);
            let known = first.categories.len();
            let key = |shift: usize| {
                let (order, labels) = (&order, &labels);
                // An empty successor is missing, unless a state has that label.
                move |&code: &u32| match order[code as usize + shift] {
                    key if shift > 0
                        && labels[key as usize].is_empty()
                        && !first.categories.contains(&String::new()) =>
                    {
                        MISSING
                    }
                    key => key,
                }
            };
            let keys = first.codes.iter().map(key(0)).collect();
            let later = second.codes.iter().map(key(known)).collect();
            Ok((LabelKind::Text(labels), keys, later))
        }
        (ColumnData::Int(first), ColumnData::Int(second)) => {
            Ok((LabelKind::Int, first.clone(), second.clone()))
        }
        (ColumnData::Bool(first), ColumnData::Bool(second)) => {
            let keys = |flags: &[bool]| flags.iter().map(|&flag| i64::from(flag)).collect();
            Ok((LabelKind::Bool, keys(first), keys(second)))
        }
        _ => {
            // Integer columns are read as floats if some successors are missing.
            let first = column.numbers().map_err(|row| source.bad(name, row, &column, "a number"))?;
            let numbers = second.numbers().map_err(|row| source.bad(later, row, &second, "a number"))?;
            let whole = matches!(column, ColumnData::Int(_));
            if whole && numbers.iter().all(|x| x.is_nan() || (x.fract() == 0.0 && x.abs() < 9e15)) {
                let int = |x: &f64| if x.is_nan() { MISSING } else { *x as i64 };
                return Ok((
                    LabelKind::Int,
                    first.iter().map(int).collect(),
                    numbers.iter().map(int).collect(),
                ));
            }
            Ok((LabelKind::Float, float_keys(&first), float_keys(&numbers)))
        }
    }
}

/// Numbers by the quantile bin that they fall into. Bins have equally many rows, as far as ties allow.
fn binned(source: &Source<'_>, name: &str, later: Option<&str>, bins: usize) -> Result<Keys, TabularError> {
    let numbers = source.numbers(name)?;
    let mut ascending: Vec<f64> = numbers.iter().copied().filter(|x| !x.is_nan()).collect();
    ascending.sort_unstable_by(f64::total_cmp);
    let rows = ascending.len();
    let mut edges: Vec<f64> = (1..bins).filter_map(|i| ascending.get(i * rows / bins).copied()).collect();
    edges.dedup();
    edges.retain(|&edge| ascending.first().is_some_and(|&lowest| edge > lowest));
    drop(ascending);
    let key = |&x: &f64| if x.is_nan() { MISSING } else { edges.partition_point(|&edge| edge <= x) as i64 };
    let keys = numbers.iter().map(key).collect();
    let later = match later {
        Some(later) => source.numbers(later)?.iter().map(key).collect(),
        None => Vec::new(),
    };
    let label = |i: usize| match (i.checked_sub(1).map(|i| edges[i]), edges.get(i)) {
        (None, None) => "any".to_owned(),
        (None, Some(high)) => format!("< {high}"),
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!(">= {low}"),
    };
    Ok((LabelKind::Text((0..=edges.len()).map(label).collect()), keys, later))
}

/// The distinct labels of two lists, ascending, and the index of each entry of both.
fn sorted(first: &[String], second: &[String]) -> (Vec<String>, Vec<i64>) {
    let mut labels: Vec<&String> = first.iter().chain(second).collect();
    labels.sort_unstable();
    labels.dedup();
    let place = |label: &String| labels.partition_point(|&known| known < label) as i64;
    let order = first.iter().chain(second).map(place).collect();
    (labels.into_iter().cloned().collect(), order)
}

/// Integer keys in the order of the numbers.
fn float_keys(numbers: &[f64]) -> Vec<i64> {
    let key = |x: f64| {
        let bits = (x + 0.0).to_bits() as i64;
        if bits < 0 { bits ^ i64::MAX } else { bits }
    };
    numbers.iter().map(|&x| if x.is_nan() { MISSING } else { key(x) }).collect()
}

fn float(key: i64) -> f64 {
    f64::from_bits(if key < 0 { key ^ i64::MAX } else { key } as u64)
}

/// Several columns combined into one state.
#[derive(Debug, Default)]
pub(crate) struct States {
    pub columns: Vec<Labels>,
    /// For each column after the first: the components of each combined state, as `before * labels + label`.
    folds: Vec<Vec<i64>>,
    /// The state of each row.
    pub current: Vec<u32>,
    /// The successor of each row, if the log has one.
    pub next: Vec<u32>,
}

impl States {
    pub fn add(
        &mut self,
        source: &Source<'_>,
        name: &str,
        later: Option<&str>,
        bins: Option<usize>,
    ) -> Result<(), TabularError> {
        let (labels, codes, later) = Labels::of_columns(source, name, later, bins)?;
        if self.columns.is_empty() {
            (self.current, self.next) = (codes, later);
        } else {
            let width = labels.count() as i64;
            let number = |(&state, &code): (&u32, &u32)| match state == MISSING_STATE || code == MISSING_STATE
            {
                true => MISSING,
                false => i64::from(state) * width + i64::from(code),
            };
            let keys: Vec<i64> = self.current.iter().zip(&codes).map(number).collect();
            let later: Vec<i64> = self.next.iter().zip(&later).map(number).collect();
            let both =
                Both { first: &keys, second: &later, instead: keys.first().copied().unwrap_or(0), at: 0 };
            let ranks = Ranks::within(0, self.count() as i64 * width - 1, both);
            let code = |&key: &i64| if key == MISSING { MISSING_STATE } else { ranks.of_present(key) };
            self.current = keys.iter().map(code).collect();
            self.next = later.iter().map(code).collect();
            self.folds.push(ranks.labels);
        }
        self.columns.push(labels);
        Ok(())
    }

    pub fn count(&self) -> usize {
        self.folds.last().map_or_else(|| self.columns.first().map_or(0, Labels::count), Vec::len)
    }

    /// The label codes of a state, one per column.
    pub fn codes(&self, state: usize) -> Vec<usize> {
        let mut codes = vec![0; self.columns.len()];
        let mut state = state;
        for i in (1..self.columns.len()).rev() {
            let (number, width) = (self.folds[i - 1][state], self.columns[i].count() as i64);
            codes[i] = (number % width) as usize;
            state = (number / width) as usize;
        }
        codes[0] = state;
        codes
    }
}

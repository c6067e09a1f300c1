//! Reading whole columns, or tables part by part.

use super::data::{ColumnData, ColumnType, Dictionary, concatenate};
use super::parquet::{Chunk, ParquetFile};
use super::{Source, Table, TableFile};
use crate::error::DataError;
use crate::parallel::parallel;

/// Consecutive rows of a table.
#[derive(Debug)]
pub struct Part {
    /// The index of its first row in the table.
    pub first: usize,
    /// The requested columns, in the order of the request, all of the same length.
    pub columns: Vec<ColumnData>,
}

impl Table {
    /// Reads columns. Parquet column chunks are decoded in parallel.
    pub fn read(&self, names: &[&str]) -> Result<Vec<ColumnData>, DataError> {
        let wanted = names.iter().map(|name| self.find(name)).collect::<Result<Vec<_>, _>>()?;
        let mut parts: Vec<Vec<ColumnData>> = wanted.iter().map(|_| Vec::new()).collect();
        for file in &self.files {
            match &file.source {
                Source::Csv(csv) => {
                    let columns: Vec<(usize, ColumnType)> =
                        wanted.iter().map(|&i| (file.positions[i], self.kinds[i])).collect();
                    let mut data: Vec<ColumnData> = columns
                        .iter()
                        .map(|&(_, kind)| ColumnData::empty(kind, csv.rows().unwrap_or(0)))
                        .collect();
                    let mut dictionaries: Vec<Dictionary> =
                        columns.iter().map(|_| Dictionary::default()).collect();
                    csv.reader(&columns)?.read(usize::MAX, &mut data, &mut dictionaries)?;
                    for (parts, data) in parts.iter_mut().zip(data) {
                        parts.push(data);
                    }
                }
                Source::Parquet(parquet) => {
                    let positions: Vec<usize> = wanted.iter().map(|&i| file.positions[i]).collect();
                    for (parts, chunks) in parts.iter_mut().zip(read_parquet(parquet, &positions)?) {
                        parts.extend(chunks);
                    }
                }
                Source::Npz(npz) => {
                    for (parts, &i) in parts.iter_mut().zip(&wanted) {
                        parts.push(npz.read(file.positions[i])?);
                    }
                }
            }
        }
        let mut columns = Vec::with_capacity(wanted.len());
        for (&i, parts) in wanted.iter().zip(&mut parts) {
            let parts = std::mem::take(parts);
            let whole = match parts.len() {
                1 => parts.into_iter().map(|part| part.widen(self.kinds[i])).collect::<Vec<_>>().remove(0),
                _ => concatenate(self.kinds[i], parts).map_err(|(row, before, found)| {
                    let found = format!("a list of {found} after lists of {before}");
                    self.bad_value(&self.names[i], row, found, "lists of one length")
                })?,
            };
            columns.push(whole);
        }
        Ok(columns)
    }

    /// Visits columns in order, in parts of at most `rows` rows. Memory use is constant, except that npz
    /// arrays are loaded as a whole. Text codes are consistent across parts.
    pub fn visit<E: From<DataError>>(
        &self,
        names: &[&str],
        rows: usize,
        mut visit: impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        let wanted = names.iter().map(|name| self.find(name)).collect::<Result<Vec<_>, _>>()?;
        let mut dictionaries: Vec<Dictionary> = wanted.iter().map(|_| Dictionary::default()).collect();
        let mut widths = vec![0; wanted.len()];
        for file in &self.files {
            let mut first = file.first;
            let mut hand_over = |mut columns: Vec<ColumnData>| {
                for (i, column) in columns.iter_mut().enumerate() {
                    *column =
                        std::mem::replace(column, ColumnData::Bool(Vec::new())).widen(self.kinds[wanted[i]]);
                    if let ColumnData::List(lists) = column {
                        if widths[i] != 0 && widths[i] != lists.width {
                            let found = format!("a list of {} after lists of {}", lists.width, widths[i]);
                            return Err(self.bad_value(names[i], first, found, "lists of one length").into());
                        }
                        widths[i] = lists.width;
                    }
                }
                let part = Part { first, columns };
                first += part.columns.first().map_or(0, ColumnData::len);
                visit(part)
            };
            match &file.source {
                Source::Csv(csv) => {
                    let columns: Vec<(usize, ColumnType)> =
                        wanted.iter().map(|&i| (file.positions[i], self.kinds[i])).collect();
                    let mut reader = csv.reader(&columns)?;
                    let capacity = csv.rows().map_or(rows, |all| all.min(rows));
                    loop {
                        let mut data: Vec<ColumnData> =
                            columns.iter().map(|&(_, kind)| ColumnData::empty(kind, capacity)).collect();
                        if reader.read(rows, &mut data, &mut dictionaries)? == 0 {
                            break;
                        }
                        hand_over(data)?;
                    }
                }
                Source::Parquet(parquet) => {
                    visit_parquet(parquet, file, &wanted, rows, &mut dictionaries, &mut hand_over)?;
                }
                Source::Npz(npz) => {
                    let read = |&i: &usize| npz.read(file.positions[i]);
                    let whole = wanted.iter().map(read).collect::<Result<Vec<_>, _>>()?;
                    for start in (0..npz.rows()).step_by(rows) {
                        let end = npz.rows().min(start + rows);
                        hand_over(whole.iter().map(|column| column.rows(start..end)).collect())?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads the chunks of each column, in the order of the row groups.
fn read_parquet(file: &ParquetFile, columns: &[usize]) -> Result<Vec<Vec<ColumnData>>, DataError> {
    let groups = file.groups().len();
    let chunks = parallel(columns.len() * groups, |i| {
        let (column, group) = (columns[i / groups], i % groups);
        let rows = file.groups()[group];
        let mut data = ColumnData::empty(file.columns()[column].1, rows);
        file.chunk(group, column)?.read(rows, &mut data, &mut Dictionary::default())?;
        Ok(data)
    })?;
    let mut chunks = chunks.into_iter();
    Ok(columns.iter().map(|_| chunks.by_ref().take(groups).collect()).collect())
}

fn visit_parquet<E: From<DataError>>(
    parquet: &ParquetFile,
    file: &TableFile,
    wanted: &[usize],
    rows: usize,
    dictionaries: &mut [Dictionary],
    hand_over: &mut impl FnMut(Vec<ColumnData>) -> Result<(), E>,
) -> Result<(), E> {
    for (group, &group_rows) in parquet.groups().iter().enumerate() {
        let mut chunks: Vec<Chunk<'_>> =
            wanted.iter().map(|&i| parquet.chunk(group, file.positions[i])).collect::<Result<_, _>>()?;
        let mut done = 0;
        while done < group_rows {
            let portion = rows.min(group_rows - done);
            let mut data = Vec::with_capacity(wanted.len());
            for (i, chunk) in chunks.iter_mut().enumerate() {
                let kind = parquet.columns()[file.positions[wanted[i]]].1;
                let mut column = ColumnData::empty(kind, portion);
                chunk.read(portion, &mut column, &mut dictionaries[i])?;
                data.push(column);
            }
            hand_over(data)?;
            done += portion;
        }
    }
    Ok(())
}

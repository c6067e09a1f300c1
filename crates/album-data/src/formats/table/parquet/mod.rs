//! Parquet files, read by column chunk.

mod column;
mod file;
mod headers;
mod schema;

use std::path::Path;
use std::sync::Arc;

use parquet::column::page::PageReader;
use parquet::column::reader::get_column_reader;
use parquet::file::metadata::ParquetStatisticsPolicy;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};

use self::file::{Positioned, check_footer, check_pages, damaged, guarded, limit};
use self::schema::{kind, name};
use super::data::ColumnType;
use super::pages::Guard;
use crate::error::{DataError, Place};
use crate::formats::file::open_regular;
use crate::limits::Limits;

pub(super) use column::Chunk;

/// An open Parquet file.
pub(super) struct ParquetFile {
    reader: SerializedFileReader<Positioned>,
    file: Positioned,
    place: Place,
    limits: Limits,
    columns: Vec<(String, ColumnType)>,
    /// Number of rows of each row group.
    groups: Vec<usize>,
}

impl ParquetFile {
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        let place = Place::file(path);
        let (file, size) = open_regular(path)?;
        check_footer(&file, size, &place)?;
        let options = ReadOptionsBuilder::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .build();
        let file = Positioned { file: Arc::new(file), size };
        let reader = guarded(&place, || SerializedFileReader::new_with_options(file.clone(), options))?;
        let metadata = reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        limit(&place, "the number of columns", schema.num_columns() as u64, limits.max_columns)?;
        let columns: Vec<(String, ColumnType)> =
            schema.columns().iter().map(|c| (name(schema.root_schema(), c), kind(c))).collect();
        let groups = metadata
            .row_groups()
            .iter()
            .map(|group| {
                usize::try_from(group.num_rows()).map_err(|_| damaged(&place, "a negative number of rows"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let rows = groups.iter().try_fold(0u64, |sum, &rows| sum.checked_add(rows as u64));
        let rows = rows.ok_or_else(|| damaged(&place, "more rows than can be counted"))?;
        limit(&place, "the number of rows", rows, limits.max_array_bytes / 8)?;
        Ok(Self { reader, file, place, limits: limits.clone(), columns, groups })
    }

    pub(super) fn columns(&self) -> &[(String, ColumnType)] {
        &self.columns
    }

    pub(super) fn rows(&self) -> usize {
        self.groups.iter().sum()
    }

    /// Number of rows of each row group.
    pub(super) fn groups(&self) -> &[usize] {
        &self.groups
    }

    /// Opens one column of one row group.
    pub(super) fn chunk(&self, group: usize, column: usize) -> Result<Chunk<'_>, DataError> {
        let (name, kind) = &self.columns[column];
        if let ColumnType::Other(what) = kind {
            return Err(DataError::Column {
                place: self.place.clone(),
                column: name.clone(),
                problem: format!("holds {what}, expected flags, numbers, text or lists of numbers"),
            });
        }
        let metadata = self.reader.metadata().row_group(group).column(column);
        let rows = self.groups[group];
        let dictionary = metadata.dictionary_page_offset().unwrap_or(0);
        if metadata.data_page_offset().min(metadata.compressed_size()).min(dictionary) < 0 {
            return Err(damaged(&self.place, format!("column `{name}` starts or ends before the file")));
        }
        let values = u64::try_from(metadata.num_values()).unwrap_or(0);
        if *kind != ColumnType::List && values != rows as u64 {
            let problem = format!("column `{name}` has {values} values in a group of {rows} rows");
            return Err(damaged(&self.place, problem));
        }
        limit(&self.place, "the size of a column", values.saturating_mul(8), self.limits.max_array_bytes)?;
        let inflated = u64::try_from(metadata.uncompressed_size()).unwrap_or(u64::MAX);
        let inflated = inflated.max(self.limits.ratio_free_bytes);
        guarded(&self.place, || {
            let (start, length) = metadata.byte_range();
            check_pages(&self.file, start, length, inflated)
        })?;
        let reader = guarded(&self.place, || {
            let pages = self.reader.get_row_group(group)?.get_column_page_reader(column)?;
            let pages = Box::new(Guard::new(pages, values, inflated)) as Box<dyn PageReader>;
            Ok(get_column_reader(metadata.column_descr_ptr(), pages))
        })?;
        Ok(Chunk {
            file: self,
            reader,
            column,
            descriptor: metadata.column_descr_ptr(),
            row: self.groups[..group].iter().sum(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
        })
    }
}

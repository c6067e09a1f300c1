//! The output files of a command: figures, tables, and the measured cost of a step.

use crate::cost::Costs;
use crate::error::ReportError;
use album_base::files::{self, Links};
use album_plot::Figure;
use album_report::table::Table;
use std::path::{Path, PathBuf};

/// The figures and tables of a folder by file name without extension, in alphabetical order.
pub(crate) struct Outputs {
    pub figures: Vec<(String, Figure)>,
    pub tables: Vec<(String, Vec<Vec<String>>)>,
    pub costs: Option<Costs>,
}

/// Reads the `.svg` and `.csv` files of a folder, and `cost.json`; empty if there is no folder yet.
pub(crate) fn read(folder: &Path) -> Result<Outputs, ReportError> {
    let mut outputs = Outputs { figures: Vec::new(), tables: Vec::new(), costs: None };
    if !folder.exists() {
        return Ok(outputs);
    }
    let entries = std::fs::read_dir(folder).map_err(ReportError::io(folder))?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(ReportError::io(folder))?.path());
    }
    paths.sort();
    for path in paths {
        let name = path.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
        let text =
            || files::read_text(&path, Links::Refuse, files::LONGEST_TEXT).map_err(ReportError::io(&path));
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => {
                let figure = Figure::parse(&text()?).ok_or_else(|| ReportError::Figure(path.clone()))?;
                outputs.figures.push((name, figure));
            }
            Some("csv") => {
                let text = text()?;
                let mut reader =
                    csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
                match reader.deserialize().collect::<Result<_, _>>() {
                    Ok(rows) => outputs.tables.push((name, rows)),
                    Err(e) => return Err(ReportError::io(&path)(e.into())),
                }
            }
            Some("json") if name == "cost" => {
                let costs = serde_json::from_str(&text()?);
                outputs.costs = Some(costs.map_err(|e| ReportError::io(&path)(e.into()))?);
            }
            _ => {}
        }
    }
    Ok(outputs)
}

/// A table of a file as it is. Long texts wrap.
pub(crate) fn table(rows: &[Vec<String>], caption: &str) -> Table {
    let header = rows.first().cloned().unwrap_or_default();
    let mut table = Table::new(header.clone()).caption(caption);
    for column in 0..header.len() {
        let longest = rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max();
        if longest.unwrap_or(0) > 50 {
            table = table.wrap(column, 60);
        }
    }
    rows.iter().skip(1).fold(table, |table, row| table.row(row.clone()))
}

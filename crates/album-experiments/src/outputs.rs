//! What a command left in its folder: figures and tables, and the published cost beside the measured one.

use crate::error::ReportError;
use crate::published::{Published, Row};
use crate::reference::methods;
use crate::tables::Made;
use album_base::number::{compact, fixed};
use album_plot::Figure;
use album_report::table::{Align, Cell as Entry, Table};
use std::path::{Path, PathBuf};

/// The figures and tables of a folder, by their files' names without ending, in alphabetical order.
pub(crate) struct Outputs {
    pub figures: Vec<(String, Figure)>,
    pub tables: Vec<(String, Vec<Vec<String>>)>,
}

/// Reads the files of a folder that end in `.svg` and `.csv`; nothing if there is no folder yet.
pub(crate) fn read(folder: &Path) -> Result<Outputs, ReportError> {
    let mut outputs = Outputs { figures: Vec::new(), tables: Vec::new() };
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
        let text = || std::fs::read_to_string(&path).map_err(ReportError::io(&path));
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => {
                let figure = Figure::parse(&text()?).ok_or_else(|| ReportError::Figure(path.clone()))?;
                outputs.figures.push((name, figure));
            }
            Some("csv") => outputs.tables.push((name, fields(&text()?))),
            _ => {}
        }
    }
    Ok(outputs)
}

/// The lines of a CSV file (RFC 4180).
fn fields(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            letter => field.push(letter),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows
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

/// What is measured in `cost.csv` of `album bench cost`: its column, the published metric, the published unit in its
/// units, and whether hardware matters.
const COSTS: [(&str, &str, f64, bool); 5] = [
    ("parameters", "parameters", 1e6, false),
    ("GFLOP/step", "flops", 1.0, false),
    ("Q/V nets", "value_networks", 1.0, false),
    ("ms/step", "time", 1.0, true),
    ("peak MiB", "peak_memory", 1.0, true),
];
/// What times and memory are relative to.
const BASE: &str = "ALBUM";

/// Measured and published cost by method. What depends on hardware is relative to ALBUM on the same hardware.
pub(crate) fn cost(rows: &[Vec<String>], published: &Published) -> Option<Made> {
    let header = rows.first()?;
    let column = |name: &str| header.iter().position(|found| found == name);
    let agents = column("agent")?;
    let methods = methods();
    let measured = |agent: &str, name: &str| -> Option<f64> {
        let row = rows.iter().skip(1).find(|row| row.get(agents).is_some_and(|found| found == agent))?;
        row.get(column(name)?)?.replace(',', "").parse().ok()
    };
    let base_agent = methods.iter().find(|(_, method)| *method == BASE)?.0;
    let all = published.rows("cost").ok()?;
    let given = |method: &str, setting: &str, metric: &str| -> Option<f64> {
        let same = |row: &&Row| row.method == method && row.setting == setting && row.metric == metric;
        all.iter().find(same).map(|row| row.mean)
    };
    let mut names = vec!["method".to_owned()];
    for (name, _, _, hardware) in COSTS {
        let name = if hardware { format!("{name} / {BASE}'s") } else { name.to_owned() };
        names.extend([format!("{name}, measured"), "published".to_owned()]);
    }
    let align = std::iter::once(Align::Left).chain([Align::Right; 10]);
    let mut table = Table::new(names).align(align).caption(format!(
        "Cost of a gradient step at antmaze-large sizes beside the paper's. Times and memory depend on the machine, so they \
         are given relative to {BASE} on the same machine: here a processor, in the paper a graphics card."
    ));
    let mut data = Table::new([
        "method",
        "setting",
        "metric",
        "measured",
        "published",
        "measured_relative",
        "published_relative",
    ]);
    for row in rows.iter().skip(1) {
        let Some(agent) = row.get(agents) else { continue };
        let Some(method) = methods.get(agent.trim_end_matches('*')) else { continue };
        let setting = if agent.ends_with('*') { "actor_every=1" } else { "" };
        let label =
            if setting.is_empty() { method.clone() } else { format!("{method}, actor at every step") };
        let mut cells = vec![Entry::new(label)];
        for (name, metric, unit, hardware) in COSTS {
            let here = measured(agent, name);
            let there = given(method, setting, metric).map(|value| value * unit);
            let relative = |value: Option<f64>, base: Option<f64>| Some(value? / base?);
            let here_relative = relative(here, measured(base_agent, name));
            let there_relative = relative(there, given(BASE, "", metric).map(|value| value * unit));
            let shown = |value: Option<f64>| match value {
                None => Entry::from("–"),
                Some(value) if metric == "parameters" => Entry::new(format!("{} M", fixed(value / 1e6, 2))),
                Some(value) => Entry::new(compact(value)),
            };
            cells.extend(if hardware {
                [shown(here_relative), shown(there_relative)]
            } else {
                [shown(here), shown(there)]
            });
            data = data.row([
                Entry::new(&**method),
                Entry::new(setting),
                Entry::new(metric),
                here.into(),
                there.into(),
                here_relative.into(),
                there_relative.into(),
            ]);
        }
        table = table.row(cells);
    }
    (!table.is_empty()).then_some(Made { name: "cost", table, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_understood() {
        assert_eq!(fields("a,\"b,\"\"c\nd,\""), [vec!["a", "b,\"c\nd,"]]);
        assert_eq!(fields("a,\"1,200\"\r\n,x\n"), [vec!["a", "1,200"], vec!["", "x"]]);
    }

    #[test]
    fn cost_is_held_against_the_paper() {
        let text = "agent,parameters,GFLOP/step,ms/step,Q/V nets,peak MiB\n\
                    album,\"2,430,000\",3,10,2,50\nrebrac*,\"4,860,000\",6,25,4,100\nmine,1,1,1,1,1\n";
        let made = cost(&fields(text), &Published::load().unwrap()).unwrap();
        let csv = made.data.to_csv();
        assert!(csv.contains("ReBRAC,actor_every=1,time,25,1.19,2.5,1.017"), "{csv}");
        assert!(csv.contains("ALBUM,,parameters,2.43e6,2.43e6,1,1\n"), "{csv}");
        assert!(!csv.contains("mine"));
        assert!(made.table.to_text().contains("2.43 M"));
    }
}

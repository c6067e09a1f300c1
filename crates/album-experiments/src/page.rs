//! The report page of some studies, and the files beside it.

use crate::error::ReportError;
use crate::figures::{NamedFigure, figures};
use crate::outputs;
use crate::own::{self, OwnRun};
use crate::published::Published;
use crate::runs;
use crate::study::Study;
use crate::tables::{NamedTable, tables};
use album_base::atomic;
use album_base::number::seconds;
use album_plot::Figure;
use album_report::html::Page;
use album_report::table::{Cell as Entry, Status, Table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Larger figures, in bytes, are linked from their files instead of being embedded in the page.
const LARGE: usize = 50_000;

/// The files written by [`write()`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    /// Tables, as CSV and LaTeX, and figures.
    pub files: Vec<PathBuf>,
}

/// Writes `index.html` about the studies and the runs on users' own data into the folder `out`, and beside it
/// each table as `.csv` and `.tex` and each figure as `.svg`. Everything is written and synced before
/// anything is replaced.
pub fn write(studies: &[Study], own: &[OwnRun], out: &Path) -> Result<Written, ReportError> {
    if out.exists() && !out.is_dir() {
        return Err(ReportError::NotAFolder(out.to_path_buf()));
    }
    let published = Published::load()?;
    let studies = named_apart(studies);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut page = Page::new(match &studies[..] {
        [] => "Runs side by side".to_owned(),
        [study] => title(study),
        _ => "Experiments of the paper, measured".to_owned(),
    });
    if !studies.is_empty() {
        page = page.table(overview(&studies));
    }
    for study in &studies {
        let heading = if studies.len() == 1 { "Results".to_owned() } else { title(study) };
        page = section(page, study, heading, &published, out, &mut files)?;
    }
    if !own.is_empty() {
        let (table, data) = own::tables(own);
        let made = NamedTable { name: "", table, data };
        page = put_table(page.section_at("own-data", "Your own data"), "own-data", made, &mut files);
    }
    page = page.footer(format!("Written by album {}.", env!("CARGO_PKG_VERSION")));

    let all = files.into_iter().chain([("index.html".to_owned(), page.render())]);
    let mut files =
        atomic::write_together(out, all).map_err(|(path, source)| ReportError::io(&path)(source))?;
    let page = files.pop().unwrap_or_default();
    Ok(Written { page, files })
}

/// The studies with distinct names that are valid in file names.
fn named_apart(studies: &[Study]) -> Vec<Study> {
    let mut named: Vec<Study> = Vec::new();
    for study in studies {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
        let mut name: String = study.name.chars().map(safe).collect();
        let twins = studies.iter().filter(|other| other.name == study.name).count() > 1;
        if let (true, Some(scale)) = (twins, study.scale) {
            name = format!("{name}-{scale}");
        }
        let base = name.clone();
        let mut number = 2;
        while named.iter().any(|known| known.name == name) {
            name = format!("{base}-{number}");
            number += 1;
        }
        named.push(Study { name, ..study.clone() });
    }
    named
}

fn title(study: &Study) -> String {
    match study.scale {
        Some(scale) => format!("{} ({scale} scale)", study.title),
        None => study.title.clone(),
    }
}

fn overview(studies: &[Study]) -> Table {
    let header = ["study", "scale", "question", "runs done", "planned", "failed", "time spent"];
    let mut table = Table::new(header).wrap(0, 44).wrap(2, 60);
    for study in studies {
        let tally = study.tally();
        let link = format!("#study-{}", study.name);
        let name = Entry::new(&*study.title).link(link);
        let scale = Entry::new(study.scale.map_or("–".to_owned(), |scale| scale.to_string()));
        let question = first_sentence(&study.question).replace('`', "");
        if study.outputs.is_some() {
            table = table.row([
                name,
                scale,
                Entry::new(question),
                Entry::from("a command"),
                "–".into(),
                "–".into(),
                "–".into(),
            ]);
            continue;
        }
        let done = Entry::from(tally.done);
        let failed = Entry::from(tally.failed);
        table = table.row([
            name,
            scale,
            Entry::new(question),
            if tally.done == tally.planned && tally.planned > 0 { done.status(Status::Good) } else { done },
            tally.planned.into(),
            if tally.failed > 0 { failed.status(Status::Bad) } else { failed },
            Entry::new(seconds(tally.seconds)),
        ]);
    }
    table
}

fn first_sentence(text: &str) -> String {
    let text = one_line(text);
    let end = text.find(['?', '.']).filter(|end| text[end + 1..].starts_with(' '));
    end.map_or(text.clone(), |end| text[..=end].to_owned())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn section(
    mut page: Page,
    study: &Study,
    heading: String,
    published: &Published,
    out: &Path,
    files: &mut BTreeMap<String, String>,
) -> Result<Page, ReportError> {
    page = page.section_at(format!("study-{}", study.name), heading);
    if !study.question.is_empty() {
        page = page.paragraph(one_line(&study.question));
    }
    let mut facts: Vec<(&str, String)> = Vec::new();
    if !study.reference.is_empty() {
        facts.push(("in the paper", study.reference.clone()));
    }
    if study.outputs.is_none() {
        let tally = study.tally();
        let failed = if tally.failed > 0 { format!(", {} failed", tally.failed) } else { String::new() };
        facts.push(("runs", format!("{} of {} done{failed}", tally.done, tally.planned)));
        facts.push(("time spent", seconds(tally.seconds)));
    }
    let versions = versions(study);
    if !versions.is_empty() {
        facts.push(("made by", versions));
    }
    page = page.keys(facts);
    if !study.command.is_empty() {
        page = page.code(&*study.command);
    }
    match &study.outputs {
        Some(folder) => outputs_of(page, study, folder, published, files),
        None => Ok(runs_of(page, study, published, out, files)),
    }
}

/// The versions of album that produced the runs.
fn versions(study: &Study) -> String {
    let runs = study.arms.iter().flat_map(|arm| &arm.runs);
    let results = runs.filter_map(|run| run.records.as_ref()?.result.as_ref());
    let versions: std::collections::BTreeSet<String> =
        results.filter_map(|result| Some(format!("album {}", result.versions.get("album")?))).collect();
    versions.into_iter().collect::<Vec<_>>().join(", ")
}

fn runs_of(
    mut page: Page,
    study: &Study,
    published: &Published,
    out: &Path,
    files: &mut BTreeMap<String, String>,
) -> Page {
    for made in tables(study, published) {
        page = put_table(page, &study.name, made, files);
    }
    for NamedFigure { name, figure, caption } in figures(study, published) {
        page = put_figure(page, study, name, figure, caption, files);
    }
    if !study.arms.is_empty() {
        page = page.subsection("Runs").table(runs::table(study, out));
    }
    page
}

fn outputs_of(
    mut page: Page,
    study: &Study,
    folder: &Path,
    published: &Published,
    files: &mut BTreeMap<String, String>,
) -> Result<Page, ReportError> {
    let found = outputs::read(folder)?;
    if found.figures.is_empty() && found.tables.is_empty() {
        return Ok(page.callout(Status::Neutral, "The command has not been run yet."));
    }
    if let Some(made) = found.costs.as_ref().and_then(|costs| costs.beside_published(published)) {
        page = put_table(page, &study.name, made, files);
    }
    for (name, rows) in &found.tables {
        let table = outputs::table(rows, &format!("`{name}.csv` of the command."));
        files.insert(format!("{}-{name}-measured.csv", study.name), table.to_csv());
        files.insert(format!("{}-{name}-measured.tex", study.name), table.to_latex());
        page = page.table(table);
    }
    for (name, figure) in found.figures {
        let caption = format!("{} (`{name}.svg` of the command).", figure.title().trim_end_matches('.'));
        page = put_figure(page, study, &name, figure, caption, files);
    }
    Ok(page)
}

fn put_table(page: Page, study: &str, made: NamedTable, files: &mut BTreeMap<String, String>) -> Page {
    let stem = match made.name {
        "" => study.to_owned(),
        name => format!("{study}-{name}"),
    };
    let (csv, tex) = (format!("{stem}.csv"), format!("{stem}.tex"));
    files.insert(csv.clone(), made.data.to_csv());
    files.insert(tex.clone(), made.table.to_latex());
    page.table(made.table).links("This table as", [("CSV", csv), ("LaTeX", tex)])
}

fn put_figure(
    page: Page,
    study: &Study,
    name: &str,
    figure: Figure,
    caption: String,
    files: &mut BTreeMap<String, String>,
) -> Page {
    let id = format!("{}-{name}", study.name);
    let (file, svg) = (format!("{id}.svg"), figure.render());
    let large = svg.len() > LARGE;
    files.insert(file.clone(), svg);
    if large { page.figure_file(id, file, figure.title(), caption) } else { page.figure(id, figure, caption) }
}

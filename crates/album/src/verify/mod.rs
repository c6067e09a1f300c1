//! Numerical checks of every statement of the theory, and a page with figures.

mod figures;

use crate::error::Error;
use album_base::atomic;
use album_base::number::compact;
use album_report::html::Page;
use album_report::table::{Cell, Status, Table};
use album_tabular::theory::{Check, Effort, Group};
use album_tabular::{MudWorld, Solver};
use figures::{Illustration, draw};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Random MDPs per statement.
const INSTANCES: usize = 200;

/// The result of [`verify`].
#[derive(Debug)]
pub struct Verification {
    /// One check per statement.
    pub checks: Vec<Check>,
    /// Time taken.
    pub seconds: f64,
    seeds: u16,
    command: String,
    illustrations: Vec<Illustration>,
}

/// Checks the statements of some groups on this many MudWorlds and on random MDPs.
///
/// `progress` receives the group, the current task, and the completed fraction of the group.
pub fn verify(
    groups: &[Group],
    seeds: u16,
    progress: &dyn Fn(&str, &str, f64),
) -> Result<Verification, Error> {
    let start = Instant::now();
    let names: String = match groups.len() == Group::ALL.len() {
        true => String::new(),
        false => groups.iter().map(|group| format!(" {}", group.name())).collect(),
    };
    let (mut checks, mut illustrations) = (Vec::new(), Vec::new());
    for group in groups {
        let effort = Effort {
            seeds: seeds.into(),
            size: MudWorld::SIZE,
            instances: INSTANCES,
            progress: &|what: &str, share: f64| progress(group.name(), what, share),
        };
        let verified = group.verify(&effort)?;
        checks.extend(verified.checks);
        illustrations.extend(draw(verified.evidence, effort.size));
    }
    Ok(Verification {
        checks,
        seconds: start.elapsed().as_secs_f64(),
        seeds,
        command: format!("album verify{names} --seeds {seeds}"),
        illustrations,
    })
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, table) in self.tables() {
            writeln!(f, "{name}\n{}", table.to_text())?;
        }
        if !Solver::Highs.is_built() {
            writeln!(
                f,
                "This build has no HiGHS; `cargo run --release --features highs -- verify` adds its lines."
            )?;
        }
        write!(f, "{} checks, {} failed", self.checks.len(), self.failed())
    }
}

impl Verification {
    /// Number of failed checks.
    pub fn failed(&self) -> usize {
        self.checks.iter().filter(|check| !check.passed).count()
    }

    /// The result as JSON; `page` is the path of the report.
    pub fn json(&self, page: &Path) -> serde_json::Value {
        serde_json::json!({
            "passed": self.failed() == 0,
            "failed": self.failed(),
            "checks": self.checks,
            "seeds": self.seeds,
            "highs": Solver::Highs.is_built(),
            "seconds": self.seconds,
            "report": page,
        })
    }

    /// One table per group, with the group's name.
    pub fn tables(&self) -> Vec<(&'static str, Table)> {
        let groups = Group::ALL.into_iter().filter_map(|group| {
            let checks: Vec<&Check> = self.checks.iter().filter(|check| check.name == group).collect();
            let empty = Table::new(["statement", "measured", "bound", "verdict"]).wrap(0, 70);
            let table = checks.iter().fold(empty, |table, check| {
                table.row([
                    Cell::from(check.statement.as_str()),
                    Cell::from(compact(check.measured)),
                    Cell::from(check.bound.as_str()),
                    if check.passed { Cell::good("holds") } else { Cell::bad("FAILS") },
                ])
            });
            (!checks.is_empty()).then_some((group.name(), table))
        });
        groups.collect()
    }

    /// Writes `report.html`, `checks.csv` and the figures into a folder, and returns the path of the page.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, Error> {
        let figures =
            self.illustrations.iter().map(|shown| (format!("{}.svg", shown.id), shown.figure.render()));
        let files = figures.chain([
            ("checks.csv".to_owned(), self.all_checks().to_csv()),
            ("report.html".to_owned(), self.page().render()),
        ]);
        atomic::write_together(folder, files).map_err(|(path, e)| Error::io(&path)(e))?;
        Ok(folder.join("report.html"))
    }

    fn all_checks(&self) -> Table {
        let empty = Table::new(["group", "statement", "measured", "bound", "verdict"]);
        self.checks.iter().fold(empty, |table, check| {
            table.row([
                Cell::from(check.name.name()),
                Cell::from(check.statement.as_str()),
                Cell::from(check.measured),
                Cell::from(check.bound.as_str()),
                Cell::from(if check.passed { "holds" } else { "FAILS" }),
            ])
        })
    }

    fn page(&self) -> Page {
        let (failed, all) = (self.failed(), self.checks.len());
        let (status, verdict) = match failed {
            0 => (Status::Good, format!("All {all} checks hold.")),
            _ => (Status::Bad, format!("{failed} of {all} checks fail.")),
        };
        let mut page = Page::new("The Lifted Bellman LP, verified")
            .callout(status, verdict)
            .paragraph(
                "Each line gives a statement and the instances it was tried on, what was measured, and the bound that \
                 the measurement must keep.",
            )
            .section("Checks");
        for (name, table) in self.tables() {
            page = page.subsection(name).table(table);
        }
        for Illustration { heading, id, figure, caption } in &self.illustrations {
            if let Some(heading) = heading {
                page = page.section(*heading);
            }
            page = page.figure(*id, figure.clone(), caption.as_str());
        }
        page.section("Command").code(&*self.command).footer(format!(
            "album {}, {:.0} s",
            env!("CARGO_PKG_VERSION"),
            self.seconds
        ))
    }
}

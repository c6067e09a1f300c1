//! The list of a study's runs: location, progress, and command.

use crate::measure;
use crate::study::{Arm, Run, Study};
use crate::tables::{anchor, written};
use album_base::number::{grouped, seconds};
use album_report::table::{Align, Cell as Entry, Status, Table};
use std::path::{Component, Path, PathBuf};

/// The progress of a study's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Number of finished runs.
    pub done: usize,
    /// Number of failed runs.
    pub failed: usize,
    /// Total number of runs.
    pub planned: usize,
    /// Seconds spent.
    pub seconds: f64,
}

impl Study {
    /// The progress of the study. A run shared by several arms counts once.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for run in self.runs() {
            tally.planned += 1;
            tally.done += usize::from(run.finished() && run.failure.is_none());
            tally.failed += usize::from(run.failure.is_some());
            let result = run.records.as_ref().and_then(|records| records.result.as_ref());
            tally.seconds += result.map_or(0.0, |result| result.wall_seconds);
        }
        tally
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        let mut seen = std::collections::BTreeSet::new();
        self.arms.iter().flat_map(|arm| &arm.runs).filter(move |run| seen.insert(&run.path))
    }
}

/// All runs, arm by arm; the first of each arm has the anchor that the arm's numbers link to.
pub(crate) fn table(study: &Study, out: &Path) -> Table {
    let header = ["variant, task", "seed", "state", "success (%)", "time", "run", "command"];
    let mut table = Table::new(header)
        .wrap(0, 40)
        .wrap(5, 40)
        .wrap(6, 50)
        .caption("Every run. One without a command has that of the run above it, with its own seed.");
    table = table.align([Align::Left, Align::Right, Align::Left, Align::Right, Align::Right, Align::Left]);
    for (place, arm) in study.arms.iter().enumerate() {
        if place > 0 {
            table = table.rule();
        }
        let mut above = None;
        for (number, run) in arm.runs.iter().enumerate() {
            let of_any_seed = run.command.replace(&format!(" --seed {}", run.seed), " --seed N");
            let repeated = above.as_ref() == Some(&of_any_seed);
            let label = Entry::new(format!("{}, {}", arm.label, crate::figures::task_title(&arm.task)));
            let label = if number == 0 { label.anchor(anchor(study, place)) } else { label };
            table = table.row([
                label,
                Entry::new(run.seed.to_string()),
                state(run),
                success(study, arm, run),
                Entry::new(time(run)),
                link(run, out),
                if repeated { Entry::default() } else { Entry::new(&*run.command) },
            ]);
            above = Some(of_any_seed);
        }
    }
    table
}

fn state(run: &Run) -> Entry {
    if let Some(reason) = &run.failure {
        return Entry::new(format!("failed: {reason}")).status(Status::Bad);
    }
    match run.records.as_ref() {
        None => Entry::from("not begun"),
        Some(_) if run.finished() => Entry::from("done"),
        Some(records) => {
            let last = |columns: &album_train::Columns| {
                let name = columns.names().next().unwrap_or_default().to_owned();
                columns.series(&name).last().map_or(0.0, |point| point.0)
            };
            let step = last(&records.train).max(last(&records.eval));
            Entry::new(format!("at step {}", grouped(step as i64)))
        }
    }
}

fn success(study: &Study, arm: &Arm, run: &Run) -> Entry {
    let success =
        measure::values(arm, study.protocol, "success").into_iter().find(|value| value.0 == run.seed);
    success.map_or(Entry::from("–"), |value| Entry::new(written("success", value.1)))
}

fn time(run: &Run) -> String {
    let result = run.records.as_ref().and_then(|records| records.result.as_ref());
    result.map_or("–".into(), |result| seconds(result.wall_seconds))
}

/// The run's path relative to the page, with a link to its own report if it has one.
fn link(run: &Run, out: &Path) -> Entry {
    let from_here = relative(&run.path, out).unwrap_or_else(|| run.path.clone());
    let text = from_here.display().to_string();
    if run.path.join("report.html").is_file() {
        let target = from_here.join("report.html");
        return Entry::new(text).link(encoded(&target.to_string_lossy()));
    }
    Entry::new(text)
}

/// The relative path from the folder `from` to `path`, with `..` if necessary.
pub(crate) fn relative(path: &Path, from: &Path) -> Option<PathBuf> {
    let absolute = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    let (path, from) = (absolute(path)?, absolute(from)?);
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
    let (to, from) = (parts(&path), parts(&from));
    let common = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    if common == 0 {
        return None; // another drive
    }
    let up = std::iter::repeat_n(Component::ParentDir.as_os_str().to_owned(), from.len() - common);
    Some(up.chain(to[common..].iter().cloned()).collect())
}

/// A percent-encoded path for a URL.
pub(crate) fn encoded(path: &str) -> String {
    let mut out = String::new();
    for byte in path.replace('\\', "/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b'~' => {
                out.push(byte as char);
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_between_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let way = |path: &str, from: &str| relative(&root.join(path), &root.join(from)).unwrap();
        assert_eq!(way("results/runs/a", "results"), Path::new("runs/a"));
        assert_eq!(way("runs/a", "report/page"), Path::new("../../runs/a"));
        assert_eq!(encoded("../a b#c/ü"), "../a%20b%23c/%C3%BC");
    }
}

//! Comparison of runs on users' own data: no published numbers, but returns, values and, if known, exact
//! values.

use album::{Error, RunConfig};
use album_report::table::{Align, Cell, Table};
use album_stats::{Divisor, deviation, mean};
use album_train::Records;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A run on a user's own log, or on a MudWorld.
#[derive(Clone, Debug)]
pub struct OwnRun {
    /// Its directory.
    pub path: PathBuf,
    /// Its configuration.
    pub config: RunConfig,
    /// Its files.
    pub records: Records,
}

/// A named number of a run.
type Number = (&'static str, fn(&Records) -> Option<f64>);

/// The numbers that runs are compared by. Columns that no run has are left out.
const NUMBERS: [Number; 9] = [
    ("return", |run| Some(run.result.as_ref()?.evaluations.last()?.mean_return)),
    ("score", |run| run.result.as_ref()?.score),
    ("success (%)", |run| Some(100.0 * run.result.as_ref()?.success?)),
    ("V at initial states", |run| last(run, "training/value/v_initial")),
    ("return recorded there", |run| last(run, "training/value/return_initial")),
    ("exact value of the policy", |run| last(run, "training/exact/policy_value")),
    ("V*_D", |run| last(run, "training/exact/v_star")),
    ("held-out critic loss", |run| last(run, "validation/critic/critic_loss")),
    ("minutes", |run| Some(run.result.as_ref()?.wall_seconds / 60.0)),
];

fn last(run: &Records, column: &str) -> Option<f64> {
    run.train.series(column).last().map(|point| point.1)
}

impl OwnRun {
    pub(crate) fn new(path: &Path, config: RunConfig) -> Result<Self, Error> {
        Ok(OwnRun { records: Records::read(path)?, path: path.to_path_buf(), config })
    }

    /// Whether all updates are done.
    pub fn finished(&self) -> bool {
        self.records.result.as_ref().is_some_and(|result| result.finished)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let settings = self.config.settings.iter().map(|(key, value)| (key.clone(), value.to_string()));
        settings.chain([("steps".to_owned(), self.config.train.steps.to_string())]).collect()
    }

    /// The agent, with its settings that differ between its runs on this data.
    fn variant(&self, all: &[OwnRun]) -> String {
        let same_kind = |other: &&OwnRun| {
            other.config.agent == self.config.agent && other.config.problem == self.config.problem
        };
        let others: Vec<_> = all.iter().filter(same_kind).map(OwnRun::settings).collect();
        let mut variant = self.config.agent.clone();
        for (key, value) in self.settings() {
            if others.iter().any(|other| other.get(&key) != Some(&value)) {
                variant.push_str(&format!(", {key} = {value}"));
            }
        }
        variant
    }
}

/// The runs by dataset and variant.
pub(crate) fn groups(runs: &[OwnRun]) -> BTreeMap<(String, String), Vec<&OwnRun>> {
    let mut groups: BTreeMap<_, Vec<&OwnRun>> = BTreeMap::new();
    for run in runs {
        groups.entry((run.config.problem.to_string(), run.variant(runs))).or_default().push(run);
    }
    groups
}

/// A row for each variant and dataset, with the standard deviation over seeds; and a row for each run, for
/// programs.
pub(crate) fn tables(runs: &[OwnRun]) -> (Table, Table) {
    let used: Vec<Number> = NUMBERS
        .into_iter()
        .filter(|number| runs.iter().any(|run| number.1(&run.records).is_some()))
        .collect();
    let groups = groups(runs);
    let names = || used.iter().map(|number| number.0);
    let align =
        [Align::Left, Align::Left].into_iter().chain(std::iter::repeat_n(Align::Right, used.len() + 1));
    let mut shown = Table::new(["data", "variant", "seeds"].into_iter().chain(names()))
        .align(align)
        .wrap(1, 40)
        .caption(
            "Runs on your own data: mean ± deviation over seeds. Values are means over states, in units of the data's \
             rewards; V at initial states is an estimate, the return recorded there an observation.",
        );
    let mut data = Table::new(["data", "variant", "seed", "finished", "run"].into_iter().chain(names()));
    for ((problem, variant), group) in &groups {
        let mut row = vec![Cell::new(problem), Cell::new(variant), Cell::from(group.len())];
        for (_, number) in &used {
            let values: Vec<f64> = group.iter().filter_map(|run| number(&run.records)).collect();
            row.push(spread(&values));
        }
        shown = shown.row(row);
        for run in group {
            let name = run.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let finished = if run.finished() { "yes" } else { "no" };
            let mut row = vec![
                Cell::new(problem),
                Cell::new(variant),
                Cell::new(run.config.seed.to_string()),
                Cell::new(finished),
                Cell::new(name),
            ];
            row.extend(used.iter().map(|(_, number)| Cell::from(number(&run.records))));
            data = data.row(row);
        }
    }
    (shown, data)
}

fn spread(values: &[f64]) -> Cell {
    let Some(mean) = mean(values) else { return Cell::from("–") };
    let decimals = if mean.abs() >= 100.0 { 0 } else { 3 };
    match deviation(values, Divisor::CountLessOne) {
        Some(deviation) => Cell::new(album_base::number::plus_minus(mean, deviation, decimals)),
        None => Cell::fixed(mean, decimals),
    }
}

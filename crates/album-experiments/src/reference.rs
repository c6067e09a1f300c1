//! Finds the published counterpart of a measured number.

use crate::experiment::{Experiment, Protocol, Source, Variant, environment, names};
use crate::published::{Published, PublishedRow};
use crate::study::Study;
use album_data::ogbench::TaskName;
use album_stats::mean;
use std::collections::BTreeMap;

/// The paper's number for a method with a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    /// For the same task, or averaged over the same tasks.
    Same(Box<PublishedRow>),
    /// Averaged over the tasks of the experiment's published table, if that lacks this task.
    Elsewhere(f64),
    /// None.
    None,
}

/// Environment without version, and task number; any name unknown to OGBench is its own environment.
pub(crate) fn place(task: &str) -> (String, String) {
    match task.parse::<TaskName>() {
        Ok(name) => (environment(&name), name.task().to_string()),
        Err(_) => (task.to_owned(), String::new()),
    }
}

/// The published name of each agent, as used in the experiments.
pub fn methods() -> BTreeMap<String, String> {
    let mut methods = BTreeMap::new();
    for experiment in names().filter_map(|name| Experiment::find(name).ok()) {
        let named = |variant: &Variant| variant.source == Source::Agent && !variant.method.is_empty();
        for variant in experiment.variants.into_iter().filter(named) {
            methods.entry(variant.agent).or_insert(variant.method);
        }
    }
    methods
}

/// A setting, `key=value` joined by `;`, with normalised numbers.
fn pairs(setting: &str) -> BTreeMap<&str, String> {
    let value = |text: &str| {
        text.replace('_', "").parse().map_or_else(|_| text.to_owned(), |number: f64| number.to_string())
    };
    setting.split(';').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k, value(v))).collect()
}

/// Whether two settings, `key=value` joined by `;`, are equal up to order and notation.
pub fn same_setting(a: &str, b: &str) -> bool {
    pairs(a) == pairs(b)
}

/// The paper's value of an ALBUM hyperparameter, the same in all environments.
pub(crate) fn hyperparameter(published: &Published, name: &str) -> Option<f64> {
    let rows = published.rows("hyperparameters").ok()?;
    let row =
        rows.iter().find(|row| row.method == "ALBUM" && row.environment.is_empty() && row.metric == name)?;
    Some(row.mean)
}

/// Whether a setting of ALBUM equals the paper's default.
pub(crate) fn is_default(published: &Published, setting: &str) -> bool {
    let known = |key: &str, value: &String| {
        hyperparameter(published, key).is_some_and(|default| default.to_string() == *value)
    };
    pairs(setting).iter().all(|(key, value)| known(key, value))
}

/// Looks up the published numbers of a study.
pub(crate) struct Lookup<'a> {
    published: &'a Published,
    study: &'a Study,
}

impl<'a> Lookup<'a> {
    pub(crate) fn new(published: &'a Published, study: &'a Study) -> Self {
        Lookup { published, study }
    }

    /// The study's own table first. Other tables have the same numbers, as long as the last evaluation
    /// counts.
    fn tables(&self) -> Vec<&'a str> {
        let own = self.study.published.as_deref();
        let mut tables: Vec<&str> = own.into_iter().collect();
        if own.is_none() || self.study.protocol == Protocol::Final {
            tables.extend(["per-task", "main"]);
            let all: Vec<&'static str> = self.published.tables().collect();
            tables.extend(all);
        }
        tables
    }

    fn rows(
        &self,
        table: &str,
        method: &str,
        setting: &str,
        metric: &str,
    ) -> impl Iterator<Item = &'a PublishedRow> + use<'a> {
        let own = self.study.published.as_deref() == Some(table);
        let [method, setting, metric] = [method, setting, metric].map(str::to_owned);
        self.published.rows(table).unwrap_or_default().iter().filter(move |row| {
            let measured = row.metric == metric || (own && metric == "success" && row.is_score());
            measured && row.method == method && same_setting(&row.setting, &setting)
        })
    }

    /// The number for one task (`1` to `5`), or the average over an environment's tasks (`average`).
    pub(crate) fn task(&self, of: &Wanted<'_>, environment: &str, task: &str) -> Reference {
        let known = |row: &&PublishedRow| row.environment == environment && row.task == task;
        let rows = |table| self.rows(table, of.method, of.setting, of.metric).filter(known);
        let all: Vec<&PublishedRow> = self.tables().into_iter().flat_map(rows).collect();
        // The same runs appear in several tables, not always with their standard deviation.
        let first = all.first();
        let same = |row: &&&PublishedRow| {
            first.is_some_and(|first| first.mean == row.mean && first.source == row.source)
        };
        let found = all.iter().filter(same).find(|row| row.std.is_some()).or(first);
        match found {
            Some(row) => Reference::Same(Box::new((*row).clone())),
            None if self.is_known(environment) => Reference::None,
            None => self.elsewhere(of),
        }
    }

    /// The average over all tasks of the study, if those are the paper's.
    pub(crate) fn overall(&self, of: &Wanted<'_>) -> Reference {
        let covered = |table: &str| {
            let all: Vec<(String, String)> = self.study.arms.iter().map(|arm| place(&arm.task)).collect();
            let has = |environment: &str, task: &str| all.iter().any(|(e, t)| e == environment && t == task);
            let mut rows = self.rows(table, of.method, of.setting, of.metric);
            rows.all(|row| match row.task.as_str() {
                _ if row.environment == "average" => true,
                "average" => (1..=5).all(|task| has(&row.environment, &task.to_string())),
                task => has(&row.environment, task),
            })
        };
        let average = |row: &&PublishedRow| row.environment == "average";
        let find = |table: &str| self.rows(table, of.method, of.setting, of.metric).find(average);
        match self.tables().into_iter().filter(|table| covered(table)).find_map(find) {
            Some(row) => Reference::Same(Box::new(row.clone())),
            None if self.study.arms.iter().any(|arm| self.is_known(&place(&arm.task).0)) => Reference::None,
            None => self.elsewhere(of),
        }
    }

    /// Whether the paper has numbers for an environment.
    fn is_known(&self, environment: &str) -> bool {
        let mut tables = self.published.tables();
        tables.any(|table| {
            self.published.rows(table).unwrap_or_default().iter().any(|row| row.environment == environment)
        })
    }

    /// The average of the study's published table: the stated one, or that of its rows. A study without such
    /// a table gets none: numbers of other experiments on other tasks would be misleading.
    fn elsewhere(&self, of: &Wanted<'_>) -> Reference {
        let Some(own) = self.study.published.as_deref() else { return Reference::None };
        let rows: Vec<&PublishedRow> = self.rows(own, of.method, of.setting, of.metric).collect();
        if let Some(row) = rows.iter().find(|row| row.environment == "average") {
            return Reference::Elsewhere(row.mean);
        }
        let averages = rows.iter().any(|row| row.task == "average");
        let means: Vec<f64> =
            rows.iter().filter(|row| !averages || row.task == "average").map(|row| row.mean).collect();
        mean(&means).map_or(Reference::None, Reference::Elsewhere)
    }
}

/// The query.
pub(crate) struct Wanted<'a> {
    pub method: &'a str,
    pub setting: &'a str,
    pub metric: &'a str,
}

//! The lines of a study's tables: each a variant on a task, or on average over tasks, beside the published number.

use crate::measure;
use crate::published::Published;
use crate::reference::{Lookup, Reference, Wanted, place};
use crate::study::{Cell, Study};
use album_stats::{Bootstrap, Divisor, Interval, Scores, deviation};

/// The master seed of every bootstrap: the same runs make the same page.
pub(crate) const BOOTSTRAP_SEED: u64 = 0;
/// The deviations of a standard normal variable within which 95 % of it lie.
pub(crate) const NORMAL_95: f64 = 1.96;

/// What a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// One task.
    Task,
    /// The five tasks of an environment.
    Environment,
    /// All tasks of the study.
    All,
}

/// Whether a published number agrees with a measured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Their difference is within the combined interval.
    Inside,
    /// It is not.
    Outside,
    /// There is only one seed, so there is no interval.
    CannotTell,
}

impl Verdict {
    /// As tables write it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Inside => "inside",
            Verdict::Outside => "outside",
            Verdict::CannotTell => "cannot tell",
        }
    }
}

/// One measured number with all that is said about it.
#[derive(Clone, Debug)]
pub struct Line {
    /// The variant.
    pub variant: String,
    /// The place of the line's first cell in the study.
    pub cell: usize,
    /// The environment, without version.
    pub environment: String,
    /// The number of the task, or `average`.
    pub task: String,
    /// One task or several.
    pub over: Over,
    /// The metric.
    pub metric: String,
    /// Seeds that have a value, on all tasks of the line.
    pub done: usize,
    /// Seeds that are to have one.
    pub planned: usize,
    /// Runs by tasks; none if no seed has a value.
    pub scores: Option<Scores>,
    /// By what the deviation divides: as the published one, or the number of seeds where that cannot be told.
    pub divisor: Divisor,
    /// The 95 % interval of the mean, with two seeds or more.
    pub interval: Option<Interval>,
    /// Whether the value is the same for every seed.
    pub exact: bool,
    /// The published number.
    pub reference: Reference,
}

impl Line {
    /// The mean over seeds and tasks.
    pub fn mean(&self) -> Option<f64> {
        self.scores.as_ref().map(Scores::mean)
    }

    /// The deviation over seeds of the means over tasks; nothing where all seeds are the same by definition.
    pub fn deviation(&self) -> Option<f64> {
        let scores = self.scores.as_ref().filter(|scores| scores.runs() > 1 && !self.exact)?;
        deviation(&scores.run_means(), self.divisor)
    }

    /// The interquartile mean of several tasks.
    pub fn iqm(&self) -> Option<f64> {
        self.scores.as_ref().filter(|scores| scores.tasks() > 1).map(Scores::iqm)
    }

    /// Measured less published.
    pub fn difference(&self) -> Option<f64> {
        match &self.reference {
            Reference::Same(row) => Some(self.mean()? - row.mean),
            _ => None,
        }
    }

    /// Whether the difference is at most `sqrt(a^2 + b^2)`: `a` is half of the measured interval, `b` that of the
    /// published mean, `1.96 std / sqrt(seeds)`, or 0 where the paper does not give these.
    pub fn verdict(&self) -> Option<Verdict> {
        let (Reference::Same(row), difference) = (&self.reference, self.difference()?) else { return None };
        if self.exact {
            // Nothing varies, so the digits of the paper are all that can differ.
            let digits = row.mean.to_string().split_once('.').map_or(0, |(_, digits)| digits.len());
            let half_a_digit = 0.5 * 10f64.powi(-(digits as i32)) * (1.0 + 1e-9);
            return Some(if difference.abs() <= half_a_digit { Verdict::Inside } else { Verdict::Outside });
        }
        let Some(interval) = self.interval else { return Some(Verdict::CannotTell) };
        let measured = 0.5 * (interval.high - interval.low);
        let published = row.std.zip(row.seeds).map_or(0.0, |(std, n)| NORMAL_95 * std / f64::from(n).sqrt());
        let inside = difference.abs() <= measured.hypot(published);
        Some(if inside { Verdict::Inside } else { Verdict::Outside })
    }
}

/// The variants of a study in order, each with the places of its cells.
pub fn variants(study: &Study) -> Vec<(&str, Vec<usize>)> {
    let mut variants: Vec<(&str, Vec<usize>)> = Vec::new();
    for (place, cell) in study.cells.iter().enumerate() {
        match variants.iter_mut().find(|variant| variant.0 == cell.label) {
            Some(variant) => variant.1.push(place),
            None => variants.push((&cell.label, vec![place])),
        }
    }
    variants
}

/// All lines of a metric: variant by variant, task by task, averages behind the tasks they are of.
pub fn lines(study: &Study, published: &Published, metric: &str) -> Vec<Line> {
    let lookup = Lookup::new(published, study);
    let mut lines = Vec::new();
    for (_, cells) in variants(study) {
        let mut environments: Vec<(String, Vec<usize>)> = Vec::new();
        for &cell in &cells {
            let (environment, task) = place(&study.cells[cell].task);
            let reference = lookup.task(&wanted(&study.cells[cell], metric), &environment, &task);
            lines.extend(line(study, &[cell], metric, Over::Task, (environment.clone(), task), reference));
            match environments.iter_mut().find(|known| known.0 == environment) {
                Some(known) => known.1.push(cell),
                None => environments.push((environment, vec![cell])),
            }
        }
        // What is the same for every seed is a fact about each task; averages say nothing more.
        let first = &study.cells[cells[0]];
        if metric != "success" {
            continue;
        }
        for (environment, cells) in environments.iter().filter(|known| known.1.len() == 5) {
            let reference = lookup.task(&wanted(first, metric), environment, "average");
            let place = (environment.clone(), "average".to_owned());
            lines.extend(line(study, cells, metric, Over::Environment, place, reference));
        }
        if environments.len() > 1 {
            let reference = lookup.overall(&wanted(first, metric));
            let place = ("average".to_owned(), "average".to_owned());
            lines.extend(line(study, &cells, metric, Over::All, place, reference));
        }
    }
    lines
}

fn wanted<'a>(cell: &'a Cell, metric: &'a str) -> Wanted<'a> {
    Wanted { method: &cell.method, setting: &cell.setting, metric }
}

/// A line over some cells of one variant; none if the metric means nothing there.
fn line(
    study: &Study,
    cells: &[usize],
    metric: &str,
    over: Over,
    (environment, task): (String, String),
    reference: Reference,
) -> Option<Line> {
    let chosen: Vec<&Cell> = cells.iter().map(|&cell| &study.cells[cell]).collect();
    let (scores, done) = matrix(study, &chosen, metric);
    if scores.is_none() && matches!(reference, Reference::None) && (metric != "success" || over != Over::Task)
    {
        return None;
    }
    if scores.is_none()
        && (over != Over::Task || chosen[0].source == crate::Source::Data && metric == "success")
    {
        return None;
    }
    let divisor = match &reference {
        Reference::Same(row) => row.divisor.unwrap_or(Divisor::Count),
        _ => Divisor::Count,
    };
    let exact = chosen.iter().all(|cell| measure::is_exact(cell, metric));
    let several = scores.as_ref().filter(|scores| scores.runs() > 1 && !exact);
    let interval =
        several.and_then(|scores| Bootstrap::new(BOOTSTRAP_SEED).interval(scores, Scores::mean).ok());
    Some(Line {
        variant: chosen[0].label.clone(),
        cell: cells[0],
        environment,
        task,
        over,
        metric: metric.to_owned(),
        done,
        planned: chosen.iter().map(|cell| cell.runs.len()).max().unwrap_or(0),
        scores,
        divisor,
        interval,
        exact,
        reference,
    })
}

/// The scores of the seeds that have one on each of these cells' tasks, and how many those are.
pub(crate) fn matrix(study: &Study, cells: &[&Cell], metric: &str) -> (Option<Scores>, usize) {
    let values: Vec<Vec<(u64, f64)>> =
        cells.iter().map(|cell| measure::values(cell, study.protocol, metric)).collect();
    let of = |seed: u64, values: &Vec<(u64, f64)>| values.iter().find(|v| v.0 == seed).map(|v| v.1);
    let seeds = values.first().map_or(&[][..], Vec::as_slice).iter().map(|value| value.0);
    let rows: Vec<Vec<f64>> =
        seeds.filter_map(|seed| values.iter().map(|values| of(seed, values)).collect()).collect();
    (Scores::new(&rows).ok(), rows.len())
}

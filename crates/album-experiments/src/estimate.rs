//! The lines of a study's tables: each a variant on a task, or averaged over tasks, beside the published
//! number.

use crate::measure;
use crate::published::Published;
use crate::reference::{Lookup, Reference, Wanted, place};
use crate::study::{Arm, Study};
use album_stats::{Bootstrap, Divisor, Interval, Scores, deviation};

/// The seed of every bootstrap: the same runs give the same page.
pub(crate) const BOOTSTRAP_SEED: u64 = 0;
/// The 97.5 % quantile of the standard normal distribution.
pub(crate) const NORMAL_95: f64 = 1.96;

/// The tasks that a line covers.
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
    /// The difference is within the combined interval.
    Inside,
    /// The difference exceeds it.
    Outside,
    /// There is only one seed, so there is no interval.
    Undetermined,
}

impl Verdict {
    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Inside => "inside",
            Verdict::Outside => "outside",
            Verdict::Undetermined => "undetermined",
        }
    }
}

/// One measured number with its context.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The variant.
    pub variant: String,
    /// Index of the line's first arm in the study.
    pub arm: usize,
    /// The environment, without version.
    pub environment: String,
    /// The number of the task, or `average`.
    pub task: String,
    /// One task or several.
    pub over: Over,
    /// The metric.
    pub metric: String,
    /// Number of seeds with a value on all tasks of the line.
    pub done: usize,
    /// Number of planned seeds.
    pub planned: usize,
    /// Scores by run and task; `None` if no seed has a value.
    pub scores: Option<Scores>,
    /// The divisor of the standard deviation: that of the published number if known, else the number of
    /// seeds.
    pub divisor: Divisor,
    /// The 95 % interval of the mean; `None` with one seed or if all seeds are equal, because a bootstrap of
    /// equal numbers says nothing about their spread.
    pub interval: Option<Interval>,
    /// Whether the value is deterministic, the same for every seed.
    pub exact: bool,
    /// The published number.
    pub reference: Reference,
}

impl Estimate {
    /// The mean over seeds and tasks.
    pub fn mean(&self) -> Option<f64> {
        self.scores.as_ref().map(Scores::mean)
    }

    /// The standard deviation over seeds of the means over tasks; `None` if the value is deterministic.
    pub fn deviation(&self) -> Option<f64> {
        let scores = self.scores.as_ref().filter(|scores| scores.runs() > 1 && !self.exact)?;
        deviation(&scores.run_means(), self.divisor)
    }

    /// Whether there are several seeds, all with the same scores.
    pub fn all_equal(&self) -> bool {
        self.scores.as_ref().is_some_and(Scores::runs_agree)
    }

    /// The interquartile mean, if there are several tasks.
    pub fn iqm(&self) -> Option<f64> {
        self.scores.as_ref().filter(|scores| scores.tasks() > 1).map(Scores::iqm)
    }

    /// Measured minus published.
    pub fn difference(&self) -> Option<f64> {
        match &self.reference {
            Reference::Same(row) => Some(self.mean()? - row.mean),
            _ => None,
        }
    }

    /// Whether the difference is at most `sqrt(a^2 + b^2)`: `a` is half the measured interval, `b` that of
    /// the published mean, `1.96 std / sqrt(seeds)`, or 0 if the paper does not give these.
    pub fn verdict(&self) -> Option<Verdict> {
        let (Reference::Same(row), difference) = (&self.reference, self.difference()?) else { return None };
        if self.exact {
            // The value is deterministic, so only the paper's rounding can differ.
            let digits = row.mean.to_string().split_once('.').map_or(0, |(_, digits)| digits.len());
            let half_a_digit = 0.5 * 10f64.powi(-(digits as i32)) * (1.0 + 1e-9);
            return Some(if difference.abs() <= half_a_digit { Verdict::Inside } else { Verdict::Outside });
        }
        let measured = match self.interval {
            Some(interval) => 0.5 * (interval.high - interval.low),
            None if self.all_equal() => 0.0,
            None => return Some(Verdict::Undetermined),
        };
        let published = row.std.zip(row.seeds).map_or(0.0, |(std, n)| NORMAL_95 * std / f64::from(n).sqrt());
        let inside = difference.abs() <= measured.hypot(published);
        Some(if inside { Verdict::Inside } else { Verdict::Outside })
    }
}

/// The variants of a study in order, each with the indices of its arms.
pub fn variants(study: &Study) -> Vec<(&str, Vec<usize>)> {
    let mut variants: Vec<(&str, Vec<usize>)> = Vec::new();
    for (place, arm) in study.arms.iter().enumerate() {
        match variants.iter_mut().find(|variant| variant.0 == arm.label) {
            Some(variant) => variant.1.push(place),
            None => variants.push((&arm.label, vec![place])),
        }
    }
    variants
}

/// All lines of a metric: by variant and task, averages after the tasks they cover.
pub fn estimates(study: &Study, published: &Published, metric: &str) -> Vec<Estimate> {
    let lookup = Lookup::new(published, study);
    let mut lines = Vec::new();
    for (_, arms) in variants(study) {
        let mut environments: Vec<(String, Vec<usize>)> = Vec::new();
        for &arm in &arms {
            let (environment, task) = place(&study.arms[arm].task);
            let reference = lookup.task(&wanted(&study.arms[arm], metric), &environment, &task);
            lines.extend(estimate(study, &[arm], metric, Over::Task, (environment.clone(), task), reference));
            match environments.iter_mut().find(|known| known.0 == environment) {
                Some(known) => known.1.push(arm),
                None => environments.push((environment, vec![arm])),
            }
        }
        // A deterministic value describes a single task; averages add nothing.
        let first = &study.arms[arms[0]];
        if metric != "success" {
            continue;
        }
        for (environment, arms) in environments.iter().filter(|known| known.1.len() == 5) {
            let reference = lookup.task(&wanted(first, metric), environment, "average");
            let place = (environment.clone(), "average".to_owned());
            lines.extend(estimate(study, arms, metric, Over::Environment, place, reference));
        }
        if environments.len() > 1 {
            let reference = lookup.overall(&wanted(first, metric));
            let place = ("average".to_owned(), "average".to_owned());
            lines.extend(estimate(study, &arms, metric, Over::All, place, reference));
        }
    }
    lines
}

fn wanted<'a>(arm: &'a Arm, metric: &'a str) -> Wanted<'a> {
    Wanted { method: &arm.method, setting: &arm.setting, metric }
}

/// A line over some arms of one variant; `None` if the metric does not apply.
fn estimate(
    study: &Study,
    arms: &[usize],
    metric: &str,
    over: Over,
    (environment, task): (String, String),
    reference: Reference,
) -> Option<Estimate> {
    let chosen: Vec<&Arm> = arms.iter().map(|&arm| &study.arms[arm]).collect();
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
    let exact = chosen.iter().all(|arm| measure::is_exact(arm, metric));
    let several = scores.as_ref().filter(|scores| scores.runs() > 1 && !exact && !scores.runs_agree());
    let interval =
        several.and_then(|scores| Bootstrap::new(BOOTSTRAP_SEED).interval(scores, Scores::mean).ok());
    Some(Estimate {
        variant: chosen[0].label.clone(),
        arm: arms[0],
        environment,
        task,
        over,
        metric: metric.to_owned(),
        done,
        planned: chosen.iter().map(|arm| arm.runs.len()).max().unwrap_or(0),
        scores,
        divisor,
        interval,
        exact,
        reference,
    })
}

/// The scores of the seeds that have one on all tasks of these arms, and their number.
pub(crate) fn matrix(study: &Study, arms: &[&Arm], metric: &str) -> (Option<Scores>, usize) {
    let values: Vec<Vec<(u64, f64)>> =
        arms.iter().map(|arm| measure::values(arm, study.protocol, metric)).collect();
    let value_at = |seed: u64, values: &Vec<(u64, f64)>| values.iter().find(|v| v.0 == seed).map(|v| v.1);
    let seeds = values.first().map_or(&[][..], Vec::as_slice).iter().map(|value| value.0);
    let rows: Vec<Vec<f64>> =
        seeds.filter_map(|seed| values.iter().map(|values| value_at(seed, values)).collect()).collect();
    (Scores::new(&rows).ok(), rows.len())
}

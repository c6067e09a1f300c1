//! The tables of a study: measured beside published numbers, and comparisons of methods.

use crate::estimate::{BOOTSTRAP_SEED, Estimate, Over, Verdict, estimates, matrix, variants};
use crate::experiment::{Protocol, Source};
use crate::published::Published;
use crate::reference::{Reference, hyperparameter, is_default};
use crate::study::{Arm, Run, Study};
use album::config;
use album_base::number::{compact, fixed, grouped, scientific};
use album_report::table::{Align, Cell as Entry, Rank, Table};
use album_stats::{Bootstrap, Divisor, Interval, Scores, improvement};
use std::collections::BTreeSet;

/// Longer names of variants wrap.
const LONG: usize = 32;

/// A table of a study, for people and for programs.
#[derive(Clone, Debug)]
pub struct NamedTable {
    /// Suffix of its file names, after the study's name; empty for the main table.
    pub name: &'static str,
    /// The version for HTML and LaTeX.
    pub table: Table,
    /// The version for CSV: one number per field.
    pub data: Table,
}

/// All tables of a study that have data.
pub fn tables(study: &Study, published: &Published) -> Vec<NamedTable> {
    let mut made = Vec::new();
    let estimated = |metric: &String| estimates(study, published, metric);
    let scores: Vec<Estimate> =
        study.metrics.iter().filter(|metric| *metric == "success").flat_map(estimated).collect();
    if !scores.is_empty() {
        made.push(NamedTable {
            name: "",
            table: shown(study, &scores, published),
            data: data(study, &scores),
        });
        made.extend(side_by_side(study, &scores));
    }
    let others: Vec<Estimate> =
        study.metrics.iter().filter(|metric| *metric != "success").flat_map(estimated).collect();
    if !others.is_empty() {
        made.push(NamedTable {
            name: "statistics",
            table: shown(study, &others, published),
            data: data(study, &others),
        });
    }
    made.extend(crate::change::table(study, published));
    made.extend(improvements(study, published));
    made
}

/// The rank of each estimate among the variants on the same tasks, by the digits shown; none if there is
/// nothing to compare with.
fn ranks(scores: &[Estimate]) -> Vec<Rank> {
    let shown = |line: &Estimate| line.mean().map(|mean| (10.0 * mean).round() as i64);
    let rank = |line: &Estimate| {
        let rivals = scores.iter().filter(|other| place(other) == place(line));
        let means: BTreeSet<i64> = rivals.clone().filter_map(shown).collect();
        let mut best = means.iter().rev();
        match (rivals.count(), shown(line)) {
            (2.., own @ Some(_)) if own.as_ref() == best.next() => Rank::Best,
            (3.., own @ Some(_)) if own.as_ref() == best.next() => Rank::Second,
            _ => Rank::None,
        }
    };
    scores.iter().map(rank).collect()
}

/// The scores in the paper's layout: a row for each task, a column for each variant.
fn side_by_side(study: &Study, scores: &[Estimate]) -> Option<NamedTable> {
    let variants: Vec<&str> = variants(study).into_iter().map(|variant| variant.0).collect();
    let variants: Vec<&str> =
        variants.into_iter().filter(|name| scores.iter().any(|line| line.variant == *name)).collect();
    if variants.len() < 2 {
        return None;
    }
    let header = || std::iter::once("task").chain(variants.iter().copied());
    let align = std::iter::once(Align::Left).chain(variants.iter().map(|_| Align::Right));
    let caption =
        "Success (%) of every variant by task, mean ± deviation over seeds. Best in bold, second underlined.";
    let mut table = Table::new(header()).align(align).caption(caption);
    let mut data = Table::new(header());
    let ranks = ranks(scores);
    let mut places: Vec<String> = Vec::new();
    // Averages come last.
    for line in
        scores.iter().filter(|x| x.over == Over::Task).chain(scores.iter().filter(|x| x.over != Over::Task))
    {
        if !places.contains(&place(line)) {
            places.push(place(line));
        }
    }
    for name in places {
        let mut row = vec![Entry::new(&*name)];
        let mut numbers = row.clone();
        for variant in &variants {
            let found = scores.iter().position(|line| line.variant == *variant && place(line) == name);
            let mean = found.and_then(|k| scores[k].mean());
            row.push(match (found, mean) {
                (Some(k), Some(mean)) => Entry::new(with_deviation(&scores[k], mean, false))
                    .link(format!("#{}", anchor(study, scores[k].arm)))
                    .rank(ranks[k]),
                _ => Entry::from("–"),
            });
            numbers.push(mean.into());
        }
        table = table.row(row);
        data = data.row(numbers);
    }
    Some(NamedTable { name: "side-by-side", table, data })
}

/// `low to high`, or why there is no interval.
pub(crate) fn interval_text(
    interval: Option<Interval>,
    all_equal: bool,
    written: impl Fn(f64) -> String,
) -> Entry {
    match interval {
        Some(interval) => Entry::new(format!("{} to {}", written(interval.low), written(interval.high))),
        None if all_equal => Entry::from("all equal"),
        None => Entry::from("undetermined"),
    }
}

/// The anchor of an arm's runs.
pub(crate) fn anchor(study: &Study, arm: usize) -> String {
    format!("runs-{}-{}", study.name, arm + 1)
}

/// A metric's value with an appropriate number of digits.
pub(crate) fn written(metric: &str, value: f64) -> String {
    match metric {
        "success" | "g_b_satisfied" | "trajectories_reaching_goal" => fixed(value, 1),
        "steps_to_half_success" => fixed(value, 0),
        _ if value.abs() >= 1e5 => scientific(value, 3),
        _ => compact(value),
    }
}

/// The display name of a metric.
pub(crate) fn title(metric: &str) -> String {
    match metric {
        "success" => "success (%)",
        "v_max" => "V max",
        "v_mean" => "V mean",
        "v_min" => "V min",
        "v_max_minus_v_mean" => "V max − V mean",
        "v_max_minus_v_min" => "V max − V min",
        "g_b_satisfied" => "y_{1} ≤ Q (% of samples)",
        "trajectories_reaching_goal" => "trajectories that reach the goal (%)",
        "condition" => "λ_{B} (1 − γ) + 2 λ_{K}",
        "steps_to_half_success" => "steps to 50 % success",
        other => other,
    }
    .to_owned()
}

/// The tasks of a line, as text.
pub(crate) fn place(line: &Estimate) -> String {
    match line.over {
        Over::Task => format!("{} {}", line.environment, line.task).trim_end().to_owned(),
        Over::Environment => format!("{}, mean of 5", line.environment),
        Over::All => "mean of all tasks".into(),
    }
}

fn shown(study: &Study, lines: &[Estimate], published: &Published) -> Table {
    let metrics = lines.iter().any(|line| line.metric != "success");
    let any = |of: fn(&Estimate) -> bool| lines.iter().any(of);
    let same = any(|line| matches!(line.reference, Reference::Same(_)));
    let elsewhere = any(|line| matches!(line.reference, Reference::Elsewhere(_)));
    let groups = any(|line| line.over != Over::Task && line.iqm().is_some());
    let mixed =
        any(|line| line.divisor == Divisor::CountLessOne) && any(|line| line.divisor == Divisor::Count);

    let mut header = Vec::new();
    let mut align = Vec::new();
    let mut column = |name: &str, alignment: Align| {
        header.push(name.to_owned());
        align.push(alignment);
    };
    if metrics {
        column("metric", Align::Left);
    }
    column("variant", Align::Left);
    column("task", Align::Left);
    column("seeds", Align::Right);
    column("measured", Align::Right);
    column("95 % interval", Align::Right);
    if groups {
        column("IQM", Align::Right);
    }
    if same {
        column("published", Align::Right);
        column("difference", Align::Right);
        column("combined interval", Align::Left);
    }
    if elsewhere {
        column("paper, mean over its tasks", Align::Right);
    }

    // A rule between variants helps if they have several lines.
    let ruled = !metrics && lines.windows(2).any(|pair| pair[0].variant == pair[1].variant);
    let mut table = Table::new(header).align(align).caption(caption(study, lines, elsewhere, published));
    if lines.iter().any(|line| line.variant.chars().count() > LONG) {
        table = table.wrap(usize::from(metrics), LONG);
    }
    let ranks = if metrics { vec![Rank::None; lines.len()] } else { ranks(lines) };
    let mut before: Option<&Estimate> = None;
    for (line, rank) in lines.iter().zip(ranks) {
        if before
            .is_some_and(|before| before.metric != line.metric || before.variant != line.variant && ruled)
        {
            table = table.rule();
        }
        before = Some(line);
        let link = format!("#{}", anchor(study, line.arm));
        let number = |value: Option<f64>| match value {
            Some(value) => Entry::new(minus(&written(&line.metric, value))).link(link.clone()),
            None => Entry::from("–"),
        };
        let mut row = Vec::new();
        if metrics {
            row.push(Entry::new(title(&line.metric)));
        }
        row.push(Entry::new(&*line.variant));
        row.push(Entry::new(place(line)));
        row.push(Entry::new(format!("{}/{}", line.done, line.planned)).link(link.clone()));
        row.push(match line.mean() {
            Some(mean) => Entry::new(with_deviation(line, mean, mixed)).link(link.clone()).rank(rank),
            None => Entry::from("–"),
        });
        row.push(if line.mean().is_none() || line.exact {
            Entry::from("–")
        } else {
            let end = |end: f64| minus(&written(&line.metric, end));
            interval_text(line.interval, line.all_equal(), end).link(link.clone())
        });
        if groups {
            row.push(number(line.iqm().filter(|_| line.over != Over::Task)));
        }
        if same {
            row.push(match &line.reference {
                Reference::Same(row) => Entry::new(match row.std {
                    Some(std) => format!(
                        "{} ± {}",
                        minus(&written(&line.metric, row.mean)),
                        written(&line.metric, std)
                    ),
                    None => minus(&written(&line.metric, row.mean)),
                }),
                _ => Entry::from("–"),
            });
            row.push(match line.difference() {
                Some(difference) => {
                    let sign = if difference > 0.0 { "+" } else { "" };
                    Entry::new(format!("{sign}{}", minus(&written(&line.metric, difference))))
                        .link(link.clone())
                }
                None => Entry::from("–"),
            });
            row.push(match line.verdict() {
                Some(verdict @ Verdict::Inside) => Entry::good(verdict.name()),
                Some(verdict @ Verdict::Outside) => Entry::bad(verdict.name()),
                Some(verdict) => Entry::from(verdict.name()),
                None => Entry::from("–"),
            });
        }
        if elsewhere {
            row.push(match line.reference {
                Reference::Elsewhere(mean) => Entry::new(minus(&written(&line.metric, mean))),
                _ => Entry::from("–"),
            });
        }
        table = table.row(row);
    }
    table
}

/// Replaces hyphens in numbers by the typographic minus sign.
pub(crate) fn minus(text: &str) -> String {
    text.replace('-', "−")
}

fn with_deviation(line: &Estimate, mean: f64, mixed: bool) -> String {
    let mean = minus(&written(&line.metric, mean));
    let Some(deviation) = line.deviation() else { return mean };
    let mark = if mixed && line.divisor == Divisor::CountLessOne { " (n − 1)" } else { "" };
    format!("{mean} ± {}{mark}", written(&line.metric, deviation))
}

fn caption(study: &Study, lines: &[Estimate], elsewhere: bool, published: &Published) -> String {
    let same = lines.iter().any(|line| matches!(line.reference, Reference::Same(_)));
    let metrics: Vec<&str> = study.metrics.iter().map(String::as_str).collect();
    let success = lines.iter().any(|line| line.metric == "success");
    let mut parts = Vec::new();
    if success {
        parts.push(match study.protocol {
            Protocol::Final => "Success (%) at the last evaluation.".to_owned(),
            Protocol::LastThree => "Success (%), mean of the last three evaluations.".to_owned(),
        });
    } else {
        parts.push("Statistics at the end of training; values are in rewards of the data.".to_owned());
    }
    let less_one = lines.iter().filter(|line| line.divisor == Divisor::CountLessOne).count();
    let divisor = match less_one {
        0 => "dividing by the number n of seeds",
        all if all == lines.len() => "dividing by one less than the number n of seeds",
        _ => "dividing by the number n of seeds, or by n − 1 where it says so",
    };
    parts.push(format!(
        "Measured: mean ± deviation over seeds, {divisor}; the interval is a stratified bootstrap over seeds."
    ));
    if lines.iter().any(Estimate::all_equal) {
        parts.push("Where all seeds are equal, the interval is undetermined.".into());
    }
    if metrics.contains(&"steps_to_half_success") && !success {
        parts.push("Seeds that never reach 50 % are not in the mean of the steps.".into());
    }
    if same {
        parts.push(
            "The published number is inside the combined interval if it differs by no more than the root of the sum of \
             squares of half the measured interval and of 1.96 deviations of the published mean, where the paper gives \
             those; with one seed it is undetermined."
                .into(),
        );
    }
    parts.extend(short_budget(study, lines, published));
    parts.extend(unsettled(study).filter(|_| success));
    if elsewhere {
        parts.push(
            "The paper does not have these tasks; its mean over the tasks of the same table shows the direction, not the size."
                .into(),
        );
    }
    parts.join(" ")
}

/// A note if runs have fewer steps than the published ones.
fn short_budget(study: &Study, lines: &[Estimate], published: &Published) -> Option<String> {
    let full = hyperparameter(published, "steps")?;
    let compared = lines.iter().filter(|line| matches!(line.reference, Reference::Same(_)));
    let steps = |arm: &Arm| {
        let results = arm.runs.iter().filter_map(|run| run.records.as_ref()?.result.as_ref());
        arm.at.or(results.map(|result| result.steps).max())
    };
    let short: BTreeSet<u64> = compared
        .filter(|line| study.arms[line.arm].source == Source::Agent)
        .filter_map(|line| steps(&study.arms[line.arm]))
        .filter(|steps| (*steps as f64) < full)
        .collect();
    let short: Vec<String> = short.into_iter().map(|steps| grouped(steps as i64)).collect();
    (!short.is_empty()).then(|| {
        format!(
            "The runs have {} steps, the published ones {}: the difference says how far the shorter budget gets.",
            short.join(" or "),
            grouped(full as i64)
        )
    })
}

/// A note on variants that ended before their values could settle.
fn unsettled(study: &Study) -> Option<String> {
    let early = |run: &Run| {
        let config =
            run.records.as_ref().and_then(|records| config::read(&records.config, "config.toml").ok());
        config.is_some_and(|config| matches!(config.unsettled(), Ok(Some(_))))
    };
    let arms = study.arms.iter().filter(|arm| arm.runs.iter().any(early));
    let labels: BTreeSet<&str> = arms.map(|arm| arm.label.as_str()).collect();
    let labels: Vec<&str> = labels.into_iter().collect();
    (!labels.is_empty()).then(|| {
        format!(
            "Ended before values could settle through the target network, so success says little about the method: {}.",
            labels.join(", ")
        )
    })
}

/// The table with one number per field.
fn data(study: &Study, lines: &[Estimate]) -> Table {
    let header = [
        "variant",
        "method",
        "setting",
        "environment",
        "task",
        "metric",
        "seeds_done",
        "seeds_planned",
        "mean",
        "deviation",
        "ddof",
        "low",
        "high",
        "iqm",
        "published_mean",
        "published_deviation",
        "published_seeds",
        "published_by",
        "paper_mean_over_its_tasks",
        "difference",
        "combined_interval",
    ];
    let mut table = Table::new(header);
    for line in lines {
        let arm = &study.arms[line.arm];
        let row = match &line.reference {
            Reference::Same(row) => Some(row),
            _ => None,
        };
        let elsewhere = match line.reference {
            Reference::Elsewhere(mean) => Some(mean),
            _ => None,
        };
        let ddof = line.deviation().map(|_| match line.divisor {
            Divisor::Count => 0u64,
            Divisor::CountLessOne => 1,
        });
        table = table.row([
            Entry::new(&*line.variant),
            Entry::new(&*arm.method),
            Entry::new(&*arm.setting),
            Entry::new(&*line.environment),
            Entry::new(&*line.task),
            Entry::new(&*line.metric),
            line.done.into(),
            line.planned.into(),
            line.mean().into(),
            line.deviation().into(),
            ddof.into(),
            line.interval.map(|interval| interval.low).into(),
            line.interval.map(|interval| interval.high).into(),
            line.iqm().into(),
            row.map(|row| row.mean).into(),
            row.and_then(|row| row.std).into(),
            row.and_then(|row| row.seeds).into(),
            Entry::new(row.map_or("", |row| &row.source)),
            elsewhere.into(),
            line.difference().into(),
            Entry::new(line.verdict().map_or("", Verdict::name)),
        ]);
    }
    table
}

/// The probability that one variant beats each of the others on their common tasks.
///
/// The variant is ALBUM with the paper's settings, if present.
fn improvements(study: &Study, published: &Published) -> Option<NamedTable> {
    let variants = variants(study);
    let arm = |place: &usize| &study.arms[*place];
    let is_default = |variant: &&(&str, Vec<usize>)| {
        let arm = arm(&variant.1[0]);
        arm.method == "ALBUM" && is_default(published, &arm.setting)
    };
    let first = variants.iter().find(is_default).or(variants.first())?;
    let header = ["variant", "over", "tasks", "seeds", "probability", "95 % interval"];
    let mut table = Table::new(header)
        .align([Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right])
        .caption(
        "Probability of improvement: that a run of the first variant succeeds more often than a run of the second on the \
         same task, a tie counted as half, averaged over the tasks that both have with two seeds or more.",
    );
    let mut data =
        Table::new(["variant", "over", "tasks", "seeds", "seeds_over", "probability", "low", "high"]);
    for other in variants.iter().filter(|other| other.0 != first.0) {
        let arms = |of: &(&str, Vec<usize>)| -> Vec<&Arm> { of.1.iter().map(arm).collect() };
        let Some((x, y)) = comparable(study, &arms(first), &arms(other)) else { continue };
        let bootstrap = Bootstrap::new(BOOTSTRAP_SEED);
        let (Ok(probability), Ok(interval)) = (improvement(&x, &y), bootstrap.improvement(&x, &y)) else {
            continue;
        };
        let link = |place: usize| format!("#{}", anchor(study, place));
        let number = |text: String| Entry::new(text).link(link(other.1[0]));
        table = table.row([
            Entry::new(first.0).link(link(first.1[0])),
            Entry::new(other.0).link(link(other.1[0])),
            x.tasks().into(),
            Entry::new(format!("{}, {}", x.runs(), y.runs())),
            number(fixed(probability, 2)),
            number(format!("{} to {}", fixed(interval.low, 2), fixed(interval.high, 2))),
        ]);
        data = data.row([
            Entry::new(first.0),
            Entry::new(other.0),
            x.tasks().into(),
            x.runs().into(),
            y.runs().into(),
            probability.into(),
            interval.low.into(),
            interval.high.into(),
        ]);
    }
    (!table.is_empty()).then_some(NamedTable { name: "improvement", table, data })
}

/// The success of two variants on their common tasks, for complete seeds, at least two of each.
pub(crate) fn comparable(study: &Study, x: &[&Arm], y: &[&Arm]) -> Option<(Scores, Scores)> {
    let enough = |arm: &Arm| matrix(study, &[arm], "success").1 >= 2;
    let has = |arms: &[&Arm], task: &str| arms.iter().any(|arm| arm.task == task && enough(arm));
    let tasks: Vec<&str> =
        x.iter().map(|arm| arm.task.as_str()).filter(|task| has(x, task) && has(y, task)).collect();
    let scores = |arms: &[&Arm]| {
        let arm_on = |task: &&str| arms.iter().find(|arm| arm.task == *task).copied();
        let chosen: Vec<&Arm> = tasks.iter().filter_map(arm_on).collect();
        matrix(study, &chosen, "success").0.filter(|scores| scores.runs() >= 2)
    };
    Some((scores(x)?, scores(y)?))
}

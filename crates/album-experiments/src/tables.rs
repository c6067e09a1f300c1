//! The tables of a study: measured beside published, and who is better than whom.

use crate::experiment::{Protocol, Source};
use crate::line::{BOOTSTRAP_SEED, Line, Over, Verdict, lines, matrix, variants};
use crate::published::Published;
use crate::reference::{Reference, hyperparameter, is_default};
use crate::study::{Cell, Study};
use album_base::number::{compact, fixed, grouped, scientific};
use album_report::table::{Align, Cell as Entry, Table};
use album_stats::{Bootstrap, Divisor, Scores, improvement};
use std::collections::BTreeSet;

/// Names of variants that are longer than this wrap.
const LONG: usize = 32;

/// A table as people read it and as programs do.
#[derive(Clone, Debug)]
pub struct Made {
    /// What its files are called, after the study's name; empty for the main table.
    pub name: &'static str,
    /// For HTML and LaTeX.
    pub table: Table,
    /// For CSV: one number a field.
    pub data: Table,
}

/// All tables of a study that there is something to say in.
pub fn tables(study: &Study, published: &Published) -> Vec<Made> {
    let mut made = Vec::new();
    let of = |metric: &String| lines(study, published, metric);
    let scores: Vec<Line> = study.metrics.iter().filter(|metric| *metric == "success").flat_map(of).collect();
    if !scores.is_empty() {
        made.push(Made { name: "", table: shown(study, &scores, published), data: data(study, &scores) });
    }
    let others: Vec<Line> = study.metrics.iter().filter(|metric| *metric != "success").flat_map(of).collect();
    if !others.is_empty() {
        made.push(Made {
            name: "statistics",
            table: shown(study, &others, published),
            data: data(study, &others),
        });
    }
    made.extend(improvements(study, published));
    made
}

/// The anchor of a cell's runs.
pub(crate) fn anchor(study: &Study, cell: usize) -> String {
    format!("runs-{}-{}", study.name, cell + 1)
}

/// A metric's value with as many digits as it is worth.
pub(crate) fn written(metric: &str, value: f64) -> String {
    match metric {
        "success" | "g_b_satisfied" | "trajectories_reaching_goal" => fixed(value, 1),
        "steps_to_half_success" => fixed(value, 0),
        _ if value.abs() >= 1e5 => scientific(value, 3),
        _ => compact(value),
    }
}

/// What a metric is called.
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

/// What a line is about, in words.
pub(crate) fn place(line: &Line) -> String {
    match line.over {
        Over::Task => format!("{} {}", line.environment, line.task).trim_end().to_owned(),
        Over::Environment => format!("{}, mean of 5", line.environment),
        Over::All => "mean of all tasks".into(),
    }
}

fn shown(study: &Study, lines: &[Line], published: &Published) -> Table {
    let metrics = lines.iter().any(|line| line.metric != "success");
    let any = |of: fn(&Line) -> bool| lines.iter().any(of);
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
        column("paper, mean over its own tasks", Align::Right);
    }

    // A rule between variants helps where they have several lines.
    let ruled = !metrics && lines.windows(2).any(|pair| pair[0].variant == pair[1].variant);
    let mut table = Table::new(header).align(align).caption(caption(study, lines, elsewhere, published));
    if lines.iter().any(|line| line.variant.chars().count() > LONG) {
        table = table.wrap(usize::from(metrics), LONG);
    }
    let mut before: Option<&Line> = None;
    for line in lines {
        if before
            .is_some_and(|before| before.metric != line.metric || before.variant != line.variant && ruled)
        {
            table = table.rule();
        }
        before = Some(line);
        let link = format!("#{}", anchor(study, line.cell));
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
            Some(mean) => Entry::new(with_deviation(line, mean, mixed)).link(link.clone()),
            None => Entry::from("–"),
        });
        row.push(match line.interval {
            Some(interval) => {
                let [low, high] = [interval.low, interval.high].map(|end| minus(&written(&line.metric, end)));
                Entry::new(format!("{low} to {high}")).link(link.clone())
            }
            None => Entry::from("–"),
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

/// Numbers in text have the minus sign of print.
fn minus(text: &str) -> String {
    text.replace('-', "−")
}

fn with_deviation(line: &Line, mean: f64, mixed: bool) -> String {
    let mean = minus(&written(&line.metric, mean));
    let Some(deviation) = line.deviation() else { return mean };
    let mark = if mixed && line.divisor == Divisor::CountLessOne { " (n − 1)" } else { "" };
    format!("{mean} ± {}{mark}", written(&line.metric, deviation))
}

fn caption(study: &Study, lines: &[Line], elsewhere: bool, published: &Published) -> String {
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
    if metrics.contains(&"steps_to_half_success") && !success {
        parts.push("Seeds that never reach 50 % are not in the mean of the steps.".into());
    }
    if same {
        parts.push(
            "The published number is inside the combined interval if it differs by no more than the root of the sum of \
             squares of half the measured interval and of 1.96 deviations of the published mean, where the paper gives \
             those. With one seed nobody can tell."
                .into(),
        );
    }
    parts.extend(short_budget(study, lines, published));
    if elsewhere {
        parts.push(
            "The paper does not have these tasks: its mean is over other tasks and serves as orientation."
                .into(),
        );
    }
    parts.join(" ")
}

/// Runs of fewer steps than the published ones are not the same experiment, and the table has to say so.
fn short_budget(study: &Study, lines: &[Line], published: &Published) -> Option<String> {
    let full = hyperparameter(published, "steps")?;
    let compared = lines.iter().filter(|line| matches!(line.reference, Reference::Same(_)));
    let steps = |cell: &Cell| {
        let results = cell.runs.iter().filter_map(|run| run.records.as_ref()?.result.as_ref());
        cell.at.or(results.map(|result| result.steps).max())
    };
    let short: BTreeSet<u64> = compared
        .filter(|line| study.cells[line.cell].source == Source::Agent)
        .filter_map(|line| steps(&study.cells[line.cell]))
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

/// One number a field.
fn data(study: &Study, lines: &[Line]) -> Table {
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
        "paper_mean_over_its_own_tasks",
        "difference",
        "combined_interval",
    ];
    let mut table = Table::new(header);
    for line in lines {
        let cell = &study.cells[line.cell];
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
            Entry::new(&*cell.method),
            Entry::new(&*cell.setting),
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

/// The probability that one variant beats each other one on the tasks that both have.
///
/// The one is ALBUM as the paper has it, where there is such a variant.
fn improvements(study: &Study, published: &Published) -> Option<Made> {
    let variants = variants(study);
    let cell = |place: &usize| &study.cells[*place];
    let is_default = |variant: &&(&str, Vec<usize>)| {
        let cell = cell(&variant.1[0]);
        cell.method == "ALBUM" && is_default(published, &cell.setting)
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
        let cells = |of: &(&str, Vec<usize>)| -> Vec<&Cell> { of.1.iter().map(cell).collect() };
        let Some((x, y)) = comparable(study, &cells(first), &cells(other)) else { continue };
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
    (!table.is_empty()).then_some(Made { name: "improvement", table, data })
}

/// The success of two variants on the tasks that both have, of the seeds that are complete, two of each at least.
pub(crate) fn comparable(study: &Study, x: &[&Cell], y: &[&Cell]) -> Option<(Scores, Scores)> {
    let enough = |cell: &Cell| matrix(study, &[cell], "success").1 >= 2;
    let has = |cells: &[&Cell], task: &str| cells.iter().any(|cell| cell.task == task && enough(cell));
    let tasks: Vec<&str> =
        x.iter().map(|cell| cell.task.as_str()).filter(|task| has(x, task) && has(y, task)).collect();
    let scores = |cells: &[&Cell]| {
        let of = |task: &&str| cells.iter().find(|cell| cell.task == *task).copied();
        let chosen: Vec<&Cell> = tasks.iter().filter_map(of).collect();
        matrix(study, &chosen, "success").0.filter(|scores| scores.runs() >= 2)
    };
    Some((scores(x)?, scores(y)?))
}

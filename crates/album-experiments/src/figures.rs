//! The figures of a study: learning curves, comparisons, values, profiles.

use crate::estimate::{BOOTSTRAP_SEED, Estimate, NORMAL_95, Over, estimates, matrix, variants};
use crate::experiment::Source;
use crate::published::Published;
use crate::reference::{Reference, place};
use crate::study::{Arm, Run, Study};
use crate::tables;
use album_plot::{Figure, Ink, Legend, Plot, Scale, panels};
use album_stats::{Bootstrap, Scores, mean, profile};
use album_train::Records;

/// Bootstrap resamples per band; fewer than for tables, since its ends are only drawn.
const BAND_RESAMPLES: usize = 2_000;
/// Values beyond this are shown on a logarithmic scale.
const LARGE: f64 = 1e4;
/// Maximum number of curves per panel; more bands would hide each other.
const PER_PANEL: usize = 5;
/// Number of colours in the palette.
const COLOURS: usize = 8;

/// A figure, its file-name suffix and its caption.
#[derive(Clone, Debug)]
pub struct NamedFigure {
    /// The name.
    pub name: &'static str,
    /// The figure.
    pub figure: Figure,
    /// The caption.
    pub caption: String,
}

/// All figures of a study that have data.
pub fn figures(study: &Study, published: &Published) -> Vec<NamedFigure> {
    let mut drawn = Vec::new();
    drawn.extend(comparison(study, published));
    drawn.extend(curves(study));
    if study.metrics.iter().any(|metric| metric == "v_mean") {
        drawn.extend(values(study));
    }
    drawn.extend(profiles(study));
    drawn.extend(crate::maps::value_maps(study));
    drawn
}

/// The tasks of a study in order.
pub(crate) fn tasks(study: &Study) -> Vec<&str> {
    let mut tasks: Vec<&str> = Vec::new();
    for arm in &study.arms {
        if !tasks.contains(&arm.task.as_str()) {
            tasks.push(&arm.task);
        }
    }
    tasks
}

pub(crate) fn task_title(task: &str) -> String {
    let (environment, number) = place(task);
    format!("{environment} {number}").trim_end().to_owned()
}

/// Final numbers with their intervals, beside the published ones.
fn comparison(study: &Study, published: &Published) -> Option<NamedFigure> {
    // Success if it is measured, else the first metric that is.
    let (success, others): (Vec<&String>, Vec<&String>) =
        study.metrics.iter().partition(|name| *name == "success");
    let (metric, all) = (success.into_iter().chain(others))
        .map(|metric| (metric, estimates(study, published, metric)))
        .find(|(_, lines)| lines.iter().any(|line| line.mean().is_some()))?;
    let many = tasks(study).len() > 6 && all.iter().any(|line| line.over != Over::Task);
    let mut places: Vec<(String, Vec<&Estimate>)> = Vec::new();
    let shown = |line: &&Estimate| line.mean().is_some() || matches!(line.reference, Reference::Same(_));
    for line in all.iter().filter(shown).filter(|line| !many || line.over != Over::Task) {
        let place = tables::place(line);
        match places.iter_mut().find(|known| known.0 == place) {
            Some(known) => known.1.push(line),
            None => places.push((place, vec![line])),
        }
    }
    places.retain(|(_, lines)| lines.iter().any(|line| line.mean().is_some()));
    let longest = all.iter().map(|line| line.variant.chars().count()).max().unwrap_or(0);
    let columns = if places.len() == 1 || longest > 20 { 1 } else { 2 };
    let width = if columns == 1 { 760.0 } else { 490.0 };
    let plots = places.iter().map(|(place, lines)| {
        let plot = dots(lines, if places.len() == 1 { "" } else { place }).x_label(tables::title(metric));
        let plot = plot.size(width, 80.0 + 30.0 * lines.len() as f64).legend(Legend::Shared);
        if metric == "success" {
            plot.x_range(-2.0, 102.0).x_ticks(&[0.0, 20.0, 40.0, 60.0, 80.0, 100.0])
        } else {
            plot
        }
    });
    let marks = if all.iter().any(|line| matches!(line.reference, Reference::Same(_))) {
        " Published means of the same task with 1.96 deviations of the mean, where the paper gives those, are beside them."
    } else {
        ""
    };
    Some(NamedFigure {
        name: "comparison",
        figure: panels("", plots, columns),
        caption: format!(
            "{}: mean over seeds with its 95 % bootstrap interval.{marks}",
            sentence(&tables::title(metric))
        ),
    })
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn dots(lines: &[&Estimate], title: &str) -> Plot {
    // Offset from the middle of the row, so that neither hides the other.
    let both = lines.iter().any(|line| matches!(line.reference, Reference::Same(_)));
    let (above, below) = if both { (-0.14, 0.2) } else { (0.0, 0.0) };
    let ink = [Ink::Series(0), Ink::Series(1)];
    let (mut measured, mut published, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for (row, line) in lines.iter().enumerate() {
        let row = row as f64;
        measured.extend(line.mean().map(|mean| (mean, row + above)));
        ranges.extend(line.interval.map(|i| (ink[0], [(i.low, row + above), (i.high, row + above)])));
        if let Reference::Same(number) = &line.reference {
            published.push((number.mean, row + below));
            ranges.extend(number.std.zip(number.seeds).map(|(std, seeds)| {
                let half = NORMAL_95 * std / f64::from(seeds).sqrt();
                (ink[1], [(number.mean - half, row + below), (number.mean + half, row + below)])
            }));
        }
    }
    // Marks come first, because their shape depends on their index.
    let mut plot = Plot::new(title).y_names(lines.iter().map(|line| line.variant.as_str()));
    plot = plot.points("measured", &measured).ink(ink[0]);
    if both {
        plot = plot.points("published", &published).ink(ink[1]);
    }
    ranges.iter().fold(plot, |plot, (ink, ends)| plot.line("", ends).ink(*ink))
}

/// Success over training steps.
fn curves(study: &Study) -> Option<NamedFigure> {
    let success = |records: &Records| -> Points {
        let series = records.eval.series("evaluation/success");
        series.into_iter().map(|(step, share)| (step, 100.0 * share)).collect()
    };
    let figure = over_steps(study, success, |plot| plot.y_label("success (%)").y_range(-2.0, 102.0))?;
    let caption = "Success (%) over training steps: mean over seeds with its 95 % bootstrap interval; a seed that has not \
                   come so far is not in it.";
    Some(NamedFigure { name: "curves", figure, caption: caption.into() })
}

/// Mean values over training steps. Diverging values need a logarithmic scale.
fn values(study: &Study) -> Option<NamedFigure> {
    let mean_v = |records: &Records| -> Points {
        let mut names = records.train.names();
        let name = names.find(|name| name.ends_with("/v_mean")).unwrap_or_default();
        records.train.series(name)
    };
    let runs = || study.arms.iter().flat_map(|arm| &arm.runs).filter_map(|run| run.records.as_ref());
    let large = runs().flat_map(&mean_v).any(|point| point.1.abs() > LARGE);
    let figure = if large {
        let below =
            |records: &Records| mean_v(records).into_iter().map(|(step, value)| (step, -value)).collect();
        over_steps(study, below, |plot| plot.y_label("− mean V").y_scale(Scale::Log))?
    } else {
        over_steps(study, mean_v, |plot| plot.y_label("mean V"))?
    };
    let scale = if large {
        " Values below zero are shown, with their sign reversed, on a logarithmic scale."
    } else {
        ""
    };
    let caption = format!(
        "Mean V over a batch during training, in rewards of the data: mean over seeds with its 95 % bootstrap \
         interval.{scale}"
    );
    Some(NamedFigure { name: "values", figure, caption })
}

/// One panel per task, or several if bands of many variants would hide each other; one line per variant. Arms
/// that evaluate the same runs at different steps share a line.
fn over_steps(
    study: &Study,
    series: impl Fn(&Records) -> Points,
    axes: impl Fn(Plot) -> Plot,
) -> Option<Figure> {
    let tasks: Vec<(&str, Vec<Curve>)> =
        tasks(study).into_iter().map(|task| (task, curves_of(study, task, &series))).collect();
    let most = tasks.iter().map(|(_, curves)| curves.len()).max()?;
    let parts = most.div_ceil(PER_PANEL);
    let columns = if tasks.len() * parts == 1 {
        1
    } else if parts > 1 {
        parts.min(3)
    } else {
        3
    };
    let (width, height) = [(760.0, 360.0), (490.0, 290.0), (375.0, 240.0)][columns - 1];
    let mut plots = Vec::new();
    for (task, curves) in &tasks {
        for some in curves.chunks(curves.len().div_ceil(curves.len().div_ceil(PER_PANEL).max(1)).max(1)) {
            let title = if tasks.len() * parts == 1 { String::new() } else { task_title(task) };
            let mut plot = Plot::new(title).size(width, height).x_label("training step").x_include(0.0);
            plot = axes(plot).legend(Legend::Shared);
            for curve in some {
                let ink = Ink::Series(curve.number % COLOURS);
                // Dashes distinguish lines of the same colour.
                let dashed = curve.number >= COLOURS;
                let name = curve.name.as_str();
                plot = if dashed { plot.dashed(name, &curve.middle) } else { plot.line(name, &curve.middle) };
                plot = plot.ink(ink).band("", &curve.low, &curve.high).ink(ink);
            }
            plots.push(plot);
        }
    }
    (!plots.is_empty()).then(|| panels("", plots, columns))
}

/// The mean of a variant's runs over steps, with its interval.
struct Curve {
    name: String,
    /// Index of the variant, which determines the colour.
    number: usize,
    middle: Points,
    low: Points,
    high: Points,
}

fn curves_of(study: &Study, task: &str, series: &impl Fn(&Records) -> Points) -> Vec<Curve> {
    let names: Vec<&str> = variants(study).into_iter().map(|variant| variant.0).collect();
    let mut seen: Vec<&Run> = Vec::new();
    let mut curves = Vec::new();
    for arm in study.arms.iter().filter(|arm| arm.task == task && arm.source == Source::Agent) {
        if arm.runs.iter().any(|run| seen.iter().any(|known| known.path == run.path)) {
            continue;
        }
        seen.extend(&arm.runs);
        let of: Vec<Points> = arm.runs.iter().filter_map(|run| run.records.as_ref()).map(series).collect();
        let (middle, low, high) = band(&of);
        if !middle.is_empty() {
            let number = names.iter().position(|name| *name == arm.label).unwrap_or(0);
            curves.push(Curve { name: legend_name(study, arm), number, middle, low, high });
        }
    }
    curves
}

/// Variants that evaluate the same run at several steps share its curve and name.
fn legend_name(study: &Study, arm: &Arm) -> String {
    let same = |other: &&Arm| {
        other.task == arm.task
            && other.runs.first().map(|run| &run.path) == arm.runs.first().map(|run| &run.path)
    };
    match study.arms.iter().filter(|other| other.source == Source::Agent).filter(same).count() {
        0 | 1 => arm.label.clone(),
        _ => arm.method.clone(),
    }
}

type Points = Vec<(f64, f64)>;

/// The mean of some curves at each step that any of them has, and its interval if at least two have it.
fn band(curves: &[Points]) -> (Points, Points, Points) {
    let mut steps: Vec<f64> = curves.iter().flatten().map(|point| point.0).collect();
    steps.sort_by(f64::total_cmp);
    steps.dedup();
    let bootstrap = Bootstrap { resamples: BAND_RESAMPLES, ..Bootstrap::new(BOOTSTRAP_SEED) };
    let (mut middle, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for step in steps {
        let at = |curve: &Points| curve.iter().find(|point| point.0 == step).map(|point| point.1);
        let found: Vec<f64> = curves.iter().filter_map(at).collect();
        // A curve that ends early, or has points at other steps, would make the mean jump.
        let alive = |curve: &&Points| curve.last().is_some_and(|last| last.0 >= step);
        if found.len() < curves.iter().filter(alive).count() {
            continue;
        }
        middle.extend(mean(&found).map(|mean| (step, mean)));
        let rows: Vec<[f64; 1]> = found.iter().map(|&value| [value]).collect();
        let scores = Scores::new(&rows).ok().filter(|scores| scores.runs() > 1);
        if let Some(interval) = scores.and_then(|scores| bootstrap.interval(&scores, Scores::mean).ok()) {
            low.push((step, interval.low));
            high.push((step, interval.high));
        }
    }
    (middle, low, high)
}

/// The fraction of runs above each success rate, if there are several tasks.
fn profiles(study: &Study) -> Option<NamedFigure> {
    if tasks(study).len() < 2 {
        return None;
    }
    let thresholds: Vec<f64> = (0..100).map(f64::from).collect();
    let bootstrap = Bootstrap { resamples: BAND_RESAMPLES, ..Bootstrap::new(BOOTSTRAP_SEED) };
    let mut plot = Plot::new("").size(760.0, 360.0).x_label("success τ (%)").y_label("share of runs above τ");
    plot = plot.y_range(-0.02, 1.02).legend(Legend::Right);
    let mut any = false;
    for (number, (label, arms)) in variants(study).into_iter().enumerate() {
        // Fractions over different tasks are not comparable.
        if arms.len() < tasks(study).len() {
            continue;
        }
        let arms: Vec<&Arm> = arms.iter().map(|&arm| &study.arms[arm]).collect();
        let Some(scores) = matrix(study, &arms, "success").0 else { continue };
        let Ok(shares) = profile(&scores, &thresholds) else { continue };
        any = true;
        let ink = Ink::Series(number % COLOURS);
        let points: Points = thresholds.iter().copied().zip(shares).collect();
        plot =
            if number < COLOURS { plot.line(label, &points) } else { plot.dashed(label, &points) }.ink(ink);
        if scores.runs() > 1
            && let Ok(intervals) = bootstrap.profile(&scores, &thresholds)
        {
            let ends = |of: fn(&album_stats::Interval) -> f64| -> Points {
                thresholds.iter().copied().zip(intervals.iter().map(of)).collect()
            };
            plot = plot.band("", &ends(|i| i.low), &ends(|i| i.high)).ink(ink);
        }
    }
    let caption = "Performance profile: the share of runs, over all tasks, with a success above τ, with its 95 % bootstrap \
                   interval at each τ.";
    any.then(|| NamedFigure { name: "profile", figure: (&plot).into(), caption: caption.into() })
}

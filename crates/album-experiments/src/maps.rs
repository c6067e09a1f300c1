//! Value maps: what each variant thinks of the maze as training goes on.

use crate::experiment::Source;
use crate::figures::{Drawn, task_title, tasks};
use crate::study::{Cell, Run, Study};
use album_base::number::grouped;
use album_plot::{Figure, panels};
use album_train::{ValueMap, report};

/// Maps of one run.
const MAPS: usize = 4;
/// Variants with ranges that differ by more than this have colour scales of their own.
const COMPARABLE: f64 = 5.0;

/// A row of maps for each variant: of its first seed that has any, at evenly spread steps. Where maps are not what the
/// study is about, on its first task only.
pub(crate) fn value_maps(study: &Study) -> Option<Drawn> {
    let shown =
        |cell: &&Cell| cell.source == Source::Agent && (study.value_maps || cell.task == tasks(study)[0]);
    let mut rows: Vec<(&Cell, Vec<&ValueMap>)> = Vec::new();
    let mut seen: Vec<&Run> = Vec::new();
    for cell in study.cells.iter().filter(shown) {
        let of = |run: &Run| run.records.as_ref().is_some_and(|records| !records.value_maps.is_empty());
        let Some(run) = cell.runs.iter().find(|run| of(run)) else { continue };
        if seen.iter().any(|known| known.path == run.path) {
            continue;
        }
        seen.push(run);
        let maps = spread(run.records.as_ref().map_or(&[][..], |records| &records.value_maps));
        if range(&maps).0 <= range(&maps).1 {
            rows.push((cell, maps));
        }
    }
    let ranges: Vec<(f64, f64)> = rows.iter().map(|(_, maps)| range(maps)).collect();
    let all = ranges.iter().fold(None, |all: Option<(f64, f64)>, range| {
        Some(all.map_or(*range, |all| (all.0.min(range.0), all.1.max(range.1))))
    })?;
    let least = ranges.iter().map(|range| range.1 - range.0).fold(f64::INFINITY, f64::min);
    let common = all.1 - all.0 <= COMPARABLE * least;
    let several = tasks(study).len() > 1;
    let figures = rows.iter().zip(&ranges).map(|((cell, maps), range)| {
        let (low, high) = if common { all } else { *range };
        let place =
            if several && study.value_maps { format!("{}: ", task_title(&cell.task)) } else { String::new() };
        let row = maps.iter().map(|map| -> Figure {
            let title = format!("step {}", grouped(map.step as i64));
            let grid = report::value_map(map, &cell.task).title(title).size(190.0).colour_bar("V");
            (&grid.range(low, high)).into()
        });
        panels(format!("{place}{}", cell.label), row, MAPS)
    });
    let figures: Vec<Figure> = figures.collect();
    let scale = if common { "all with one colour scale" } else { "each variant with its own colour scale" };
    Some(Drawn {
        name: "maps",
        figure: panels("", figures, 1),
        caption: format!(
            "The state value V over the maze as training goes on, in the agent's units, {scale}: the first seed of each \
             variant. S is the start, G the goal, walls are grey."
        ),
    })
}

/// Evenly spread, with the first and the last.
fn spread(maps: &[ValueMap]) -> Vec<&ValueMap> {
    let shown = maps.len().min(MAPS);
    (0..shown).map(|i| &maps[if shown == 1 { 0 } else { i * (maps.len() - 1) / (shown - 1) }]).collect()
}

fn range(maps: &[&ValueMap]) -> (f64, f64) {
    let values = maps.iter().flat_map(|map| map.values.iter().flatten()).map(|value| f64::from(*value));
    let values = values.filter(|value| value.is_finite());
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

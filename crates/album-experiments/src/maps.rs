//! Value maps: V over the maze during training, for each variant.

use crate::experiment::Source;
use crate::figures::{NamedFigure, task_title, tasks};
use crate::measure::setting;
use crate::study::{Arm, Run, Study};
use album::report;
use album_base::number::grouped;
use album_base::spread::evenly;
use album_plot::{Figure, panels};
use album_train::Records;

/// Number of maps per run.
const MAPS: usize = 4;

/// A row of maps for each variant, from its first seed that has any, at evenly spaced steps. If the study is
/// not about maps, only for its first task.
///
/// All maps share the paper's colour scale, from -1 / (1 - gamma), the value of never reaching the goal, to
/// 0, the value at the goal. A scale fitted to each map would make a nearly uniform V look full of contrast.
pub(crate) fn value_maps(study: &Study) -> Option<NamedFigure> {
    let shown = |arm: &&Arm| arm.source == Source::Agent && (study.value_maps || arm.task == tasks(study)[0]);
    let mut rows: Vec<(&Arm, &Records)> = Vec::new();
    let mut seen: Vec<&Run> = Vec::new();
    for arm in study.arms.iter().filter(shown) {
        let has_maps = |run: &Run| run.records.as_ref().is_some_and(|records| !records.value_maps.is_empty());
        let Some(run) = arm.runs.iter().find(|run| has_maps(run)) else { continue };
        if seen.iter().any(|known| known.path == run.path) {
            continue;
        }
        seen.push(run);
        rows.extend(run.records.as_ref().map(|records| (arm, records)));
    }
    let several = tasks(study).len() > 1;
    let figures = rows.iter().map(|(arm, records)| {
        let low = -1.0 / (1.0 - setting(records, "gamma").unwrap_or(DEFAULT_GAMMA));
        let place =
            if several && study.value_maps { format!("{}: ", task_title(&arm.task)) } else { String::new() };
        let row = evenly(&records.value_maps, MAPS).into_iter().map(|map| -> Figure {
            let title = format!("step {}", grouped(map.step as i64));
            let grid = report::value_map(map, &arm.task).title(title).size(190.0).colour_bar("V");
            (&grid.range(low, 0.0)).into()
        });
        panels(format!("{place}{}", arm.label), row, MAPS)
    });
    let figures: Vec<Figure> = figures.collect();
    (!figures.is_empty()).then(|| NamedFigure {
        name: "maps",
        figure: panels("", figures, 1),
        caption: "The state value V over the maze during training, in units of the data's rewards: the first seed of \
                  each variant. Every map has the same colour scale, from −1 / (1 − γ) to 0; values beyond it have the \
                  colour of its end. S is the start, G the goal, walls are grey."
            .into(),
    })
}

/// The default discount of every agent.
const DEFAULT_GAMMA: f64 = 0.995;

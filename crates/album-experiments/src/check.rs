//! Checks of an experiment file that its types cannot express.

use crate::experiment::{Command, Experiment, Grid, Scale};
use crate::measure::METRICS;
use crate::published::Published;
use album_base::{limits, suggest};
use std::collections::BTreeSet;

/// More seeds than this are taken for a typo.
const MOST_SEEDS: u64 = 10_000;

/// Reports what is wrong, if anything.
pub(crate) fn check(experiment: &Experiment) -> Result<(), String> {
    if experiment.paper.is_empty() && experiment.small.is_empty() {
        return Err("nothing to run; expected [small] or [paper] with tasks".into());
    }
    if let Some(table) = &experiment.published {
        let published = Published::load().map_err(|e| e.to_string())?;
        published.rows(table).map_err(|e| e.to_string())?;
    }
    if let Some(metric) = experiment.metrics.iter().find(|metric| !METRICS.contains(&metric.as_str())) {
        return Err(format!("there is no metric `{metric}`{}", suggest::hint(metric, METRICS)));
    }
    // Tables distinguish variants by their labels.
    let mut labels = BTreeSet::new();
    if let Some(twin) = experiment.variants.iter().find(|variant| !labels.insert(&variant.label)) {
        return Err(format!("two variants are called `{}`", twin.label));
    }
    for variant in &experiment.variants {
        let Some(baseline) = &variant.baseline else { continue };
        if *baseline == variant.label || !labels.contains(baseline) {
            let others = labels.iter().filter(|label| **label != &variant.label).map(|label| label.as_str());
            return Err(format!(
                "variant `{}` has the baseline `{baseline}`, expected the label of another variant{}",
                variant.label,
                suggest::hint(baseline, others.collect::<Vec<_>>())
            ));
        }
    }
    for (scale, grid) in [(Scale::Paper, &experiment.paper), (Scale::Small, &experiment.small)] {
        of_a_scale(experiment, scale, grid).map_err(|reason| format!("[{scale}] {reason}"))?;
    }
    Ok(())
}

fn of_a_scale(experiment: &Experiment, scale: Scale, grid: &Grid) -> Result<(), String> {
    let given = grid.seeds > 0 || !grid.set.is_empty() || !grid.data.is_empty();
    if grid.is_empty() && !given {
        return Ok(()); // The file does not have this scale.
    }
    let runs = !grid.tasks.is_empty();
    if runs != grid.command.is_none() {
        return Err("needs either tasks or a command".into());
    }
    if runs && (grid.seeds == 0 || experiment.variants.is_empty()) {
        return Err("has tasks, so it needs seeds = N and a [[variant]]".into());
    }
    let counts = experiment.variants.iter().filter_map(|variant| variant.seeds.get(&scale));
    let most = counts.copied().chain([grid.seeds]).max().unwrap_or(0);
    if most > MOST_SEEDS || grid.first_seed.checked_add(most).is_none() {
        return Err(format!("has {most} seeds from {} on; expected {MOST_SEEDS} at most", grid.first_seed));
    }
    if let Some((environment, _)) = grid.tasks.iter().find(|(_, numbers)| numbers.is_empty()) {
        return Err(format!("has no task of {environment}: expected numbers from 1 to 5"));
    }
    if let Some(Command::Cost(options)) = &grid.command {
        limits::check("rounds", options.rounds as u64).map_err(|e| e.to_string())?;
    }
    experiment.specs(scale).map_err(|e| e.to_string())?;
    Ok(())
}

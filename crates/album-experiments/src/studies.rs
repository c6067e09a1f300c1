//! Builds the studies of plans, for reports.

use crate::experiment::{Experiment, Scale, names};
use crate::page::{Written, write};
use crate::plan::{Plan, Work, shell};
use crate::results::{Results, State};
use crate::study::{Arm, Run, Study};
use album::Error;
use std::path::Path;

/// The study of a plan with all its runs, including those not yet started.
pub fn study(plan: &Plan, results: &Results) -> Result<Study, Error> {
    let experiment = &plan.experiment;
    let mut study = Study {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        reference: experiment.reference.clone(),
        scale: Some(plan.scale),
        published: experiment.published.clone(),
        protocol: experiment.grid(plan.scale).protocol,
        metrics: experiment.metrics.clone(),
        value_maps: experiment.value_maps,
        command: format!("album reproduce {} --scale {}", shell(&experiment.argument), plan.scale),
        arms: Vec::new(),
        outputs: None,
    };
    if let [run] = &plan.runs[..]
        && let Work::Command(_) = run.work
    {
        study.outputs = Some(results.run(&run.id));
        return Ok(study);
    }
    // By variant and task, independent of the order of execution.
    let mut order: Vec<usize> = (0..plan.specs.len()).collect();
    let task = |k: usize| plan.specs[k].0.task.to_string();
    order.sort_by_key(|&k| (plan.specs[k].0.variant, task(k), plan.specs[k].0.seed));
    for k in order {
        let (spec, place) = &plan.specs[k];
        let planned = &plan.runs[*place];
        let variant = &experiment.variants[spec.variant];
        let run = Run {
            seed: spec.seed,
            path: results.run(&planned.id),
            command: planned.command(Some(spec)),
            records: results.records(&planned.id)?,
            failure: match results.state(planned) {
                State::Failed(note) => Some(note.message),
                _ => None,
            },
        };
        let name = task(k);
        match study.arms.last_mut() {
            Some(arm) if arm.label == variant.label && arm.task == name => arm.runs.push(run),
            _ => study.arms.push(Arm {
                label: variant.label.clone(),
                method: variant.method.clone(),
                setting: variant.published_setting(),
                task: name,
                baseline: variant.baseline.clone(),
                at: variant.at.get(&plan.scale).copied(),
                source: variant.source,
                runs: vec![run],
            }),
        }
    }
    Ok(study)
}

/// Writes the report of a plan into its results folder.
pub fn write_report(plan: &Plan, results: &Results) -> Result<Written, Error> {
    Ok(write(&[study(plan, results)?], &[], &results.report(&plan.name()))?)
}

/// The combined error of a plan's failed runs, with the exit code and the end of the log of the first.
pub fn failure(plan: &Plan, results: &Results) -> Option<Error> {
    let listing = results.list();
    let mut failures = plan.runs.iter().filter_map(|run| match listing.state(run) {
        State::Failed(note) => Some((run, note)),
        _ => None,
    });
    let (run, note) = failures.next()?;
    let more = match failures.count() {
        0 => String::new(),
        n => format!(" ({n} more failed; --status lists them)"),
    };
    Some(Error::Runs {
        code: note.code.unwrap_or(5),
        message: format!(
            "{} failed: {}{more}\nthe end of {}:\n{}\nthe same command tries again",
            run.id,
            note.message,
            results.log(&run.id).display(),
            results.log_end(&run.id, 10)
        ),
    })
}

/// The studies of every experiment with a run in a results folder.
pub fn all(folder: &Path) -> Result<Vec<Study>, Error> {
    let results = Results::at(folder)?;
    let mut studies = Vec::new();
    for scale in [Scale::Small, Scale::Paper] {
        for name in names() {
            let plan = Plan::new(Experiment::find(name)?, scale, &Default::default())?;
            if plan.runs.iter().any(|run| results.run(&run.id).is_dir()) {
                studies.push(study(&plan, &results)?);
            }
        }
    }
    Ok(studies)
}

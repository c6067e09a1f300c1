//! The FQE section of a run's report.

use super::{Estimate, Evaluation, Saved, Verdict};
use album_base::number::{grouped, percent, significant};
use album_plot::{Legend, Plot};
use album_report::html::Page;
use album_report::table::{Cell, Status, Table};

/// Heading of the section.
pub(crate) const TITLE: &str = "Off-policy evaluation";

impl Saved {
    /// Adds the section to a page.
    pub fn show(&self, page: Page) -> Page {
        let evaluation = &self.evaluation;
        let status = match evaluation.verdict {
            Verdict::Better => Status::Good,
            Verdict::Worse | Verdict::NotCalibrated => Status::Bad,
            Verdict::CannotTell => Status::Neutral,
        };
        let page = page
            .section(TITLE)
            .callout(status, format!("Verdict: {}: {}.", evaluation.verdict, evaluation.reason))
            .table(values(evaluation))
            .figure(
                "calibration",
                self.plot(),
                "Calibration: the return of each episode, observed and estimated.",
            );
        let page = evaluation
            .warnings
            .iter()
            .fold(page, |page, warning| page.callout(Status::Neutral, warning.clone()));
        page.subsection("Diagnostics").keys(diagnostics(evaluation))
    }

    fn plot(&self) -> Plot {
        let points: Vec<(f64, f64)> = self.calibration.iter().map(|&[x, y]| (x, y)).collect();
        let ends = points.iter().flat_map(|&(x, y)| [x, y]);
        let (low, high) =
            ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        Plot::new("")
            .size(440.0, 320.0)
            .x_label("observed return")
            .y_label("estimated value")
            .points("episodes", &points)
            .line("equal", &[(low, low), (high, high)])
            .legend(Legend::Hidden)
    }
}

fn values(evaluation: &Evaluation) -> Table {
    let row = |name: &str, estimate: &Estimate| {
        [
            Cell::from(name.to_owned()),
            Cell::new(significant(estimate.mean, 4)),
            Cell::new(format!("{} to {}", significant(estimate.low, 4), significant(estimate.high, 4))),
        ]
    };
    let plain = |name: &str, value: f64| {
        [Cell::from(name.to_owned()), Cell::new(significant(value, 4)), Cell::from(String::new())]
    };
    let mut table = Table::new(["value at initial states", "mean", "95 % interval"])
        .row(row("policy", &evaluation.policy))
        .row(plain("policy, by walks over recorded steps", evaluation.diagnostics.unseen.walked))
        .row(row("behaviour, by the same estimator", &evaluation.behaviour.estimated))
        .row(plain("behaviour, observed return", evaluation.behaviour.observed))
        .row(row("policy minus behaviour", &evaluation.difference));
    if let Some(importance) = &evaluation.importance {
        if let Some(wis) = &importance.wis {
            table = table.row(row("policy, weighted importance sampling", wis));
        }
        table = table
            .row(row("policy, per-decision importance sampling", &importance.pdis))
            .row(row("policy, doubly robust", &importance.dr));
    }
    table.caption(format!(
        "Discounted by {} from the first states of {} episodes ({}) with {} transitions; {} networks.",
        evaluation.gamma,
        grouped(evaluation.episodes as i64),
        evaluation.subject.data,
        grouped(evaluation.transitions as i64),
        evaluation.ensemble
    ))
}

fn diagnostics(evaluation: &Evaluation) -> Vec<(&'static str, String)> {
    let number = |x: f64| significant(x, 3);
    let found = &evaluation.diagnostics;
    let distance = &found.action_distance;
    let mut rows = vec![
        ("calibration gap", number(found.calibration_gap)),
        ("estimates in the observed return", percent(found.observed_tail, 1)),
        ("deviation over the ensemble", number(found.ensemble_deviation)),
        (
            "TD error (mean absolute, root mean square)",
            format!("{}, {}", number(found.td_error.mean_absolute), number(found.td_error.root_mean_square)),
        ),
        (
            "distance of actions (5, 25, 50, 75, 95 %)",
            [distance.q05, distance.q25, distance.q50, distance.q75, distance.q95].map(number).join(", "),
        ),
        ("states outside the data's support", percent(found.support.outside, 1)),
        (
            "room for what was never recorded (below, above)",
            format!("{}, {}", number(found.unseen.below), number(found.unseen.above)),
        ),
    ];
    if let Some(value) = found.agent_value {
        rows.push(("the agent's own value at initial states", number(value)));
    }
    if let Some(importance) = &evaluation.importance {
        rows.push(("effective sample size", number(importance.effective_sample_size)));
    }
    rows
}

//! The scores of runs, with the metrics and units of the published tables.

use crate::experiment::{Protocol, Source};
use crate::study::{Arm, Run};
use album_train::{Records, RunResult};

/// The supported metrics.
pub(crate) const METRICS: [&str; 10] = [
    "success",
    "steps_to_half_success",
    "condition",
    "g_b_satisfied",
    "trajectories_reaching_goal",
    "v_max",
    "v_mean",
    "v_min",
    "v_max_minus_v_mean",
    "v_max_minus_v_min",
];

/// The values of a metric by seed, in order, of the runs that have come far enough. Metrics and units are
/// those of `experiments/published/README.md`.
///
/// `success` is that of the last evaluation or the mean of the last three (or fewer). `steps_to_half_success`
/// is missing for runs that never reach 50 % success.
pub fn values(arm: &Arm, protocol: Protocol, metric: &str) -> Vec<(u64, f64)> {
    let seed_and_value = |run: &Run| value(arm, run, protocol, metric).map(|value| (run.seed, value));
    arm.runs.iter().filter_map(seed_and_value).filter(|(_, value)| value.is_finite()).collect()
}

/// Whether a metric is deterministic, the same for every seed.
pub fn is_exact(arm: &Arm, metric: &str) -> bool {
    arm.source == Source::Data || metric == "condition"
}

fn value(arm: &Arm, run: &Run, protocol: Protocol, metric: &str) -> Option<f64> {
    let records = run.records.as_ref()?;
    if run.failure.is_some() || !(run.finished() || arm.at.is_some_and(|at| reached(records, at))) {
        return None;
    }
    if arm.source == Source::Data {
        let values = records.result.as_ref()?.data_values.as_ref()?;
        return match metric {
            "trajectories_reaching_goal" => Some(100.0 * values.trajectories_reaching_goal),
            _ => range(metric, values.v_max, values.v_mean, values.v_min),
        };
    }
    match metric {
        "success" => success(records, arm.at, protocol).map(|share| 100.0 * share),
        "steps_to_half_success" => curve(records, arm.at).find(|point| point.1 >= 0.5).map(|point| point.0),
        "condition" => condition(records),
        _ => {
            let result = records.result.as_ref()?;
            if !at_the_end(result, arm.at) {
                return None;
            }
            let values = result.learned_values.as_ref()?;
            match metric {
                "g_b_satisfied" => values.g_b_satisfied.map(|share| 100.0 * share),
                _ => range(metric, values.v_max, values.v_mean, values.v_min),
            }
        }
    }
}

/// Learned values are available only at the end of a run.
fn at_the_end(result: &RunResult, at: Option<u64>) -> bool {
    result.finished && at.is_none_or(|at| at >= result.steps)
}

fn range(metric: &str, most: f64, mean: f64, least: f64) -> Option<f64> {
    match metric {
        "v_max" => Some(most),
        "v_mean" => Some(mean),
        "v_min" => Some(least),
        "v_max_minus_v_mean" => Some(most - mean),
        "v_max_minus_v_min" => Some(most - least),
        _ => None,
    }
}

/// Success rates over steps, up to the step that counts.
fn curve(records: &Records, at: Option<u64>) -> impl Iterator<Item = (f64, f64)> {
    let last = at.map_or(f64::INFINITY, |at| at as f64);
    records.eval.series("evaluation/success").into_iter().filter(move |point| point.0 <= last)
}

fn reached(records: &Records, at: u64) -> bool {
    records.eval.series("evaluation/success").last().is_some_and(|point| point.0 >= at as f64)
}

fn success(records: &Records, at: Option<u64>, protocol: Protocol) -> Option<f64> {
    let shares: Vec<f64> = curve(records, at).map(|point| point.1).collect();
    let count = match protocol {
        Protocol::Final => 1,
        Protocol::LastThree => 3,
    };
    album_stats::mean(&shares[shares.len().saturating_sub(count)..])
}

/// The left side of the boundedness condition of a run's critic, as its agent defines it.
fn condition(records: &Records) -> Option<f64> {
    let setup = album::config::read(&records.config, "config.toml").ok()?.setup().ok()?;
    Some(setup.boundedness()?.sides.left)
}

/// A numeric setting of a run's agent.
pub(crate) fn setting(records: &Records, key: &str) -> Option<f64> {
    let table: toml::Table = records.config.parse().ok()?;
    let value = table.get(table.get("agent")?.as_str()?)?.get(key)?;
    value.as_float().or_else(|| value.as_integer().map(|x| x as f64))
}

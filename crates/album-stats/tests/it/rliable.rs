//! The statistics compared with those of the package rliable (recorded by `record_rliable.py`).

#![allow(clippy::unwrap_used)]

use album_stats::{Bootstrap, Divisor, Interval, Scores, deviation, improvement, mean, profile};
use serde_json::Value;

/// Tolerance of point estimates.
const POINT: f64 = 1e-12;
/// Tolerance of interval ends, on a scale from 0 to 100: both are random. A statistic with few possible
/// values can miss by one of them under another seed (5 of the seeds 0 to 14 have one such end of about 300);
/// `tests/statistics.rs` compares such ends with the exact distribution.
const END: f64 = 0.5;

type Aggregate<'a> = &'a dyn Fn(&Scores) -> f64;

fn recorded() -> Value {
    serde_json::from_str(include_str!("../data/rliable.json")).unwrap()
}

fn list(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn rows(entry: &Value) -> Vec<Vec<f64>> {
    entry["scores"].as_array().unwrap().iter().map(list).collect()
}

fn scores(entry: &Value) -> Scores {
    Scores::new(&rows(entry)).unwrap()
}

/// Compares an estimate and its interval with a recorded (point, low, high).
fn hold(name: &str, scale: f64, point: f64, interval: Interval, recorded: &[f64]) {
    assert!((point - recorded[0]).abs() <= POINT, "{name}: {point}, recorded {}", recorded[0]);
    for (found, recorded) in [(interval.low, recorded[1]), (interval.high, recorded[2])] {
        assert!((found - recorded).abs() <= END * scale / 100.0, "{name}: end {found}, recorded {recorded}");
    }
}

#[test]
fn aggregates() {
    let recorded = recorded();
    for (name, entry) in recorded["matrices"].as_object().unwrap() {
        let (scores, scale) = (scores(entry), entry["scale"].as_f64().unwrap());
        let aggregates: [(&str, Aggregate<'_>); 4] = [
            ("mean", &Scores::mean),
            ("median", &Scores::median),
            ("iqm", &Scores::iqm),
            ("optimality_gap", &|scores| scores.optimality_gap(scale)),
        ];
        for (aggregate, compute) in aggregates {
            let interval = Bootstrap::new(3).interval(&scores, compute).unwrap();
            hold(
                &format!("{aggregate} of {name}"),
                scale,
                compute(&scores),
                interval,
                &list(&entry[aggregate]),
            );
        }
    }
}

#[test]
fn deviations() {
    let recorded = recorded();
    for (name, entry) in recorded["matrices"].as_object().unwrap() {
        let scores = scores(entry);
        for (divisor, key) in [(Divisor::Count, "std"), (Divisor::CountLessOne, "sample_std")] {
            let expected = (!entry[key].is_null()).then(|| list(&entry[key]));
            for task in 0..scores.tasks() {
                match (deviation(scores.task(task), divisor), &expected) {
                    (Some(found), Some(expected)) => {
                        assert!((found - expected[task]).abs() <= POINT, "{key} of {name}: {found}");
                    }
                    (found, expected) => assert!(found.is_none() && expected.is_none(), "{key} of {name}"),
                }
            }
        }
        // The mean of the runs' means is the overall mean.
        assert!((mean(&scores.run_means()).unwrap() - scores.mean()).abs() <= POINT, "{name}");
    }
}

#[test]
fn improvements() {
    let recorded = recorded();
    for pair in recorded["improvement"].as_array().unwrap() {
        let tasks = pair["tasks"].as_u64().unwrap() as usize;
        let [x, y] = ["x", "y"].map(|side| {
            let rows = rows(&recorded["matrices"][pair[side].as_str().unwrap()]);
            Scores::new(&rows.iter().map(|row| &row[..tasks]).collect::<Vec<_>>()).unwrap()
        });
        let interval = Bootstrap::new(3).improvement(&x, &y).unwrap();
        let name = format!("{} over {}", pair["x"], pair["y"]);
        hold(&name, 1.0, improvement(&x, &y).unwrap(), interval, &list(&pair["answer"]));
        assert!((improvement(&x, &y).unwrap() + improvement(&y, &x).unwrap() - 1.0).abs() <= POINT);
    }
}

#[test]
fn profiles() {
    let recorded = recorded();
    for entry in recorded["profiles"].as_array().unwrap() {
        let name = entry["matrix"].as_str().unwrap();
        let scores = scores(&recorded["matrices"][name]);
        let [taus, point, low, high] = ["taus", "point", "low", "high"].map(|key| list(&entry[key]));
        let found = profile(&scores, &taus).unwrap();
        let bands = Bootstrap::new(3).profile(&scores, &taus).unwrap();
        assert_eq!((found.len(), bands.len()), (taus.len(), taus.len()));
        for i in 0..taus.len() {
            hold(
                &format!("profile of {name} at {}", taus[i]),
                1.0,
                found[i],
                bands[i],
                &[point[i], low[i], high[i]],
            );
            // A band is the interval of one point of the profile.
            let one = Bootstrap::new(3).interval(&scores, |scores| profile(scores, &taus[i..=i]).unwrap()[0]);
            assert!(i % 5 != 0 || one.unwrap() == bands[i], "{name} at {}", taus[i]);
        }
    }
}

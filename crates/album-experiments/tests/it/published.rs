//! The published tables are consistent with themselves and with each other.

#![allow(clippy::unwrap_used)]

use album_experiments::published::{Published, PublishedError, PublishedRow, parse};
use album_stats::Divisor;

const ENVIRONMENTS: [&str; 10] = [
    "antmaze-large-navigate",
    "antmaze-giant-navigate",
    "humanoidmaze-medium-navigate",
    "humanoidmaze-large-navigate",
    "antsoccer-arena-navigate",
    "cube-single-play",
    "cube-double-play",
    "scene-play",
    "puzzle-3x3-play",
    "puzzle-4x4-play",
];
const METHODS: [&str; 11] =
    ["BC", "IQL", "ReBRAC", "IDQL", "SRPO", "CAC", "FAWAC", "FBRAC", "IFQL", "FQL", "ALBUM"];
const TASKS: [&str; 5] = ["1", "2", "3", "4", "5"];

/// The tasks of the ablations.
const ABLATED: [(&str, &str); 3] =
    [("antmaze-large-navigate", "1"), ("scene-play", "2"), ("puzzle-3x3-play", "4")];

/// A success rate before the paper's rounding: of 400 episodes (or 200), so .2 was .25 and .8 was .75.
fn unrounded(row: &PublishedRow) -> f64 {
    let tenths = (row.mean * 10.0).round();
    match (row.source.as_str(), tenths.rem_euclid(10.0)) {
        ("album", 2.0) => row.mean + 0.05,
        ("album", 8.0) => row.mean - 0.05,
        _ => row.mean,
    }
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean over tasks, or over other rows that `score` finds.
fn tasks_mean(published: &Published, table: &str, environment: &str, method: &str, setting: &str) -> f64 {
    mean(TASKS.map(|task| unrounded(published.score(table, environment, task, method, setting).unwrap())))
}

/// Equal to the digit given, where a half may have been rounded either way.
fn agrees(recomputed: f64, given: f64) -> bool {
    (recomputed - given).abs() < 0.05 + 1e-9
}

#[test]
fn everything_is_there() {
    let published = Published::load().unwrap();
    let sizes: Vec<(&str, usize)> =
        published.tables().map(|table| (table, published.rows(table).unwrap().len())).collect();
    assert_eq!(
        sizes,
        [
            ("main", 121),
            ("per-task", 550),
            ("target-ensemble", 57),
            ("chunking", 42),
            ("cost", 45),
            ("boundedness", 42),
            ("k-sweep", 11),
            ("lambda-k", 12),
            ("raised-lambda-b", 60),
            ("raised-lambda-b-cube", 24),
            ("ifql-album", 72),
            ("lambda-b-e", 12),
            ("steps-3m", 36),
            ("hinge-iql", 6),
            ("critic", 130),
            ("hyperparameters", 24),
        ]
    );
    for environment in ENVIRONMENTS {
        for method in METHODS {
            for task in TASKS {
                let row = published.score("per-task", environment, task, method, "").unwrap();
                // Only the paper's own method has a standard deviation and a known number of runs.
                let own = method == "ALBUM";
                assert_eq!((row.std.is_some(), row.seeds), (own, own.then_some(8)), "{row:?}");
                assert!((0.0..=100.0).contains(&row.mean));
            }
        }
    }
}

/// Recomputes every average of the main table from the table of tasks, and the averages of those.
#[test]
fn main_averages() {
    let published = Published::load().unwrap();
    for method in METHODS {
        for environment in ENVIRONMENTS {
            let given = published.score("main", environment, "average", method, "").unwrap().mean;
            let recomputed = tasks_mean(&published, "per-task", environment, method, "");
            // A mistake in the paper, in two tables.
            let slip = method == "ALBUM" && environment == "puzzle-3x3-play";
            let expected = if slip { given + 0.1 } else { given };
            assert!(agrees(recomputed, expected), "{method} {environment}: {recomputed} {given}");
            assert!(!slip || !agrees(recomputed, given), "there is no slip any more");
        }
        let given = published.average(method).unwrap().mean;
        let environments = ENVIRONMENTS
            .map(|environment| published.score("main", environment, "average", method, "").unwrap().mean);
        assert!(agrees(mean(environments), given), "{method}: {environments:?} {given}");
        let tasks =
            ENVIRONMENTS.map(|environment| tasks_mean(&published, "per-task", environment, method, ""));
        assert!(agrees(mean(tasks), given), "{method}: {tasks:?} {given}");
    }
}

#[test]
fn other_averages() {
    let published = Published::load().unwrap();
    for method in ["FQL", "NFQL", "QC-FQL", "DEAS", "DQC", "CGQ", "ALBUM"] {
        let rows: Vec<&PublishedRow> =
            published.scores("chunking").unwrap().filter(|row| row.method == method).collect();
        let (average, environments) = rows.split_last().unwrap();
        assert_eq!((average.environment.as_str(), environments.len()), ("average", 5));
        assert!(agrees(mean(environments.iter().map(|row| row.mean)), average.mean), "{method}");
    }
    for (environment, _) in ABLATED {
        for method in ["IFQL", "IFQL-ALBUM", "ALBUM"] {
            let given = published.score("ifql-album", environment, "average", method, "").unwrap().mean;
            let slip = method == "ALBUM" && environment == "puzzle-3x3-play";
            let recomputed = tasks_mean(&published, "ifql-album", environment, method, "");
            assert!(agrees(recomputed, if slip { 61.3 } else { given }), "{environment} {method}");
        }
    }
    for environment in ["antmaze-giant-navigate", "humanoidmaze-medium-navigate"] {
        for setting in ["steps=1000000", "steps=2000000", "steps=3000000"] {
            let given = published.score("steps-3m", environment, "average", "ALBUM", setting).unwrap().mean;
            let recomputed = tasks_mean(&published, "steps-3m", environment, "ALBUM", setting);
            assert!(agrees(recomputed, given), "{environment} {setting}: {recomputed} {given}");
        }
    }
}

/// The changes that the paper states are differences of its stated scores.
#[test]
fn changes() {
    let published = Published::load().unwrap();
    let mut checked = 0;
    for table in ["target-ensemble", "ifql-album"] {
        let rows = published.rows(table).unwrap();
        for change in rows.iter().filter(|row| row.metric == "success_change") {
            let PublishedRow { environment, task, method, setting, .. } = change;
            let to = published.score(table, environment, task, method, setting).unwrap();
            let (method, setting) = match method.as_str() {
                "IFQL-ALBUM" => ("IFQL", ""),
                "ALBUM" => ("ALBUM", "ensemble=2"),
                other => (other, "ensemble=2;target_network=true"),
            };
            let from = published.score(table, environment, task, method, setting).unwrap();
            assert!(agrees(unrounded(to) - unrounded(from), change.mean), "{change:?}");
            checked += 1;
        }
        for change in rows.iter().filter(|row| row.metric == "success_relative_change") {
            let total = |setting| {
                let scores = ABLATED.map(|(environment, task)| {
                    unrounded(published.score(table, environment, task, &change.method, setting).unwrap())
                });
                mean(scores)
            };
            let relative = total(&change.setting) / total("ensemble=2;target_network=true") - 1.0;
            assert_eq!((100.0 * relative).round(), change.mean, "{change:?}");
            checked += 1;
        }
    }
    assert_eq!(checked, 21 + 18 + 6);
}

/// A run in several tables has the same mean in all of them.
#[test]
fn tables_agree() {
    let published = Published::load().unwrap();
    for (table, setting) in [
        ("target-ensemble", "ensemble=1"),
        ("boundedness", "lambda_k=1"),
        ("k-sweep", "k=10"),
        ("lambda-k", "lambda_k=1"),
        ("raised-lambda-b", "lambda_b=2.5;lambda_e=2.5;lambda_k=1"),
        ("lambda-b-e", "lambda_b=2.5;lambda_e=2.5"),
        ("critic", ""),
    ] {
        for (environment, task) in ABLATED {
            let here = published.score(table, environment, task, "ALBUM", setting).unwrap();
            let per_task = published.score("per-task", environment, task, "ALBUM", "").unwrap();
            assert_eq!(here.mean, per_task.mean, "{table} {environment}");
            // Different divisors explain different standard deviations.
            if let (Some(a), Some(b)) = (here.std, per_task.std) {
                let factor =
                    if here.divisor == Some(Divisor::CountLessOne) { (8f64 / 7.0).sqrt() } else { 1.0 };
                assert!((a - b * factor).abs() < 0.1, "{table} {environment}: {a} {b}");
            }
        }
    }
}

#[test]
fn differences_of_values() {
    let published = Published::load().unwrap();
    let mut checked = 0;
    for table in published.tables() {
        let rows = published.rows(table).unwrap();
        let find = |like: &PublishedRow, metric: &str| {
            let same = |row: &&PublishedRow| {
                (&row.environment, &row.method, &row.setting)
                    == (&like.environment, &like.method, &like.setting)
                    && row.metric == metric
            };
            rows.iter().find(same).map(|row| row.mean)
        };
        for row in rows {
            let Some(low) = row.metric.strip_prefix("v_max_minus_") else { continue };
            let (high, low) = (find(row, "v_max").unwrap(), find(row, low).unwrap());
            // Three numbers rounded to their last digit: 0.1, 1, or a tenth of a million.
            let unit = if low < -1e5 {
                1e5
            } else if table == "boundedness" {
                1.0
            } else {
                0.1
            };
            assert!((high - low - row.mean).abs() < 1.5 * unit, "{row:?}");
            checked += 1;
        }
    }
    assert_eq!(checked, 6 + 8 + 40);
}

#[test]
fn an_unknown_table_is_named() {
    let published = Published::load().unwrap();
    let error = published.rows("lambda_k").unwrap_err().to_string();
    assert!(error.contains("`lambda_k`") && error.contains("did you mean `lambda-k`"), "{error}");
    let error = published.rows("xyz").unwrap_err().to_string();
    assert!(error.contains("there are main, per-task"), "{error}");
    assert!(published.score("xyz", "", "", "", "").is_none());
    assert!(published.average("TD3").is_none());
}

#[test]
fn malformed_tables_are_refused() {
    const HEADER: &str = "table,environment,task,method,setting,metric,mean,std,ddof,seeds,unit,source";
    const GOOD: &str = "t,scene-play,1,M,,success,1,2,0,8,percent,me";
    assert_eq!(parse("t", &format!("{HEADER}\n{GOOD}\n")).unwrap().len(), 1);
    assert!(parse("t", HEADER).unwrap().is_empty());
    for (line, found) in [
        ("t,scene-play,1,M,,success,1,2,0,8,percent", "11 fields"),
        ("t,scene-play,1,M,,success,1,2,0,8,percent,me,x", "13 fields"),
        ("t,scene-play,1,\"M\",,success,1,2,0,8,percent,me", "quotation"),
        ("t,scene-play,1,M ,,success,1,2,0,8,percent,me", "space"),
        ("t,scene-play,6,M,,success,1,2,0,8,percent,me", "task `6`"),
        ("t,scene-play,1,,,success,1,2,0,8,percent,me", "empty"),
        ("t,scene-play,1,M,k,success,1,2,0,8,percent,me", "setting `k`"),
        ("t,scene-play,1,M,,success,,2,0,8,percent,me", "no finite mean"),
        ("t,scene-play,1,M,,success,NaN,2,0,8,percent,me", "no finite mean"),
        ("t,scene-play,1,M,,success,1 %,2,0,8,percent,me", "`1 %` in place of a number"),
        ("t,scene-play,1,M,,success,1,-2,0,8,percent,me", "deviation"),
        ("t,scene-play,1,M,,success,1,,0,8,percent,me", "ddof without"),
        ("t,scene-play,1,M,,success,1,2,2,8,percent,me", "ddof `2`"),
        ("t,scene-play,1,M,,success,1,2,0,0,percent,me", "0 seeds"),
        ("u,scene-play,1,M,,success,1,2,0,8,percent,me", "of table u"),
        ("t,scene-play,1,M,,success,7,,,,percent,you", "second number"),
    ] {
        let error = parse("t", &format!("{HEADER}\n{GOOD}\n{line}\n")).unwrap_err();
        let PublishedError::Malformed { line: 3, .. } = error else { panic!("{error}") };
        assert!(error.to_string().contains(found), "{error}");
    }
    let error = parse("t", "a,b\n").unwrap_err().to_string();
    assert!(error.contains("line 1: found the header `a,b`; expected table,environment"), "{error}");
}

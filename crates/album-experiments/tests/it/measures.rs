//! Metrics of runs, on directories with known numbers.
#![allow(clippy::unwrap_used)]

use crate::common;

use album_experiments::estimate::{Over, Verdict, estimates};
use album_experiments::measure::values;
use album_experiments::published::Published;
use album_experiments::tables::tables;
use album_experiments::{Protocol, Reference, Source};
use album_stats::Divisor;
use common::{Fake, arm, study};

#[test]
fn success_by_each_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake { success: &[0.5, 0.1, 0.2, 0.9], ..Fake::default() }.write(&folder.path().join("a"));
    let mut arm = arm("ALBUM", "", Fake::default().task, vec![run]);
    let close =
        |found: Vec<(u64, f64)>, expected: f64| assert!((found[0].1 - expected).abs() < 1e-9, "{found:?}");
    close(values(&arm, Protocol::Final, "success"), 90.0);
    close(values(&arm, Protocol::LastThree, "success"), 40.0);
    close(values(&arm, Protocol::Final, "steps_to_half_success"), 1000.0);
    close(values(&arm, Protocol::Final, "condition"), 2.5 * 0.005 + 2.0);
    // Without stop_gradient the target counts less.
    let stopped = arm.runs[0].records.clone().unwrap();
    let config = stopped.config.replace("[album]", "[album]\nk = 10\nstop_gradient = false");
    arm.runs[0].records = Some(album_train::Records { config, ..stopped.clone() });
    let left = 2.5 * 0.005 + 2.0 * (1.0 - 0.995f64.powi(10));
    close(values(&arm, Protocol::Final, "condition"), left);
    arm.runs[0].records = Some(stopped);
    arm.at = Some(3000);
    close(values(&arm, Protocol::Final, "success"), 20.0);
    close(values(&arm, Protocol::LastThree, "success"), 80.0 / 3.0);
    arm.at = Some(2000);
    close(values(&arm, Protocol::LastThree, "success"), 30.0);
    assert!(values(&arm, Protocol::Final, "no_such_metric").is_empty());
}

#[test]
fn unfinished_and_failed_runs_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let fake = |seed, finished| {
        let fake = Fake { seed, finished, success: &[0.1, 0.4], ..Fake::default() };
        fake.write(&folder.path().join(seed.to_string()))
    };
    let mut runs = vec![fake(0, true), fake(1, false), fake(2, true)];
    runs[2].failure = Some("exit code 4".into());
    let mut arm = arm("ALBUM", "", "x", runs);
    assert_eq!(values(&arm, Protocol::Final, "success"), [(0, 40.0)]);
    assert!(values(&arm, Protocol::Final, "steps_to_half_success").is_empty());
    // An unfinished run counts at an earlier step that it has passed.
    arm.at = Some(1000);
    assert_eq!(values(&arm, Protocol::Final, "success"), [(0, 10.0), (1, 10.0)]);
    arm.at = Some(5000);
    assert_eq!(values(&arm, Protocol::Final, "success"), [(0, 40.0)]);
}

#[test]
fn values_of_the_critic_and_of_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake { values: Some(-60.0), ..Fake::default() }.write(&folder.path().join("a"));
    let mut arm = arm("ALBUM", "", "x", vec![run]);
    let first_value =
        |arm: &_, metric: &str| values(arm, Protocol::Final, metric).first().map(|value| value.1);
    assert_eq!(first_value(&arm, "v_max"), Some(-40.0));
    assert_eq!(first_value(&arm, "v_max_minus_v_mean"), Some(20.0));
    assert_eq!(first_value(&arm, "v_max_minus_v_min"), Some(30.0));
    assert_eq!(first_value(&arm, "g_b_satisfied"), Some(87.5));
    assert_eq!(first_value(&arm, "trajectories_reaching_goal"), None);
    arm.source = Source::Data;
    assert_eq!(first_value(&arm, "v_mean"), Some(-50.0));
    assert_eq!(first_value(&arm, "trajectories_reaching_goal"), Some(25.0));
    assert_eq!(first_value(&arm, "success"), None);
    assert_eq!(first_value(&arm, "g_b_satisfied"), None);
}

/// Success 80, 90, 100 on a task where the paper has 92.5 ± 3.1 over 8 seeds, dividing by n.
#[test]
fn a_line_beside_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    let task = "antmaze-large-navigate-singletask-v0"; // the default is task 1
    let run = |seed: u64, success: f64| {
        Fake { task, seed, success: &[success], ..Fake::default() }
            .write(&folder.path().join(seed.to_string()))
    };
    let published = Published::load().unwrap();
    let runs = vec![run(0, 0.8), run(1, 0.9), run(2, 1.0)];
    let estimate = |runs: &[album_experiments::Run], table: Option<&str>, setting: &str| {
        let study = study("s", table, vec![arm("ALBUM", setting, task, runs.to_vec())]);
        estimates(&study, &published, "success").remove(0)
    };
    let line = estimate(&runs, Some("lambda-k"), "lambda_k=1.0");
    let Reference::Same(row) = &line.reference else { panic!("{:?}", line.reference) };
    assert_eq!((row.mean, row.table.as_str(), line.divisor), (92.5, "lambda-k", Divisor::Count));
    assert_eq!((line.mean(), line.difference()), (Some(90.0), Some(-2.5)));
    assert!((line.deviation().unwrap() - 8.16496580927726).abs() < 1e-9);
    assert_eq!(line.verdict(), Some(Verdict::Inside));
    assert_eq!(estimate(&runs, None, "").mean(), Some(90.0));
    assert!(matches!(estimate(&runs, None, "").reference, Reference::Same(row) if row.table == "per-task"));
    assert!(matches!(estimate(&runs, None, "gamma=0.5").reference, Reference::None));
    // Without overlap it is outside; with one seed it is undetermined.
    let low = vec![run(3, 0.5), run(4, 0.52)];
    assert_eq!(estimate(&low, None, "").verdict(), Some(Verdict::Outside));
    assert_eq!(estimate(&runs[..1], None, "").verdict(), Some(Verdict::Undetermined));
    // Divides by n - 1 where the paper does.
    assert_eq!(estimate(&runs, Some("steps-3m"), "steps=1000000").divisor, Divisor::Count);
    let giant = "antmaze-giant-navigate-singletask-task1-v0";
    let study = study("s", Some("steps-3m"), vec![arm("1M", "steps=1000000", giant, runs)]);
    let line = estimates(&study, &published, "success").remove(0);
    assert_eq!((line.divisor, line.deviation().unwrap().round()), (Divisor::CountLessOne, 10.0));
}

#[test]
fn averages_are_of_complete_seeds_and_the_papers_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let published = Published::load().unwrap();
    let mut arms = Vec::new();
    for number in 1..=5u64 {
        let task = format!("cube-single-play-singletask-task{number}-v0");
        let runs = (0..3u64).map(|seed| {
            let success = [0.1 * number as f64];
            let finished = !(seed == 2 && number == 3);
            let fake = Fake { task: &task, seed, success: &success, finished, ..Fake::default() };
            fake.write(&folder.path().join(format!("{number}-{seed}")))
        });
        arms.push(arm("ALBUM", "", &task, runs.collect()));
    }
    let main = study("main", Some("main"), arms.clone());
    let found = estimates(&main, &published, "success");
    assert_eq!(found.len(), 6);
    let average = &found[5];
    assert_eq!((average.over.clone(), average.done, average.planned), (Over::Environment, 2, 3));
    assert!((average.mean().unwrap() - 30.0).abs() < 1e-9 && (average.iqm().unwrap() - 30.0).abs() < 1e-9);
    assert!(
        matches!(&average.reference, Reference::Same(row) if row.task == "average" && row.table == "main")
    );
    assert!(matches!(&found[0].reference, Reference::Same(row) if row.table == "per-task"));
    // With one more task: an average over all, which is not the paper's over ten environments.
    let task = "scene-play-singletask-task2-v0";
    let runs = (0..2).map(|seed| {
        Fake { task, seed, ..Fake::default() }.write(&folder.path().join(format!("scene-{seed}")))
    });
    arms.push(arm("ALBUM", "", task, runs.collect()));
    let found = estimates(&study("main", Some("main"), arms), &published, "success");
    let all = found.last().unwrap();
    assert_eq!((all.over.clone(), all.done), (Over::All, 2));
    assert_eq!(all.reference, Reference::None);
}

#[test]
fn the_papers_mean_is_shown_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let published = Published::load().unwrap();
    let run = Fake::default().write(&folder.path().join("a"));
    let estimate = |table: Option<&str>, setting: &str| {
        let arm = arm("ALBUM", setting, Fake::default().task, vec![run.clone()]);
        estimates(&study("main", table, vec![arm]), &published, "success").remove(0)
    };
    let main = estimate(Some("main"), "");
    assert_eq!(main.reference, Reference::Elsewhere(43.4));
    assert_eq!((main.difference(), main.verdict()), (None, None));
    // Value maps name no table, so the 66.0 of cube-single does not apply to them.
    assert_eq!(estimate(None, "lambda_b=1000;lambda_e=1000;lambda_k=0").reference, Reference::None);
    assert_eq!(estimate(None, "").reference, Reference::None);
}

#[test]
fn equal_seeds_have_no_interval() {
    let folder = tempfile::tempdir().unwrap();
    let published = Published::load().unwrap();
    let run = |seed: u64, success: f64| {
        Fake { seed, success: &[success], ..Fake::default() }.write(&folder.path().join(seed.to_string()))
    };
    let estimate_and_text = |runs: Vec<album_experiments::Run>| {
        let study = study("s", None, vec![arm("ALBUM", "", Fake::default().task, runs)]);
        let text = tables(&study, &published)[0].table.to_text();
        (estimates(&study, &published, "success").remove(0), text)
    };
    let (equal, text) = estimate_and_text(vec![run(0, 0.0), run(1, 0.0), run(2, 0.0)]);
    assert!(equal.all_equal() && equal.interval.is_none());
    assert!(text.contains("all equal") && !text.contains("0.0 to 0.0"), "{text}");
    let (one, text) = estimate_and_text(vec![run(3, 0.5)]);
    assert!(one.interval.is_none() && text.contains("undetermined"), "{text}");
    let (several, text) = estimate_and_text(vec![run(4, 0.5), run(5, 0.7)]);
    assert!(several.interval.is_some() && text.contains("50.0 to 70.0"), "{text}");
}

/// The paper's numbers as runs: -16 % and -87 % of its text, and the Delta columns.
#[test]
fn changes_against_the_baseline_are_computed() {
    let folder = tempfile::tempdir().unwrap();
    let published = Published::load().unwrap();
    let tasks = [
        "antmaze-large-navigate-singletask-task1-v0",
        "scene-play-singletask-task2-v0",
        "puzzle-3x3-play-singletask-task4-v0",
    ];
    let variants = [
        ("ReBRAC", "ensemble=2;target_network=true", [0.958, 0.52, 0.065]),
        ("no target", "ensemble=2;target_network=false", [0.56, 0.668, 0.072]),
        ("one critic", "ensemble=1;target_network=true", [0.07, 0.078, 0.055]),
    ];
    let mut arms = Vec::new();
    for (label, setting, means) in variants {
        for (task, mean) in tasks.into_iter().zip(means) {
            let runs = (0..2).map(|seed| {
                let success = [mean + if seed == 0 { 0.01 } else { -0.01 }];
                let fake = Fake { task, seed, success: &success, ..Fake::default() };
                fake.write(&folder.path().join(format!("{label}-{task}-{seed}")))
            });
            let mut arm = arm(label, setting, task, runs.collect());
            arm.method = "ReBRAC".into();
            arm.baseline = (label != "ReBRAC").then(|| "ReBRAC".into());
            arms.push(arm);
        }
    }
    let study = study("target-ensemble", Some("target-ensemble"), arms);
    let made = tables(&study, &published);
    let change = made.iter().find(|table| table.name == "change").unwrap();
    let text = change.table.to_text();
    let line = |start: &str, task: &str| {
        let found = text.lines().find(|line| line.starts_with(start) && line.contains(task));
        found.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let all = line("no target", "mean of all tasks");
    assert!(all.contains("−15.7") && all.ends_with("−16"), "{all}");
    let all = line("one critic", "mean of all tasks");
    assert!(all.contains("−86.8") && all.ends_with("−87"), "{all}");
    let antmaze = line("no target", "antmaze-large-navigate 1");
    assert!(antmaze.contains("−39.8") && antmaze.ends_with("−39.8"), "{antmaze}");
    // The paper's layout: variants side by side, best in bold, second underlined.
    let wide = made.iter().find(|table| table.name == "side-by-side").unwrap().table.to_latex();
    let scene = wide.lines().find(|line| line.starts_with("scene-play 2")).unwrap();
    assert!(scene.contains("& \\underline{52.0 $\\pm$ 1.0} & \\textbf{66.8 $\\pm$ 1.0} & 7.8"), "{scene}");
}

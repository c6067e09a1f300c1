//! What is measured of runs, on directories with known numbers.
#![allow(clippy::unwrap_used)]

use crate::common;

use album_experiments::line::{Over, Verdict, lines};
use album_experiments::measure::values;
use album_experiments::published::Published;
use album_experiments::{Protocol, Reference, Source};
use album_stats::Divisor;
use common::{Fake, cell, study};

#[test]
fn success_by_each_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake { success: &[0.5, 0.1, 0.2, 0.9], ..Fake::default() }.write(&folder.path().join("a"));
    let mut cell = cell("ALBUM", "", Fake::default().task, vec![run]);
    let close =
        |found: Vec<(u64, f64)>, expected: f64| assert!((found[0].1 - expected).abs() < 1e-9, "{found:?}");
    close(values(&cell, Protocol::Final, "success"), 90.0);
    close(values(&cell, Protocol::LastThree, "success"), 40.0);
    close(values(&cell, Protocol::Final, "steps_to_half_success"), 1000.0);
    close(values(&cell, Protocol::Final, "condition"), 2.5 * 0.005 + 2.0);
    cell.at = Some(3000);
    close(values(&cell, Protocol::Final, "success"), 20.0);
    close(values(&cell, Protocol::LastThree, "success"), 80.0 / 3.0);
    cell.at = Some(2000);
    close(values(&cell, Protocol::LastThree, "success"), 30.0);
    assert!(values(&cell, Protocol::Final, "no_such_metric").is_empty());
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
    let mut cell = cell("ALBUM", "", "x", runs);
    assert_eq!(values(&cell, Protocol::Final, "success"), [(0, 40.0)]);
    assert!(values(&cell, Protocol::Final, "steps_to_half_success").is_empty());
    // A run that goes on has been where a third of the steps is looked at.
    cell.at = Some(1000);
    assert_eq!(values(&cell, Protocol::Final, "success"), [(0, 10.0), (1, 10.0)]);
    cell.at = Some(5000);
    assert_eq!(values(&cell, Protocol::Final, "success"), [(0, 40.0)]);
}

#[test]
fn values_of_the_critic_and_of_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake { values: Some(-60.0), ..Fake::default() }.write(&folder.path().join("a"));
    let mut cell = cell("ALBUM", "", "x", vec![run]);
    let of = |cell: &_, metric: &str| values(cell, Protocol::Final, metric).first().map(|value| value.1);
    assert_eq!(of(&cell, "v_max"), Some(-40.0));
    assert_eq!(of(&cell, "v_max_minus_v_mean"), Some(20.0));
    assert_eq!(of(&cell, "v_max_minus_v_min"), Some(30.0));
    assert_eq!(of(&cell, "g_b_satisfied"), Some(87.5));
    assert_eq!(of(&cell, "trajectories_reaching_goal"), None);
    cell.source = Source::Data;
    assert_eq!(of(&cell, "v_mean"), Some(-50.0));
    assert_eq!(of(&cell, "trajectories_reaching_goal"), Some(25.0));
    assert_eq!(of(&cell, "success"), None);
    assert_eq!(of(&cell, "g_b_satisfied"), None);
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
    let of = |runs: &[album_experiments::Run], table: Option<&str>, setting: &str| {
        let study = study("s", table, vec![cell("ALBUM", setting, task, runs.to_vec())]);
        lines(&study, &published, "success").remove(0)
    };
    let line = of(&runs, Some("lambda-k"), "lambda_k=1.0");
    let Reference::Same(row) = &line.reference else { panic!("{:?}", line.reference) };
    assert_eq!((row.mean, row.table.as_str(), line.divisor), (92.5, "lambda-k", Divisor::Count));
    assert_eq!((line.mean(), line.difference()), (Some(90.0), Some(-2.5)));
    assert!((line.deviation().unwrap() - 8.16496580927726).abs() < 1e-9);
    assert_eq!(line.verdict(), Some(Verdict::Inside));
    assert_eq!(of(&runs, None, "").mean(), Some(90.0));
    assert!(matches!(of(&runs, None, "").reference, Reference::Same(row) if row.table == "per-task"));
    assert!(matches!(of(&runs, None, "gamma=0.5").reference, Reference::None));
    // Where nothing overlaps, it is outside; with one seed nobody can tell.
    let low = vec![run(3, 0.5), run(4, 0.52)];
    assert_eq!(of(&low, None, "").verdict(), Some(Verdict::Outside));
    assert_eq!(of(&runs[..1], None, "").verdict(), Some(Verdict::CannotTell));
    // By n - 1 where the paper does.
    assert_eq!(of(&runs, Some("steps-3m"), "steps=1000000").divisor, Divisor::Count);
    let giant = "antmaze-giant-navigate-singletask-task1-v0";
    let study = study("s", Some("steps-3m"), vec![cell("1M", "steps=1000000", giant, runs)]);
    let line = lines(&study, &published, "success").remove(0);
    assert_eq!((line.divisor, line.deviation().unwrap().round()), (Divisor::CountLessOne, 10.0));
}

#[test]
fn averages_are_of_complete_seeds_and_the_papers_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let published = Published::load().unwrap();
    let mut cells = Vec::new();
    for number in 1..=5u64 {
        let task = format!("cube-single-play-singletask-task{number}-v0");
        let runs = (0..3u64).map(|seed| {
            let success = [0.1 * number as f64];
            let finished = !(seed == 2 && number == 3);
            let fake = Fake { task: &task, seed, success: &success, finished, ..Fake::default() };
            fake.write(&folder.path().join(format!("{number}-{seed}")))
        });
        cells.push(cell("ALBUM", "", &task, runs.collect()));
    }
    let main = study("main", Some("main"), cells.clone());
    let found = lines(&main, &published, "success");
    assert_eq!(found.len(), 6);
    let average = &found[5];
    assert_eq!((average.over.clone(), average.done, average.planned), (Over::Environment, 2, 3));
    assert!((average.mean().unwrap() - 30.0).abs() < 1e-9 && (average.iqm().unwrap() - 30.0).abs() < 1e-9);
    assert!(
        matches!(&average.reference, Reference::Same(row) if row.task == "average" && row.table == "main")
    );
    assert!(matches!(&found[0].reference, Reference::Same(row) if row.table == "per-task"));
    // One task more: an average over all, which is not the paper's of ten environments.
    let task = "scene-play-singletask-task2-v0";
    let runs = (0..2).map(|seed| {
        Fake { task, seed, ..Fake::default() }.write(&folder.path().join(format!("scene-{seed}")))
    });
    cells.push(cell("ALBUM", "", task, runs.collect()));
    let found = lines(&study("main", Some("main"), cells), &published, "success");
    let all = found.last().unwrap();
    assert_eq!((all.over.clone(), all.done), (Over::All, 2));
    assert_eq!(all.reference, Reference::None);
}

#[test]
fn pointmaze_has_the_papers_mean_for_orientation_and_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(&folder.path().join("a"));
    let study = study("main", Some("main"), vec![cell("ALBUM", "", Fake::default().task, vec![run])]);
    let line = lines(&study, &Published::load().unwrap(), "success").remove(0);
    assert_eq!(line.reference, Reference::Elsewhere(43.4));
    assert_eq!((line.difference(), line.verdict()), (None, None));
}

//! The files of a report. After an intended change, `ALBUM_BLESS=1 cargo test -p album-experiments` rewrites
//! `tests/golden`.
#![allow(clippy::unwrap_used)]

use crate::common;

use album_experiments::{ReportError, write};
use common::{Fake, arm, study, sweep};
use std::path::Path;

fn check(name: &str, actual: &str) {
    album_testing::golden(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name), actual);
}

#[test]
fn tables_as_csv_and_latex() {
    let folder = tempfile::tempdir().unwrap();
    write(&[sweep(folder.path())], &[], &folder.path().join("report")).unwrap();
    for name in
        ["sweep.csv", "sweep.tex", "sweep-statistics.csv", "sweep-statistics.tex", "sweep-improvement.csv"]
    {
        check(name, &std::fs::read_to_string(folder.path().join("report").join(name)).unwrap());
    }
}

#[test]
fn the_page_holds_everything_and_its_links_lead_somewhere() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    let written = write(&[sweep(folder.path()), study("empty", None, Vec::new())], &[], &out).unwrap();
    let page = std::fs::read_to_string(&written.page).unwrap();
    for figure in ["sweep-comparison", "sweep-curves", "sweep-values", "sweep-profile", "sweep-maps"] {
        assert!(page.contains(&format!("<figure id=\"{figure}\">")), "{figure}");
        assert!(out.join(format!("{figure}.svg")).is_file(), "{figure}");
    }
    for part in page.split("href=\"").skip(1) {
        let target = part.split('"').next().unwrap();
        match target.strip_prefix('#') {
            Some(anchor) => assert!(page.contains(&format!("id=\"{anchor}\"")), "{target}"),
            None => assert!(out.join(target).is_file(), "{target}"),
        }
    }
    assert!(page.contains("href=\"../runs/0-0-0/report.html\""));
    // A variant has one command for all of its seeds.
    assert!(page.contains("album train antmaze-large-navigate-singletask-task1-v0 --seed 0"));
    assert!(!page.contains("--seed 2"));
    for outside in ["https://", "<script", "@import", "url(", folder.path().to_str().unwrap()] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The paper's colour scale, whatever the values: gamma is 0.995.
    let maps = std::fs::read_to_string(out.join("sweep-maps.svg")).unwrap();
    assert!(
        maps.contains(">−200<")
            && maps.contains(">0<")
            && page.contains("in units of the data&#39;s rewards")
    );
    // Values of -40,000 need a logarithmic scale.
    assert!(page.contains("− mean V"));
    // Once more is the same.
    let again = write(&[sweep(folder.path()), study("empty", None, Vec::new())], &[], &out).unwrap();
    assert_eq!(written, again);
    assert_eq!(page, std::fs::read_to_string(&again.page).unwrap());
}

#[test]
fn runs_that_are_missing_or_failed_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let fake = |seed| Fake { seed, ..Fake::default() };
    let mut runs = vec![fake(0).write(&folder.path().join("0")), fake(1).write(&folder.path().join("1"))];
    runs[0].failure = Some("a NaN".into());
    runs[1].records = None;
    let study = study("odd/name", None, vec![arm("ALBUM", "", Fake::default().task, runs)]);
    let tally = study.tally();
    assert_eq!((tally.done, tally.failed, tally.planned), (0, 1, 2));
    let twice = [study.clone(), study];
    let written = write(&twice, &[], &folder.path().join("out")).unwrap();
    let page = std::fs::read_to_string(&written.page).unwrap();
    assert!(page.contains("failed: a NaN") && page.contains("not begun") && page.contains("0/2"));
    assert!(
        folder.path().join("out/odd-name.csv").is_file()
            && folder.path().join("out/odd-name-2.csv").is_file()
    );
}

#[test]
fn variants_too_short_for_their_target_networks_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let task = "cube-single-play-singletask-task2-v0";
    let run = |name: &str, config: &str| {
        let mut run = Fake { task, ..Fake::default() }.write(&folder.path().join(name));
        run.records.as_mut().unwrap().config =
            format!("agent = \"{name}\"\nseed = 0\ntask = \"{task}\"\n{config}");
        arm(&name.to_uppercase(), "", task, vec![run])
    };
    let arms = vec![
        run("iql", "[iql]\ntau = 0.1\ngamma = 0.9\n[train]\nsteps = 1000\n"),
        run("fql", "[fql]\ngamma = 0.99\n[train]\nsteps = 1000\n"),
        run("album", "[album]\n[train]\nsteps = 1000\n"),
    ];
    let written = write(&[study("short", None, arms)], &[], &folder.path().join("out")).unwrap();
    let page = std::fs::read_to_string(&written.page).unwrap();
    assert!(page.contains("success says little about the method: FQL."), "{page}");
}

#[test]
fn outputs_of_commands_are_put_beside_the_published_cost() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let mut cost = study("cost", Some("cost"), Vec::new());
    cost.outputs = Some(made.clone());
    let page = || {
        std::fs::read_to_string(write(&[cost.clone()], &[], &folder.path().join("out")).unwrap().page)
            .unwrap()
    };
    assert!(page().contains("has not been run yet"));
    std::fs::create_dir(&made).unwrap();
    let plot = album_plot::Plot::new("Success & cost").line("x", &[(0.0, 1.0), (1.0, 2.0)]);
    std::fs::write(made.join("pareto.svg"), plot.render()).unwrap();
    let json = r#"{"seeds": 1, "agents": [{"agent": "album", "parameters": 2430000, "gflop_per_step": 3.0,
        "times": [{"threads": 1, "ms_per_step": 10.0, "deviation": 0.0}], "value_networks": 2, "peak_rss_mib": 50.0}]}"#;
    std::fs::write(made.join("cost.json"), json).unwrap();
    let page = page();
    assert!(page.contains("<figure id=\"cost-pareto\">") && page.contains("Success &amp; cost"));
    assert!(page.contains("2.43 M") && folder.path().join("out/cost-cost.csv").is_file());
    std::fs::write(made.join("foreign.svg"), "<svg><script>alert(1)</script></svg>").unwrap();
    let error = write(&[cost.clone()], &[], &folder.path().join("out")).unwrap_err();
    assert!(matches!(error, ReportError::Figure(_)), "{error}");
}

#[test]
fn a_file_in_the_way_stays() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("notes.txt");
    std::fs::write(&out, "mine").unwrap();
    let error = write(&[sweep(folder.path())], &[], &out).unwrap_err();
    assert!(error.to_string().contains("is a file"), "{error}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "mine");
}

//! `album solve` on logs: labels in, labels out, and clear messages.

use crate::common;

use album_data::table::{ColumnData, Table};
use common::{album, fails, json};
use std::path::Path;

const COLUMNS: [&str; 8] =
    ["--state", "ward,severity", "--action", "drug", "--reward", "score", "--episode", "patient"];

/// Thirty patients; in ward 1 drug B helps severe cases, in ward 2 both drugs are equally good.
fn write(folder: &Path) {
    let mut text = "patient,ward,severity,drug,score\n".to_owned();
    for i in 0..30 {
        let (ward, drug) = (1 + i % 2, if i % 4 < 2 { "A" } else { "B" });
        let helps = if ward == 1 && drug == "B" { 3 } else { 1 };
        text += &format!("p{i},{ward},severe,{drug},{}\np{i},{ward},mild,none,1\n", helps + i % 2);
    }
    std::fs::write(folder.join("log.csv"), text).unwrap();
}

fn solve<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["solve", "log.csv"][..], &COLUMNS, more].concat()
}

#[test]
fn from_a_log_to_a_policy_with_its_labels() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let more = ["--bootstrap", "100", "--json", "--report", "page.html", "--out"];
    for out in ["policy.parquet", "policy.csv", "policy.npz"] {
        let r = json(folder.path(), &solve(&[&more[..], &[out]].concat()));
        assert_eq!((r["transitions"].as_u64(), r["episodes"].as_u64()), (Some(60), Some(30)));
        assert_eq!((r["states"].as_u64(), r["choices"].as_u64()), (Some(4), Some(2)));
        assert_eq!(r["certain"], 1);
        assert!(r["bellman_residual"].as_f64().unwrap() < 1e-12);
    }
    for out in ["policy.parquet", "policy.csv"] {
        let table = Table::open(&[folder.path().join(out)]).unwrap();
        let found = table.read(&["ward", "severity", "best_action", "gain_is_certain", "count"]).unwrap();
        assert_eq!(found[0], ColumnData::Int(vec![1, 1, 2, 2]));
        assert_eq!((found[1].label(1), found[2].label(1)), ("severe".into(), "B".into()));
        assert_eq!(found[3], ColumnData::Bool(vec![false, true, false, false]));
    }
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("significantly") && page.contains("severe"));
    let text = String::from_utf8(album(folder.path(), &solve(&[])).stdout).unwrap();
    assert!(text.contains("60 transitions in 30 episodes") && text.contains("--bootstrap 200"), "{text}");
}

#[test]
fn a_log_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let refused = |more: &[&str], code: i32, words: &[&str]| fails(folder.path(), &solve(more), code, words);
    refused(&["--out", "log.csv"], 2, &["log.csv is the input"]);
    refused(&["--out", "./log.csv"], 2, &["is the input"]);
    refused(&["--out", "policy.txt"], 2, &[".parquet, .csv or .npz"]);
    refused(&["--out", "x.csv", "--report", "x.csv"], 2, &["same file"]);
    refused(&["--bin", "ward"], 2, &["COLUMN=N"]);
    refused(&["--bin", "severity=3"], 3, &["`severity`, row 0", "`severe`", "a number"]);
    refused(&["--step", "patients"], 3, &["no column `patients`", "`patient`"]);
    refused(&["--gamma", "1"], 3, &["gamma is 1"]);
    fails(folder.path(), &["solve", "log.csv"], 2, &["is a table", "--state", "`severity`"]);
    fails(folder.path(), &["solve", "log.csv", "--state", "ward"], 2, &["--action"]);
    let mut huge = "patient,ward,severity,drug,score\n".to_owned();
    (0..4).for_each(|_| huge += "p,1,severe,A,1e308\n");
    std::fs::write(folder.path().join("log.csv"), huge).unwrap();
    refused(&["--gamma", "0.999", "--out", "p.csv", "--report", "p.html"], 4, &["scale them down"]);
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["log.csv"], "a failure writes nothing");
}

/// Several files, or a folder of them, form one log.
#[test]
fn a_folder_is_one_log() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    std::fs::create_dir(folder.path().join("logs")).unwrap();
    let text = std::fs::read_to_string(folder.path().join("log.csv")).unwrap();
    let (names, rows) = text.split_once('\n').unwrap();
    let middle = rows.match_indices('\n').nth(29).unwrap().0 + 1;
    for (name, part) in [("a.csv", &rows[..middle]), ("b.csv", &rows[middle..])] {
        std::fs::write(folder.path().join("logs").join(name), format!("{names}\n{part}")).unwrap();
    }
    let whole = json(folder.path(), &solve(&["--json"]));
    let parts = json(folder.path(), &[&["solve", "logs"][..], &COLUMNS, &["--json"]].concat());
    for key in ["transitions", "episodes", "states", "initial_value"] {
        assert_eq!(whole[key], parts[key], "{key}");
    }
}

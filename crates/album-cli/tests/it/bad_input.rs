//! Bad input: a message that names the file, key and row, the right exit code, and nothing written.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::common;

use album_data::NpzWriter;
use common::{Columns, album, fails, snapshot};

/// Runs `solve` with output options on a file altered by `change`, and checks that it writes nothing.
fn refused(change: impl FnOnce(&mut Columns), words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let mut data = Columns::chain();
    change(&mut data);
    data.write(folder.path(), "data.npz");
    std::fs::write(folder.path().join("out.npz"), "kept").unwrap();
    let before = snapshot(folder.path());
    let args = ["solve", "data.npz", "--out", "out.npz", "--mps", "program.mps", "--json"];
    fails(folder.path(), &args, 3, words);
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn rows_that_do_not_fit() {
    refused(|d| d.rewards[1] = f64::NAN, &["data.npz", "rewards", "row 1", "NaN"]);
    refused(|d| d.rewards[0] = f64::INFINITY, &["data.npz", "rewards", "row 0", "inf"]);
    refused(|d| d.actions.push(0), &["data.npz", "actions", "3", "2"]);
    refused(|d| d.terminals.truncate(1), &["data.npz", "terminals", "1", "2"]);
    refused(
        |d| {
            d.states.clear();
            d.actions.clear();
            d.next_states.clear();
            d.rewards.clear();
            d.terminals.clear();
        },
        &["data.npz", "empty"],
    );
}

/// Runs `solve` on a file written by `write`.
fn refused_file(write: impl FnOnce(&mut NpzWriter), words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.npz");
    let mut npz = NpzWriter::create(&path).unwrap();
    write(&mut npz);
    npz.finish().unwrap();
    let before = snapshot(folder.path());
    fails(folder.path(), &["solve", "data.npz", "--out", "out.npz"], 3, words);
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn keys_and_types_that_do_not_fit() {
    let common = |npz: &mut NpzWriter| {
        npz.array_i64("states", &[1], &[0]).unwrap();
        npz.array_i64("actions", &[1], &[0]).unwrap();
        npz.array_f64("rewards", &[1], &[0.0]).unwrap();
        npz.array_bool("terminals", &[1], &[true]).unwrap();
    };
    refused_file(common, &["data.npz", "`next_states` is missing"]);
    refused_file(
        |npz| {
            common(npz);
            npz.array_i64("next_states", &[1], &[0]).unwrap();
            npz.array_i64("goals", &[1], &[0]).unwrap();
        },
        &["data.npz", "unknown key `goals`"],
    );
    refused_file(
        |npz| {
            common(npz);
            npz.array_f64("next_states", &[1], &[0.0]).unwrap();
        },
        &["data.npz", "`next_states`", "float64", "integer"],
    );
    refused_file(
        |npz| {
            common(npz);
            npz.array_i64("next_states", &[1, 1], &[0]).unwrap();
        },
        &["data.npz", "`next_states`", "[1, 1]", "one dimension"],
    );
}

#[test]
fn options_outside_their_domain() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &[&str]); 9] = [
        (&["--gamma", "1"], &["gamma is 1", "[0, 1)"]),
        (&["--gamma", "-0.1"], &["gamma is -0.1"]),
        (&["--gamma", "nan"], &["gamma is NaN"]),
        (&["--k", "0"], &["K is 0", "at least 1"]),
        (&["--k", "-3"], &["K is -3", "at least 1"]),
        (&["--omega-q", "-1"], &["omega_Q is -1", "positive"]),
        (&["--omega-v", "0"], &["omega_V is 0", "positive"]),
        (&["--omega-v", "inf"], &["omega_V is inf", "positive"]),
        (&["--omega-q", "nan"], &["omega_Q is NaN", "positive"]),
    ];
    for (options, words) in cases {
        let mut args = vec!["solve", "mudworld", "--size", "5", "--out", "out.npz"];
        args.extend_from_slice(options);
        fails(folder.path(), &args, 3, words);
    }
    assert!(snapshot(folder.path()).is_empty());
}

#[test]
fn usage_errors_are_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    fails(folder.path(), &["solve", "mudwolrd"], 2, &["mudwolrd", "mudworld"]);
    fails(folder.path(), &["solve", "mudworld", "--data", "up-left"], 2, &["up-left", "down-right"]);
    fails(folder.path(), &["solve", "mudworld", "--size", "1"], 2, &["--size is 1"]);
    fails(folder.path(), &["solve", "mudworld", "--sede", "1"], 2, &["--sede", "--seed"]);
    fails(folder.path(), &["verify", "sandwitch"], 2, &["sandwitch", "sandwich"]);
    fails(folder.path(), &["solve", "mudworld", "--mps", "x", "--out", "x"], 2, &["same file"]);
    assert!(snapshot(folder.path()).is_empty());
}

#[test]
fn files_that_are_not_there_or_cannot_be_written_are_exit_code_5() {
    let folder = tempfile::tempdir().unwrap();
    fails(folder.path(), &["solve", "missing.npz"], 5, &["missing.npz"]);
    Columns::chain().write(folder.path(), "data.npz");
    let before = snapshot(folder.path());
    fails(
        folder.path(),
        &["solve", "data.npz", "--out", "no/such/folder/out.npz", "--mps", "p.mps"],
        5,
        &["out.npz"],
    );
    assert_eq!(snapshot(folder.path()), before, "the MPS file must not appear when the other file fails");
    fails(folder.path(), &["verify", "penalty", "--out", "data.npz"], 5, &["data.npz"]);
}

#[test]
fn hostile_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let whole = std::fs::read(Columns::chain().write(folder.path(), "whole.npz")).unwrap();
    write("truncated.npz", &whole[..whole.len() - 9]);
    write("pickle.npz", b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05hello\x94.");
    write("text.npz", b"states,actions\n0,1\n");
    write("nothing.npz", b"");
    for name in ["truncated.npz", "pickle.npz", "text.npz", "nothing.npz"] {
        fails(folder.path(), &["solve", name, "--out", "out.npz"], 3, &[name]);
    }
    assert!(!folder.path().join("out.npz").exists());
}

#[cfg(not(feature = "highs"))]
#[test]
fn a_build_without_highs_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    fails(
        folder.path(),
        &["solve", "mudworld", "--size", "5", "--solver", "highs"],
        3,
        &["--features highs"],
    );
}

#[cfg(feature = "highs")]
#[test]
fn both_solvers_agree() {
    let folder = tempfile::tempdir().unwrap();
    let v = |solver: &str| {
        let args = ["solve", "mudworld", "--size", "40", "--solver", solver, "--out", "out.npz", "--json"];
        let report = common::json(folder.path(), &args);
        assert!(report["diff_vs_value_iteration"].as_f64().unwrap() < 1e-7, "{solver}");
        assert!(report["certificate"]["gap"].as_f64().unwrap() < 1e-9, "{solver}");
        album_data::Npz::open(folder.path().join("out.npz"))
            .unwrap()
            .read("v")
            .unwrap()
            .into_floats()
            .unwrap()
    };
    let (bellman, highs) = (v("bellman"), v("highs"));
    assert!(bellman.iter().zip(&highs).all(|(a, b)| (a - b).abs() < 1e-7));
}

#[test]
fn help_names_every_command_and_flag() {
    let folder = tempfile::tempdir().unwrap();
    let help = |args: &[&str]| String::from_utf8(album(folder.path(), args).stdout).unwrap();
    for command in ["solve", "verify", "bench"] {
        assert!(help(&["--help"]).contains(command));
    }
    let solve = help(&["solve", "--help"]);
    for flag in ["--data", "--seed", "--k", "--gamma", "--solver", "--mps", "--out", "--json", "--omega-q"] {
        assert!(solve.contains(flag), "{flag}");
    }
    let verify = help(&["verify", "--help"]);
    for word in ["--seeds", "--out", "--json", "sandwich", "stationarity"] {
        assert!(verify.contains(word), "{word}");
    }
}

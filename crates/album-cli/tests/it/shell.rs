//! What shells, terminals and `man` see.

use crate::common::{album, pointmaze_data, program, shell};
use std::process::Command;

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn bash_completes_commands_options_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        eval "$("$0" completions bash)"
        complete_line() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _album album "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            echo "${COMPREPLY[@]}"
        }
        complete_line album sol
        complete_line album train --see
        complete_line album train --agent ifql
        complete_line album data insp
        complete_line album reproduce k-
    "#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script]).arg(program()).current_dir(folder.path());
    let Ok(output) = bash.output() else {
        album_testing::skip("bash", "bash cannot be started");
        return;
    };
    let lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    let expected = ["solve", "--seed --seeds", "ifql ifql-album", "inspect", "k-sweep"];
    assert_eq!(lines, expected, "{}", said(&output));
}

#[test]
fn every_shell_has_completions() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = album(folder.path(), &["completions", name]);
        assert!(output.status.success(), "{name}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("reproduce"), "{name}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = album(folder.path(), &["man", "--out", "man1"]);
    assert!(output.status.success(), "{}", said(&output));
    for (page, content) in [
        ("album", "reproduce"),
        ("album-train", "patience"),
        ("album-solve", "Example: album solve"),
        ("album-data-inspect", "columns"),
    ] {
        let text = std::fs::read_to_string(folder.path().join(format!("man1/{page}.1"))).unwrap();
        assert!(text.contains(".TH") && text.contains(content), "{page}: {text}");
    }
    let output = album(folder.path(), &["man"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains(".TH album 1"));
}

const TRAIN: &str = "album train pointmaze-medium-navigate-singletask-task1-v0 --data data.npz --out run --steps 20 \
    --set hidden=[8,8] --set batch_size=16 --set log_every=10 --eval-episodes 0 --allow-unbounded --set lambda_k=0";

#[test]
fn quiet_leaves_warnings_and_verbose_adds_rows() {
    let trained = |options: &str| {
        let folder = tempfile::tempdir().unwrap();
        pointmaze_data(&folder.path().join("data.npz"));
        said(&shell(folder.path(), &format!("{TRAIN} {options}")))
    };
    let (quiet, usual, verbose) = (trained("--quiet"), trained(""), trained("-v"));
    assert!(quiet.lines().all(|line| line.starts_with("warning: ")), "{quiet}");
    assert!(quiet.contains("warning: the boundedness condition is violated"), "{quiet}");
    assert!(usual.contains("album on pointmaze") && !usual.contains("checkpoint saved"), "{usual}");
    assert!(verbose.contains("checkpoint saved") && verbose.contains("critic/critic_loss"), "{verbose}");
}

/// On a terminal, which `script` provides, errors are coloured unless NO_COLOR is set.
#[test]
fn colours_only_where_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    if !shell(folder.path(), "script -qec true /dev/null").status.success() {
        album_testing::skip("script", "util-linux's script cannot be started");
        return;
    }
    let printed = |line: &str| String::from_utf8_lossy(&shell(folder.path(), line).stdout).into_owned();
    for command in ["solve missing.npz", "train --stepz 3"] {
        let line = format!("TERM=xterm script -qec '{} {command}' /dev/null", program().display());
        let coloured = printed(&format!("unset NO_COLOR; {line}"));
        assert!(coloured.contains("\x1b["), "{coloured:?}");
        let plain = printed(&format!("NO_COLOR=1 {line}"));
        assert!(plain.contains("error: ") && !plain.contains("\x1b["), "{plain:?}");
        let piped = printed(&format!("album {command} 2>&1"));
        assert!(piped.starts_with("error: ") && !piped.contains("\x1b["), "{piped:?}");
    }
}

//! `album setup ogbench` as a user runs it, with a shell script as the base Python.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{fails, json};
use std::path::Path;

/// A Python whose virtual environments run `real`, and whose pip does nothing.
fn base(folder: &Path, real: &Path) -> String {
    let path = folder.join("python3");
    let script = format!(
        r#"
if [ "$1" = -c ]; then echo 3.12; exit; fi
for folder in "$@"; do :; done
mkdir -p "$folder/bin"
printf '#!/bin/sh\n[ "$3" = pip ] && exit\nexec {} "$@"\n' > "$folder/bin/python"
chmod +x "$folder/bin/python"
"#,
        real.display()
    );
    album_testing::script(&path, &script);
    path.display().to_string()
}

#[test]
fn one_environment_of_each_family_is_tried() {
    let Some(real) = std::env::var_os("ALBUM_PYTHON") else {
        album_testing::skip("python", "ALBUM_PYTHON is not set; `cargo xtask test` sets it");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let base = base(folder.path(), Path::new(&real));
    let report =
        json(folder.path(), &["setup", "ogbench", "--path", "here/python", "--python", &base, "--json"]);
    let here = folder.path().join("here/python");
    assert_eq!(Path::new(report["path"].as_str().unwrap()), std::path::absolute(&here).unwrap());
    assert_eq!(report["interpreter"].as_str().unwrap(), here.join("bin/python").to_str().unwrap());
    assert!(report["versions"]["ogbench"].as_str().unwrap().starts_with("1.2"));
    let tried = report["environments"].as_array().unwrap();
    assert_eq!(tried.len(), 7);
    assert_eq!((&tried[4]["environment"], &tried[4]["observation_dim"]), (&"cube-single".into(), &28.into()));
    assert!(tried.iter().all(|environment| environment["step_seconds"].as_f64().unwrap() > 0.0));
}

#[test]
fn gymnasium_is_tried_with_and_without_discrete_spaces() {
    let Some(real) = std::env::var_os("ALBUM_PYTHON") else {
        album_testing::skip("python", "ALBUM_PYTHON is not set; `cargo xtask test` sets it");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let base = base(folder.path(), Path::new(&real));
    let setup = ["setup", "gymnasium", "minigrid", "--path", "python", "--python", &base, "--json"];
    let report = json(folder.path(), &setup);
    assert!(report["versions"]["gymnasium"].is_string(), "{report}");
    let tried = report["environments"].as_array().unwrap();
    let sizes: Vec<_> = tried.iter().map(|t| t["observation_dim"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [3, 4, 16]);
    let option = ["setup", "gymnasium", "--path", "python", "--python", &base, "--", "--user"];
    fails(folder.path(), &option, 3, &["found `--user`, expected the name of a package"]);
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let setup = ["setup", "ogbench", "--path", "x"];
    let with = |python| [&setup[..], &["--python", python]].concat();
    fails(folder.path(), &with("./no-python"), 5, &["./no-python", "apt install python3 python3-venv"]);
    fails(folder.path(), &with("echo"), 3, &["expected the version of a Python"]);
    // The environment lacks the package: creating it succeeds, trying it fails.
    let base = base(folder.path(), Path::new("/bin/false"));
    fails(folder.path(), &with(&base), 5, &["pointmaze-medium-singletask-v0: no worker could be started"]);
    std::fs::create_dir(folder.path().join("full")).unwrap();
    std::fs::write(folder.path().join("full/notes"), "mine").unwrap();
    fails(
        folder.path(),
        &["setup", "ogbench", "--path", "full", "--python", &base],
        3,
        &["found something that `album setup` did not make"],
    );
    assert_eq!(std::fs::read_dir(folder.path().join("full")).unwrap().count(), 1);
}

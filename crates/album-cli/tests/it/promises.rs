//! Every promise names a test that exists, and every page of the book is spoken for.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every file of a folder with this ending, however deep.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
    found
}

/// The tests of a crate, or of the Python package: words of their module's path, and names.
fn tests(of: &str) -> Vec<(Vec<String>, String)> {
    let (folder, ending) = if of == "python" {
        (root().join("python/tests"), "py")
    } else {
        (root().join("crates").join(of), "rs")
    };
    assert!(folder.is_dir(), "{of}: there is no such crate");
    let mut found = Vec::new();
    for path in files(&folder, ending) {
        let inside = path.strip_prefix(&folder).unwrap().with_extension("");
        let words: Vec<String> = inside.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut marked = ending == "py";
        for line in text.lines().map(str::trim) {
            marked |= line == "#[test]";
            let name = line.strip_prefix("fn ").or_else(|| line.strip_prefix("def "));
            if let Some(name) = name.filter(|_| marked) {
                found.push((words.clone(), name.split(['(', '<']).next().unwrap().to_owned()));
                marked = ending == "py";
            }
        }
    }
    found
}

/// Whether a crate has the test `module::name`, or a module of tests `name`.
fn exists(tests: &[(Vec<String>, String)], path: &str) -> bool {
    let parts: Vec<&str> = path.split("::").filter(|&part| part != "tests").collect();
    let (name, modules) = parts.split_last().unwrap();
    let within =
        |words: &[String], modules: &[&str]| modules.iter().all(|m| words.iter().any(|word| word == m));
    tests.iter().any(|(words, test)| test == name && within(words, modules))
        || tests.iter().any(|(words, _)| within(words, &parts))
}

/// The tests named in a cell: `crate: \`a::b\`, \`c\`; other: \`d\``.
fn named(cell: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for part in cell.split("; ") {
        if let Some((of, names)) = part.split_once(": ") {
            found.extend(names.split(", ").map(|name| (of.trim(), name.trim().trim_matches('`'))));
        }
    }
    found
}

#[test]
fn every_named_test_exists() {
    let (mut count, mut known) = (0, BTreeMap::new());
    for (page, least) in [("docs/promises.md", 80), ("SECURITY.md", 30)] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let before = count;
        let rows = text.lines().filter(|line| line.starts_with("| "));
        for row in rows.filter(|row| !row.ends_with("| test |")) {
            let cell = row.trim_end_matches('|').rsplit(" | ").next().unwrap().trim();
            let found = named(cell);
            assert!(
                !found.is_empty() || cell.contains("cargo xtask") || cell.contains("doc tests"),
                "{page}: no test in {row}"
            );
            for (of, name) in found {
                assert!(
                    exists(known.entry(of.to_owned()).or_insert_with(|| tests(of)), name),
                    "{page}: {of} has no test {name}"
                );
                count += 1;
            }
        }
        assert!(count - before >= least, "{page}: only {} tests", count - before);
    }
    assert!(!exists(&tests("album-cli"), "promises::no_such_test"));
}

#[test]
fn every_page_of_the_book_is_there() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let links = summary.lines().filter_map(|line| line.rsplit_once("](")?.1.strip_suffix(')'));
    // Pages outside docs/ make their promises to those who read the code.
    let links = links.filter(|link| !link.starts_with("../"));
    // Pages beside docs/ begin with `../`.
    let place = |page: &str| page.strip_prefix("../").map_or(format!("docs/{page}"), str::to_owned);
    let mut pages: BTreeSet<String> = links.map(place).collect();
    pages.insert("README.md".into());
    let text = std::fs::read_to_string(root().join("docs/promises.md")).unwrap();
    let words = text.split(|c: char| c.is_whitespace() || ",|".contains(c));
    let told: BTreeSet<String> = words.filter(|word| word.ends_with(".md")).map(str::to_owned).collect();
    let missing: Vec<&String> = pages.difference(&told).collect();
    assert!(missing.is_empty(), "docs/promises.md says nothing about {missing:?}");
    let gone: Vec<&String> = told.iter().filter(|page| !root().join(page).is_file()).collect();
    assert!(gone.is_empty(), "there is no {gone:?}");
}

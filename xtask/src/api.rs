//! `cargo xtask api`: what the library crates offer, as text in `xtask/api/`, one file per crate. A change of it is seen in
//! review; `--accept` writes the files again.
//!
//! Read from the sources: items and fields that are `pub`, the variants of enums and the functions of traits. An item in a
//! private module counts, too: that is simpler than following re-exports, and errs on the side of showing too much.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

pub fn run_task(args: &[String]) -> Result<(), String> {
    match args {
        [] => check(),
        [option] if option == "--accept" => accept(),
        _ => Err("api: expected nothing or --accept".into()),
    }
}

/// The library crates: the Python module and the command line have their own tests of what they offer.
fn crates() -> Result<Vec<String>, String> {
    let folder = root().join("crates");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten();
    let library = |name: &String| {
        folder.join(name).join("src/lib.rs").exists()
            && !["album-python", "album-cli"].contains(&name.as_str())
    };
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(library).collect();
    names.sort();
    Ok(names)
}

fn snapshot(name: &str) -> PathBuf {
    root().join("xtask/api").join(format!("{name}.txt"))
}

fn accept() -> Result<(), String> {
    for name in crates()? {
        let path = snapshot(&name);
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|e| e.to_string())?;
        fs::write(&path, text(&name)?).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Fails if a crate offers something else than its file says.
pub fn check() -> Result<(), String> {
    let mut changed = Vec::new();
    for name in crates()? {
        let now = text(&name)?;
        let then = fs::read_to_string(snapshot(&name)).unwrap_or_default();
        let (now, then): (BTreeSet<&str>, BTreeSet<&str>) = (now.lines().collect(), then.lines().collect());
        changed.extend(then.difference(&now).map(|line| format!("- {name}: {line}")));
        changed.extend(now.difference(&then).map(|line| format!("+ {name}: {line}")));
    }
    if changed.is_empty() {
        eprintln!("== public interfaces are those of xtask/api");
        return Ok(());
    }
    let changed = changed.join("\n");
    Err(format!("{changed}\napi: public interfaces changed; if that is intended: cargo xtask api --accept"))
}

/// What a crate offers, file by file.
fn text(name: &str) -> Result<String, String> {
    let source = root().join("crates").join(name).join("src");
    let mut files = Vec::new();
    collect(&source, &mut files)?;
    files.sort();
    let mut lines = String::new();
    for path in files {
        let source = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        for item in items(&source) {
            lines += &format!("{item}\n");
        }
    }
    let mut sorted: Vec<&str> = lines.lines().collect();
    sorted.sort_unstable();
    sorted.dedup(); // in whichever file it is
    Ok(sorted.join("\n") + "\n")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" {
                collect(&path, files)?;
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
    Ok(())
}

/// The public items of a file, each on one line, without bodies.
fn items(source: &str) -> Vec<String> {
    let source = source.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    let (mut open, mut within): (Option<String>, Option<(String, &str)>) = (None, None);
    for line in source.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let code = line.trim().split(" // ").next().unwrap_or_default().trim_end();
        if let Some((_, outer)) = &within
            && code.starts_with('}')
            && indent == *outer
        {
            within = None;
            continue;
        }
        // Members of an enum or a trait are one level deeper than it.
        let member = within.as_ref().filter(|(_, outer)| {
            indent.len() == outer.len() + 4
                && !code.is_empty()
                && !code.starts_with(['#', '/', '}', ')', '>'])
        });
        let begun = match (&open, member) {
            (Some(begun), _) => format!("{begun} {code}"),
            (None, Some((name, _))) => format!("{name}::{code}"),
            (None, None) if code.starts_with("pub ") => code.to_owned(),
            _ => continue,
        };
        let balanced = begun.matches('(').count() == begun.matches(')').count();
        let is_use = begun.starts_with("pub use ");
        let whole = if is_use {
            begun.ends_with(';')
        } else {
            balanced && begun.ends_with(['{', ';', ',', '}', ')'])
        };
        if !whole {
            open = Some(begun);
            continue;
        }
        open = None;
        let begins =
            ["pub enum ", "pub trait "].iter().any(|start| begun.starts_with(start)) && begun.ends_with('{');
        let shown = if is_use { begun.as_str() } else { begun.split(" {").next().unwrap_or_default() };
        let shown = shown.trim_end_matches([',', ';']).replace("( ", "(").replace(", )", ")");
        if begins {
            let name = shown.split([' ', '<', ':']).nth(2).unwrap_or_default().to_owned();
            within = Some((name, indent));
        }
        found.push(shown);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_fields_variants_and_functions_of_traits() {
        let source = "
pub(crate) fn hidden() {}
/// Text.
pub struct Pair<T> {
    /// More.
    pub left: T,
    right: T,
}
pub enum Side {
    Left,
    Right { far: bool },
}
pub trait Turn {
    fn turn(&self) -> Side {
        Side::Left
    }
}
impl Pair<u8> {
    pub fn new(
        left: u8,
        right: u8,
    ) -> Self {
        Self { left, right }
    }
}
pub use other::{
    A, B,
};

#[cfg(test)]
mod tests {
    pub fn unseen() {}
}
";
        let expected = [
            "pub struct Pair<T>",
            "pub left: T",
            "pub enum Side",
            "Side::Left",
            "Side::Right",
            "pub trait Turn",
            "Turn::fn turn(&self) -> Side",
            "pub fn new(left: u8, right: u8) -> Self",
            "pub use other::{ A, B, }",
        ];
        assert_eq!(items(source), expected);
    }
}

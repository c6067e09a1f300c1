//! The documentation: every page is in the book, every link leads somewhere, every command is understood, and what
//! it says about files is enough to read them.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{album, json, program, python};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Markdown file of a folder, however deep.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The pages that people read: those of the root, of `docs/`, and the README of every folder.
fn documentation() -> Vec<PathBuf> {
    let root = root();
    let mut found = pages(&root.join("docs"));
    for folder in [".", "experiments", "presets", "python", "crates/album-policy"] {
        let folder = root.join(folder);
        let here = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        found.extend(here.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    assert!(found.len() > 50, "{}", found.len());
    found
}

/// Lines outside code blocks; or the code blocks of a language, each with its first line's number.
fn prose(text: &str) -> String {
    let mut code = false;
    text.lines()
        .filter(|line| {
            let fence = line.trim_start().starts_with("```");
            code ^= fence;
            !fence && !code
        })
        .map(|line| format!("{line}\n"))
        .collect()
}

fn blocks<'t>(text: &'t str, languages: &[&str]) -> Vec<Vec<&'t str>> {
    let mut found: Vec<Vec<&str>> = Vec::new();
    let mut open: Option<bool> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(language), None) => {
                let wanted = languages.contains(&language.trim());
                open = Some(wanted);
                if wanted {
                    found.push(Vec::new());
                }
            }
            (Some(_), Some(_)) => open = None,
            (None, Some(true)) => found.last_mut().unwrap().push(line),
            _ => {}
        }
    }
    found
}

/// A heading as it is addressed in a link.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in documentation() {
        let text = prose(&std::fs::read_to_string(&page).unwrap());
        for rest in text.split("](").skip(1) {
            let link = rest.split(')').next().unwrap();
            if link.starts_with("http") || link.starts_with("mailto:") || link.contains(char::is_whitespace) {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let found = target.exists();
            let reached = found
                && (heading.is_empty() || target.is_dir() || {
                    let page = prose(&std::fs::read_to_string(&target).unwrap_or_default());
                    page.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading)
                });
            if !reached {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Markdown shows a row that is continued on the next line, or has a cell too many, as a broken table.
#[test]
fn every_row_of_a_table_is_whole() {
    let mut torn = Vec::new();
    for page in documentation() {
        let text = prose(&std::fs::read_to_string(&page).unwrap());
        let mut bars = None;
        for line in text.lines() {
            if line.trim().is_empty() {
                bars = None;
            } else if bars.is_some() || line.starts_with('|') {
                let here = line.matches('|').count() - line.matches("\\|").count();
                if !line.ends_with('|') || here != *bars.get_or_insert(here) {
                    torn.push(format!("{}: {line}", page.display()));
                }
            }
        }
    }
    assert!(torn.is_empty(), "{}", torn.join("\n"));
}

#[test]
fn the_book_has_every_page() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    // Pages outside docs/ may be in it too; the test of all links looks for them.
    let links = summary.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    let listed: BTreeSet<PathBuf> =
        links.filter(|link| !link.starts_with("../")).map(|link| docs.join(link)).collect();
    let on_disk: BTreeSet<PathBuf> =
        pages(&docs).into_iter().filter(|page| page.file_name().unwrap() != "SUMMARY.md").collect();
    assert_eq!(listed, on_disk);
}

/// The front page is short enough to be read.
#[test]
fn the_front_page_has_at_most_600_words() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let words = page.split_whitespace().count();
    assert!(words <= 600, "{words}");
    // The two commands for a fresh machine.
    for command in ["cargo run --release -- train", "cargo xtask test"] {
        assert!(page.contains(command), "{command}");
    }
}

/// What a shell would pass on of a line, up to a comment, a pipe or another command.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quote, mut escaped) = (None, false);
    for c in line.chars() {
        match (c, quote) {
            (c, _) if escaped => {
                words.last_mut().unwrap().push(c);
                escaped = false;
            }
            ('\\', None) => escaped = true,
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => words.last_mut().unwrap().push(c),
            ('\'' | '"', None) => quote = Some(c),
            ('#' | '|' | ';' | '>' | '&', None) => break,
            (' ', None) => words.push(String::new()),
            (c, None) => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// With `--help` behind it, a command is parsed and not run.
#[test]
fn every_command_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let (mut count, mut misunderstood) = (0, Vec::new());
    for page in documentation() {
        if page.ends_with("CHANGELOG.md") {
            continue; // commands of their time
        }
        let text = std::fs::read_to_string(&page).unwrap();
        for block in blocks(&text, &["sh", "", "console", "text"]) {
            let joined = block.join("\n").replace("\\\n", " ");
            // Where a prompt is shown, the other lines are what a command prints.
            let prompt = joined.lines().any(|line| line.starts_with("$ "));
            for line in joined.lines().filter(|line| !prompt || line.starts_with("$ ")) {
                let line = line.trim().trim_start_matches("$ ");
                let command =
                    line.strip_prefix("album ").or_else(|| line.strip_prefix("cargo run --release -- "));
                // Not a command: usage with options in brackets, what is left out, a picture.
                let usage = |rest: &&str| rest.contains("...") || rest.contains('[') || rest.starts_with(' ');
                let Some(command) = command.filter(|rest| !usage(rest)) else { continue };
                let number = |word: String| if word == "N" { "1".to_owned() } else { word };
                let mut args: Vec<String> = words(command).into_iter().map(number).collect();
                args.push("--help".into());
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                count += 1;
                let output = album(folder.path(), &args);
                if !output.status.success() {
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    misunderstood.push(format!("{}: {line}\n    {said}", page.display()));
                }
            }
        }
    }
    assert!(misunderstood.is_empty(), "{}", misunderstood.join("\n"));
    assert!(count > 60, "{count}");
}

#[test]
fn python_and_toml_are_well_formed() {
    let Some(python) = python() else { return };
    for page in documentation() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in blocks(&text, &["toml"]) {
            let parsed = block.join("\n").parse::<toml::Table>();
            assert!(parsed.is_ok(), "{}: {parsed:?}", page.display());
        }
        for block in blocks(&text, &["python"]) {
            let check = "import sys; compile(sys.argv[1], 'page', 'exec')";
            let output = Command::new(&python).args(["-c", check, &block.join("\n")]).output().unwrap();
            assert!(
                output.status.success(),
                "{}: {}",
                page.display(),
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

/// The functions of docs/files.md on real files: a checkpoint, a policy that acts like `album act`, columns.
#[test]
fn files_can_be_read_with_numpy() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let mut log = "episode,x,y,u,reward,terminated,truncated\n".to_owned();
    for row in 0..200 {
        let (x, y, u) = ((row * 7 % 13) as f32 / 13.0, (row % 9) as f32, (row * 5 % 11) as f32 / 3.0 - 1.5);
        log.push_str(&format!("{},{x},{y},{u},{},{},0\n", row / 20, -x, u8::from(row % 20 == 19)));
    }
    std::fs::write(folder.join("log.csv"), log).unwrap();
    let source = ["--columns", "obs=x+y,action=u"];
    let train =
        ["train", "--data", "log.csv", "--steps", "20", "--set", "hidden=[8,8]", "--out", "run", "--json"];
    json(folder, &[&train[..], &source].concat());
    json(folder, &["export", "run", "--format", "safetensors", "--out", "policy.safetensors", "--json"]);
    json(folder, &[&["data", "import", "log.csv", "--out", "columns", "--json"][..], &source].concat());
    let page = std::fs::read_to_string(root().join("docs/files.md")).unwrap();
    let mut script: Vec<String> = blocks(&page, &["python"]).iter().map(|block| block.join("\n")).collect();
    script.push(
        r#"
import subprocess, sys
observations = [[0.3, 2.0], [0.9, 7.5]]
lines = "".join(json.dumps(row) + "\n" for row in observations)
said = subprocess.run([sys.argv[1], "act", "policy.safetensors"], input=lines, capture_output=True, text=True, check=True)
expected = np.array([json.loads(line) for line in said.stdout.splitlines()])
assert np.abs(act("policy.safetensors", observations) - expected).max() < 1e-5, expected
arrays, manifest = columns("columns")
assert arrays["observations"].shape == (manifest["rows"], 2), manifest
assert arrays["episodes"].sum() + manifest["episodes"] == manifest["rows"], arrays["episodes"]
tensors, _ = safetensors("run/checkpoints/step_000000020/agent.safetensors")
assert tensors["q/weights/layer0/kernel"].shape == (3, 8), list(tensors)
"#
        .to_owned(),
    );
    let mut command = Command::new(python);
    command.args(["-c", &script.join("\n")]).arg(program()).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

//! `cargo xtask book`: the pages of the repository as one book in target/book.
//!
//! mdbook wants all pages below one folder, and links must work in the repository too. So the pages are copied, each in its
//! place, and only the table of contents is changed: it lies in docs/ and counts from there. In the finished book every link
//! to another page, heading or file is followed.

use crate::{answers, command, root, run, target};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Builds the book and follows its links.
pub fn build() -> Result<(), String> {
    let mdbook = std::env::var("MDBOOK").unwrap_or_else(|_| "mdbook".into());
    if !answers(&mdbook, &["--version"]) {
        return Err("book: mdbook is not installed; `cargo install mdbook` installs it, and MDBOOK names another place".into());
    }
    let (sources, book) = (target().join("book-src"), target().join("book"));
    for folder in [&sources, &book] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
    }
    let summary = read(&root().join("docs/SUMMARY.md"))?;
    let here = |link: &str| link.strip_prefix("../").map_or(format!("docs/{link}"), str::to_owned);
    for page in links(&summary) {
        copy(Path::new(&here(&page)), &sources)?;
    }
    let contents: String = summary
        .split("](")
        .enumerate()
        .map(|(i, part)| if i == 0 { part.to_owned() } else { format!("]({}", here(part)) })
        .collect();
    write(&sources.join("src/SUMMARY.md"), &contents)?;
    for file in ["book.toml", "album.css"] {
        write(&sources.join(file), &read(&root().join("docs/book").join(file))?)?;
    }
    run(
        "book",
        command(&mdbook, &["build", &sources.to_string_lossy(), "--dest-dir", &book.to_string_lossy()]),
    )?;
    let broken = broken_links(&book)?;
    if broken.is_empty() { Ok(()) } else { Err(format!("book: broken links\n{}", broken.join("\n"))) }
}

/// Copies a page, and the files that it shows or links to, unless they are pages too.
fn copy(page: &Path, sources: &Path) -> Result<(), String> {
    let text = read(&root().join(page))?;
    for link in links(&text) {
        let file =
            normal(&page.parent().unwrap_or(Path::new("")).join(link.split('#').next().unwrap_or_default()));
        let from = root().join(&file);
        // A report comes with the tables and figures that lie beside it.
        let folder = from.parent().filter(|_| file.ends_with("index.html"));
        let files = folder.map_or(Ok(vec![from.clone()]), listed)?;
        for from in
            files.iter().filter(|file| file.is_file() && file.extension().is_none_or(|ending| ending != "md"))
        {
            let to = sources.join("src").join(from.strip_prefix(root()).unwrap_or(from));
            fs::create_dir_all(to.parent().unwrap_or(sources))
                .map_err(|e| format!("{}: {e}", to.display()))?;
            fs::copy(from, &to).map_err(|e| format!("{}: {e}", from.display()))?;
        }
    }
    // mdbook calls a README index, but not in links; and the table of contents is no page.
    let text = ["README.md)", "README.md#"].iter().fold(text, |text, end| {
        text.replace(&format!("/{end}"), &format!("/{}", end.replace("README", "index")))
            .replace(&format!("({end}"), &format!("({}", end.replace("README", "index")))
    });
    let text = text.replace("(docs/SUMMARY.md)", "(docs/getting-started.md)");
    write(&sources.join("src").join(page), &text)
}

/// The relative links of a page, `[text](link)`.
fn links(text: &str) -> Vec<String> {
    let all = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    all.filter(|link| !link.is_empty() && !link.contains("://") && !link.contains(char::is_whitespace))
        .map(str::to_owned)
        .collect()
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

/// Links of the finished pages to files or headings that do not exist. `print.html` repeats the others.
fn broken_links(book: &Path) -> Result<Vec<String>, String> {
    let mut broken = BTreeSet::new();
    for page in pages(book)? {
        let text = read(&page)?;
        let folder = page.parent().unwrap_or(book);
        for link in text
            .split("href=\"")
            .skip(1)
            .chain(text.split("src=\"").skip(1))
            .filter_map(|rest| rest.split('"').next())
        {
            if link.contains(':') || link.is_empty() {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { page.clone() } else { normal(&folder.join(file)) };
            let file = if file.is_dir() { file.join("index.html") } else { file };
            let reached = file.is_file()
                && (heading.is_empty()
                    || read(&file).unwrap_or_default().contains(&format!("id=\"{heading}\"")));
            if !reached {
                broken.insert(format!("{}: {link}", page.strip_prefix(book).unwrap_or(&page).display()));
            }
        }
    }
    Ok(broken.into_iter().collect())
}

/// Pages that mdbook wrote, without reports that lie beside them.
fn pages(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in listed(folder)? {
        let report = path.components().any(|part| part.as_os_str() == "small" || part.as_os_str() == "real");
        if path.is_dir() {
            found.extend(pages(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "html")
            && !path.ends_with("print.html")
            && !path.ends_with("404.html")
            && !report
        {
            found.push(path);
        }
    }
    Ok(found)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new("")))
        .and_then(|()| fs::write(path, text))
        .map_err(|e| format!("{}: {e}", path.display()))
}

//! A small checker of HTML and SVG: tags balance, attributes are quoted, entities are known, and ids are
//! unique. It knows only what this crate writes.

use std::collections::BTreeSet;

/// HTML elements without an end tag.
const VOID: [&str; 2] = ["meta", "br"];

/// Panics with the reason if the text is not well formed.
pub fn assert_well_formed(text: &str) {
    if let Err(reason) = check(text) {
        panic!("not well formed: {reason}");
    }
}

/// Reports what is wrong with the text, if anything.
pub fn check(text: &str) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let content = &rest[..start];
        if open.last().map(String::as_str) != Some("style") {
            check_content(content)?;
        }
        if open.is_empty() && !content.trim().is_empty() {
            return Err(format!("text outside of elements: {content:?}"));
        }
        let end = rest[start..].find('>').ok_or("a tag without end")? + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with("!DOCTYPE") {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop().ok_or(format!("</{name}> closes nothing"))?;
            if last != name {
                return Err(format!("</{name}> closes <{last}>"));
            }
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(format!("odd name in <{tag}>"));
        }
        check_attributes(attributes, &mut ids)?;
        if !closed && !VOID.contains(&name) {
            open.push(name.into());
        }
    }
    match open.last() {
        Some(name) => Err(format!("<{name}> is never closed")),
        None => Ok(()),
    }
}

fn check_content(content: &str) -> Result<(), String> {
    if content.contains('>') {
        return Err(format!("a bare > in {content:?}"));
    }
    for (i, _) in content.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        if !known.iter().any(|entity| content[i..].starts_with(entity)) {
            return Err(format!("a bare & in {content:?}"));
        }
    }
    Ok(())
}

fn check_attributes(text: &str, ids: &mut BTreeSet<String>) -> Result<(), String> {
    let mut rest = text.trim();
    let mut names = BTreeSet::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").ok_or(format!("an unquoted attribute in {rest:?}"))?;
        let (value, after) = after.split_once('"').ok_or(format!("an open quote in {rest:?}"))?;
        check_content(value)?;
        if name.contains(char::is_whitespace) || !names.insert(name) {
            return Err(format!("an odd or doubled attribute {name:?}"));
        }
        if name == "id" && !ids.insert(value.to_string()) {
            return Err(format!("the id {value:?} is used twice"));
        }
        rest = after.trim_start();
    }
    Ok(())
}

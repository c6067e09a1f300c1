//! Layers of configuration values: every key is known, has a type and remembers where its value came from.

use super::parse;
use crate::error::Error;
use album_base::suggest;
use std::collections::BTreeMap;

/// Configuration values in layers; later ones override earlier ones.
pub(crate) struct Layers {
    /// Contains every valid key.
    pub(crate) table: toml::Table,
    /// The source of every key that was given.
    given: BTreeMap<String, String>,
    /// Given values that were overridden.
    pub(super) overridden: Vec<String>,
}

impl Layers {
    pub(crate) fn over(table: toml::Table) -> Self {
        Layers { table, given: BTreeMap::new(), overridden: Vec::new() }
    }

    /// Overrides the current values.
    pub(crate) fn merge(&mut self, new: toml::Table, place: &str) -> Result<(), Error> {
        let mut changes = Vec::new();
        merge(&mut self.table, new, place, "", &mut changes)?;
        if place == "preset" {
            return Ok(());
        }
        for (key, old, value) in changes {
            if let Some(before) = self.given.insert(key.clone(), place.to_owned())
                && old.as_ref() != Some(&value)
                && let Some(old) = old
            {
                self.overridden.push(format!("{key} = {value} ({place}) instead of {old} ({before})"));
            }
        }
        Ok(())
    }
}

/// A key, its old value if it had one, and its new value.
type Change = (String, Option<toml::Value>, toml::Value);

fn merge(
    base: &mut toml::Table,
    new: toml::Table,
    place: &str,
    section: &str,
    changes: &mut Vec<Change>,
) -> Result<(), Error> {
    for (key, value) in new {
        let path = format!("{section}{key}");
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(new)) => {
                merge(base, new, place, &format!("{path}."), changes)?;
            }
            (Some(old), value) => {
                // An integer is accepted where a float is expected.
                let value = match (&*old, value) {
                    (toml::Value::Float(_), toml::Value::Integer(x)) => toml::Value::Float(x as f64),
                    (_, value) => value,
                };
                if old.type_str() != value.type_str() {
                    return Err(Error::Config(format!(
                        "{place}: {key} = {value}; expected {} such as {old}",
                        with_article(old.type_str())
                    )));
                }
                changes.push((path, Some(std::mem::replace(old, value.clone())), value));
            }
            (None, value) if section.is_empty() && ["data", "from"].contains(&&*key) && place != "preset" => {
                base.insert(key, value.clone());
                changes.push((path, None, value));
            }
            (None, _) => {
                return Err(unknown(&key, &base.keys().map(String::as_str).collect::<Vec<_>>(), place));
            }
        }
    }
    Ok(())
}

fn with_article(kind: &str) -> String {
    match kind {
        "array" | "integer" => format!("an {kind}"),
        "float" => "a number".into(),
        kind => format!("a {kind}"),
    }
}

fn unknown(key: &str, keys: &[&str], place: &str) -> Error {
    let hint = suggest::hint(key, keys.iter().copied());
    Error::Config(format!("{place}: unknown key `{key}`{hint}"))
}

/// `album.k=5`, or `k=5` where only one section has the key, as (section, key, value).
pub(super) fn assignment(pair: &str, table: &toml::Table) -> Result<(String, String, toml::Value), Error> {
    let place = format!("--set {pair}");
    let Some((key, text)) = pair.split_once('=') else {
        return Err(Error::Config(format!("{place}: expected key=value")));
    };
    let (key, text) = (key.trim(), text.trim());
    // A bare word is a string, so that quotes need not survive the shell.
    let value = parse(&format!("x = {text}"), &place)
        .or_else(|_| parse(&format!("x = {:?}", text), &place))?
        .remove("x")
        .ok_or_else(|| Error::Config(format!("{place}: no value")))?;
    let sections = || table.iter().filter_map(|(name, value)| Some((name, value.as_table()?)));
    let (section, key) = match key.split_once('.') {
        Some((section, key)) => (section.to_owned(), key),
        None => match sections().find(|(_, inner)| inner.contains_key(key)) {
            Some((name, _)) => (name.clone(), key),
            None => {
                let keys: Vec<&str> =
                    sections().flat_map(|(_, inner)| inner.keys()).map(String::as_str).collect();
                return Err(unknown(key, &keys, &place));
            }
        },
    };
    if !table.get(&section).is_some_and(toml::Value::is_table) {
        return Err(unknown(&section, &sections().map(|s| s.0.as_str()).collect::<Vec<_>>(), &place));
    }
    Ok((section, key.to_owned(), value))
}

//! The files in `presets/`: every key and environment exists, every value is valid and has a source, and the
//! paper's published values agree with them, with the defaults and with the page.
#![allow(clippy::unwrap_used)]

use album_agents::{AGENTS, AgentKind, Preset};
use album_data::ogbench::ENVIRONMENTS;
use std::path::Path;

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_key_and_environment_exists_and_every_value_is_in_its_domain() {
    for kind in AGENTS {
        for environment in ENVIRONMENTS.iter() {
            for preset in [Preset::Paper, Preset::Small] {
                let mut settings = kind.defaults().unwrap();
                for (key, value) in kind.preset(environment.name, preset).unwrap() {
                    let old = settings.insert(key.clone(), value.clone());
                    let old = old.unwrap_or_else(|| panic!("{}: unknown key {key}", kind.name));
                    assert!(old.same_type(&value), "{}: {key} = {value} in place of {old}", kind.name);
                }
                kind.setup(&settings).unwrap();
            }
        }
        let presets = kind.preset_file().unwrap();
        for (name, section) in presets.paper.iter().chain([(&"small".to_owned(), &presets.small)]) {
            let known =
                ["any", "small"].contains(&name.as_str()) || ENVIRONMENTS.iter().any(|e| e.name == name);
            assert!(known, "{}: unknown environment {name}", kind.name);
            assert!(section.source.len() > 10, "{}: {name} has no source", kind.name);
        }
    }
}

#[test]
fn there_is_a_file_for_every_agent_and_no_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("presets");
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned())).collect();
    found.sort();
    let mut expected: Vec<&str> = AGENTS.iter().map(|kind| kind.name).chain(["common"]).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// The rows of the published table: environment (or none), key, value.
fn published() -> Vec<(String, String, f64)> {
    let text = file("experiments/published/hyperparameters.csv");
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!((cells[0], cells[3]), ("hyperparameters", "ALBUM"));
        let environment =
            cells[1].strip_suffix("-navigate").or(cells[1].strip_suffix("-play")).unwrap_or(cells[1]);
        (environment.to_owned(), cells[5].to_owned(), cells[6].parse().unwrap())
    });
    rows.collect()
}

fn number(value: &toml::Value) -> f64 {
    value.as_float().or(value.as_integer().map(|x| x as f64)).unwrap()
}

#[test]
fn the_papers_hyperparameters_are_the_defaults_and_the_presets() {
    let album = AgentKind::find("album").unwrap();
    let mut checked = 0;
    for (environment, key, value) in published() {
        let mut settings = album.defaults().unwrap();
        settings.extend(album.preset(&environment, Preset::Paper).unwrap());
        let hidden = settings["hidden"].as_array().unwrap().iter().map(|w| w.as_integer().unwrap());
        let found = match key.as_str() {
            "steps" => continue, // belongs to the loop, not the agent
            "hidden_layers" => hidden.len() as f64,
            "hidden_width" => {
                assert!(hidden.clone().all(|w| w as f64 == value));
                value
            }
            key => number(&settings[key]),
        };
        assert_eq!(found, value, "{environment} {key}");
        checked += 1;
    }
    assert_eq!(checked, 23, "rows of the table");
}

/// The `default` cell of a key in the table of an agent's page. Several keys may share a row.
fn on_page(page: &str, key: &str) -> Option<String> {
    let quoted = format!("`{key}`");
    let row = page
        .lines()
        .find(|line| line.starts_with("| ") && line.split('|').nth(1).unwrap().contains(&quoted))?;
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let place = cells[1].split(", ").position(|name| name == quoted)?;
    // Lists contain commas.
    let defaults: Vec<&str> =
        if cells[2].starts_with('[') { vec![cells[2]] } else { cells[2].split(", ").collect() };
    defaults.get(place).map(|default| (*default).to_owned())
}

#[test]
fn pages_tell_the_defaults() {
    let mut checked = 0;
    let mut wrong = Vec::new();
    for kind in AGENTS {
        let page = file(&format!("docs/agents/{}.md", kind.name));
        for (key, value) in kind.defaults().unwrap() {
            let Some(told) = on_page(&page, &key) else { continue };
            // "0.9; in mazes 0.7": the default comes first.
            let told = told.split(';').next().unwrap().replace(',', "");
            let right = match &value {
                toml::Value::Float(_) | toml::Value::Integer(_) => match told.parse::<f64>() {
                    Ok(told) => told == number(&value),
                    Err(_) => told.contains("by environment"),
                },
                toml::Value::Boolean(value) => told == value.to_string(),
                toml::Value::String(value) => {
                    told.contains(value.as_str()) || told.contains("by environment")
                }
                _ => continue,
            };
            if !right {
                wrong.push(format!("{}: {key} = {value}, on its page {told}", kind.name));
            }
            checked += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 100, "{checked}");
}

#[test]
fn the_page_of_album_tells_alpha_bc_of_every_environment() {
    let page = file("docs/agents/album.md");
    let line = page.split("\n\n").find(|part| part.starts_with("`alpha_bc`:")).unwrap().replace('\n', " ");
    for (environment, _, value) in published().into_iter().filter(|row| row.1 == "alpha_bc") {
        let group = line
            .split("),")
            .find(|group| group.contains(&format!(" {value} (")) || group.contains(&format!(" {value} (")));
        let group = group.unwrap_or_else(|| panic!("{value} is not on the page"));
        let families =
            ["humanoidmaze", "puzzle"].into_iter().filter(|family| environment.starts_with(family));
        let named = group.contains(&environment) || families.clone().any(|family| group.contains(family));
        assert!(named, "{environment} is not beside {value}: {group}");
    }
}

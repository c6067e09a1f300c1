//! The registry of algorithms.

use crate::agent::AgentError;
use crate::agents::{
    album, bc, cac, cgq, deas, dqc, fawac, fbrac, fql, hinge_iql, idql, ifql, ifql_album, iql, nfql, qc_fql,
    rebrac, sac, srpo,
};
use crate::algorithm::Setup;
use crate::presets::{self, Preset, PresetFile};
use album_base::{limits, suggest};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Every algorithm, in the order of `album agents`.
pub const AGENTS: &[AgentKind] = &[
    album::KIND,
    bc::KIND,
    cac::KIND,
    cgq::KIND,
    deas::KIND,
    dqc::KIND,
    fawac::KIND,
    fbrac::KIND,
    fql::KIND,
    hinge_iql::KIND,
    idql::KIND,
    ifql::KIND,
    ifql_album::KIND,
    iql::KIND,
    nfql::KIND,
    qc_fql::KIND,
    rebrac::KIND,
    sac::KIND,
    srpo::KIND,
];

/// An algorithm that can be chosen by name.
#[derive(Debug)]
pub struct AgentKind {
    /// The name that `--agent` takes.
    pub name: &'static str,
    /// The kind of policy, for example `Gaussian`.
    pub policy: &'static str,
    /// Whether it supports discrete actions.
    discrete: bool,
    /// The publication.
    pub reference: &'static str,
    /// The text of `presets/NAME.toml`.
    presets: &'static str,
    defaults: fn() -> Result<toml::Table, toml::ser::Error>,
    parse: fn(toml::Table) -> Result<Box<dyn Setup>, toml::de::Error>,
}

impl AgentKind {
    /// An algorithm with the hyperparameters `C`.
    pub const fn new<C: Setup + Default + Serialize + DeserializeOwned + 'static>(
        name: &'static str,
        policy: &'static str,
        reference: &'static str,
        presets: &'static str,
    ) -> Self {
        AgentKind {
            name,
            policy,
            discrete: false,
            reference,
            presets,
            defaults: || toml::Table::try_from(C::default()),
            parse: |table| table.try_into::<C>().map(|config| Box::new(config) as Box<dyn Setup>),
        }
    }

    /// Marks it as supporting discrete actions.
    pub const fn with_discrete(self) -> Self {
        AgentKind { discrete: true, ..self }
    }

    /// Whether it supports discrete actions.
    pub fn learns_discrete(&self) -> bool {
        self.discrete
    }

    /// Finds an algorithm by name; the error suggests the nearest one.
    pub fn find(name: &str) -> Result<&'static AgentKind, AgentError> {
        let all = || AGENTS.iter().map(|kind| kind.name);
        AGENTS
            .iter()
            .find(|kind| kind.name == name)
            .ok_or_else(|| AgentError::Unknown { name: name.to_owned(), hint: suggest::hint(name, all()) })
    }

    /// The values of a preset for an environment, which override the defaults.
    pub fn preset(&self, environment: &str, preset: Preset) -> Result<toml::Table, AgentError> {
        let file = self.preset_file()?;
        Ok(match preset {
            Preset::Paper => file.published(environment),
            Preset::Small => {
                let mut values = presets::common()?.small.values.clone();
                values.extend(file.small.values.clone());
                values
            }
            Preset::Own => {
                let mut values = file.small.values.clone();
                values.extend(presets::common()?.own.values.clone());
                values.extend(file.own.values.clone());
                values
            }
        })
    }

    /// All presets, with the sources of their values.
    pub fn preset_file(&self) -> Result<&'static PresetFile, AgentError> {
        presets::file(self.name)
    }

    pub(crate) fn preset_text(&self) -> &'static str {
        self.presets
    }

    /// All hyperparameters with their defaults.
    pub fn defaults(&self) -> Result<toml::Table, AgentError> {
        (self.defaults)().map_err(|e| AgentError::Settings(e.to_string()))
    }

    /// Parses hyperparameters and refuses values out of range.
    pub fn setup(&self, settings: &toml::Table) -> Result<Box<dyn Setup>, AgentError> {
        check_sizes(settings)?;
        let setup = match (self.parse)(settings.clone()) {
            Ok(setup) => setup,
            Err(error) => return Err(self.blame(settings, &error)?),
        };
        setup.common().check()?;
        setup.check()?;
        Ok(setup)
    }

    /// Names the key to blame for unreadable settings: the one that fails on its own among defaults. The
    /// parser loses the names of keys in flattened structs.
    fn blame(&self, settings: &toml::Table, error: &toml::de::Error) -> Result<AgentError, AgentError> {
        let defaults = self.defaults()?;
        for (key, value) in settings {
            let mut alone = defaults.clone();
            alone.insert(key.clone(), value.clone());
            if let Err(error) = (self.parse)(alone) {
                return Ok(AgentError::Settings(format!("{key} = {value}: {}", plain(error.message()))));
            }
        }
        Ok(AgentError::Settings(error.message().to_owned()))
    }
}

/// A parser's message with words in place of Rust's types.
fn plain(message: &str) -> String {
    let words = [
        ("expected usize", "expected a whole number from 0 on"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected f64", "expected a number"),
    ];
    words.iter().fold(message.to_owned(), |text, (type_name, words)| text.replace(type_name, words))
}

/// Refuses sizes above their limits, including those in lists and tables.
pub fn check_sizes(settings: &toml::Table) -> Result<(), AgentError> {
    settings.iter().try_for_each(|(key, value)| check_size(key, value))
}

fn check_size(key: &str, value: &toml::Value) -> Result<(), AgentError> {
    match value {
        // Negative numbers are refused by their types.
        toml::Value::Integer(number) => Ok(limits::check(key, number.max(&0).cast_unsigned())?),
        toml::Value::Array(list) if list.len() > limits::LONGEST_LIST => {
            let (found, most) = (list.len(), limits::LONGEST_LIST);
            Err(AgentError::Settings(format!("{key} has {found} entries; expected at most {most}")))
        }
        toml::Value::Array(list) => list.iter().try_for_each(|value| check_size(key, value)),
        toml::Value::Table(table) => check_sizes(table),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every integer of every agent has a limit, and exceeding it is an error that names the key.
    #[test]
    fn no_size_is_without_bound() {
        for kind in AGENTS {
            for (key, default) in kind.defaults().unwrap() {
                let huge = toml::Value::Integer(i64::MAX);
                let huge = match default {
                    toml::Value::Integer(_) => huge,
                    toml::Value::Array(_) => toml::Value::Array(vec![huge, toml::Value::Integer(2)]),
                    _ => continue,
                };
                assert!(
                    limits::most(&key).is_some(),
                    "{}: {key} has no bound in album_base::limits",
                    kind.name
                );
                let mut settings = kind.defaults().unwrap();
                settings.insert(key.clone(), huge);
                let message = kind.setup(&settings).map(|_| ()).unwrap_err().to_string();
                let expected = format!("{key} = 9223372036854775807; expected at most ");
                assert!(message.starts_with(&expected), "{}: {message}", kind.name);
            }
        }
    }

    #[test]
    fn wrong_values_are_named_without_types_of_rust() {
        for kind in AGENTS {
            for (key, default) in kind.defaults().unwrap() {
                let wrong = match default {
                    toml::Value::Integer(_) => toml::Value::Integer(-1),
                    toml::Value::Float(_) => "much".into(),
                    _ => continue,
                };
                let mut settings = kind.defaults().unwrap();
                settings.insert(key.clone(), wrong);
                let message = kind.setup(&settings).map(|_| ()).unwrap_err().to_string();
                assert!(message.starts_with(&key), "{}: {message}", kind.name);
                let types = ["usize", "u64", "u32", "f64", "f32", "i64"];
                assert!(!types.iter().any(|name| message.contains(name)), "{}: {message}", kind.name);
            }
        }
    }

    #[test]
    fn endless_lists_are_refused() {
        let mut settings = AGENTS[0].defaults().unwrap();
        settings.insert("hidden".into(), toml::Value::Array(vec![toml::Value::Integer(1); 101]));
        let message = AGENTS[0].setup(&settings).map(|_| ()).unwrap_err().to_string();
        assert_eq!(message, "hidden has 101 entries; expected at most 100");
    }
}

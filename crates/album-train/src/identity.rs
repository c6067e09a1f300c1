//! The identity of a run, and how two runs differ.

use std::collections::BTreeMap;
use std::path::Path;

use album_data::Dataset;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// Everything that the results of a run depend on, apart from the program. Runs with equal identities end
/// with equal weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The name of the task.
    pub task: String,
    /// The name of the algorithm.
    pub agent: String,
    /// The master seed.
    pub seed: u64,
    /// [`Dataset::content_hash`] of the data.
    pub dataset: String,
    /// [`Dataset::content_hash`] of the held-out data, if any. It affects what is logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
    /// The resolved configuration as TOML, without settings that do not affect results (threads,
    /// directories).
    pub config: String,
    /// The same text with every setting at its default; may be empty. A setting that a checkpoint lacks was added after the
    /// checkpoint was written, so the run had its default.
    #[serde(skip)]
    pub defaults: String,
}

impl Identity {
    /// The identity of a run on `data`; computes the hash of the data.
    pub fn new(
        task: impl Into<String>,
        agent: &str,
        seed: u64,
        data: &Dataset,
        config: impl Into<String>,
    ) -> Self {
        Identity {
            task: task.into(),
            agent: agent.to_owned(),
            seed,
            dataset: data.content_hash(),
            held_out: None,
            config: config.into(),
            defaults: String::new(),
        }
    }

    /// Refuses a checkpoint of another run, naming the difference.
    pub(crate) fn check(&self, found: &Identity, path: &Path) -> Result<(), TrainError> {
        let text = |value: &str| format!("`{value}`");
        let optional = |hash: &Option<String>| hash.as_deref().map_or("absent".to_owned(), text);
        let mut pairs = vec![
            ("agent".to_owned(), text(&found.agent), text(&self.agent)),
            ("task".to_owned(), text(&found.task), text(&self.task)),
            ("seed".to_owned(), found.seed.to_string(), self.seed.to_string()),
            ("dataset hash".to_owned(), text(&found.dataset), text(&self.dataset)),
            ("held-out data".to_owned(), optional(&found.held_out), optional(&self.held_out)),
        ];
        pairs.extend(config_difference(&found.config, self));
        match pairs.into_iter().find(|(_, found, expected)| found != expected) {
            None => Ok(()),
            Some((what, found, expected)) => {
                Err(TrainError::Mismatch { path: path.to_path_buf(), what, found, expected })
            }
        }
    }
}

/// Where a log lies. The hash of the data says whether it is the same one, so a run may move to another machine.
const PLACE: &str = "source.paths";

/// The first key with a different value, or the first different line if the text is not TOML.
fn config_difference(found: &str, expected: &Identity) -> Option<(String, String, String)> {
    let Identity { config: expected, defaults, .. } = expected;
    if found == expected {
        return None;
    }
    let missing = || "absent".to_owned();
    if let (Ok(found), Ok(expected), Ok(defaults)) = (found.parse(), expected.parse(), defaults.parse()) {
        let (found, expected, defaults) = (flat(&found), flat(&expected), flat(&defaults));
        let there = |key: &String| found.get(key).or(defaults.get(key));
        let differs = |key: &&String| there(key) != expected.get(*key) && *key != PLACE;
        return found.keys().chain(expected.keys()).find(differs).map(|key| {
            let text = |value: Option<&String>| value.cloned().unwrap_or_else(missing);
            (format!("config key `{key}`"), text(there(key)), text(expected.get(key)))
        });
    }
    let line = |text: &str, number| text.lines().nth(number).map_or_else(missing, |line| format!("`{line}`"));
    let number = found.lines().zip(expected.lines()).take_while(|(a, b)| a == b).count();
    Some((format!("config line {}", number + 1), line(found, number), line(expected, number)))
}

fn flat(table: &toml::Table) -> BTreeMap<String, String> {
    fn walk(prefix: &str, table: &toml::Table, out: &mut BTreeMap<String, String>) {
        for (key, value) in table {
            let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value {
                toml::Value::Table(inner) => walk(&key, inner, out),
                value => {
                    out.insert(key, value.to_string());
                }
            }
        }
    }
    let mut out = BTreeMap::new();
    walk("", table, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(config: &str) -> Identity {
        Identity {
            task: "t".into(),
            agent: "album".into(),
            seed: 1,
            dataset: "00ff".into(),
            held_out: None,
            config: config.into(),
            defaults: String::new(),
        }
    }

    #[test]
    fn a_setting_younger_than_the_checkpoint_has_its_default() {
        let now = |start: &str| Identity {
            defaults: "[album]\nk = 10\nstart = \"zero\"\n".into(),
            ..identity(&format!("[album]\nk = 5\nstart = \"{start}\"\n"))
        };
        let check = |start: &str, found: &str| now(start).check(&identity(found), Path::new("c"));
        assert!(check("zero", "[album]\nk = 5\n").is_ok());
        let refused = check("low", "[album]\nk = 5\n").unwrap_err().to_string();
        assert!(refused.contains("`album.start` is \"zero\" there, expected \"low\""), "{refused}");
        let refused = check("zero", "[album]\nk = 10\n").unwrap_err().to_string();
        assert!(refused.contains("`album.k` is 10 there, expected 5"), "{refused}");
    }

    #[test]
    fn the_data_may_lie_elsewhere() {
        let at = |place: &str, gamma: f32| {
            identity(&format!("gamma = {gamma}\n[source]\npaths = [\"{place}\"]\n"))
        };
        let check = |found: &Identity| at("/home/a/log.csv", 0.5).check(found, Path::new("c"));
        assert!(check(&at("/data/log.csv", 0.5)).is_ok());
        assert!(check(&at("/data/log.csv", 0.9)).unwrap_err().to_string().contains("`gamma`"));
        assert!(check(&Identity { dataset: "1234".into(), ..at("/data/log.csv", 0.5) }).is_err());
    }

    fn refusal(found: &Identity) -> String {
        identity("[agent]\ngamma = 0.5\n").check(found, Path::new("c")).unwrap_err().to_string()
    }

    #[test]
    fn differences_are_named() {
        let same = identity("[agent]\ngamma = 0.5\n");
        assert!(same.check(&same, Path::new("c")).is_ok());
        // Equivalent TOML is the same configuration.
        assert!(same.check(&identity("# note\nagent.gamma = 0.5"), Path::new("c")).is_ok());

        let other = Identity { task: "u".into(), ..same.clone() };
        assert_eq!(
            refusal(&other),
            "c: the checkpoint belongs to another run: task is `u` there, expected `t`"
        );
        let other = Identity { dataset: "00fe".into(), ..same.clone() };
        assert!(refusal(&other).contains("dataset hash is `00fe` there, expected `00ff`"));
        assert!(refusal(&Identity { seed: 2, ..same.clone() }).contains("seed is 2 there, expected 1"));
        assert!(refusal(&Identity { agent: "bc".into(), ..same }).contains("agent is `bc` there"));

        let message = refusal(&identity("[agent]\ngamma = 0.75\n"));
        assert!(message.contains("config key `agent.gamma` is 0.75 there, expected 0.5"), "{message}");
        let message = refusal(&identity("[agent]\ngamma = 0.5\nk = 3"));
        assert!(message.contains("config key `agent.k` is 3 there, expected absent"), "{message}");
        let message = refusal(&identity("[agent]\n??"));
        assert!(message.contains("config line 2 is `??` there, expected `gamma = 0.5`"), "{message}");
    }
}

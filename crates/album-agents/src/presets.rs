//! Presets: the files in `presets/`, one per agent, with the source of every value.

use crate::agent::AgentError;
use crate::registry::AGENTS;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The preset that a configuration starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The published networks and coefficients, with the values for the environment.
    Paper,
    /// Small networks for PointMaze on a CPU.
    Small,
    /// Robust values for data that nobody has tuned for; some are chosen from the data.
    Own,
}

/// A file of presets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetFile {
    /// Published values: first those for `any` environment, then those for specific ones.
    #[serde(default)]
    pub paper: BTreeMap<String, Section>,
    /// Values for PointMaze with small networks.
    pub small: Section,
    /// Values for users' own data, where they differ from the small ones.
    #[serde(default)]
    pub own: Section,
}

/// Values that belong together.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Section {
    /// The source of the values.
    pub source: String,
    /// Hyperparameters.
    #[serde(flatten)]
    pub values: toml::Table,
}

impl PresetFile {
    /// The published values for an environment.
    pub fn published(&self, environment: &str) -> toml::Table {
        let sections = [self.paper.get("any"), self.paper.get(environment)];
        sections.into_iter().flatten().flat_map(|section| section.values.clone()).collect()
    }
}

/// Every file, parsed once: those of agents by name, and `common`, which all of them share.
static FILES: LazyLock<Result<BTreeMap<&str, PresetFile>, String>> = LazyLock::new(|| {
    let agents = AGENTS.iter().map(|kind| (kind.name, kind.preset_text()));
    let common = ("common", include_str!("../presets/common.toml"));
    let parse = |(name, text)| match toml::from_str(text) {
        Ok(file) => Ok((name, file)),
        Err(error) => Err(format!("presets/{name}.toml: {error}")),
    };
    agents.chain([common]).map(parse).collect()
});

pub(crate) fn common() -> Result<&'static PresetFile, AgentError> {
    file("common")
}

pub(crate) fn file(name: &str) -> Result<&'static PresetFile, AgentError> {
    let files = FILES.as_ref().map_err(|error| AgentError::Settings(error.clone()))?;
    files.get(name).ok_or_else(|| AgentError::Settings(format!("there is no file presets/{name}.toml")))
}

//! User-specified environments: `gymnasium:ID` or `FILE.py:FUNCTION`, and keyword arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::EnvError;

/// Where an environment comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvSource {
    /// `gymnasium.make(ID)`. An id may name the module that registers it: `module:ID`.
    Gymnasium {
        /// The id.
        id: String,
    },
    /// The return value of a function in a Python file.
    File {
        /// The file.
        path: PathBuf,
        /// The function.
        function: String,
    },
}

/// An environment with the gymnasium interface, parsed once from the user's input.
///
/// ```
/// use album_envs::EnvSpec;
///
/// let spec: EnvSpec = "gymnasium:FrozenLake-v1".parse()?;
/// let spec = spec.with_args(["is_slippery=false", "map_name=8x8"])?;
/// assert_eq!(spec.to_string(), "gymnasium:FrozenLake-v1 is_slippery=false map_name=\"8x8\"");
/// assert!("FrozenLake-v1".parse::<EnvSpec>().is_err());
/// # Ok::<(), album_envs::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct EnvSpec {
    source: EnvSource,
    args: BTreeMap<String, Value>,
}

/// Its form in configurations.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    args: BTreeMap<String, Value>,
}

impl EnvSpec {
    /// The source of the environment.
    pub fn source(&self) -> &EnvSource {
        &self.source
    }

    /// The keyword arguments.
    pub fn args(&self) -> &BTreeMap<String, Value> {
        &self.args
    }

    /// Adds keyword arguments, each `KEY=VALUE`. A value is JSON (`0.5`, `true`, `["SF", "FG"]`), Python's
    /// `True` or `False`, or else a string. A repeated key overrides the earlier one.
    pub fn with_args(mut self, args: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, EnvError> {
        for arg in args {
            let (key, value) = parse_arg(arg.as_ref())?;
            self.args.insert(key, value);
        }
        Ok(self)
    }

    /// The arguments as a JSON object.
    pub(crate) fn args_json(&self) -> String {
        // Cannot fail: there are no floats that JSON lacks.
        serde_json::to_string(&self.args).unwrap_or_default()
    }
}

fn parse_arg(arg: &str) -> Result<(String, Value), EnvError> {
    let expected = |found: String| EnvError::BadSpec(format!("--env-arg: found {found}, expected KEY=VALUE"));
    let (key, value) = arg.split_once('=').ok_or_else(|| expected(format!("`{arg}`")))?;
    let is_name = !key.is_empty()
        && !key.starts_with(|c: char| c.is_ascii_digit())
        && key.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_name {
        return Err(expected(format!("`{key}` as the key")));
    }
    let value = match value {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        "None" | "null" => return Err(expected(format!("`{arg}`; leave out an argument that is nothing"))),
        text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    };
    Ok((key.to_owned(), value))
}

impl FromStr for EnvSpec {
    type Err = EnvError;

    fn from_str(name: &str) -> Result<Self, EnvError> {
        let wrong = || {
            EnvError::BadSpec(format!(
                "environment: found `{name}`, expected gymnasium:ID, e.g. gymnasium:Pendulum-v1, or FILE.py:FUNCTION"
            ))
        };
        let source = match (name.strip_prefix("gymnasium:"), name.rsplit_once(':')) {
            (Some(id), _) if !id.is_empty() => EnvSource::Gymnasium { id: id.to_owned() },
            (None, Some((path, function))) if path.ends_with(".py") && !function.is_empty() => {
                EnvSource::File { path: Path::new(path).to_owned(), function: function.to_owned() }
            }
            _ => return Err(wrong()),
        };
        Ok(Self { source, args: BTreeMap::new() })
    }
}

impl fmt::Display for EnvSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gymnasium { id } => write!(f, "gymnasium:{id}"),
            Self::File { path, function } => write!(f, "{}:{function}", path.display()),
        }
    }
}

impl fmt::Display for EnvSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)?;
        self.args.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

impl From<EnvSpec> for Written {
    fn from(spec: EnvSpec) -> Self {
        Self { name: spec.source.to_string(), args: spec.args }
    }
}

impl TryFrom<Written> for EnvSpec {
    type Error = EnvError;

    fn try_from(written: Written) -> Result<Self, EnvError> {
        Ok(Self { args: written.args, ..written.name.parse::<EnvSpec>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str) -> EnvSource {
        name.parse::<EnvSpec>().unwrap().source
    }

    #[test]
    fn names_are_parsed_once() {
        let id = |id: &str| EnvSource::Gymnasium { id: id.to_owned() };
        assert_eq!(source("gymnasium:Pendulum-v1"), id("Pendulum-v1"));
        assert_eq!(source("gymnasium:minigrid:Empty-v0"), id("minigrid:Empty-v0"));
        let file = EnvSource::File { path: "a:b/plant.py".into(), function: "make".to_owned() };
        assert_eq!(source("a:b/plant.py:make"), file);
        for wrong in ["", "Pendulum-v1", "gymnasium:", "plant.py", "plant.py:", "plant:make"] {
            let message = wrong.parse::<EnvSpec>().unwrap_err().to_string();
            assert!(message.contains(&format!("found `{wrong}`, expected gymnasium:ID")), "{message}");
        }
    }

    #[test]
    fn arguments_are_json_or_text() {
        let spec: EnvSpec = "gymnasium:A-v0".parse().unwrap();
        let spec = spec.with_args(["g=9.8", "a=True", "b=false", "m=4x4", "e=", "l=[1, 2]", "g=10"]).unwrap();
        assert_eq!(spec.args_json(), r#"{"a":true,"b":false,"e":"","g":10,"l":[1,2],"m":"4x4"}"#);
        for wrong in ["g", "=3", "a b=3", "1a=3", "a=None"] {
            let spec: EnvSpec = "gymnasium:A-v0".parse().unwrap();
            assert!(spec.with_args([wrong]).unwrap_err().to_string().contains("expected KEY=VALUE"));
        }
    }

    #[test]
    fn configurations_hold_them() {
        let spec: EnvSpec = "x/plant.py:make".parse().unwrap();
        let spec = spec.with_args(["mass=2.5"]).unwrap();
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(text, r#"{"name":"x/plant.py:make","args":{"mass":2.5}}"#);
        assert_eq!(serde_json::from_str::<EnvSpec>(&text).unwrap(), spec);
        assert!(serde_json::from_str::<EnvSpec>(r#"{"name":"plant"}"#).is_err());
    }
}

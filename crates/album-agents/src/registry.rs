//! The algorithms by name.

use crate::agent::AgentError;
use crate::agents::{
    album, bc, cac, cgq, deas, dqc, fawac, fbrac, fql, hinge_iql, idql, ifql, ifql_album, iql, nfql, qc_fql,
    rebrac, srpo,
};
use crate::algorithm::Setup;
use album_base::suggest;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Every algorithm, in the order of `album agents`.
pub const AGENTS: &[Kind] = &[
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
    srpo::KIND,
];

/// An algorithm that can be chosen by name.
pub struct Kind {
    /// What it is chosen by.
    pub name: &'static str,
    /// The kind of policy, for example `Gaussian`.
    pub policy: &'static str,
    /// Where it was published.
    pub reference: &'static str,
    /// Values for an environment of OGBench with the published networks, as TOML.
    pub paper: fn(environment: &str) -> String,
    /// Values beyond and over [`SMALL`] for PointMaze with small networks, as TOML.
    pub small: &'static str,
    defaults: fn() -> Result<toml::Table, toml::ser::Error>,
    parse: fn(toml::Table) -> Result<Box<dyn Setup>, toml::de::Error>,
}

/// What every algorithm uses on PointMaze: two raw coordinates need an encoding, and a falling learning rate ends the
/// noise that hinges turn into a bias (docs/decisions.md).
pub const SMALL: &str = "hidden = [128, 128]
reward_scale = 0.3
lr_decay = \"cosine\"
standardize = true
fourier_features = 32
fourier_scale = 3.0
";

impl Kind {
    /// An algorithm with the hyperparameters `C`.
    pub const fn new<C: Setup + Default + Serialize + DeserializeOwned + 'static>(
        name: &'static str,
        policy: &'static str,
        reference: &'static str,
        paper: fn(&str) -> String,
        small: &'static str,
    ) -> Self {
        Kind {
            name,
            policy,
            reference,
            paper,
            small,
            defaults: || toml::Table::try_from(C::default()),
            parse: |table| table.try_into::<C>().map(|config| Box::new(config) as Box<dyn Setup>),
        }
    }

    /// All hyperparameters with their defaults.
    pub fn defaults(&self) -> Result<toml::Table, AgentError> {
        (self.defaults)().map_err(|e| AgentError::Settings(e.to_string()))
    }

    /// Reads hyperparameters and refuses what is outside its domain.
    pub fn setup(&self, settings: &toml::Table) -> Result<Box<dyn Setup>, AgentError> {
        let setup = match (self.parse)(settings.clone()) {
            Ok(setup) => setup,
            Err(error) => return Err(self.blame(settings, &error)?),
        };
        setup.common().check()?;
        setup.check()?;
        Ok(setup)
    }

    /// The error of settings that cannot be read, with the key that is to blame: the one that cannot stand alone among
    /// defaults. The parser forgets the names of keys in flattened parts.
    fn blame(&self, settings: &toml::Table, error: &toml::de::Error) -> Result<AgentError, AgentError> {
        let defaults = self.defaults()?;
        for (key, value) in settings {
            let mut alone = defaults.clone();
            alone.insert(key.clone(), value.clone());
            if let Err(error) = (self.parse)(alone) {
                return Ok(AgentError::Settings(format!("{key} = {value}: {}", error.message())));
            }
        }
        Ok(AgentError::Settings(error.message().to_owned()))
    }
}

/// The algorithm of a name.
pub fn find(name: &str) -> Result<&'static Kind, AgentError> {
    let all = || AGENTS.iter().map(|kind| kind.name);
    AGENTS
        .iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| AgentError::Unknown { name: name.to_owned(), hint: suggest::hint(name, all()) })
}

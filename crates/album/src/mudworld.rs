//! MudWorld as a learning problem, where learned values can be compared with exact ones.

use crate::error::Error;
use album_data::Dataset;
use album_envs::{EnvPool, MudWorldEnv, NativePool};
use album_tabular::{Behaviour, Encoding, MudWorld};
use std::fmt;

/// The discount of the paper's gridworlds.
pub(crate) const GAMMA: f64 = 0.95;
/// Fixed, so that all runs learn in the same world.
const SEED: u64 = 0;
/// One-hot rows and columns: a small network learns little from two raw coordinates.
const ENCODING: Encoding = Encoding::OneHot;
const SIZES: std::ops::RangeInclusive<usize> = 3..=100;

/// A gridworld of the paper with one of its two datasets: `mudworld-SIZE-eps-greedy` or `mudworld-SIZE-down-right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MudWorldProblem {
    size: usize,
    behaviour: Behaviour,
}

impl MudWorldProblem {
    /// Parses a name; `None` if it does not belong to a MudWorld. `mudworld` alone is 20 x 20 with
    /// near-optimal data.
    pub fn parse(name: &str) -> Option<Result<Self, Error>> {
        let rest = name.strip_prefix("mudworld")?;
        let (size, behaviour) =
            match rest.strip_prefix('-').map(|rest| rest.split_once('-').unwrap_or((rest, ""))) {
                None if rest.is_empty() => ("20", ""),
                None => ("", ""),
                Some(parts) => parts,
            };
        let behaviour = match behaviour {
            "" | "eps-greedy" => Some(Behaviour::EpsGreedy),
            "down-right" => Some(Behaviour::DownRight),
            _ => None,
        };
        let size = size.parse().ok().filter(|size| SIZES.contains(size));
        Some(match (size, behaviour) {
            (Some(size), Some(behaviour)) => Ok(MudWorldProblem { size, behaviour }),
            _ => Err(Error::Config(format!(
                "found `{name}`; expected mudworld-SIZE-eps-greedy or mudworld-SIZE-down-right with a size of 3 to 100"
            ))),
        })
    }

    /// The recorded data.
    pub fn data(&self) -> Result<Dataset, Error> {
        Ok(self.world().recorded(self.behaviour, GAMMA, ENCODING)?)
    }

    /// The world itself, to evaluate policies in.
    pub fn environments(&self, count: usize) -> Box<dyn EnvPool> {
        let env = MudWorldEnv::new(self.world(), self.behaviour, ENCODING);
        Box::new(NativePool::cloned(&env, count))
    }

    fn world(&self) -> MudWorld {
        MudWorld::new(self.size, SEED)
    }
}

impl fmt::Display for MudWorldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let behaviour = match self.behaviour {
            Behaviour::EpsGreedy => "eps-greedy",
            Behaviour::DownRight => "down-right",
        };
        write!(f, "mudworld-{}-{behaviour}", self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name =
            |text: &str| MudWorldProblem::parse(text).map(|problem| problem.map(|p| p.to_string()).ok());
        assert_eq!(name("mudworld"), Some(Some("mudworld-20-eps-greedy".into())));
        assert_eq!(name("mudworld-7-down-right"), Some(Some("mudworld-7-down-right".into())));
        assert_eq!(name("mudworld-12"), Some(Some("mudworld-12-eps-greedy".into())));
        assert_eq!((name("mudworld-2"), name("mudworldly"), name("cube")), (Some(None), Some(None), None));
    }
}

//! Column roles given by the user.

use std::str::FromStr;

use album_base::suggest;
use serde::{Deserialize, Serialize};

/// The columns of each role, as given by `--columns episode=eps_id,obs=obs_*,action=u1+u2`.
///
/// `*` matches any characters and `?` a single one; `+` concatenates columns (rewards are summed). An empty
/// name means that the log has no such column, even if a name suggests one.
///
/// ```
/// use album_data::ColumnMap;
/// let map: ColumnMap = "episode=eps_id,action=u1+u2,terminal=".parse()?;
/// assert_eq!((map.action.as_deref(), map.terminal.as_deref()), (Some("u1+u2"), Some("")));
/// assert!("reword=r".parse::<ColumnMap>().unwrap_err().to_string().contains("did you mean `reward`?"));
/// # Ok::<(), album_data::ColumnMapError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ColumnMap {
    /// The episode of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episode: Option<String>,
    /// The index of a row within its episode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obs: Option<String>,
    /// The next observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_obs: Option<String>,
    /// The action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The reward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<String>,
    /// 0 where the value of the next state is 0, otherwise 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// Whether the episode terminated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// Whether the episode was truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

/// Why a string is not a valid [`ColumnMap`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ColumnMapError(String);

const ROLES: [&str; 9] =
    ["episode", "step", "obs", "next_obs", "action", "reward", "mask", "terminal", "timeout"];

impl ColumnMap {
    /// Whether no role is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn slot(&mut self, role: &str) -> Option<&mut Option<String>> {
        Some(match role {
            "episode" => &mut self.episode,
            "step" => &mut self.step,
            "obs" => &mut self.obs,
            "next_obs" => &mut self.next_obs,
            "action" => &mut self.action,
            "reward" => &mut self.reward,
            "mask" => &mut self.mask,
            "terminal" => &mut self.terminal,
            "timeout" => &mut self.timeout,
            _ => return None,
        })
    }
}

impl FromStr for ColumnMap {
    type Err = ColumnMapError;

    fn from_str(text: &str) -> Result<Self, ColumnMapError> {
        let mut map = Self::default();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let Some((role, names)) = pair.split_once('=') else {
                return Err(ColumnMapError(format!("found `{pair}`, expected ROLE=NAMES such as reward=r")));
            };
            let role = role.trim();
            let Some(slot) = map.slot(role) else {
                let hint = suggest::hint(role, ROLES);
                return Err(ColumnMapError(format!("unknown role `{role}` of a column{hint}")));
            };
            if slot.replace(names.trim().to_owned()).is_some() {
                return Err(ColumnMapError(format!("`{role}` is given twice; join names with +")));
            }
        }
        Ok(map)
    }
}

/// Whether a name matches a pattern with `*` and `?`.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Greedy matching that backtracks to the last star on a mismatch.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("*", "", true),
            ("?b", "ab", true),
            ("a**", "a", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}

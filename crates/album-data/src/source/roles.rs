//! Column roles: given by the user, or guessed from common names.

use album_base::suggest;

use crate::error::{DataError, Place};
use crate::source::column_map::{ColumnMap, fits};
use crate::source::log::{END_STATE, EPISODE, Field, FieldType};

/// The indices of the fields of each role.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Roles {
    pub episode: Option<usize>,
    pub step: Option<usize>,
    pub obs: Vec<usize>,
    pub next_obs: Vec<usize>,
    pub action: Vec<usize>,
    pub reward: Vec<usize>,
    pub mask: Option<usize>,
    pub terminal: Option<usize>,
    pub timeout: Option<usize>,
    pub end_state: Option<usize>,
    /// Whether the user named the flag columns.
    pub flags_said: bool,
    pub guesses: Vec<String>,
    /// Fields without a role.
    pub ignored: Vec<usize>,
}

const EPISODES: [&str; 12] = [
    EPISODE,
    "episode",
    "episode_id",
    "episode_ids",
    "episode_index",
    "episodes",
    "eps_id",
    "ep_id",
    "ep",
    "trajectory",
    "trajectory_id",
    "traj_id",
];
const STEPS: [&str; 8] =
    ["step", "steps", "step_id", "step_index", "timestep", "timesteps", "frame_index", "t"];
const OBSERVATIONS: [&str; 8] =
    ["observation.state", "observations", "observation", "obs", "states", "state", "s", "x"];
const ACTIONS: [&str; 5] = ["actions", "action", "act", "a", "u"];
const REWARDS: [&str; 4] = ["rewards", "reward", "r", "next.reward"];
const MASKS: [&str; 2] = ["masks", "mask"];
/// Names that can only mean termination. The others may also mark truncation.
const SURE_TERMINALS: [&str; 5] = ["terminated", "terminateds", "terminations", "termination", "is_terminal"];
const TERMINALS: [&str; 7] = ["terminals", "terminal", "dones", "done", "next.done", "is_last", "end"];
const TIMEOUTS: [&str; 7] =
    ["timeouts", "timeout", "truncations", "truncation", "truncateds", "truncated", "time_limit"];

/// Whether a flag of this name can only mean termination.
pub(crate) fn is_sure_terminal(name: &str) -> bool {
    SURE_TERMINALS.contains(&name.to_lowercase().as_str())
}

impl Roles {
    /// Assigns roles to the fields of a file. Rewards may be missing unless `needs_reward`.
    pub fn find(
        map: &ColumnMap,
        fields: &[Field],
        place: &Place,
        needs_reward: bool,
    ) -> Result<Self, DataError> {
        let finder = Finder { fields, place };
        let mut roles = Self::default();
        let mut guesses = Vec::new();
        roles.episode = finder.one("episode", map.episode.as_deref(), &EPISODES, &mut guesses)?;
        roles.step = finder.one("step", map.step.as_deref(), &STEPS, &mut guesses)?;
        if map.step.is_none() && roles.step.is_some_and(|step| fields[step].kind != FieldType::Integer) {
            roles.step = None; // a time stamp, not a step index
            guesses.retain(|guess: &String| !guess.starts_with("step="));
        }
        roles.obs = finder.many("obs", map.obs.as_deref(), &OBSERVATIONS, &mut guesses)?;
        let next: Vec<String> = OBSERVATIONS.iter().map(|name| format!("next_{name}")).collect();
        let next: Vec<&str> = next.iter().map(String::as_str).chain(["next.observation.state"]).collect();
        roles.next_obs = finder.many("next_obs", map.next_obs.as_deref(), &next, &mut guesses)?;
        roles.action = finder.many("action", map.action.as_deref(), &ACTIONS, &mut guesses)?;
        roles.reward = finder.many("reward", map.reward.as_deref(), &REWARDS, &mut guesses)?;
        roles.mask = finder.one("mask", map.mask.as_deref(), &MASKS, &mut guesses)?;
        let terminals: Vec<&str> = SURE_TERMINALS.iter().chain(&TERMINALS).copied().collect();
        roles.terminal = finder.one("terminal", map.terminal.as_deref(), &terminals, &mut guesses)?;
        roles.timeout = finder.one("timeout", map.timeout.as_deref(), &TIMEOUTS, &mut guesses)?;
        roles.end_state = finder.by_name(END_STATE);
        roles.flags_said = map.terminal.is_some() || map.timeout.is_some();
        let needed = [
            ("obs", roles.obs.is_empty(), &OBSERVATIONS[..]),
            ("action", roles.action.is_empty(), &ACTIONS[..]),
            ("reward", needs_reward && roles.reward.is_empty(), &REWARDS[..]),
        ];
        let missing: Vec<(&str, &[&str])> =
            needed.into_iter().filter(|need| need.1).map(|(role, _, usual)| (role, usual)).collect();
        if !missing.is_empty() {
            return Err(finder.unassigned(&missing));
        }
        let read = |i: &usize| {
            let ones =
                [roles.episode, roles.step, roles.mask, roles.terminal, roles.timeout, roles.end_state];
            ones.contains(&Some(*i))
                || [&roles.obs, &roles.next_obs, &roles.action, &roles.reward]
                    .iter()
                    .any(|all| all.contains(i))
        };
        roles.ignored = (0..fields.len()).filter(|i| !read(i)).collect();
        roles.guesses = guesses;
        Ok(roles)
    }
}

struct Finder<'a> {
    fields: &'a [Field],
    place: &'a Place,
}

impl Finder<'_> {
    fn by_name(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    fn one(
        &self,
        role: &str,
        said: Option<&str>,
        usual: &[&str],
        guesses: &mut Vec<String>,
    ) -> Result<Option<usize>, DataError> {
        let found = match said {
            Some(said) => self.said(role, said)?,
            None => {
                let guess = usual.iter().find_map(|name| {
                    self.fields.iter().position(|field| field.name.to_lowercase() == **name)
                });
                self.note(role, guess.as_slice(), guesses);
                return Ok(guess);
            }
        };
        match found[..] {
            [] => Ok(None),
            [one] if self.fields[one].width == 1 => Ok(Some(one)),
            _ => Err(DataError::Columns {
                place: self.place.clone(),
                problem: format!(
                    "`{role}` is {} numbers wide, expected one column",
                    found.iter().map(|&i| self.fields[i].width).sum::<usize>()
                ),
            }),
        }
    }

    fn many(
        &self,
        role: &str,
        said: Option<&str>,
        usual: &[&str],
        guesses: &mut Vec<String>,
    ) -> Result<Vec<usize>, DataError> {
        if let Some(said) = said {
            return self.said(role, said);
        }
        for name in usual {
            // Either the array itself, or one column per component: obs_0, obs.x, obs/x, obs[0].
            let is_part = |field: &Field| {
                let field = field.name.to_lowercase();
                field.strip_prefix(name).is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with(['_', '.', '/', '[']) || is_number(rest)
                })
            };
            let exact = self.fields.iter().position(|field| field.name.to_lowercase() == **name);
            let found: Vec<usize> = match exact {
                Some(exact) => vec![exact],
                None => (0..self.fields.len()).filter(|&i| is_part(&self.fields[i])).collect(),
            };
            if !found.is_empty() {
                self.note(role, &found, guesses);
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    fn said(&self, role: &str, said: &str) -> Result<Vec<usize>, DataError> {
        let mut found = Vec::new();
        for pattern in said.split('+').map(str::trim).filter(|pattern| !pattern.is_empty()) {
            let before = found.len();
            match self.by_name(pattern) {
                Some(exact) => found.push(exact),
                None => found.extend((0..self.fields.len()).filter(|&i| fits(pattern, &self.fields[i].name))),
            }
            if found.len() == before {
                return Err(self.missing(role, pattern));
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        match found.iter().find(|i| !seen.insert(**i)) {
            Some(&twice) => Err(DataError::Columns {
                place: self.place.clone(),
                problem: format!("`{role}` names column `{}` twice", self.fields[twice].name.escape_debug()),
            }),
            None => Ok(found),
        }
    }

    fn note(&self, role: &str, found: &[usize], guesses: &mut Vec<String>) {
        let names: Vec<&str> = found.iter().map(|&i| self.fields[i].name.as_str()).collect();
        if names.is_empty() || names == [EPISODE] {
            return;
        }
        let shown = if names.len() > 4 {
            format!("{}+...+{} ({} columns)", names[0], names[names.len() - 1], names.len())
        } else {
            names.join("+")
        };
        guesses.push(format!("{role}={shown}"));
    }

    /// The error for roles that nobody assigned and no usual name suggests: all of them at once.
    fn unassigned(&self, roles: &[(&str, &[&str])]) -> DataError {
        let near: Vec<Option<&str>> =
            roles.iter().map(|(_, usual)| usual.iter().find_map(|name| self.nearest(name))).collect();
        let hint = match (roles, &near[..]) {
            ([(role, _)], [Some(near)]) => format!("did you mean {role}={}?", near.escape_debug()),
            _ => {
                let example = |(&(role, _), near): (&(&str, &[&str]), &Option<&str>)| match near {
                    Some(near) => format!("{role}={}", near.escape_debug()),
                    None if role == "reward" => "reward=NAME".to_owned(),
                    None => format!("{role}=NAME+NAME"),
                };
                let examples: Vec<String> = roles.iter().zip(&near).map(example).collect();
                format!("say which with --columns {}", examples.join(","))
            }
        };
        let rewards = match roles.last() {
            Some(("reward", _)) => "; --reward-last 1 rewards the last step of every episode instead",
            _ => "",
        };
        let names: Vec<String> = roles.iter().map(|(role, _)| format!("`{role}`")).collect();
        let problem =
            format!("found no column for {} among {}; {hint}{rewards}", names.join(", "), self.listed());
        DataError::Columns { place: self.place.clone(), problem }
    }

    /// The error for a name or pattern that fits no column.
    fn missing(&self, role: &str, wanted: &str) -> DataError {
        let hint = match self.nearest(wanted) {
            Some(near) => format!("; did you mean {role}={}?", near.escape_debug()),
            None => String::new(),
        };
        let problem =
            format!("found no column `{}` for `{role}` among {}{hint}", wanted.escape_debug(), self.listed());
        DataError::Columns { place: self.place.clone(), problem }
    }

    /// The columns as the user knows them.
    fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.fields
            .iter()
            .map(|field| field.name.as_str())
            .filter(|name| ![EPISODE, END_STATE].contains(name))
    }

    fn nearest(&self, name: &str) -> Option<&str> {
        suggest::nearest(name, self.names(), 1).pop()
    }

    fn listed(&self) -> String {
        const SHOWN: usize = 20;
        let shown: Vec<String> =
            self.names().take(SHOWN).map(|name| format!("`{}`", name.escape_debug())).collect();
        match self.names().count().saturating_sub(SHOWN) {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::column_map::ColumnMapError;

    fn fields(names: &[&str]) -> Vec<Field> {
        names.iter().map(|name| Field::new(*name, FieldType::Float, 1)).collect()
    }

    fn find(map: &str, names: &[&str]) -> Result<Roles, String> {
        let map = map.parse().map_err(|e: ColumnMapError| e.to_string())?;
        Roles::find(&map, &fields(names), &Place::default(), true).map_err(|e| e.to_string())
    }

    #[test]
    fn usual_names_are_found() {
        let names = ["eps_id", "obs_0", "obs_1", "next_obs_0", "next_obs_1", "u1", "u2", "r", "truncated"];
        let roles = find("", &names).unwrap();
        assert_eq!((roles.episode, roles.timeout), (Some(0), Some(8)));
        assert_eq!((roles.obs, roles.next_obs), (vec![1, 2], vec![3, 4]));
        assert_eq!((roles.action, roles.reward), (vec![5, 6], vec![7]));
        assert!(roles.guesses.contains(&"action=u1+u2".to_owned()), "{:?}", roles.guesses);
    }

    #[test]
    fn names_and_globs_and_sums() {
        let roles = find("obs=temp*+p,action=valve,reward=cost", &["temp_b", "p", "temp_a", "valve", "cost"]);
        assert_eq!(roles.unwrap().obs, [0, 2, 1]);
        let message = find("obs=tmp*,action=valve", &["temp_b", "valve"]).unwrap_err();
        assert!(message.contains("found no column `tmp*` for `obs` among `temp_b`, `valve`"), "{message}");
        let message = find("", &["obs", "actoins", "reward"]).unwrap_err();
        assert!(message.contains("did you mean action=actoins?"), "{message}");
        let message = find("", &["obs", "action", "rewrad"]).unwrap_err();
        assert!(message.contains("did you mean reward=rewrad?"), "{message}");
        let message = find("", &["trip", "speed", "gap", "throttle", "comfort"]).unwrap_err();
        assert!(message.contains("for `obs`, `action`, `reward` among `trip`, `speed`"), "{message}");
        assert!(message.contains("--columns obs=NAME+NAME,action=NAME+NAME,reward=NAME"), "{message}");
    }
}

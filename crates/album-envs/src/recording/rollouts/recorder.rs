//! Recording of parallel episodes, resuming where the last attempt stopped.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use album_base::atomic;
use serde::Serialize;

use super::explore::Explorer;
use super::parts::{Episode, Part, join, recipe_of};
use super::{Policy, Recipe, Turn};
use crate::error::EnvError;
use crate::pool::{Answer, EnvPool};
use crate::recording::play::RecordError;
use crate::recording::work;

/// How often an episode may fail.
const LOSSES: usize = 3;

/// Episodes per part, the most that an interruption loses.
const PART: usize = 20;

/// Progress of a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Number of episodes recorded so far.
    Recorded {
        /// Recorded episodes.
        episodes: usize,
        /// Total number of episodes.
        of: usize,
    },
    /// A worker died or hung; its episode is repeated.
    Lost {
        /// The reason.
        reason: &'a str,
    },
}

/// Statistics of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Number of episodes.
    pub episodes: usize,
    /// Total number of steps.
    pub steps: usize,
    /// Mean return.
    pub return_mean: f64,
    /// Smallest return.
    pub return_min: f64,
    /// Largest return.
    pub return_max: f64,
    /// The success rate; `None` if the environment does not report success.
    pub success: Option<f64>,
}

/// How a recording ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The file was recorded now.
    Done(Summary),
    /// A file of the same recipe exists already.
    Kept,
    /// It was stopped; complete parts are kept.
    Stopped {
        /// Episodes in complete parts.
        episodes: usize,
        /// The folder with the parts.
        work: PathBuf,
    },
}

/// Records the episodes of a recipe into one file.
pub struct Recorder<'a> {
    /// The recipe.
    pub recipe: &'a Recipe,
    /// The environments.
    pub envs: &'a mut dyn EnvPool,
    /// The behaviour policy.
    pub policy: Policy<'a>,
    /// Polled several times a second.
    pub stop: &'a dyn Fn() -> bool,
    /// Receives progress events.
    pub observer: &'a mut dyn FnMut(Progress<'_>),
}

impl std::fmt::Debug for Recorder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("recipe", self.recipe)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// An episode running in a slot.
struct Running {
    number: usize,
    losses: usize,
    episode: Episode,
    explorer: Explorer,
}

impl Recorder<'_> {
    /// Records into `path` and returns the outcome. An existing file of another recipe is an error and left
    /// untouched.
    pub fn record(mut self, path: &Path) -> Result<Outcome, RecordError> {
        let shape = self.envs.shape().clone();
        self.recipe.check(&shape, matches!(self.policy, Policy::Random))?;
        let versions: Vec<String> =
            self.envs.versions().iter().map(|(name, version)| format!("{name}-{version}")).collect();
        let text = self.recipe.text(&versions.join(" "));
        let whole = format!("{text}{} episodes\n", self.recipe.episodes);
        if path.exists() {
            return match recipe_of(path)? {
                Some(found) if found == whole => Ok(Outcome::Kept),
                found => Err(other(path, found.as_deref(), &whole).into()),
            };
        }
        let mut work = path.as_os_str().to_owned();
        work.push(".parts");
        let work = PathBuf::from(work);
        fs::create_dir_all(&work).map_err(RecordError::io(&work))?;
        let _lock = work::lock(&work)?;
        same_recipe(&work, &text)?;

        let parts = Part::all(self.recipe.episodes, PART);
        let todo: Vec<Part> = parts
            .iter()
            .filter(|part| part.results(&work).map_or(0, |r| r.len()) != part.count)
            .cloned()
            .collect();
        let ran = self.run(&todo, &work);
        let results: Vec<_> = parts.iter().filter_map(|part| part.results(&work).ok()).flatten().collect();
        if results.is_empty() && self.recipe.episodes > 0 {
            // There is nothing to resume.
            fs::remove_dir_all(&work).map_err(RecordError::io(&work))?;
        }
        ran?;
        if results.len() < self.recipe.episodes {
            return Ok(Outcome::Stopped { episodes: results.len(), work });
        }
        let steps = results.iter().map(|(length, ..)| length).sum();
        join(&parts, &work, &shape, steps, &whole, path)?;
        fs::remove_dir_all(&work).map_err(RecordError::io(&work))?;
        Ok(Outcome::Done(summary(&results)))
    }

    /// Runs the episodes of these parts, and writes each part when it is complete.
    fn run(&mut self, parts: &[Part], work: &Path) -> Result<(), RecordError> {
        let shape = self.envs.shape().clone();
        let seeds = self.recipe.seeds();
        let mut waiting: VecDeque<(usize, usize)> = parts
            .iter()
            .flat_map(|part| part.first..part.first + part.count)
            .map(|number| (number, 0))
            .collect();
        let of = self.recipe.episodes;
        let mut recorded = of - waiting.len();
        (self.observer)(Progress::Recorded { episodes: recorded, of });
        let mut done: BTreeMap<usize, Episode> = BTreeMap::new();
        let mut slots: Vec<Option<Running>> = (0..self.envs.slots()).map(|_| None).collect();
        let (mut observations, mut turns, mut actions) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            for slot in 0..slots.len() {
                if slots[slot].is_none()
                    && self.envs.is_next(slot, waiting.len())
                    && let Some((number, losses)) = waiting.pop_front()
                {
                    self.envs.reset(slot, seeds[number], false)?;
                    let explorer = Explorer::new(self.recipe, number);
                    slots[slot] = Some(Running { number, losses, episode: Episode::default(), explorer });
                }
            }
            if slots.iter().all(Option::is_none) || (self.stop)() {
                return Ok(());
            }
            observations.clear();
            turns.clear();
            for (slot, answer) in self.envs.wait()? {
                let Some(running) = &mut slots[slot] else { continue };
                let episode = &mut running.episode;
                match answer {
                    Answer::Started { observation, .. } => episode.observations.extend(&observation),
                    Answer::Stepped(step) => {
                        episode.observations.extend(&step.observation);
                        episode.rewards.push(step.reward);
                        episode.success = step.success.or(episode.success);
                        episode.terminated = step.terminated;
                        let cut = self.recipe.max_steps.is_some_and(|most| episode.rewards.len() >= most);
                        if step.terminated || step.truncated || cut {
                            done.insert(running.number, std::mem::take(episode));
                            slots[slot] = None;
                            recorded += 1;
                            continue;
                        }
                    }
                    Answer::Lost { reason } => {
                        let (number, losses) = (running.number, running.losses + 1);
                        slots[slot] = None;
                        if losses == LOSSES {
                            let part = work.join(format!("episode {number}"));
                            return Err(RecordError::Lost { part, times: LOSSES, reason });
                        }
                        (self.observer)(Progress::Lost { reason: &reason });
                        waiting.push_front((number, losses));
                        continue;
                    }
                }
                let dim = shape.observation_dim;
                observations.extend_from_slice(&episode.observations[episode.observations.len() - dim..]);
                turns.push(Turn { slot, episode: seeds[running.number], step: episode.rewards.len() as u64 });
            }
            if !turns.is_empty() {
                actions.clear();
                if let Policy::Acting(act) = &mut self.policy {
                    act(&observations, &turns, &mut actions)?;
                }
                let width = shape.action_dim();
                for (i, turn) in turns.iter().enumerate() {
                    let Some(running) = &mut slots[turn.slot] else { continue };
                    let mut action = actions.get(i * width..(i + 1) * width).unwrap_or_default().to_vec();
                    match self.policy {
                        Policy::Random => running.explorer.random(&shape.actions, &mut action),
                        Policy::Acting(_) => {
                            shape.check_action(&action)?;
                            running.explorer.disturb(&shape.actions, &mut action);
                        }
                    }
                    running.episode.actions.extend(&action);
                    self.envs.step(turn.slot, &action)?;
                }
            }
            for part in parts {
                let numbers = part.first..part.first + part.count;
                if done.contains_key(&part.first) && numbers.clone().all(|number| done.contains_key(&number))
                {
                    let episodes: Vec<Episode> = numbers.filter_map(|number| done.remove(&number)).collect();
                    part.write(work, &shape, &episodes)?;
                }
            }
            (self.observer)(Progress::Recorded { episodes: recorded, of });
        }
    }
}

fn summary(results: &[(usize, f64, Option<bool>)]) -> Summary {
    let returns = || results.iter().map(|(_, sum, _)| *sum);
    let known: Vec<bool> = results.iter().filter_map(|(.., success)| *success).collect();
    let successes = known.iter().filter(|&&success| success).count();
    Summary {
        episodes: results.len(),
        steps: results.iter().map(|(length, ..)| length).sum(),
        return_mean: returns().sum::<f64>() / results.len().max(1) as f64,
        return_min: returns().fold(f64::INFINITY, f64::min),
        return_max: returns().fold(f64::NEG_INFINITY, f64::max),
        success: (!known.is_empty()).then(|| successes as f64 / results.len() as f64),
    }
}

/// The error for a file that is in the way.
pub(super) fn other(path: &Path, found: Option<&str>, expected: &str) -> EnvError {
    let found = match found {
        Some(recipe) => format!("a recording of {}", recipe.trim_end().replace('\n', ", ")),
        None => "a file that album did not record".to_owned(),
    };
    let expected = format!("one of {}", expected.trim_end().replace('\n', ", "));
    EnvError::OtherData { path: path.to_path_buf(), found, expected }
}

/// Checks that the parts in a folder belong to this recipe, and records it in a new folder.
fn same_recipe(work: &Path, text: &str) -> Result<(), RecordError> {
    let path = work.join("recipe");
    match fs::read_to_string(&path) {
        Ok(found) if found == text => Ok(()),
        Ok(found) => Err(other(work, Some(&found), text).into()),
        Err(_) => atomic::write(&path, text.as_bytes()).map_err(RecordError::io(&path)),
    }
}

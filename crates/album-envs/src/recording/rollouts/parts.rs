//! Episodes on disk: in parts during the recording, in one file at the end.

use std::path::Path;

use album_data::{ActionSpace, DType, Data, DataError, Npz, NpzWriter};

use crate::env::EnvShape;
use crate::recording::stamp::STAMP;

/// One episode.
#[derive(Debug, Clone, Default)]
pub(super) struct Episode {
    /// One row more than steps.
    pub observations: Vec<f32>,
    pub actions: Vec<f32>,
    pub rewards: Vec<f64>,
    pub terminated: bool,
    pub success: Option<bool>,
}

/// Consecutive episodes that are written together.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub first: usize,
    pub count: usize,
    pub name: String,
}

impl Part {
    /// All parts for this number of episodes.
    pub fn all(episodes: usize, size: usize) -> Vec<Self> {
        let part = |first: usize| {
            let count = size.min(episodes - first);
            Self { first, count, name: format!("part-{first:08}-{count}.npz") }
        };
        (0..episodes).step_by(size.max(1)).map(part).collect()
    }

    /// Writes the part atomically.
    pub fn write(&self, work: &Path, shape: &EnvShape, episodes: &[Episode]) -> Result<(), DataError> {
        let (dim, width) = (shape.observation_dim, shape.action_dim());
        let steps: usize = episodes.iter().map(|episode| episode.rewards.len()).sum();
        let mut npz = NpzWriter::create_stored(work.join(&self.name))?;
        // All rows of each episode but the last, or all but the first.
        let rows = |from: usize| -> Vec<f32> {
            let observations =
                |e: &Episode| e.observations[from * dim..(from + e.rewards.len()) * dim].to_vec();
            episodes.iter().flat_map(observations).collect()
        };
        npz.array_f32("observations", &[steps, dim], &rows(0))?;
        npz.array_f32("next_observations", &[steps, dim], &rows(1))?;
        let actions = episodes.iter().flat_map(|episode| episode.actions.iter());
        match shape.actions {
            ActionSpace::Discrete { .. } => {
                let actions: Vec<i64> = actions.map(|&x| x as i64).collect();
                npz.array_i64("actions", &[steps], &actions)?;
            }
            ActionSpace::Continuous { .. } => {
                let actions: Vec<f32> = actions.copied().collect();
                npz.array_f32("actions", &[steps, width], &actions)?;
            }
        }
        let rewards: Vec<f32> =
            episodes.iter().flat_map(|episode| episode.rewards.iter().map(|&x| x as f32)).collect();
        npz.array_f32("rewards", &[steps], &rewards)?;
        let ends = |terminal: bool| -> Vec<bool> {
            let last = |e: &Episode| {
                let (n, ends) = (e.rewards.len(), e.terminated == terminal);
                (1..=n).map(move |step| ends && step == n)
            };
            episodes.iter().flat_map(last).collect()
        };
        npz.array_bool("terminals", &[steps], &ends(true))?;
        npz.array_bool("timeouts", &[steps], &ends(false))?;
        let ids = episodes.iter().enumerate();
        let ids: Vec<i64> = ids.flat_map(|(i, e)| vec![(self.first + i) as i64; e.rewards.len()]).collect();
        npz.array_i64("episode_ids", &[steps], &ids)?;
        // Used only for the summary.
        let count = [episodes.len()];
        let lengths: Vec<i64> = episodes.iter().map(|e| e.rewards.len() as i64).collect();
        npz.array_i64("lengths", &count, &lengths)?;
        let returns: Vec<f64> = episodes.iter().map(|e| e.rewards.iter().sum()).collect();
        npz.array_f64("returns", &count, &returns)?;
        let successes: Vec<i64> = episodes.iter().map(|e| e.success.map_or(-1, i64::from)).collect();
        npz.array_i64("successes", &count, &successes)?;
        npz.finish()
    }

    /// Length, return and success of each episode, if the part is complete.
    pub fn results(&self, work: &Path) -> Result<Vec<(usize, f64, Option<bool>)>, DataError> {
        let mut npz = Npz::open(work.join(&self.name))?;
        let lengths = npz.read("lengths")?.into_integers()?;
        let returns = npz.read("returns")?.into_floats()?;
        let successes = npz.read("successes")?.into_integers()?;
        let success = |known: i64| (known >= 0).then_some(known == 1);
        let all = lengths.into_iter().zip(returns).zip(successes);
        Ok(all.map(|((length, sum), known)| (length as usize, sum, success(known))).collect())
    }

    fn read(&self, work: &Path, name: &str) -> Result<Data, DataError> {
        Ok(Npz::open(work.join(&self.name))?.read(name)?.data)
    }
}

/// Joins parts into one file, with one array of one part in memory at a time.
pub(super) fn join(
    parts: &[Part],
    work: &Path,
    shape: &EnvShape,
    steps: usize,
    recipe: &str,
    path: &Path,
) -> Result<(), DataError> {
    let dim = Some(shape.observation_dim);
    let (action, width) = match shape.actions {
        ActionSpace::Discrete { .. } => (DType::I64, None),
        ActionSpace::Continuous { .. } => (DType::F32, Some(shape.action_dim())),
    };
    let mut npz = NpzWriter::create(path)?;
    for (name, dtype, width) in [
        ("observations", DType::F32, dim),
        ("actions", action, width),
        ("rewards", DType::F32, None),
        ("next_observations", DType::F32, dim),
        ("terminals", DType::Bool, None),
        ("timeouts", DType::Bool, None),
        ("episode_ids", DType::I64, None),
    ] {
        let shape: Vec<usize> = [steps].into_iter().chain(width).collect();
        npz.array_of_parts(name, dtype, &shape, parts.iter().map(|part| part.read(work, name)))?;
    }
    let text = recipe.as_bytes().to_vec();
    npz.array_of_parts(STAMP, DType::U8, &[text.len()], [Ok::<_, DataError>(Data::U8(text))])?;
    npz.finish()
}

/// The recipe that a file was recorded by.
pub(super) fn recipe_of(path: &Path) -> Result<Option<String>, DataError> {
    let mut npz = Npz::open(path)?;
    if !npz.contains(STAMP) {
        return Ok(None);
    }
    Ok(match npz.read(STAMP)?.data {
        Data::U8(text) => String::from_utf8(text).ok(),
        _ => None,
    })
}

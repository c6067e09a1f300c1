//! Datasets recorded in environments of the `ogbench` package: `play` and `noisy` for cube, scene and puzzle,
//! where its scripted oracles manipulate objects, and `navigate`, `stitch` and `explore` for antmaze, where
//! an expert walks in the directions of an oracle.
//!
//! The recipe is that of OGBench's published data. An oracle heads for one random target after another;
//! `play` follows plans with smooth noise, `noisy` reacts to each state, with a random noise level per
//! episode and occasional random actions. Episodes have 1001 rows and none ends early. A scene whose cube
//! leaves the view is recorded again with another seed. A tenth as many episodes are for validation.
//!
//! The ant heads for one random vertex of the maze after another (`navigate`), for a cell four steps away
//! (`stitch`), or in a new random direction every ten steps with strong noise (`explore`). Its expert is a
//! policy file: [`Recipe::expert`].
//!
//! Workers with the suite `play.py` or `locomaze.py` record chunks of episodes into a work folder beside the
//! files; the chunks are joined at the end, column by column. Every episode depends only on its own seed, so
//! the files are the same for any number of processes and after any interruption.

mod chunks;
mod error;
mod recorder;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use album_base::rng;
use album_data::DType;
use album_data::ogbench::{Environment, MazeSize, RecipeKind};
use rand_chacha::rand_core::Rng;

pub use super::Split;
use super::stamp;
pub use error::RecordError;
pub use recorder::{Event, Outcome, Recorder};

/// To be increased whenever a recipe would record different data than before.
const VERSION: i64 = 1;

/// How episodes are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayKind {
    /// Along plans with smooth noise.
    Play,
    /// Reacting to each state, with noise on every action.
    Noisy,
    /// Walking from goal to goal.
    Navigate,
    /// Walking to one goal nearby.
    Stitch,
    /// Walking in random directions.
    Explore,
}

impl fmt::Display for PlayKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Play => "play",
            Self::Noisy => "noisy",
            Self::Navigate => "navigate",
            Self::Stitch => "stitch",
            Self::Explore => "explore",
        })
    }
}

/// Everything that a recording depends on, besides the package versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// One of cube, scene, puzzle and antmaze.
    pub environment: &'static Environment,
    /// How episodes are generated.
    pub kind: PlayKind,
    /// The recording seed.
    pub seed: u64,
    /// Training episodes; a tenth as many, rounded up, are recorded for validation.
    pub episodes: usize,
    /// Rows per episode: one more than transitions.
    pub rows: usize,
    /// The ant's policy file, if [`Recipe::needs_expert`].
    pub expert: Option<Arc<[u8]>>,
}

impl Recipe {
    /// The recipe of the published data with a seed; `None` if the environment or the kind of data has no
    /// oracle.
    ///
    /// ```
    /// use album_data::ogbench::TaskName;
    /// use album_envs::play::Recipe;
    ///
    /// # fn main() -> Result<(), album_data::ogbench::UnknownTask> {
    /// let published = |task: TaskName| Recipe::published(task.environment(), task.data_kind(), 0);
    /// let recipe = published("cube-triple-play-singletask-v0".parse()?).unwrap();
    /// assert_eq!((recipe.episodes, recipe.rows), (3000, 1001));
    /// let recipe = published("antmaze-giant-navigate-singletask-v0".parse()?).unwrap();
    /// assert_eq!((recipe.episodes, recipe.rows), (500, 2001));
    /// assert!(published("humanoidmaze-large-navigate-singletask-v0".parse()?).is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn published(environment: &'static Environment, kind: &str, seed: u64) -> Option<Self> {
        if !matches!(environment.recipe(kind), Some(RecipeKind::Play | RecipeKind::Walk)) {
            return None;
        }
        let (kind, rows) = match kind {
            "play" => (PlayKind::Play, 1001),
            "noisy" => (PlayKind::Noisy, 1001),
            "navigate" if environment.maze() == Some(MazeSize::Giant) => (PlayKind::Navigate, 2001),
            "navigate" => (PlayKind::Navigate, 1001),
            "stitch" => (PlayKind::Stitch, 201),
            "explore" => (PlayKind::Explore, 501),
            _ => return None,
        };
        let episodes = environment.published_episodes(&kind.to_string())?;
        Some(Self { environment, kind, seed, episodes, rows, expert: None })
    }

    /// Whether the recording has a walking body, which needs [`Recipe::expert`].
    pub fn needs_expert(&self) -> bool {
        self.environment.recipe(&self.kind.to_string()) == Some(RecipeKind::Walk)
    }

    /// The name of the dataset, e.g. `scene-play-v0`.
    pub fn name(&self) -> String {
        format!("{}-{}-v0", self.environment.name, self.kind)
    }

    /// The file of one split.
    pub fn file(&self, folder: &Path, split: Split) -> PathBuf {
        let suffix = match split {
            Split::Train => "",
            Split::Validation => "-val",
        };
        folder.join(format!("{}{suffix}.npz", self.name()))
    }

    /// Number of episodes in one split.
    pub fn episodes_of(&self, split: Split) -> usize {
        match split {
            Split::Train => self.episodes,
            Split::Validation => self.episodes.div_ceil(10),
        }
    }

    /// The folder of unfinished work, for any number of episodes.
    pub fn work_folder(&self, folder: &Path) -> PathBuf {
        let expert = self.expert_number().map(|number| format!("-expert{number:016x}")).unwrap_or_default();
        folder.join(format!("{}.parts-v{VERSION}-seed{}-rows{}{expert}", self.name(), self.seed, self.rows))
    }

    /// Whether the file exists. A file of another recipe is an error.
    pub fn is_recorded(&self, folder: &Path, split: Split) -> Result<bool, RecordError> {
        let path = self.file(folder, split);
        match path.exists() {
            false => Ok(false),
            true => Ok(stamp::check(&path, &self.stamp(split), self).map(|()| true)?),
        }
    }

    /// A number that identifies the expert.
    fn expert_number(&self) -> Option<i64> {
        self.expert.as_ref().map(|bytes| rng::fnv1a(bytes) as i64)
    }

    fn stamp(&self, split: Split) -> Vec<(&'static str, i64)> {
        let kind = match self.kind {
            PlayKind::Play => 1,
            PlayKind::Noisy => 2,
            PlayKind::Navigate => 3,
            PlayKind::Stitch => 4,
            PlayKind::Explore => 5,
        };
        let number = match split {
            Split::Train => 0,
            Split::Validation => 1,
        };
        let mut stamp = vec![
            ("version of the recipe", VERSION),
            ("kind of data", kind),
            // These two identify the environment.
            ("environment", self.environment.observation_dim as i64),
            ("environment", self.environment.qpos_dim as i64),
            ("split", number),
            ("seed", self.seed as i64),
            ("episodes", self.episodes_of(split) as i64),
            ("rows", self.rows as i64),
        ];
        if self.needs_expert() {
            // All mazes have the same dimensions, so their names are hashed.
            stamp.push(("maze", rng::fnv1a(self.environment.name.as_bytes()) as i64));
        }
        stamp.extend(self.expert_number().map(|number| ("expert", number)));
        stamp
    }

    /// The seeds of all episodes of a split, in order; more episodes do not change the first.
    fn seeds(&self, split: Split) -> Vec<u64> {
        let split_name = match split {
            Split::Train => "train",
            Split::Validation => "validation",
        };
        let mut stream = rng::stream(self.seed, &format!("{}/{split_name}", self.kind));
        (0..self.episodes_of(split)).map(|_| stream.next_u64()).collect()
    }

    /// The arrays of a file: name, type, and numbers per row (`None` for scalars).
    fn columns(&self) -> Vec<(&'static str, DType, Option<usize>)> {
        let environment = self.environment;
        let mut columns = vec![
            ("observations", DType::F32, Some(environment.observation_dim)),
            ("actions", DType::F32, Some(environment.action_dim)),
            ("terminals", DType::Bool, None),
            ("qpos", DType::F32, Some(environment.qpos_dim)),
            ("qvel", DType::F32, Some(environment.qpos_dim - environment.free_bodies())),
        ];
        if environment.buttons() > 0 {
            columns.push(("button_states", DType::I64, Some(environment.buttons())));
        }
        columns
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} data of seed {} ({} training and {} validation episodes of {} rows)",
            self.name(),
            self.seed,
            self.episodes,
            self.episodes_of(Split::Validation),
            self.rows
        )
    }
}

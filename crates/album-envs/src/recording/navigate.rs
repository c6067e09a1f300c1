//! The `navigate` datasets of pointmaze: an oracle that runs from goal to goal. Needs neither Python nor
//! MuJoCo.
//!
//! The recipe is that of OGBench's published data. An episode starts near a random free cell, with a goal
//! near a random cell that is not in the middle of a corridor. Each action is the direction of the next cell
//! on the shortest path ([`Oracle`]) plus Gaussian noise of standard deviation 0.5 in each component, clipped
//! to ±1. Within 1 m of the goal a new goal is drawn. There are 1000 episodes of 1001 rows, in the giant maze
//! 500 of 2001, and a tenth as many for validation.
//!
//! Compared with 60 (giant: 30) episodes recorded by the same recipe in the package itself: in both, a wall
//! is touched in 0.6 % of the steps and 27.4 % of the action components are clipped, and the time spent in
//! each cell differs by as much (total variation 0.05 to 0.12) as between equally few episodes of this
//! recording.
//!
//! Every episode has its own random stream, so the data depends on the recipe's seed and not on the number of
//! threads.

use std::fmt;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use album_base::{machine, rng, threads};
use album_data::NpzWriter;
use album_data::ogbench::{MazeSize, within};
use rand_chacha::ChaCha8Rng;

pub use super::Split;
use super::stamp::{self, STAMP};
use crate::error::EnvError;
use crate::native::pointmaze::{TOLERANCE, near};
use crate::native::{Maze, Oracle, advance};

/// To be increased whenever a recipe would record different data than before.
const VERSION: i64 = 1;

/// Everything that a recording depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// The maze.
    pub size: MazeSize,
    /// The split; each has its own random streams.
    pub split: Split,
    /// The recording seed.
    pub seed: u64,
    /// Number of episodes.
    pub episodes: usize,
    /// Rows per episode: one more than transitions.
    pub rows: usize,
    /// Standard deviation of the noise on each component of an action.
    pub noise: f64,
}

impl Recipe {
    /// The recipe of the published data with a seed: a million transitions.
    pub fn train(size: MazeSize, seed: u64) -> Self {
        let (episodes, rows) = match size {
            MazeSize::Medium | MazeSize::Large => (1000, 1001),
            MazeSize::Giant => (500, 2001),
        };
        Self { size, split: Split::Train, seed, episodes, rows, noise: 0.5 }
    }

    /// A tenth as many episodes as [`train`](Self::train), from different random streams.
    pub fn validation(size: MazeSize, seed: u64) -> Self {
        let train = Self::train(size, seed);
        Self { split: Split::Validation, episodes: train.episodes / 10, ..train }
    }

    fn stamp(&self) -> [(&'static str, i64); 7] {
        let split = match self.split {
            Split::Train => 0,
            Split::Validation => 1,
        };
        let cells = Maze::new(self.size);
        [
            ("version of the recipe", VERSION),
            ("maze", (cells.rows() * cells.columns()) as i64),
            ("split", split),
            ("seed", self.seed as i64),
            ("episodes", self.episodes as i64),
            ("rows", self.rows as i64),
            ("noise", self.noise.to_bits() as i64),
        ]
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let split = match self.split {
            Split::Train => "training",
            Split::Validation => "validation",
        };
        write!(
            f,
            "pointmaze-{} navigate {split} data of seed {} ({} episodes of {} rows, noise {})",
            self.size, self.seed, self.episodes, self.rows, self.noise
        )
    }
}

/// Recorded episodes, in the layout of OGBench's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// `[x, y]` of each row, which is both the observation and `qpos`.
    pub positions: Vec<f32>,
    /// Velocities after the previous step, OGBench's `qvel`.
    pub velocities: Vec<f32>,
    /// The action of each row.
    pub actions: Vec<f32>,
    /// Whether a row is the last of its episode.
    pub terminals: Vec<bool>,
}

/// Records the episodes of a recipe on this many threads.
///
/// ```
/// use std::num::NonZero;
/// use album_data::ogbench::MazeSize;
/// use album_envs::navigate::{Recipe, record};
///
/// let recipe = Recipe { episodes: 3, rows: 101, ..Recipe::train(MazeSize::Medium, 0) };
/// let recording = record(&recipe, NonZero::<usize>::MIN);
/// assert_eq!(recording.positions.len(), 2 * 3 * 101);
/// assert_eq!(recording, record(&recipe, NonZero::new(2).unwrap()));
/// ```
///
/// # Panics
///
/// If episodes have no rows.
pub fn record(recipe: &Recipe, threads: NonZero<usize>) -> Recording {
    assert!(recipe.rows > 0, "an episode has at least one row");
    let rows = recipe.episodes * recipe.rows;
    let mut recording = Recording {
        positions: vec![0.0; 2 * rows],
        velocities: vec![0.0; 2 * rows],
        actions: vec![0.0; 2 * rows],
        terminals: vec![false; rows],
    };
    let guide = Guide::new(recipe);
    let width = 2 * recipe.rows;
    let mut episodes: Vec<EpisodeRows<'_>> = recording
        .positions
        .chunks_mut(width)
        .zip(recording.velocities.chunks_mut(width))
        .zip(recording.actions.chunks_mut(width))
        .zip(recording.terminals.chunks_mut(recipe.rows))
        .enumerate()
        .map(|(number, (((positions, velocities), actions), terminals))| EpisodeRows {
            number: number as u64,
            positions,
            velocities,
            actions,
            terminals,
        })
        .collect();
    let queue = Mutex::new(episodes.iter_mut());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    threads::share(threads.get().min(recipe.episodes), || {
        while let Some(episode) = next() {
            guide.record(episode);
        }
    });
    recording
}

/// Records a recipe into `path` unless the file exists, and returns whether it was recorded now.
///
/// An existing file of another recipe is an error and left untouched.
pub fn cached(path: impl AsRef<Path>, recipe: &Recipe, threads: NonZero<usize>) -> Result<bool, EnvError> {
    let path = path.as_ref();
    if path.exists() {
        return stamp::check(path, &recipe.stamp(), recipe).map(|()| false);
    }
    // Three pairs of floats and a flag per row.
    let bytes = (recipe.episodes as u64).saturating_mul(recipe.rows as u64).saturating_mul(25);
    machine::check_memory(format!("recording {} episodes", recipe.episodes), bytes)?;
    record(recipe, threads).write(path, recipe)?;
    Ok(true)
}

impl Recording {
    /// Writes an npz file in OGBench's layout, with the recipe in an extra array.
    pub fn write(&self, path: impl AsRef<Path>, recipe: &Recipe) -> Result<(), EnvError> {
        let rows = self.terminals.len();
        // Noise does not compress: uncompressed arrays are as small and much faster.
        let mut npz = NpzWriter::create_stored(path)?;
        npz.array_f32("observations", &[rows, 2], &self.positions)?;
        npz.array_f32("actions", &[rows, 2], &self.actions)?;
        npz.array_bool("terminals", &[rows], &self.terminals)?;
        npz.array_f32("qpos", &[rows, 2], &self.positions)?;
        npz.array_f32("qvel", &[rows, 2], &self.velocities)?;
        let stamp = stamp::numbers(&recipe.stamp());
        npz.array_i64(STAMP, &[stamp.len()], &stamp)?;
        Ok(npz.finish()?)
    }
}

/// The rows of one episode.
struct EpisodeRows<'a> {
    number: u64,
    positions: &'a mut [f32],
    velocities: &'a mut [f32],
    actions: &'a mut [f32],
    terminals: &'a mut [bool],
}

/// What all episodes of a recipe share.
struct Guide {
    oracle: Oracle,
    starts: Vec<[f64; 2]>,
    goals: Vec<[f64; 2]>,
    noise: f64,
    key: ChaCha8Rng,
}

impl Guide {
    fn new(recipe: &Recipe) -> Self {
        let maze = Maze::new(recipe.size);
        let stream = match recipe.split {
            Split::Train => "navigate train",
            Split::Validation => "navigate validation",
        };
        Self {
            starts: maze.free_cells().map(|cell| cell.center()).collect(),
            goals: maze.vertex_cells().map(|cell| cell.center()).collect(),
            noise: recipe.noise,
            key: rng::stream(recipe.seed, stream),
            oracle: Oracle::new(maze),
        }
    }

    fn record(&self, episode: &mut EpisodeRows<'_>) {
        let mut rng = self.key.clone();
        rng.set_stream(episode.number);
        let mut position = draw_near(&mut rng, &self.starts);
        let mut goal = draw_near(&mut rng, &self.goals);
        // A reset leaves a small random velocity, which the first step discards.
        let mut velocity = rng::normal_pair(&mut rng).map(|x| 0.1 * x);
        for row in 0..episode.terminals.len() {
            let noise = rng::normal_pair(&mut rng);
            let direction = self.oracle.direction(position, goal);
            let action = [0, 1].map(|axis| (direction[axis] + self.noise * noise[axis]).clamp(-1.0, 1.0));
            for axis in 0..2 {
                episode.positions[2 * row + axis] = position[axis] as f32;
                episode.velocities[2 * row + axis] = velocity[axis] as f32;
                episode.actions[2 * row + axis] = action[axis] as f32;
            }
            let motion = advance(self.oracle.maze(), position, action);
            (position, velocity) = (motion.position, motion.velocity);
            if within(position, goal, TOLERANCE) {
                goal = draw_near(&mut rng, &self.goals);
            }
        }
        if let Some(last) = episode.terminals.last_mut() {
            *last = true;
        }
    }
}

/// A point near a randomly chosen centre.
fn draw_near(rng: &mut ChaCha8Rng, centers: &[[f64; 2]]) -> [f64; 2] {
    let center = centers[rng::below(rng, centers.len() as u64) as usize];
    near(rng, center)
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_data::ogbench::{TaskName, load_task};

    fn small(size: MazeSize) -> Recipe {
        Recipe { episodes: 7, rows: 301, ..Recipe::train(size, 3) }
    }

    fn threads(n: usize) -> NonZero<usize> {
        NonZero::new(n).unwrap()
    }

    #[test]
    fn any_number_of_threads_records_the_same() {
        let recipe = small(MazeSize::Large);
        let one = record(&recipe, threads(1));
        for n in [2, 3, 7, 50] {
            assert_eq!(record(&recipe, threads(n)), one);
        }
        assert_ne!(record(&Recipe { seed: 4, ..recipe }, threads(1)), one);
        assert_ne!(record(&Recipe { split: Split::Validation, ..recipe }, threads(1)), one);
        // More episodes do not change the first ones.
        let more = record(&Recipe { episodes: 9, ..recipe }, threads(2));
        assert_eq!(more.positions[..one.positions.len()], one.positions);
    }

    /// If this fails for a good reason, increase [`VERSION`], so that cached files are not mistaken for the
    /// new data. The last digits depend on the platform.
    #[test]
    fn the_data_of_a_seed_stays_the_same() {
        let recording = record(&small(MazeSize::Medium), threads(1));
        let close = |found: &[f32], expected: [f32; 2]| (0..2).all(|i| (found[i] - expected[i]).abs() < 1e-3);
        assert!(close(&recording.positions, [8.508862, 16.284496]), "{:?}", &recording.positions[..2]);
        let last = recording.positions.len() - 2;
        assert!(
            close(&recording.positions[last..], [9.227467, 7.4059453]),
            "{:?}",
            &recording.positions[last..]
        );
        assert!(close(&recording.actions[last..], [1.0, 1.0]), "{:?}", &recording.actions[last..]);
    }

    #[test]
    fn recordings_load_as_datasets() {
        let dir = tempfile::tempdir().unwrap();
        let recipe = small(MazeSize::Giant);
        let task: TaskName = "pointmaze-giant-navigate-singletask-task5-v0".parse().unwrap();
        let path = dir.path().join(task.dataset_file());
        assert!(cached(&path, &recipe, threads(2)).unwrap());
        let bytes = std::fs::read(&path).unwrap();
        assert!(!cached(&path, &recipe, threads(1)).unwrap());

        let data = load_task(&path, &task).unwrap();
        assert_eq!((data.len(), data.episodes().len()), (7 * 300, 7));
        let maze = Maze::new(MazeSize::Giant);
        for t in 0..data.len() {
            let [x, y] = [0, 1].map(|axis| f64::from(data.observation(t)[axis]));
            assert!(!maze.is_wall(maze.cell_at([x, y])));
            let solved = within([x, y], [28.0, 8.0], 1.0);
            assert_eq!((data.reward(t), data.mask(t)), if solved { (0.0, 0.0) } else { (-1.0, 1.0) });
            // The environment reproduces the recorded step.
            let action = [0, 1].map(|axis| f64::from(data.action(t)[axis]));
            let next = advance(&maze, [x, y], action).position;
            for axis in 0..2 {
                assert!((next[axis] - f64::from(data.next_observation(t)[axis])).abs() < 2e-5);
            }
        }

        // Another recipe does not overwrite the file.
        let other = Recipe { seed: 9, ..recipe };
        let message = cached(&path, &other, threads(1)).unwrap_err().to_string();
        assert!(
            message.contains(
                "found a recording with seed 3, expected pointmaze-giant navigate training data of seed 9"
            ),
            "{message}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn other_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("official.npz");
        let mut npz = NpzWriter::create(&path).unwrap();
        npz.array_bool("terminals", &[1], &[true]).unwrap();
        npz.finish().unwrap();
        let message = cached(&path, &small(MazeSize::Medium), threads(1)).unwrap_err().to_string();
        assert!(message.contains("found a file that album did not make"), "{message}");
    }

    #[test]
    fn the_published_sizes() {
        for size in MazeSize::ALL {
            let recipe = Recipe::train(size, 0);
            assert_eq!(recipe.episodes * (recipe.rows - 1), 1_000_000);
            assert_eq!(Recipe::validation(size, 0).episodes, recipe.episodes / 10);
        }
    }
}

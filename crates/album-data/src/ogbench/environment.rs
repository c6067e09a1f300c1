//! The environments of OGBench that have single-task variants with state observations.

use crate::ogbench::goal::Goal;
use crate::ogbench::locomaze::{Cell, MazeSize};
use crate::ogbench::manipulation;

/// The kind of environment; each has its own goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// A disc that moves through a maze.
    PointMaze(MazeSize),
    /// A four-legged ant walks through a maze.
    AntMaze(MazeSize),
    /// A humanoid walks through a maze.
    HumanoidMaze(MazeSize),
    /// An ant dribbles a ball across an open arena.
    AntSoccerArena,
    /// An ant dribbles a ball through the medium maze.
    AntSoccerMedium,
    /// A robot arm moves this many cubes.
    Cube(usize),
    /// A robot arm with a cube, two buttons, a drawer and a window.
    Scene,
    /// A robot arm presses buttons that switch their neighbours.
    Puzzle {
        /// Rows of buttons.
        rows: usize,
        /// Buttons in a row.
        columns: usize,
    },
}

/// The behaviour policy of data that album records itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipeKind {
    /// A disc that follows the shortest paths of a maze; native.
    Navigate(MazeSize),
    /// The scripted arm of the `ogbench` package.
    Play,
    /// An ant in a maze of the package, controlled by an expert that album trains itself.
    Walk,
}

/// Facts about one environment, as in `ogbench` 1.2.2.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// Its name, e.g. `antmaze-large`.
    pub name: &'static str,
    /// The kind of environment.
    pub family: Family,
    /// Dimension of an observation.
    pub observation_dim: usize,
    /// Dimension of an action, each component within ±1.
    pub action_dim: usize,
    /// Length of the simulator's `qpos`.
    pub qpos_dim: usize,
    /// Steps after which an episode is truncated.
    pub horizon: usize,
    /// The task meant by a name without `-taskN`.
    pub default_task: usize,
    /// The available kinds of data, e.g. `navigate`.
    pub data_kinds: &'static [&'static str],
}

use Family::{AntMaze, AntSoccerArena, AntSoccerMedium, Cube, HumanoidMaze, PointMaze, Puzzle, Scene};
use MazeSize::{Giant, Large, Medium};

const WALKS: &[&str] = &["navigate", "stitch"];
const WALKS_AND_EXPLORES: &[&str] = &["navigate", "stitch", "explore"];
const PLAYS: &[&str] = &["play", "noisy"];

/// Every environment, in the order of families and difficulty.
#[rustfmt::skip]
pub static ENVIRONMENTS: [Environment; 20] = [
    //  name                  family                           obs act  nq  horizon task  data
    row("pointmaze-medium",    PointMaze(Medium),               2,  2,  2, 1000, 1, WALKS),
    row("pointmaze-large",     PointMaze(Large),                2,  2,  2, 1000, 1, WALKS),
    row("pointmaze-giant",     PointMaze(Giant),                2,  2,  2, 1000, 1, WALKS),
    row("antmaze-medium",      AntMaze(Medium),                29,  8, 15, 1000, 1, WALKS_AND_EXPLORES),
    row("antmaze-large",       AntMaze(Large),                 29,  8, 15, 1000, 1, WALKS_AND_EXPLORES),
    row("antmaze-giant",       AntMaze(Giant),                 29,  8, 15, 1000, 1, WALKS),
    row("humanoidmaze-medium", HumanoidMaze(Medium),           69, 21, 28, 2000, 1, WALKS),
    row("humanoidmaze-large",  HumanoidMaze(Large),            69, 21, 28, 2000, 1, WALKS),
    row("humanoidmaze-giant",  HumanoidMaze(Giant),            69, 21, 28, 4000, 1, WALKS),
    row("antsoccer-arena",     AntSoccerArena,                 42,  8, 22, 1000, 4, WALKS),
    row("antsoccer-medium",    AntSoccerMedium,                42,  8, 22, 1000, 4, WALKS),
    row("cube-single",         Cube(1),                        28,  5, 21,  200, 2, PLAYS),
    row("cube-double",         Cube(2),                        37,  5, 28,  500, 2, PLAYS),
    row("cube-triple",         Cube(3),                        46,  5, 35, 1000, 2, PLAYS),
    row("cube-quadruple",      Cube(4),                        55,  5, 42, 1000, 2, PLAYS),
    row("scene",               Scene,                          40,  5, 25,  750, 2, PLAYS),
    row("puzzle-3x3",          Puzzle { rows: 3, columns: 3 }, 55,  5, 23,  500, 4, PLAYS),
    row("puzzle-4x4",          Puzzle { rows: 4, columns: 4 }, 83,  5, 30,  500, 4, PLAYS),
    row("puzzle-4x5",          Puzzle { rows: 4, columns: 5 }, 99,  5, 34, 1000, 2, PLAYS),
    row("puzzle-4x6",          Puzzle { rows: 4, columns: 6 }, 115, 5, 38, 1000, 2, PLAYS),
];

#[allow(clippy::too_many_arguments, reason = "one line of the table above")]
const fn row(
    name: &'static str,
    family: Family,
    observation_dim: usize,
    action_dim: usize,
    qpos_dim: usize,
    horizon: usize,
    default_task: usize,
    data_kinds: &'static [&'static str],
) -> Environment {
    Environment { name, family, observation_dim, action_dim, qpos_dim, horizon, default_task, data_kinds }
}

impl Environment {
    /// Tasks of each environment, numbered from 1.
    pub const TASKS: usize = 5;

    /// Index of the ball's `x` in the `qpos` of antsoccer.
    const BALL: usize = 15;

    /// The goal of a task.
    ///
    /// # Panics
    ///
    /// If the task is not one from 1 to 5.
    pub fn goal(&self, task: usize) -> Goal {
        let number = task - 1;
        let reach = |qpos, cell: Cell, tolerance| Goal::Reach { qpos, xy: cell.center(), tolerance };
        match self.family {
            PointMaze(size) => reach(0, size.tasks()[number].goal, 1.0),
            AntMaze(size) | HumanoidMaze(size) => reach(0, size.tasks()[number].goal, 0.5),
            AntSoccerArena => reach(Self::BALL, [(5, 2), (2, 2), (6, 6), (6, 1), (1, 6)][number].into(), 0.5),
            AntSoccerMedium => {
                reach(Self::BALL, [(6, 6), (1, 1), (6, 5), (5, 3), (1, 6)][number].into(), 0.5)
            }
            Cube(cubes) => manipulation::cube(cubes, number),
            Scene => manipulation::scene(number),
            Puzzle { rows, columns } => manipulation::puzzle(rows, columns, number),
        }
    }

    /// Number of training episodes of a published dataset, if known; the validation file has a tenth as many.
    pub fn published_episodes(&self, data_kind: &str) -> Option<usize> {
        match (self.family, data_kind) {
            (PointMaze(Giant) | AntMaze(Giant), "navigate") => Some(500),
            (PointMaze(_) | AntMaze(_), "navigate") => Some(1000),
            (PointMaze(_) | AntMaze(_), "stitch") => Some(5000),
            (AntMaze(_), "explore") => Some(10_000),
            (Cube(1 | 2) | Scene, "play" | "noisy") => Some(1000),
            (Cube(3), "play" | "noisy") => Some(3000),
            (Cube(_), "play" | "noisy") => Some(5000),
            (Puzzle { rows, columns }, "play" | "noisy") => Some(match rows * columns {
                0..=16 => 1000,
                17..=20 => 3000,
                _ => 5000,
            }),
            _ => None,
        }
    }

    /// The maze of a disc, the environment that album implements natively.
    pub fn point_maze(&self) -> Option<MazeSize> {
        match self.family {
            PointMaze(size) => Some(size),
            _ => None,
        }
    }

    /// The maze to navigate, if observations begin with the position in it.
    pub fn maze(&self) -> Option<MazeSize> {
        match self.family {
            PointMaze(size) | AntMaze(size) | HumanoidMaze(size) => Some(size),
            _ => None,
        }
    }

    /// How album records a kind of data, if it can.
    pub fn recipe(&self, data_kind: &str) -> Option<RecipeKind> {
        match (self.family, data_kind) {
            (PointMaze(size), "navigate") => Some(RecipeKind::Navigate(size)),
            (Cube(_) | Scene | Puzzle { .. }, "play" | "noisy") => Some(RecipeKind::Play),
            (AntMaze(_), "navigate" | "stitch" | "explore") => Some(RecipeKind::Walk),
            _ => None,
        }
    }

    /// Number of freely moving bodies: each has a quaternion in `qpos` and three angular velocities in
    /// `qvel`.
    pub fn free_bodies(&self) -> usize {
        match self.family {
            Cube(cubes) => cubes,
            Scene | AntMaze(_) => 1,
            _ => 0,
        }
    }

    /// Number of buttons with states in `button_states`; 0 if there is no such column.
    pub fn buttons(&self) -> usize {
        match self.family {
            Scene => 2,
            Puzzle { rows, columns } => rows * columns,
            _ => 0,
        }
    }
}

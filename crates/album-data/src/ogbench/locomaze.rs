//! The mazes of OGBench's locomotion tasks: sizes, coordinates, starts and goals.

use std::fmt;

/// Side length of a square maze cell in metres.
pub const CELL_SIZE: f64 = 4.0;

/// The mazes, in order of size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MazeSize {
    /// 8 x 8 cells.
    Medium,
    /// 9 x 12 cells.
    Large,
    /// 12 x 16 cells.
    Giant,
}

/// A maze cell, counted from the corner of the outer wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Row: grows with `y`.
    pub i: usize,
    /// Column: grows with `x`.
    pub j: usize,
}

/// The start and goal of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MazeTask {
    /// Episodes start within a metre of this cell's centre along each axis.
    pub start: Cell,
    /// The goal is this cell's centre.
    pub goal: Cell,
}

impl MazeSize {
    /// Every size.
    pub const ALL: [Self; 3] = [Self::Medium, Self::Large, Self::Giant];

    /// The tasks 1 to 5, the same for every robot.
    ///
    /// ```
    /// use album_data::ogbench::MazeSize;
    /// let task1 = MazeSize::Medium.tasks()[0];
    /// assert_eq!(task1.goal.center(), [20.0, 20.0]);
    /// ```
    pub fn tasks(self) -> [MazeTask; 5] {
        let cells = match self {
            Self::Medium => {
                [((1, 1), (6, 6)), ((6, 1), (1, 6)), ((5, 3), (4, 2)), ((6, 5), (6, 1)), ((2, 6), (1, 1))]
            }
            Self::Large => {
                [((1, 1), (7, 10)), ((5, 4), (7, 1)), ((7, 4), (1, 10)), ((3, 8), (5, 4)), ((1, 1), (5, 4))]
            }
            Self::Giant => [
                ((1, 1), (10, 14)),
                ((1, 14), (10, 1)),
                ((8, 14), (1, 1)),
                ((8, 3), (5, 12)),
                ((5, 9), (3, 8)),
            ],
        };
        cells.map(|(start, goal)| MazeTask { start: start.into(), goal: goal.into() })
    }
}

impl fmt::Display for MazeSize {
    /// The size as written in task names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Medium => "medium",
            Self::Large => "large",
            Self::Giant => "giant",
        })
    }
}

impl Cell {
    /// The cell's centre `[x, y]` in metres.
    pub fn center(self) -> [f64; 2] {
        [self.j as f64 * CELL_SIZE - CELL_SIZE, self.i as f64 * CELL_SIZE - CELL_SIZE]
    }
}

impl From<(usize, usize)> for Cell {
    /// From `(i, j)`.
    fn from((i, j): (usize, usize)) -> Self {
        Self { i, j }
    }
}

//! The maps of OGBench's mazes.

use std::collections::VecDeque;

use album_data::ogbench::{CELL_SIZE, Cell, MazeSize};

/// Walls are `#`. The first line is row 0, which has the smallest `y`.
const MEDIUM: [&str; 8] =
    ["########", "#..##..#", "#..#...#", "##...###", "#..#...#", "#.#..#.#", "#...#..#", "########"];

const LARGE: [&str; 9] = [
    "############",
    "#....#.....#",
    "#.##.#.#.#.#",
    "#......#...#",
    "#.####.###.#",
    "#..#.#.....#",
    "##.#.#.#.###",
    "#..#...#...#",
    "############",
];

const GIANT: [&str; 12] = [
    "################",
    "#.#......##....#",
    "#.#.##.#.#..##.#",
    "#...#..#...#...#",
    "#.###.######.#.#",
    "#...#...#....#.#",
    "###.#.#..#.#.###",
    "#...#..#...#...#",
    "#.#.#.######.#.#",
    "#.###...#...##.#",
    "#.....#...#....#",
    "################",
];

/// A maze of square cells, walled all around.
///
/// ```
/// use album_data::ogbench::MazeSize;
/// use album_envs::Maze;
/// let maze = Maze::new(MazeSize::Medium);
/// assert_eq!((maze.rows(), maze.columns()), (8, 8));
/// assert_eq!(maze.cell_at([0.0, 1.9]), (1, 1).into());
/// assert!(maze.is_wall((1, 3).into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maze {
    size: MazeSize,
    rows: usize,
    columns: usize,
    walls: Vec<bool>,
}

/// A grid of points over a maze, for maps of values.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleGrid {
    /// Rows of points; the first has the smallest `y`.
    pub rows: usize,
    /// Points in a row; the first has the smallest `x`.
    pub columns: usize,
    /// The points `[x, y]` row by row, `None` within walls.
    pub points: Vec<Option<[f64; 2]>>,
}

impl Maze {
    /// One of OGBench's mazes.
    pub fn new(size: MazeSize) -> Self {
        let map: &[&str] = match size {
            MazeSize::Medium => &MEDIUM,
            MazeSize::Large => &LARGE,
            MazeSize::Giant => &GIANT,
        };
        let walls = map.iter().flat_map(|line| line.bytes().map(|byte| byte == b'#')).collect();
        Self { size, rows: map.len(), columns: map[0].len(), walls }
    }

    /// Which maze it is.
    pub fn size(&self) -> MazeSize {
        self.size
    }

    /// Number of rows of cells, along `y`.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns of cells, along `x`.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether a cell is a wall, as everything outside the map is.
    pub fn is_wall(&self, cell: Cell) -> bool {
        cell.i >= self.rows || cell.j >= self.columns || self.walls[self.number(cell)]
    }

    /// The cells without walls, row by row.
    pub fn free_cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.cells().filter(|&cell| !self.is_wall(cell))
    }

    /// The wall cells, row by row.
    pub fn wall_cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.cells().filter(|&cell| self.is_wall(cell))
    }

    /// The free cells except those in the middle of a straight corridor.
    pub fn vertex_cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.free_cells().filter(|&cell| {
            let [up, left, down, right] = neighbours(cell).map(|next| !self.is_wall(next));
            let along_y = up && down && !left && !right;
            let along_x = left && right && !up && !down;
            !along_x && !along_y
        })
    }

    /// The cell of a point; the nearest one for points outside the map.
    pub fn cell_at(&self, [x, y]: [f64; 2]) -> Cell {
        // The centre of cell 0 is at -CELL_SIZE; the cast saturates at 0.
        let index = |coordinate: f64| (coordinate / CELL_SIZE + 1.5) as usize;
        Cell { i: index(y).min(self.rows - 1), j: index(x).min(self.columns - 1) }
    }

    /// `[low, high]` of `x` and of `y` over the whole map, outer walls included.
    pub fn bounds(&self) -> [[f64; 2]; 2] {
        [self.columns, self.rows].map(|cells| [-1.5 * CELL_SIZE, (cells as f64 - 1.5) * CELL_SIZE])
    }

    /// Distance of every cell to a goal in steps between free cells, indexed by [`number`](Self::number);
    /// `None` for walls and unreachable cells.
    pub fn distances(&self, goal: Cell) -> Vec<Option<usize>> {
        let mut distances = vec![None; self.walls.len()];
        distances[self.number(goal)] = Some(0);
        let mut queue = VecDeque::from([(goal, 0)]);
        while let Some((cell, distance)) = queue.pop_front() {
            for next in neighbours(cell) {
                if !self.is_wall(next) && distances[self.number(next)].is_none() {
                    distances[self.number(next)] = Some(distance + 1);
                    queue.push_back((next, distance + 1));
                }
            }
        }
        distances
    }

    /// The index of a cell, row by row.
    pub fn number(&self, cell: Cell) -> usize {
        cell.i * self.columns + cell.j
    }

    /// A grid of `per_cell` times `per_cell` points in each cell, evenly spaced.
    ///
    /// ```
    /// use album_data::ogbench::MazeSize;
    /// use album_envs::Maze;
    /// let grid = Maze::new(MazeSize::Medium).sample_grid(3);
    /// assert_eq!((grid.rows, grid.columns), (24, 24));
    /// assert_eq!(grid.points[0], None);
    /// let [x, y] = grid.points[4 * 24 + 4].unwrap();
    /// assert!(x.abs() < 1e-12 && y.abs() < 1e-12); // the middle of cell (1, 1)
    /// ```
    ///
    /// # Panics
    ///
    /// If `per_cell` is 0.
    pub fn sample_grid(&self, per_cell: usize) -> SampleGrid {
        assert!(per_cell > 0, "a grid has at least one point per cell");
        let (rows, columns) = (self.rows * per_cell, self.columns * per_cell);
        let coordinate = |index: usize| ((index as f64 + 0.5) / per_cell as f64 - 1.5) * CELL_SIZE;
        let point = |i: usize, j: usize| {
            let cell = Cell { i: i / per_cell, j: j / per_cell };
            (!self.is_wall(cell)).then(|| [coordinate(j), coordinate(i)])
        };
        let points = (0..rows).flat_map(|i| (0..columns).map(move |j| point(i, j))).collect();
        SampleGrid { rows, columns, points }
    }

    fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        (0..self.rows).flat_map(|i| (0..self.columns).map(move |j| Cell { i, j }))
    }
}

/// The cells above, to the left, below and to the right, in OGBench's order. At the edge of the map the index
/// wraps around to a cell outside, which [`Maze::is_wall`] counts as wall.
pub(crate) fn neighbours(Cell { i, j }: Cell) -> [Cell; 4] {
    [
        Cell { i: i.wrapping_sub(1), j },
        Cell { i, j: j.wrapping_sub(1) },
        Cell { i: i + 1, j },
        Cell { i, j: j + 1 },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_walled_and_connected() {
        for size in MazeSize::ALL {
            let maze = Maze::new(size);
            assert_eq!(maze.walls.len(), maze.rows * maze.columns);
            let edge = |cell: &Cell| {
                cell.i == 0 || cell.j == 0 || cell.i == maze.rows - 1 || cell.j == maze.columns - 1
            };
            assert!(maze.cells().filter(edge).all(|cell| maze.is_wall(cell)));
            let first = maze.free_cells().next().unwrap();
            let reached = maze.distances(first).iter().flatten().count();
            assert_eq!(reached, maze.free_cells().count());
            assert_eq!(maze.free_cells().count() + maze.wall_cells().count(), maze.walls.len());
            for task in size.tasks() {
                assert!(!maze.is_wall(task.start) && !maze.is_wall(task.goal));
            }
        }
    }

    #[test]
    fn cells_and_points() {
        let maze = Maze::new(MazeSize::Large);
        for cell in maze.cells() {
            let [x, y] = cell.center();
            assert_eq!(maze.cell_at([x + 1.99, y - 1.99]), cell);
        }
        assert_eq!(maze.cell_at([-100.0, 100.0]), Cell { i: 8, j: 0 });
        assert_eq!(maze.bounds(), [[-6.0, 42.0], [-6.0, 30.0]]);
    }

    #[test]
    fn a_grid_has_points_in_free_cells_only() {
        let maze = Maze::new(MazeSize::Giant);
        let grid = maze.sample_grid(5);
        assert_eq!(grid.points.iter().flatten().count(), 25 * maze.free_cells().count());
        assert!(grid.points.iter().flatten().all(|&point| !maze.is_wall(maze.cell_at(point))));
    }
}

//! Shortest paths through a maze.

use album_data::ogbench::Cell;

use super::maze::{Maze, neighbours};

/// The next cell on a shortest path from any cell of a maze to any other.
#[derive(Debug, Clone)]
pub struct Oracle {
    maze: Maze,
    /// By goal cell, then by cell: the next cell (the cell itself at the goal).
    next: Vec<Vec<Cell>>,
}

impl Oracle {
    /// Finds all paths by breadth-first search.
    pub fn new(maze: Maze) -> Self {
        let numbers = 0..maze.rows() * maze.columns();
        let cell_of = |number: usize| Cell { i: number / maze.columns(), j: number % maze.columns() };
        let next = numbers
            .clone()
            .map(|goal| {
                let distances = maze.distances(cell_of(goal));
                numbers.clone().map(|number| best_neighbour(&maze, cell_of(number), &distances)).collect()
            })
            .collect();
        Self { maze, next }
    }

    /// The maze.
    pub fn maze(&self) -> &Maze {
        &self.maze
    }

    /// The subgoal on the way from `position` to `goal`: the centre of the next cell on the path, or of the
    /// goal's cell.
    pub fn subgoal(&self, position: [f64; 2], goal: [f64; 2]) -> [f64; 2] {
        let [from, to] = [position, goal].map(|point| self.maze.number(self.maze.cell_at(point)));
        self.next[to][from].center()
    }

    /// The unit vector towards the subgoal; shorter within a few micrometres of it.
    ///
    /// ```
    /// use album_data::ogbench::MazeSize;
    /// use album_envs::{Maze, Oracle};
    /// let oracle = Oracle::new(Maze::new(MazeSize::Medium));
    /// let [x, y] = oracle.direction([0.0, 0.0], [20.0, 20.0]);
    /// assert!(x.abs() < 1e-5 && (y - 1.0).abs() < 1e-5); // by way of cell (2, 1)
    /// ```
    pub fn direction(&self, position: [f64; 2], goal: [f64; 2]) -> [f64; 2] {
        let subgoal = self.subgoal(position, goal);
        let difference = [subgoal[0] - position[0], subgoal[1] - position[1]];
        let length = (difference[0] * difference[0] + difference[1] * difference[1]).sqrt();
        difference.map(|x| x / (length + 1e-6))
    }
}

/// The free neighbour nearest to the goal, the first among equals; the cell itself if none is nearer.
fn best_neighbour(maze: &Maze, cell: Cell, distances: &[Option<usize>]) -> Cell {
    let distance = |cell: Cell| distances[maze.number(cell)].unwrap_or(usize::MAX);
    neighbours(cell)
        .into_iter()
        .filter(|&next| !maze.is_wall(next))
        .fold(cell, |best, next| if distance(next) < distance(best) { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_data::ogbench::MazeSize;

    #[test]
    fn every_step_gets_nearer() {
        for size in MazeSize::ALL {
            let oracle = Oracle::new(Maze::new(size));
            let maze = oracle.maze();
            for goal in maze.free_cells() {
                let distances = maze.distances(goal);
                for cell in maze.free_cells() {
                    let next = maze.cell_at(oracle.subgoal(cell.center(), goal.center()));
                    let (here, there) = (distances[maze.number(cell)], distances[maze.number(next)]);
                    assert_eq!(there.unwrap(), here.unwrap().saturating_sub(1));
                }
            }
        }
    }
}

//! The native pointmaze against recordings of the real one.
//!
//! `data/record_pointmaze.py` made them, with ogbench 1.2.2 and MuJoCo 4.0.0.
#![allow(clippy::unwrap_used)]

use album_data::ogbench::MazeSize;
use album_envs::{Maze, advance};

#[test]
fn maps_are_those_of_the_package() {
    let mut lines = include_str!("../data/ogbench_mazes.txt").lines();
    for size in MazeSize::ALL {
        let maze = Maze::new(size);
        let (free, vertices) = (maze.free_cells().count(), maze.vertex_cells().count());
        assert_eq!(lines.next().unwrap(), format!("{size} {free} {vertices}"));
        for i in 0..maze.rows() {
            let row = (0..maze.columns()).map(|j| if maze.is_wall((i, j).into()) { '#' } else { '.' });
            assert_eq!(lines.next().unwrap(), row.collect::<String>());
        }
    }
    assert_eq!(lines.next(), None);
}

/// Number of walls that the disc overlaps.
fn walls(maze: &Maze, center: [f64; 2]) -> usize {
    let distance = |wall: [f64; 2]| {
        let outside = [0, 1].map(|axis| ((center[axis] - wall[axis]).abs() - 2.0).max(0.0));
        outside[0].hypot(outside[1])
    };
    maze.wall_cells().filter(|cell| distance(cell.center()) < 0.7).count()
}

#[test]
fn steps_are_those_of_the_package() {
    let mut largest = [0.0f64; 3];
    let mut counts = [0; 3];
    for line in include_str!("../data/ogbench_steps.csv").lines().skip(1) {
        let (name, numbers) = line.split_once(',').unwrap();
        let maze = Maze::new(MazeSize::ALL.into_iter().find(|size| size.to_string() == name).unwrap());
        let numbers: Vec<f64> = numbers.split(',').map(|x| x.parse().unwrap()).collect();
        let [x, y, action_x, action_y, next_x, next_y] = numbers[..] else { panic!("{line}") };
        let [found_x, found_y] = advance(&maze, [x, y], [action_x, action_y]).position;
        let touched = walls(&maze, [x + 0.2 * action_x, y + 0.2 * action_y]).min(2);
        counts[touched] += 1;
        largest[touched] = largest[touched].max((found_x - next_x).hypot(found_y - next_y));
    }
    // Steps of all three kinds occur.
    assert!(counts.iter().all(|&count| count >= 5), "{counts:?}");
    let [free, one_wall, several_walls] = largest;
    assert_eq!(free, 0.0);
    assert!(one_wall < 2e-5, "{one_wall}");
    assert!(several_walls < 0.065, "{several_walls}");
}

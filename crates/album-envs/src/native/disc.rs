//! The motion of the disc in pointmaze.
//!
//! A step adds 0.2 times the action to the position. If the disc then overlaps a wall, MuJoCo pushes it back
//! for a tenth of a second with its soft contact forces, starting from rest. For a single contact this is a
//! linear rule, measured in `ogbench` 1.2.2 with MuJoCo 4.0.0: along the contact normal 0.17721520 of the
//! penetration remains, and the disc then moves away at 9.2571454 per second times the penetration. So the
//! exact displacement out of the walls is computed here and reduced by this fraction. Pressing against a wall
//! at full speed leaves the disc up to 6 cm inside it, as in MuJoCo.
//!
//! Compared with the package, one step from each state of its trajectories (8 episodes of 1000 steps in each
//! maze):
//!
//! | steps | share in `navigate` data | largest deviation |
//! |---|---|---|
//! | free | 99.3 % | 0 (bit-exact) |
//! | one wall touched | 0.7 % | 1e-5 m (below a penetration of 1 mm the contact is softer) |
//! | several walls touched at once | none seen | 6 cm, on average 1.2 cm |
//!
//! Contacts with several walls make up 2 to 4 % of the steps when random directions are held for ten steps.
//! There the package has friction between contacts and collides with the hidden edge between neighbouring
//! blocks. Without the soft contact the deviation at one wall would be up to 5 cm.

use album_data::ogbench::{CELL_SIZE, Cell};

use super::maze::Maze;

/// Metres that a unit action moves the disc.
const REACH: f64 = 0.2;
/// Radius of the disc in metres.
pub(super) const RADIUS: f64 = 0.7;
/// The fraction of a penetration that remains after a step.
const SOFTNESS: f64 = 0.177_215_204_759_363_6;
/// Speed away from a wall after a step, per metre of penetration before it.
const REBOUND: f64 = 9.257_145_4;
/// Maximum number of walls that push the disc in one step.
const MAX_CONTACTS: usize = 4;

/// The disc after a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Motion {
    /// Its centre `[x, y]` in metres.
    pub position: [f64; 2],
    /// Its velocity in metres per second: zero without contact, and not carried over to the next step.
    pub velocity: [f64; 2],
}

/// Moves the disc by an action. Each component is clipped to ±1.
///
/// ```
/// use album_data::ogbench::MazeSize;
/// use album_envs::{Maze, advance};
/// let maze = Maze::new(MazeSize::Medium);
/// assert_eq!(advance(&maze, [0.0, 0.0], [0.5, -2.0]).position, [0.1, -0.2]);
/// // The wall at x = -2 stops the disc 0.7 before it, and gives way a little.
/// let [x, y] = advance(&maze, [-1.3, 0.0], [-1.0, 1.0]).position;
/// assert!((x + 1.3 + 0.2 * 0.1772152).abs() < 1e-8 && y == 0.2);
/// ```
pub fn advance(maze: &Maze, position: [f64; 2], action: [f64; 2]) -> Motion {
    let target = [0, 1].map(|axis| position[axis] + REACH * action[axis].clamp(-1.0, 1.0));
    let outside = push_out(maze, target);
    let push = [0, 1].map(|axis| outside[axis] - target[axis]);
    Motion {
        position: [0, 1].map(|axis| target[axis] + (1.0 - SOFTNESS) * push[axis]),
        velocity: push.map(|push| REBOUND * push),
    }
}

/// The disc's centre after being pushed out of the deepest overlapping wall along its normal, repeated until
/// no wall overlaps.
fn push_out(maze: &Maze, mut center: [f64; 2]) -> [f64; 2] {
    for _ in 0..MAX_CONTACTS {
        let Some(push) = deepest(maze, center) else { break };
        center = [center[0] + push[0], center[1] + push[1]];
    }
    center
}

/// The displacement out of the wall that the disc overlaps most.
fn deepest(maze: &Maze, center: [f64; 2]) -> Option<[f64; 2]> {
    let middle = maze.cell_at(center);
    let around = |n: usize| n.saturating_sub(1)..=n + 1;
    let mut nearest = RADIUS;
    let mut push = None;
    for i in around(middle.i) {
        for j in around(middle.j) {
            let cell = Cell { i, j };
            if !maze.is_wall(cell) {
                continue;
            }
            // From the nearest point of the square to the disc's centre.
            let wall = cell.center();
            let [dx, dy] = [0, 1].map(|axis| {
                let half = 0.5 * CELL_SIZE;
                center[axis] - center[axis].clamp(wall[axis] - half, wall[axis] + half)
            });
            let distance = (dx * dx + dy * dy).sqrt();
            if distance > 0.0 && distance < nearest {
                nearest = distance;
                push = Some([dx, dy].map(|d| d * ((RADIUS - distance) / distance)));
            }
        }
    }
    push
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_base::rng;
    use album_data::ogbench::MazeSize;

    #[test]
    fn slides_along_walls() {
        let maze = Maze::new(MazeSize::Medium);
        let mut position = [-1.0, -1.0];
        for _ in 0..10 {
            position = advance(&maze, position, [-1.0, 0.3]).position;
        }
        assert!((position[1] - (-1.0 + 10.0 * 0.06)).abs() < 1e-12);
        assert!((-1.37..-1.3).contains(&position[0]), "{position:?}");
    }

    #[test]
    fn no_action_gets_into_a_wall() {
        for size in MazeSize::ALL {
            let maze = Maze::new(size);
            let mut rng = rng::stream(1, "test");
            let mut position = [0.0, 0.0];
            let mut direction = [0.0, 0.0];
            for step in 0..200_000 {
                if step % 20 == 0 {
                    direction = rng::normal_pair(&mut rng).map(|x| 3.0 * x);
                }
                position = advance(&maze, position, direction).position;
                // At most two walls push at once, each by at most 0.2 m per step.
                if let Some([dx, dy]) = deepest(&maze, position) {
                    assert!(dx.hypot(dy) < 0.1, "{position:?}");
                }
                assert!(!maze.is_wall(maze.cell_at(position)), "{position:?}");
            }
        }
    }
}

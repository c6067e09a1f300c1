//! Top views of a maze.

use album_data::ogbench::CELL_SIZE;

use super::disc::RADIUS;
use super::maze::Maze;
use crate::env::Frame;

/// Pixels per cell; the largest maze is then 384 pixels wide.
const CELL: usize = 24;

const PIXELS_PER_METRE: f64 = CELL as f64 / CELL_SIZE;

/// Half the width of the path's line in metres.
const LINE: f64 = 0.25;

type Colour = [u8; 3];
const FLOOR: Colour = [247, 246, 242];
pub(super) const WALL: Colour = [74, 85, 104];
pub(super) const GOAL: Colour = [104, 178, 120];
pub(super) const PATH: Colour = [242, 178, 106];
pub(super) const DISC: Colour = [214, 83, 63];

/// Draws the walls, the goal as a disc of radius `tolerance`, the path so far and the disc at its end. `y`
/// points up.
pub(super) fn draw(maze: &Maze, goal: [f64; 2], tolerance: f64, path: &[[f64; 2]]) -> Frame {
    let (width, height) = (CELL * maze.columns(), CELL * maze.rows());
    let mut canvas = Canvas { frame: Frame { width, height, rgb: FLOOR.repeat(width * height) } };
    for cell in maze.wall_cells() {
        for row in CELL * (maze.rows() - 1 - cell.i)..CELL * (maze.rows() - cell.i) {
            for column in CELL * cell.j..CELL * (cell.j + 1) {
                canvas.blend(column, row, WALL, 1.0);
            }
        }
    }
    canvas.disc(goal, tolerance, GOAL);
    for &position in path {
        canvas.disc(position, LINE, PATH);
    }
    if let Some(&position) = path.last() {
        canvas.disc(position, RADIUS, DISC);
    }
    canvas.frame
}

struct Canvas {
    frame: Frame,
}

impl Canvas {
    /// Fills an anti-aliased disc, given in metres.
    fn disc(&mut self, [x, y]: [f64; 2], radius: f64, colour: Colour) {
        // The corner of the map is 1.5 cells from the centre of cell (1, 1), which is the origin.
        let x = (x / CELL_SIZE + 1.5) * CELL as f64;
        let y = self.frame.height as f64 - (y / CELL_SIZE + 1.5) * CELL as f64;
        let radius = radius * PIXELS_PER_METRE;
        let around = |center: f64, pixels: usize| {
            (center - radius - 1.0) as usize..((center + radius + 2.0) as usize).min(pixels)
        };
        for row in around(y, self.frame.height) {
            for column in around(x, self.frame.width) {
                let distance = (column as f64 + 0.5 - x).hypot(row as f64 + 0.5 - y);
                self.blend(column, row, colour, (radius - distance + 0.5).clamp(0.0, 1.0));
            }
        }
    }

    fn blend(&mut self, column: usize, row: usize, colour: Colour, share: f64) {
        let at = 3 * (row * self.frame.width + column);
        for (old, new) in self.frame.rgb[at..at + 3].iter_mut().zip(colour) {
            *old = (f64::from(*old) + share * (f64::from(new) - f64::from(*old))).round() as u8;
        }
    }
}

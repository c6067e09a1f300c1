//! A coarse bitmap of a plot's ink, to place legends and labels in empty areas.

use super::decimate::Point;

const CELL: f64 = 2.0;

pub(crate) struct Occupancy {
    columns: usize,
    rows: usize,
    taken: Vec<bool>,
}

impl Occupancy {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        let (columns, rows) =
            ((width / CELL).ceil().max(1.0) as usize, (height / CELL).ceil().max(1.0) as usize);
        Occupancy { columns, rows, taken: vec![false; columns * rows] }
    }

    pub(crate) fn mark_point(&mut self, (x, y): Point) {
        let (column, row) = ((x / CELL).floor(), (y / CELL).floor());
        if column >= 0.0 && row >= 0.0 && column < self.columns as f64 && row < self.rows as f64 {
            self.taken[row as usize * self.columns + column as usize] = true;
        }
    }

    pub(crate) fn mark_segment(&mut self, from: Point, to: Point) {
        let length = (to.0 - from.0).abs().max((to.1 - from.1).abs());
        // Ends far outside the plot must not make this loop long.
        let steps = (length / (0.5 * CELL)).ceil().clamp(1.0, 4000.0);
        for i in 0..=steps as usize {
            let t = i as f64 / steps;
            self.mark_point((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)));
        }
    }

    pub(crate) fn mark_box(&mut self, x: f64, y: f64, width: f64, height: f64) {
        for (column, row) in self.cells(x, y, width, height) {
            self.taken[row * self.columns + column] = true;
        }
    }

    /// Whether a box lies within the plot and has no ink under it.
    pub(crate) fn is_free(&self, x: f64, y: f64, width: f64, height: f64) -> bool {
        x >= 0.0
            && y >= 0.0
            && x + width <= self.columns as f64 * CELL
            && y + height <= self.rows as f64 * CELL
            && self.cells(x, y, width, height).all(|(column, row)| !self.taken[row * self.columns + column])
    }

    fn cells(&self, x: f64, y: f64, width: f64, height: f64) -> impl Iterator<Item = (usize, usize)> + use<> {
        let span = |from: f64, size: f64, count: usize| {
            let first = (from / CELL).floor().clamp(0.0, count as f64) as usize;
            let end = ((from + size) / CELL).ceil().clamp(0.0, count as f64) as usize;
            first..end
        };
        let (columns, rows) = (span(x, width, self.columns), span(y, height, self.rows));
        rows.flat_map(move |row| columns.clone().map(move |column| (column, row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_blocks_the_boxes_it_crosses() {
        let mut map = Occupancy::new(100.0, 100.0);
        map.mark_segment((0.0, 0.0), (100.0, 100.0));
        assert!(!map.is_free(40.0, 40.0, 20.0, 20.0));
        assert!(map.is_free(70.0, 10.0, 20.0, 20.0));
        assert!(!map.is_free(90.0, 10.0, 20.0, 20.0), "outside is not free");
        map.mark_segment((-1e9, 50.0), (f64::MAX, 50.0));
    }
}

//! The data rectangle of a plot: maps values to pixels.

use super::super::axis::{Axis, Scale};
use super::super::decimate::Point;
use super::super::legend::{self, Corner, Key};
use album_base::number::coordinate;

/// Padding between the border of a legend inside the plot and its keys.
pub const INSET: f64 = 6.0;

/// The rectangle of the data and its axes.
pub struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub x: Axis,
    pub y: Axis,
}

impl Frame {
    /// Positions elements drawn in frame pixels, and clips them to the frame.
    pub fn clip(&self, elements: &str) -> String {
        // Some slack keeps lines along the border whole.
        const SLACK: f64 = 1.5;
        if elements.is_empty() {
            return String::new();
        }
        let c = |v: f64| coordinate(v, 1);
        let (width, height) = (c(self.width + 2.0 * SLACK), c(self.height + 2.0 * SLACK));
        // An inner <svg> clips without an id, which could clash with other figures.
        format!(
            "<svg x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"-{SLACK} -{SLACK} {width} {height}\" overflow=\"hidden\">\n{elements}</svg>\n",
            c(self.left - SLACK),
            c(self.top - SLACK)
        )
    }

    /// A point in frame pixels, if it can be drawn.
    pub fn pixel(&self, (x, y): (f64, f64)) -> Option<Point> {
        let drawable = self.x.scale.accepts(x) && self.y.scale.accepts(y);
        drawable.then(|| (limit(self.x.place(x)), limit(self.height - self.y.place(y))))
    }

    /// Whether a point lies within the frame, or on its border.
    pub fn shows(&self, (x, y): Point) -> bool {
        x >= -0.5 && y >= -0.5 && x <= self.width + 0.5 && y <= self.height + 0.5
    }

    /// The pieces of a line between points that cannot be drawn.
    pub fn runs(&self, points: &[(f64, f64)]) -> Vec<Vec<Point>> {
        let pixels: Vec<Option<Point>> = points.iter().map(|p| self.pixel(*p)).collect();
        split(&pixels)
    }

    /// The pieces of a band, as x, upper and lower edge in pixels.
    pub fn band_runs(&self, edges: &[(f64, f64, f64)]) -> Vec<Vec<(f64, f64, f64)>> {
        let pixels: Vec<Option<(f64, f64, f64)>> = edges
            .iter()
            .map(|(x, lower, upper)| {
                // On a logarithmic axis a lower edge at or below zero extends to the bottom.
                let cut = self.y.scale == Scale::Log && *lower <= 0.0 && *upper > 0.0;
                let lower = if cut { self.y.lo.min(*upper) } else { *lower };
                Some((self.pixel((*x, *upper))?, self.pixel((*x, lower))?)).map(|(u, l)| (u.0, u.1, l.1))
            })
            .collect();
        split(&pixels)
    }

    /// The box of a legend in a corner: x, y, width, height in frame pixels.
    pub fn corner_box(&self, keys: &[Key], corner: Corner) -> (f64, f64, f64, f64) {
        const MARGIN: f64 = 6.0;
        let (width, height) = legend::column_size(keys);
        let (width, height) = (width + 2.0 * INSET, height + 2.0 * INSET);
        let (right, bottom) = (self.width - width - MARGIN, self.height - height - MARGIN);
        let (x, y) = match corner {
            Corner::TopLeft => (MARGIN, MARGIN),
            Corner::TopRight => (right, MARGIN),
            Corner::BottomLeft => (MARGIN, bottom),
            Corner::BottomRight => (right, bottom),
        };
        (x, y, width, height)
    }
}

/// Clamps coordinates far outside the frame, where the exact position does not matter.
fn limit(pixels: f64) -> f64 {
    pixels.clamp(-1e5, 1e5)
}

fn split<T: Copy>(items: &[Option<T>]) -> Vec<Vec<T>> {
    items
        .split(Option::is_none)
        .filter(|run| !run.is_empty())
        .map(|run| run.iter().copied().flatten().collect())
        .collect()
}

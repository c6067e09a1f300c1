//! Legends: the keys of the series and their placement.

use super::colour::{Colour, Ink};
use super::lettering::{self, Anchor, SMALL};
use album_base::number::{coordinate, grouped};

/// The placement of a plot's legend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Legend {
    /// In an empty corner of the plot, or above the plot if there is none.
    #[default]
    Auto,
    /// Above the plot.
    Top,
    /// Right of the plot.
    Right,
    /// In this corner of the plot, even over data.
    Inside(Corner),
    /// Left to [`super::panels`], which draws one legend for all its figures.
    Shared,
    /// No legend.
    Hidden,
}

/// A corner of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// Top left.
    TopLeft,
    /// Top right.
    TopRight,
    /// Bottom left.
    BottomLeft,
    /// Bottom right.
    BottomRight,
}

/// The shapes of markers; series differ in shape as well as in colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
}

impl Shape {
    pub(crate) fn of(index: usize) -> Self {
        [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Diamond][index % 4]
    }

    /// The outline of the marker as path data, centred at a point. All shapes have similar areas.
    pub(crate) fn path(self, x: f64, y: f64, radius: f64) -> String {
        let c = |v: f64| coordinate(v, 1);
        match self {
            Shape::Circle => {
                let (r, d) = (c(radius), c(2.0 * radius));
                format!("M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z", c(x - radius), c(y))
            }
            Shape::Square => {
                let side = c(1.8 * radius);
                format!("M{} {}h{side}v{side}h-{side}z", c(x - 0.9 * radius), c(y - 0.9 * radius))
            }
            Shape::Triangle => {
                let (half, up) = (1.15 * radius, 1.2 * radius);
                format!("M{} {}L{} {}h-{}z", c(x), c(y - up), c(x + half), c(y + 0.8 * radius), c(2.0 * half))
            }
            Shape::Diamond => {
                let r = c(1.25 * radius);
                format!("M{} {}l{r} {r} -{r} {r} -{r} -{r}z", c(x), c(y - 1.25 * radius))
            }
        }
    }
}

/// The sample of a series in the legend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sample {
    Line,
    Dashed,
    LineMarker(Shape),
    Marker(Shape),
    Dots,
    Band,
    Ring,
    Cell(Colour),
    /// A path over a map, with the same white border as there.
    Path(Colour),
}

/// One entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub name: String,
    pub ink: Ink,
    pub sample: Sample,
    /// The number of items that the entry represents, if shown.
    pub count: Option<usize>,
}

const SAMPLE: f64 = 22.0;
const GAP: f64 = 6.0;
const BETWEEN: f64 = 18.0;
pub(crate) const ROW: f64 = 18.0;

impl Key {
    fn width(&self) -> f64 {
        self.sample_width() + GAP + lettering::width(&self.label(), SMALL)
    }

    fn label(&self) -> String {
        match self.count {
            Some(count) => format!("{}: {}", self.name, grouped(count as i64)),
            None => self.name.clone(),
        }
    }

    fn sample_width(&self) -> f64 {
        match self.sample {
            Sample::Dots | Sample::Ring | Sample::Marker(_) | Sample::Cell(_) => 12.0,
            _ => SAMPLE,
        }
    }

    /// Draws the entry with the top left of its row at a point.
    fn draw(&self, x: f64, top: f64) -> String {
        let c = |v: f64| coordinate(v, 1);
        let middle = top + 0.5 * ROW;
        let width = self.sample_width();
        let line = |dash: &str| {
            format!(
                "<path d=\"M{} {}h{}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"{dash}/>",
                c(x),
                c(middle),
                c(width)
            )
        };
        let marker = |shape: Shape| {
            format!("<path d=\"{}\" fill=\"currentColor\"/>", shape.path(x + 0.5 * width, middle, 3.5))
        };
        let circle = |radius: f64, paint: &str| {
            format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {paint}/>",
                c(x + 0.5 * width),
                c(middle),
                c(radius)
            )
        };
        let cell = |height: f64, paint: &str| {
            format!(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {paint}/>",
                c(x),
                c(middle - 0.5 * height),
                c(width),
                c(height)
            )
        };
        let sample = match self.sample {
            Sample::Line => line(""),
            Sample::Dashed => line(" stroke-dasharray=\"6 4\""),
            Sample::LineMarker(shape) => line("") + &marker(shape),
            Sample::Marker(shape) => marker(shape),
            Sample::Dots => circle(3.5, "fill=\"currentColor\""),
            Sample::Ring => circle(4.5, "fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\""),
            Sample::Band => cell(10.0, "fill=\"currentColor\" fill-opacity=\".25\""),
            Sample::Path(colour) => {
                let d = format!("M{} {}h{}", c(x), c(middle), c(width));
                let round = "fill=\"none\" stroke-linecap=\"round\"";
                format!(
                    "<path d=\"{d}\" {round} stroke=\"#fff\" stroke-width=\"5\"/>\
                     <path d=\"{d}\" {round} stroke=\"{}\" stroke-width=\"2.2\"/>",
                    colour.hex()
                )
            }
            Sample::Cell(colour) => {
                cell(12.0, &format!("fill=\"{}\" stroke=\"currentColor\" stroke-width=\".5\"", colour.hex()))
            }
        };
        let label = lettering::text(x + width + GAP, middle + 4.0, SMALL, Anchor::Start, &self.label(), "");
        format!("{}{sample}</g>{label}\n", self.ink.open_group())
    }
}

/// Width and height of the keys in a column.
pub(crate) fn column_size(keys: &[Key]) -> (f64, f64) {
    (keys.iter().map(Key::width).fold(0.0, f64::max), ROW * keys.len() as f64)
}

/// Draws the keys in a column.
pub(crate) fn draw_column(keys: &[Key], x: f64, y: f64) -> String {
    keys.iter().enumerate().map(|(i, key)| key.draw(x, y + ROW * i as f64)).collect()
}

/// The height of the keys in rows of at most this width.
pub(crate) fn flow_height(keys: &[Key], width: f64) -> f64 {
    flow(keys, width).last().map_or(0.0, |(_, y)| y + ROW)
}

/// Draws the keys in rows of at most this width.
pub(crate) fn draw_flow(keys: &[Key], x: f64, y: f64, width: f64) -> String {
    flow(keys, width).into_iter().zip(keys).map(|((dx, dy), key)| key.draw(x + dx, y + dy)).collect()
}

fn flow(keys: &[Key], width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (0.0, 0.0);
    keys.iter()
        .map(|key| {
            if x > 0.0 && x + key.width() > width {
                (x, y) = (0.0, y + ROW);
            }
            let place = (x, y);
            x += key.width() + BETWEEN;
            place
        })
        .collect()
}

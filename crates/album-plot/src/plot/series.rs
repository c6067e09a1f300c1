//! The series of a plot.

use super::frame::Frame;
use crate::colour::Ink;
use crate::decimate;
use crate::legend::{Key, Sample, Shape};
use crate::lettering;
use album_base::number::coordinate;

#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub ink: Ink,
    pub kind: SeriesKind,
}

#[derive(Clone, Debug)]
pub enum SeriesKind {
    Line(Vec<(f64, f64)>),
    Dashed(Vec<(f64, f64)>),
    Markers(Vec<(f64, f64)>, Shape),
    Points(Vec<(f64, f64)>, Shape),
    /// Points with their labels.
    Labelled(Vec<(f64, f64)>, Vec<String>, Shape),
    /// `x`, lower and upper `y`.
    Band(Vec<(f64, f64, f64)>),
    Flags(Vec<(f64, f64)>),
}

/// Up to this many points are drawn as markers, more as dots.
pub const FEW: usize = 60;

impl Series {
    pub fn key(&self) -> Key {
        let sample = match &self.kind {
            SeriesKind::Line(_) => Sample::Line,
            SeriesKind::Dashed(_) => Sample::Dashed,
            SeriesKind::Markers(_, shape) => Sample::LineMarker(*shape),
            SeriesKind::Points(points, _) if points.len() > FEW => Sample::Dots,
            SeriesKind::Points(_, shape) | SeriesKind::Labelled(_, _, shape) => Sample::Marker(*shape),
            SeriesKind::Band(_) => Sample::Band,
            SeriesKind::Flags(_) => Sample::Ring,
        };
        let count = matches!(self.kind, SeriesKind::Flags(_)).then(|| self.kind.points().len());
        Key { name: self.name.clone(), ink: self.ink, sample, count }
    }

    pub fn xs(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match &self.kind {
            SeriesKind::Band(edges) => Box::new(edges.iter().map(|e| e.0)),
            kind => Box::new(kind.points().iter().map(|p| p.0)),
        }
    }

    pub fn ys(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match &self.kind {
            SeriesKind::Band(edges) => Box::new(edges.iter().flat_map(|e| [e.1, e.2])),
            kind => Box::new(kind.points().iter().map(|p| p.1)),
        }
    }

    fn group(&self, content: &str) -> String {
        let title = if self.name.is_empty() { String::new() } else { lettering::title(&self.name) };
        format!("{}{title}{content}</g>\n", self.ink.open_group())
    }

    /// Lines and bands, which may leave the frame and are clipped to it.
    pub fn draw_clipped(&self, frame: &Frame) -> String {
        let c = |v: f64| coordinate(v, 1);
        let stroke = match &self.kind {
            SeriesKind::Line(points) | SeriesKind::Markers(points, _) => Some((points, "")),
            SeriesKind::Dashed(points) => Some((points, " stroke-dasharray=\"6 4\"")),
            SeriesKind::Band(edges) => {
                let mut d = String::new();
                for run in frame.band_runs(edges) {
                    let thin = decimate::band(&run, frame.width);
                    let forth = thin.iter().map(|p| (p.0, p.1));
                    let back = thin.iter().rev().map(|p| (p.0, p.2));
                    for (i, p) in forth.chain(back).enumerate() {
                        d.push_str(&format!("{}{} {}", if i == 0 { "M" } else { "L" }, c(p.0), c(p.1)));
                    }
                    d.push('z');
                }
                if d.is_empty() {
                    return String::new();
                }
                return self.group(&format!("<path d=\"{d}\" fill=\"currentColor\" fill-opacity=\".2\"/>"));
            }
            _ => None,
        };
        let Some((points, dash)) = stroke else { return String::new() };
        let mut d = String::new();
        for run in frame.runs(points) {
            for (i, p) in decimate::straighten(decimate::line(&run, frame.width)).iter().enumerate() {
                d.push_str(&format!("{}{} {}", if i == 0 { "M" } else { "L" }, c(p.0), c(p.1)));
            }
            if run.len() == 1 {
                d.push_str("h0"); // with round caps, a lone point between gaps is a dot
            }
        }
        if d.is_empty() {
            return String::new();
        }
        self.group(&format!(
            "<path d=\"{d}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\"{dash}/>"
        ))
    }

    /// Dots, markers and rings, which are drawn whole or not at all.
    pub fn draw_marks(&self, frame: &Frame) -> String {
        let points = self.kind.points();
        let places = points.iter().filter_map(|p| frame.pixel(*p)).filter(|p| frame.shows(*p));
        let (shape, radius) = match &self.kind {
            SeriesKind::Markers(_, shape) => (*shape, 3.5),
            SeriesKind::Points(_, shape) if points.len() <= FEW => (*shape, 4.0),
            SeriesKind::Labelled(_, _, shape) => (*shape, 4.0),
            SeriesKind::Points(..) => {
                let width = if points.len() <= 600 { 4.0 } else { 2.4 };
                let mut d = String::new();
                // Relative moves in integer units take half the text of absolute coordinates.
                let mut pen = (0, 0);
                for (x, y, down) in decimate::dots(places) {
                    d.push_str(&format!("m{} {}v{down}", x - pen.0, y - pen.1));
                    pen = (x, y + down);
                }
                if d.is_empty() {
                    return String::new();
                }
                return self.group(&format!(
                    "<path d=\"{d}\" transform=\"scale({})\" fill=\"none\" stroke=\"currentColor\" \
                     stroke-width=\"{}\" stroke-linecap=\"round\"/>",
                    decimate::DOT_UNIT,
                    width / decimate::DOT_UNIT
                ));
            }
            SeriesKind::Flags(_) => {
                // Rings within a pixel of each other look like one.
                let mut seen = std::collections::BTreeSet::new();
                let d: String = places
                    .filter(|p| seen.insert((p.0.round() as i64, p.1.round() as i64)))
                    .map(|p| Shape::Circle.path(p.0, p.1, 5.0))
                    .collect();
                if d.is_empty() {
                    return String::new();
                }
                return self.group(&format!(
                    "<path d=\"{d}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"/>"
                ));
            }
            SeriesKind::Line(_) | SeriesKind::Dashed(_) | SeriesKind::Band(_) => return String::new(),
        };
        let d: String = places.map(|p| shape.path(p.0, p.1, radius)).collect();
        if d.is_empty() {
            return String::new();
        }
        self.group(&format!(
            "<path d=\"{d}\" fill=\"currentColor\" stroke=\"#fff\" style=\"stroke:var(--album-paper,#fff)\"/>"
        ))
    }
}

impl SeriesKind {
    pub fn points(&self) -> &[(f64, f64)] {
        match self {
            SeriesKind::Line(points)
            | SeriesKind::Dashed(points)
            | SeriesKind::Markers(points, _)
            | SeriesKind::Points(points, _)
            | SeriesKind::Labelled(points, _, _)
            | SeriesKind::Flags(points) => points,
            SeriesKind::Band(_) => &[],
        }
    }
}

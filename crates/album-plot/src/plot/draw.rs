//! Drawing of plots.

use super::Plot;
use super::frame::{Frame, INSET};
use super::series::{FEW, Series, SeriesKind};
use crate::axis::Axis;
use crate::colour::{Ink, open_rule_group};
use crate::figure::Figure;
use crate::legend::{self, Corner, Key, Legend};
use crate::lettering::{self, Anchor, NORMAL, SMALL, TITLE};
use crate::occupancy::Occupancy;
use album_base::number::coordinate;

/// The resolved placement of the legend.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Nowhere,
    Top,
    Right,
    Inside(Corner),
}

impl Plot {
    /// Draws the plot.
    pub fn figure(&self) -> Figure {
        let keys: Vec<Key> = self.series.iter().filter(|s| !s.name.is_empty()).map(Series::key).collect();
        let mut place = match self.legend {
            Legend::Top => Place::Top,
            Legend::Right => Place::Right,
            Legend::Inside(corner) => Place::Inside(corner),
            Legend::Auto | Legend::Shared | Legend::Hidden => Place::Nowhere,
        };
        let mut frame = self.frame(place, &keys);
        let mut occupancy = self.occupancy(&frame);
        if self.legend == Legend::Auto && !keys.is_empty() {
            let corners = [Corner::TopRight, Corner::TopLeft, Corner::BottomRight, Corner::BottomLeft];
            let free = corners.into_iter().find(|corner| {
                let (x, y, width, height) = frame.corner_box(&keys, *corner);
                width < 0.6 * frame.width && occupancy.is_free(x, y, width, height)
            });
            place = free.map_or(Place::Top, Place::Inside);
            if place == Place::Top {
                frame = self.frame(place, &keys);
                occupancy = self.occupancy(&frame);
            }
        }
        let mut body = self.draw_axes(&frame);
        body.push_str(&self.draw_series(&frame));
        if let Place::Inside(corner) = place {
            let (x, y, width, height) = frame.corner_box(&keys, corner);
            occupancy.mark_box(x, y, width, height);
        }
        body.push_str(&self.draw_labels(&frame, &mut occupancy));
        body.push_str(&self.draw_legend(&frame, place, &keys));
        Figure {
            title: self.spoken_title(),
            width: self.width,
            height: self.height,
            body,
            shared: if self.legend == Legend::Shared { keys } else { Vec::new() },
        }
    }

    fn spoken_title(&self) -> String {
        if !self.title.is_empty() {
            return self.title.clone();
        }
        match (self.y.label.as_str(), self.x.label.as_str()) {
            (label, "") | ("", label) => label.to_string(),
            (y, x) => format!("{y} against {x}"),
        }
    }

    /// Determines the ranges, the axes and the rectangle they span.
    fn frame(&self, place: Place, keys: &[Key]) -> Frame {
        let x_range = self.x.resolve(self.series.iter().flat_map(Series::xs));
        let y_range = self.y.resolve(self.series.iter().flat_map(Series::ys));
        let title = if self.title.is_empty() { 10.0 } else { 30.0 };
        let bottom = 24.0 + if self.x.label.is_empty() { 0.0 } else { 20.0 };
        let right_legend =
            if place == Place::Right && !keys.is_empty() { legend::column_size(keys).0 + 14.0 } else { 0.0 };
        let settle = |legend_height: f64| {
            let top = title + legend_height;
            let height = (self.height - top - bottom).max(30.0);
            let y_target = (height / 52.0).round().max(2.0) as usize;
            let y = Axis::new(&self.y, y_range, height, y_target);
            let tick_width = y.ticks.iter().map(|t| lettering::width(&t.1, SMALL)).fold(0.0, f64::max);
            let left = 12.0 + tick_width + if self.y.label.is_empty() { 0.0 } else { 22.0 };
            let room = self.width - left - right_legend;
            let mut width = (room - 16.0).max(40.0);
            let mut x = self.x_axis(x_range, width);
            // The label of a tick near the right end may need more space than the margin has.
            let label_end =
                |(value, label): &(f64, String)| x.place(*value) + 0.5 * lettering::width(label, SMALL);
            let overhang = x.ticks.last().map_or(0.0, label_end) + 3.0 - room;
            if overhang > 0.0 {
                width = (width - overhang).max(40.0);
                x = self.x_axis(x_range, width);
            }
            Frame { left, top, width, height, x, y }
        };
        let frame = settle(0.0);
        if place != Place::Top || keys.is_empty() {
            return frame;
        }
        // The rows of a legend above depend on the width, which depends on the y labels, which depend on the
        // height: a second pass settles it.
        settle(legend::flow_height(keys, frame.width) + 6.0)
    }

    /// The x axis with as many ticks as there is space for labels.
    fn x_axis(&self, range: (f64, f64), width: f64) -> Axis {
        let mut target = (width / 75.0).round().max(2.0) as usize;
        loop {
            let axis = Axis::new(&self.x, range, width, target);
            let crowded = axis.ticks.windows(2).any(|pair| {
                let half = 0.5 * (lettering::width(&pair[0].1, SMALL) + lettering::width(&pair[1].1, SMALL));
                axis.place(pair[1].0) - axis.place(pair[0].0) < half + 14.0
            });
            if !crowded || target <= 2 || self.x.ticks.is_some() {
                return axis;
            }
            target -= 1;
        }
    }

    fn draw_axes(&self, frame: &Frame) -> String {
        let c = |v: f64| coordinate(v, 1);
        let (right, bottom) = (frame.left + frame.width, frame.top + frame.height);
        let mut lines = String::new();
        let mut labels = String::new();
        for (value, label) in &frame.y.ticks {
            let y = bottom - frame.y.place(*value);
            lines.push_str(&format!("M{} {}H{}", c(frame.left), c(y), c(right)));
            labels.push_str(&lettering::text(frame.left - 7.0, y + 4.0, SMALL, Anchor::End, label, ""));
        }
        let mut label_end = f64::NEG_INFINITY;
        for (value, label) in &frame.x.ticks {
            let x = frame.left + frame.x.place(*value);
            lines.push_str(&format!("M{} {}V{}", c(x), c(frame.top), c(bottom)));
            // Ticks set by the user may be closer than their labels are wide.
            let half = 0.5 * lettering::width(label, SMALL);
            if x - half > label_end {
                labels.push_str(&lettering::text(x, bottom + 17.0, SMALL, Anchor::Middle, label, ""));
                label_end = x + half + 4.0;
            }
        }
        let mut out = format!(
            "{}<path d=\"{lines}\" fill=\"none\" stroke=\"currentColor\"/></g>\n\
             {}<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"currentColor\"/></g>\n\
             <g class=\"album-ticks\" opacity=\".8\">{labels}</g>\n",
            open_rule_group(),
            Ink::Muted.open_group(),
            c(frame.left),
            c(frame.top),
            c(bottom),
            c(right)
        );
        let middle = frame.left + 0.5 * frame.width;
        if !self.x.label.is_empty() {
            out.push_str(&lettering::text(middle, bottom + 37.0, NORMAL, Anchor::Middle, &self.x.label, ""));
            out.push('\n');
        }
        if !self.y.label.is_empty() {
            let (x, y) = (15.0, frame.top + 0.5 * frame.height);
            let turn = format!(" transform=\"rotate(-90 {} {})\"", c(x), c(y));
            out.push_str(&lettering::text(x, y, NORMAL, Anchor::Middle, &self.y.label, &turn));
            out.push('\n');
        }
        if !self.title.is_empty() {
            let bold = " font-weight=\"600\"";
            // A title wider than the axes is centred on the whole figure instead.
            let wide = lettering::width(&self.title, TITLE) > frame.width;
            let x = if wide { 0.5 * self.width } else { middle };
            out.push_str(&lettering::text(x, 17.0, TITLE, Anchor::Middle, &self.title, bold));
            out.push('\n');
        }
        out
    }

    fn draw_series(&self, frame: &Frame) -> String {
        let is_band = |s: &&Series| matches!(s.kind, SeriesKind::Band(_));
        let is_flag = |s: &&Series| matches!(s.kind, SeriesKind::Flags(_));
        let others = self.series.iter().filter(|s| !is_band(s) && !is_flag(s));
        let ordered =
            self.series.iter().filter(is_band).chain(others).chain(self.series.iter().filter(is_flag));
        let mut out = String::new();
        // Lines are clipped to the frame and marks are not, so they go to different groups, which alternate
        // as needed to keep the order of the series.
        let mut lines = String::new();
        for series in ordered {
            lines.push_str(&series.draw_clipped(frame));
            let marks = series.draw_marks(frame);
            if !marks.is_empty() {
                out.push_str(&frame.clip(&std::mem::take(&mut lines)));
                let (x, y) = (coordinate(frame.left, 1), coordinate(frame.top, 1));
                out.push_str(&format!("<g transform=\"translate({x} {y})\">\n{marks}</g>\n"));
            }
        }
        out.push_str(&frame.clip(&lines));
        out
    }

    /// The ink of the series, in pixels of the frame.
    fn occupancy(&self, frame: &Frame) -> Occupancy {
        let mut map = Occupancy::new(frame.width, frame.height);
        for series in &self.series {
            match &series.kind {
                SeriesKind::Line(points) | SeriesKind::Dashed(points) | SeriesKind::Markers(points, _) => {
                    for run in frame.runs(points) {
                        for pair in run.windows(2) {
                            map.mark_segment(pair[0], pair[1]);
                        }
                        run.iter().for_each(|p| map.mark_box(p.0 - 2.0, p.1 - 2.0, 4.0, 4.0));
                    }
                }
                SeriesKind::Points(points, _)
                | SeriesKind::Labelled(points, _, _)
                | SeriesKind::Flags(points) => {
                    let half = if points.len() <= FEW { 3.0 } else { 1.5 };
                    for p in points.iter().filter_map(|p| frame.pixel(*p)) {
                        map.mark_box(p.0 - half, p.1 - half, 2.0 * half, 2.0 * half);
                    }
                }
                SeriesKind::Band(edges) => {
                    for run in frame.band_runs(edges) {
                        for pair in run.windows(2) {
                            let steps = (pair[1].0 - pair[0].0).abs().clamp(1.0, 2000.0).ceil() as usize;
                            for i in 0..=steps {
                                let t = i as f64 / steps as f64;
                                let between = |a: f64, b: f64| a + t * (b - a);
                                let x = between(pair[0].0, pair[1].0);
                                map.mark_segment(
                                    (x, between(pair[0].1, pair[1].1)),
                                    (x, between(pair[0].2, pair[1].2)),
                                );
                            }
                        }
                    }
                }
            }
        }
        map
    }

    fn draw_labels(&self, frame: &Frame, occupancy: &mut Occupancy) -> String {
        const HEIGHT: f64 = 13.0;
        const GAP: f64 = 7.0;
        let mut out = String::new();
        for series in &self.series {
            let SeriesKind::Labelled(points, labels, _) = &series.kind else { continue };
            for (point, label) in points.iter().zip(labels) {
                let Some((x, y)) = frame.pixel(*point).filter(|p| frame.shows(*p)) else { continue };
                if label.is_empty() {
                    continue;
                }
                let width = lettering::width(label, SMALL);
                let (right, left, middle) = (x + GAP, x - GAP - width, x - 0.5 * width);
                let (above, below, level) = (y - GAP - HEIGHT, y + GAP, y - 0.5 * HEIGHT);
                let places = [
                    (right, level),
                    (left, level),
                    (middle, above),
                    (middle, below),
                    (right, above),
                    (right, below),
                    (left, above),
                    (left, below),
                ];
                let free = places.iter().find(|p| occupancy.is_free(p.0, p.1, width, HEIGHT));
                // If there is no free space, overlapping is better than omitting the label; but it stays
                // inside the figure.
                let (lx, ly) = free.copied().unwrap_or((right.min(frame.width - width).max(0.0), above));
                occupancy.mark_box(lx, ly, width, HEIGHT);
                out.push_str(&lettering::text(
                    frame.left + lx,
                    frame.top + ly + 10.5,
                    SMALL,
                    Anchor::Start,
                    label,
                    "",
                ));
                out.push('\n');
            }
        }
        out
    }

    fn draw_legend(&self, frame: &Frame, place: Place, keys: &[Key]) -> String {
        if keys.is_empty() {
            return String::new();
        }
        match place {
            Place::Nowhere => String::new(),
            Place::Top => {
                let y = if self.title.is_empty() { 2.0 } else { 24.0 };
                legend::draw_flow(keys, frame.left, y, frame.width)
            }
            Place::Right => {
                let x = frame.left + frame.width + 14.0;
                legend::draw_column(keys, x, frame.top)
            }
            Place::Inside(corner) => {
                let (x, y, width, height) = frame.corner_box(keys, corner);
                let (x, y) = (frame.left + x, frame.top + y);
                let c = |v: f64| coordinate(v, 1);
                // Grid lines, and data if the corner was forced, must not run through the text.
                let paper = format!(
                    "{}<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"#fff\" \
                     fill-opacity=\".9\" stroke=\"currentColor\" style=\"fill:var(--album-paper,#fff)\"/></g>\n",
                    open_rule_group(),
                    c(x),
                    c(y),
                    c(width),
                    c(height)
                );
                paper + &legend::draw_column(keys, x + INSET, y + INSET)
            }
        }
    }
}

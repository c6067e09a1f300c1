//! Plots of series over two axes.

mod frame;
mod series;

use super::axis::{Axis, AxisSpec, Scale};
use super::colour::{Ink, open_rule_group};
use super::figure::Figure;
use super::legend::{self, Corner, Key, Legend, Shape};
use super::lettering::{self, Anchor, NORMAL, SMALL, TITLE};
use super::occupancy::Occupancy;
use album_base::number::coordinate;
use frame::{Frame, INSET};
use series::{FEW, Kind, Series};

/// A plot, built series by series.
///
/// Values that are not finite break a line and are otherwise left out, and so are values that
/// are not positive on a logarithmic axis. Series with many points are thinned to what the
/// screen can show, without losing extremes. Text may use `_{…}` and `^{…}`; a series with an
/// empty name has no entry in the legend, and one without points has nothing but that entry.
///
/// ```
/// use album_plot::{Plot, Scale};
/// let svg = Plot::new("Speedup")
///     .x_label("K")
///     .x_scale(Scale::Log)
///     .x_ticks(&[1.0, 2.0, 4.0, 8.0])
///     .y_include(0.0)
///     .markers("measured", &[(1.0, 1.0), (2.0, 1.9), (4.0, 3.6), (8.0, f64::NAN)])
///     .render();
/// assert!(svg.starts_with("<svg") && !svg.contains("NaN"));
/// ```
#[derive(Clone, Debug)]
pub struct Plot {
    title: String,
    x: AxisSpec,
    y: AxisSpec,
    width: f64,
    height: f64,
    legend: Legend,
    series: Vec<Series>,
    /// How many series have taken a colour from the palette.
    coloured: usize,
}

impl Plot {
    /// An empty plot. An empty title takes no room.
    pub fn new(title: impl Into<String>) -> Self {
        Plot {
            title: title.into(),
            x: AxisSpec::default(),
            y: AxisSpec::default(),
            width: 720.0,
            height: 400.0,
            legend: Legend::Auto,
            series: Vec::new(),
            coloured: 0,
        }
    }

    /// Sets the size of the whole figure in pixels (720 by 400 unless told).
    pub fn size(mut self, width: f64, height: f64) -> Self {
        // Smaller figures would have no room for their axes.
        let sane = |v: f64, least: f64| if v.is_finite() { v.clamp(least, 1e4) } else { least };
        (self.width, self.height) = (sane(width, 120.0), sane(height, 90.0));
        self
    }

    /// Sets the label of the x axis.
    pub fn x_label(mut self, label: impl Into<String>) -> Self {
        self.x.label = label.into();
        self
    }

    /// Sets the label of the y axis.
    pub fn y_label(mut self, label: impl Into<String>) -> Self {
        self.y.label = label.into();
        self
    }

    /// Sets the scale of the x axis.
    pub fn x_scale(mut self, scale: Scale) -> Self {
        self.x.scale = scale;
        self
    }

    /// Sets the scale of the y axis.
    pub fn y_scale(mut self, scale: Scale) -> Self {
        self.y.scale = scale;
        self
    }

    /// Sets the range of the x axis; data beyond it is cut off.
    pub fn x_range(mut self, lo: f64, hi: f64) -> Self {
        self.x.range = Some((lo, hi));
        self
    }

    /// Sets the range of the y axis; data beyond it is cut off.
    pub fn y_range(mut self, lo: f64, hi: f64) -> Self {
        self.y.range = Some((lo, hi));
        self
    }

    /// Makes the automatic range of the x axis contain a value.
    pub fn x_include(mut self, value: f64) -> Self {
        self.x.include.push(value);
        self
    }

    /// Makes the automatic range of the y axis contain a value, such as zero.
    pub fn y_include(mut self, value: f64) -> Self {
        self.y.include.push(value);
        self
    }

    /// Sets the ticks of the x axis by hand.
    pub fn x_ticks(mut self, ticks: &[f64]) -> Self {
        self.x.ticks = Some(ticks.to_vec());
        self
    }

    /// Sets the ticks of the y axis by hand.
    pub fn y_ticks(mut self, ticks: &[f64]) -> Self {
        self.y.ticks = Some(ticks.to_vec());
        self
    }

    /// Makes the y axis one of names instead of numbers: the first is at `y` = 0, at the top, the next at 1.
    ///
    /// ```
    /// use album_plot::Plot;
    /// let svg = Plot::new("").y_names(["one", "two"]).points("", &[(3.0, 0.0), (5.0, 1.0)]).render();
    /// assert!(svg.contains(">one<") && svg.contains(">two<"));
    /// ```
    pub fn y_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.y.range = Some((-0.6, names.len() as f64 - 0.4));
        self.y.names = Some(names);
        self
    }

    /// Sets where the legend goes.
    pub fn legend(mut self, legend: Legend) -> Self {
        self.legend = legend;
        self
    }

    /// Adds a line.
    pub fn line(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        self.add(name, Kind::Line(points.to_vec()))
    }

    /// Adds a dashed line, as for references and bounds.
    pub fn dashed(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        self.add(name, Kind::Dashed(points.to_vec()))
    }

    /// Adds a line with a marker at every point.
    pub fn markers(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let shape = Shape::of(self.coloured);
        self.add(name, Kind::Markers(points.to_vec(), shape))
    }

    /// Adds points without a line: markers if they are few, dots if they are many.
    pub fn points(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let shape = Shape::of(self.coloured);
        self.add(name, Kind::Points(points.to_vec(), shape))
    }

    /// Adds points with a label at each, placed beside the data where there is room.
    pub fn labelled<S: AsRef<str>>(self, name: impl Into<String>, points: &[(f64, f64, S)]) -> Self {
        let shape = Shape::of(self.coloured);
        let places = points.iter().map(|p| (p.0, p.1)).collect();
        let labels = points.iter().map(|p| p.2.as_ref().to_string()).collect();
        self.add(name, Kind::Labelled(places, labels, shape))
    }

    /// Adds a band between two lines given at the same x, as for confidence intervals.
    ///
    /// The x values are those of `lower`; points without a partner are left out.
    pub fn band(self, name: impl Into<String>, lower: &[(f64, f64)], upper: &[(f64, f64)]) -> Self {
        let edge = |(l, u): (&(f64, f64), &(f64, f64))| {
            // `min` and `max` would swallow a NaN on one side; the band must break there.
            if l.1.is_nan() || u.1.is_nan() {
                (l.0, f64::NAN, f64::NAN)
            } else {
                (l.0, l.1.min(u.1), l.1.max(u.1))
            }
        };
        let edges = lower.iter().zip(upper).map(edge).collect();
        self.add(name, Kind::Band(edges))
    }

    /// Marks points that must catch the eye, such as violated inequalities, with red rings on
    /// top of everything. The legend says how many there are, also if there are none.
    pub fn flags(self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let mut plot = self.add(name, Kind::Flags(points.to_vec()));
        plot.coloured -= 1;
        plot.ink(Ink::Bad)
    }

    /// Sets the colour of the last series.
    pub fn ink(mut self, ink: Ink) -> Self {
        if let Some(last) = self.series.last_mut() {
            last.ink = ink;
        }
        self
    }

    /// Gives the last series the colour of the one before it, as for a band around a line.
    pub fn same_ink(mut self) -> Self {
        if let [.., before, last] = &mut self.series[..] {
            let next = Ink::Series(self.coloured.wrapping_sub(1));
            if last.ink == next && before.ink != next {
                self.coloured -= 1;
            }
            last.ink = before.ink;
        }
        self
    }

    fn add(mut self, name: impl Into<String>, kind: Kind) -> Self {
        self.series.push(Series { name: name.into(), ink: Ink::Series(self.coloured), kind });
        self.coloured += 1;
        self
    }

    /// The plot as one `<svg>` element.
    pub fn render(&self) -> String {
        self.figure().render()
    }

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
        let or =
            |label: &str, other: &str| if label.is_empty() { other.to_string() } else { label.to_string() };
        format!("{} against {}", or(&self.y.label, "y"), or(&self.x.label, "x"))
    }

    /// Settles the ranges, the axes and the rectangle they span.
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
            // The label of a tick near the right end may need more room than the margin has.
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
        // The rows of a legend above depend on the width, which depends on the y labels, which
        // depend on the height: a second round settles it.
        settle(legend::flow_height(keys, frame.width) + 6.0)
    }

    /// The x axis with as many ticks as have room for their labels.
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
            // Ticks set by hand may be closer than their labels are wide.
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
        let is_band = |s: &&Series| matches!(s.kind, Kind::Band(_));
        let is_flag = |s: &&Series| matches!(s.kind, Kind::Flags(_));
        let others = self.series.iter().filter(|s| !is_band(s) && !is_flag(s));
        let ordered =
            self.series.iter().filter(is_band).chain(others).chain(self.series.iter().filter(is_flag));
        let mut out = String::new();
        // Lines are clipped to the frame and marks are not, so they go to different groups,
        // which alternate as needed to keep the order in which the series were added.
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

    /// Where the series have ink, in pixels of the frame.
    fn occupancy(&self, frame: &Frame) -> Occupancy {
        let mut map = Occupancy::new(frame.width, frame.height);
        for series in &self.series {
            match &series.kind {
                Kind::Line(points) | Kind::Dashed(points) | Kind::Markers(points, _) => {
                    for run in frame.runs(points) {
                        for pair in run.windows(2) {
                            map.mark_segment(pair[0], pair[1]);
                        }
                        run.iter().for_each(|p| map.mark_box(p.0 - 2.0, p.1 - 2.0, 4.0, 4.0));
                    }
                }
                Kind::Points(points, _) | Kind::Labelled(points, _, _) | Kind::Flags(points) => {
                    let half = if points.len() <= FEW { 3.0 } else { 1.5 };
                    for p in points.iter().filter_map(|p| frame.pixel(*p)) {
                        map.mark_box(p.0 - half, p.1 - half, 2.0 * half, 2.0 * half);
                    }
                }
                Kind::Band(edges) => {
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
            let Kind::Labelled(points, labels, _) = &series.kind else { continue };
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
                // With no free place at all, overlapping is better than leaving the label out;
                // but it stays inside the figure.
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

impl From<Plot> for Figure {
    fn from(plot: Plot) -> Self {
        plot.figure()
    }
}

impl From<&Plot> for Figure {
    fn from(plot: &Plot) -> Self {
        plot.figure()
    }
}

/// Where the legend ended up.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Nowhere,
    Top,
    Right,
    Inside(Corner),
}

//! Drawing of maps.

use super::super::axis::{Axis, AxisSpec, Scale, ticks};
use super::super::colour::{Colour, ColourMap, Ink};
use super::super::legend::{self, Key, Sample};
use super::super::lettering::{self, Anchor, NORMAL, SMALL, TITLE};
use super::{Category, Cells, Grid, Path};
use album_base::number::coordinate;
use std::collections::BTreeMap;

/// Width of the colour bar and its distance from the map.
const BAR: f64 = 14.0;
const BAR_GAP: f64 = 16.0;

#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Top left corner of the map.
    pub x: f64,
    pub y: f64,
    /// Side length of a cell in pixels.
    pub cell: f64,
    pub map_width: f64,
    pub map_height: f64,
    /// Size of the whole figure.
    pub width: f64,
    pub height: f64,
    pub legend_y: f64,
}

/// Colours of paths: first those of the palette that stand out from viridis.
pub(super) const PATHS: [Colour; 5] = [
    Colour::rgb(0xd5, 0x5e, 0x00),
    Colour::rgb(0x00, 0x72, 0xb2),
    Colour::rgb(0xb8, 0x55, 0x8d),
    Colour::rgb(0x22, 0x22, 0x22),
    Colour::rgb(0xd1, 0x8f, 0x00),
];

/// Covers the map with rectangles of one colour: runs within a row, extended downwards while the rows below
/// have the same run. Yields colour, column, row, width and height.
pub(super) fn rectangles(
    colours: &[Colour],
    columns: usize,
    rows: usize,
) -> Vec<(Colour, usize, usize, usize, usize)> {
    let mut done = vec![false; columns * rows];
    let mut out = Vec::new();
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            let start = row * columns + column;
            if done[start] {
                column += 1;
                continue;
            }
            let colour = colours[start];
            let open = |i: usize| !done[i] && colours[i] == colour;
            let width = (column..columns).take_while(|c| open(row * columns + c)).count();
            let height =
                (row..rows).take_while(|r| (column..column + width).all(|c| open(r * columns + c))).count();
            for r in row..row + height {
                done[r * columns + column..r * columns + column + width].fill(true);
            }
            out.push((colour, column, row, width, height));
            column += width;
        }
    }
    out
}

impl Grid {
    pub(super) fn value_range(&self) -> (f64, f64) {
        let Cells::Values { values, map, range, .. } = &self.cells else { return (0.0, 1.0) };
        if let Some(range) = range {
            return *range;
        }
        let spec = AxisSpec::default();
        let finite = || values.iter().copied().filter(|v| Scale::Linear.accepts(*v));
        if *map == ColourMap::Diverging {
            let most = finite().fold(0.0f64, |m, v| m.max(v.abs()));
            return if most > 0.0 { (-most, most) } else { (-1.0, 1.0) };
        }
        let lo = finite().fold(f64::INFINITY, f64::min);
        let hi = finite().fold(f64::NEG_INFINITY, f64::max);
        if lo < hi { (lo, hi) } else { spec.resolve(finite()) }
    }

    pub(super) fn colours(&self) -> Vec<Colour> {
        match &self.cells {
            Cells::Values { values, map, missing, .. } => {
                let (lo, hi) = self.value_range();
                let colour = |v: &f64| {
                    if !v.is_finite() {
                        return missing.colour;
                    }
                    // 256 shades are indistinguishable from more, and let equal ones merge.
                    let t = ((v - lo) / (hi - lo)).clamp(0.0, 1.0);
                    map.at((t * 255.0).round() / 255.0)
                };
                values.iter().map(colour).collect()
            }
            Cells::Kinds { kinds, categories } => {
                kinds.iter().map(|k| categories.get(*k).map_or(Colour::GREY, |c| c.colour)).collect()
            }
        }
    }

    fn keys(&self) -> Vec<Key> {
        let cell = |c: &Category| Key {
            name: c.name.clone(),
            ink: Ink::Muted,
            sample: Sample::Cell(c.colour),
            count: None,
        };
        let mut keys: Vec<Key> = match &self.cells {
            Cells::Values { missing, .. } => vec![cell(missing)],
            Cells::Kinds { categories, .. } => categories.iter().map(cell).collect(),
        };
        let line = |path: &Path| Key {
            name: path.name.clone(),
            ink: Ink::Muted,
            sample: Sample::Path(path.colour),
            count: None,
        };
        keys.extend(self.paths.iter().map(line));
        keys.retain(|key| !key.name.is_empty());
        keys
    }

    pub(super) fn layout(&self) -> Layout {
        let cell = self.size / self.columns.max(self.rows) as f64;
        let (map_width, map_height) = (cell * self.columns as f64, cell * self.rows as f64);
        let row_numbers = lettering::width(&(self.origin.1 + self.rows).to_string(), SMALL);
        let x = if self.coordinates { row_numbers + 10.0 } else { 2.0 };
        let y = if self.title.is_empty() { 8.0 } else { 28.0 };
        let bar = match &self.cells {
            Cells::Values { bar: Some(label), .. } => {
                let axis = self.bar_axis(map_height);
                let ticks = axis.ticks.iter().map(|t| lettering::width(&t.1, SMALL)).fold(0.0, f64::max);
                BAR_GAP + BAR + 7.0 + ticks + if label.is_empty() { 0.0 } else { 22.0 }
            }
            _ => 0.0,
        };
        let width = x + map_width + 2.0 + bar + if self.coordinates { 4.0 } else { 0.0 };
        let below = if self.coordinates { 22.0 } else { 4.0 };
        let legend = legend::flow_height(&self.keys(), width - x);
        let legend_y = y + map_height + below + 4.0;
        let height = if legend > 0.0 { legend_y + legend + 2.0 } else { y + map_height + below };
        Layout { x, y, cell, map_width, map_height, width, height, legend_y }
    }

    fn bar_axis(&self, height: f64) -> Axis {
        let target = (height / 45.0).round().max(2.0) as usize;
        Axis::new(&AxisSpec::default(), self.value_range(), height, target)
    }

    pub(super) fn draw(&self, layout: &Layout, with_legend: bool) -> String {
        let c = |v: f64| coordinate(v, 2);
        let Layout { x, y, cell, map_width, map_height, .. } = *layout;
        let mut out = String::new();
        if !self.title.trim().is_empty() {
            let bold = " font-weight=\"600\"";
            out.push_str(&lettering::text(
                x + 0.5 * map_width,
                17.0,
                TITLE,
                Anchor::Middle,
                &self.title,
                bold,
            ));
            out.push('\n');
        }
        // Cells are drawn in cell units and scaled, which keeps the path data short.
        out.push_str(&format!(
            "<g transform=\"translate({} {}) scale({})\" shape-rendering=\"crispEdges\">\n{}</g>\n",
            c(x),
            c(y),
            coordinate(cell, 4),
            self.draw_cells()
        ));
        if self.cell_lines {
            let mut d = String::new();
            for column in 1..self.columns {
                d.push_str(&format!("M{} {}v{}", c(x + column as f64 * cell), c(y), c(map_height)));
            }
            for row in 1..self.rows {
                d.push_str(&format!("M{} {}h{}", c(x), c(y + row as f64 * cell), c(map_width)));
            }
            out.push_str(&format!(
                "<path d=\"{d}\" fill=\"none\" stroke=\"#000\" stroke-opacity=\".18\" stroke-width=\".75\"/>\n"
            ));
        }
        out.push_str(&format!(
            "{}<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"currentColor\"/></g>\n",
            Ink::Muted.open_group(),
            c(x),
            c(y),
            c(map_width),
            c(map_height)
        ));
        out.push_str(&self.draw_overlays(layout));
        if self.coordinates {
            out.push_str(&self.draw_coordinates(layout));
        }
        if let Cells::Values { bar: Some(label), map, .. } = &self.cells {
            out.push_str(&self.draw_bar(layout, *map, label));
        }
        if with_legend {
            out.push_str(&legend::draw_flow(&self.keys(), x, layout.legend_y, layout.width - x));
        }
        out
    }

    /// One rectangle in the most frequent colour, and one path per other colour.
    fn draw_cells(&self) -> String {
        let colours = self.colours();
        let mut counts: BTreeMap<Colour, usize> = BTreeMap::new();
        for colour in &colours {
            *counts.entry(*colour).or_default() += 1;
        }
        let ground =
            counts.iter().max_by_key(|(_, count)| **count).map_or(Colour::WHITE, |(colour, _)| *colour);
        let mut paths: BTreeMap<Colour, String> = BTreeMap::new();
        for (colour, column, row, width, height) in rectangles(&colours, self.columns, self.rows) {
            if colour != ground {
                let row = if self.y_up { self.rows - row - height } else { row };
                let d = paths.entry(colour).or_default();
                d.push_str(&format!("M{column} {row}h{width}v{height}h-{width}z"));
            }
        }
        let mut out = format!(
            "<rect width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
            self.columns,
            self.rows,
            ground.hex()
        );
        for (colour, d) in paths {
            out.push_str(&format!("<path d=\"{d}\" fill=\"{}\"/>\n", colour.hex()));
        }
        out
    }

    fn draw_overlays(&self, layout: &Layout) -> String {
        let c = |v: f64| coordinate(v, 1);
        let Layout { x, y, cell, map_width, map_height, .. } = *layout;
        let flip = |row: f64| if self.y_up { self.rows as f64 - row } else { row };
        let mut out = String::new();

        let mut paths = String::new();
        for Path { name, colour, points } in &self.paths {
            let pixels: Vec<Option<(f64, f64)>> = points
                .iter()
                .map(|p| (p.0.is_finite() && p.1.is_finite()).then(|| (p.0 * cell, flip(p.1) * cell)))
                .collect();
            let mut d = String::new();
            let mut before = None;
            for pixel in &pixels {
                // Half a pixel is invisible, and a slow trajectory has many such steps.
                let place = pixel.map(|p| (c((2.0 * p.0).round() / 2.0), c((2.0 * p.1).round() / 2.0)));
                if let Some((px, py)) = &place
                    && place != before
                {
                    d.push_str(&format!("{}{px} {py}", if before.is_some() { "L" } else { "M" }));
                }
                before = place;
            }
            if d.is_empty() {
                continue;
            }
            let title = if name.is_empty() { String::new() } else { lettering::title(name) };
            let round = "fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\"";
            paths.push_str(&format!(
                "<g color=\"{}\">{title}<path d=\"{d}\" {round} stroke=\"#fff\" stroke-width=\"4.5\" stroke-opacity=\".8\"/>\
                 <path d=\"{d}\" {round} stroke=\"currentColor\" stroke-width=\"2.2\"/>",
                colour.hex()
            ));
            let ends = (pixels.iter().flatten().next(), pixels.iter().flatten().next_back());
            if let (Some(first), Some(last)) = ends {
                paths.push_str(&format!(
                    "<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"#fff\" stroke=\"currentColor\" stroke-width=\"2\"/>\
                     <circle cx=\"{}\" cy=\"{}\" r=\"4.5\" fill=\"currentColor\" stroke=\"#fff\"/>",
                    c(first.0),
                    c(first.1),
                    c(last.0),
                    c(last.1)
                ));
            }
            paths.push_str("</g>\n");
        }
        if !paths.is_empty() {
            let (w, h) = (c(map_width), c(map_height));
            out.push_str(&format!(
                "<svg x=\"{}\" y=\"{}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" overflow=\"hidden\">\n{paths}</svg>\n",
                c(x),
                c(y)
            ));
        }

        for (column, row, columns, rows) in &self.outlines {
            let top = if self.y_up { self.rows as f64 - (row + rows) as f64 } else { *row as f64 };
            for (colour, width) in [("#fff", "4"), ("#222", "2")] {
                out.push_str(&format!(
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n",
                    c(x + *column as f64 * cell),
                    c(y + top * cell),
                    c(*columns as f64 * cell),
                    c(*rows as f64 * cell)
                ));
            }
        }

        let size = (0.7 * cell).clamp(12.0, 16.0);
        for (column, row, label) in &self.labels {
            if *column >= self.columns || *row >= self.rows {
                continue;
            }
            // On small cells the text is larger than its cell, but stays within the map.
            let half = 0.5 * lettering::width(label, size) + 2.0;
            let within = |v: f64, room: f64, length: f64| {
                if length > 2.0 * room { v.clamp(room, length - room) } else { 0.5 * length }
            };
            let px = within((*column as f64 + 0.5) * cell, half, map_width);
            let py = within(flip(*row as f64 + 0.5) * cell, 0.55 * size, map_height);
            let halo = " font-weight=\"700\" fill=\"#111\" stroke=\"#fff\" stroke-width=\"3\" \
                        stroke-linejoin=\"round\" paint-order=\"stroke\"";
            out.push_str(&lettering::text(x + px, y + py + 0.36 * size, size, Anchor::Middle, label, halo));
            out.push('\n');
        }
        out
    }

    fn draw_coordinates(&self, layout: &Layout) -> String {
        let Layout { x, y, cell, map_width, map_height, .. } = *layout;
        let mut labels = String::new();
        let numbers = |first: usize, count: usize, length: f64, room: f64| {
            // Numbers are at the centres of their cells, so the last one is `count - 1`.
            let target = (length / room).round().max(2.0) as usize;
            let (lo, hi) = (first as f64, (first + count) as f64 - 0.5);
            ticks(Scale::Linear, lo, hi, target).into_iter().filter(|t| t.fract() == 0.0)
        };
        for t in numbers(self.origin.0, self.columns, map_width, 40.0) {
            let px = x + (t - self.origin.0 as f64 + 0.5) * cell;
            labels.push_str(&lettering::text(
                px,
                y + map_height + 15.0,
                SMALL,
                Anchor::Middle,
                &t.to_string(),
                "",
            ));
        }
        for t in numbers(self.origin.1, self.rows, map_height, 40.0) {
            let row = t - self.origin.1 as f64 + 0.5;
            let py = y + cell * if self.y_up { self.rows as f64 - row } else { row };
            labels.push_str(&lettering::text(x - 6.0, py + 4.0, SMALL, Anchor::End, &t.to_string(), ""));
        }
        format!("<g class=\"album-ticks\" opacity=\".8\">{labels}</g>\n")
    }

    fn draw_bar(&self, layout: &Layout, map: ColourMap, label: &str) -> String {
        const STEPS: usize = 64;
        let c = |v: f64| coordinate(v, 2);
        let (x, y, height) = (layout.x + layout.map_width + BAR_GAP, layout.y, layout.map_height);
        // A gradient would need an id; steps this fine look the same. Each step extends below the next one,
        // so that no seam shows.
        let mut out = String::from("<g shape-rendering=\"crispEdges\">");
        for i in 0..STEPS {
            let top = y + height * i as f64 / STEPS as f64;
            let colour = map.at(1.0 - (i as f64 + 0.5) / STEPS as f64);
            out.push_str(&format!(
                "<path d=\"M{} {}h{BAR}V{}h-{BAR}z\" fill=\"{}\"/>",
                c(x),
                c(top),
                c(y + height),
                colour.hex()
            ));
        }
        out.push_str("</g>\n");
        let axis = self.bar_axis(height);
        let mut marks = String::new();
        let mut labels = String::new();
        for (value, text) in &axis.ticks {
            let py = y + height - axis.place(*value);
            marks.push_str(&format!("M{} {}h4", c(x + BAR), c(py)));
            labels.push_str(&lettering::text(x + BAR + 7.0, py + 4.0, SMALL, Anchor::Start, text, ""));
        }
        out.push_str(&format!(
            "{}<rect x=\"{}\" y=\"{}\" width=\"{BAR}\" height=\"{}\" fill=\"none\" stroke=\"currentColor\"/>\
             <path d=\"{marks}\" fill=\"none\" stroke=\"currentColor\"/></g>\n\
             <g class=\"album-ticks\" opacity=\".8\">{labels}</g>\n",
            Ink::Muted.open_group(),
            c(x),
            c(y),
            c(height)
        ));
        if !label.is_empty() {
            let (px, py) = (layout.width - 6.0, y + 0.5 * height);
            let turn = format!(" transform=\"rotate(-90 {} {})\"", coordinate(px, 1), coordinate(py, 1));
            out.push_str(&lettering::text(px, py, NORMAL, Anchor::Middle, label, &turn));
            out.push('\n');
        }
        out
    }
}

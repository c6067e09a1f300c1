//! Maps of cells: heat maps and categories, with labels, outlines and paths on top.

use std::collections::BTreeMap;

use super::axis::{Axis, AxisSpec, Scale, ticks};
use super::colour::{Colour, ColourMap, Ink};
use super::figure::Figure;
use super::legend::{self, Key, Sample};
use super::lettering::{self, Anchor, NORMAL, SMALL, TITLE};
use crate::number::coordinate;

/// A kind of cell: its name in the legend (none if empty) and its colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Category {
    /// The name in the legend.
    pub name: String,
    /// The colour of the cells.
    pub colour: Colour,
}

impl Category {
    /// A kind of cell.
    pub fn new(name: impl Into<String>, colour: Colour) -> Self {
        Category { name: name.into(), colour }
    }
}

/// A map of `width` by `height` cells.
///
/// Cells are given row by row. Overlays use cell coordinates: the cell in column `c` and row
/// `r` covers the square from `(c, r)` to `(c + 1, r + 1)`, so its centre is at
/// `(c + 0.5, r + 0.5)`. Row 0 is at the top unless [`Grid::y_up`] says otherwise.
///
/// Cells keep their colours in dark mode, since the colours carry the data; lines and labels
/// on top have an outline that sets them off from any colour.
///
/// ```
/// use album_report::svg::{Category, Colour, Grid};
/// let ground = [Category::new("dry", Colour::WHITE), Category::new("mud", Colour::BROWN)];
/// let cells: Vec<usize> = (0..100).map(|i| usize::from(i % 7 == 0)).collect();
/// let svg = Grid::categories(10, 10, &cells, &ground)
///     .label(0, 0, "S")
///     .label(9, 9, "G")
///     .outline(0, 0, 4, 4)
///     .render();
/// assert!(svg.contains("#9c6b3f"));
/// ```
#[derive(Clone, Debug)]
pub struct Grid {
    title: String,
    columns: usize,
    rows: usize,
    cells: Cells,
    size: f64,
    y_up: bool,
    coordinates: bool,
    cell_lines: bool,
    /// The column and row that the top left cell has in the map this one was cut from.
    origin: (usize, usize),
    labels: Vec<(usize, usize, String)>,
    outlines: Vec<(usize, usize, usize, usize)>,
    paths: Vec<Path>,
}

/// A path over the map. Its colour is fixed, as those of the cells below it are.
#[derive(Clone, Debug)]
struct Path {
    name: String,
    colour: Colour,
    points: Vec<(f64, f64)>,
}

#[derive(Clone, Debug)]
enum Cells {
    Values {
        values: Vec<f64>,
        map: ColourMap,
        range: Option<(f64, f64)>,
        bar: Option<String>,
        missing: Category,
    },
    Kinds {
        kinds: Vec<usize>,
        categories: Vec<Category>,
    },
}

impl Grid {
    /// A heat map. Values that are not finite are shown as missing, in grey; values that are
    /// absent at the end of the slice count as missing too.
    pub fn values(columns: usize, rows: usize, values: &[f64]) -> Self {
        let (columns, rows) = (columns.max(1), rows.max(1));
        let mut values = values.to_vec();
        values.resize(columns * rows, f64::NAN);
        let missing = Category::new("", Colour::GREY);
        Self::new(
            columns,
            rows,
            Cells::Values { values, map: ColourMap::Viridis, range: None, bar: None, missing },
        )
    }

    /// A map of categories: each cell is an index into `categories`. Cells whose index has no
    /// category are grey.
    pub fn categories(columns: usize, rows: usize, kinds: &[usize], categories: &[Category]) -> Self {
        let (columns, rows) = (columns.max(1), rows.max(1));
        let mut kinds = kinds.to_vec();
        kinds.resize(columns * rows, usize::MAX);
        Self::new(columns, rows, Cells::Kinds { kinds, categories: categories.to_vec() })
    }

    fn new(columns: usize, rows: usize, cells: Cells) -> Self {
        Grid {
            title: String::new(),
            columns,
            rows,
            cells,
            size: 400.0,
            y_up: false,
            coordinates: false,
            cell_lines: false,
            origin: (0, 0),
            labels: Vec::new(),
            outlines: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Sets the title.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets the length of the longer side of the map in pixels (400 unless told).
    pub fn size(mut self, pixels: f64) -> Self {
        self.size = if pixels.is_finite() { pixels.clamp(40.0, 4000.0) } else { 400.0 };
        self
    }

    /// Draws row 0 at the bottom.
    pub fn y_up(mut self) -> Self {
        self.y_up = true;
        self
    }

    /// Shows column and row numbers along the map.
    pub fn coordinates(mut self) -> Self {
        self.coordinates = true;
        self
    }

    /// Draws thin lines between the cells.
    pub fn cell_lines(mut self) -> Self {
        self.cell_lines = true;
        self
    }

    /// Sets the colour map of a heat map.
    pub fn colour_map(mut self, chosen: ColourMap) -> Self {
        if let Cells::Values { map, .. } = &mut self.cells {
            *map = chosen;
        }
        self
    }

    /// Sets the values at the ends of the colour map. Unless told, they are the least and the
    /// greatest value, or for [`ColourMap::Diverging`] lie evenly around zero.
    pub fn range(mut self, lo: f64, hi: f64) -> Self {
        if let Cells::Values { range, .. } = &mut self.cells
            && lo.is_finite()
            && hi.is_finite()
            && lo < hi
        {
            *range = Some((lo, hi));
        }
        self
    }

    /// Shows the colour map of a heat map beside it, with a label.
    pub fn colour_bar(mut self, label: impl Into<String>) -> Self {
        if let Cells::Values { bar, .. } = &mut self.cells {
            *bar = Some(label.into());
        }
        self
    }

    /// Names what missing values of a heat map are, such as walls, and sets their colour.
    pub fn missing(mut self, name: impl Into<String>, colour: Colour) -> Self {
        if let Cells::Values { missing, .. } = &mut self.cells {
            *missing = Category::new(name, colour);
        }
        self
    }

    /// Writes text at the centre of a cell.
    pub fn label(mut self, column: usize, row: usize, text: impl Into<String>) -> Self {
        self.labels.push((column, row, text.into()));
        self
    }

    /// Outlines a rectangle of cells.
    pub fn outline(mut self, column: usize, row: usize, columns: usize, rows: usize) -> Self {
        self.outlines.push((column, row, columns, rows));
        self
    }

    /// Draws a path in cell coordinates, from an open to a filled circle. Paths with a name
    /// appear in the legend; points that are not finite break the path.
    pub fn polyline(mut self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let colour = PATHS[self.paths.len() % PATHS.len()];
        self.paths.push(Path { name: name.into(), colour, points: points.to_vec() });
        self
    }

    /// Cuts out a rectangle of cells, with the overlays on it. Colours mean what they meant.
    pub fn crop(&self, column: usize, row: usize, columns: usize, rows: usize) -> Grid {
        let (column, row) = (column.min(self.columns - 1), row.min(self.rows - 1));
        let (columns, rows) = (columns.clamp(1, self.columns - column), rows.clamp(1, self.rows - row));
        let indices: Vec<usize> = (row..row + rows)
            .flat_map(|r| (column..column + columns).map(move |c| (r, c)))
            .map(|(r, c)| r * self.columns + c)
            .collect();
        let cells = match &self.cells {
            Cells::Values { values, map, bar, missing, .. } => Cells::Values {
                values: indices.iter().map(|i| values[*i]).collect(),
                map: *map,
                range: Some(self.value_range()),
                bar: bar.clone(),
                missing: missing.clone(),
            },
            Cells::Kinds { kinds, categories } => Cells::Kinds {
                kinds: indices.iter().map(|i| kinds[*i]).collect(),
                categories: categories.clone(),
            },
        };
        let inside = |c: usize, r: usize| c >= column && r >= row && c < column + columns && r < row + rows;
        Grid {
            columns,
            rows,
            cells,
            origin: (self.origin.0 + column, self.origin.1 + row),
            labels: self
                .labels
                .iter()
                .filter(|(c, r, _)| inside(*c, *r))
                .map(|(c, r, text)| (c - column, r - row, text.clone()))
                .collect(),
            // An outline of the region itself would only double its border.
            outlines: self
                .outlines
                .iter()
                .filter(|(c, r, w, h)| {
                    inside(*c, *r)
                        && c + w <= column + columns
                        && r + h <= row + rows
                        && (*w < columns || *h < rows)
                })
                .map(|(c, r, w, h)| (c - column, r - row, *w, *h))
                .collect(),
            paths: self
                .paths
                .iter()
                .map(|path| {
                    let points =
                        path.points.iter().map(|p| (p.0 - column as f64, p.1 - row as f64)).collect();
                    Path { points, ..path.clone() }
                })
                .collect(),
            ..self.clone()
        }
    }

    /// Draws the map with a rectangle of it magnified beside it, to the same height.
    pub fn magnify(
        &self,
        column: usize,
        row: usize,
        columns: usize,
        rows: usize,
        title: impl Into<String>,
    ) -> Figure {
        const GAP: f64 = 36.0;
        let corner = self.crop(column, row, columns, rows).title(title).cell_lines();
        let (columns, rows) = (corner.columns, corner.rows);
        let (column, row) = (corner.origin.0 - self.origin.0, corner.origin.1 - self.origin.1);
        let mut left = self.clone().outline(column, row, columns, rows);
        // One title line and one legend serve both, so that the maps stand at one height.
        let mut right = corner;
        if left.title.is_empty() != right.title.is_empty() {
            let blank = if left.title.is_empty() { &mut left.title } else { &mut right.title };
            *blank = " ".into();
        }
        let (a, b) = (left.layout(), right.layout());
        let shift = a.width + GAP;
        let mut body = left.draw(&a, true);
        body.push_str(&format!(
            "<g transform=\"translate({} 0)\">\n{}</g>\n",
            coordinate(shift, 1),
            right.draw(&b, false)
        ));
        Figure {
            title: if self.title.trim().is_empty() {
                "Map of cells, with a part magnified".into()
            } else {
                self.title.clone()
            },
            width: shift + b.width,
            height: a.height.max(b.height),
            body,
            shared: Vec::new(),
        }
    }

    /// The map as one `<svg>` element.
    pub fn render(&self) -> String {
        self.figure().render()
    }

    /// Draws the map.
    pub fn figure(&self) -> Figure {
        let layout = self.layout();
        Figure {
            title: if self.title.is_empty() { "Map of cells".into() } else { self.title.clone() },
            width: layout.width,
            height: layout.height,
            body: self.draw(&layout, true),
            shared: Vec::new(),
        }
    }

    fn value_range(&self) -> (f64, f64) {
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

    fn colours(&self) -> Vec<Colour> {
        match &self.cells {
            Cells::Values { values, map, missing, .. } => {
                let (lo, hi) = self.value_range();
                let colour = |v: &f64| {
                    if !v.is_finite() {
                        return missing.colour;
                    }
                    // 256 shades are more than the eye tells apart, and let equal ones merge.
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

    fn layout(&self) -> Layout {
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

    fn draw(&self, layout: &Layout, with_legend: bool) -> String {
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
        // Cells are drawn in whole cell units and scaled, which keeps the path data short.
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
                // Half a pixel is not seen, and a slow trajectory has many such steps.
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
            // On small cells the text is larger than its cell; it still stays within the map.
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
            // Numbers stand at the middle of their cells, so the last one is `count - 1`.
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
        // A gradient would need an id; steps this fine look the same. Each step reaches below
        // the next one, so that no seam shows between them.
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

impl From<Grid> for Figure {
    fn from(grid: Grid) -> Self {
        grid.figure()
    }
}

impl From<&Grid> for Figure {
    fn from(grid: &Grid) -> Self {
        grid.figure()
    }
}

/// Width of the colour bar, and its distance from the map.
const BAR: f64 = 14.0;
const BAR_GAP: f64 = 16.0;

#[derive(Clone, Copy)]
struct Layout {
    /// Top left corner of the map.
    x: f64,
    y: f64,
    /// Side of a cell in pixels.
    cell: f64,
    map_width: f64,
    map_height: f64,
    /// Size of the whole figure.
    width: f64,
    height: f64,
    legend_y: f64,
}

/// Colours of paths: those of the palette that stand out from viridis first.
const PATHS: [Colour; 5] = [
    Colour::rgb(0xd5, 0x5e, 0x00),
    Colour::rgb(0x00, 0x72, 0xb2),
    Colour::rgb(0xb8, 0x55, 0x8d),
    Colour::rgb(0x22, 0x22, 0x22),
    Colour::rgb(0xd1, 0x8f, 0x00),
];

/// Covers the map with rectangles of one colour: runs within a row, extended downwards while
/// the rows below have the same run. Gives colour, column, row, width and height.
fn rectangles(colours: &[Colour], columns: usize, rows: usize) -> Vec<(Colour, usize, usize, usize, usize)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_cover_every_cell_once_in_its_colour() {
        let (columns, rows) = (13, 11);
        let palette = [Colour::WHITE, Colour::BROWN, Colour::GREY];
        let colours: Vec<Colour> = (0..columns * rows).map(|i| palette[(i * i / 7 + i / 3) % 3]).collect();
        let mut covered = vec![None; columns * rows];
        for (colour, column, row, width, height) in rectangles(&colours, columns, rows) {
            for r in row..row + height {
                for c in column..column + width {
                    assert_eq!(covered[r * columns + c].replace(colour), None, "covered twice");
                }
            }
        }
        let expected: Vec<Option<Colour>> = colours.into_iter().map(Some).collect();
        assert_eq!(covered, expected);
    }

    #[test]
    fn an_even_map_is_one_rectangle() {
        let svg = Grid::values(100, 100, &vec![1.0; 10_000]).render();
        assert!(svg.len() < 2_000, "{} bytes", svg.len());
    }

    #[test]
    fn cropping_moves_overlays_and_keeps_the_range() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let grid = Grid::values(10, 10, &values).label(5, 6, "in").label(0, 0, "out").outline(6, 6, 1, 1);
        let crop = grid.crop(4, 5, 3, 3);
        assert_eq!(crop.labels, [(1, 1, "in".to_string())]);
        assert_eq!(crop.outlines, [(2, 1, 1, 1)]);
        assert_eq!(crop.value_range(), (0.0, 99.0));
        assert_eq!(crop.colours()[0], grid.colours()[54]);
    }

    #[test]
    fn diverging_maps_are_centred_on_zero() {
        let grid = Grid::values(2, 1, &[-1.0, 4.0]).colour_map(ColourMap::Diverging);
        assert_eq!(grid.value_range(), (-4.0, 4.0));
    }
}

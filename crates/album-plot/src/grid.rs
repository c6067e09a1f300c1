//! Maps of cells: heat maps and categories, with labels, outlines and paths on top.

mod draw;

use super::colour::{Colour, ColourMap};
use super::figure::Figure;
use album_base::number::coordinate;
use draw::PATHS;

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
/// Cells keep their colours in dark mode, since the colours carry the data; lines and labels on top have an
/// outline that contrasts with any colour.
///
/// ```
/// use album_plot::{Category, Colour, Grid};
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
    /// The column and row of the top left cell in the map that this one was cropped from.
    origin: (usize, usize),
    labels: Vec<(usize, usize, String)>,
    outlines: Vec<(usize, usize, usize, usize)>,
    paths: Vec<Path>,
}

/// A path over the map, in a fixed colour like the cells below it.
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
    /// A heat map. Non-finite values, and values missing at the end of the slice, are shown as missing, in
    /// grey.
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

    /// A map of categories: each cell is an index into `categories`. Cells with an invalid index are grey.
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

    /// Sets the length of the longer side of the map in pixels (default 400).
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

    /// Sets the values at the ends of the colour map. By default they are the smallest and largest value, or
    /// symmetric around zero for [`ColourMap::Diverging`].
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

    /// Sets the name and colour of missing values of a heat map, such as walls.
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

    /// Draws a path in cell coordinates, from an open to a filled circle. Named paths appear in the legend;
    /// non-finite points break the path.
    pub fn polyline(mut self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let colour = PATHS[self.paths.len() % PATHS.len()];
        self.paths.push(Path { name: name.into(), colour, points: points.to_vec() });
        self
    }

    /// Crops to a rectangle of cells, with the overlays on it. The colour scale is unchanged.
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

    /// Draws the map with a magnified rectangle of it beside it, at the same height.
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
        // One title line and one legend serve both, so that the maps align.
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

#[cfg(test)]
mod tests {
    use super::draw::rectangles;
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

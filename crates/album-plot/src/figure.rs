//! A drawn figure, and panels of several figures.

use super::legend::{self, Key};
use super::lettering::{self, Anchor, TITLE};
use album_base::number::coordinate;

/// A drawn figure of a known size, made from a [`super::Plot`] or a [`super::Grid`].
#[derive(Clone, Debug)]
pub struct Figure {
    pub(crate) title: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The SVG elements, with the top left corner at the origin.
    pub(crate) body: String,
    /// Keys left for a shared legend.
    pub(crate) shared: Vec<Key>,
}

impl Figure {
    /// Parses a file written by [`Figure::render`]; `None` for any other, which could contain anything.
    ///
    /// ```
    /// use album_plot::{Figure, Plot};
    /// let svg = Plot::new("a & b").line("x", &[(0.0, 1.0), (1.0, 2.0)]).render();
    /// assert_eq!(Figure::parse(&svg).map(|figure| figure.render()), Some(svg));
    /// assert!(Figure::parse("<svg><script>alert(1)</script></svg>").is_none());
    /// ```
    pub fn parse(svg: &str) -> Option<Figure> {
        let (head, rest) = svg.split_once('\n')?;
        let (title, rest) = rest.split_once('\n')?;
        let (_, size) = head.split_once("viewBox=\"0 0 ")?;
        let (width, height) = size.split_once('"')?.0.split_once(' ')?;
        let title = unescape(title.strip_prefix("<title>")?.strip_suffix("</title>")?);
        let body = rest.strip_suffix("</svg>\n")?.to_owned();
        let (width, height) = (width.parse().ok()?, height.parse().ok()?);
        let figure = Figure { title, width, height, body, shared: Vec::new() };
        // Nothing drawn by this crate can run or load anything.
        let low = svg.to_lowercase();
        let foreign = ["<script", "<foreign", "href=", "<image", "<style", "<!", "url("];
        let clean = !foreign.iter().any(|what| low.contains(what)) && !handler(&low);
        (clean && figure.render() == svg).then_some(figure)
    }

    /// The figure as one `<svg>` element.
    pub fn render(&self) -> String {
        let (width, height) = (coordinate(self.width, 1), coordinate(self.height, 1));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"album-figure\" role=\"img\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif\" \
             fill=\"currentColor\">\n{}\n{}</svg>\n",
            lettering::title(&self.title),
            self.body
        )
    }

    /// The title, which screen readers announce.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }
}

/// Whether a tag has an attribute such as `onclick`; text between tags may well start with "on".
fn handler(low: &str) -> bool {
    low.split('<').filter_map(|part| part.split_once('>')).any(|(tag, _)| tag.contains(" on"))
}

/// Undoes [`escape`](crate::escape).
fn unescape(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Arranges figures in rows of `columns`.
///
/// Legends of plots with [`super::Legend::Shared`] are merged into one above all panels. An empty title takes
/// no space.
///
/// ```
/// use album_plot::{Legend, Plot, panels};
/// let panel = |k: usize| {
///     let line: Vec<(f64, f64)> = (0..10).map(|x| (x as f64, (x * k) as f64)).collect();
///     Plot::new(format!("K = {k}")).size(220.0, 180.0).legend(Legend::Shared).line("value", &line)
/// };
/// let figure = panels("One panel per K", (1..=8).map(panel), 4);
/// assert!(figure.render().starts_with("<svg"));
/// ```
pub fn panels<F: Into<Figure>>(
    title: impl Into<String>,
    figures: impl IntoIterator<Item = F>,
    columns: usize,
) -> Figure {
    const GAP: f64 = 16.0;
    let title = title.into();
    let figures: Vec<Figure> = figures.into_iter().map(Into::into).collect();
    let columns = columns.clamp(1, figures.len().max(1));
    let rows = figures.len().div_ceil(columns);
    let mut widths = vec![0.0f64; columns];
    let mut heights = vec![0.0f64; rows];
    for (i, figure) in figures.iter().enumerate() {
        widths[i % columns] = widths[i % columns].max(figure.width);
        heights[i / columns] = heights[i / columns].max(figure.height);
    }
    let width = widths.iter().sum::<f64>() + GAP * (columns - 1) as f64;

    let mut keys: Vec<Key> = Vec::new();
    for key in figures.iter().flat_map(|figure| &figure.shared) {
        let same = |k: &&mut Key| k.name == key.name && k.ink == key.ink && k.sample == key.sample;
        match keys.iter_mut().find(same) {
            // The shared legend adds up the panels' counts.
            Some(known) => known.count = known.count.zip(key.count).map(|(a, b)| a + b),
            None => keys.push(key.clone()),
        }
    }
    let mut body = String::new();
    let mut y = 0.0;
    if !title.is_empty() {
        let bold = " font-weight=\"600\"";
        body.push_str(&lettering::text(0.5 * width, 16.0, TITLE, Anchor::Middle, &title, bold));
        body.push('\n');
        y += 26.0;
    }
    if !keys.is_empty() {
        body.push_str(&legend::draw_flow(&keys, 8.0, y, width - 8.0));
        y += legend::flow_height(&keys, width - 8.0) + 8.0;
    }
    for (row, height) in heights.iter().enumerate() {
        let mut x = 0.0;
        for (column, panel_width) in widths.iter().enumerate() {
            if let Some(figure) = figures.get(row * columns + column) {
                body.push_str(&format!(
                    "<g transform=\"translate({} {})\">\n{}\n{}</g>\n",
                    coordinate(x, 1),
                    coordinate(y, 1),
                    lettering::title(&figure.title),
                    figure.body
                ));
            }
            x += panel_width + GAP;
        }
        y += height + if row + 1 < rows { GAP } else { 0.0 };
    }
    let title = if title.is_empty() {
        figures.iter().map(|figure| figure.title.as_str()).collect::<Vec<_>>().join("; ")
    } else {
        title
    };
    Figure { title, width: width.max(1.0), height: y.max(1.0), body, shared: Vec::new() }
}

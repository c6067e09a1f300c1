//! One table type for four outputs: terminal text, HTML, CSV and LaTeX.

mod csv;
mod html;
mod latex;
mod terminal;

use album_base::number;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Right if every non-empty cell of the column looks like a number, left otherwise.
    #[default]
    Auto,
    /// Flush left.
    Left,
    /// Flush right.
    Right,
    /// Centred.
    Centre,
}

/// A verdict on a cell or a paragraph, shown by a sign as well as a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// No verdict.
    #[default]
    Neutral,
    /// Passed (✓).
    Good,
    /// Failed (✗).
    Bad,
}

impl Status {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Status::Neutral => "",
            Status::Good => "✓",
            Status::Bad => "✗",
        }
    }

    pub(crate) fn class(self) -> &'static str {
        match self {
            Status::Neutral => "neutral",
            Status::Good => "good",
            Status::Bad => "bad",
        }
    }
}

/// The rank of a number among its competitors, typeset as usual: best bold, second underlined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rank {
    /// Unranked.
    #[default]
    None,
    /// The best.
    Best,
    /// The second best.
    Second,
}

/// The content of a table cell: text, optionally with an exact value, and a status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    rank: Rank,
    /// The full-precision number for CSV.
    exact: Option<String>,
    status: Status,
    /// The link target in HTML.
    link: Option<String>,
    /// The anchor of the cell in HTML.
    anchor: Option<String>,
}

impl Cell {
    /// A cell with text.
    pub fn new(text: impl Into<String>) -> Self {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// A number shown with `decimals` decimals; CSV gets full precision.
    pub fn fixed(value: f64, decimals: usize) -> Self {
        Cell { text: number::fixed(value, decimals), exact: Some(in_full(value)), ..Cell::default() }
    }

    /// The cell with status [`Status::Good`].
    pub fn good(cell: impl Into<Cell>) -> Self {
        cell.into().status(Status::Good)
    }

    /// The cell with status [`Status::Bad`].
    pub fn bad(cell: impl Into<Cell>) -> Self {
        cell.into().status(Status::Bad)
    }

    /// Sets the status.
    pub fn status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    /// Sets the rank, which HTML and LaTeX show.
    ///
    /// ```
    /// use album_report::table::{Cell, Rank, Table};
    /// let table = Table::new(["ALBUM", "FQL"]).row([Cell::from("92").rank(Rank::Best), Cell::from("80").rank(Rank::Second)]);
    /// assert!(table.to_latex().contains(r"\textbf{92} & \underline{80}"));
    /// ```
    pub fn rank(mut self, rank: Rank) -> Self {
        self.rank = rank;
        self
    }

    /// Makes the cell a link in HTML: to `#` and an anchor, or to a file by its relative path.
    ///
    /// ```
    /// use album_report::table::{Cell, Table};
    /// let table = Table::new(["a"]).row([Cell::from(1i64).link("#there")]).row([Cell::from(2i64).anchor("there")]);
    /// assert!(table.to_html().contains("<a href=\"#there\">1</a>"));
    /// assert!(table.to_html().contains("<td class=\"right\" id=\"there\">2</td>"));
    /// ```
    pub fn link(mut self, target: impl Into<String>) -> Self {
        self.link = Some(target.into());
        self
    }

    /// Gives the cell an id in HTML, as a target of links.
    pub fn anchor(mut self, name: impl Into<String>) -> Self {
        self.anchor = Some(name.into());
        self
    }

    /// The text with a typographic minus sign, for human-readable outputs.
    fn printed(&self) -> String {
        match self.text.strip_prefix('-') {
            Some(rest) if self.exact.is_some() => format!("−{rest}"),
            _ => self.text.clone(),
        }
    }

    fn looks_numeric(&self) -> bool {
        let text = self.text.trim();
        let start = text.trim_start_matches(['-', '−', '+', '<', '>', '≤', '≥', '±', ' ', '$']);
        self.exact.is_some()
            || start.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            || matches!(start, "nan" | "inf" | "–" | "—")
            || text == "-"
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::new(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::new(text)
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Cell::new(text.as_str())
    }
}

/// Shown by [`number::compact`]; CSV gets full precision.
impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell { text: number::compact(value), exact: Some(in_full(value)), ..Cell::default() }
    }
}

macro_rules! cell_from_integer {
    ($($kind:ty),*) => {$(
        /// Shown with grouped thousands; CSV gets plain digits.
        impl From<$kind> for Cell {
            fn from(value: $kind) -> Self {
                let text = i64::try_from(value).map_or_else(|_| value.to_string(), number::grouped);
                Cell { text, exact: Some(value.to_string()), ..Cell::default() }
            }
        }
    )*};
}
cell_from_integer!(i32, i64, u32, u64, usize);

/// An absent value is an en dash.
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        match value {
            Some(value) => value.into(),
            None => Cell { text: "–".into(), exact: Some(String::new()), ..Cell::default() },
        }
    }
}

/// A table with a header row, built row by row.
///
/// Cells and headers may use the markup `_{…}` and `^{…}` for sub- and superscripts.
///
/// ```
/// use album_report::table::{Cell, Table};
/// let table = Table::new(["task", "published", "measured"])
///     .row([Cell::from("maze"), 0.9.into(), Cell::good(0.912)])
///     .row([Cell::from("cube"), 0.35.into(), Cell::bad(0.21)]);
/// assert!(table.to_text().contains("0.912 ✓"));
/// assert_eq!(table.to_csv(), "task,published,measured\nmaze,0.9,0.912\ncube,0.35,0.21\n");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Table {
    caption: String,
    header: Vec<Cell>,
    /// Columns of running text, with the width at which they wrap.
    wraps: Vec<(usize, usize)>,
    align: Vec<Align>,
    rows: Vec<Vec<Cell>>,
    /// Indices of rows that have a rule above them.
    rules: Vec<usize>,
}

impl Table {
    /// A table with these column headers.
    pub fn new<C: Into<Cell>>(header: impl IntoIterator<Item = C>) -> Self {
        Table { header: header.into_iter().map(Into::into).collect(), ..Table::default() }
    }

    /// Sets the caption.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Wraps the text of a column: at `width` characters on a terminal, as space allows in HTML.
    pub fn wrap(mut self, column: usize, width: usize) -> Self {
        self.wraps.push((column, width.max(8)));
        self
    }

    fn wrap_width(&self, column: usize) -> Option<usize> {
        self.wraps.iter().find(|wrap| wrap.0 == column).map(|wrap| wrap.1)
    }

    /// Sets the alignment of the columns; the remaining ones stay [`Align::Auto`].
    pub fn align(mut self, align: impl IntoIterator<Item = Align>) -> Self {
        self.align = align.into_iter().collect();
        self
    }

    /// Adds a row. A short row is padded with empty cells.
    pub fn row<C: Into<Cell>>(mut self, cells: impl IntoIterator<Item = C>) -> Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// Draws a rule between the last row and the next.
    pub fn rule(mut self) -> Self {
        self.rules.push(self.rows.len());
        self
    }

    /// The number of rows below the header.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows below the header.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn caption_text(&self) -> &str {
        &self.caption
    }

    /// The anchors of all cells.
    pub(crate) fn anchors(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().flatten().filter_map(|cell| cell.anchor.as_deref())
    }

    fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.header.len())
    }

    /// Which columns have a sign in any cell. They reserve space for it in every cell, so that the numbers
    /// align.
    fn signed_columns(&self) -> Vec<bool> {
        let signed = |cell: &Cell| cell.status != Status::Neutral;
        (0..self.columns()).map(|c| self.rows.iter().any(|row| row.get(c).is_some_and(signed))).collect()
    }

    /// The alignment of every column, with [`Align::Auto`] resolved.
    fn alignments(&self) -> Vec<Align> {
        (0..self.columns())
            .map(|c| match self.align.get(c).copied().unwrap_or_default() {
                Align::Auto => {
                    let mut cells = self
                        .rows
                        .iter()
                        .filter_map(|row| row.get(c))
                        .filter(|x| !x.text.is_empty())
                        .peekable();
                    let numeric = cells.peek().is_some() && cells.all(Cell::looks_numeric);
                    if numeric { Align::Right } else { Align::Left }
                }
                align => align,
            })
            .collect()
    }
}

/// All digits needed to recover the number, with an exponent if that is shorter.
fn in_full(value: f64) -> String {
    let (plain, exponent) = (value.to_string(), format!("{value:e}"));
    if exponent.len() < plain.len() { exponent } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_column_takes_as_many_lines_as_it_needs() {
        let table =
            Table::new(["what", "n"]).wrap(0, 10).row([Cell::from("one two three four"), Cell::from(7i64)]);
        let lines: Vec<String> = table.to_text().lines().map(|line| line.trim_end().to_owned()).collect();
        assert_eq!(lines[2..], ["one two     7", "three four"]);
        let html = table.to_html();
        assert!(html.contains("<th scope=\"col\" class=\"wrap\" style=\"min-width:6ch\">what</th>"));
        assert!(html.contains("<td class=\"wrap\">one two three four</td>"));
    }

    #[test]
    fn columns_line_up_with_signs_and_combining_marks() {
        let table = Table::new(["name", "Q̂"])
            .row([Cell::from("a"), Cell::good(1.5)])
            .row([Cell::from("bb"), 22.25.into()]);
        assert_eq!(table.to_text(), "name       Q̂\n────────────\na      1.5 ✓\nbb    22.2\n");
    }

    #[test]
    fn csv_quotes_what_needs_quotes_and_keeps_precision() {
        let table = Table::new(["a,b", "say \"x\""])
            .row([Cell::from("two\nlines"), (0.1 + 0.2).into()])
            .row([Cell::from(1234567u64), None::<f64>.into()]);
        assert_eq!(
            table.to_csv(),
            "\"a,b\",\"say \"\"x\"\"\"\n\"two\nlines\",0.30000000000000004\n1234567,\n"
        );
    }

    #[test]
    fn ragged_rows_are_filled_up() {
        let table = Table::new(["a"]).row(["1", "2", "3"]).row(["4"]);
        assert_eq!(table.to_csv(), "a,,\n1,2,3\n4,,\n");
        assert_eq!(table.to_html().matches("<td").count(), 6);
    }

    #[test]
    fn auto_alignment_needs_every_cell_numeric() {
        let table = Table::new(["n", "t", "p"]).row(["-1.5", "1", "81.2 ± 3"]).row([
            Cell::from("–"),
            Cell::from("x"),
            Cell::from(""),
        ]);
        assert_eq!(table.alignments(), [Align::Right, Align::Left, Align::Right]);
    }

    #[test]
    fn terminal_text_carries_no_escape_sequence() {
        let text = Table::new(["a"]).row(["\u{1b}[31mred\nnext"]).to_text();
        assert!(!text.contains('\u{1b}'));
        assert_eq!(text.lines().count(), 3);
    }
}

//! Terminal output of tables.

use super::{Align, Cell, Status, Table};
use album_base::text::{columns, wrapped};
use album_plot::text;

impl Table {
    /// The table as aligned plain text for a terminal, ending in a newline.
    pub fn to_text(&self) -> String {
        let aligns = self.alignments();
        let signed = self.signed_columns();
        let shown = |cell: &Cell, column: usize, header: bool| {
            let mut out = one_line(&text::plain(&cell.text));
            if signed[column] && !header {
                out.push(' ');
                out.push_str(if cell.status == Status::Neutral { " " } else { cell.status.sign() });
            }
            out
        };
        let row_texts = |row: &[Cell], header: bool| -> Vec<String> {
            (0..aligns.len()).map(|c| row.get(c).map_or(String::new(), |x| shown(x, c, header))).collect()
        };
        let header = row_texts(&self.header, true);
        // A row is one line, or as many as its tallest wrapped cell needs.
        let rows: Vec<Vec<Vec<String>>> =
            self.rows.iter().map(|row| self.lines(row_texts(row, false))).collect();
        let widths: Vec<usize> = (0..aligns.len())
            .map(|c| {
                let body = rows.iter().flatten().map(|line| columns(&line[c])).max().unwrap_or(0);
                body.max(columns(&header[c]))
            })
            .collect();
        let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        let rule = format!("{}\n", "─".repeat(total));

        let mut out = String::new();
        if !self.caption.is_empty() {
            out.push_str(&one_line(&text::plain(&self.caption)));
            out.push('\n');
        }
        out.push_str(&text_line(&header, &widths, &aligns));
        out.push_str(&rule);
        for (i, row) in rows.iter().enumerate() {
            if i > 0 && self.rules.contains(&i) {
                out.push_str(&rule);
            }
            for line in row {
                out.push_str(&text_line(line, &widths, &aligns));
            }
        }
        out
    }

    /// Wraps the cells of one row into lines.
    fn lines(&self, cells: Vec<String>) -> Vec<Vec<String>> {
        let cells: Vec<Vec<String>> = cells
            .into_iter()
            .enumerate()
            .map(|(c, cell)| match self.wrap_width(c) {
                Some(width) => wrapped(&cell, width),
                None => vec![cell],
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..height)
            .map(|i| cells.iter().map(|cell| cell.get(i).cloned().unwrap_or_default()).collect())
            .collect()
    }
}

fn text_line(cells: &[String], widths: &[usize], aligns: &[Align]) -> String {
    let mut out = String::new();
    for (c, cell) in cells.iter().enumerate() {
        let room = widths[c] - columns(cell);
        let left = match aligns[c] {
            Align::Right => room,
            Align::Centre => room / 2,
            Align::Left | Align::Auto => 0,
        };
        if c > 0 {
            out.push_str("  ");
        }
        out.push_str(&" ".repeat(left));
        out.push_str(cell);
        out.push_str(&" ".repeat(room - left));
    }
    format!("{}\n", out.trim_end())
}

/// Replaces line breaks and control characters (including escape sequences), which would break the layout.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

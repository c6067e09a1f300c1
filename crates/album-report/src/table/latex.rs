//! LaTeX output of tables.

use super::{Align, Cell, Rank, Status, Table};
use album_plot::text;

impl Table {
    /// The table as a LaTeX `tabular` (needs the package `booktabs`), everything escaped.
    ///
    /// Good and best cells are bold, second-best ones underlined; a caption wraps the tabular in a `table`
    /// environment.
    pub fn to_latex(&self) -> String {
        let aligns = self.alignments();
        let letters: String = aligns
            .iter()
            .map(|align| match align {
                Align::Right => 'r',
                Align::Centre => 'c',
                Align::Left | Align::Auto => 'l',
            })
            .collect();
        let line = |row: &[Cell]| {
            let cells: Vec<String> = (0..aligns.len())
                .map(|c| {
                    let Some(cell) = row.get(c) else { return String::new() };
                    let content = text::latex(&cell.printed());
                    match (cell.status, cell.rank) {
                        (Status::Good, _) | (_, Rank::Best) => format!("\\textbf{{{content}}}"),
                        (_, Rank::Second) => format!("\\underline{{{content}}}"),
                        _ => content,
                    }
                })
                .collect();
            format!("{} \\\\\n", cells.join(" & "))
        };
        let mut out = format!("\\begin{{tabular}}{{{letters}}}\n\\toprule\n");
        out.push_str(&line(&self.header));
        out.push_str("\\midrule\n");
        for (i, row) in self.rows.iter().enumerate() {
            if i > 0 && self.rules.contains(&i) {
                out.push_str("\\midrule\n");
            }
            out.push_str(&line(row));
        }
        out.push_str("\\bottomrule\n\\end{tabular}\n");
        if self.caption.is_empty() {
            out
        } else {
            let caption = text::latex(&self.caption);
            format!("\\begin{{table}}\n\\centering\n\\caption{{{caption}}}\n{out}\\end{{table}}\n")
        }
    }
}

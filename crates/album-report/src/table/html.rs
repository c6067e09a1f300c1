//! HTML output of tables.

use super::{Align, Cell, Rank, Status, Table};
use album_plot::text;
use maud::{Markup, PreEscaped, html};

impl Table {
    /// The table as an HTML `<table>` element, everything escaped.
    ///
    /// Its classes are styled by [`crate::html::Page`].
    pub fn to_html(&self) -> String {
        let caption = (!self.caption.is_empty()).then(|| PreEscaped(text::prose(&self.caption)));
        self.markup(caption).into_string()
    }

    /// The table with a caption, to which a page adds the table's number.
    pub(crate) fn markup(&self, caption: Option<Markup>) -> Markup {
        let aligns = self.alignments();
        let signed = self.signed_columns();
        let class = |column: usize| match (self.wrap_width(column), aligns[column]) {
            (Some(_), _) => Some("wrap"),
            (None, Align::Right) => Some("right"),
            (None, Align::Centre) => Some("centre"),
            (None, Align::Left | Align::Auto) => None,
        };
        // Narrower than on a terminal, where letters are wider. A column is as wide as its header says.
        let style =
            |column: usize| self.wrap_width(column).map(|width| format!("min-width:{}ch", width * 3 / 5));
        html! {
            table { "\n"
                @if let Some(caption) = caption { caption { (caption) } "\n" }
                thead {
                    tr {
                        @for c in 0..aligns.len() {
                            th scope="col" class=[class(c)] style=[style(c)] {
                                @if let Some(cell) = self.header.get(c) { (PreEscaped(text::html(&cell.text))) }
                            }
                        }
                    }
                } "\n"
                tbody { "\n"
                    @for (i, row) in self.rows.iter().enumerate() {
                        tr class=[(i > 0 && self.rules.contains(&i)).then_some("rule")] {
                            @for c in 0..aligns.len() {
                                @let cell = row.get(c);
                                td class=[class(c)] id=[cell.and_then(|cell| cell.anchor.as_deref())] {
                                    @if let Some(cell) = cell { (content(cell, signed[c])) }
                                }
                            }
                        } "\n"
                    }
                } "\n"
            } "\n"
        }
    }
}

/// The content of a cell; a neutral one in a column with signs reserves space for one.
fn content(cell: &Cell, signed: bool) -> Markup {
    let text = PreEscaped(text::html(&cell.printed()));
    let ranked = match cell.rank {
        Rank::None => html! { (text) },
        Rank::Best => html! { b { (text) } },
        Rank::Second => html! { u { (text) } },
    };
    let linked = match &cell.link {
        Some(link) => html! { a href=(link) { (ranked) } },
        None => ranked,
    };
    match cell.status {
        Status::Neutral if !signed || cell.text.is_empty() => linked,
        Status::Neutral => html! { (linked) span.sign {} },
        status => html! { span class=(status.class()) { (linked) span.sign { (status.sign()) } } },
    }
}

//! Self-contained HTML pages.

use std::collections::BTreeSet;

use crate::table::{Status, Table};
use album_plot::text::{self, escape, plain};
use album_plot::{Figure, style_variables};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// An HTML page, built from top to bottom.
///
/// Content before the first [`Page::section`] is the summary. Text is escaped; paragraphs and captions may
/// use `_{…}`, `^{…}` and `` `code` ``. The page needs no network and no scripts, follows the reader's light
/// or dark theme and prints on white.
///
/// ```
/// use album_report::html::Page;
/// let html = Page::new("Results").paragraph("Is 1 < 2?").section("Details").code("album verify").render();
/// assert!(html.contains("Is 1 &lt; 2?"));
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    blocks: Vec<Block>,
    footer: Vec<String>,
}

#[derive(Clone, Debug)]
enum Block {
    Section { id: String, title: String },
    Subsection(String),
    Paragraph(String),
    Callout(Status, String),
    Links { before: String, links: Vec<(String, String)> },
    List(Vec<String>),
    Keys(Vec<(String, String)>),
    Code(String),
    Table(Table),
    Figure { id: String, picture: Picture, caption: String },
}

/// The content of a figure.
#[derive(Clone, Debug)]
enum Picture {
    Inline(Box<Figure>),
    /// A file beside the page.
    File {
        name: String,
        title: String,
    },
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Page { title: title.into(), blocks: Vec::new(), footer: Vec::new() }
    }

    fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Starts a section. Pages with three or more sections list them at the top, unless the summary already
    /// links to them all.
    pub fn section(self, title: impl Into<String>) -> Self {
        let title = title.into();
        self.with(Block::Section { id: plain(&title), title })
    }

    /// Starts a section with an id to link to.
    pub fn section_at(self, id: impl Into<String>, title: impl Into<String>) -> Self {
        self.with(Block::Section { id: id.into(), title: title.into() })
    }

    /// Starts a subsection.
    pub fn subsection(self, title: impl Into<String>) -> Self {
        self.with(Block::Subsection(title.into()))
    }

    /// Adds a paragraph.
    pub fn paragraph(self, text: impl Into<String>) -> Self {
        self.with(Block::Paragraph(text.into()))
    }

    /// Adds a highlighted paragraph, such as the verdict of a run.
    pub fn callout(self, status: Status, text: impl Into<String>) -> Self {
        self.with(Block::Callout(status, text.into()))
    }

    /// Adds a line of links: an introductory text, then each link's text and target.
    pub fn links<T: Into<String>, L: Into<String>>(
        self,
        before: impl Into<String>,
        links: impl IntoIterator<Item = (T, L)>,
    ) -> Self {
        let links = links.into_iter().map(|(text, target)| (text.into(), target.into())).collect();
        self.with(Block::Links { before: before.into(), links })
    }

    /// Adds a list.
    pub fn list<S: Into<String>>(self, items: impl IntoIterator<Item = S>) -> Self {
        self.with(Block::List(items.into_iter().map(Into::into).collect()))
    }

    /// Adds name-value pairs, such as the settings of a run.
    pub fn keys<K: Into<String>, V: Into<String>>(self, items: impl IntoIterator<Item = (K, V)>) -> Self {
        self.with(Block::Keys(items.into_iter().map(|(k, v)| (k.into(), v.into())).collect()))
    }

    /// Adds fixed-width text, such as a command.
    pub fn code(self, text: impl Into<String>) -> Self {
        self.with(Block::Code(text.into()))
    }

    /// Adds a table; tables are numbered.
    pub fn table(self, table: Table) -> Self {
        self.with(Block::Table(table))
    }

    /// Adds a figure with an id to link to; figures are numbered.
    pub fn figure(
        self,
        id: impl Into<String>,
        figure: impl Into<Figure>,
        caption: impl Into<String>,
    ) -> Self {
        let picture = Picture::Inline(Box::new(figure.into()));
        self.with(Block::Figure { id: id.into(), picture, caption: caption.into() })
    }

    /// Adds a large figure that stays a file beside the page; `title` is its alternative text.
    ///
    /// ```
    /// use album_report::html::Page;
    /// let html = Page::new("Maps").figure_file("maps", "maps.svg", "Value maps", "Values of V.").render();
    /// assert!(html.contains("<img class=\"album-figure\" src=\"maps.svg\" alt=\"Value maps\">"));
    /// ```
    pub fn figure_file(
        self,
        id: impl Into<String>,
        file: impl Into<String>,
        title: impl Into<String>,
        caption: impl Into<String>,
    ) -> Self {
        let picture = Picture::File { name: file.into(), title: title.into() };
        self.with(Block::Figure { id: id.into(), picture, caption: caption.into() })
    }

    /// Adds a line to the page footer.
    pub fn footer(mut self, text: impl Into<String>) -> Self {
        self.footer.push(text.into());
        self
    }

    /// The page as HTML.
    pub fn render(&self) -> String {
        let mut ids = Ids::default();
        // Figures come first: their ids are chosen for links, those of sections are generated.
        let mut figure_ids: Vec<String> = Vec::new();
        for block in &self.blocks {
            match block {
                Block::Figure { id, .. } => figure_ids.push(ids.make(id)),
                Block::Table(table) => ids.used.extend(table.anchors().map(str::to_owned)),
                _ => {}
            }
        }
        let mut figure_ids = figure_ids.into_iter();
        let mut contents: Vec<(String, &str)> = Vec::new();
        let mut summary: Vec<Markup> = Vec::new();
        let mut sections: Vec<Vec<Markup>> = Vec::new();
        let (mut figures, mut tables) = (0, 0);
        for block in &self.blocks {
            if let Block::Section { id, title } = block {
                contents.push((ids.make(id), title));
                sections.push(vec![html! { h2 { (rich(title)) } "\n" }]);
                continue;
            }
            let part = sections.last_mut().unwrap_or(&mut summary);
            part.push(match block {
                Block::Section { .. } => continue,
                Block::Subsection(title) => html! { h3 id=(ids.make(&plain(title))) { (rich(title)) } "\n" },
                Block::Paragraph(text) => html! { p { (running(text)) } "\n" },
                Block::Callout(status, text) => html! {
                    p class={ "callout " (status.class()) } {
                        @if *status != Status::Neutral { span.sign { (status.sign()) } " " }
                        (running(text))
                    } "\n"
                },
                Block::Links { before, links } => html! {
                    p {
                        (running(before)) " "
                        @for (k, (text, target)) in links.iter().enumerate() {
                            @if k > 0 { ", " }
                            a href=(PreEscaped(escape(target))) { (rich(text)) }
                        }
                    } "\n"
                },
                Block::List(items) => html! {
                    ul { "\n" @for item in items { li { (running(item)) } "\n" } } "\n"
                },
                Block::Keys(items) => html! {
                    dl { "\n"
                        @for (key, value) in items { div { dt { (running(key)) } dd { (running(value)) } } "\n" }
                    } "\n"
                },
                Block::Code(text) => html! {
                    pre tabindex="0" { code { (PreEscaped(escape(text))) } } "\n"
                },
                Block::Table(table) => {
                    let caption = (!table.caption_text().is_empty()).then(|| {
                        tables += 1;
                        html! { b { "Table " (tables) "." } " " (running(table.caption_text())) }
                    });
                    // Focusable, so that a wide table can be scrolled with the keyboard.
                    html! { div.scroll tabindex="0" { "\n" (table.markup(caption)) } "\n" }
                }
                Block::Figure { picture, caption, .. } => {
                    figures += 1;
                    html! {
                        figure id=(figure_ids.next().unwrap_or_default()) { "\n"
                            div.scroll { "\n"
                                @match picture {
                                    Picture::Inline(figure) => (PreEscaped(figure.render())),
                                    Picture::File { name, title } => {
                                        img.album-figure src=(PreEscaped(escape(name))) alt=(plain(title)); "\n"
                                    }
                                }
                            } "\n"
                            figcaption { b { "Figure " (figures) "." } " " (running(caption)) } "\n"
                        } "\n"
                    }
                }
            });
        }
        let summary = html! { @for block in &summary { (block) } }.into_string();
        let linked = |id: &str| summary.contains(&format!("href=\"#{id}\""));
        let listed = contents.len() >= 3 && !contents.iter().all(|(id, _)| linked(id));
        let page = html! {
            (DOCTYPE) "\n"
            html lang="en" { "\n"
                head { "\n"
                    meta charset="utf-8"; "\n"
                    meta name="viewport" content="width=device-width, initial-scale=1"; "\n"
                    meta name="color-scheme" content="light dark"; "\n"
                    title { (PreEscaped(escape(&plain(&self.title)))) } "\n"
                    style { "\n" (PreEscaped(style())) } "\n"
                } "\n"
                body { "\n"
                    header { "\n"
                        h1 { (rich(&self.title)) } "\n"
                        (PreEscaped(&summary))
                        @if listed {
                            nav aria-label="Contents" { "\n"
                                ul { "\n"
                                    @for (id, title) in &contents {
                                        li { a href={ "#" (id) } { (rich(title)) } } "\n"
                                    }
                                } "\n"
                            } "\n"
                        }
                    } "\n"
                    main { "\n"
                        @for ((id, _), blocks) in contents.iter().zip(&sections) {
                            section id=(id) { "\n" @for block in blocks { (block) } } "\n"
                        }
                    } "\n"
                    @if !self.footer.is_empty() {
                        footer { "\n" @for line in &self.footer { p { (running(line)) } "\n" } } "\n"
                    }
                } "\n"
            } "\n"
        };
        page.into_string()
    }
}

/// A title, with markup for sub- and superscripts.
fn rich(text: &str) -> PreEscaped<String> {
    PreEscaped(text::html(text))
}

/// A paragraph, with the markup of a title and code.
fn running(text: &str) -> PreEscaped<String> {
    PreEscaped(text::prose(text))
}

/// Turns names into valid ids that are unique on the page.
#[derive(Default)]
struct Ids {
    used: BTreeSet<String>,
}

impl Ids {
    fn make(&mut self, name: &str) -> String {
        let mut base = String::new();
        for c in name.chars().flat_map(char::to_lowercase) {
            if c.is_alphanumeric() || c == '_' {
                base.push(c);
            } else if !base.is_empty() && !base.ends_with('-') {
                base.push('-');
            }
        }
        let base = base.trim_end_matches('-');
        let base = if base.is_empty() { "part" } else { base };
        let mut id = base.to_string();
        let mut count = 1;
        while !self.used.insert(id.clone()) {
            count += 1;
            id = format!("{base}-{count}");
        }
        id
    }
}

fn style() -> String {
    // Dark colours apply to screens only, so that pages print on white.
    format!(
        ":root{{color-scheme:light dark;--album-paper:#fff;--ink:#1c2128;--soft:#f5f6f8;--link:#0b5fa5;{}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root{{--album-paper:#161a20;--ink:#e3e7ed;\
         --soft:#20262e;--link:#6cb6ff;{}}}}}\n{STYLE}",
        style_variables(false),
        style_variables(true)
    )
}

/// Styles that do not depend on the theme.
const STYLE: &str = include_str!("page.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_listed_unless_the_summary_leads_to_them() {
        let page = |links: &[&str]| {
            let links = links.iter().map(|id| (id.to_string(), format!("#{id}")));
            let page = Page::new("p").links("see", links);
            ["a", "b", "c"].iter().fold(page, |page, id| page.section(*id)).render()
        };
        assert!(page(&["a", "c"]).contains("<nav"));
        assert!(!page(&["a", "b", "c"]).contains("<nav"));
    }

    #[test]
    fn ids_are_valid_and_never_repeat() {
        let mut ids = Ids::default();
        assert_eq!(ids.make("The map: 100 × 100!"), "the-map-100-100");
        assert_eq!(ids.make("\"><script>"), "script");
        assert_eq!(ids.make("script"), "script-2");
        assert_eq!(ids.make(""), "part");
    }
}

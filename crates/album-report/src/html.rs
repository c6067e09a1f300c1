//! Pages: one HTML file with everything inside.

use std::collections::BTreeSet;

use crate::table::{Status, Table};
use album_plot::text::{escape, html, plain, prose};
use album_plot::{Figure, style_variables};

/// An HTML page, built from top to bottom.
///
/// What is added before the first [`Page::section`] is the summary. Text is escaped;
/// paragraphs and captions may use `_{…}`, `^{…}` and `` `code` ``. The page needs no network
/// and no script, follows the reader's light or dark setting and prints on white.
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
    Figure { id: String, figure: Box<Figure>, caption: String },
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

    /// Begins a section. Pages with three sections or more list them at the top, unless what stands there leads to
    /// them all.
    pub fn section(self, title: impl Into<String>) -> Self {
        let title = title.into();
        self.with(Block::Section { id: plain(&title), title })
    }

    /// Begins a section with an id to link to.
    pub fn section_at(self, id: impl Into<String>, title: impl Into<String>) -> Self {
        self.with(Block::Section { id: id.into(), title: title.into() })
    }

    /// Begins a part of a section.
    pub fn subsection(self, title: impl Into<String>) -> Self {
        self.with(Block::Subsection(title.into()))
    }

    /// Adds a paragraph.
    pub fn paragraph(self, text: impl Into<String>) -> Self {
        self.with(Block::Paragraph(text.into()))
    }

    /// Adds a paragraph that stands out, such as the verdict of a run.
    pub fn callout(self, status: Status, text: impl Into<String>) -> Self {
        self.with(Block::Callout(status, text.into()))
    }

    /// Adds a line of links: the text before them, then each by its text and its target.
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

    /// Adds names with their values, such as the settings of a run.
    pub fn keys<K: Into<String>, V: Into<String>>(self, items: impl IntoIterator<Item = (K, V)>) -> Self {
        self.with(Block::Keys(items.into_iter().map(|(k, v)| (k.into(), v.into())).collect()))
    }

    /// Adds text in fixed width, such as a command.
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
        self.with(Block::Figure { id: id.into(), figure: Box::new(figure.into()), caption: caption.into() })
    }

    /// Adds a line at the foot of the page.
    pub fn footer(mut self, text: impl Into<String>) -> Self {
        self.footer.push(text.into());
        self
    }

    /// The page as HTML.
    pub fn render(&self) -> String {
        let mut ids = Ids::default();
        // Figures come first: their ids were chosen to be linked to, those of sections were not.
        let mut figure_ids: Vec<String> = Vec::new();
        for block in &self.blocks {
            match block {
                Block::Figure { id, .. } => figure_ids.push(ids.make(id)),
                Block::Table(table) => ids.used.extend(table.anchors().map(str::to_owned)),
                _ => {}
            }
        }
        let mut figure_ids = figure_ids.into_iter();
        let mut contents = Vec::new();
        let mut summary = String::new();
        let mut body = String::new();
        let mut in_section = false;
        let (mut figures, mut tables) = (0, 0);
        for block in &self.blocks {
            let out =
                if in_section || matches!(block, Block::Section { .. }) { &mut body } else { &mut summary };
            match block {
                Block::Section { id, title } => {
                    if in_section {
                        out.push_str("</section>\n");
                    }
                    in_section = true;
                    let id = ids.make(id);
                    out.push_str(&format!("<section id=\"{id}\">\n<h2>{}</h2>\n", html(title)));
                    contents.push((id, title));
                }
                Block::Subsection(title) => {
                    let id = ids.make(&plain(title));
                    out.push_str(&format!("<h3 id=\"{id}\">{}</h3>\n", html(title)));
                }
                Block::Paragraph(text) => out.push_str(&format!("<p>{}</p>\n", prose(text))),
                Block::Callout(status, text) => {
                    let sign = match status {
                        Status::Neutral => String::new(),
                        status => format!("<span class=\"sign\">{}</span> ", status.sign()),
                    };
                    out.push_str(&format!(
                        "<p class=\"callout {}\">{sign}{}</p>\n",
                        status.class(),
                        prose(text)
                    ));
                }
                Block::Links { before, links } => {
                    let link = |(text, target): &(String, String)| {
                        format!("<a href=\"{}\">{}</a>", escape(target), html(text))
                    };
                    let links: Vec<String> = links.iter().map(link).collect();
                    out.push_str(&format!("<p>{} {}</p>\n", prose(before), links.join(", ")));
                }
                Block::List(items) => {
                    out.push_str("<ul>\n");
                    for item in items {
                        out.push_str(&format!("<li>{}</li>\n", prose(item)));
                    }
                    out.push_str("</ul>\n");
                }
                Block::Keys(items) => {
                    out.push_str("<dl>\n");
                    for (key, value) in items {
                        out.push_str(&format!(
                            "<div><dt>{}</dt><dd>{}</dd></div>\n",
                            prose(key),
                            prose(value)
                        ));
                    }
                    out.push_str("</dl>\n");
                }
                Block::Code(text) => {
                    out.push_str(&format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(text)));
                }
                Block::Table(table) => {
                    let caption = if table.caption_text().is_empty() {
                        String::new()
                    } else {
                        tables += 1;
                        format!("<b>Table {tables}.</b> {}", prose(table.caption_text()))
                    };
                    // Focusable, so that a wide table can be scrolled with the keyboard.
                    out.push_str("<div class=\"scroll\" tabindex=\"0\">\n");
                    out.push_str(&table.to_html_captioned(&caption));
                    out.push_str("</div>\n");
                }
                Block::Figure { figure, caption, .. } => {
                    figures += 1;
                    let id = figure_ids.next().unwrap_or_default();
                    out.push_str(&format!(
                        "<figure id=\"{id}\">\n<div class=\"scroll\">\n{}</div>\n",
                        figure.render()
                    ));
                    out.push_str(&format!(
                        "<figcaption><b>Figure {figures}.</b> {}</figcaption>\n</figure>\n",
                        prose(caption)
                    ));
                }
            }
        }
        if in_section {
            body.push_str("</section>\n");
        }
        let mut nav = String::new();
        let linked = |id: &str| summary.contains(&format!("href=\"#{id}\""));
        if contents.len() >= 3 && !contents.iter().all(|(id, _)| linked(id)) {
            nav.push_str("<nav aria-label=\"Contents\">\n<ul>\n");
            for (id, title) in contents {
                nav.push_str(&format!("<li><a href=\"#{id}\">{}</a></li>\n", html(title)));
            }
            nav.push_str("</ul>\n</nav>\n");
        }
        let footer = if self.footer.is_empty() {
            String::new()
        } else {
            let lines: String = self.footer.iter().map(|line| format!("<p>{}</p>\n", prose(line))).collect();
            format!("<footer>\n{lines}</footer>\n")
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
             <style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n{summary}{nav}</header>\n\
             <main>\n{body}</main>\n{footer}</body>\n</html>\n",
            escape(&plain(&self.title)),
            style(),
            html(&self.title)
        )
    }
}

/// Turns names into ids that are valid and not yet used on the page.
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
    // Dark colours apply to screens only, so paper is always white.
    format!(
        ":root{{color-scheme:light dark;--album-paper:#fff;--ink:#1c2128;--soft:#f5f6f8;--link:#0b5fa5;{}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root{{--album-paper:#161a20;--ink:#e3e7ed;\
         --soft:#20262e;--link:#6cb6ff;{}}}}}\n{STYLE}",
        style_variables(false),
        style_variables(true)
    )
}

const STYLE: &str = "\
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:2rem 1.25rem 4rem;background:var(--album-paper);color:var(--ink);\
font:1rem/1.55 system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif}
h1,h2,h3{line-height:1.25;text-wrap:balance}
h1{font-size:1.9rem;margin:0 0 1rem}
h2{font-size:1.35rem;margin:2.75rem 0 .75rem;padding-top:.9rem;border-top:1px solid var(--album-rule)}
h3{font-size:1.08rem;margin:1.75rem 0 .5rem}
p,ul,dl{max-width:46rem}
a{color:var(--link)}
sub,sup{line-height:0;font-size:.75em}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.25rem}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:.9em}
p code,li code,dd code,figcaption code{background:var(--soft);padding:.1em .3em;border-radius:3px}
pre{background:var(--soft);border:1px solid var(--album-rule);border-radius:6px;padding:.75rem 1rem;overflow-x:auto}
.callout{border-left:4px solid var(--album-muted);background:var(--soft);padding:.6rem 1rem;border-radius:0 6px 6px 0}
.callout.good{border-color:var(--album-good)}
.callout.bad{border-color:var(--album-bad)}
.good,.good .sign{color:var(--album-good);font-weight:600}
.bad,.bad .sign{color:var(--album-bad);font-weight:600}
.callout.good,.callout.bad{color:inherit;font-weight:inherit}
dl{margin:1rem 0}
dl div{display:grid;grid-template-columns:minmax(8rem,14rem) 1fr;gap:1rem;padding:.2rem 0}
dt{color:var(--album-muted)}
dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums;font-size:.95rem}
caption{text-align:left;padding-bottom:.5rem}
th,td{padding:.32rem .6rem;text-align:left;white-space:nowrap}
th{border-bottom:2px solid var(--album-muted);font-weight:600;white-space:normal;vertical-align:bottom}
td{border-bottom:1px solid var(--album-rule)}
tr.rule td{border-top:2px solid var(--album-muted)}
td .sign{display:inline-block;width:1.3em;text-align:right}
.wrap{white-space:normal}
.right{text-align:right}
.centre{text-align:center}
figure{margin:1.75rem 0}
.album-figure{display:block;max-width:100%;height:auto}
@media screen and (max-width:40rem){.album-figure{max-width:none}}
figcaption,caption{font-size:.95rem;max-width:46rem}
figcaption{margin-top:.5rem}
footer{margin-top:3rem;border-top:1px solid var(--album-rule);color:var(--album-muted);font-size:.9rem}
@media print{body{max-width:none;padding:0;font-size:10pt}figure,pre,.callout{break-inside:avoid}\
table{font-size:8pt}tr{break-inside:avoid}\
th,td{padding:.2rem .4rem;white-space:normal}.wrap{min-width:0!important}a{color:inherit;text-decoration:none}h2,h3{break-after:avoid}.scroll{overflow:visible}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
";

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

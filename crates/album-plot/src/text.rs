//! Escaping, and the light markup `_{…}` / `^{…}` for sub- and superscripts.
//!
//! Names such as `Q*_{D}` or `γ^{Kn}` appear in legends, captions, table cells and on the terminal; the
//! markup is parsed here and written in each output's own way.

/// Escapes text for HTML and XML, in element content as well as in quoted attributes.
///
/// Control characters that XML forbids are dropped.
///
/// ```
/// assert_eq!(album_plot::escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
/// ```
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// The vertical level of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// On the line.
    Base,
    /// Below it.
    Sub,
    /// Above it.
    Super,
}

/// Splits text into pieces by level. A `_{` without a closing brace is plain text.
pub fn pieces(text: &str) -> Vec<(Level, &str)> {
    let mut out = Vec::new();
    let mut rest = text;
    let mut searched = 0;
    while let Some(brace) = rest[searched..].find('{').map(|i| i + searched) {
        let level = match rest[..brace].chars().next_back() {
            Some('_') => Level::Sub,
            Some('^') => Level::Super,
            _ => {
                searched = brace + 1;
                continue;
            }
        };
        let Some(close) = rest[brace..].find('}').map(|i| i + brace) else { break };
        if brace > 1 {
            out.push((Level::Base, &rest[..brace - 1]));
        }
        out.push((level, &rest[brace + 1..close]));
        rest = &rest[close + 1..];
        searched = 0;
    }
    if !rest.is_empty() {
        out.push((Level::Base, rest));
    }
    out
}

/// The text without markup braces: `Q*_{D}` becomes `Q*_D`.
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    for (level, piece) in pieces(text) {
        let brackets = level != Level::Base && piece.chars().count() > 1;
        out.push_str(match level {
            Level::Base => "",
            Level::Sub => "_",
            Level::Super => "^",
        });
        if brackets {
            out.push('(');
        }
        out.push_str(piece);
        if brackets {
            out.push(')');
        }
    }
    out
}

/// The text as HTML with `<sub>` and `<sup>`.
pub fn html(text: &str) -> String {
    let mut out = String::new();
    for (level, piece) in pieces(text) {
        let piece = escape(piece);
        match level {
            Level::Base => out.push_str(&piece),
            Level::Sub => out.push_str(&format!("<sub>{piece}</sub>")),
            Level::Super => out.push_str(&format!("<sup>{piece}</sup>")),
        }
    }
    out
}

/// Running text as HTML: markup as in [`html`], and `` `code` `` between backticks.
pub fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut out = String::new();
    for (i, part) in parts.iter().enumerate() {
        // An unpaired last backtick stays a backtick.
        let unpaired = parts.len().is_multiple_of(2) && i + 1 == parts.len();
        if unpaired {
            out.push('`');
            out.push_str(&html(part));
        } else if i % 2 == 1 {
            out.push_str(&format!("<code>{}</code>", escape(part)));
        } else {
            out.push_str(&html(part));
        }
    }
    out
}

/// The text for LaTeX: special characters escaped, common symbols in math mode.
pub fn latex(text: &str) -> String {
    let mut out = String::new();
    for (level, piece) in pieces(text) {
        let piece: String = piece.chars().map(latex_char).collect();
        match level {
            Level::Base => out.push_str(&piece),
            Level::Sub => out.push_str(&format!("\\textsubscript{{{piece}}}")),
            Level::Super => out.push_str(&format!("\\textsuperscript{{{piece}}}")),
        }
    }
    out
}

fn latex_char(c: char) -> String {
    let math = match c {
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => return format!("\\{c}"),
        '\\' => return "\\textbackslash{}".into(),
        '~' => return "\\textasciitilde{}".into(),
        '^' => return "\\textasciicircum{}".into(),
        '–' => return "--".into(),
        // After a line break LaTeX would parse a bracket as an option.
        '[' => return "{[}".into(),
        '<' => "<",
        '>' => ">",
        '|' => "|",
        '±' => "\\pm",
        '×' => "\\times",
        '−' => "-",
        '≤' => "\\leq",
        '≥' => "\\geq",
        '≈' => "\\approx",
        '∞' => "\\infty",
        '→' => "\\to",
        'α' => "\\alpha",
        'β' => "\\beta",
        'γ' => "\\gamma",
        'δ' => "\\delta",
        'ε' => "\\varepsilon",
        'λ' => "\\lambda",
        'µ' | 'μ' => "\\mu",
        'π' => "\\pi",
        'σ' => "\\sigma",
        'τ' => "\\tau",
        c if c.is_control() => return " ".into(),
        c => return c.into(),
    };
    format!("${math}$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaping_leaves_no_active_character() {
        let hostile = "<script>alert('x')</script> & \"quotes\" \u{0}\u{8}\u{1b}";
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{8}', '\u{1b}']));
        assert_eq!(safe, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;quotes&quot; ");
    }

    #[test]
    fn markup_needs_braces() {
        assert_eq!(pieces("a_b^c"), [(Level::Base, "a_b^c")]);
        assert_eq!(pieces("Q*_{D} x"), [(Level::Base, "Q*"), (Level::Sub, "D"), (Level::Base, " x")]);
        assert_eq!(pieces("^{2}"), [(Level::Super, "2")]);
        assert_eq!(pieces("{x} a_{b"), [(Level::Base, "{x} a_{b")]);
        assert_eq!(pieces("{x} a_{b}"), [(Level::Base, "{x} a"), (Level::Sub, "b")]);
        assert_eq!(plain("γ^{Kn} Q_{D}"), "γ^(Kn) Q_D");
    }

    #[test]
    fn html_escapes_inside_markup() {
        assert_eq!(html("x_{<b>}"), "x<sub>&lt;b&gt;</sub>");
        assert_eq!(prose("run `a<b` `"), "run <code>a&lt;b</code> `");
        assert_eq!(prose("one ` only"), "one ` only");
    }

    #[test]
    fn latex_escapes_every_special_character() {
        assert_eq!(
            latex("a_b & 5% #1 $x$ {y} ~ ^ \\"),
            "a\\_b \\& 5\\% \\#1 \\$x\\$ \\{y\\} \\textasciitilde{} \\textasciicircum{} \\textbackslash{}"
        );
        assert_eq!(latex("[1]"), "{[}1]");
        assert_eq!(latex("Q*_{D} ≤ γ"), "Q*\\textsubscript{D} $\\leq$ $\\gamma$");
    }
}

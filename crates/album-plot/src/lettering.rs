//! Text in SVG: its width, estimated without a font, and its markup.

use crate::text::{Level, escape, pieces, plain};
use album_base::number::coordinate;

/// Size of tick labels and legends, in pixels.
pub(crate) const SMALL: f64 = 12.0;
/// Size of axis labels.
pub(crate) const NORMAL: f64 = 13.0;
/// Size of titles.
pub(crate) const TITLE: f64 = 14.0;
/// Size of sub- and superscripts relative to the text.
const SCRIPT: f64 = 0.75;

/// Approximate width of the text in pixels, in a common sans-serif font.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let piece_width = |piece: &str| piece.chars().map(char_width).sum::<f64>();
    pieces(text)
        .into_iter()
        .map(|(level, piece)| piece_width(piece) * if level == Level::Base { size } else { SCRIPT * size })
        .sum()
}

fn char_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | 'I' => 0.29,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '!' | '/' | '-' => 0.37,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.88,
        '=' | '+' | '−' | '×' | '±' | '<' | '>' | '≤' | '≥' | '~' => 0.8,
        'A'..='Z' => 0.7,
        '\u{300}'..='\u{36f}' => 0.0,
        c if (c as u32) >= 0x2e80 => 1.0,
        _ => 0.6,
    }
}

/// The part of the text that lies at the given point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A `<text>` element; `more` are further attributes, such as a transform.
pub(crate) fn text(x: f64, y: f64, size: f64, anchor: Anchor, content: &str, more: &str) -> String {
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    format!(
        "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{anchor}{more}>{}</text>",
        coordinate(x, 1),
        coordinate(y, 1),
        coordinate(size, 1),
        spans(content, size)
    )
}

/// `baseline-shift` is not supported everywhere, so scripts are moved by `dy` and back again.
fn spans(content: &str, size: f64) -> String {
    let mut out = String::new();
    let mut offset = 0.0;
    for (level, piece) in pieces(content) {
        let target = match level {
            Level::Base => 0.0,
            Level::Sub => 0.22 * size,
            Level::Super => -0.36 * size,
        };
        let shift = target - offset;
        offset = target;
        if shift == 0.0 && level == Level::Base {
            out.push_str(&escape(piece));
            continue;
        }
        let font = if level == Level::Base {
            String::new()
        } else {
            format!(" font-size=\"{}\"", coordinate(SCRIPT * size, 1))
        };
        out.push_str(&format!("<tspan dy=\"{}\"{font}>{}</tspan>", coordinate(shift, 1), escape(piece)));
    }
    out
}

/// A `<title>` element, which screen readers announce and browsers show as a tooltip.
pub(crate) fn title(content: &str) -> String {
    format!("<title>{}</title>", escape(&plain(content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_return_to_the_baseline() {
        assert_eq!(
            spans("a_{b}c", 10.0),
            "a<tspan dy=\"2.2\" font-size=\"7.5\">b</tspan><tspan dy=\"-2.2\">c</tspan>"
        );
    }

    #[test]
    fn scripts_and_thin_letters_are_narrower() {
        assert!(width("10^{5}", 12.0) < width("105", 12.0));
        assert!(width("ill", 12.0) < width("WWW", 12.0));
    }
}

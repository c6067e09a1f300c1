//! Colours: fixed ones for cells, variable ones for lines, and colour maps.

/// A fixed colour, the same in light and dark mode: for cells whose colour carries meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Colour(u8, u8, u8);

impl Colour {
    /// White.
    pub const WHITE: Colour = Colour(255, 255, 255);
    /// Nearly black.
    pub const BLACK: Colour = Colour(0x22, 0x22, 0x22);
    /// Mud.
    pub const BROWN: Colour = Colour(0x9c, 0x6b, 0x3f);
    /// Walls and missing values.
    pub const GREY: Colour = Colour(0x8a, 0x8f, 0x98);

    /// The colour with these red, green and blue parts.
    pub const fn rgb(red: u8, green: u8, blue: u8) -> Self {
        Colour(red, green, blue)
    }

    /// The colour as `#rrggbb`.
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// Relative luminance as defined by WCAG, from 0 (black) to 1 (white).
    pub fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let c = f64::from(part) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    fn mix(self, other: Colour, t: f64) -> Colour {
        let part = |a: u8, b: u8| (f64::from(a) + t * (f64::from(b) - f64::from(a))).round() as u8;
        Colour(part(self.0, other.0), part(self.1, other.1), part(self.2, other.2))
    }
}

/// The mapping from values to colours in a heat map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColourMap {
    /// Dark violet through green to yellow; lightness grows evenly with the value.
    #[default]
    Viridis,
    /// Blue below zero, white at zero, red above: for signed differences.
    Diverging,
    /// White to dark grey.
    Grey,
}

const VIRIDIS: [Colour; 9] = [
    Colour(0x44, 0x01, 0x54),
    Colour(0x47, 0x2d, 0x7b),
    Colour(0x3b, 0x52, 0x8b),
    Colour(0x2c, 0x72, 0x8e),
    Colour(0x21, 0x91, 0x8c),
    Colour(0x28, 0xae, 0x80),
    Colour(0x5e, 0xc9, 0x62),
    Colour(0xad, 0xdc, 0x30),
    Colour(0xfd, 0xe7, 0x25),
];
const DIVERGING: [Colour; 7] = [
    Colour(0x21, 0x66, 0xac),
    Colour(0x67, 0xa9, 0xcf),
    Colour(0xd1, 0xe5, 0xf0),
    Colour(0xf7, 0xf7, 0xf7),
    Colour(0xfd, 0xdb, 0xc7),
    Colour(0xef, 0x8a, 0x62),
    Colour(0xb2, 0x18, 0x2b),
];
const GREYS: [Colour; 2] = [Colour(0xf7, 0xf7, 0xf7), Colour(0x2a, 0x2a, 0x2a)];

impl ColourMap {
    /// The colour at `t` from 0 to 1; values beyond are clamped.
    pub fn at(self, t: f64) -> Colour {
        let anchors: &[Colour] = match self {
            ColourMap::Viridis => &VIRIDIS,
            ColourMap::Diverging => &DIVERGING,
            ColourMap::Grey => &GREYS,
        };
        let t = if t.is_nan() { 0.0 } else { t.clamp(0.0, 1.0) };
        let place = t * (anchors.len() - 1) as f64;
        let left = (place.floor() as usize).min(anchors.len() - 2);
        anchors[left].mix(anchors[left + 1], place - left as f64)
    }
}

/// The colour of a series, which adapts to light and dark mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The series palette, counted from 0; it repeats after eight.
    Series(usize),
    /// Grey, for references.
    Muted,
    /// The colour of text.
    Text,
    /// Green, as for a passed check.
    Good,
    /// Red, as for a failed check.
    Bad,
}

/// The palette of Okabe and Ito, ordered by contrast. Yellow is darkened for visibility on white, and the
/// dark-mode colours are lighter versions of the same hues.
const SERIES: [(&str, &str); 8] = [
    ("#0072b2", "#4aa8ee"),
    ("#d55e00", "#f5843c"),
    ("#009e73", "#27c998"),
    ("#b8558d", "#e597c4"),
    ("#d18f00", "#f0b642"),
    ("#3aa0dc", "#93d4f7"),
    ("#8a7d00", "#e8dc55"),
    ("#555b66", "#c3c8d0"),
];
const MUTED: (&str, &str) = ("#6b7280", "#9aa3b2");
const RULE: (&str, &str) = ("#e3e5e9", "#353b45");
const GOOD: (&str, &str) = ("#1a7f4b", "#4cc38a");
const BAD: (&str, &str) = ("#c4262e", "#ff7b72");

impl Ink {
    fn light(self) -> &'static str {
        match self {
            Ink::Series(i) => SERIES[i % SERIES.len()].0,
            Ink::Muted => MUTED.0,
            Ink::Text => "currentColor",
            Ink::Good => GOOD.0,
            Ink::Bad => BAD.0,
        }
    }

    /// Opens a group whose `currentColor` is this ink.
    ///
    /// The attribute is for viewers without CSS variables; elsewhere the style overrides it.
    pub(crate) fn open_group(self) -> String {
        let name = match self {
            Ink::Text => return "<g>".into(),
            Ink::Series(i) => format!("s{}", i % SERIES.len() + 1),
            Ink::Muted => "muted".into(),
            Ink::Good => "good".into(),
            Ink::Bad => "bad".into(),
        };
        variable_group(&name, self.light())
    }
}

/// Opens a group in the colour of grid lines.
pub(crate) fn open_rule_group() -> String {
    variable_group("rule", RULE.0)
}

fn variable_group(name: &str, fallback: &str) -> String {
    format!("<g color=\"{fallback}\" style=\"color:var(--album-{name},{fallback})\">")
}

/// The definitions of the CSS variables that figures use, for light or dark mode.
pub fn style_variables(dark: bool) -> String {
    let pick = |pair: (&'static str, &'static str)| if dark { pair.1 } else { pair.0 };
    let mut out = String::new();
    for (i, pair) in SERIES.into_iter().enumerate() {
        out.push_str(&format!("--album-s{}:{};", i + 1, pick(pair)));
    }
    for (name, pair) in [("muted", MUTED), ("rule", RULE), ("good", GOOD), ("bad", BAD)] {
        out.push_str(&format!("--album-{name}:{};", pick(pair)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contrast(a: Colour, b: Colour) -> f64 {
        let (a, b) = (a.luminance(), b.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn parse(hex: &str) -> Colour {
        let part = |i: usize| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
        Colour(part(1), part(3), part(5))
    }

    #[test]
    fn viridis_gets_lighter_all_the_way() {
        let light: Vec<f64> =
            (0..=100).map(|i| ColourMap::Viridis.at(f64::from(i) / 100.0).luminance()).collect();
        assert!(light.windows(2).all(|w| w[1] > w[0]));
    }

    #[test]
    fn maps_hit_their_ends_and_survive_any_value() {
        assert_eq!(ColourMap::Viridis.at(-3.0).hex(), "#440154");
        assert_eq!(ColourMap::Viridis.at(1.0).hex(), "#fde725");
        assert_eq!(ColourMap::Viridis.at(f64::INFINITY).hex(), "#fde725");
        assert_eq!(ColourMap::Diverging.at(0.5).hex(), "#f7f7f7");
        assert_eq!(ColourMap::Grey.at(f64::NAN), ColourMap::Grey.at(0.0));
    }

    #[test]
    fn series_stand_out_from_both_backgrounds() {
        for (light, dark) in SERIES.into_iter().chain([MUTED, GOOD, BAD]) {
            assert!(contrast(parse(light), Colour::WHITE) > 2.5, "{light} on white");
            assert!(contrast(parse(dark), Colour::rgb(0x16, 0x1a, 0x20)) > 4.5, "{dark} on dark");
        }
    }
}

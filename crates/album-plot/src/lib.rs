//! Figures as SVG elements that adapt to the page around them.
//!
//! Colours refer to CSS variables (`--album-s1`, …) with literal fallbacks, text and axes to
//! the text colour of the page. So a figure follows the light or dark look of
//! album-report's pages and is still complete when saved as a file of its own. Figures carry
//! no ids and no scripts, so any number of them can share a page.

mod axis;
mod colour;
mod decimate;
mod figure;
mod grid;
mod legend;
mod lettering;
mod occupancy;
mod plot;
pub mod text;

pub use axis::{Scale, ticks};
pub use colour::{Colour, ColourMap, Ink};
pub use figure::{Figure, panels};
pub use grid::{Category, Grid};
pub use legend::{Corner, Legend};
pub use plot::Plot;

pub use colour::style_variables;
pub use text::escape;

//! Figures as SVG elements that adapt to the page around them.
//!
//! Colours refer to CSS variables (`--album-s1`, …) with literal fallbacks, text and axes to the text colour
//! of the page. So a figure follows the light or dark theme of album-report's pages and is still complete
//! when saved as a separate file. Figures have no ids and no scripts, so any number of them can share a page.
//!
//! - [`Plot`]: lines, points, bands and labels over two axes, linear or logarithmic;
//! - [`Grid`]: heat maps and maps of categories, with labels and paths;
//! - [`panels`]: several figures as one, with a shared legend.
//!
//! ```
//! use album_plot::{Grid, Plot, panels};
//!
//! let curve: Vec<(f64, f64)> = (0..100).map(|n| (n as f64, 1.0 - 0.95f64.powi(n))).collect();
//! let plot = Plot::new("Success").x_label("step").y_range(0.0, 1.0).line("ALBUM", &curve).size(320.0, 240.0);
//! let map = Grid::values(3, 2, &[0.0, 1.0, 2.0, 3.0, 4.0, f64::NAN]).title("V").colour_bar("value");
//! let svg = panels("A run", [plot.figure(), map.figure()], 2).render();
//! assert!(svg.starts_with("<svg") && svg.contains("ALBUM"));
//! ```

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

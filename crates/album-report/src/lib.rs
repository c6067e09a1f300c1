//! Pages and tables: one self-contained HTML file with inline SVG figures, and tables for terminal, page, CSV and LaTeX.
//!
//! - [`table::Table`] is written as terminal text, HTML, CSV or LaTeX;
//! - [`html::Page`] collects tables, figures of [`album_plot`] and text in one file that needs no network and no script,
//!   follows the reader's light or dark setting and prints on white.
//!
//! Text may use `_{…}` and `^{…}` for sub- and superscripts (`Q*_{D}`, `γ^{n}`); everything else is literal
//! and escaped.
//!
//! ```
//! use album_report::html::Page;
//! use album_plot::{Plot, Scale};
//! use album_report::table::{Cell, Status, Table};
//!
//! let errors: Vec<(f64, f64)> = (0..50).map(|n| (n as f64, 0.9f64.powi(n))).collect();
//! let plot = Plot::new("Value iteration")
//!     .x_label("iteration n")
//!     .y_label("sup-norm error")
//!     .y_scale(Scale::Log)
//!     .line("measured", &errors)
//!     .dashed("γ^{n}", &[(0.0, 1.0), (49.0, 0.9f64.powi(49))]);
//! let table = Table::new(["check", "error"]).row([Cell::from("fixed point"), Cell::good(1.2e-12)]);
//!
//! let page = Page::new("A small report")
//!     .callout(Status::Good, "All checks passed.")
//!     .section("Convergence")
//!     .figure("convergence", plot, "Errors fall at the rate γ.")
//!     .table(table.clone())
//!     .code("album verify --out report");
//! assert!(page.render().contains("<svg"));
//! assert!(table.to_text().contains("1.2e-12 ✓"));
//! ```

pub mod html;
pub mod table;

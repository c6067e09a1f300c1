//! Tables, plots, pages.

//! Compares outputs with the files in `tests/golden`, byte for byte. After an intended change,
//! `ALBUM_BLESS=1 cargo test -p album-report` rewrites them.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::path::Path;

use album_plot::{Category, Colour, Figure, Grid, Legend, Plot, Scale, panels};
use album_report::html::Page;
use album_report::table::{Align, Cell, Status, Table};

fn check(name: &str, actual: &str) {
    if name.ends_with(".svg") {
        // The output can be parsed and put on another page.
        assert_eq!(Figure::parse(actual).map(|figure| figure.render()).as_deref(), Some(actual), "{name}");
    }
    album_testing::golden(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name), actual);
}

fn plot() -> Plot {
    let curve: Vec<(f64, f64)> = (0..6).map(|n| (f64::from(n), 0.5f64.powi(n))).collect();
    let above: Vec<(f64, f64)> = curve.iter().map(|p| (p.0, 2.0 * p.1)).collect();
    Plot::new("Errors & bounds")
        .x_label("iteration n")
        .y_label("‖Q_{n} − Q*‖")
        .y_scale(Scale::Log)
        .size(360.0, 240.0)
        .line("error", &curve)
        .band("", &curve, &above)
        .same_ink()
        .dashed("γ^{n}", &above)
        .markers("<other>", &[(0.0, 0.3), (2.0, f64::NAN), (3.0, 0.1), (4.0, -1.0), (5.0, 0.02)])
        .flags("violations", &[(3.0, 0.1)])
}

fn grid() -> Grid {
    let ground = [Category::new("dry", Colour::WHITE), Category::new("mud", Colour::BROWN)];
    Grid::categories(4, 3, &[0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 0, 7], &ground)
        .title("Mud")
        .size(120.0)
        .coordinates()
        .label(0, 0, "S")
        .label(3, 2, "G")
        .outline(0, 0, 2, 2)
        .polyline("walk", &[(0.5, 0.5), (0.5, 1.5), (3.5, 1.5), (3.5, 2.5)])
}

fn heat() -> Grid {
    Grid::values(3, 2, &[0.0, 0.5, 1.0, 1.0, f64::NAN, f64::INFINITY])
        .size(90.0)
        .y_up()
        .colour_bar("V")
        .missing("wall", Colour::BLACK)
}

fn table() -> Table {
    Table::new(["claim", "pairs", "error", "note"])
        .caption("What holds, 100%.")
        .align([Align::Left, Align::Auto, Align::Auto, Align::Centre])
        .row([Cell::from("Q*_{D} ≤ Q*"), 9693usize.into(), Cell::good(1.2e-12), "a & b".into()])
        .row([Cell::from("slope γ^{Kn}"), 12usize.into(), Cell::bad(-0.034), "<tag>, \"x\"".into()])
        .rule()
        .row([Cell::from("none"), None::<f64>.into(), Cell::fixed(1234.5, 1), "50% of $_#".into()])
}

#[test]
fn a_plot() {
    let svg = plot().render();
    common::assert_well_formed(&svg);
    check("plot.svg", &svg);
}

#[test]
fn a_cell_map() {
    let svg = grid().render();
    common::assert_well_formed(&svg);
    check("grid.svg", &svg);
}

#[test]
fn a_heat_map() {
    let svg = heat().render();
    common::assert_well_formed(&svg);
    check("heat.svg", &svg);
}

#[test]
fn panels_with_a_shared_legend() {
    let panel = |k: f64| {
        Plot::new(format!("K = {k}"))
            .size(160.0, 120.0)
            .legend(Legend::Shared)
            .line("value", &[(0.0, 0.0), (1.0, k)])
            .flags("violations", &[(1.0, k)])
    };
    let svg = panels("Two panels", [panel(1.0), panel(2.0)], 2).render();
    common::assert_well_formed(&svg);
    assert_eq!(svg.matches(">violations: 2</text>").count(), 1, "counts add up in one entry");
    check("panels.svg", &svg);
}

#[test]
fn a_page() {
    let html = Page::new("Report on <Q*_{D}>")
        .callout(Status::Good, "All claims hold & more.")
        .callout(Status::Neutral, "Nothing else.")
        .paragraph("Run `album verify <dir>` to see γ^{n}.")
        .keys([("seed", "7"), ("data", "a \"maze\"")])
        .section("Map")
        .figure("map", grid(), "A map with S < G.")
        .section("Checks")
        .table(table())
        .subsection("Map")
        .list(["one", "two & three"])
        .section("Commands")
        .code("album verify --out report && echo '<done>'")
        .footer("album 0.1.0")
        .render();
    common::assert_well_formed(&html);
    check("page.html", &html);
}

#[test]
fn a_table_four_times() {
    let table = table();
    common::assert_well_formed(&table.to_html());
    check("table.html", &table.to_html());
    check("table.txt", &table.to_text());
    check("table.csv", &table.to_csv());
    check("table.tex", &table.to_latex());
}

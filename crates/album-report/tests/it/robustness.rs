//! Figures and pages stay valid for any data and text.

use crate::common;

use album_plot::{ColourMap, Grid, Legend, Plot, Scale, panels};
use album_report::html::Page;
use album_report::table::{Status, Table};

const HOSTILE: &str = "</text></svg><script>alert(\"1\")</script>&'\u{0}_{<i>}^{\"}";

fn assert_clean(svg: &str) {
    common::assert_well_formed(svg);
    for word in ["NaN", "inf", "<script", "\u{0}"] {
        assert!(!svg.contains(word), "{word:?} in the output");
    }
}

#[test]
fn the_checker_finds_what_is_wrong() {
    for wrong in
        ["<a><b></a></b>", "<a>", "</a>", "<a b=c></a>", "<a>&</a>", "<a>></a>", "<a id=\"x\"/><b id=\"x\"/>"]
    {
        assert!(common::check(wrong).is_err(), "{wrong}");
    }
    assert!(common::check("<a b=\"c\"><meta x=\"y\"><d/>&lt;</a>").is_ok());
}

#[test]
fn odd_values_never_reach_the_text() {
    let odd =
        [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e308, 5e-324, 1e-12];
    let points: Vec<(f64, f64)> = odd.iter().flat_map(|x| odd.iter().map(move |y| (*x, *y))).collect();
    for x_scale in [Scale::Linear, Scale::Log] {
        for y_scale in [Scale::Linear, Scale::Log] {
            for legend in [Legend::Auto, Legend::Top, Legend::Right, Legend::Hidden] {
                let plot = Plot::new("odd")
                    .x_scale(x_scale)
                    .y_scale(y_scale)
                    .legend(legend)
                    .line("line", &points)
                    .dashed("dashed", &points)
                    .points("points", &points)
                    .markers("markers", &points)
                    .band("band", &points, &points)
                    .flags("flags", &points)
                    .labelled("labels", &[(1.0, f64::NAN, "a"), (1.0, 1.0, "b")]);
                assert_clean(&plot.render());
                assert_clean(&plot.x_range(f64::NAN, 1.0).y_range(2.0, 1.0).size(f64::NAN, 0.0).render());
            }
        }
    }
    for map in [ColourMap::Viridis, ColourMap::Diverging, ColourMap::Grey] {
        let grid = Grid::values(4, 3, &odd).colour_map(map).colour_bar("v").range(f64::NAN, 0.0);
        assert_clean(&grid.clone().polyline("p", &points).label(99, 99, "x").outline(2, 2, 50, 50).render());
        assert_clean(&grid.magnify(2, 2, 50, 50, "part").render());
    }
}

#[test]
fn nothing_to_draw_is_no_trouble() {
    assert_clean(&Plot::new("").render());
    assert_clean(&Plot::new("").line("empty", &[]).flags("none", &[]).y_scale(Scale::Log).render());
    assert_clean(&Plot::new("").line("one", &[(3.0, 3.0)]).render());
    assert_clean(&Grid::values(0, 0, &[]).colour_bar("").render());
    assert_clean(&panels("", Vec::<Plot>::new(), 0).render());
    common::assert_well_formed(&Page::new("").table(Table::default()).render());
    assert_eq!(Table::default().to_csv(), "");
}

#[test]
fn texts_are_escaped_everywhere() {
    let points = [(0.0, 1.0, HOSTILE), (1.0, 2.0, HOSTILE)];
    let plot = Plot::new(HOSTILE).x_label(HOSTILE).y_label(HOSTILE).labelled(HOSTILE, &points);
    let grid = Grid::values(2, 1, &[0.0, 1.0])
        .title(HOSTILE)
        .colour_bar(HOSTILE)
        .label(0, 0, HOSTILE)
        .polyline(HOSTILE, &[(0.0, 0.0), (1.0, 1.0)]);
    let page = Page::new(HOSTILE)
        .paragraph(HOSTILE)
        .callout(Status::Bad, HOSTILE)
        .keys([(HOSTILE, HOSTILE)])
        .list([HOSTILE])
        .section(HOSTILE)
        .subsection(HOSTILE)
        .figure(HOSTILE, &plot, HOSTILE)
        .figure(HOSTILE, panels(HOSTILE, [grid], 1), HOSTILE)
        .table(Table::new([HOSTILE]).caption(HOSTILE).row([HOSTILE]))
        .code(HOSTILE)
        .footer(HOSTILE);
    assert_clean(&page.render());
}

#[test]
fn gaps_break_lines_and_bands() {
    let with_gap = [(0.0, 1.0), (1.0, 3.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 4.0)];
    let count = |svg: &str, letter: char| {
        let path = svg.split("<title>s</title><path d=\"").nth(1).unwrap().split('"').next().unwrap();
        path.matches(letter).count()
    };
    assert_eq!(count(&Plot::new("").line("s", &with_gap).render(), 'M'), 2);
    let upper: Vec<(f64, f64)> = with_gap.iter().map(|p| (p.0, 9.0)).collect();
    assert_eq!(count(&Plot::new("").band("s", &with_gap, &upper).render(), 'z'), 2);
    let log = Plot::new("")
        .y_scale(Scale::Log)
        .line("s", &[(0.0, 1.0), (1.0, 2.0), (2.0, 0.0), (3.0, 1.0), (4.0, 2.0)]);
    assert_eq!(count(&log.render(), 'M'), 2);
}

#[test]
fn ten_thousand_points_stay_small_and_one_outlier_stays_visible() {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), random())).collect();
    let plain_line = Plot::new("").y_range(0.0, 2.0).line("s", &points).render();
    let plain_dots = Plot::new("").y_range(0.0, 2.0).points("s", &points).render();
    points[5_000].1 = 1.9;
    let line = Plot::new("").y_range(0.0, 2.0).line("s", &points).render();
    let dots = Plot::new("").y_range(0.0, 2.0).points("s", &points).render();
    for svg in [&line, &dots] {
        assert!(svg.len() < 100_000, "{} bytes", svg.len());
    }
    assert_ne!(line, plain_line);
    assert_ne!(dots, plain_dots);
}

#[test]
fn a_large_map_stays_small() {
    let kinds: Vec<f64> = (0..10_000u64).map(|i| (i * i / 37 % 97) as f64).collect();
    let svg = Grid::values(100, 100, &kinds).render();
    assert!(svg.len() < 250_000, "{} bytes", svg.len());
}

#[test]
fn figures_name_themselves_for_screen_readers() {
    let svg = Plot::new("").x_label("n").y_label("Q_{D}").render();
    assert!(svg.contains("role=\"img\""));
    assert!(svg.contains("<title>Q_D against n</title>"));
    let named = Plot::new("").x_label("success (%)").y_names(["ALBUM"]).points("p", &[(1.0, 0.0)]).render();
    assert!(named.contains("<title>success (%)</title>"), "{named}");
}

#[test]
fn pages_load_nothing() {
    let html = Page::new("t").figure("f", Plot::new("p").line("l", &[(0.0, 1.0)]), "c").render();
    for word in ["<script", "<link", "@import", "url(", "src="] {
        assert!(!html.contains(word), "{word}");
    }
    // The only URL is the name of the SVG namespace.
    assert_eq!(html.matches("http").count(), html.matches("http://www.w3.org/2000/svg").count());
}

#[test]
fn a_legend_avoids_the_data() {
    // With data in every corner, the legend moves above the frame.
    let corners = [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0)];
    let free = [(0.0, 0.0), (0.2, 0.2), (1.0, 0.1)];
    let has_box = |points: &[(f64, f64)]| Plot::new("t").line("series", points).render().contains("rx=\"3\"");
    assert!(!has_box(&corners));
    assert!(has_box(&free));
}

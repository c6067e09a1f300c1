//! Writes a page with every kind of figure and table, on synthetic data:
//! `cargo run -p album-report --example gallery -- gallery.html`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use album_base::number;
use album_plot::{Category, Colour, ColourMap, Figure, Grid, Ink, Legend, Plot, Scale, panels};
use album_report::html::Page;
use album_report::table::{Align, Cell, Status, Table};

/// A small generator with a fixed seed, so that the gallery is reproducible.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

fn mud_map() -> Figure {
    let mut random = Random(7);
    let cells: Vec<usize> = (0..10_000).map(|_| usize::from(random.next() < 0.3)).collect();
    let ground = [Category::new("dry ground", Colour::WHITE), Category::new("mud", Colour::BROWN)];
    Grid::categories(100, 100, &cells, &ground)
        .title("Grid world, 100 × 100")
        .coordinates()
        .size(420.0)
        .label(0, 0, "S")
        .label(99, 99, "G")
        .magnify(0, 0, 20, 20, "Corner, 20 × 20")
}

/// Q*, Q*_D and G_D at pairs sorted by Q*.
fn sandwich_data(seed: u64, pairs: usize) -> [Vec<(f64, f64)>; 3] {
    let mut random = Random(seed);
    let mut upper: Vec<f64> = (0..pairs).map(|_| -120.0 * random.next().powf(1.6)).collect();
    upper.sort_by(f64::total_cmp);
    let mut series = [Vec::new(), Vec::new(), Vec::new()];
    for (i, q) in upper.into_iter().enumerate() {
        let middle = q - 14.0 * random.next().powi(3);
        let lower = middle - 40.0 * random.next().powi(2) - 2.0;
        for (points, value) in series.iter_mut().zip([q, middle, lower]) {
            points.push((i as f64, value));
        }
    }
    series
}

fn sandwich(title: &str, seed: u64, pairs: usize) -> Plot {
    let [upper, middle, lower] = sandwich_data(seed, pairs);
    let violated: Vec<(f64, f64)> =
        upper.iter().zip(&middle).filter(|(u, m)| m.1 > u.1 + 1e-9).map(|(_, m)| *m).collect();
    Plot::new(title)
        .points("G_{D}", &lower)
        .ink(Ink::Series(2))
        .points("Q*_{D}", &middle)
        .ink(Ink::Series(1))
        .line("Q*", &upper)
        .ink(Ink::Series(0))
        .flags("violations", &violated)
}

fn eight_sandwiches() -> Figure {
    let plots = (0..8u64).map(|i| {
        let title = format!("p = 0.{}, K = {}", 1 + i / 4, 1 << (i % 4));
        sandwich(&title, 20 + i, 10_000).size(250.0, 200.0).legend(Legend::Shared)
    });
    panels("", plots, 4)
}

fn error_curves() -> Plot {
    let gamma = 0.99f64;
    let mut random = Random(3);
    let mut plot = Plot::new("Error of value iteration")
        .x_label("iteration n")
        .y_label("‖Q_{n} − Q*‖_{∞}")
        .y_scale(Scale::Log)
        .y_range(1e-12, 3.0)
        .legend(Legend::Right);
    for (i, k) in [1, 2, 4, 8, 16].into_iter().enumerate() {
        let curve: Vec<(f64, f64)> = (0..600)
            .map(|n| {
                let rate = gamma.powi(k * n);
                (f64::from(n), (0.6 * rate * (1.0 + 0.05 * random.normal())).max(3e-13))
            })
            .collect();
        let slope: Vec<(f64, f64)> = (0..600).map(|n| (f64::from(n), gamma.powi(k * n))).collect();
        plot = plot.line(format!("K = {k}"), &curve).ink(Ink::Series(i)).dashed("", &slope).same_ink();
    }
    plot.dashed("γ^{Kn}", &[]).ink(Ink::Muted)
}

fn speedups() -> Plot {
    let at =
        |f: fn(f64) -> f64| -> Vec<(f64, f64)> { (0..7).map(|i| 2f64.powi(i)).map(|k| (k, f(k))).collect() };
    Plot::new("Speedup over K = 1")
        .x_label("K")
        .y_label("speedup factor")
        .x_scale(Scale::Log)
        .x_ticks(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
        .y_scale(Scale::Log)
        .y_ticks(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
        .markers("iterations", &at(|k| k.powf(0.97)))
        .markers("wall clock", &at(|k| k.powf(0.7) * 0.95))
        .dashed("ideal", &at(|k| k))
        .ink(Ink::Muted)
}

fn learning_curves() -> Plot {
    let mut plot = Plot::new("Learning curves")
        .x_label("gradient steps")
        .y_label("success rate")
        .y_include(0.0)
        .y_include(1.0);
    for (i, (name, end, speed)) in
        [("LBLP", 0.88, 2.5e5), ("IQL", 0.61, 3.5e5), ("TD3+BC", 0.34, 2e5)].into_iter().enumerate()
    {
        let mut random = Random(40 + i as u64);
        let (mut mean, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
        for step in (0..=1_000_000).step_by(10_000) {
            let x = f64::from(step);
            let y = end * (1.0 - (-x / speed).exp()) + 0.008 * random.normal();
            let spread = 0.05 + 0.03 * random.next();
            mean.push((x, y.clamp(0.0, 1.0)));
            low.push((x, (y - spread).clamp(0.0, 1.0)));
            high.push((x, (y + spread).clamp(0.0, 1.0)));
        }
        plot = plot.line(name, &mean).ink(Ink::Series(i)).band("", &low, &high).same_ink();
    }
    plot
}

const MAZE: [&str; 12] = [
    "################",
    "#......#.......#",
    "#.####.#.#####.#",
    "#.#....#.....#.#",
    "#.#.########.#.#",
    "#...#......#...#",
    "###.#.####.###.#",
    "#...#.#..#.....#",
    "#.###.#..#####.#",
    "#.....#......#.#",
    "#.#####.####...#",
    "################",
];

/// Values of a maze: discounted distance to the bottom right, walls missing.
fn maze_values() -> Vec<f64> {
    let width = MAZE[0].len();
    let free: Vec<bool> = MAZE.iter().flat_map(|row| row.bytes().map(|b| b == b'.')).collect();
    let mut distance = vec![f64::NAN; free.len()];
    let goal = 10 * width + 14;
    distance[goal] = 0.0;
    let mut front = vec![goal];
    while let Some(cell) = front.first().copied() {
        front.remove(0);
        for next in [cell - 1, cell + 1, cell - width, cell + width] {
            if free[next] && distance[next].is_nan() {
                distance[next] = distance[cell] + 1.0;
                front.push(next);
            }
        }
    }
    distance.into_iter().map(|d| 0.95f64.powf(d)).collect()
}

fn mazes() -> Figure {
    let values = maze_values();
    let value = Grid::values(16, 12, &values)
        .title("Value")
        .missing("wall", Colour::rgb(0x3a, 0x3f, 0x47))
        .colour_bar("V(s)")
        .range(0.0, 1.0)
        .label(1, 1, "S")
        .label(14, 10, "G");
    let wander = |seed: u64, cells: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let mut random = Random(seed);
        let mut out = Vec::new();
        for pair in cells.windows(2) {
            for i in 0..12 {
                let t = f64::from(i) / 12.0;
                let x = pair[0].0 + t * (pair[1].0 - pair[0].0) + 0.5 + 0.06 * random.normal();
                let y = pair[0].1 + t * (pair[1].1 - pair[0].1) + 0.5 + 0.06 * random.normal();
                out.push((x, y));
            }
        }
        out
    };
    let floor = [Category::new("", Colour::WHITE), Category::new("wall", Colour::rgb(0x3a, 0x3f, 0x47))];
    let kinds: Vec<usize> = values.iter().map(|v| usize::from(v.is_nan())).collect();
    let paths = Grid::categories(16, 12, &kinds, &floor)
        .title("Trajectories")
        .polyline(
            "data",
            &wander(1, &[(1.0, 1.0), (6.0, 1.0), (6.0, 3.0), (3.0, 3.0), (3.0, 5.0), (1.0, 5.0)]),
        )
        .polyline(
            "policy",
            &wander(
                2,
                &[(8.0, 7.0), (8.0, 9.0), (12.0, 9.0), (12.0, 10.0), (14.0, 10.0)].map(|p: (f64, f64)| p),
            ),
        );
    panels("", [value, paths], 2)
}

fn differences() -> Grid {
    let values: Vec<f64> = (0..2500)
        .map(|i| {
            let (x, y) = (f64::from(i % 50) / 50.0, f64::from(i / 50) / 50.0);
            0.003 * (6.0 * x).sin() * (5.0 * y).cos() - 0.001 * x
        })
        .collect();
    Grid::values(50, 50, &values)
        .title("Difference of values")
        .colour_map(ColourMap::Diverging)
        .colour_bar("V − V*")
        .coordinates()
        .y_up()
        .size(320.0)
}

fn pareto() -> Plot {
    let ours =
        [(0.8, 71.0, "LBLP, K = 1"), (1.4, 79.5, "K = 4"), (1.9, 82.0, "K = 8"), (2.1, 82.6, "K = 16")];
    let others = [
        (1.0, 62.0, "TD3+BC"),
        (1.5, 70.0, "IQL"),
        (3.2, 76.0, "CQL"),
        (6.0, 80.5, "ReBRAC"),
        (22.0, 83.0, "EDAC"),
        (6.6, 80.0, "MSG"),
    ];
    Plot::new("Score against training time")
        .x_label("hours on one GPU")
        .y_label("mean score")
        .x_scale(Scale::Log)
        .labelled("this work", &ours)
        .labelled("published", &others)
}

fn scores() -> Table {
    let row = |task: &str, published: f64, measured: f64, spread: f64| {
        let difference = measured - published;
        [
            Cell::from(task),
            Cell::fixed(published, 1),
            Cell::new(number::plus_minus(measured, spread, 1)),
            Cell::fixed(difference, 1).status(if difference.abs() <= spread {
                Status::Good
            } else {
                Status::Bad
            }),
        ]
    };
    Table::new(["task", "published", "measured", "difference"])
        .caption("Published and measured scores; a difference within one spread is good.")
        .row(row("antmaze-umaze", 97.9, 96.4, 2.1))
        .row(row("antmaze-medium-play", 81.0, 79.6, 3.2))
        .row(row("antmaze-large-diverse", 56.1, 48.2, 4.4))
        .rule()
        .row(row("mean", 78.3, 74.7, 3.3))
}

fn checks() -> Table {
    Table::new(["claim", "pairs", "largest error", "bound", "time"])
        .caption("Claims checked on every pair of the data.")
        .row([
            Cell::from("G_{D} ≤ Q*_{D} ≤ Q*"),
            9_693usize.into(),
            Cell::good(1.2e-12),
            1e-9.into(),
            number::seconds(0.0123).into(),
        ])
        .row([
            Cell::from("contraction at γ^{K}"),
            120_000usize.into(),
            Cell::good(0.034),
            0.05.into(),
            number::seconds(83.0).into(),
        ])
        .row([
            Cell::from("a claim that fails"),
            12usize.into(),
            Cell::bad(3.5),
            1.0.into(),
            None::<f64>.into(),
        ])
        .align([Align::Left])
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: gallery <path of the page to write>");
    let checks = checks();
    let page = Page::new("Gallery of figures and tables")
        .callout(Status::Good, "11 of 12 claims hold. This page is made of synthetic data.")
        .callout(Status::Bad, "1 claim fails: see the table of checks.")
        .paragraph("Every figure is inline SVG; values such as Q*_{D} and γ^{Kn} have their scripts, and `code` its font. <b>Markup</b> & quotes are \"escaped\".")
        .keys([("data", "synthetic, seed 7"), ("command", "`album verify --out report`"), ("pairs", "9,693")])
        .section("Checks")
        .table(checks.clone())
        .section("Grid world")
        .figure("map", mud_map(), "A map with muddy cells, S the start and G the goal; the corner at S is magnified on the right.")
        .section("Sandwich")
        .figure("sandwich", sandwich("", 11, 10_000).x_label("pair, sorted by Q*").y_label("value").size(820.0, 420.0), "Q* bounds Q*_{D} from above, and G_{D} bounds it from below, at each of 10,000 pairs.")
        .figure("eight", eight_sandwiches(), "The same for eight settings.")
        .section("Convergence")
        .figure("errors", error_curves(), "Errors fall at the rate γ^{K}; dashed lines are the bounds γ^{Kn}.")
        .figure("speedup", speedups().size(560.0, 360.0), "Speedup factors against K.")
        .section("Learning")
        .figure("learning", learning_curves(), "Means over ten seeds with 95% intervals.")
        .figure("maze", mazes(), "Values and trajectories in a maze.")
        .figure("difference", differences(), "A signed difference.")
        .figure("pareto", pareto(), "Scores against cost.")
        .table(scores())
        .section("Outputs of a table")
        .subsection("Terminal")
        .code(checks.to_text())
        .subsection("CSV")
        .code(checks.to_csv())
        .subsection("LaTeX")
        .code(checks.to_latex())
        .footer("Made by the gallery example of album-report.");
    let html = page.render();
    println!("{} bytes", number::grouped(html.len() as i64));
    print!("{}", checks.to_text());
    std::fs::write(path, html).expect("the page can be written");
}

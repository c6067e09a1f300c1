//! `album verify`: every statement of the theory, with numbers and figures.

use crate::output;
use album::Error as Failure;
use album_base::atomic;
use album_base::number::compact;
use album_base::progress::{self, Amount};
use album_plot::{Category, Colour, Figure, Grid, Ink, Legend, Plot, Scale};
use album_report::html::Page;
use album_report::table::{Cell, Status, Table};
use album_tabular::MudWorld;
use album_tabular::theory::sandwich::Sandwich;
use album_tabular::theory::speedup::{self, Curves, Factors};
use album_tabular::theory::{self, Check, Effort, Evidence, Group};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// What to verify.
#[derive(clap::Args)]
pub struct Args {
    /// Which statements; all of them if none is named
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(Group::ALL.map(Group::name)))]
    names: Vec<String>,
    /// MudWorld seeds
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: u16,
    /// Where report.html goes, and its figures and checks as files
    #[arg(long, default_value = "album-verify", value_name = "DIR")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Everything, with its files in `out`.
    pub fn all(out: &std::path::Path) -> Self {
        Args { names: Vec::new(), seeds: 8, out: out.to_path_buf(), json: false }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    passed: bool,
    failed: usize,
    checks: &'a [Check],
    seeds: u16,
    highs: bool,
    seconds: f64,
    report: String,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    // Before any work: a report that cannot be written is a bad way to end.
    std::fs::create_dir_all(&args.out).map_err(Failure::io(&args.out))?;
    let start = Instant::now();
    let wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|n| n == name);
    let bar = progress::bar(1000, Amount::Share);
    let progress = |what: &str, share: f64| {
        bar.set_message(what.to_owned());
        bar.set_position((1000.0 * share) as u64);
    };
    let effort =
        Effort { seeds: usize::from(args.seeds), size: MudWorld::SIZE, instances: 200, progress: &progress };
    let (mut checks, mut figures) = (Vec::new(), Vec::new());
    for group in Group::ALL.into_iter().filter(|group| wanted(group.name())) {
        bar.set_prefix(group.name());
        let verified = group.verify(&effort)?;
        checks.extend(verified.checks);
        figures.extend(draw(verified.evidence, effort.size));
    }
    bar.finish_and_clear();

    let failed = checks.iter().filter(|check| !check.passed).count();
    let path = args.out.join("report.html");
    let seconds = start.elapsed().as_secs_f64();
    let files = (figures.iter())
        .map(|drawn| (format!("{}.svg", drawn.id), drawn.figure.render()))
        .chain([("checks.csv".to_owned(), all_checks(&checks).to_csv())]);
    for (name, content) in files {
        let path = args.out.join(name);
        atomic::write(&path, content.as_bytes()).map_err(Failure::io(&path))?;
    }
    let page = page(args, &checks, figures, failed, seconds);
    atomic::write(&path, page.as_bytes()).map_err(Failure::io(&path))?;
    if args.json {
        output::print_json(&Report {
            passed: failed == 0,
            failed,
            checks: &checks,
            seeds: args.seeds,
            highs: cfg!(feature = "highs"),
            seconds,
            report: path.display().to_string(),
        })?;
    } else {
        for (name, table) in tables(&checks) {
            output::print(&format!("{name}\n{}", table.to_text()))?;
        }
        if !cfg!(feature = "highs") {
            output::print(
                "This build has no HiGHS; `cargo run --release --features highs -- verify` adds its lines.",
            )?;
        }
        output::print(&format!("{} checks, {failed} failed; figures in {}", checks.len(), path.display()))?;
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Numerical(format!("{failed} of {} checks failed", checks.len()))),
    }
}

/// One table per group of checks, with its name as caption.
fn tables(checks: &[Check]) -> Vec<(&'static str, Table)> {
    Group::ALL
        .into_iter()
        .filter(|group| checks.iter().any(|check| check.name == *group))
        .map(|group| {
            let empty = Table::new(["statement", "measured", "bound", "verdict"]).wrap(0, 70);
            let table = checks.iter().filter(|check| check.name == group).fold(empty, |table, check| {
                let verdict = if check.passed { Cell::good("holds") } else { Cell::bad("FAILS") };
                table.row([
                    Cell::from(check.statement.as_str()),
                    Cell::from(compact(check.measured)),
                    Cell::from(check.bound.as_str()),
                    verdict,
                ])
            });
            (group.name(), table)
        })
        .collect()
}

/// All checks in one table.
fn all_checks(checks: &[Check]) -> Table {
    let empty = Table::new(["group", "statement", "measured", "bound", "verdict"]);
    checks.iter().fold(empty, |table, check| {
        table.row([
            Cell::from(check.name.name()),
            Cell::from(check.statement.as_str()),
            Cell::from(check.measured),
            Cell::from(check.bound.as_str()),
            Cell::from(if check.passed { "holds" } else { "FAILS" }),
        ])
    })
}

/// A figure with its id and caption, and the heading it opens, if any.
struct Drawn {
    heading: Option<&'static str>,
    id: &'static str,
    figure: Figure,
    caption: String,
}

/// The figures that the evidence of a group is worth.
fn draw(evidence: Evidence, size: usize) -> Vec<Drawn> {
    match evidence {
        Evidence::None => Vec::new(),
        Evidence::Sandwich(worlds) => draw_sandwich(&worlds, size),
        Evidence::Speedup(curves, factors) => draw_speedup(&curves, &factors),
    }
}

fn draw_sandwich(worlds: &[Sandwich], size: usize) -> Vec<Drawn> {
    let panels = worlds.iter().enumerate().map(|(seed, world)| {
        sandwich_plot(world, &format!("Seed {seed}")).legend(Legend::Shared).size(270.0, 210.0)
    });
    vec![
        Drawn {
            heading: Some("The sandwich"),
            id: "mudworld",
            figure: map(&MudWorld::new(size, 0)),
            caption: "MudWorld, seed 0. Entering a brown cell costs 3.02, a white one 0.02; the goal pays 1.".into(),
        },
        Drawn {
            heading: None,
            id: "sandwich",
            figure: sandwich_plot(&worlds[0], "Seed 0").legend(Legend::Top).size(720.0, 420.0).into(),
            caption: "At every pair of the down-right data, sorted by Q*: the best recorded return G_{D}, the solution \
                      Q*_{D} of the linear program, and the optimum Q* of the world. Violations would be ringed in red."
                .into(),
        },
        Drawn {
            heading: None,
            id: "sandwich-seeds",
            figure: album_plot::panels("", panels, 4),
            caption: format!("The same for {} seeds, each with its own mud and its own data.", worlds.len()),
        },
    ]
}

fn draw_speedup(curves: &Curves, factors: &Factors) -> Vec<Drawn> {
    vec![
        Drawn {
            heading: Some("The speed-up by rollouts"),
            id: "repair",
            figure: repair_plot(curves).into(),
            caption: "Error of the K-step repair iteration on the eps-greedy data, seed 0. Dashed: the slope γ^{Kn} on \
                      which each curve starts. They rejoin the slope γ^{n} of K = 1 at the floor that δ_{K} sets."
                .into(),
        },
        Drawn {
            heading: None,
            id: "factors",
            figure: factor_plot(factors).into(),
            caption: format!(
                "Updates until the error is {}, without rollouts divided by with K-step rollouts: the repair iteration, \
                 and full-batch descent on the relaxed program (penalties 2.5, step size 0.03) with the expected \
                 rollouts of its definition and with recorded ones.",
                speedup::TARGET_ERROR
            ),
        },
    ]
}

fn map(world: &MudWorld) -> Figure {
    let n = world.size();
    let cells: Vec<usize> = world.mud().iter().map(|&mud| usize::from(mud)).collect();
    let ground = [Category::new("dry", Colour::WHITE), Category::new("mud", Colour::BROWN)];
    let corner = n.min(20);
    Grid::categories(n, n, &cells, &ground)
        .title("MudWorld")
        .coordinates()
        .label(0, 0, "S")
        .label(n - 1, n - 1, "G")
        .magnify(0, 0, corner, corner, "Its top-left corner")
}

fn sandwich_plot(world: &Sandwich, title: &str) -> Plot {
    let mut order: Vec<usize> = (0..world.q_d.len()).collect();
    order.sort_by(|&a, &b| world.q_star[a].total_cmp(&world.q_star[b]));
    let (mut lower, mut middle, mut upper, mut violated) = (vec![], vec![], vec![], vec![]);
    for (place, &pair) in order.iter().enumerate() {
        let x = place as f64;
        let (g, q_d, q_star) = (world.g[pair], world.q_d[pair], world.q_star[pair]);
        lower.extend(g.map(|g| (x, g)));
        middle.push((x, q_d));
        upper.push((x, q_star));
        if g.is_some_and(|g| g > q_d + theory::sandwich::TOLERANCE)
            || q_d > q_star + theory::sandwich::TOLERANCE
        {
            violated.push((x, q_d));
        }
    }
    Plot::new(title)
        .x_label("pair, sorted by Q*")
        .y_label("value")
        .points("G_{D}", &lower)
        .points("Q*_{D}", &middle)
        .line("Q*", &upper)
        .flags("violations", &violated)
}

fn repair_plot(curves: &Curves) -> Plot {
    let points = |curve: &[f64]| {
        curve.iter().enumerate().map(|(n, e)| (n as f64, *e)).take_while(|p| p.1 >= 1e-3).collect::<Vec<_>>()
    };
    let (start, end) = (curves.one_step[0], 1e-3);
    let slope = |k: usize| {
        let rate = curves.gamma.ln() * k as f64;
        vec![(0.0, start), ((end / start).ln() / rate, end)]
    };
    let mut plot = Plot::new("Repair iteration")
        .size(760.0, 460.0)
        .x_label("update n")
        .y_label("max |V*_{D} − V_{n}|")
        .y_scale(Scale::Log)
        .legend(Legend::Right)
        .line("K = 1", &points(&curves.one_step));
    for (k, curve) in &curves.k_step {
        plot = plot.line(format!("K = {k}"), &points(curve)).dashed("", &slope(*k)).same_ink();
    }
    plot.dashed("γ^{Kn}", &[]).ink(Ink::Muted)
}

fn factor_plot(factors: &Factors) -> Plot {
    let points = |factors: &[(usize, f64)]| factors.iter().map(|&(k, f)| (k as f64, f)).collect::<Vec<_>>();
    Plot::new("Speed-up by rollouts")
        .x_label("rollout length K")
        .y_label("times fewer updates")
        .x_scale(Scale::Log)
        .y_scale(Scale::Log)
        .x_ticks(&speedup::HORIZONS.map(|k| k as f64))
        .y_include(1.0)
        .markers("repair iteration", &points(&factors.repair))
        .markers("relaxed descent", &points(&factors.descent))
        .markers("relaxed descent, recorded", &points(&factors.descent_recorded))
}

fn page(args: &Args, checks: &[Check], figures: Vec<Drawn>, failed: usize, seconds: f64) -> String {
    let verdict = match failed {
        0 => (Status::Good, format!("All {} checks hold.", checks.len())),
        _ => (Status::Bad, format!("{failed} of {} checks fail.", checks.len())),
    };
    let mut page = Page::new("The Lifted Bellman LP, verified")
        .callout(verdict.0, verdict.1)
        .paragraph(
            "Each line states what must hold, on which instances it was tried, what was measured there, and the bound \
             that the measurement must keep.",
        )
        .section("Checks");
    for (name, table) in tables(checks) {
        page = page.subsection(name).table(table);
    }
    for drawn in figures {
        if let Some(heading) = drawn.heading {
            page = page.section(heading);
        }
        page = page.figure(drawn.id, drawn.figure, drawn.caption);
    }
    let names = args.names.iter().fold(String::new(), |all, name| all + " " + name);
    page.section("Again")
        .code(format!("album verify{names} --seeds {}", args.seeds))
        .footer(format!("album {}, {seconds:.0} s", env!("CARGO_PKG_VERSION")))
        .render()
}

//! Figures of the evidence for each statement.

use album_plot::{Category, Colour, Figure, Grid, Ink, Legend, Plot, Scale};
use album_tabular::MudWorld;
use album_tabular::theory::Evidence;
use album_tabular::theory::sandwich::{Sandwich, TOLERANCE};
use album_tabular::theory::speedup::{self, Curves, Factors};

/// A figure with its name and caption, and the heading of a new section, if any.
#[derive(Debug)]
pub(super) struct Illustration {
    pub heading: Option<&'static str>,
    pub id: &'static str,
    pub figure: Figure,
    pub caption: String,
}

/// The figures for the evidence of a group.
pub(super) fn draw(evidence: Evidence, size: usize) -> Vec<Illustration> {
    match evidence {
        Evidence::None => Vec::new(),
        Evidence::Sandwich(worlds) => draw_sandwich(&worlds, size),
        Evidence::Speedup(curves, factors) => draw_speedup(&curves, &factors),
    }
}

fn draw_sandwich(worlds: &[Sandwich], size: usize) -> Vec<Illustration> {
    let panels = worlds.iter().enumerate().map(|(seed, world)| {
        sandwich_plot(world, &format!("Seed {seed}")).legend(Legend::Shared).size(270.0, 210.0)
    });
    vec![
        Illustration {
            heading: Some("The sandwich"),
            id: "mudworld",
            figure: map(&MudWorld::new(size, 0)),
            caption: "MudWorld, seed 0. Entering a brown cell costs 3.02, a white one 0.02; the goal pays 1.".into(),
        },
        Illustration {
            heading: None,
            id: "sandwich",
            figure: sandwich_plot(&worlds[0], "Seed 0").legend(Legend::Top).size(720.0, 420.0).into(),
            caption: "At every pair of the down-right data, sorted by Q*: the best recorded return G_{D}, the solution \
                      Q*_{D} of the linear program, and the optimum Q* of the world. Violations would be ringed in red."
                .into(),
        },
        Illustration {
            heading: None,
            id: "sandwich-seeds",
            figure: album_plot::panels("", panels, 4),
            caption: format!("The same for {} seeds, each with its own mud and its own data.", worlds.len()),
        },
    ]
}

fn draw_speedup(curves: &Curves, factors: &Factors) -> Vec<Illustration> {
    vec![
        Illustration {
            heading: Some("The speed-up by rollouts"),
            id: "repair",
            figure: repair_plot(curves).into(),
            caption: "Error of the K-step repair iteration on the eps-greedy data, seed 0. Dashed: the slope γ^{Kn} on \
                      which each curve starts. They rejoin the slope γ^{n} of K = 1 at the floor that δ_{K} sets."
                .into(),
        },
        Illustration {
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
        if g.is_some_and(|g| g > q_d + TOLERANCE) || q_d > q_star + TOLERANCE {
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

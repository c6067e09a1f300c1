//! The report of a run: one HTML page with its figures.

use std::path::{Path, PathBuf};

use album_base::atomic;
use album_base::files::Links;
use album_base::number::{compact, fixed, grouped, percent, seconds};
use album_base::spread::evenly;
use album_data::ogbench::{CELL_SIZE, Cell, MazeTask, TaskName};
use album_envs::Maze;
use album_plot::{Category, Colour, Figure, Grid, Legend, Plot, panels};
use album_report::html::Page;
use album_report::table::{Cell as Entry, Status, Table};

use album_train::{Columns, Episode, Records, ValueMap};

use crate::config::{self, RunConfig};
use crate::differences::Differences;
use crate::error::Error;
use crate::fqe::{self, Saved};

/// Maximum number of value maps shown.
const MAPS: usize = 6;
const STEP: &str = "training step";

/// The report page, the last file that a run writes.
pub(crate) const PAGE: &str = "report.html";

/// Writes `report.html` into the directory of a run and returns its path.
pub fn write(run: &Path) -> Result<PathBuf, Error> {
    let path = run.join(PAGE);
    // A run must not fail at its end because an older album wrote its evaluation in another form.
    let fqe = match Saved::read(run) {
        Err(Error::Load(why)) => Err(why),
        read => Ok(read?),
    };
    let page = page(&Records::read(run)?, Differences::read(run)?.as_ref(), fqe, run);
    atomic::write_with(&path, page.render().as_bytes(), Links::Refuse).map_err(Error::io(&path))?;
    Ok(path)
}

/// Builds the report; `run` is the path shown in commands.
fn page(
    records: &Records,
    differences: Option<&Differences>,
    fqe: Result<Option<Saved>, String>,
    run: &Path,
) -> Page {
    let scene = records.result.as_ref().and_then(|result| Scene::of(&result.task));
    let mut page = summary(records);
    page = success(page, records);
    page = value_maps(page, &records.value_maps, scene.as_ref());
    page = trajectories(page, records, scene.as_ref());
    if let Some(differences) = differences {
        page = differences.show(page, &records.train);
    }
    page = match fqe {
        Ok(None) => page,
        Ok(Some(fqe)) => fqe.show(page),
        Err(error) => page.section(fqe::TITLE).callout(
            Status::Bad,
            format!("The last evaluation cannot be read ({error}). `album fqe` writes a new one."),
        ),
    };
    page = initial_values(page, &records.train);
    page = training(page, &records.train);
    page.section("Configuration")
        .code(records.config.trim_end())
        .section("Commands")
        .code(commands(records, run))
        .footer(format!("Written by album {}.", env!("CARGO_PKG_VERSION")))
}

fn summary(records: &Records) -> Page {
    let Some(result) = &records.result else {
        return Page::new("A run in progress").callout(Status::Neutral, "The run has not ended yet.");
    };
    let mut page = Page::new(format!("{} on {}", result.agent, result.task));
    if let Some(last) = result.evaluations.last()
        && let (Some(success), Some([low, high])) = (last.success, last.success_interval)
    {
        page = page.callout(
            if success >= 0.5 { Status::Good } else { Status::Neutral },
            format!(
                "{} of {} evaluation episodes succeeded after {} steps (95 % confidence interval: {} to {}).",
                percent(success, 0),
                last.episodes,
                grouped(last.step as i64),
                percent(low, 0),
                percent(high, 0)
            ),
        );
    }
    if !result.finished {
        page = page.callout(Status::Neutral, "The run was stopped before its end and can be resumed.");
    }
    let config = config::read(&records.config, "config.toml").ok();
    let data = match (config, result.data_episodes) {
        (Some(config), Some(count)) => episodes(&config, count, result.held_out_episodes),
        _ => "unknown".to_owned(),
    };
    page.keys([
        ("seed", result.seed.to_string()),
        ("data", data),
        ("updates", grouped(result.steps as i64)),
        ("time", format!("{} ({} ms per update)", seconds(result.wall_seconds), compact(result.ms_per_step))),
        ("parameters", grouped(result.parameters as i64)),
        ("weights (SHA-256)", result.weights_sha256.clone()),
        ("data (SHA-256)", result.dataset_sha256.clone()),
    ])
}

/// How much of its dataset a run learns from: `45 of 1,000 published episodes, 5 held out`. A partial
/// recording has the name of the full dataset, so every result is shown with this.
pub fn episodes(config: &RunConfig, learned: usize, held_out: Option<usize>) -> String {
    let task: Option<TaskName> = config.problem.to_string().parse().ok();
    let published = task.as_ref().filter(|task| {
        let official = task.dataset_file();
        config.data.as_ref().is_none_or(|path| path.file_name().is_some_and(|name| *name == *official))
    });
    let published = published.and_then(|task| task.environment().published_episodes(task.data_kind()));
    // With --holdout they are split off the file's episodes; otherwise they come from a separate file.
    let split_off = held_out.filter(|_| config.train.holdout > 0.0).unwrap_or(0);
    let part = match published.filter(|published| learned + split_off < *published) {
        Some(published) => format!("{} of {} published", grouped(learned as i64), grouped(published as i64)),
        None => grouped(learned as i64),
    };
    let held_out = held_out.map_or_else(String::new, |count| format!(", {} held out", grouped(count as i64)));
    format!("{part} episodes{held_out}")
}

fn success(page: Page, records: &Records) -> Page {
    let series = |name: &str| records.eval.series(&format!("evaluation/{name}"));
    let (mean, low, high) = (series("success"), series("success_low"), series("success_high"));
    if mean.iter().all(|point| point.1.is_nan()) {
        return returns(page, &series("episode.return"), &series("episode.length"));
    }
    let plot = Plot::new("")
        .size(720.0, 340.0)
        .x_label(STEP)
        .y_label("success")
        .y_range(0.0, 1.0)
        .x_include(0.0)
        .markers("share of episodes", &mean)
        .band("95 % confidence interval", &low, &high)
        .same_ink();
    let mut table = Table::new(["step", "success", "interval", "return", "length"]);
    let (returns, lengths) = (series("episode.return"), series("episode.length"));
    // A column may have been renamed or removed.
    let at = |series: &[(f64, f64)], row: usize| series.get(row).map_or(f64::NAN, |point| point.1);
    for (i, &(step, mean)) in mean.iter().enumerate() {
        table = table.row([
            Entry::from(grouped(step as i64)),
            Entry::fixed(mean, 2),
            Entry::new(format!("{} – {}", fixed(at(&low, i), 2), fixed(at(&high, i), 2))),
            Entry::fixed(at(&returns, i), 1),
            Entry::fixed(at(&lengths, i), 1),
        ]);
    }
    page.section("Success")
        .figure("success", plot, "Share of evaluation episodes that solved the task, with Wilson's interval.")
        .table(table.caption("Means over the episodes of each evaluation."))
}

/// Evaluations in an environment without a success signal.
fn returns(page: Page, returns: &[(f64, f64)], lengths: &[(f64, f64)]) -> Page {
    if returns.is_empty() {
        return page;
    }
    let plot = Plot::new("")
        .size(720.0, 340.0)
        .x_label(STEP)
        .y_label("return")
        .x_include(0.0)
        .markers("mean over the episodes", returns);
    let mut table = Table::new(["step", "return", "length"]);
    for (&(step, mean), &(_, length)) in returns.iter().zip(lengths) {
        table =
            table.row([Entry::from(grouped(step as i64)), Entry::fixed(mean, 1), Entry::fixed(length, 1)]);
    }
    page.section("Returns")
        .figure("returns", plot, "Mean sum of rewards of evaluation episodes.")
        .table(table.caption("Means over the episodes of each evaluation."))
}

fn value_maps(page: Page, maps: &[ValueMap], scene: Option<&Scene>) -> Page {
    if maps.is_empty() {
        return page;
    }
    let figures = evenly(maps, MAPS).into_iter().map(|map| {
        let grid =
            values(map).title(format!("step {}", grouped(map.step as i64))).size(240.0).colour_bar("V");
        marked(grid, map, scene)
    });
    page.section("Value maps").figure(
        "value-maps",
        panels("", figures, 3),
        "The state value V over the maze during training; each map has its own colour scale. S is the start, \
         G the goal, and walls are grey. Where there is no data, such as close to walls, the network extrapolates.",
    )
}

/// A value map of a task's maze as a figure, with start and goal marked.
pub fn value_map(map: &ValueMap, task: &str) -> Grid {
    marked(values(map), map, Scene::of(task).as_ref())
}

fn marked(grid: Grid, map: &ValueMap, scene: Option<&Scene>) -> Grid {
    match scene {
        Some(scene) => scene.labels(grid, map.columns, map.rows),
        None => grid,
    }
}

fn values(map: &ValueMap) -> Grid {
    let values: Vec<f64> = map.values.iter().map(|value| value.map_or(f64::NAN, f64::from)).collect();
    Grid::values(map.columns, map.rows, &values).missing("", Colour::GREY).y_up()
}

fn trajectories(page: Page, records: &Records, scene: Option<&Scene>) -> Page {
    let (Some(scene), Some(last)) = (scene, records.evaluations.last()) else { return page };
    let recorded: Vec<&Episode> = last.episodes.iter().filter(|episode| !episode.path.is_empty()).collect();
    if recorded.is_empty() {
        return page;
    }
    let figure = |title: &str, success: bool| -> Option<Figure> {
        let chosen: Vec<_> = recorded.iter().filter(|episode| episode.success == Some(success)).collect();
        if chosen.is_empty() {
            return None;
        }
        let mut grid = scene.grid().title(format!("{title} ({})", chosen.len())).size(380.0);
        for episode in &chosen {
            grid = grid.polyline("", &scene.path(episode));
        }
        Some((&grid).into())
    };
    let figures = [figure("reached the goal", true), figure("missed the goal", false)];
    page.section("Trajectories").figure(
        "trajectories",
        panels("", figures.into_iter().flatten(), 2),
        format!(
            "Paths of {} of the {} episodes of the evaluation after {} steps, from open to filled circle.",
            recorded.len(),
            last.episodes.len(),
            grouped(last.step as i64)
        ),
    )
}

/// V at initial states beside the recorded returns.
fn initial_values(page: Page, train: &Columns) -> Page {
    let [learned, held_out, observed] =
        ["training/value/v_initial", "validation/value/v_initial", "training/value/return_initial"]
            .map(|name| train.series(name));
    if learned.is_empty() {
        return page;
    }
    let mut plot = Plot::new("").size(720.0, 340.0).x_label(STEP).y_label("value").line("V", &learned);
    if !held_out.is_empty() {
        plot = plot.dashed("V, held-out", &held_out);
    }
    page.section("Values at initial states").figure(
        "initial-values",
        plot.line("observed return", &observed).legend(Legend::Right),
        "V at the first states of episodes, and the mean discounted return that was recorded from there. The best policy \
         that the data supports lies above the mean; a V that keeps rising has lost contact with the data.",
    )
}

/// The training metrics: first those with a figure of their own, then the rest.
fn training(mut page: Page, train: &Columns) -> Page {
    let names: Vec<&str> = train.names().filter_map(|name| name.strip_prefix("training/")).collect();
    if names.is_empty() {
        return page;
    }
    let series = |name: &str| train.series(&format!("training/{name}"));
    let satisfied: Vec<&str> = names.iter().copied().filter(|name| name.ends_with("_satisfied")).collect();
    let range = |name: &str| ["v_min", "v_mean", "v_max"].contains(&last_part(name));
    if !satisfied.is_empty() {
        let mut plot =
            Plot::new("").size(720.0, 340.0).x_label(STEP).y_label("share of rows").y_range(0.0, 1.0);
        for name in &satisfied {
            plot = plot.line(constraint(name), &series(name));
        }
        page = page.section("Constraints").figure(
            "constraints",
            plot.legend(Legend::Right),
            "Share of the rows of a batch that satisfy each family of constraints of the program.",
        );
    }
    page = page.section("Training");
    if names.iter().any(|name| range(name)) {
        let [low, mean, high] = ["v_min", "v_mean", "v_max"].map(|part| {
            names.iter().find(|name| last_part(name) == part).map_or_else(Vec::new, |name| series(name))
        });
        let plot = Plot::new("")
            .size(720.0, 340.0)
            .x_label(STEP)
            .y_label("V")
            .line("mean over the batch", &mean)
            .band("minimum to maximum", &low, &high)
            .same_ink();
        page = page.figure("values", plot, "State values over the rows of a batch.");
    }
    let initial = |name: &str| name.ends_with("_initial");
    let others =
        names.iter().copied().filter(|name| !range(name) && !satisfied.contains(name) && !initial(name));
    let validated = train.names().any(|name| name.starts_with("validation/"));
    let figures: Vec<Plot> = others
        .map(|name| {
            let plot =
                Plot::new(name).size(300.0, 190.0).legend(Legend::Hidden).line("training", &series(name));
            match train.series(&format!("validation/{name}")) {
                held_out if held_out.is_empty() => plot,
                held_out => plot.dashed("held-out", &held_out),
            }
        })
        .collect();
    let lines = if validated { " Dashed: on the held-out episodes." } else { "" };
    page.figure(
        "metrics",
        panels("", figures.iter(), 3),
        format!("All other metrics over the {STEP}.{lines}"),
    )
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// `critic/g_b_satisfied` as `g_{B}`.
fn constraint(name: &str) -> String {
    let short = last_part(name).trim_end_matches("_satisfied");
    match short.strip_prefix("g_") {
        Some(family) => format!("g_{{{}}}", family.to_uppercase()),
        None => short.to_owned(),
    }
}

fn commands(records: &Records, run: &Path) -> String {
    let run = run.display();
    let train = records.result.as_ref().map_or(String::new(), |result| {
        format!("album train --config {run}/config.toml   # {}, seed {} again\n", result.task, result.seed)
    });
    format!("{train}album resume {run}\nalbum eval {run}\nalbum fqe {run}")
}

/// The maze of a task.
struct Scene {
    maze: Maze,
    task: MazeTask,
}

impl Scene {
    fn of(task: &str) -> Option<Self> {
        let task: TaskName = task.parse().ok()?;
        let size = task.environment().maze()?;
        Some(Scene { maze: Maze::new(size), task: size.tasks()[task.task() - 1] })
    }

    fn grid(&self) -> Grid {
        let (columns, rows) = (self.maze.columns(), self.maze.rows());
        let kinds = [Category::new("", Colour::WHITE), Category::new("", Colour::GREY)];
        let wall = |k: usize| usize::from(self.maze.is_wall(Cell { i: k / columns, j: k % columns }));
        let cells: Vec<usize> = (0..rows * columns).map(wall).collect();
        self.labels(Grid::categories(columns, rows, &cells, &kinds).y_up(), columns, rows)
    }

    /// Marks start and goal on a map of the maze.
    fn labels(&self, grid: Grid, columns: usize, rows: usize) -> Grid {
        let (x, y) = (columns / self.maze.columns(), rows / self.maze.rows());
        if x == 0 || y == 0 {
            return grid;
        }
        let label =
            |grid: Grid, cell: Cell, text: &str| grid.label(cell.j * x + x / 2, cell.i * y + y / 2, text);
        label(label(grid, self.task.start, "S"), self.task.goal, "G")
    }

    /// A path in the coordinates of [`Self::grid`].
    fn path(&self, episode: &Episode) -> Vec<(f64, f64)> {
        let coordinate = |x: f32| f64::from(x) / CELL_SIZE + 1.5;
        episode.path.iter().map(|&[x, y]| (coordinate(x), coordinate(y))).collect()
    }
}

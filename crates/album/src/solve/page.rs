//! The page of a solved log.

use super::LogRun;
use album_base::number::{compact, grouped, percent, seconds};
use album_plot::{Ink, Plot};
use album_report::html::Page;
use album_report::table::{Cell, Status, Table};
use album_tabular::log::Interval;

/// Maximum number of states in figures and tables.
const SHOWN: usize = 30;

/// The HTML report of a log's policy.
pub fn page(run: &LogRun) -> Page {
    let r = &run.summary;
    let mut page = Page::new("The best policy in a log").callout(verdict(run).0, verdict(run).1);
    for warning in &r.warnings {
        page = page.callout(Status::Neutral, warning.clone());
    }
    let between =
        |interval: &Option<Interval>| interval.map_or(String::new(), |i| format!(" ({})", range(i)));
    page = page.keys([
        ("log", r.input.join(", ")),
        (
            "transitions",
            format!("{} in {} episodes", grouped(r.transitions as i64), grouped(r.episodes as i64)),
        ),
        (
            "states",
            format!("{}, {} of them with a choice", grouped(r.states as i64), grouped(r.choices as i64)),
        ),
        ("actions", grouped(r.actions as i64)),
        ("discount factor", r.gamma.to_string()),
        ("rows needed to recommend an action", r.min_count.to_string()),
        (
            "recorded return",
            format!("{}{}", compact(r.recorded_return), between(&r.recorded_return_interval)),
        ),
        ("value of the recorded behaviour", compact(r.initial_behaviour_value)),
        (
            "value of the policy",
            format!("{}{}", compact(r.initial_value), between(&r.initial_value_interval)),
        ),
        ("time", format!("{} to read, {} to solve", seconds(r.seconds_read), seconds(r.seconds_solution))),
    ]);
    let order = by_importance(run);
    page = page.section("Where acting differently pays");
    if order.is_empty() {
        page = page.paragraph("Nowhere: the usual action is the best recorded one in every state.");
    } else {
        page = page.figure("gains", gains(run, &order), gains_caption(run)).table(states(run, &order));
    }
    page = page.section("Actions").table(actions(run));
    page.section("How to read this")
        .list(reading(run))
        .footer(format!("Written by album {}.", env!("CARGO_PKG_VERSION")))
}

fn verdict(run: &LogRun) -> (Status, String) {
    let r = &run.summary;
    let states = |n: usize| format!("{} of {} states", grouped(n as i64), grouped(r.states as i64));
    match (r.certain, r.improvement_interval) {
        (Some(certain), Some(improvement)) => {
            let overall = if improvement.low > 0.0 {
                format!(
                    "From the start of an episode the policy gains {} over what was recorded.",
                    range(improvement)
                )
            } else {
                format!("From the start of an episode the gain, {}, may be chance.", range(improvement))
            };
            let status = if certain > 0 && improvement.low > 0.0 { Status::Good } else { Status::Neutral };
            (
                status,
                format!(
                    "In {} the best action is significantly better than the recorded mix. {overall}",
                    states(certain)
                ),
            )
        }
        _ => {
            let text = "the best recorded action is not the usual one. Only a bootstrap (`--bootstrap 200`) can tell which \
                        of these differences are due to chance.";
            (Status::Neutral, format!("In {} {text}", states(r.changes)))
        }
    }
}

/// States with a positive gain: significant ones first, by gain times rows.
fn by_importance(run: &LogRun) -> Vec<usize> {
    let advice = &run.advice;
    let certain = |s: usize| advice.intervals.as_ref().is_none_or(|intervals| intervals.certain[s]);
    let weight = |s: usize| advice.gain[s] * advice.count[s] as f64;
    let mut states: Vec<usize> =
        (0..advice.states()).filter(|&s| advice.pair(s) != advice.usual[s] || certain(s)).collect();
    states.retain(|&s| advice.gain[s] > 1e-9);
    states.sort_by(|&a, &b| certain(b).cmp(&certain(a)).then(weight(b).total_cmp(&weight(a))));
    states.truncate(SHOWN);
    states
}

fn name(run: &LogRun, state: usize) -> String {
    let name = run.log.state_labels(&run.advice, state).join(", ");
    match name.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

fn gains(run: &LogRun, order: &[usize]) -> Plot {
    let advice = &run.advice;
    let place = |row: usize, s: usize| (advice.gain[s], row as f64);
    let is_certain = |s: usize| advice.intervals.as_ref().is_some_and(|intervals| intervals.certain[s]);
    let rows = || order.iter().copied().enumerate();
    let certain: Vec<_> = rows().filter(|x| is_certain(x.1)).map(|(row, s)| place(row, s)).collect();
    let open: Vec<_> = rows().filter(|x| !is_certain(x.1)).map(|(row, s)| place(row, s)).collect();
    let mut plot = Plot::new("Gain of the best action")
        .size(720.0, 90.0 + 22.0 * order.len() as f64)
        .x_label("gain over the recorded mix of actions")
        .x_include(0.0)
        .y_names(order.iter().map(|&s| name(run, s)));
    if !certain.is_empty() {
        plot = plot.points("significantly above 0", &certain).ink(Ink::Series(0));
    }
    if !open.is_empty() {
        let label = if advice.intervals.is_some() { "may be chance" } else { "gain" };
        plot = plot.points(label, &open).ink(Ink::Series(1));
    }
    let Some(intervals) = &advice.intervals else { return plot };
    rows().filter(|x| !intervals.gain[x.1].low.is_nan()).fold(plot, |plot, (row, s)| {
        let (ends, ink) = (intervals.gain[s], Ink::Series(usize::from(!is_certain(s))));
        plot.line("", &[(ends.low, row as f64), (ends.high, row as f64)]).ink(ink)
    })
}

fn gains_caption(run: &LogRun) -> String {
    let interval =
        if run.advice.intervals.is_some() { ", with its 95 % interval over resampled episodes" } else { "" };
    format!(
        "What the best recorded action gains in a state over the recorded mix of actions, if the policy is followed \
         afterwards{interval}. States are ordered by gain times rows; at most {SHOWN} are shown."
    )
}

fn states(run: &LogRun, order: &[usize]) -> Table {
    let advice = &run.advice;
    let mut header: Vec<String> = run.log.state_columns().map(str::to_owned).collect();
    header.extend(["best", "usual", "value", "behaviour", "gain", "rows", "of the best"].map(str::to_owned));
    if advice.intervals.is_some() {
        header.extend(["gain, 95 %".to_owned(), "certain".to_owned()]);
    }
    let table = Table::new(header)
        .caption("The same states: `value` is that of the policy, `behaviour` that of the log.");
    order.iter().fold(table, |table, &s| {
        let mut cells: Vec<Cell> = run.log.state_labels(advice, s).into_iter().map(Cell::from).collect();
        cells.push(run.log.action_label(advice, s).into());
        cells.push(run.log.pair_label(advice, advice.usual[s]).into());
        cells.extend(
            [advice.value[s], advice.behaviour_value[s], advice.gain[s]].map(|x| Cell::from(compact(x))),
        );
        let counts = &advice.empirical.counts;
        cells.extend([advice.count[s], counts[advice.pair(s)]].map(|n| Cell::from(grouped(n as i64))));
        if let Some(intervals) = &advice.intervals {
            cells.push(range(intervals.gain[s]).into());
            cells.push(if intervals.certain[s] { Cell::good("yes") } else { Cell::from("no") });
        }
        table.row(cells)
    })
}

/// How often the log and the policy take each action, over the log's rows.
fn actions(run: &LogRun) -> Table {
    let (advice, log) = (&run.advice, &run.log);
    let mut rows: std::collections::BTreeMap<i64, (usize, u64, u64)> = std::collections::BTreeMap::new();
    let mdp = &advice.empirical.mdp;
    for s in 0..advice.states() {
        for pair in mdp.pairs_of(s) {
            let entry = rows.entry(advice.empirical.pair_actions[pair]).or_insert((pair, 0, 0));
            entry.1 += advice.empirical.counts[pair];
            if pair == advice.pair(s) {
                entry.2 += advice.count[s];
            }
        }
    }
    let total = advice.count.iter().sum::<u64>().max(1) as f64;
    let share = |n: u64| percent(n as f64 / total, 1);
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.1));
    let hidden = rows.len().saturating_sub(SHOWN);
    let more = if hidden > 0 { format!(" {hidden} rarer actions are left out.") } else { String::new() };
    let caption = format!(
        "How often each action was recorded, and how often the policy takes it in the same states.{more}"
    );
    rows.iter()
        .take(SHOWN)
        .fold(Table::new(["action", "recorded", "policy"]).caption(caption), |table, row| {
            table.row([log.pair_label(advice, row.0), share(row.1), share(row.2)])
        })
}

fn reading(run: &LogRun) -> Vec<String> {
    let mut items = vec![
        "In each state the policy takes the recorded action with the highest value in the empirical MDP of the log, which \
         averages the outcomes of each state-action pair over its rows. Actions never recorded in a state are not \
         considered."
            .to_owned(),
        "The best of several noisy averages looks better than it is. `value` and `gain` have this bias; the intervals do \
         not add to it, because each resample of the episodes only evaluates the policy found on the whole log."
            .to_owned(),
        "A gain counts as significant if its 95 % interval is above 0 and at least 5 episodes took the action. With many \
         states, about 1 in 40 of those without any gain will pass by chance."
            .to_owned(),
        "The state must contain what the decisions were based on. If a hidden variable influenced both the action and the \
         outcome, acting differently will not bring this gain."
            .to_owned(),
    ];
    if run.summary.min_count > 1 {
        items.push(format!(
            "Actions with fewer than {} rows are not recommended; where no action has that many ({} states), the policy \
             keeps the recorded mix.",
            run.summary.min_count,
            grouped(run.summary.unsupported as i64)
        ));
    }
    items
}

fn range(interval: Interval) -> String {
    if interval.low.is_nan() {
        return "unknown".to_owned();
    }
    format!("{} to {}", compact(interval.low), compact(interval.high))
}

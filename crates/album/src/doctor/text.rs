//! The text form of an inspection.

use super::{Diagnosis, FileInspection, Inspection, Warning};
use album_base::number::{compact, fixed, grouped, percent, plural};
use album_base::text::wrapped;
use album_data::{ActionSpace, EndCounts};
use album_tabular::ValueSummary;
use std::fmt;

/// Maximum line width, for narrow terminals.
const WIDTH: usize = 80;
/// Width of the column of names.
const NAMES: usize = 16;

/// A page of sections, each with named lines.
struct Page {
    lines: Vec<String>,
}

impl Page {
    fn section(&mut self, title: &str) {
        self.lines.extend([String::new(), title.to_owned()]);
    }

    /// A named line; without a name, it continues the previous one. Long values wrap with indentation.
    fn line(&mut self, name: &str, value: &str) {
        for (i, part) in wrapped(value, WIDTH - NAMES - 2).iter().enumerate() {
            let name = if i == 0 { name } else { "" };
            self.lines.push(format!("{name:>NAMES$}  {part}"));
        }
    }
}

fn count(n: usize) -> String {
    grouped(n as i64)
}

impl fmt::Display for FileInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, diagnosis) = (&self.found, &self.found.diagnosis);
        let mut page = Page { lines: Vec::new() };
        page.line("file", &format!("{} ({})", self.file.display(), album_base::number::bytes(self.bytes)));
        let task = match (&self.task, self.own_rewards) {
            (Some(task), _) => task.as_str(),
            (None, true) => "none; the rewards are the file's own",
            (None, false) => "none",
        };
        page.line("task", task);
        page.line("format", found.format.name());
        if !found.guesses.is_empty() {
            page.line("guessed", &found.guesses.join("; "));
        }
        contents(&mut page, diagnosis);
        meaning(&mut page, found);
        rewards(&mut page, diagnosis);
        match diagnosis.warnings.len() {
            0 => page.section("No warnings"),
            n => page.section(&plural(n, "warning", "warnings").to_uppercase()),
        }
        for Warning { code, message } in &diagnosis.warnings {
            page.lines.push(format!("  ! {code}"));
            page.lines.extend(wrapped(message, WIDTH - 4).iter().map(|line| format!("    {line}")));
        }
        f.write_str(&page.lines.join("\n"))
    }
}

fn contents(page: &mut Page, diagnosis: &Diagnosis) {
    page.section("Contents");
    page.line("transitions", &count(diagnosis.transitions));
    let lengths = diagnosis.episode_length;
    let long = if lengths.min == lengths.max {
        format!("each {} long", count(lengths.min))
    } else {
        format!("{} to {} long, median {}", count(lengths.min), count(lengths.max), count(lengths.median))
    };
    page.line("episodes", &format!("{}, {long}", count(diagnosis.episodes)));
    for (name, columns) in [("observations", &diagnosis.observations), ("actions", &diagnosis.actions)] {
        let least = columns.iter().map(|c| c.min).fold(f64::INFINITY, f64::min);
        let most = columns.iter().map(|c| c.max).fold(f64::NEG_INFINITY, f64::max);
        let (flattest, widest) = (
            columns.iter().map(|c| c.std).fold(f64::INFINITY, f64::min),
            columns.iter().map(|c| c.std).fold(0.0, f64::max),
        );
        page.line(
            name,
            &format!(
                "{} from {} to {}, deviations {} to {}",
                plural(columns.len(), "number", "numbers"),
                compact(least),
                compact(most),
                compact(flattest),
                compact(widest)
            ),
        );
    }
    page.line(
        "",
        &format!("{} of the action components at their bounds", percent(diagnosis.saturated_action_share, 1)),
    );
    let repeats = &diagnosis.repeats;
    let states = if repeats.distinct_states == diagnosis.rows {
        format!("no state occurs twice among {}", count(diagnosis.rows))
    } else {
        format!("{} different states among {}", count(repeats.distinct_states), count(diagnosis.rows))
    };
    page.line("repetitions", &states);
    if repeats.repeated_pairs > 0 {
        page.line(
            "",
            &format!(
                "{} with the same state and action, {} of them with different outcomes; {} exactly like an earlier one",
                plural(repeats.repeated_pairs, "pair", "pairs"),
                count(repeats.pairs_with_several_successors.max(repeats.pairs_with_several_rewards)),
                plural(repeats.duplicate_transitions, "transition", "transitions")
            ),
        );
    }
}

/// Observations and actions in physical units.
fn meaning(page: &mut Page, found: &Inspection) {
    const SHOWN: usize = 12;
    let list = |names: &[String]| {
        let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
    };
    page.line("observed", &list(&found.observation.names));
    match &found.action.space {
        ActionSpace::Discrete { n } => {
            let named =
                if found.action.names.len() == *n { list(&found.action.names) } else { String::new() };
            page.line("choices", format!("{n} {named}").trim());
        }
        ActionSpace::Continuous { low, high } => {
            let bound = |i: usize| {
                let name = found.action.names.get(i).map_or("", String::as_str);
                format!("{name} {} to {}", compact(f64::from(low[i])), compact(f64::from(high[i])))
            };
            page.line("bounds", &list(&(0..low.len()).map(bound).collect::<Vec<_>>()));
        }
    }
    let EndCounts { terminal, timeout } = found.ends;
    page.line("ends", &format!("{} by the end of the task, {} cut", count(terminal), count(timeout)));
}

fn rewards(page: &mut Page, diagnosis: &Diagnosis) {
    let Some(labels) = &diagnosis.labels else { return };
    page.section("Rewards");
    let total: usize = labels.reward_histogram.iter().map(|bin| bin.count).sum();
    let names: Vec<String> = labels
        .reward_histogram
        .iter()
        .map(|bin| {
            if bin.from == bin.to {
                compact(bin.from)
            } else {
                format!("{} to {}", compact(bin.from), compact(bin.to))
            }
        })
        .collect();
    let most = labels.reward_histogram.iter().map(|bin| bin.count).max().unwrap_or(1).max(1);
    let counts: Vec<String> = labels.reward_histogram.iter().map(|bin| count(bin.count)).collect();
    let wide = counts.iter().map(String::len).max().unwrap_or(0);
    for (i, bin) in labels.reward_histogram.iter().enumerate() {
        let bar = "#".repeat((30 * bin.count).div_ceil(most));
        let share = percent(bin.count as f64 / total as f64, 1);
        page.lines.push(format!("{:>NAMES$}  {:>wide$} {share:>7}  {bar}", names[i], counts[i]));
    }
    page.line("sum", &compact_sum(labels.reward_sum));
    page.line(
        "terminal",
        &format!(
            "the task ends (mask 0) in {} of the episodes, {} in all",
            percent(labels.goal_episode_share, 1),
            plural(labels.mask_zeros, "transition", "transitions")
        ),
    );
    page.section(&format!("Values (discount {})", labels.gamma));
    page.lines.push(format!("{:>NAMES$}  {:>10} {:>10} {:>10}", "", "max", "mean", "min"));
    let values = |v: &ValueSummary| [v.max, v.mean, v.min].map(|x| format!("{:>10}", fixed(x, 2))).join(" ");
    if let Some(v_star) = &labels.v_star {
        page.lines.push(format!("{:>NAMES$}  {}", "V*_D", values(v_star)));
    }
    if let Some(returns) = &labels.return_to_go {
        page.lines.push(format!("{:>NAMES$}  {}", "return-to-go", values(returns)));
    }
    if let (Some(share), Some(most)) = (labels.v_star_above_return_share, labels.v_star_above_return_max) {
        let note = if share > 0.0 {
            format!(
                "trajectories meet: V*_D is above the recorded return in {} of the transitions, by up to {}",
                percent(share, 1),
                compact(most)
            )
        } else {
            "the same: no trajectory meets a better one".to_owned()
        };
        page.line("", &note);
    }
}

/// A sum, printed without decimals if it is a whole number.
fn compact_sum(sum: f64) -> String {
    if sum.fract() == 0.0 { fixed(sum, 0) } else { fixed(sum, 3) }
}

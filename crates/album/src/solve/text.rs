//! The text form of the results.

use super::{LogSummary, ProgramSummary};
use album_base::number::{compact, grouped, seconds};
use album_tabular::log::Interval;
use std::fmt;

impl fmt::Display for LogSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let r = self;
        let count = |n: usize| grouped(n as i64);
        let with = |value: f64, interval: Option<Interval>| match interval {
            Some(i) => format!("{} (95 %: {} to {})", compact(value), compact(i.low), compact(i.high)),
            None => compact(value),
        };
        let mut lines = vec![
            ("log", format!("{} transitions in {} episodes", count(r.transitions), count(r.episodes))),
            (
                "states",
                format!(
                    "{}, {} with more than one of {} actions; {} pairs",
                    count(r.states),
                    count(r.choices),
                    count(r.actions),
                    count(r.pairs)
                ),
            ),
            ("recorded return", with(r.recorded_return, r.recorded_return_interval)),
            ("behaviour", format!("{} in the model of the log", compact(r.initial_behaviour_value))),
            (
                "policy",
                format!("{} in the model of the log", with(r.initial_value, r.initial_value_interval)),
            ),
            ("changes", format!("differs from the usual action in {} states", count(r.changes))),
        ];
        if r.min_count > 1 {
            let text = format!(
                "{} states have no action with {} rows; the policy keeps the recorded mix there",
                count(r.unsupported),
                r.min_count
            );
            lines.push(("support", text));
        }
        match r.certain {
            Some(certain) => {
                lines.push((
                    "certain",
                    format!("the gain is significantly above 0 in {} states", count(certain)),
                ));
            }
            None => lines.push(("certain", "unknown; --bootstrap 200 tells gains from chance".into())),
        }
        lines.push(("residual", format!("{} (Bellman equation)", compact(r.bellman_residual))));
        lines.push((
            "time",
            format!(
                "{} (reading {}, solution {})",
                seconds(r.seconds_read + r.seconds_solution),
                seconds(r.seconds_read),
                seconds(r.seconds_solution)
            ),
        ));
        align(f, &lines)
    }
}

impl fmt::Display for ProgramSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let r = self;
        let count = |n: usize| grouped(n as i64);
        let sandwich = match (r.sandwich.violations, r.sandwich.max_violation) {
            (Some(count), Some(largest)) => {
                format!("{}: {count} violations, largest {}", r.sandwich.what, compact(largest))
            }
            _ => format!("not checked: {}", r.sandwich.what),
        };
        let lines = [
            (
                "data",
                format!(
                    "{}: {} transitions in {} {}",
                    r.input,
                    count(r.transitions),
                    count(r.trajectories),
                    if r.trajectories == 1 { "trajectory" } else { "trajectories" }
                ),
            ),
            (
                "empirical MDP",
                format!(
                    "{} pairs, {} states with actions, {} absorbing, {}",
                    count(r.pairs),
                    count(r.states),
                    count(r.absorbing_states),
                    if r.deterministic { "deterministic" } else { "stochastic" }
                ),
            ),
            (
                "program",
                format!(
                    "{} variables, {} constraints{} (K = {}, gamma = {})",
                    count(r.variables),
                    count(r.constraints),
                    r.nonzeros.map_or(String::new(), |n| format!(", {} nonzeros", count(n))),
                    r.k,
                    r.gamma
                ),
            ),
            ("objective", format!("{:.12}", r.objective)),
            (
                "V*_D",
                format!("min {}, mean {}, max {}", compact(r.v_min), compact(r.v_mean), compact(r.v_max)),
            ),
            (
                "certificate",
                format!(
                    "primal {}, dual {}, slackness {}, gap {}",
                    compact(r.certificate.primal),
                    compact(r.certificate.dual),
                    compact(r.certificate.slackness),
                    compact(r.certificate.gap)
                ),
            ),
            (
                "largest duals",
                format!("lambda_B {}, lambda_E {}", compact(r.max_dual_b), compact(r.max_dual_e)),
            ),
            ("value iteration", format!("differs by {}", compact(r.diff_vs_value_iteration))),
            ("sandwich", sandwich),
            (
                "time",
                format!(
                    "{} (assembly {}, solution {}, certificate {})",
                    seconds(r.seconds),
                    seconds(r.seconds_assembly),
                    seconds(r.seconds_solution),
                    seconds(r.seconds_certificate)
                ),
            ),
        ];
        align(f, &lines)
    }
}

fn align(f: &mut fmt::Formatter<'_>, lines: &[(&str, String)]) -> fmt::Result {
    let text: Vec<String> = lines.iter().map(|(name, value)| format!("{name:>15}  {value}")).collect();
    f.write_str(&text.join("\n"))
}

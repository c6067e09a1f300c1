//! Likely problems in training, phrased so that the user can act on them.

use album_data::{BadNumbers, Unchecked};
use serde::Serialize;

use crate::doctor::{Diagnosis, K};

/// A warning about the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A stable identifier for programs.
    pub code: &'static str,
    /// A sentence for the user.
    pub message: String,
}

/// A mean or standard deviation above this, or a ratio of deviations above its square, makes learning hard.
const LARGE: f64 = 100.0;

pub(super) fn all(diagnosis: &Diagnosis, short_episodes: usize, data: &Unchecked) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code, message: String| warnings.push(Warning { code, message });

    for message in &data.warnings {
        warn("ignored", message.clone());
    }
    for bad in &diagnosis.non_finite {
        warn("non_finite", non_finite(bad));
    }
    if let Some(outside) = &diagnosis.actions_outside {
        warn(
            "actions_out_of_range",
            format!(
                "{} numbers in `actions` are beyond ±1, the first is {} in {}; training refuses the file: scale \
                 actions to [-1, 1]",
                outside.count,
                outside.value,
                place(outside)
            ),
        );
    }
    if data.unfinished {
        warn(
            "unfinished_episode",
            "the last row of the file does not end an episode; training refuses the file: set `terminals` to \
             true there"
                .to_owned(),
        );
    }
    if diagnosis.episode_length.min == 0 {
        warn(
            "empty_episodes",
            "some episodes have one row and no transition: is `terminals` true only on last rows?".to_owned(),
        );
    }
    labels(diagnosis, &mut warn);
    let repeats = &diagnosis.repeats;
    if let Some((a, b)) = repeats.different {
        let (successors, rewards) =
            (repeats.pairs_with_several_successors, repeats.pairs_with_several_rewards);
        if successors > 0 {
            warn(
                "stochastic",
                format!(
                    "{successors} of {} repeated pairs of state and action led to different states (rows {a} and \
                     {b} differ): K-step returns are lower bounds only in deterministic data, lucky ones will be \
                     mistaken for attainable values; consider k = 1",
                    repeats.repeated_pairs
                ),
            );
        }
        if rewards > 0 {
            warn(
                "stochastic_rewards",
                format!(
                    "{rewards} of {} repeated pairs of state and action had different rewards or masks (rows {a} \
                     and {b} differ): does the observation contain what the reward depends on?",
                    repeats.repeated_pairs
                ),
            );
        }
    }
    if repeats.duplicate_transitions * 20 > diagnosis.transitions {
        warn(
            "duplicates",
            format!(
                "{} of {} transitions repeat an earlier one exactly",
                repeats.duplicate_transitions, diagnosis.transitions
            ),
        );
    }
    if short_episodes > 0 && diagnosis.episode_length.min > 0 {
        warn(
            "short_episodes",
            format!(
                "{short_episodes} episodes are shorter than K = {K} steps; their windows are cut at the end"
            ),
        );
    }
    columns(diagnosis, &mut warn);
    warnings
}

fn labels(diagnosis: &Diagnosis, warn: &mut impl FnMut(&'static str, String)) {
    let Some(labels) = &diagnosis.labels else { return };
    if labels.bad_masks > 0 {
        warn(
            "bad_masks",
            format!("{} masks are neither 0 nor 1; training refuses the file", labels.bad_masks),
        );
    }
    // A goal shows in rewards of a few values, such as -1 a step; other logs need not have one.
    let counted = labels.reward_histogram.iter().all(|bin| bin.from == bin.to);
    if labels.mask_zeros == 0 && counted {
        warn(
            "goal_never_reached",
            "the goal is never reached: no mask is 0, so values reflect progress towards it only as far as the \
             rewards do"
                .to_owned(),
        );
    }
    if labels.mask_zeros == diagnosis.transitions {
        warn("always_solved", "every mask is 0: there is nothing to learn".to_owned());
    }
    // As `own::constant_rewards`, from what was counted.
    if let [only] = labels.reward_histogram[..]
        && only.from == only.to
        && labels.mask_zeros == 0
    {
        warn("constant_rewards", format!("every reward is {}: all actions are equally good", only.from));
    }
    // With positive rewards, a transition with mask 0 may well have a reward.
    let costs = labels.reward_histogram.last().is_some_and(|bin| bin.to <= 0.0);
    if costs
        && counted
        && labels.mask_zeros > 0
        && labels.solved_with_reward + labels.unsolved_without_reward > 0
    {
        warn(
            "reward_mask_mismatch",
            format!(
                "{} transitions have mask 0 and a reward below 0, {} have mask 1 and reward 0; rewards that count \
                 the cost to the goal are 0 exactly where the mask is",
                labels.solved_with_reward, labels.unsolved_without_reward
            ),
        );
    }
    if labels.v_star.is_none() {
        warn("no_values", "no V*_D: some rewards are not finite, or some masks neither 0 nor 1".to_owned());
    }
}

fn columns(diagnosis: &Diagnosis, warn: &mut impl FnMut(&'static str, String)) {
    for (code, array, columns) in [
        ("constant_observations", "observations", &diagnosis.observations),
        ("constant_actions", "actions", &diagnosis.actions),
    ] {
        let constant: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].min == columns[i].max).collect();
        if !constant.is_empty() {
            warn(code, format!("`{array}` never change in {}", list(&constant)));
        }
    }
    if diagnosis.saturated_action_share > 0.5 {
        let share = 100.0 * diagnosis.saturated_action_share;
        warn("saturated_actions", format!("{share:.0} % of all numbers in `actions` are at their bounds"));
    }
    let spreads = || diagnosis.observations.iter().filter(|c| c.std > 0.0).map(|c| c.std);
    let (least, most) = (spreads().fold(f64::INFINITY, f64::min), spreads().fold(0.0, f64::max));
    let large: Vec<usize> = (0..diagnosis.observations.len())
        .filter(|&i| diagnosis.observations[i].std.max(diagnosis.observations[i].mean.abs()) > LARGE)
        .collect();
    if !large.is_empty() {
        warn(
            "unscaled_observations",
            format!(
                "`observations` have a mean or deviation above {LARGE} in {}; set standardize=true",
                list(&large)
            ),
        );
    } else if most > LARGE * LARGE * least {
        warn(
            "unscaled_observations",
            format!(
                "deviations of `observations` range from {least:.1e} to {most:.1e}; consider standardize=true"
            ),
        );
    }
}

fn non_finite(bad: &BadNumbers) -> String {
    format!(
        "{} numbers in `{}` are NaN or infinite, the first is {} in {}; training refuses the file",
        bad.count,
        bad.array,
        bad.value,
        place(bad)
    )
}

fn place(bad: &BadNumbers) -> String {
    match bad.column {
        Some(column) => format!("row {}, column {column}", bad.row),
        None => format!("row {}", bad.row),
    }
}

/// `column 3`, `columns 1, 2, 5 and 12 more`.
fn list(columns: &[usize]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = columns.iter().take(SHOWN).map(usize::to_string).collect();
    let more = columns.len().saturating_sub(SHOWN);
    let word = if columns.len() == 1 { "column" } else { "columns" };
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{word} {}{more}", shown.join(", "))
}

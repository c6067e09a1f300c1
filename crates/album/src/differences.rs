//! How a policy would act differently from the recorded behaviour.

use crate::error::Error;
use crate::exact::Compared;
use crate::names::Names;
use crate::record_file;
use album_agents::{Agent, Moment};
use album_base::number::grouped;
use album_data::{ActionSpace, Dataset, View};
use album_plot::{Legend, Plot, panels};
use album_report::html::Page;
use album_report::table::{Cell, Table};
use album_train::Columns;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "differences.json";
/// Maximum number of transitions compared, evenly spread over the data.
const TRANSITIONS: usize = 10_000;
const BINS: usize = 40;
/// Number of states shown.
const STATES: usize = 10;

/// The policy's actions compared with the recorded ones in the same states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Differences {
    /// Whether the states are from held-out episodes.
    pub held_out: bool,
    /// Number of states compared.
    pub states: usize,
    /// One entry per action dimension, or a single one for discrete actions.
    pub actions: Vec<Actions>,
    /// States with the largest expected gain over the recorded action, largest first; empty if the agent has
    /// no Q.
    pub gains: Vec<Gain>,
    /// Names of the observation dimensions.
    pub observation_names: Vec<String>,
    /// Learned values compared with exact ones, if states repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Compared>,
}

/// Distribution of one action dimension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Actions {
    /// Name of the action dimension.
    pub name: String,
    /// Centre of each bin in physical units, or the index of each choice.
    pub at: Vec<f64>,
    /// Whether the bins are discrete choices.
    pub discrete: bool,
    /// Fraction of the recorded actions in each bin.
    pub recorded: Vec<f64>,
    /// Fraction of the policy's actions in each bin.
    pub policy: Vec<f64>,
}

/// A state with the recorded action and the policy's action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Index of the episode in the compared data, from 0.
    pub episode: usize,
    /// Step within the episode.
    pub step: usize,
    /// The observation.
    pub observation: Vec<f32>,
    /// The recorded action, in physical units.
    pub recorded: Vec<f32>,
    /// The policy's action, in physical units.
    pub policy: Vec<f32>,
    /// Q of the policy's action minus Q of the recorded one, in units of the data's rewards.
    pub gain: f32,
}

impl Differences {
    /// Compares the policy with the recorded actions in states of the data.
    pub fn of(agent: &mut dyn Agent, data: &Dataset, held_out: bool, names: &Names) -> Self {
        let space = data.action_space();
        let (s, a) = (data.observation_dim(), data.action_dim());
        let chosen: Vec<usize> = (0..data.len()).step_by(data.len().div_ceil(TRANSITIONS).max(1)).collect();
        let (mut observations, mut recorded) = (Vec::new(), Vec::new());
        for &transition in &chosen {
            observations.extend_from_slice(data.observation(transition));
            recorded.extend_from_slice(data.action(transition));
        }
        space.to_physical(&mut recorded);
        let moments: Vec<Moment> =
            (0..chosen.len()).map(|row| Moment { episode: row as u64, step: 0 }).collect();
        let mut policy = Vec::new();
        agent.policy().act(&observations, &moments, &mut policy);

        let actions = match space {
            ActionSpace::Discrete { n } => {
                vec![Actions::counted(names, *n, &recorded, &policy)]
            }
            ActionSpace::Continuous { low, high } => (0..a)
                .map(|j| {
                    let name = names.actions.get(j).cloned().unwrap_or_else(|| format!("action {j}"));
                    let dimension =
                        |all: &[f32]| all.iter().skip(j).step_by(a).copied().collect::<Vec<f32>>();
                    Actions::binned(name, [low[j], high[j]], &dimension(&recorded), &dimension(&policy))
                })
                .collect(),
        };

        let states = View::new(&observations, chosen.len(), s);
        let mut q = |actions: &[f32]| agent.q(states, View::new(actions, chosen.len(), a));
        let mut gains = Vec::new();
        if let (Some(before), Some(after)) = (q(&recorded), q(&policy)) {
            let gain = |row: &usize| after[*row] - before[*row];
            let mut order: Vec<usize> = (0..chosen.len()).collect();
            order.sort_by(|x, y| gain(y).total_cmp(&gain(x)));
            for row in order.into_iter().take(STATES) {
                let episodes = data.episodes();
                let episode = (0..episodes.len()).rfind(|&e| episodes.start(e) <= chosen[row]).unwrap_or(0);
                gains.push(Gain {
                    episode,
                    step: chosen[row] - episodes.start(episode),
                    observation: observations[row * s..][..s].to_vec(),
                    recorded: recorded[row * a..][..a].to_vec(),
                    policy: policy[row * a..][..a].to_vec(),
                    gain: gain(&row),
                });
            }
        }
        let (states, observation_names) = (chosen.len(), names.observations.clone());
        Differences { held_out, states, actions, gains, observation_names, exact: None }
    }

    /// Writes the comparison into the run directory.
    pub fn write(&self, run: &Path) -> Result<(), Error> {
        record_file::write(&run.join(FILE), self)
    }

    /// Reads the comparison of a run, if there is one.
    pub fn read(run: &Path) -> Result<Option<Self>, Error> {
        record_file::read(&run.join(FILE))
    }

    /// Adds the section to the run's report; `train` are the metrics logged during training.
    pub fn show(&self, page: Page, train: &Columns) -> Page {
        let page = match &self.exact {
            Some(compared) => exact(page, compared, train),
            None => page,
        };
        let whose = if self.held_out { "held-out " } else { "" };
        let plots: Vec<Plot> = self.actions.iter().map(Actions::plot).collect();
        let page = page.section("What the policy does differently").figure(
            "actions",
            panels("", plots.iter(), 2),
            format!(
                "Shares of actions in the same {} {whose}states: as recorded, and as the policy chooses.",
                grouped(self.states as i64)
            ),
        );
        if self.gains.is_empty() {
            return page;
        }
        let digits = if self.actions.iter().any(|actions| actions.discrete) { 0 } else { 3 };
        let numbers =
            |numbers: &[f32]| numbers.iter().map(|x| format!("{x:.digits$}")).collect::<Vec<_>>().join(", ");
        let mut table =
            Table::new(["gain", "episode", "step", "recorded action", "policy's action", "observation"]);
        for gain in &self.gains {
            table = table.row([
                Cell::fixed(f64::from(gain.gain), 3),
                Cell::from(gain.episode.to_string()),
                Cell::from(gain.step.to_string()),
                Cell::new(numbers(&gain.recorded)),
                Cell::new(numbers(&gain.policy)),
                Cell::new(shown(&self.observation_names, &gain.observation)),
            ]);
        }
        page.table(table.caption(format!(
            "The {whose}states where the policy's action is worth most above the recorded one, by the agent's own Q: \
             candidates for a second look, not evidence. Q is least reliable where the action is far from the data."
        )))
    }
}

/// Adds the comparison of learned values with the exact in-sample values.
fn exact(page: Page, compared: &Compared, train: &Columns) -> Page {
    let plot = |letter: &str, points: &[[f64; 2]]| {
        let points: Vec<(f64, f64)> = points.iter().map(|&[x, y]| (x, y)).collect();
        let (low, high) = points
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &(x, _)| (low.min(x), high.max(x)));
        Plot::new("")
            .size(440.0, 320.0)
            .x_label(format!("exact {letter}*"))
            .y_label(format!("learned {letter}"))
            .points("learned", &points)
            .line("equal", &[(low, low), (high, high)])
            .legend(Legend::Hidden)
    };
    let plots = [("Q", &compared.q), ("V", &compared.v)];
    let plots: Vec<Plot> = plots
        .into_iter()
        .filter(|(_, points)| !points.is_empty())
        .map(|(of, points)| plot(of, points))
        .collect();
    page.section("Against the exact values")
        .paragraph(format!(
            "States repeat in this data, so the best values that it supports can be computed exactly. Mean over the data: \
             {:.4} for the best policy in the data, {:.4} for the learned policy (evaluated exactly; an action that was \
             never recorded in its state counts as the worst that the rewards allow).",
            compared.mean_v_star, compared.mean_policy_value
        ))
        .figure("exact", panels("", plots.iter(), 2), "Learned values against exact ones, pair by pair and state by state.")
        .figure(
            "exact-over-training",
            panels("", over_training(train).iter(), 2),
            "The same over training: exact value of the policy beside that of the best one in the data, and mean absolute \
             errors of the learned values.",
        )
}

/// The value of the policy and the errors of the critic, as logged.
fn over_training(train: &Columns) -> [Plot; 2] {
    let series = |name: &str| train.series(&format!("training/exact/{name}"));
    let plot = |label: &str| Plot::new("").size(440.0, 320.0).x_label("training step").y_label(label);
    let values = plot("mean over the data")
        .line("policy", &series("policy_value"))
        .dashed("best in the data", &series("v_star"));
    let mut errors = plot("mean absolute error").y_include(0.0);
    for (name, column) in [("Q", "q_error"), ("V", "v_error")] {
        let series = series(column);
        if !series.is_empty() {
            errors = errors.line(name, &series);
        }
    }
    [values, errors]
}

/// The first few observation dimensions, with their names; of one-hot and other sparse observations, those that are
/// not 0.
fn shown(names: &[String], observation: &[f32]) -> String {
    const FEW: usize = 6;
    let zeros = observation.iter().filter(|&&x| x == 0.0).count();
    let sparse = observation.len() > FEW && 2 * zeros > observation.len() && zeros < observation.len();
    let worth = observation.iter().zip(names).filter(|(x, _)| !sparse || **x != 0.0);
    let named = worth.clone().take(FEW).map(|(x, name)| format!("{name} {x:.3}"));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if worth.count() > FEW {
        text.push_str(", …");
    }
    text
}

impl Actions {
    fn counted(names: &Names, n: usize, recorded: &[f32], policy: &[f32]) -> Self {
        let share = |actions: &[f32]| {
            let times_taken = |choice: usize| actions.iter().filter(|&&x| x == choice as f32).count();
            (0..n)
                .map(|choice| times_taken(choice) as f64 / actions.len().max(1) as f64)
                .collect::<Vec<f64>>()
        };
        let name = match &names.actions[..] {
            [] => "choice".into(),
            [name] => name.clone(),
            choices => format!("choice ({})", choices.join(", ")),
        };
        let at = (0..n).map(|choice| choice as f64).collect();
        Actions { name, at, discrete: true, recorded: share(recorded), policy: share(policy) }
    }

    fn binned(name: String, [low, high]: [f32; 2], recorded: &[f32], policy: &[f32]) -> Self {
        let (low, width) = (f64::from(low), f64::from(high - low) / BINS as f64);
        let share = |actions: &[f32]| {
            let mut shares = vec![0.0; BINS];
            for &x in actions {
                let bin = ((f64::from(x) - low) / width).clamp(0.0, (BINS - 1) as f64) as usize;
                shares[bin] += 1.0 / actions.len() as f64;
            }
            shares
        };
        let at = (0..BINS).map(|bin| low + (bin as f64 + 0.5) * width).collect();
        Actions { name, at, discrete: false, recorded: share(recorded), policy: share(policy) }
    }

    fn plot(&self) -> Plot {
        let line = |shares: &[f64]| self.at.iter().copied().zip(shares.iter().copied()).collect::<Vec<_>>();
        let plot = Plot::new(self.name.clone()).size(440.0, 240.0).y_label("share").y_include(0.0);
        let (recorded, policy) = (line(&self.recorded), line(&self.policy));
        let plot = if self.discrete {
            plot.x_ticks(&self.at).points("recorded", &recorded).points("policy", &policy)
        } else {
            plot.line("recorded", &recorded).line("policy", &policy)
        };
        plot.legend(Legend::Right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_numbers_and_of_choices() {
        let actions = Actions::binned("u".into(), [0.0, 40.0], &[0.0, 0.5, 39.9, 40.0], &[20.5; 2]);
        assert_eq!((actions.recorded[0], actions.recorded[39], actions.policy[20]), (0.5, 0.5, 1.0));
        assert_eq!(actions.at[20], 20.5);
    }

    #[test]
    fn sparse_observations_show_what_is_there() {
        let names: Vec<String> = (0..16).map(|i| format!("s[{i}]")).collect();
        let mut observation = vec![0.0; 16];
        assert!(shown(&names, &observation).starts_with("s[0] 0.000, s[1] 0.000"));
        observation[11] = 1.0;
        assert_eq!(shown(&names, &observation), "s[11] 1.000");
        assert_eq!(shown(&names[..2], &[0.0, 2.0]), "s[0] 0.000, s[1] 2.000");
        assert!(shown(&names, &[1.0; 16]).ends_with(", …"));
    }
}

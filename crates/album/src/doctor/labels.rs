//! Rewards, masks, goals and values.

use std::collections::BTreeMap;

use album_data::Dataset;
use album_tabular::{JoinedStates, TabularError, ValueSummary};
use serde::Serialize;

/// Statistics of rewards and masks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelStatistics {
    /// The sum of all rewards.
    pub reward_sum: f64,
    /// Histogram of the rewards: one bin per distinct reward if there are few, else ten ranges.
    pub reward_histogram: Vec<Bin>,
    /// Transitions whose state solves the task (mask 0).
    pub mask_zeros: usize,
    /// Masks that are neither 0 nor 1.
    pub bad_masks: usize,
    /// Transitions with mask 0 and a reward other than 0.
    pub solved_with_reward: usize,
    /// Transitions with mask 1 and reward 0.
    pub unsolved_without_reward: usize,
    /// Fraction of episodes with a transition whose state solves the task.
    pub goal_episode_share: f64,
    /// Discount factor of the values.
    pub gamma: f64,
    /// V*_D over the states of all transitions; absent if a reward is not finite or a mask not 0 or 1.
    pub v_star: Option<ValueSummary>,
    /// The discounted recorded return from each state.
    pub return_to_go: Option<ValueSummary>,
    /// Fraction of transitions where V*_D exceeds the return-to-go, because trajectories cross.
    pub v_star_above_return_share: Option<f64>,
    /// The largest such excess.
    pub v_star_above_return_max: Option<f64>,
}

/// A half-open range of rewards (`to` is included in the last bin); a single reward if both ends are equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// Lower end.
    pub from: f64,
    /// Upper end.
    pub to: f64,
    /// Number of transitions.
    pub count: usize,
}

/// Histograms use ranges if there are more distinct rewards than this.
const FEW: usize = 20;

pub(super) fn examine(
    data: &Dataset,
    joined: &JoinedStates,
    gamma: f64,
) -> Result<LabelStatistics, TabularError> {
    let episodes = data.episodes();
    let rewards = (0..episodes.len()).flat_map(|episode| data.episode_rewards(episode)).copied();
    let masks = (0..episodes.len()).flat_map(|episode| data.episode_masks(episode)).copied();
    let pairs = rewards.clone().zip(masks.clone());
    let with_goal = (0..episodes.len()).filter(|&episode| data.episode_masks(episode).contains(&0.0)).count();
    let mut statistics = LabelStatistics {
        reward_sum: rewards.clone().map(f64::from).sum(),
        reward_histogram: histogram(rewards.clone()),
        mask_zeros: masks.clone().filter(|&mask| mask == 0.0).count(),
        bad_masks: masks.filter(|&mask| mask != 0.0 && mask != 1.0).count(),
        solved_with_reward: pairs.clone().filter(|&(reward, mask)| mask == 0.0 && reward != 0.0).count(),
        unsolved_without_reward: pairs.filter(|&(reward, mask)| mask == 1.0 && reward == 0.0).count(),
        goal_episode_share: with_goal as f64 / episodes.len() as f64,
        gamma,
        v_star: None,
        return_to_go: None,
        v_star_above_return_share: None,
        v_star_above_return_max: None,
    };
    if rewards.clone().all(f32::is_finite) && statistics.bad_masks == 0 {
        let v_star = joined.values(data, gamma)?;
        let returns = data.returns_to_go(gamma);
        let above = v_star.values.iter().zip(&returns).map(|(value, recorded)| value - recorded);
        let scale = 1e-9 * returns.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
        statistics.v_star = Some(v_star.summary);
        statistics.return_to_go = Some(ValueSummary::new(&returns));
        statistics.v_star_above_return_share =
            Some(above.clone().filter(|&x| x > scale).count() as f64 / data.len() as f64);
        statistics.v_star_above_return_max = Some(above.fold(0.0, f64::max));
    }
    Ok(statistics)
}

fn histogram(rewards: impl Iterator<Item = f32> + Clone) -> Vec<Bin> {
    let finite = rewards.map(f64::from).filter(|reward| reward.is_finite());
    let mut counts: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    for reward in finite.clone() {
        // Keys that sort like the numbers; 0 and -0 are equal.
        let bits = (reward + 0.0).to_bits() as i64;
        let key = bits ^ (((bits >> 63) as u64) >> 1) as i64;
        counts.entry(key).or_insert((reward + 0.0, 0)).1 += 1;
        if counts.len() > FEW {
            return ranges(finite);
        }
    }
    counts.into_values().map(|(reward, count)| Bin { from: reward, to: reward, count }).collect()
}

fn ranges(rewards: impl Iterator<Item = f64> + Clone) -> Vec<Bin> {
    const RANGES: usize = 10;
    let (from, to) = rewards
        .clone()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), reward| (from.min(reward), to.max(reward)));
    let width = (to - from) / RANGES as f64;
    let mut bins: Vec<Bin> = (0..RANGES)
        .map(|i| Bin { from: from + width * i as f64, to: from + width * (i + 1) as f64, count: 0 })
        .collect();
    for reward in rewards {
        bins[(((reward - from) / width) as usize).min(RANGES - 1)].count += 1;
    }
    bins
}

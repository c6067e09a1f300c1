//! Checks that need no environment: learned values against recorded returns.

use album_agents::{Agent, Metrics};
use album_data::{Dataset, View};

/// Maximum number of initial states to check.
const EPISODES: usize = 1000;
/// For at least this many steps, values still reflect the initialisation.
const FRESH: u64 = 1000;

/// V at initial states, beside the recorded returns from there.
///
/// The V of the best policy that the data supports lies above the mean return of the data; a V far above the
/// best return has lost contact with the data.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    states: Vec<f32>,
    dim: usize,
    /// The mean discounted return of these episodes.
    observed: f64,
    /// The range of discounted returns that such rewards allow.
    range: [f64; 2],
    /// The first step that counts; before it, V still reflects its initialisation.
    from: u64,
    warned: bool,
}

impl Watch {
    pub(crate) fn new(data: &Dataset, gamma: f64, steps: u64) -> Self {
        let episodes = data.episodes();
        let acting: Vec<usize> = (0..episodes.len()).filter(|&e| episodes.length(e) > 0).collect();
        let chosen = acting.iter().step_by(acting.len().div_ceil(EPISODES).max(1));
        let (mut states, mut observed, mut count) = (Vec::new(), 0.0, 0usize);
        for &episode in chosen {
            states.extend_from_slice(data.observation(episodes.start(episode)));
            let (mut factor, mut total) = (1.0, 0.0);
            for (&reward, &mask) in data.episode_rewards(episode).iter().zip(data.episode_masks(episode)) {
                total += factor * f64::from(reward);
                factor *= gamma * f64::from(mask);
            }
            observed += total;
            count += 1;
        }
        Watch {
            states,
            dim: data.observation_dim(),
            observed: observed / count.max(1) as f64,
            range: value_range(data, gamma),
            from: (steps / 5).max(FRESH),
            warned: false,
        }
    }

    /// Adds `value/v_initial` and `value/return_initial` to the metrics of an agent with state values.
    pub(crate) fn measure(&self, agent: &mut dyn Agent, metrics: &mut Metrics) {
        let rows = self.states.len() / self.dim.max(1);
        if let Some(values) = agent.value(View::new(&self.states, rows, self.dim)) {
            let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / rows.max(1) as f64;
            metrics.push(("value/v_initial".into(), mean));
            metrics.push(("value/return_initial".into(), self.observed));
        }
    }

    /// Warns once when V leaves the range that the rewards allow.
    pub(crate) fn alarm(&mut self, step: u64, metrics: &Metrics) -> Option<String> {
        let metric = |name: &str| metrics.iter().find(|metric| metric.0 == name).map(|metric| metric.1);
        let (least, most) = (metric("value/v_min")?, metric("value/v_max")?);
        let [low, high] = self.range;
        let slack = 0.1 * (high - low);
        if self.warned || step < self.from || (least >= low - slack && most <= high + slack) {
            return None;
        }
        self.warned = true;
        Some(format!(
            "step {step}: V is between {least:.4} and {most:.4}, but rewards like the data's add up to {low:.4} to \
             {high:.4} at most: the critic diverges; try a smaller learning rate or another gamma"
        ))
    }
}

/// The smallest and largest discounted return possible with rewards in the data's range. Where episodes can
/// terminate, returns may consist of few rewards.
pub(crate) fn value_range(data: &Dataset, gamma: f64) -> [f64; 2] {
    let (mut low, mut high, mut ends) = (f64::INFINITY, f64::NEG_INFINITY, false);
    for episode in 0..data.episodes().len() {
        for (&reward, &mask) in data.episode_rewards(episode).iter().zip(data.episode_masks(episode)) {
            (low, high) = (low.min(f64::from(reward)), high.max(f64::from(reward)));
            ends |= mask == 0.0;
        }
    }
    let sum = |reward: f64| reward / (1.0 - gamma);
    if ends { [sum(low).min(low), sum(high).max(high)] } else { [sum(low), sum(high)] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_data::Rows;

    fn data() -> Dataset {
        Dataset::from_rows(Rows {
            observation_dim: 1,
            action_dim: 1,
            observations: vec![0.0, 1.0, 2.0, 3.0, 4.0],
            actions: vec![0.0; 5],
            rewards: vec![-1.0, -2.0, 0.0, 4.0, 0.0],
            masks: vec![1.0, 1.0, 1.0, 0.0, 1.0],
            terminals: vec![false, false, true, false, true],
        })
        .unwrap()
    }

    #[test]
    fn returns_of_initial_states_and_their_range() {
        let watch = Watch::new(&data(), 0.5, 10);
        // -1 - 0.5 * 2 and 4.
        assert_eq!((watch.observed, watch.states), (1.0, vec![0.0, 3.0]));
        assert_eq!(watch.range, [-4.0, 8.0]);
    }

    #[test]
    fn the_alarm_rings_once() {
        let mut watch = Watch::new(&data(), 0.5, 10_000);
        let metrics = |low: f64, high: f64| vec![("value/v_min".into(), low), ("value/v_max".into(), high)];
        assert_eq!(watch.alarm(1999, &metrics(-4.5, 80.0)), None); // too early
        assert_eq!(watch.alarm(2000, &metrics(-4.5, 8.5)), None);
        assert!(watch.alarm(2000, &metrics(-4.5, 80.0)).unwrap().contains("-4.0000 to 8.0000 at most"));
        assert_eq!(watch.alarm(3000, &metrics(-4.5, 90.0)), None);
        // In a run of a few steps, V is never checked.
        let mut short = Watch::new(&data(), 0.5, 5);
        assert!((1..=5).all(|step| short.alarm(step, &metrics(-4.5, 80.0)).is_none()));
    }
}

//! Whether the penalties of ALBUM's critic are large enough to hold up the values of a dataset.
//!
//! In the tabular case, `(Q*_D, V*_D)` is a stationary point of the loss if there are hinge weights `b, e, k <=
//! lambda` that balance the objective, each multiplied by the share `w` of updates that see its pair:
//!
//! ```text
//! at Q(s,a):  omega_Q w + e = b + k_Q
//! at V(s):    omega_V w(s) + gamma sum_(t,c) P(s|t,c) b(t,c) = sum_a e + k_V
//! ```
//!
//! `b` is a flow: it originates wherever there is data and accumulates along the best paths. Rollout terms absorb it,
//! but only where a recorded rollout is as good as `V*_D`. If the data seldom takes the best paths, `b` or `e` would
//! have to exceed its penalty. Then the objective wins and the values collapse, as if a reward seen in one transition
//! out of thousands did not exist.

use album_data::Dataset;
use album_tabular::Coefficients;
use album_tabular::truth::Truth;

/// How often updates see each pair of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// In proportion to how often it was recorded.
    AsRecorded,
    /// All pairs equally often.
    Equally,
}

/// What supports the values of a dataset, pair by pair.
#[derive(Debug)]
pub(crate) struct Support<'a> {
    truth: &'a Truth,
    /// Action probabilities of the optimal policy; uniform over ties.
    best: Vec<f64>,
    /// Fraction of each pair's recorded rollouts that reach `Q*_D` (`reach_q`) and `V*_D` (`reach_v`).
    reach_q: Vec<f64>,
    reach_v: Vec<f64>,
}

impl<'a> Support<'a> {
    /// Support with rollouts of `k` steps.
    pub fn new(truth: &'a Truth, data: &Dataset, k: usize) -> Self {
        let (empirical, mdp) = (truth.empirical(), &truth.empirical().mdp);
        let q: Vec<f64> = truth.pairs().map(|pair| pair.q).collect();
        let largest = (0..truth.states()).map(|state| truth.v(state).abs()).fold(0.0, f64::max);
        let tolerance = 1e-6 * (1.0 + largest);
        let mut best = vec![0.0; q.len()];
        for state in 0..truth.states() {
            let is_best = |pair: &usize| truth.v(state) - q[*pair] <= tolerance;
            let chance = 1.0 / mdp.pairs_of(state).filter(is_best).count() as f64;
            mdp.pairs_of(state).filter(is_best).for_each(|pair| best[pair] = chance);
        }
        let (mut reach_q, mut reach_v) = (vec![0.0; q.len()], vec![0.0; q.len()]);
        for (&pair, y) in empirical.row_pair.iter().zip(targets(truth, data, k)) {
            let pair = pair as usize;
            let share = 1.0 / empirical.counts[pair] as f64;
            reach_q[pair] += if y >= q[pair] - tolerance { share } else { 0.0 };
            reach_v[pair] += if y >= truth.v(mdp.state_of(pair)) - tolerance { share } else { 0.0 };
        }
        Support { truth, best, reach_q, reach_v }
    }

    /// The largest weight that a one-step hinge would need, relative to its penalty. Above 1 the values collapse. The
    /// load grows with the weights of the objective.
    pub fn load(&self, c: &Coefficients, seen: Seen) -> f64 {
        const MOST: usize = 10_000;
        let (data, mdp) = (self.truth.empirical(), &self.truth.empirical().mdp);
        let pairs = mdp.pairs();
        let w = match seen {
            Seen::AsRecorded => data.pair_frequency(),
            Seen::Equally => vec![1.0 / pairs as f64; pairs],
        };
        let (mut b, mut e) = (vec![0.0; pairs], vec![0.0; pairs]);
        for _ in 0..MOST {
            // The part of V(s) that its rollout terms do not carry.
            let mut flow = vec![0.0; mdp.decision_states()];
            for pair in 0..pairs {
                flow[mdp.state_of(pair)] += (c.omega_v - c.lambda_k * self.reach_v[pair]) * w[pair];
                mdp.onward(pair).for_each(|(next, p)| flow[next] += mdp.gamma() * p * b[pair]);
            }
            let mut change = 0.0f64;
            for pair in 0..pairs {
                e[pair] = self.best[pair] * flow[mdp.state_of(pair)].max(0.0);
                let new = ((c.omega_q - c.lambda_k * self.reach_q[pair]) * w[pair] + e[pair]).max(0.0);
                change = change.max((new - b[pair]).abs() / w[pair]);
                b[pair] = new;
            }
            if change < 1e-6 {
                break;
            }
        }
        let load = |pair: usize| (b[pair] / c.lambda_b).max(e[pair] / c.lambda_e) / w[pair];
        (0..pairs).map(load).fold(0.0, f64::max)
    }
}

/// The target `y_K` of every transition, evaluated at `V*_D`.
fn targets(truth: &Truth, data: &Dataset, k: usize) -> Vec<f64> {
    let (episodes, gamma) = (data.episodes(), truth.empirical().mdp.gamma());
    let mut targets = Vec::with_capacity(data.len());
    for episode in 0..episodes.len() {
        let (start, length) = (episodes.start(episode), episodes.length(episode));
        for t in start..start + length {
            let (mut y, mut discount, mut masked) = (0.0, 1.0, false);
            let end = (t + k).min(start + length);
            for step in t..end {
                y += discount * f64::from(data.reward(step));
                discount *= gamma;
                masked = data.mask(step) == 0.0;
                if masked {
                    break;
                }
            }
            let after = if masked { None } else { truth.state_of(data.next_observation(end - 1)) };
            targets.push(y + after.map_or(0.0, |state| discount * truth.v(state)));
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_data::{ActionSpace, Rows};
    use album_tabular::lp::Outcome;
    use album_tabular::{Relaxation, Rollout};

    /// In state 1, action 0 ends the episode without reward, `often` times; action 1, taken once, leads to state 2,
    /// where a reward of 1 can be obtained.
    fn rare(often: usize) -> (Truth, Dataset) {
        let mut rows = Rows { observation_dim: 1, action_dim: 1, ..Rows::default() };
        let mut push = |s: f32, a: f32, r: f32, mask: f32, end: bool| {
            rows.observations.push(s);
            rows.actions.push(a);
            rows.rewards.push(r);
            rows.masks.push(mask);
            rows.terminals.push(end);
        };
        for _ in 0..often {
            push(1.0, 0.0, 0.0, 0.0, false);
            push(9.0, 0.0, 0.0, 1.0, true);
        }
        push(1.0, 1.0, 0.0, 1.0, false);
        push(2.0, 0.0, 1.0, 0.0, false);
        push(9.0, 0.0, 0.0, 1.0, true);
        let data = Dataset::in_space(rows, ActionSpace::Discrete { n: 2 }).unwrap();
        (Truth::of(&data, 0.9).unwrap(), data)
    }

    /// How far the minimiser of the loss, computed as a linear program, lies below V*_D.
    fn fall(truth: &Truth, c: Coefficients) -> f64 {
        let rollout = Rollout::recorded(truth.empirical(), 1).unwrap();
        let relaxation = Relaxation::of_data(truth.empirical(), &rollout, c);
        let Outcome::Optimal { x, .. } = relaxation.as_program(None).unwrap().solve().unwrap() else {
            panic!("the relaxation is bounded")
        };
        let v = &x[truth.pairs().len()..];
        (0..truth.states()).map(|state| truth.v(state) - v[state]).fold(0.0, f64::max)
    }

    #[test]
    fn values_stand_below_a_load_of_one_and_fall_above() {
        let (truth, data) = rare(200);
        let support = Support::new(&truth, &data, 1);
        let paper = Coefficients { lambda_k: 0.0, ..Coefficients::default() };
        let load = support.load(&paper, Seen::AsRecorded);
        assert!(load > 1.0, "{load}");
        let lighter = |share: f64| {
            let [omega_q, omega_v] = [paper.omega_q, paper.omega_v].map(|omega| omega * share / load);
            Coefficients { omega_q, omega_v, ..paper }
        };
        assert!((support.load(&lighter(1.0), Seen::AsRecorded) - 1.0).abs() < 1e-4);
        assert!(fall(&truth, lighter(0.98)) < 1e-6);
        assert!(fall(&truth, lighter(1.02)) > 0.5);
        // If pairs are sampled equally often, the rare ones are no longer rare.
        assert!(support.load(&paper, Seen::Equally) < 0.2);
    }

    #[test]
    fn rollouts_as_good_as_the_best_take_up_the_flow() {
        // The one walk that arrives is optimal. With both its steps in one rollout, only the weight of that term matters.
        let (truth, data) = rare(1);
        let load = |k: usize, lambda_k: f64| {
            let c = Coefficients { lambda_k, ..Coefficients::default() };
            Support::new(&truth, &data, k).load(&c, Seen::AsRecorded)
        };
        assert!(load(2, 1.0) < load(2, 0.0), "{} {}", load(2, 1.0), load(2, 0.0));
        assert_eq!(load(2, 1.0), 0.0);
        let support = Support::new(&truth, &data, 2);
        let at = |state: f32| truth.empirical().mdp.pairs_of(truth.state_of(&[state]).unwrap());
        assert_eq!((&support.best[at(1.0)], &support.reach_v[at(1.0)]), (&[0.0, 1.0][..], &[0.0, 1.0][..]));
        assert_eq!(support.reach_q[at(1.0)], [1.0, 1.0]);
        assert_eq!(targets(&truth, &data, 2), [0.0, 0.9, 1.0]);
    }
}

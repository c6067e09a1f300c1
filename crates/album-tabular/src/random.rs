//! Random MDPs and datasets, for tests and for `verify`.

use crate::{Mdp, TabularDataset};
use album_base::rng;
use rand::RngExt;

/// An MDP of `states` decision states with 1 to `actions` actions, up to `fan` successors each, rewards in [-1, 1],
/// and one absorbing state that about one pair in ten may reach.
pub fn random_mdp(seed: u64, states: usize, actions: usize, fan: usize, gamma: f64) -> Mdp {
    let mut rng = rng::stream(seed, "random-mdp");
    let pairs: Vec<_> = (0..states)
        .map(|_| {
            (0..rng.random_range(1..=actions))
                .map(|_| {
                    let mut next: Vec<(usize, f64)> = (0..rng.random_range(1..=fan))
                        .map(|_| {
                            let end = rng.random_bool(0.1 / fan as f64);
                            (
                                if end { states } else { rng.random_range(0..states) },
                                rng.random_range(0.05..1.0),
                            )
                        })
                        .collect();
                    next.sort_unstable_by_key(|x| x.0);
                    next.dedup_by_key(|x| x.0);
                    let total: f64 = next.iter().map(|x| x.1).sum();
                    next.iter_mut().for_each(|x| x.1 /= total);
                    (rng.random_range(-1.0..1.0), next)
                })
                .collect()
        })
        .collect();
    match Mdp::new(gamma, states + 1, &pairs) {
        Ok(mdp) => mdp,
        Err(e) => unreachable!("a generated MDP is valid: {e}"),
    }
}

/// A random policy of an MDP: one probability per pair.
pub fn random_policy(seed: u64, mdp: &Mdp) -> Vec<f64> {
    let mut rng = rng::stream(seed, "random-policy");
    let mut policy: Vec<f64> = (0..mdp.pairs()).map(|_| rng.random_range(0.01..1.0)).collect();
    for s in 0..mdp.decision_states() {
        let total: f64 = policy[mdp.pairs_of(s)].iter().sum();
        policy[mdp.pairs_of(s)].iter_mut().for_each(|p| *p /= total);
    }
    policy
}

/// `episodes` trajectories of at most `steps` steps in `mdp`, with uniform actions and starts. Rewards are
/// the expected ones, so only the transitions are stochastic.
pub fn random_dataset(seed: u64, mdp: &Mdp, episodes: usize, steps: usize) -> TabularDataset {
    let mut rng = rng::stream(seed, "random-dataset");
    let mut data = TabularDataset::default();
    for _ in 0..episodes {
        let mut s = rng.random_range(0..mdp.decision_states());
        for step in 1..=steps {
            let pairs = mdp.pairs_of(s);
            let pair = rng.random_range(pairs.clone());
            let mut u = rng.random::<f64>();
            let mut next = mdp.successor(pair);
            for (candidate, p) in mdp.kernel().row(pair) {
                next = candidate;
                u -= p;
                if u < 0.0 {
                    break;
                }
            }
            let end = step == steps || next >= mdp.decision_states();
            data.push(s as i64, (pair - pairs.start) as i64, mdp.reward()[pair], next as i64, end);
            s = next;
            if end {
                break;
            }
        }
    }
    data
}

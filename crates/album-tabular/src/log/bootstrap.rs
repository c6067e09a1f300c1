//! Bootstrap intervals over whole episodes.
//!
//! The best of several noisy averages looks better than it is. So the policy stays the one found on the whole
//! log, and each resample only evaluates it: `Q_b` of that policy in the empirical MDP of the resample. Its
//! value and the gain of its actions may then come out lower than in the log, or negative.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use album_base::rng;
use rand::RngExt;
use serde::Serialize;

use super::Log;
use crate::sparse::{Csr, RowBuilder};
use crate::{DiscountedSystem, EmpiricalMdp, TabularError};

/// A 95 % interval over the resamples; NaN if too few resamples have a value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The intervals of an analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervals {
    /// The value of the policy in each state.
    pub value: Vec<Interval>,
    /// The gain of its action in each state.
    pub gain: Vec<Interval>,
    /// Whether the gain in a state is significantly above 0.
    pub certain: Vec<bool>,
    /// The mean value of the policy at initial states.
    pub initial_value: Interval,
    /// The mean recorded return.
    pub recorded_return: Interval,
    /// The policy's value minus the recorded return.
    pub improvement: Interval,
}

/// Intervals are not reported for actions taken in fewer episodes.
pub const MIN_EPISODES: u32 = 5;

/// Maximum count of numbers kept for percentiles.
const MOST: usize = 1 << 29;

/// Resamples the episodes of a log.
pub(super) fn intervals(
    log: &Log,
    empirical: &EmpiricalMdp,
    best: &[Option<usize>],
    returns: &[f64],
    resamples: usize,
    seed: u64,
) -> Result<Intervals, TabularError> {
    let states = best.len();
    if states.saturating_mul(2 * resamples) > MOST {
        let (what, found, most) = ("states x resamples", states as u128 * resamples as u128, MOST as u64 / 2);
        return Err(TabularError::TooMany { what, found, most });
    }
    let problem = Problem { log, empirical, best, returns, edges: edges(empirical) };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(resamples);
    let next = AtomicUsize::new(0);
    let drawn: Vec<Mutex<Option<Resample>>> = (0..resamples).map(|_| Mutex::new(None)).collect();
    album_base::threads::share(threads, || {
        let mut scratch = Scratch::default();
        loop {
            let b = next.fetch_add(1, Ordering::Relaxed);
            if b >= resamples {
                break;
            }
            let resample = problem.resample(b, seed, &mut scratch);
            *drawn[b].lock().unwrap_or_else(PoisonError::into_inner) = Some(resample);
        }
    });
    let drawn: Vec<Resample> = drawn
        .into_iter()
        .filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect();

    let mut scratch = Vec::with_capacity(resamples);
    let mut interval = |get: &dyn Fn(&Resample) -> f64| {
        scratch.clear();
        scratch.extend(drawn.iter().map(get).filter(|x| !x.is_nan()));
        percentiles(&mut scratch, resamples)
    };
    let value: Vec<Interval> = (0..states).map(|s| interval(&|r| f64::from(r.value[s]))).collect();
    let gain: Vec<Interval> = (0..states).map(|s| interval(&|r| f64::from(r.gain[s]))).collect();
    let episodes = episodes_of_pairs(log, empirical);
    let certain = (0..states)
        .map(|s| {
            let enough = best[s].is_some_and(|pair| episodes[pair] >= MIN_EPISODES);
            let rounding = 1e-6 * (1.0 + value[s].high.abs()); // resamples are kept in single precision
            enough && gain[s].low > rounding
        })
        .collect();
    Ok(Intervals {
        value,
        gain,
        certain,
        initial_value: interval(&|r| r.initial_value),
        recorded_return: interval(&|r| r.recorded_return),
        improvement: interval(&|r| r.initial_value - r.recorded_return),
    })
}

/// The 2.5th and 97.5th percentile, if at least half of the resamples have a value.
fn percentiles(numbers: &mut [f64], resamples: usize) -> Interval {
    if numbers.is_empty() || 2 * numbers.len() < resamples {
        return Interval { low: f64::NAN, high: f64::NAN };
    }
    numbers.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (numbers.len() - 1) as f64;
        let (low, high) = (numbers[place.floor() as usize], numbers[place.ceil() as usize]);
        let end = low + (high - low) * place.fract();
        // Resamples are kept in single precision: further digits mean nothing, and a table would show them.
        (end as f32).to_string().parse().unwrap_or(end)
    };
    Interval { low: at(0.025), high: at(0.975) }
}

/// The number of episodes that took each pair.
fn episodes_of_pairs(log: &Log, empirical: &EmpiricalMdp) -> Vec<u32> {
    let (mut count, mut last) = (vec![0; empirical.mdp.pairs()], vec![usize::MAX; empirical.mdp.pairs()]);
    for (e, episode) in log.starts.windows(2).enumerate() {
        for &pair in &empirical.row_pair[episode[0]..episode[1]] {
            if std::mem::replace(&mut last[pair as usize], e) != e {
                count[pair as usize] += 1;
            }
        }
    }
    count
}

/// The start of each pair's successors, and the index of each row's successor.
struct Edges {
    starts: Vec<usize>,
    of_row: Vec<u32>,
}

fn edges(empirical: &EmpiricalMdp) -> Edges {
    let kernel = empirical.mdp.kernel();
    let mut starts = vec![0];
    for pair in 0..kernel.rows() {
        starts.push(starts[pair] + kernel.row(pair).len());
    }
    let place = |(&pair, &next): (&u32, &u32)| {
        let mut row = kernel.row(pair as usize);
        starts[pair as usize] as u32 + row.position(|(s, _)| s == next as usize).unwrap_or(0) as u32
    };
    let of_row = empirical.row_pair.iter().zip(&empirical.row_next).map(place).collect();
    Edges { starts, of_row }
}

struct Problem<'a> {
    log: &'a Log,
    empirical: &'a EmpiricalMdp,
    best: &'a [Option<usize>],
    returns: &'a [f64],
    edges: Edges,
}

/// The result of one resample; NaN at states that it does not contain.
struct Resample {
    value: Vec<f32>,
    gain: Vec<f32>,
    initial_value: f64,
    recorded_return: f64,
}

#[derive(Default)]
struct Scratch {
    times: Vec<u32>,
    edge: Vec<f64>,
    reward: Vec<f64>,
    count: Vec<f64>,
}

impl Problem<'_> {
    fn resample(&self, b: usize, seed: u64, scratch: &mut Scratch) -> Resample {
        let (log, empirical, mdp) = (self.log, self.empirical, &self.empirical.mdp);
        let episodes = log.episodes();
        let mut random = rng::stream(seed, &format!("solve/bootstrap/{b}"));
        let Scratch { times, edge, reward, count } = scratch;
        times.clear();
        times.resize(episodes, 0);
        (0..episodes).for_each(|_| times[random.random_range(0..episodes)] += 1);
        for (sums, length) in
            [(&mut *edge, mdp.kernel().nonzeros()), (reward, mdp.pairs()), (count, mdp.pairs())]
        {
            sums.clear();
            sums.resize(length, 0.0);
        }
        for (episode, &times) in log.starts.windows(2).zip(times.iter()).filter(|(_, times)| **times > 0) {
            let times = f64::from(times);
            for row in episode[0]..episode[1] {
                let pair = empirical.row_pair[row] as usize;
                edge[self.edges.of_row[row] as usize] += times;
                reward[pair] += times * log.data.rewards[row];
                count[pair] += times;
            }
        }
        let (edge, reward, count) = (&*edge, &*reward, &*count);
        // A pair missing from the resample keeps its values of the whole log; its state is not reported.
        let mean =
            |pair: usize| if count[pair] > 0.0 { reward[pair] / count[pair] } else { mdp.reward()[pair] };
        let onward = |pair: usize| {
            let weights = &edge[self.edges.starts[pair]..self.edges.starts[pair + 1]];
            let share = move |(i, (next, p)): (usize, (usize, f64))| {
                (next, if count[pair] > 0.0 { weights[i] / count[pair] } else { p })
            };
            let states = mdp.decision_states();
            mdp.kernel().row(pair).enumerate().map(share).filter(move |&(next, _)| next < states)
        };
        let states = self.best.len();
        let total: Vec<f64> = (0..states).map(|s| count[mdp.pairs_of(s)].iter().sum()).collect();
        let share = |s: usize, pair: usize| {
            if total[s] > 0.0 { count[pair] / total[s] } else { empirical.behaviour[pair] }
        };
        let mut t = Csr::with_capacity(states, states, states);
        let mut row = RowBuilder::new(states);
        let mut policy_reward = vec![0.0; states];
        for s in 0..states {
            for pair in mdp.pairs_of(s) {
                let p = match self.best[s] {
                    Some(best) => f64::from(u8::from(pair == best)),
                    None => share(s, pair),
                };
                if p > 0.0 {
                    policy_reward[s] += p * mean(pair);
                    onward(pair).for_each(|(next, q)| row.add(next, mdp.gamma() * p * q));
                }
            }
            row.finish(&mut t);
        }
        let v = DiscountedSystem::new(&t).solve(&policy_reward);
        let q =
            |pair: usize| mean(pair) + mdp.gamma() * onward(pair).map(|(next, p)| p * v[next]).sum::<f64>();
        let (mut value, mut gain) = (vec![f32::NAN; states], vec![f32::NAN; states]);
        for s in 0..states {
            if !self.best[s].map_or(total[s] > 0.0, |best| count[best] > 0.0) {
                continue;
            }
            value[s] = v[s] as f32;
            gain[s] = match self.best[s] {
                Some(best) if mdp.pairs_of(s).len() > 1 => {
                    let mixed: f64 = mdp.pairs_of(s).map(|pair| share(s, pair) * q(pair)).sum();
                    (q(best) - mixed) as f32
                }
                _ => 0.0,
            };
        }
        let first = |e: usize| v[mdp.state_of(empirical.row_pair[log.starts[e]] as usize)];
        let mean_over = |x: &dyn Fn(usize) -> f64| {
            times.iter().enumerate().map(|(e, &times)| f64::from(times) * x(e)).sum::<f64>() / episodes as f64
        };
        Resample {
            value,
            gain,
            initial_value: mean_over(&first),
            recorded_return: mean_over(&|e| self.returns[e]),
        }
    }
}

//! The speed-up by recorded rollouts: the propagation identity, the two rates, and the same effect in
//! gradient descent on the relaxed program.

use super::{Effort, Evidence, Group, Lines, Verified, worse};
use crate::{
    Behaviour, Coefficients, EmpiricalMdp, Gradient, MudWorld, PerFamily, Relaxation, Repair, Rollout,
    TabularError, Weights, max_difference, value_iteration,
};

/// The rollout lengths of the figures.
pub const HORIZONS: [usize; 4] = [2, 5, 10, 20];

/// The error at which both methods are timed: a sixth of the initial error, and above the level at which
/// descent with a constant step size oscillates.
pub const TARGET_ERROR: f64 = 10.0;

/// Error curves of the repair iteration.
#[derive(Debug)]
pub struct Curves {
    /// The discount factor.
    pub gamma: f64,
    /// `max |V*_D - V_n|` for K = 1.
    pub one_step: Vec<f64>,
    /// The same for each K of [`HORIZONS`].
    pub k_step: Vec<(usize, Vec<f64>)>,
}

/// The eps-greedy data of a MudWorld with its optimum.
#[derive(Debug)]
pub struct Instance {
    /// The data.
    pub data: EmpiricalMdp,
    q: Vec<f64>,
    v: Vec<f64>,
}

impl Instance {
    /// Collects the data and solves it.
    pub fn new(size: usize, seed: u64) -> Result<Self, TabularError> {
        let gamma = 0.95;
        let data =
            EmpiricalMdp::new(&MudWorld::new(size, seed).dataset(Behaviour::EpsGreedy, gamma)?, gamma)?;
        let (q, v) = value_iteration(&data.mdp, 1e-13);
        Ok(Instance { data, q, v })
    }

    /// Runs the repair iteration down to `target` for every K.
    pub fn curves(&self, target: f64) -> Result<Curves, TabularError> {
        let curve = |k| Repair::new(&self.data, k).map(|repair| repair.error_curve(&self.v, target, 5000));
        let k_step = HORIZONS.into_iter().map(|k| Ok((k, curve(k)?))).collect::<Result<_, TabularError>>()?;
        Ok(Curves { gamma: self.data.mdp.gamma(), one_step: curve(1)?, k_step })
    }

    /// The exponent of gamma at which the error finally contracts, as a range. In the end only the loops of
    /// the optimal policy matter: 1 if some loop has `delta_K > 0` all around, so that only the one-step term
    /// is left; K if all recorded K-step paths on loops are optimal; something in between for mixed loops.
    fn late_exponent(&self, k: usize) -> Result<(f64, f64), TabularError> {
        let mdp = &self.data.mdp;
        let delta = Repair::new(&self.data, k)?.delta_k(&self.q, &self.v);
        let best = |s: usize| {
            mdp.pairs_of(s).fold(mdp.pairs_of(s).start, |b, p| if self.q[p] > self.q[b] { p } else { b })
        };
        let (mut all_floor, mut any_floor) = (false, false);
        let mut seen = vec![usize::MAX; mdp.decision_states()];
        for start in 0..seen.len() {
            let mut s = start;
            while s < seen.len() && seen[s] == usize::MAX {
                seen[s] = start;
                s = mdp.successor(best(s));
            }
            if s >= seen.len() || seen[s] != start {
                continue; // absorbed, or a loop already found
            }
            let (entry, mut here, mut gives_away) = (s, s, Vec::new());
            loop {
                gives_away.push(delta[best(here)] > 1e-9);
                here = mdp.successor(best(here));
                if here == entry {
                    break;
                }
            }
            all_floor |= gives_away.iter().all(|&g| g);
            any_floor |= gives_away.iter().any(|&g| g);
        }
        let slowest = if any_floor { 1.0 } else { k as f64 };
        Ok((slowest, if all_floor { 1.0 } else { k as f64 }))
    }

    /// Steps of full-batch descent on the relaxed program until the error of V is at most [`TARGET_ERROR`]:
    /// step size 0.03, all penalties 2.5, from `Q = V = r_min / (1 - gamma)`. `None` omits the rollout terms.
    pub fn descent_steps(&self, rollout: Option<&Rollout>) -> Result<Option<usize>, TabularError> {
        const MOST: usize = 1_000_000;
        let mdp = &self.data.mdp;
        let c = Coefficients::default();
        let lambda_k = if rollout.is_some() { 2.5 } else { 0.0 };
        let penalties = PerFamily { b: 2.5, e: 2.5, kq: lambda_k, kv: lambda_k };
        let weights = Weights::from_data(&self.data, c.omega_q, c.omega_v)?;
        let none = Rollout::recorded(&self.data, 1)?;
        let relaxation = Relaxation::of_program(mdp, rollout.unwrap_or(&none), weights, penalties);
        let mut q = vec![mdp.underestimate(); mdp.pairs()];
        let mut v = vec![mdp.underestimate(); mdp.decision_states()];
        for step in 0..MOST {
            if max_difference(&v, &self.v) <= TARGET_ERROR {
                return Ok(Some(step));
            }
            relaxation.descend(&mut q, &mut v, 0.03, Gradient::Plain);
        }
        Ok(None)
    }
}

/// Speed-up factors by K, each method relative to its own version without rollouts.
#[derive(Debug)]
pub struct Factors {
    /// The repair iteration: (K, factor).
    pub repair: Vec<(usize, f64)>,
    /// Descent on the relaxed program with expected rollouts, as in its definition: (K, factor).
    pub descent: Vec<(usize, f64)>,
    /// The same with recorded rollouts, as ALBUM uses them: (K, factor).
    pub descent_recorded: Vec<(usize, f64)>,
}

/// Measures the factors on one instance.
pub fn factors(instance: &Instance, effort: &Effort<'_>) -> Result<Factors, TabularError> {
    let updates = |curve: &[f64]| curve.iter().position(|e| *e <= TARGET_ERROR).unwrap_or(curve.len()) as f64;
    let curves = instance.curves(TARGET_ERROR)?;
    let one_step = updates(&curves.one_step);
    let repair = curves.k_step.iter().map(|(k, curve)| (*k, one_step / updates(curve))).collect();
    effort.tell("descent without rollouts", 0, 1 + HORIZONS.len());
    let slow = instance.descent_steps(None)?;
    let factor = |rollout: Rollout| {
        let fast = instance.descent_steps(Some(&rollout))?;
        Ok::<_, TabularError>(slow.zip(fast).map_or(f64::NAN, |(slow, fast)| slow as f64 / fast as f64))
    };
    let data = &instance.data;
    let (mut descent, mut descent_recorded) = (Vec::new(), Vec::new());
    for (i, k) in HORIZONS.into_iter().enumerate() {
        effort.tell(&format!("descent with K = {k}"), 1 + i, 1 + HORIZONS.len());
        descent.push((k, factor(Rollout::expected(&data.mdp, &data.behaviour, k)?)?));
        descent_recorded.push((k, factor(Rollout::recorded(data, k)?)?));
    }
    Ok(Factors { repair, descent, descent_recorded })
}

pub(super) fn check(effort: &Effort<'_>) -> Result<Verified, TabularError> {
    let mut lines = Lines::new(Group::Speedup);
    let mut identity = 0.0f64;
    let mut slower = 0.0f64;
    let mut contraction = 0.0f64;
    let mut smallest_delta = 0.0f64;
    let (mut smallest_error, mut above_bound) = (0.0f64, 0.0f64);
    for seed in 0..effort.seeds as u64 {
        let instance = Instance::new(effort.size, seed)?;
        let gamma = instance.data.mdp.gamma();
        let one_step = Repair::new(&instance.data, 1)?.error_curve(&instance.v, 0.0, 300);
        for k in HORIZONS {
            let repair = Repair::new(&instance.data, k)?;
            let delta = repair.delta_k(&instance.q, &instance.v);
            smallest_delta = delta.iter().fold(smallest_delta, |m, d| m.min(*d));
            let mut v = vec![instance.data.mdp.underestimate(); instance.v.len()];
            let mut before = max_difference(&v, &instance.v);
            for one_step in &one_step[1..] {
                let e_n: Vec<f64> = instance.v.iter().zip(&v).map(|(star, v)| star - v).collect();
                smallest_error = e_n.iter().fold(smallest_error, |m, e| m.min(*e));
                let (q, next) = repair.step(&v);
                let predicted = repair.predicted_errors(&delta, &e_n);
                for pair in 0..q.len() {
                    let found = instance.q[pair] - q[pair];
                    identity = worse(identity, (found - predicted[pair]).abs());
                    above_bound = worse(above_bound, found - (delta[pair] + gamma.powi(k as i32) * before));
                }
                v = next;
                let error = max_difference(&v, &instance.v);
                slower = slower.max(error - one_step);
                contraction = contraction.max(error - gamma * before);
                before = error;
            }
        }
        effort.tell("propagation identity", seed as usize + 1, effort.seeds);
    }
    let seeds = format!("K in {{2, 5, 10, 20}}, {} seeds, 300 updates", effort.seeds);
    lines.at_most(
        format!("propagation identity at every pair, {seeds}: largest difference"),
        identity,
        1e-10,
    );
    lines.at_most(format!("delta_K >= 0, {seeds}: largest violation"), -smallest_delta, 1e-10);
    lines.at_most(format!("e_n >= 0, {seeds}: largest violation"), -smallest_error, 1e-10);
    lines.at_most(
        format!("Q*_D - Q_(n+1) <= delta_K + gamma^K max |e_n| at every pair, {seeds}: largest excess"),
        above_bound,
        1e-10,
    );
    lines.at_most(format!("error <= gamma * error before, {seeds}: largest excess"), contraction, 1e-10);
    lines.at_most(format!("never slower than K = 1, {seeds}: largest excess"), slower, 1e-10);

    let instance = Instance::new(effort.size, 0)?;
    let curves = instance.curves(1e-8)?;
    for (k, curve) in &curves.k_step {
        let rate = |n: usize| (curve[n + 1] / curve[n]).ln() / curves.gamma.ln();
        let early = (0..4).map(rate).fold(0.0, f64::max) / *k as f64;
        lines.at_least(
            format!(
                "K = {k}: steepest of the first 4 updates, as a share of gamma^K (bound chosen on seed 0)"
            ),
            early,
            0.8,
        );
        let late = rate(curve.len() - 3);
        let (slowest, fastest) = instance.late_exponent(*k)?;
        let bound = if slowest == fastest {
            format!("= {slowest} +- 1 %")
        } else {
            format!("{slowest} to {fastest}")
        };
        let passed = late >= 0.99 * slowest && late <= 1.01 * fastest;
        lines.push(
            format!("K = {k}: last updates (error 1e-8), exponent of gamma, as delta_K predicts"),
            late,
            bound,
            passed,
        );
    }
    let factors = factors(&instance, effort)?;
    check_factors(&mut lines, "repair iteration", &factors.repair, true);
    check_factors(&mut lines, "relaxed descent, expected rollouts", &factors.descent, false);
    check_factors(&mut lines, "relaxed descent, recorded rollouts", &factors.descent_recorded, false);
    Ok(Verified { checks: lines.checks, evidence: Evidence::Speedup(curves, factors) })
}

/// Rollouts must save updates: a factor of 1 would mean no effect. `at_most_k`: one update of the repair
/// iteration gains at most as much as K updates without rollouts, since a recorded path is worth at most the
/// best one.
fn check_factors(lines: &mut Lines, what: &str, factors: &[(usize, f64)], at_most_k: bool) {
    let smallest = -factors.iter().map(|f| -f.1).fold(f64::NEG_INFINITY, worse);
    lines.push(
        format!("{what}: smallest speed-up factor over all K"),
        smallest,
        "> 1".into(),
        smallest > 1.0,
    );
    if at_most_k {
        let largest = factors.iter().map(|&(k, f)| f / k as f64).fold(0.0, worse);
        let statement = format!("{what}: largest speed-up factor as a share of K");
        lines.push(statement, largest, "<= 1".into(), largest <= 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(factors: &[(usize, f64)]) -> Vec<bool> {
        let mut lines = Lines::new(Group::Speedup);
        check_factors(&mut lines, "", factors, true);
        lines.checks.iter().map(|check| check.passed).collect()
    }

    #[test]
    fn factors_can_fail() {
        assert_eq!(verdicts(&[(2, 1.9), (5, 3.0)]), [true, true]);
        assert_eq!(verdicts(&[(2, 1.0), (5, 3.0)]), [false, true], "rollouts that do nothing");
        assert_eq!(verdicts(&[(2, 2.1), (5, 3.0)]), [true, false], "more than K updates at once");
        assert_eq!(verdicts(&[(2, f64::NAN), (5, 3.0)]), [false, false], "never arrived");
    }
}

//! Stationarity of `(Q*_D, V*_D)` under the detached update: the two propositions, the corollary and the two
//! remarks, each on instances that satisfy its hypotheses and on instances that violate them.

use super::{Check, Effort, Group, Lines};
use crate::lp::Outcome;
use crate::random::{random_dataset, random_mdp};
use crate::{
    Coefficients, EmpiricalMdp, Family, Gradient, Mdp, Regime, Relaxation, Rollout, Stationarity,
    TabularDataset, TabularError, boundedness, hinge, residuals, value_iteration,
};
use album_base::rng;
use rand::RngExt;

/// A dataset with its rollout and its optimum.
struct Instance {
    data: EmpiricalMdp,
    rollout: Rollout,
    q: Vec<f64>,
    v: Vec<f64>,
}

impl Instance {
    fn new(data: &TabularDataset, gamma: f64, k: usize) -> Result<Self, TabularError> {
        let data = EmpiricalMdp::new(data, gamma)?;
        let rollout = Rollout::recorded(&data, k)?;
        let (q, v) = value_iteration(&data.mdp, 1e-14);
        Ok(Instance { data, rollout, q, v })
    }

    fn question(&self) -> Stationarity<'_> {
        Stationarity::new(&self.data, &self.rollout, &self.q, &self.v)
    }

    /// Whether `(Q*_D, V*_D)` minimises the loss with `y_K` held fixed, i.e. `0 in G(Q*_D, V*_D)`, decided
    /// without selections by solving that convex problem as an LP.
    fn minimises_fixed_loss(&self, c: &Coefficients) -> Result<bool, TabularError> {
        let relaxation = Relaxation::of_data(&self.data, &self.rollout, *c);
        let program = relaxation.as_program(Some(&self.rollout.targets(&self.v)))?;
        let here = relaxation.value(&self.q, &self.v);
        Ok(match program.solve()? {
            Outcome::Optimal { x, .. } => {
                let best: f64 = program.objective.iter().zip(&x).map(|(c, x)| c * x).sum();
                here <= best + 1e-7 * (1.0 + here.abs())
            }
            _ => false,
        })
    }
}

impl Instance {
    /// The error of the aggregate without stop_gradient at a random point of data without absorbing states:
    /// computed from its hinges, and as the sum of the plain update.
    fn plain_aggregate_error(&self, c: &Coefficients, gamma: f64, k: i32, rng: &mut impl RngExt) -> f64 {
        let mut near = |x: &[f64]| x.iter().map(|x| x + rng.random_range(-0.5..0.5)).collect::<Vec<f64>>();
        let (q, v) = (near(&self.q), near(&self.v));
        let relaxation = Relaxation::of_data(&self.data, &self.rollout, *c);
        let (g_q, g_v) = relaxation.subgradient(&q, &v, Gradient::Plain);
        let g = residuals(&self.data.mdp, &self.rollout, &q, &v);
        let selected = |family: Family| {
            let active = g[family].iter().zip(&relaxation.pair_weight).map(|(g, d)| d * hinge(*g).1);
            relaxation.penalties[family] * active.sum::<f64>()
        };
        let expected = c.omega_q + c.omega_v
            - (1.0 - gamma) * selected(Family::B)
            - (1.0 - gamma.powi(k)) * (selected(Family::KQ) + selected(Family::KV));
        (g_q.iter().chain(&g_v).sum::<f64>() - expected).abs()
    }
}

/// Deterministic data with several actions per state, truncated or absorbed trajectories, and unequal
/// frequencies.
fn mixed(seed: u64) -> Result<Instance, TabularError> {
    let mdp = random_mdp(3000 + seed, 10, 3, 1, 0.9);
    Instance::new(&random_dataset(seed, &mdp, 30, 12), 0.9, 3)
}

/// Data in which every recorded continuation is optimal: each trajectory takes any first action, then optimal
/// ones.
fn optimal_continuations(seed: u64) -> Result<Instance, TabularError> {
    let gamma = 0.9;
    let mdp = random_mdp(4000 + seed, 10, 3, 1, gamma);
    let (q, _) = value_iteration(&mdp, 1e-13);
    let best = |s: usize| {
        mdp.pairs_of(s).fold(mdp.pairs_of(s).start, |best, p| if q[p] > q[best] { p } else { best })
    };
    let mut data = TabularDataset::default();
    // Optimal continuations first, so that the recorded path of an optimal pair is one of them.
    for first_is_best in [true, false] {
        for pair in 0..mdp.pairs() {
            if (best(mdp.state_of(pair)) == pair) == first_is_best {
                follow(&mdp, &mut data, pair, &best);
            }
        }
    }
    Instance::new(&data, gamma, 4)
}

fn follow(mdp: &Mdp, data: &mut TabularDataset, first: usize, best: &dyn Fn(usize) -> usize) {
    let mut pair = first;
    for step in 0..8 {
        let (s, next) = (mdp.state_of(pair), mdp.successor(pair));
        let end = step == 7 || next >= mdp.decision_states();
        data.push(s as i64, (pair - mdp.pairs_of(s).start) as i64, mdp.reward()[pair], next as i64, end);
        if end {
            return;
        }
        pair = best(next);
    }
}

/// One action per state, one trajectory through `length` states, every pair once.
fn single_path(seed: u64, length: i64, gamma: f64, k: usize) -> Result<Instance, TabularError> {
    let mut rng = rng::stream(seed, "single-path");
    let mut data = TabularDataset::default();
    for s in 0..length {
        data.push(s, 0, rng.random_range(-1.0..1.0), s + 1, s + 1 == length);
    }
    Instance::new(&data, gamma, k)
}

pub(super) fn check(effort: &Effort<'_>) -> Result<Vec<Check>, TabularError> {
    let mut lines = Lines::new(Group::Stationarity);
    let instances = (effort.instances / 5).max(4);
    selections_decide(&mut lines, effort, instances)?;
    rollout_regime(&mut lines, effort, instances)?;
    single_action(&mut lines, instances)?;
    one_step_regime(&mut lines, instances)?;
    aggregate(&mut lines, effort, instances)?;
    Ok(lines.checks)
}

/// Proposition: admissible balanced selections imply stationarity.
fn selections_decide(lines: &mut Lines, effort: &Effort<'_>, instances: usize) -> Result<(), TabularError> {
    let (mut residual, mut agree, mut exist, mut tried) = (0.0f64, 0, 0, 0);
    for seed in 0..instances as u64 {
        let instance = mixed(seed)?;
        let question = instance.question();
        let mut rng = rng::stream(seed, "stationarity");
        // From clearly too small to clearly large enough.
        for scale in [0.05, 0.5, 4.0, 40.0] {
            let c = Coefficients {
                lambda_b: scale * rng.random_range(0.5..1.5),
                lambda_e: scale * rng.random_range(0.5..1.5),
                lambda_k: scale * rng.random_range(0.0..0.5),
                ..Coefficients::default()
            };
            let found = question.selections(&c, Regime::Any)?;
            if let Some(z) = &found {
                residual = residual.max(question.residual(&c, z));
            }
            exist += usize::from(found.is_some());
            agree += usize::from(found.is_some() == instance.minimises_fixed_loss(&c)?);
            tried += 1;
        }
        effort.tell("selections", seed as usize + 1, 3 * instances);
    }
    lines.at_most("selections found: largest component of the update they select", residual, 1e-7);
    lines.exactly(
        format!("selections exist ({exist} of {tried} cases) exactly where (Q*_D, V*_D) minimises the fixed-target loss"),
        agree,
        tried,
    );
    lines.push(
        "both answers occur",
        exist as f64,
        format!("between 1 and {}", tried - 1),
        exist > 0 && exist < tried,
    );
    Ok(())
}

/// Proposition: optimal continuations and a large enough lambda_K suffice, whatever lambda_B and lambda_E.
fn rollout_regime(lines: &mut Lines, effort: &Effort<'_>, instances: usize) -> Result<(), TabularError> {
    let (mut residual, mut satisfied, mut broken, mut breaking) = (0.0f64, 0, 0, 0);
    for seed in 0..instances as u64 {
        let instance = optimal_continuations(seed)?;
        let question = instance.question();
        let base = Coefficients { lambda_b: 0.0, lambda_e: 0.0, ..Coefficients::default() };
        // lambda_K sum over optimal actions of d >= omega_V d_S at every state: the rarest optimal action
        // decides.
        let mdp = &instance.data.mdp;
        let (d, d_s) = (instance.data.pair_frequency(), instance.data.state_frequency());
        let needed = (0..mdp.decision_states())
            .map(|s| {
                let best: f64 = mdp
                    .pairs_of(s)
                    .filter(|&p| (instance.q[p] - instance.v[s]).abs() < 1e-9)
                    .map(|p| d[p])
                    .sum();
                base.omega_v * d_s[s] / best
            })
            .fold(base.omega_q, f64::max);
        let enough = Coefficients { lambda_k: needed * 1.0001, ..base };
        if let Some(z) = question.rollout_selections(&enough) {
            residual = residual.max(question.residual(&enough, &z));
            satisfied += usize::from(question.selections(&enough, Regime::Rollout)?.is_some());
        }
        // Violated hypotheses: lambda_K below omega_Q; a suboptimal continuation.
        let too_small = Coefficients { lambda_k: 0.99 * base.omega_q, ..base };
        let poor = mixed(seed)?;
        let y_k = poor.rollout.targets(&poor.v);
        let given_away = poor.q.iter().zip(y_k).any(|(q, y_k)| q - y_k > 1e-6);
        for (instance, c) in [(&instance, too_small), (&poor, Coefficients { lambda_k: 1e3, ..base })] {
            if std::ptr::eq(instance, &poor) && !given_away {
                continue;
            }
            breaking += 1;
            let question = instance.question();
            broken += usize::from(
                question.rollout_selections(&c).is_none() && question.selections(&c, Regime::Any)?.is_none(),
            );
        }
        effort.tell("rollout regime", instances + seed as usize + 1, 3 * instances);
    }
    lines.exactly(
        "delta_K = 0 and lambda_K large enough, lambda_B = lambda_E = 0: stationary instances",
        satisfied,
        instances,
    );
    lines.at_most("the same, closed-form selections: largest component of the update", residual, 1e-12);
    lines.exactly(
        format!("lambda_K < omega_Q, or delta_K > 0 somewhere ({breaking} cases): not stationary"),
        broken,
        breaking,
    );
    Ok(())
}

/// Corollary: with one action per state, lambda_K >= max(omega_Q, omega_V) suffices.
fn single_action(lines: &mut Lines, instances: usize) -> Result<(), TabularError> {
    let (mut above, mut below, mut paper) = (0, 0, 0);
    for seed in 0..instances as u64 {
        let instance = single_path(seed, 12 + seed as i64 % 9, 0.95, 3)?;
        let question = instance.question();
        let mut rng = rng::stream(seed, "single-action");
        let base = Coefficients {
            omega_q: rng.random_range(0.05..0.5),
            omega_v: rng.random_range(0.05..0.5),
            lambda_b: 0.0,
            lambda_e: 0.0,
            lambda_k: 0.0,
        };
        let threshold = base.omega_q.max(base.omega_v);
        let at = |factor: f64| Coefficients { lambda_k: factor * threshold, ..base };
        above += usize::from(question.selections(&at(1.0 + 1e-6), Regime::Any)?.is_some());
        below += usize::from(question.selections(&at(0.99), Regime::Any)?.is_none());
        paper += usize::from(question.rollout_selections(&Coefficients::default()).is_some());
    }
    lines.exactly("single action, lambda_K = max(omega_Q, omega_V): stationary instances", above, instances);
    lines.exactly(
        "single action, lambda_K 1 % below, lambda_B = lambda_E = 0: not stationary",
        below,
        instances,
    );
    lines.exactly("single action, coefficients of the paper: stationary instances", paper, instances);
    Ok(())
}

/// Remark: the one-step terms alone need penalties of the order 1 / (1 - gamma).
fn one_step_regime(lines: &mut Lines, instances: usize) -> Result<(), TabularError> {
    let (mut formula, mut at_bound, mut below) = (0.0f64, 0, 0);
    for seed in 0..instances as u64 {
        let gamma = 0.9;
        let length = 10 + seed as i64 % 20;
        let instance = single_path(seed, length, gamma, 3)?;
        let question = instance.question();
        let c = Coefficients::default();
        let total = c.omega_q + c.omega_v;
        let bound = total / (1.0 - gamma);
        let at = Coefficients { lambda_b: bound, lambda_e: bound - c.omega_q, lambda_k: 0.0, ..c };
        if let Some(z) = question.selections(&at, Regime::OneStep)? {
            at_bound += 1;
            let d = 1.0 / length as f64;
            for (t, u) in z.b.iter().enumerate() {
                let exact = total * d * (1.0 - gamma.powi(t as i32 + 1)) / (1.0 - gamma);
                formula = formula.max((u - exact).abs() / d);
            }
        }
        // The largest u_t is what lambda_B really needs; 1 % less is not enough.
        let largest = total * (1.0 - gamma.powi(length as i32)) / (1.0 - gamma);
        let less = Coefficients { lambda_b: 0.99 * largest, lambda_e: bound, lambda_k: 0.0, ..c };
        below += usize::from(question.selections(&less, Regime::OneStep)?.is_none());
    }
    lines.exactly(
        "one-step regime, penalties at the bound of the remark: stationary instances",
        at_bound,
        instances,
    );
    lines.at_most("one-step regime: distance of u_t from its closed form", formula, 1e-7);
    lines.exactly("one-step regime, lambda_B 1 % below the largest u_t: not stationary", below, instances);
    Ok(())
}

/// Remark: summed over all coordinates, the balance is the boundedness condition.
fn aggregate(lines: &mut Lines, effort: &Effort<'_>, instances: usize) -> Result<(), TabularError> {
    let (mut identity, mut plain_identity, mut found, mut refused, mut violating) = (0.0f64, 0.0f64, 0, 0, 0);
    for seed in 0..instances as u64 {
        // A ring: no absorbing states, so everything can be shifted.
        let mut rng = rng::stream(seed, "ring");
        let mut data = TabularDataset::default();
        let length = rng.random_range(4..12);
        for lap in 0..2 {
            for s in 0..length {
                data.push(s, 0, rng.random_range(-1.0..1.0), (s + 1) % length, lap == 1 && s + 1 == length);
            }
        }
        let gamma = 0.9;
        let instance = Instance::new(&data, gamma, 3)?;
        let question = instance.question();
        for (k, b) in [(1.0, 2.5), (0.2, 0.5), (0.0, 2.0), (0.01, 0.2), (0.05, 0.1), (0.0, 1.0)] {
            let c = Coefficients { lambda_k: k, lambda_b: b, lambda_e: 50.0, ..Coefficients::default() };
            let selections = question.selections(&c, Regime::Any)?;
            if let Some(z) = &selections {
                found += 1;
                identity = identity.max((question.aggregate(z) - c.omega_q - c.omega_v).abs());
            }
            plain_identity = plain_identity.max(instance.plain_aggregate_error(&c, gamma, 3, &mut rng));
            if !boundedness(&c, gamma, 3, Gradient::Detached).holds() {
                violating += 1;
                refused += usize::from(selections.is_none());
            }
        }
        effort.tell("aggregate", 2 * instances + seed as usize + 1, 3 * instances);
    }
    lines.at_most(
        format!("sum of the balance = omega_Q + omega_V ({found} stationary cases): largest difference"),
        identity,
        1e-7,
    );
    lines.at_most(
        "without stop_gradient: sum of the update = omega_Q + omega_V - (1 - gamma) sum u - (1 - gamma^K) sum (w + x): \
         largest difference at random points",
        plain_identity,
        1e-10,
    );
    lines.exactly(
        format!("condition (i) violated ({violating} cases without absorbing states): not stationary"),
        refused,
        violating,
    );
    Ok(())
}

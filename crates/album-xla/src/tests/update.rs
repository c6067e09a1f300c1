//! Whole updates: the program agrees step by step with the native tape, Adam, clipping and target networks.

use crate::{Group, Measure, Net, Role, Stage, Step};
use album_base::rng;
use album_nn::{Adam, Mlp, MlpSpec, Pool, Tape, Tensor, Var};

const ROWS: usize = 16;
const TAU: f32 = 0.05;
const DECAY: f64 = 0.01;

/// An ensemble of critics, its target, and an actor.
struct Nets {
    q: Mlp,
    target: Mlp,
    actor: Mlp,
}

impl Nets {
    fn new() -> Self {
        let mut draw = rng::stream(3, "update");
        let q = Mlp::new(MlpSpec::new(5, &[8, 8], 1).layer_norm(true).members(2), &mut draw);
        let actor = Mlp::new(MlpSpec::new(3, &[8], 2), &mut draw);
        Nets { target: q.clone(), q, actor }
    }
}

fn numbers(step: u64, name: &str, n: usize) -> Vec<f32> {
    let mut draw = rng::stream(step, name);
    (0..n).map(|_| 2.0 * rng::unit(&mut draw) as f32 - 1.0).collect()
}

/// The critic's and the actor's losses at a step. The actor is trained only at even steps, so that there are
/// two programs.
fn losses<'t>(tape: &'t Tape, nets: &Nets, step: u64) -> (Var<'t>, Option<Var<'t>>, Var<'t>) {
    let [s, a, s_next] = [("s", 3), ("a", 2), ("s_next", 3)]
        .map(|(name, cols)| tape.constant_slice(ROWS, cols, &numbers(step, name, ROWS * cols)));
    let r = tape.constant_slice(ROWS, 1, &numbers(step, "r", ROWS));
    let a_next = tape.apply_frozen(&nets.actor, s_next).clip(-1.0, 1.0);
    let y = r + 0.9 * tape.apply_frozen(&nets.target, tape.concat_cols(&[s_next, a_next])).min_cols();
    let q = tape.apply(&nets.q, tape.concat_cols(&[s, a]));
    let critic = (q - y.detach()).square().sum_cols().mean();
    let actor = step.is_multiple_of(2).then(|| {
        let action = tape.apply(&nets.actor, s).tanh();
        (action - a).square().mean() - tape.apply_frozen(&nets.q, tape.concat_cols(&[s, action])).mean()
    });
    (critic, actor, q)
}

fn compare(what: &str, found: &[Vec<f32>], expected: &[Tensor], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let size = expected.data.iter().fold(1e-3f32, |m, x| m.max(x.abs()));
        for (found, wanted) in found.iter().zip(&expected.data) {
            let difference = (found - wanted).abs();
            assert!(difference <= tolerance * size, "{what}, {}: {found} against {wanted}", expected.name);
        }
    }
}

/// With one stage, targets move towards the weights from before the update; with two, the actor sees the new critic.
fn agree(two_stages: bool, max_norm: Option<f64>) {
    let Some(device) = super::device() else { return };
    let mut nets = Nets::new();
    let mut adams = [Adam::new(&nets.q, 1e-2), Adam::new(&nets.actor, 1e-2)];
    adams[1].weight_decay = DECAY;
    let role = |adam: &Adam, is_value| Role::Trained {
        is_value,
        beta1: adam.beta1,
        beta2: adam.beta2,
        epsilon: adam.epsilon,
        decays: adam.weight_decay > 0.0,
    };
    let net = |net: &Mlp, role| Net {
        id: net.id(),
        spec: net.spec().clone(),
        tensors: net.tensors().into_iter().map(|tensor| tensor.shape).collect(),
        role,
    };
    let on_device = vec![
        net(&nets.q, role(&adams[0], true)),
        net(&nets.target, Role::Target { of: 0, tau: TAU }),
        net(&nets.actor, role(&adams[1], false)),
    ];
    let ids = on_device.iter().map(|net| net.id).collect();
    let seat = Group::new(device, 1).sit(on_device).unwrap();
    let moments = |adam: &Adam| [adam.first_moments(), adam.second_moments()].concat();
    let all = |nets: &Nets, adams: &[Adam; 2]| -> Vec<Tensor> {
        [
            nets.q.tensors(),
            moments(&adams[0]),
            nets.target.tensors(),
            nets.actor.tensors(),
            moments(&adams[1]),
        ]
        .concat()
    };
    let mut fresh = Some(all(&nets, &adams).into_iter().map(|tensor| tensor.data).collect());
    let pool = Pool::new(1);
    let (mut native, mut deferred) = (Tape::new(&pool), Tape::that_defers(&pool, ids));
    let mut counters = [Adam::new(&nets.q, 1e-2), Adam::new(&nets.actor, 1e-2)];
    counters[1].weight_decay = DECAY;
    for step in 0..20 {
        // On the device.
        let stage = |tape: &Tape, loss: Var<'_>, q: Option<Var<'_>>, trains: Vec<usize>| Stage {
            recording: tape.recording(),
            loss: loss.place(),
            measures: q.into_iter().flat_map(measures).collect(),
            trains,
        };
        let mut stages = Vec::new();
        {
            let tape = deferred.begin();
            let (critic, actor, q) = losses(tape, &nets, step);
            if two_stages {
                stages.push(stage(tape, critic, Some(q), vec![0]));
                let loss = actor.unwrap_or_else(|| tape.zeros(1, 1));
                stages.push(stage(tape, loss, None, vec![2]));
            } else {
                let loss = actor.map_or(critic, |actor| critic + actor);
                stages.push(stage(tape, loss, Some(q), vec![0, 2]));
            }
        }
        let update = Step { stages, moves: vec![1], before: !two_stages, max_norm, norms: true };
        let rates: Vec<_> = counters.iter_mut().map(Adam::advance).collect();
        let report = seat.run(step, update, &rates, fresh.take()).unwrap();

        // The same update on the host.
        let (mut expected, mut norms) = (Vec::new(), Vec::new());
        for trains in if two_stages { vec![vec![0], vec![1]] } else { vec![vec![0, 1]] } {
            let tape = native.begin();
            let (critic, actor, q) = losses(tape, &nets, step);
            let nothing = tape.zeros(1, 1);
            let loss = match (two_stages, trains[0]) {
                (false, _) => actor.map_or(critic, |actor| critic + actor),
                (true, 0) => critic,
                (true, _) => actor.unwrap_or(nothing),
            };
            let gradients = loss.backward();
            expected.push(loss.item());
            if trains[0] == 0 {
                let q = q.to_matrix();
                let n = q.data().len() as f32;
                expected.push(q.data().iter().sum::<f32>() / n);
                expected.push(q.data().iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x)));
                expected.push(q.data().iter().fold(f32::INFINITY, |m, &x| m.min(x)));
                expected.push(q.data().iter().filter(|x| **x <= 0.0).count() as f32 / n);
            }
            if !two_stages {
                nets.target.track(&nets.q, TAU, &pool);
            }
            for &i in &trains {
                let net = if i == 0 { &mut nets.q } else { &mut nets.actor };
                let norm = gradients.norm(net);
                norms.push(norm as f32);
                let scale = max_norm.map_or(1.0, |most| (most / (norm + 1e-6)).min(1.0) as f32);
                adams[i].step_scaled(net, &gradients, scale);
            }
        }
        if two_stages {
            nets.target.track(&nets.q, TAU, &pool);
        }
        let tolerance = if step == 0 { 1e-5 } else { 1e-3 };
        assert_eq!((report.numbers.len(), report.norms.len()), (expected.len(), norms.len()));
        for (found, expected) in report.numbers.iter().zip(&expected).chain(report.norms.iter().zip(&norms)) {
            let difference = (found - expected).abs();
            assert!(
                difference < tolerance * expected.abs().max(1.0),
                "step {step}: {found} against {expected}"
            );
        }
        if step == 0 || step == 19 {
            compare(&format!("step {step}"), &seat.read().unwrap(), &all(&nets, &adams), tolerance);
        }
    }
    assert_eq!(seat.programs().len(), 2, "with the actor's loss and without it");
}

fn measures(q: Var<'_>) -> Vec<(Measure, usize)> {
    let all = [Measure::Mean, Measure::Max, Measure::Min, Measure::ShareNotPositive];
    all.into_iter().map(|measure| (measure, q.place())).collect()
}

#[test]
fn one_stage_agrees_with_the_tape() {
    agree(false, None);
}

#[test]
fn two_stages_with_clipping_agree_with_the_tape() {
    agree(true, Some(0.5));
}

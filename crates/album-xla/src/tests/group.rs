//! Seeds that are updated together train as if each were alone, whatever the others do.

use crate::{Device, Group, Measure, Net, Role, Seat, Stage, Step, Table, XlaError};
use album_base::rng;
use album_nn::{Adam, Mlp, MlpSpec, Pool, Tape, Tensor};
use std::sync::Arc;

const ROWS: usize = 8;
const WIDTH: usize = 3;

/// A seed: one network that fits a function of its rows, and a target network.
struct Seed {
    net: Mlp,
    target: Mlp,
    adam: Adam,
    seed: u64,
    /// The rows it learns from, which no other seed has.
    rows: Vec<f32>,
}

impl Seed {
    fn new(seed: u64) -> Self {
        let mut draw = rng::stream(seed, "group");
        let net = Mlp::new(MlpSpec::new(WIDTH, &[8, 8], 1).layer_norm(true).members(2), &mut draw);
        let rows = (0..50 * WIDTH).map(|_| rng::unit(&mut draw) as f32 - 0.5).collect();
        Seed { target: net.clone(), adam: Adam::new(&net, 1e-2), net, seed, rows }
    }

    fn sit(&self, group: &Arc<Group>) -> Result<Seat, XlaError> {
        let net = |net: &Mlp, role| Net {
            id: net.id(),
            spec: net.spec().clone(),
            tensors: net.tensors().into_iter().map(|tensor| tensor.shape).collect(),
            role,
        };
        let Adam { beta1, beta2, epsilon, .. } = self.adam;
        let trained = Role::Trained { is_value: true, beta1, beta2, epsilon, decays: false };
        group.sit(vec![net(&self.net, trained), net(&self.target, Role::Target { of: 0, tau: 0.1 })])
    }

    /// Runs `steps` updates, of which `stretched` ask for one more metric. Returns the losses.
    fn train(
        mut self,
        seat: &Seat,
        steps: std::ops::Range<u64>,
        by_table: bool,
        stretched: impl Fn(u64) -> bool,
    ) -> Vec<f32> {
        let mut tape = Tape::that_defers(&Pool::new(1), vec![self.net.id(), self.target.id()]);
        let data = |tensors: Vec<Tensor>| tensors.into_iter().map(|tensor| tensor.data);
        let moments = [self.adam.first_moments(), self.adam.second_moments()].concat();
        let all = data(self.net.tensors()).chain(data(moments)).chain(data(self.target.tensors()));
        let mut fresh = Some(all.collect());
        let mut losses = Vec::new();
        for step in steps {
            let mut draw = rng::stream(step, &format!("rows {}", self.seed));
            let at: Vec<u32> = (0..ROWS).map(|_| rng::below(&mut draw, 50) as u32).collect();
            let fill = |out: &mut [f32]| {
                for (out, &row) in out.chunks_exact_mut(WIDTH).zip(&at) {
                    out.copy_from_slice(&self.rows[row as usize * WIDTH..][..WIDTH]);
                }
            };
            let tape = tape.begin();
            let s = match by_table {
                true => tape.constant_of_table(0, || at.clone(), ROWS, WIDTH, fill),
                false => tape.constant_with(ROWS, WIDTH, fill),
            };
            let y = s.sum_cols() + 0.5 * tape.apply_frozen(&self.target, s).min_cols();
            let loss = (tape.apply(&self.net, s) - y.detach()).square().mean();
            let measures = if stretched(step) { vec![(Measure::Max, y.place())] } else { Vec::new() };
            let stage = Stage { recording: tape.recording(), loss: loss.place(), measures, trains: vec![0] };
            let update =
                Step { stages: vec![stage], moves: vec![1], before: true, max_norm: None, norms: true };
            let report = seat.run(step, update, &[self.adam.advance()], fresh.take()).unwrap();
            assert_eq!(report.numbers.len(), 1 + usize::from(stretched(step)));
            losses.push(report.numbers[0]);
        }
        losses
    }
}

type Learned = (Vec<f32>, Vec<Vec<f32>>);

fn alone(device: &Device, seed: u64, steps: u64, by_table: bool) -> Learned {
    let it = Seed::new(seed);
    let mut seat = it.sit(&Group::new(device, 1)).unwrap();
    lend(&it, &mut seat, by_table);
    let losses = it.train(&seat, 0..steps, by_table, |_| false);
    (losses, seat.read().unwrap())
}

fn lend(it: &Seed, seat: &mut Seat, by_table: bool) {
    if by_table {
        let key = format!("rows of {}", it.seed);
        seat.lend(vec![Table { key, width: WIDTH, rows: it.rows.clone() }]).unwrap();
    }
}

/// Seed `i` trains for `steps[i]` and asks for one more metric where `stretched` says so.
fn together(
    device: &Device,
    steps: &[u64],
    by_table: bool,
    stretched: impl Fn(u64, u64) -> bool + Copy + Send + Sync,
) -> Vec<Learned> {
    let group = Group::new(device, steps.len());
    let mut seats = Vec::new();
    for seed in 0..steps.len() as u64 {
        let it = Seed::new(seed);
        let mut seat = it.sit(&group).unwrap();
        lend(&it, &mut seat, by_table);
        seats.push((it, seat));
    }
    std::thread::scope(|scope| {
        let train = |((it, seat), &steps): ((Seed, Seat), &u64)| {
            scope.spawn(move || {
                let seed = it.seed;
                let losses = it.train(&seat, 0..steps, by_table, |step| stretched(seed, step));
                (losses, seat.read().unwrap())
            })
        };
        let threads: Vec<_> = seats.into_iter().zip(steps).map(train).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn agree(found: &Learned, expected: &Learned, tolerance: f32) {
    let near = |a: &[f32], b: &[f32]| {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{a} against {b}");
        }
    };
    near(&found.0, &expected.0);
    assert_eq!(found.1.len(), expected.1.len());
    found.1.iter().zip(&expected.1).for_each(|(a, b)| near(a, b));
}

#[test]
fn seeds_learn_together_what_each_learns_alone() {
    let Some(device) = super::device() else { return };
    for by_table in [false, true] {
        let found = together(device, &[50; 8], by_table, |_, _| false);
        for (seed, found) in found.iter().enumerate() {
            agree(found, &alone(device, seed as u64, 50, by_table), 1e-4);
        }
        assert_ne!(found[0].0, found[1].0, "seeds differ");
    }
}

/// The second seed ends early; the third needs another program at some steps and runs it alone.
#[test]
fn one_that_ends_early_or_asks_for_more_holds_nobody_up() {
    let Some(device) = super::device() else { return };
    let found = together(device, &[12, 5, 12], false, |seed, step| seed == 2 && step % 5 == 3);
    for (seed, steps) in [12, 5, 12].into_iter().enumerate() {
        agree(&found[seed], &alone(device, seed as u64, steps, false), 1e-4);
    }
}

/// Gathering rows from a table gives the same bits as passing the rows.
#[test]
fn rows_of_a_table_change_no_bit() {
    let Some(device) = super::device() else { return };
    assert_eq!(alone(device, 3, 20, true), alone(device, 3, 20, false));
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(device) = super::device() else { return };
    let group = Group::new(device, 2);
    let _first = Seed::new(0).sit(&group).unwrap();
    let net = Mlp::new(MlpSpec::new(2, &[4], 1), &mut rng::stream(0, "other"));
    let other = Net { id: net.id(), spec: net.spec().clone(), tensors: Vec::new(), role: Role::Fixed };
    let error = group.sit(vec![other]).unwrap_err().to_string();
    assert!(error.contains("others than those of the runs"), "{error}");
    let _second = Seed::new(1).sit(&group).unwrap();
    let error = Seed::new(2).sit(&group).unwrap_err().to_string();
    assert!(error.contains("all 2 places are taken"), "{error}");
    let error = crate::group::check_room(device, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("without --device-data only batches are copied to it"), "{error}");
}

//! Every operation on variables against f64 values and finite differences.

mod support;

use album_nn::{Matrix, Pool, Tape, Var};
use support::*;

const ROWS: usize = 4;
const COLS: usize = 3;

/// A function of two matrices, in the engine and in f64. The result of either is weighed with fixed
/// weights and summed, so that every entry matters.
fn check<F, G>(name: &str, a: &Matrix, b: &Matrix, engine: F, reference: G)
where
    F: for<'t> Fn(Var<'t>, Var<'t>) -> Var<'t>,
    G: Fn(&[f64], &[f64]) -> Vec<f64>,
{
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let (x, y) = (tape.variable(a), tape.variable(b));
    let out = engine(x, y);
    let weights: Vec<f32> = (0..out.rows() * out.cols()).map(|i| 1.0 + 0.3 * (i % 5) as f32).collect();
    let loss = (out * tape.constant_slice(out.rows(), out.cols(), &weights)).sum();
    let gradients = loss.backward();

    let (mut a, mut b) = (matrix_f64(a), matrix_f64(b));
    let objective = |a: &[f64], b: &[f64]| {
        reference(a, b).iter().zip(&weights).map(|(y, &w)| y * f64::from(w)).sum::<f64>()
    };
    assert_close(name, out.to_matrix().data(), &reference(&a, &b), 1e-6);
    let by_a = differences(&mut a, |a| objective(a, &b));
    let by_b = differences(&mut b, |b| objective(&a, b));
    assert_close(&format!("{name} by a"), gradients.wrt(x).data(), &by_a, 1e-5);
    assert_close(&format!("{name} by b"), gradients.wrt(y).data(), &by_b, 1e-5);
}

/// Entry by entry, for one operand.
fn check_unary(name: &str, x: &Matrix, f: for<'t> fn(Var<'t>) -> Var<'t>, g: fn(f64) -> f64) {
    check(name, x, x, |x, _| f(x), |x, _| x.iter().map(|&x| g(x)).collect());
}

/// Positive numbers away from the kinks of the operations at 0, 0.5 and 1.
fn positive() -> Matrix {
    Matrix::from_vec(ROWS, COLS, (0..ROWS * COLS).map(|i| 0.13 + 0.17 * i as f32).collect())
}

fn mixed(seed: u64, rows: usize, cols: usize) -> Matrix {
    random(&mut rng(seed), rows, cols, 2.0)
}

#[test]
fn functions_of_each_entry() {
    let x = mixed(1, ROWS, COLS);
    check_unary("neg", &x, |x| -x, |x| -x);
    check_unary("scale", &x, |x| 2.5 * x * 2.0, |x| 5.0 * x);
    check_unary("shift", &x, |x| 1.0 + (x - 3.0) + 0.5, |x| x - 1.5);
    check_unary("from", &x, |x| 1.0 - x, |x| 1.0 - x);
    check_unary("over", &x, |x| x / 4.0, |x| x / 4.0);
    check_unary("relu", &x, |x| x.relu(), |x| x.max(0.0));
    check_unary("abs", &x, |x| x.abs(), f64::abs);
    check_unary("square", &x, |x| x.square(), |x| x * x);
    check_unary("exp", &x, |x| x.exp(), f64::exp);
    check_unary("tanh", &x, |x| x.tanh(), f64::tanh);
    check_unary("sigmoid", &x, |x| x.sigmoid(), |x| 1.0 / (1.0 + (-x).exp()));
    check_unary("clip", &x, |x| x.clip(-0.7, 0.9), |x| x.clamp(-0.7, 0.9));
    check_unary("sqrt", &positive(), |x| x.sqrt(), f64::sqrt);
    check_unary("ln", &positive(), |x| x.ln(), f64::ln);
    check_unary("reciprocal", &positive(), |x| 2.0 / x, |x| 2.0 / x);
    check_unary(
        "expectile",
        &x,
        |x| x.expectile_loss(0.9),
        |x| if x < 0.0 { 0.1 * x * x } else { 0.9 * x * x },
    );
}

/// A function of two numbers, by the engine and in f64.
type Pair = (&'static str, for<'t> fn(Var<'t>, Var<'t>) -> Var<'t>, fn(f64, f64) -> f64);

#[test]
fn functions_of_two_entries_with_every_broadcast() {
    let pairs: [Pair; 6] = [
        ("add", |a, b| a + b, |a, b| a + b),
        ("sub", |a, b| a - b, |a, b| a - b),
        ("mul", |a, b| a * b, |a, b| a * b),
        ("div", |a, b| a / (b + 3.0), |a, b| a / (b + 3.0)),
        ("min", |a, b| a.min(b), f64::min),
        ("max", |a, b| a.max(b), f64::max),
    ];
    let shapes = [(ROWS, COLS), (1, COLS), (ROWS, 1), (1, 1)];
    for (name, engine, reference) in pairs {
        for (i, a_shape) in shapes.into_iter().enumerate() {
            for (j, b_shape) in shapes.into_iter().enumerate() {
                let (a, b) =
                    (mixed(10 + i as u64, a_shape.0, a_shape.1), mixed(20 + j as u64, b_shape.0, b_shape.1));
                let (rows, cols) = (a_shape.0.max(b_shape.0), a_shape.1.max(b_shape.1));
                let at = |shape: (usize, usize), r: usize, c: usize| r % shape.0 * shape.1 + c % shape.1;
                check(&format!("{name} {a_shape:?} {b_shape:?}"), &a, &b, engine, |a, b| {
                    (0..rows * cols)
                        .map(|k| {
                            let (r, c) = (k / cols, k % cols);
                            reference(a[at(a_shape, r, c)], b[at(b_shape, r, c)])
                        })
                        .collect()
                });
            }
        }
    }
}

#[test]
fn an_operand_used_twice() {
    check_unary("x * x", &mixed(3, ROWS, COLS), |x| x * x, |x| x * x);
    check_unary("x / (x * x + 1)", &mixed(3, ROWS, COLS), |x| x / (x * x + 1.0), |x| x / (x * x + 1.0));
}

#[test]
fn reductions() {
    let x = mixed(4, ROWS, COLS);
    let rows = |x: &[f64], f: fn(&[f64]) -> f64| x.chunks(COLS).map(f).collect::<Vec<_>>();
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    check("sum", &x, &x, |x, _| x.sum(), |x, _| vec![x.iter().sum()]);
    check("mean", &x, &x, |x, _| x.mean(), |x, _| vec![mean(x)]);
    check("sum_cols", &x, &x, |x, _| x.sum_cols(), |x, _| rows(x, |r| r.iter().sum()));
    check("mean_cols", &x, &x, |x, _| x.mean_cols(), |x, _| rows(x, |r| r.iter().sum::<f64>() / 3.0));
    let min = |r: &[f64]| r.iter().copied().fold(f64::INFINITY, f64::min);
    let max = |r: &[f64]| r.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    check("min_cols", &x, &x, |x, _| x.min_cols(), |x, _| rows(x, min));
    check("max_cols", &x, &x, |x, _| x.max_cols(), |x, _| rows(x, max));
}

#[test]
fn joins_and_parts() {
    let (a, b) = (mixed(5, ROWS, COLS), mixed(6, ROWS, 2));
    check(
        "concat_cols",
        &a,
        &b,
        |a, b| tape_of(a).concat_cols(&[a, b, a]),
        |a, b| {
            (0..ROWS)
                .flat_map(|r| [&a[r * 3..r * 3 + 3], &b[r * 2..r * 2 + 2], &a[r * 3..r * 3 + 3]].concat())
                .collect()
        },
    );
    let c = mixed(7, 2, COLS);
    check("concat_rows", &a, &c, |a, c| tape_of(a).concat_rows(&[c, a]), |a, c| [c, a].concat());
    check("slice_rows", &a, &a, |a, _| a.slice_rows(1, 3), |a, _| a[COLS..3 * COLS].to_vec());
    check(
        "slice_cols",
        &a,
        &a,
        |a, _| a.slice_cols(1, 3),
        |a, _| (0..ROWS).flat_map(|r| a[r * 3 + 1..r * 3 + 3].to_vec()).collect(),
    );
}

/// Concatenation belongs to the tape; a variable knows its own.
fn tape_of<'t>(x: Var<'t>) -> &'t Tape {
    x.tape()
}

#[test]
fn gaussian_log_density() {
    let (x, log_std) = (mixed(8, ROWS, COLS), mixed(9, 1, COLS));
    let density = |x: &[f64], s: &[f64], mean: f64| -> Vec<f64> {
        let one = |x: f64, s: f64| {
            -0.5 * ((x - mean) / s.exp()).powi(2) - s - 0.5 * (2.0 * std::f64::consts::PI).ln()
        };
        x.chunks(COLS).map(|row| row.iter().zip(s).map(|(&x, &s)| one(x, s)).sum()).collect()
    };
    check(
        "density",
        &x,
        &log_std,
        |x, s| x.gaussian_log_density(0.0 * s + 0.3, s),
        |x, s| density(x, s, f64::from(0.3f32)),
    );
    // The mean is where the density's gradient vanishes.
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let (x, zero) = (tape.variable(&x), tape.constant(&Matrix::zeros(1, COLS)));
    let gradients = x.gaussian_log_density(x.detach(), zero).sum().backward();
    assert!(gradients.wrt(x).data().iter().all(|&g| g == 0.0));
}

#[test]
fn gradients_at_kinks() {
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let x = tape.variable(&Matrix::zeros(1, 3));
    let y = tape.variable(&Matrix::zeros(1, 3));
    let loss = x.relu().sum() + y.abs().sum() + 4.0 * x.min(y).sum() + 3.0 * x.min_cols().sum();
    let gradients = loss.backward();
    // Hinge and absolute value pass nothing at 0; ties are shared.
    assert_eq!(gradients.wrt(x).data(), [3.0, 3.0, 3.0]);
    assert_eq!(gradients.wrt(y).data(), [2.0, 2.0, 2.0]);
}

#[test]
fn not_a_number_is_never_hidden() {
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let nan = tape.constant_slice(1, 2, &[f32::NAN, 1.0]);
    let one = tape.constant_slice(1, 2, &[1.0, f32::NAN]);
    for x in [nan.relu(), nan.abs(), nan.clip(0.0, 1.0), nan.min_cols(), one.max_cols(), nan.tanh()] {
        assert!(x.to_matrix().data()[0].is_nan());
    }
    for x in [nan.min(one), nan.max(one), one.min(nan)] {
        assert!(x.to_matrix().data().iter().all(|x| x.is_nan()));
    }
}

//! Every operation on variables against f64 values and finite differences.

use crate::support;

use album_nn::{Matrix, Mlp, MlpSpec, Pool, Tape, Var};
use support::*;

const ROWS: usize = 4;
const COLS: usize = 3;

/// A function of two matrices, in the engine and in f64. The result of each is multiplied by fixed weights
/// and summed, so that every entry matters.
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

/// Checks an elementwise function of one operand.
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
    check_unary("softplus", &x, |x| x.softplus(), softplus);
    check_unary("mish", &x, |x| x.mish(), |x| x * softplus(x).tanh());
    check_unary("sin", &x, |x| (3.0 * x).sin(), |x| (3.0 * x).sin());
    check_unary("cos", &x, |x| (3.0 * x).cos(), |x| (3.0 * x).cos());
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

fn softplus(x: f64) -> f64 {
    x.exp().ln_1p()
}

#[test]
fn softplus_and_mish_far_from_zero() {
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let far = [-1e4, -100.0, -20.0, 20.0, 100.0, 1e4];
    let (x, y) = (
        tape.variable(&Matrix::from_vec(1, 6, far.to_vec())),
        tape.variable(&Matrix::from_vec(1, 6, far.to_vec())),
    );
    let (soft, mish) = (x.softplus(), y.mish());
    let gradients = (soft.sum() + mish.sum()).backward();
    // e^-20: all that is left on either side of zero.
    let tail = (-20f64).exp();
    assert_close("softplus", &soft.to_matrix().data()[2..], &[tail, 20.0, 100.0, 1e4], 1e-7);
    assert!((f64::from(soft.to_matrix().data()[2]) / tail - 1.0).abs() < 1e-6);
    assert_close("slope", gradients.wrt(x).data(), &[0.0, 0.0, tail, 1.0, 1.0, 1.0], 1e-7);
    assert!((f64::from(mish.to_matrix().data()[2]) / (-20.0 * tail) - 1.0).abs() < 1e-6);
    assert_close("mish", mish.to_matrix().data(), &[0.0, 0.0, -20.0 * tail, 20.0, 100.0, 1e4], 1e-7);
    assert_close("slope", gradients.wrt(y).data(), &[0.0, 0.0, -19.0 * tail, 1.0, 1.0, 1.0], 1e-6);
}

#[test]
fn functions_of_each_row() {
    let x = mixed(11, ROWS, 5);
    let normal = |row: &[f64]| -> Vec<f64> {
        let mean = row.iter().sum::<f64>() / 5.0;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 5.0;
        row.iter().map(|x| (x - mean) / (variance + f64::from(0.1f32)).sqrt()).collect()
    };
    check("normalize", &x, &x, |x, _| x.normalize_rows(0.1), |x, _| x.chunks(5).flat_map(normal).collect());
    let log_softmax = |row: &[f64]| -> Vec<f64> {
        let total = row.iter().map(|x| x.exp()).sum::<f64>().ln();
        row.iter().map(|x| x - total).collect()
    };
    check(
        "log_softmax",
        &x,
        &x,
        |x, _| x.log_softmax_cols(),
        |x, _| x.chunks(5).flat_map(log_softmax).collect(),
    );
    // Used twice, so that gradients add up: two terms of a loss often share an operand.
    check(
        "both",
        &x,
        &x,
        |x, _| x.normalize_rows(0.1) * x.log_softmax_cols(),
        |x, _| {
            let both = |row: &[f64]| -> Vec<f64> {
                normal(row).iter().zip(log_softmax(row)).map(|(a, b)| a * b).collect()
            };
            x.chunks(5).flat_map(both).collect()
        },
    );
}

#[test]
fn rows_far_from_zero_keep_their_probabilities_and_normals() {
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let x = tape.variable(&Matrix::from_vec(2, 3, vec![1e4, 1e4, -1e4, -500.0, -501.0, f32::NEG_INFINITY]));
    let y = x.log_softmax_cols();
    let half = -(2f64.ln());
    assert_close("large", &y.to_matrix().data()[..3], &[half, half, -2e4 + half], 1e-6);
    let log_sum = (-1f64).exp().ln_1p();
    assert_close("small", &y.to_matrix().data()[3..5], &[-log_sum, -1.0 - log_sum], 1e-6);
    assert_eq!(y.to_matrix().data()[5], f32::NEG_INFINITY);
    let gradients = y.slice_cols(0, 1).sum().backward();
    let p = 1.0 / (1.0 + (-1f64).exp());
    assert_close("gradient", gradients.wrt(x).data(), &[0.5, -0.5, 0.0, 1.0 - p, p - 1.0, 0.0], 1e-6);
    let shifted = tape.constant_slice(1, 2, &[1e6 + 1.0, 1e6 - 1.0]).normalize_rows(0.0);
    assert_close("shifted", shifted.to_matrix().data(), &[1.0, -1.0], 1e-6);
    // All entries equal: only epsilon is left to divide by.
    assert_eq!(tape.filled(1, 4, 7.0).normalize_rows(1e-6).to_matrix(), Matrix::zeros(1, 4));
}

/// A function of two numbers, in the engine and in f64.
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

#[test]
fn repetition_and_other_shapes() {
    let a = mixed(5, ROWS, COLS);
    check(
        "repeat_rows",
        &a,
        &a,
        |a, _| a.repeat_rows(3),
        |a, _| a.chunks(COLS).flat_map(|row| [row, row, row].concat()).collect(),
    );
    check(
        "reshape",
        &a,
        &a,
        |a, _| a.reshape(2, 6) * a.reshape(2, 6),
        |a, _| a.iter().map(|a| a * a).collect(),
    );
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let shape = |x: Var<'_>| (x.rows(), x.cols());
    let a = tape.constant(&a);
    assert_eq!(shape(a.repeat_rows(0)), (0, COLS));
    assert_eq!(shape(a.repeat_rows(2).reshape(ROWS, 2 * COLS)), (ROWS, 2 * COLS));
    assert_eq!(tape.zeros(2, 3).to_matrix(), Matrix::zeros(2, 3));
    assert_eq!(tape.filled(1, 2, -0.5).to_matrix().data(), [-0.5, -0.5]);
    // Empty matrices work.
    for empty in [tape.zeros(0, 3), tape.zeros(3, 0)] {
        assert_eq!(shape(empty.normalize_rows(1e-6).log_softmax_cols()), shape(empty));
        assert_eq!(shape(empty.repeat_rows(2)), (2 * empty.rows(), empty.cols()));
    }
}

#[test]
#[should_panic(expected = "4 x 3 entries cannot fill 5 x 2")]
fn a_shape_of_another_size_is_refused() {
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let _ = tape.zeros(4, 3).reshape(5, 2);
}

/// Concatenation is a method of the tape; a variable knows its own.
fn tape_of<'t>(x: Var<'t>) -> &'t Tape {
    x.tape()
}

#[test]
fn one_entry_of_each_row() {
    let a = mixed(8, ROWS, COLS);
    let columns = [2.0, 0.0, 1.0, 2.0];
    check(
        "pick_cols",
        &a,
        &a,
        |a, _| a.pick_cols(tape_of(a).constant_slice(ROWS, 1, &columns)),
        |a, _| columns.iter().enumerate().map(|(row, &c)| a[row * COLS + c as usize]).collect(),
    );
    let tape = Tape::new(&Pool::new(1));
    let x = tape.variable(&Matrix::from_vec(1, 3, vec![-0.1, 0.5, 0.7]));
    assert_eq!(x.ge(0.5).to_matrix().data(), [0.0, 1.0, 1.0]);
    assert_eq!(x.ge(0.5).sum().backward().wrt(x).data(), [0.0; 3]);
}

#[test]
#[should_panic(expected = "there is no column 3 of 3")]
fn a_column_that_does_not_exist_is_refused() {
    let tape = Tape::new(&Pool::new(1));
    let _ = tape.zeros(1, 3).pick_cols(tape.filled(1, 1, 3.0));
}

#[test]
fn a_parameter_is_a_leaf_with_a_gradient() {
    // Wider than a panel, and with several rows.
    let (rows, cols) = (3, 40);
    let mut parameter = Mlp::new(MlpSpec::parameter(rows, cols), &mut rng(1));
    assert!(parameter.tensors()[0].data.iter().all(|&x| x == 0.0));
    let mut tensors = parameter.tensors();
    tensors[0].data = (0..rows * cols).map(|i| i as f32).collect();
    parameter.load(&tensors).unwrap();
    let mut tape = Tape::new(&Pool::new(1));
    for _ in 0..2 {
        let tape = tape.begin();
        let p = tape.parameter(&parameter);
        assert_eq!(p.to_matrix().data(), tensors[0].data);
        assert_eq!(tape.parameter_frozen(&parameter).to_matrix().data(), tensors[0].data);
        // Read twice: the gradients add up.
        let loss = (p.square() + tape.parameter(&parameter) + tape.parameter_frozen(&parameter)).sum();
        let expected: Vec<f32> = tensors[0].data.iter().map(|x| 2.0 * x + 1.0).collect();
        assert_eq!(loss.backward().of(&parameter)[0].data, expected);
    }
}

#[test]
fn a_loss_may_contain_a_gradient() {
    let mut init = rng(2);
    let (q, pi) =
        (Mlp::new(MlpSpec::new(5, &[8], 1), &mut init), Mlp::new(MlpSpec::new(3, &[8], 2), &mut init));
    let s = mixed(3, ROWS, 3);
    let mut tape = Tape::new(&Pool::new(1));
    let (guidance, by_pi) = {
        let tape = tape.begin();
        let states = tape.constant(&s);
        let a = tape.apply(&pi, states);
        let value = tape.apply(&q, tape.concat_cols(&[states, a])).sum();
        let g = value.gradient_by(a);
        // The gradient of <g, a> with respect to pi, with g constant, is that of Q(s, pi(s)).
        let gradients = (g * a).sum().backward();
        assert!(gradients.of(&q).iter().all(|tensor| tensor.data.iter().all(|&g| g == 0.0)));
        (g.to_matrix(), gradients.of(&pi))
    };
    let tape = tape.begin();
    let states = tape.constant(&s);
    let a = tape.apply(&pi, states);
    let gradients = tape.apply_frozen(&q, tape.concat_cols(&[states, a])).sum().backward();
    assert_eq!(gradients.wrt(a).data(), guidance.data());
    for (found, expected) in by_pi.iter().zip(gradients.of(&pi)) {
        assert_eq!(*found, expected);
    }
}

#[test]
fn gradients_at_kinks() {
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let x = tape.variable(&Matrix::zeros(1, 3));
    let y = tape.variable(&Matrix::zeros(1, 3));
    let loss = x.relu().sum() + y.abs().sum() + 4.0 * x.min(y).sum() + 3.0 * x.min_cols().sum();
    let gradients = loss.backward();
    // Hinge and absolute value have derivative 0 at 0; ties are shared.
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
    for x in [nan.softplus(), nan.mish(), nan.sin(), nan.cos(), nan.repeat_rows(2), nan.reshape(2, 1)] {
        assert!(x.to_matrix().data()[0].is_nan());
    }
    for x in [nan.min(one), nan.max(one), one.min(nan), nan.normalize_rows(1e-6), one.log_softmax_cols()] {
        assert!(x.to_matrix().data().iter().all(|x| x.is_nan()));
    }
}

#[test]
fn not_a_number_reaches_gradients_of_its_row_and_no_other() {
    let operations: [fn(Var<'_>) -> Var<'_>; 8] = [
        |x| x.softplus(),
        |x| x.mish(),
        |x| x.sin(),
        |x| x.cos(),
        |x| x.normalize_rows(1e-6),
        |x| x.log_softmax_cols(),
        |x| x.repeat_rows(2).exp(),
        |x| x.reshape(1, 4).exp(),
    ];
    for (i, operation) in operations.into_iter().enumerate() {
        let mut tape = Tape::new(&Pool::new(1));
        let tape = tape.begin();
        let x = tape.variable(&Matrix::from_vec(2, 2, vec![0.1, 0.2, 0.3, f32::NAN]));
        // Even with a zero upstream gradient: a corrupted row must not pass for one without gradient.
        let gradient = (0.0 * operation(x)).sum().backward().wrt(x);
        assert!(gradient.data()[3].is_nan(), "operation {i}");
        assert!(gradient.data()[..2].iter().all(|g| g.is_finite()), "operation {i}");
    }
}

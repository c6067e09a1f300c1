//! On random small computations, the native tape and the device agree in values and gradients.

use crate::emit::{Graph, is_input};
use crate::hlo::{Hlo, Shape, Value};
use album_base::rng;
use album_nn::{Activation, Mlp, MlpSpec, NormalBins, Pool, Recording, Tape, Var};
use rand_chacha::ChaCha8Rng;

/// Compiling a graph takes a third of a core-second; `ALBUM_FUZZ_GRAPHS=2000` tries more.
const GRAPHS: usize = 60;
const AT_ONCE: usize = 20;

/// A random computation and the native tape's results.
struct Case {
    recording: Recording,
    loss: usize,
    /// The loss, then the gradients of variables and of networks.
    expected: Vec<f32>,
    variables: Vec<usize>,
}

struct Draw(ChaCha8Rng);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        (rng::unit(&mut self.0) * n as f64) as usize
    }

    fn number(&mut self) -> f32 {
        (4.0 * rng::unit(&mut self.0) - 2.0) as f32
    }

    fn matrix(&mut self, rows: usize, cols: usize) -> Vec<f32> {
        (0..rows * cols).map(|_| self.number()).collect()
    }
}

fn spec(draw: &mut Draw) -> MlpSpec {
    let hidden = [&[][..], &[4], &[5, 3]][draw.below(3)];
    let activation = [Activation::Gelu, Activation::Mish, Activation::Relu][draw.below(3)];
    MlpSpec::new(3, hidden, 2)
        .activation(activation)
        .layer_norm(draw.below(2) == 0)
        .bias(draw.below(3) > 0)
        .members(1 + draw.below(2))
}

fn unary<'t>(draw: &mut Draw, x: Var<'t>) -> Var<'t> {
    let positive = |x: Var<'t>| x.square() + 0.5;
    let c = draw.number();
    match draw.below(23) {
        0 => c * x,
        1 => x + c,
        2 => c / positive(x),
        3 => x.relu(),
        4 => x.abs(),
        5 => x.square(),
        6 => positive(x).sqrt(),
        7 => x.tanh().exp(),
        8 => positive(x).ln(),
        9 => x.tanh(),
        10 => x.sigmoid(),
        11 => x.softplus(),
        12 => x.mish(),
        13 => x.sin(),
        14 => x.cos(),
        15 => x.clip(-0.7, 0.9),
        16 => x.expectile_loss(0.9),
        17 => x.ge(0.3) * x,
        18 => x.detach() * x,
        19 => x.normalize_rows(1e-3),
        20 => x.log_softmax_cols(),
        21 => x.argmax_cols() + x,
        _ => c - x,
    }
}

fn shape_change<'t>(draw: &mut Draw, x: Var<'t>) -> Var<'t> {
    let (rows, cols) = (x.rows(), x.cols());
    match draw.below(14) {
        0 => x.sum_cols(),
        1 => x.mean_cols(),
        2 => x.min_cols(),
        3 => x.max_cols(),
        4 => x.sum(),
        5 => x.mean(),
        6 => x.reshape(cols, rows),
        7 => x.repeat_rows(2),
        8 => x.slice_rows(rows / 2, rows),
        9 => x.slice_cols(cols / 2, cols),
        10 => x.tape().concat_rows(&[x, x.square(), x]),
        11 => x.tape().concat_cols(&[x, x.tanh()]),
        12 => {
            let columns: Vec<f32> = (0..rows).map(|_| draw.below(cols) as f32).collect();
            x.pick_cols(x.tape().constant_slice(rows, 1, &columns))
        }
        _ => x.mean_cols().normal_masses(NormalBins { low: -2.0, high: 2.0, count: 5, sigma: 0.6 }),
    }
}

fn combine<'t>(draw: &mut Draw, a: Var<'t>, b: Var<'t>) -> Option<Var<'t>> {
    let fit = |x: usize, y: usize| x == y || x == 1 || y == 1;
    if !fit(a.rows(), b.rows()) || !fit(a.cols(), b.cols()) {
        return None;
    }
    Some(match draw.below(6) {
        0 => a + b,
        1 => a - b,
        2 => a * b,
        3 => a / (b.square() + 0.5),
        4 => a.min(b),
        _ => a.max(b),
    })
}

fn is_tame(x: Var<'_>) -> bool {
    x.rows() <= 24 && x.with_value(|x| x.iter().all(|x| x.abs() < 30.0))
}

fn case(number: usize) -> Case {
    let mut draw = Draw(rng::stream(number as u64, "fuzz"));
    let nets: Vec<Mlp> = (0..2).map(|_| Mlp::new(spec(&mut draw), &mut draw.0)).collect();
    let mut parameter = Mlp::new(MlpSpec::parameter(1, 3), &mut draw.0);
    let mut tensors = parameter.tensors();
    tensors[0].data = draw.matrix(1, 3);
    parameter.load(&tensors).unwrap();
    let mut tape = Tape::that_records(&Pool::new(1));
    let tape = tape.begin();
    let mut vars = Vec::new();
    let mut variables = Vec::new();
    for (i, &(rows, cols)) in [(4, 3), (4, 3), (1, 3), (4, 1), (1, 1)].iter().enumerate() {
        let data = draw.matrix(rows, cols);
        let matrix = album_nn::Matrix::from_vec(rows, cols, data);
        let var = if i % 2 == 0 { tape.variable(&matrix) } else { tape.constant(&matrix) };
        if i % 2 == 0 {
            variables.push(var.place());
        }
        vars.push(var);
    }
    vars.push(tape.parameter(&parameter));
    vars.push(tape.filled(4, 1, 0.5));
    for _ in 0..8 {
        let (i, j) = (draw.below(vars.len()), draw.below(vars.len()));
        let (a, b) = (vars[i], vars[j]);
        let new = match draw.below(8) {
            0..=2 => Some(unary(&mut draw, a)),
            3 => Some(shape_change(&mut draw, a)),
            4 | 5 => combine(&mut draw, a, b),
            _ if a.cols() == 3 => {
                let net = &nets[draw.below(2)];
                Some(if draw.below(3) == 0 { tape.apply_frozen(net, a) } else { tape.apply(net, a) })
            }
            _ => None,
        };
        vars.extend(new.filter(|&new| is_tame(new)));
    }
    let mut loss = vars[vars.len() - 1].mean();
    for &var in &vars[5..vars.len() - 1] {
        loss = loss + 0.3 * var.square().mean();
    }
    if number.is_multiple_of(4) {
        // A gradient inside the loss, as in SRPO.
        let inner = loss.gradient_by(vars[0]);
        loss = loss + (inner * vars[1]).mean();
    }
    let recording = tape.recording();
    let (place, mut expected) = (loss.place(), vec![loss.item()]);
    let gradients = loss.backward();
    for var in vars.iter().filter(|var| variables.contains(&var.place())) {
        expected.extend(gradients.wrt(*var).data());
    }
    let all = [&nets[0], &nets[1], &parameter];
    for id in &recording.ids {
        let net = all.into_iter().find(|net| net.id() == *id).unwrap();
        expected.extend(gradients.of(net).iter().flat_map(|tensor| &tensor.data));
    }
    Case { recording, loss: place, expected, variables }
}

/// Appends a case to a program and returns its results.
fn emit(hlo: &mut Hlo, case: &Case, data: Value, used: &mut usize) -> Vec<Value> {
    let mut next = |hlo: &mut Hlo, dims: &[usize]| {
        let count = dims.iter().product();
        let part = hlo.slice(data, &[*used], Shape::new(&[count]));
        *used += count;
        hlo.reshape(part, Shape::new(dims))
    };
    let recording = &case.recording;
    let mut nets = Vec::new();
    for net in &recording.nets {
        let tensors = net.tensors().iter().map(|tensor| next(hlo, &tensor.shape)).collect();
        nets.push((net.spec(), tensors));
    }
    let input = |hlo: &mut Hlo, i: usize| {
        let value = &recording.values[i];
        next(hlo, &[value.rows, value.cols])
    };
    let graph = Graph::emit(hlo, recording, &[], nets, input).unwrap();
    let gradients = graph.backward(hlo, case.loss, 0, true);
    let mut parts = vec![graph.at(case.loss)];
    for &place in &case.variables {
        let shape = graph.at(place).shape;
        parts.push(gradients.by(place).unwrap_or_else(|| hlo.constant(0.0, shape)));
    }
    for (i, net) in recording.nets.iter().enumerate() {
        match gradients.of_net(i) {
            Some(found) => parts.extend(found),
            None => parts.extend(net.tensors().iter().map(|t| hlo.constant(0.0, Shape::new(&t.shape)))),
        }
    }
    parts
}

#[test]
fn random_computations_agree_with_the_tape() {
    let Some(device) = super::device() else { return };
    let graphs = std::env::var("ALBUM_FUZZ_GRAPHS").map_or(GRAPHS, |count| count.parse().unwrap());
    for first in (0..graphs).step_by(AT_ONCE) {
        let cases: Vec<Case> = (first..first + AT_ONCE).map(case).collect();
        let mut data = Vec::new();
        for case in &cases {
            for net in &case.recording.nets {
                data.extend(net.tensors().iter().flat_map(|tensor| tensor.data.clone()));
            }
            let inputs = case.recording.values.iter().filter(|value| is_input(value));
            data.extend(inputs.flat_map(|value| value.value.clone()));
        }
        let (mut hlo, mut used) = (Hlo::default(), 0);
        let argument = hlo.argument(Shape::new(&[data.len()]));
        let results: Vec<Value> =
            cases.iter().flat_map(|case| emit(&mut hlo, case, argument, &mut used)).collect();
        assert_eq!(used, data.len());
        let executable = device.compile(&hlo.finish(&[(argument, None)], &results)).unwrap();
        let data = device.upload(&data, &[data.len()]).unwrap();
        let mut found = Vec::new();
        for (result, buffer) in results.iter().zip(executable.run(&[&data]).unwrap()) {
            let from = found.len();
            found.resize(from + result.dims().iter().product::<usize>(), 0.0);
            buffer.download(&mut found[from..]).unwrap();
        }
        let mut at = 0;
        for (i, case) in cases.iter().enumerate() {
            let found = &found[at..][..case.expected.len()];
            at += case.expected.len();
            let size = case.expected.iter().fold(1f64, |m, x| m.max(f64::from(x.abs())));
            for (j, (found, expected)) in found.iter().zip(&case.expected).enumerate() {
                let difference = f64::from((found - expected).abs()) / size;
                assert!(difference < 2e-5, "graph {}, number {j}: {found} against {expected}", first + i);
            }
        }
    }
}

//! Networks: `Dense -> activation -> LayerNorm`, repeated, then `Dense`, for each ensemble member.

use crate::hlo::{Fold, Hlo, Shape, Value};
use album_nn::{Activation, MlpSpec, NORM_EPSILON};

/// The weights of one layer of one ensemble member.
#[derive(Clone, Copy)]
struct Layer {
    kernel: Value,
    bias: Option<Value>,
    /// LayerNorm's scale and shift.
    norm: Option<[Value; 2]>,
}

/// What the backward pass needs from a layer's forward pass.
struct Passed {
    layer: Layer,
    input: Value,
    /// The pre-activation of a hidden layer.
    z: Option<Value>,
    /// The normalized activations and the inverse standard deviations; see [`normalize`].
    normal: Option<[Value; 2]>,
}

/// A network applied to a matrix.
pub(crate) struct Application {
    pub(crate) output: Value,
    members: Vec<Vec<Passed>>,
    activation: Activation,
}

/// Groups the tensors of a network, in the order of `Mlp::tensors`, by member and layer.
fn layers(spec: &MlpSpec, tensors: &[Value]) -> Vec<Vec<Layer>> {
    let mut tensors = tensors.iter().copied();
    let mut next = || tensors.next();
    let mut members = Vec::new();
    for _ in 0..spec.members {
        let mut layers = Vec::new();
        for l in 0..=spec.hidden.len() {
            let Some(kernel) = next() else { break };
            let bias = if spec.bias { next() } else { None };
            let norm = if spec.layer_norm && l < spec.hidden.len() { next().zip(next()) } else { None };
            layers.push(Layer { kernel, bias, norm: norm.map(|(scale, shift)| [scale, shift]) });
        }
        members.push(layers);
    }
    members
}

/// The index of the column dimension, the last one.
fn cols(x: Value) -> usize {
    x.dims().len() - 1
}

/// A vector as a matrix of one row.
fn row(hlo: &mut Hlo, x: Value) -> Value {
    let (lead, width) = x.dims().split_at(cols(x));
    hlo.reshape(x, Shape::new(&[lead, &[1], width].concat()))
}

/// The mean of each row.
pub(super) fn mean_cols(hlo: &mut Hlo, x: Value) -> Value {
    let sum = hlo.fold(Fold::Add, x, &[cols(x)]);
    hlo.scale(sum, 1.0 / x.dims()[cols(x)] as f32)
}

/// Normalizes each row to mean 0 and variance 1; also returns the inverse standard deviations.
pub(super) fn normalize(hlo: &mut Hlo, x: Value, epsilon: f32) -> [Value; 2] {
    let mean = mean_cols(hlo, x);
    let deviation = hlo.sub(x, mean);
    let square = hlo.mul(deviation, deviation);
    let variance = mean_cols(hlo, square);
    let shifted = hlo.shift(variance, epsilon);
    let inverse = hlo.map("rsqrt", shifted);
    [hlo.mul(deviation, inverse), inverse]
}

/// The gradient with respect to the input of [`normalize`], from that of its output.
pub(super) fn normalize_backward(hlo: &mut Hlo, up: Value, [normal, inverse]: [Value; 2]) -> Value {
    let mean = mean_cols(hlo, up);
    let product = hlo.mul(up, normal);
    let along = mean_cols(hlo, product);
    let centred = hlo.sub(up, mean);
    let part = hlo.mul(normal, along);
    let rest = hlo.sub(centred, part);
    hlo.mul(rest, inverse)
}

/// `t = tanh(ln(1 + e^x))` and `1 - t`, without cancellation or overflow.
pub(super) fn tanh_softplus(hlo: &mut Hlo, x: Value) -> [Value; 2] {
    let size = hlo.map("abs", x);
    let falling = hlo.map("negate", size);
    let e = hlo.map("exponential", falling);
    let positive = hlo.compare_with("GT", x, 0.0);
    let twice = hlo.scale(e, 2.0);
    let one_more = hlo.shift(twice, 1.0);
    let two_more = hlo.shift(e, 2.0);
    let small = hlo.mul(e, two_more);
    let above = hlo.select(positive, one_more, small);
    let tiny = hlo.mul(twice, e);
    let two = hlo.constant(2.0, x.shape);
    let rest = hlo.select(positive, tiny, two);
    let whole = hlo.add(above, rest);
    [hlo.div(above, whole), hlo.div(rest, whole)]
}

/// The derivative of `x * tanh(ln(1 + e^x))`.
pub(super) fn mish_slope(hlo: &mut Hlo, x: Value) -> Value {
    let [t, rest] = tanh_softplus(hlo, x);
    let sigmoid = hlo.map("logistic", x);
    let one_more = hlo.shift(t, 1.0);
    let product = hlo.mul(x, rest);
    let product = hlo.mul(product, one_more);
    let product = hlo.mul(product, sigmoid);
    hlo.add(t, product)
}

const GELU: f32 = 0.797_884_6; // sqrt(2 / pi)
const CUBIC: f32 = 0.044_715;

/// `tanh(sqrt(2 / pi) * (z + 0.044715 z^3))`, and `z^2`.
fn gelu_tanh(hlo: &mut Hlo, z: Value) -> [Value; 2] {
    let square = hlo.mul(z, z);
    let cubic = hlo.scale(square, GELU * CUBIC);
    let factor = hlo.shift(cubic, GELU);
    let inside = hlo.mul(z, factor);
    [hlo.map("tanh", inside), square]
}

fn activate(hlo: &mut Hlo, activation: Activation, z: Value) -> Value {
    match activation {
        Activation::Gelu => {
            let [t, _] = gelu_tanh(hlo, z);
            let one_more = hlo.shift(t, 1.0);
            let half = hlo.scale(z, 0.5);
            hlo.mul(half, one_more)
        }
        Activation::Relu => {
            let zero = hlo.constant(0.0, z.shape);
            hlo.zip("maximum", z, zero)
        }
        Activation::Mish => {
            let [t, _] = tanh_softplus(hlo, z);
            hlo.mul(z, t)
        }
    }
}

fn slope(hlo: &mut Hlo, activation: Activation, z: Value) -> Value {
    match activation {
        Activation::Gelu => {
            // 0.5 (1 + t) + 0.5 z (1 - t^2) u', where t = tanh(u)
            let [t, square] = gelu_tanh(hlo, z);
            let steep = hlo.scale(square, 3.0 * GELU * CUBIC);
            let steep = hlo.shift(steep, GELU);
            let t_square = hlo.mul(t, t);
            let one = hlo.constant(1.0, z.shape);
            let rest = hlo.sub(one, t_square);
            let product = hlo.mul(z, rest);
            let product = hlo.mul(product, steep);
            let one_more = hlo.shift(t, 1.0);
            let sum = hlo.add(one_more, product);
            hlo.scale(sum, 0.5)
        }
        Activation::Relu => {
            let positive = hlo.compare_with("GT", z, 0.0);
            hlo.choose(positive, 1.0, 0.0)
        }
        Activation::Mish => mish_slope(hlo, z),
    }
}

/// Applies a network to a matrix with `lead` dimensions before its rows.
pub(crate) fn apply(hlo: &mut Hlo, lead: usize, spec: &MlpSpec, tensors: &[Value], x: Value) -> Application {
    let (mut members, mut outputs) = (Vec::new(), Vec::new());
    for layers in layers(spec, tensors) {
        let (mut passed, mut input) = (Vec::new(), x);
        for (l, layer) in layers.iter().enumerate() {
            let mut output = hlo.dot(input, layer.kernel, lead, (1, 0));
            if let Some(bias) = layer.bias {
                let bias = row(hlo, bias);
                output = hlo.add(output, bias);
            }
            let (mut z, mut normal) = (None, None);
            if l < spec.hidden.len() {
                z = Some(output);
                output = activate(hlo, spec.activation, output);
            }
            if let Some(norm) = layer.norm {
                let normalized = normalize(hlo, output, NORM_EPSILON);
                let [scale, shift] = norm.map(|vector| row(hlo, vector));
                let scaled = hlo.mul(normalized[0], scale);
                output = hlo.add(scaled, shift);
                normal = Some(normalized);
            }
            passed.push(Passed { layer: *layer, input, z, normal });
            input = output;
        }
        members.push(passed);
        outputs.push(input);
    }
    let output = hlo.concat(&outputs, cols(outputs[0]));
    Application { output, members, activation: spec.activation }
}

/// The gradients of a network's tensors, in order, and of its input, from that of its output; each only on request.
pub(crate) fn apply_backward(
    hlo: &mut Hlo,
    lead: usize,
    application: &Application,
    up: Value,
    weights: bool,
    input: bool,
) -> (Vec<Value>, Option<Value>) {
    let (mut gradients, mut total) = (Vec::new(), None);
    let at = cols(up);
    let width = up.dims()[at] / application.members.len();
    for (m, passed) in application.members.iter().enumerate() {
        let (mut from, mut dims) = (vec![0; at + 1], up.dims().to_vec());
        (from[at], dims[at]) = (m * width, width);
        let mut up = hlo.slice(up, &from, Shape::new(&dims));
        // Collected from the last layer to the first, and reversed at the end.
        let mut reversed = Vec::new();
        for (l, passed) in passed.iter().enumerate().rev() {
            let mut of_norm = None;
            if let (Some([scale, _]), Some(normal)) = (passed.layer.norm, passed.normal) {
                if weights {
                    let product = hlo.mul(up, normal[0]);
                    of_norm = Some([product, up].map(|x| sum_rows(hlo, x)));
                }
                let scale = row(hlo, scale);
                let scaled = hlo.mul(up, scale);
                up = normalize_backward(hlo, scaled, normal);
            }
            if let Some(z) = passed.z {
                let slope = slope(hlo, application.activation, z);
                up = hlo.mul(up, slope);
            }
            if weights {
                let kernel = hlo.dot(passed.input, up, lead, (0, 0));
                let bias = passed.layer.bias.map(|_| sum_rows(hlo, up));
                let layer: Vec<Value> =
                    [kernel].into_iter().chain(bias).chain(of_norm.into_iter().flatten()).collect();
                reversed.push(layer);
            }
            if l > 0 || input {
                up = hlo.dot(up, passed.layer.kernel, lead, (1, 1));
            }
        }
        gradients.extend(reversed.into_iter().rev().flatten());
        if input {
            total = Some(total.map_or(up, |total| hlo.add(total, up)));
        }
    }
    (gradients, total)
}

/// The sum of all rows, as a vector.
fn sum_rows(hlo: &mut Hlo, x: Value) -> Value {
    let sum = hlo.fold(Fold::Add, x, &[cols(x) - 1]);
    let dims = [&x.dims()[..cols(x) - 1], &x.dims()[cols(x)..]].concat();
    hlo.reshape(sum, Shape::new(&dims))
}

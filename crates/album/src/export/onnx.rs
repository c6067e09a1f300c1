//! A minimal ONNX writer: the protobuf messages of a model (IR 8), and the operators of opset 17 that policies need.

use album_policy::{Actions, Function, Operator, PolicyFile, Reduction, Shape, Step};
use std::collections::{BTreeMap, HashMap};

/// ONNX opset version.
pub const OPSET: i64 = 17;
const IR: i64 = 8;

/// Maximum size of a protobuf message, in bytes.
const MOST: usize = i32::MAX as usize;

const FLOAT: i64 = 1;
const INT64: i64 = 7;

/// A protobuf message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut x: u64) {
        while x >= 0x80 {
            self.0.push(x as u8 | 0x80);
            x >>= 7;
        }
        self.0.push(x as u8);
    }

    fn int(mut self, field: u64, x: i64) -> Self {
        self.varint(field << 3);
        self.varint(x as u64);
        self
    }

    fn float(mut self, field: u64, x: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend(x.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, x: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(x.len() as u64);
        self.0.extend(x);
        self
    }

    fn text(self, field: u64, x: &str) -> Self {
        self.bytes(field, x.as_bytes())
    }

    fn message(self, field: u64, x: &Message) -> Self {
        self.bytes(field, &x.0)
    }
}

/// An attribute of a node.
enum Attribute {
    Int(i64),
    Float(f32),
    Ints(Vec<i64>),
}

fn attribute(name: &str, value: &Attribute) -> Message {
    let message = Message::default().text(1, name);
    match value {
        Attribute::Float(x) => message.float(2, *x).int(20, 1),
        Attribute::Int(x) => message.int(3, *x).int(20, 2),
        Attribute::Ints(x) => x.iter().fold(message, |message, x| message.int(8, *x)).int(20, 7),
    }
}

fn tensor(name: &str, dims: &[usize], kind: i64, raw: &[u8]) -> Message {
    let dims = dims.iter().fold(Message::default(), |message, &dim| message.int(1, dim as i64));
    dims.int(2, kind).text(8, name).bytes(9, raw)
}

/// An input or output: name, element type, and dimensions after the batch.
fn port(name: &str, kind: i64, sizes: &[usize]) -> Message {
    let batch = Message::default().message(1, &Message::default().text(2, "batch"));
    let shape =
        sizes.iter().fold(batch, |shape, &size| shape.message(1, &Message::default().int(1, size as i64)));
    let tensor = Message::default().int(1, kind).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// Encodes a policy as a model with inputs `observation` and, if the policy samples, `noise`, and output `action`,
/// for any batch size.
pub(super) fn encode(file: &PolicyFile) -> Result<Vec<u8>, String> {
    let manifest = &file.manifest;
    let (dim, noise) = (manifest.observation_dim(), manifest.noise.len());
    let shapes = file.graph.shapes(dim, noise, &file.tensors)?;
    let mut nodes = Nodes { shapes: &shapes, ..Nodes::default() };
    for (name, shape, data) in file.tensors.iter() {
        nodes.floats(name, shape, data);
    }
    let last = file.graph.steps.len() - 1;
    for (i, step) in file.graph.steps.iter().enumerate() {
        let name = nodes.step(step, i == last)?;
        nodes.names.push(name);
    }
    let decided = nodes.names[last].clone();
    let (kind, sizes) = match &manifest.actions {
        Actions::Discrete { .. } => (INT64, vec![]),
        actions if manifest.open_loop == 1 => (FLOAT, vec![actions.dim()]),
        actions => (FLOAT, vec![manifest.open_loop, actions.dim()]),
    };
    match &sizes[..] {
        [h, dim] => nodes.reshape(&decided, &[*h as i64, *dim as i64], Some("action")),
        _ => nodes.node("Identity", &[&decided], &[], Some("action")),
    };
    let mut graph = nodes.nodes.iter().fold(Message::default(), |graph, node| graph.message(1, node));
    graph = graph.text(2, "policy");
    graph = nodes.tensors.iter().fold(graph, |graph, tensor| graph.message(5, tensor));
    graph = graph.message(11, &port("observation", FLOAT, &[dim]));
    if noise > 0 {
        graph = graph.message(11, &port("noise", FLOAT, &[noise]));
    }
    graph = graph.message(12, &port("action", kind, &sizes));
    let opset = Message::default().text(1, "").int(2, OPSET);
    let mut model = Message::default()
        .int(1, IR)
        .text(2, "album")
        .text(3, &manifest.album)
        .message(7, &graph)
        .message(8, &opset);
    for (key, value) in properties(file)? {
        model = model.message(14, &Message::default().text(1, &key).text(2, &value));
    }
    match model.0.len() {
        length if length <= MOST => Ok(model.0),
        length => Err(format!("{length} bytes; ONNX files have at most {MOST}: use safetensors")),
    }
}

/// The manifest as key-value pairs: strings as they are, everything else as JSON.
fn properties(file: &PolicyFile) -> Result<BTreeMap<String, String>, String> {
    let manifest = serde_json::to_value(&file.manifest).map_err(|e| e.to_string())?;
    let entries = manifest.as_object().into_iter().flatten();
    Ok(entries
        .map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect())
}

#[derive(Default)]
struct Nodes<'a> {
    shapes: &'a [Shape],
    nodes: Vec<Message>,
    tensors: Vec<Message>,
    /// Names of the results of all steps.
    names: Vec<String>,
    /// Constant tensors by their bits, so that equal ones are shared.
    numbers: HashMap<(Vec<i64>, bool), String>,
    /// Tensors that hold the batch's row count, keyed by rows per observation.
    rows: HashMap<usize, String>,
    count: usize,
}

impl Nodes<'_> {
    fn floats(&mut self, name: &str, dims: &[usize], data: &[f32]) {
        let raw: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.push(tensor(name, dims, FLOAT, &raw));
    }

    /// A scalar constant.
    fn number(&mut self, x: f32) -> String {
        let key = (vec![i64::from(x.to_bits())], true);
        if let Some(name) = self.numbers.get(&key) {
            return name.clone();
        }
        let name = format!("number{}", self.numbers.len());
        self.floats(&name, &[], &[x]);
        self.numbers.entry(key).or_insert(name).clone()
    }

    /// An integer constant.
    fn integers(&mut self, x: &[i64]) -> String {
        let key = (x.to_vec(), false);
        if let Some(name) = self.numbers.get(&key) {
            return name.clone();
        }
        let name = format!("integers{}", self.numbers.len());
        let raw: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.push(tensor(&name, &[x.len()], INT64, &raw));
        self.numbers.entry(key).or_insert(name).clone()
    }

    /// Adds a node; returns the name of its result.
    fn node(
        &mut self,
        kind: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
        output: Option<&str>,
    ) -> String {
        self.count += 1;
        let output = output.map_or_else(|| format!("value{}", self.count), str::to_owned);
        let mut node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
        node = node.text(2, &output).text(3, &format!("{kind}{}", self.count)).text(4, kind);
        node = attributes.iter().fold(node, |node, (name, value)| node.message(5, &attribute(name, value)));
        self.nodes.push(node);
        output
    }

    fn op(&mut self, kind: &str, inputs: &[&str]) -> String {
        self.node(kind, inputs, &[], None)
    }

    /// Applies a binary operator to `x` and a scalar constant.
    fn with(&mut self, kind: &str, x: &str, number: f32) -> String {
        let number = self.number(number);
        self.op(kind, &[x, &number])
    }

    /// Reshapes each row to `sizes`; the number of rows is inferred.
    fn reshape(&mut self, x: &str, sizes: &[i64], output: Option<&str>) -> String {
        let shape = self.integers(&[&[-1], sizes].concat());
        self.node("Reshape", &[x, &shape], &[], output)
    }

    fn reduce(&mut self, kind: &str, x: &str, keep: bool) -> String {
        let attributes = [("axes", Attribute::Ints(vec![1])), ("keepdims", Attribute::Int(keep.into()))];
        self.node(kind, &[x], &attributes, None)
    }

    /// Index of the largest entry in each row; the first one on ties.
    fn largest(&mut self, x: &str, keep: bool) -> String {
        let attributes = [("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(keep.into()))];
        self.node("ArgMax", &[x], &attributes, None)
    }

    /// Picks one candidate per observation; `index` is a column of candidate numbers.
    fn pick(&mut self, candidates: usize, index: &str) -> String {
        let Shape { rows, cols } = self.shapes[candidates];
        let name = self.names[candidates].clone();
        let table = self.reshape(&name, &[rows.unwrap_or(1) as i64, cols as i64], None);
        self.node("GatherND", &[&table, index], &[("batch_dims", Attribute::Int(1))], None)
    }

    /// Repeats a single row to the number of rows of step `like`.
    fn spread(&mut self, part: usize, like: usize) -> String {
        let (row, cols, rows) = (self.names[part].clone(), self.shapes[part].cols, self.shapes[like].rows);
        let height = match self.rows.get(&rows.unwrap_or(0)) {
            Some(height) => height.clone(),
            None => {
                let like = self.names[like].clone();
                let first = [("start", Attribute::Int(0)), ("end", Attribute::Int(1))];
                let height = self.node("Shape", &[&like], &first, None);
                self.rows.entry(rows.unwrap_or(0)).or_insert(height).clone()
            }
        };
        let cols = self.integers(&[cols as i64]);
        let shape = self.node("Concat", &[&height, &cols], &[("axis", Attribute::Int(0))], None);
        self.op("Expand", &[&row, &shape])
    }

    /// Adds the nodes of a step; returns the name of its result.
    fn step(&mut self, step: &Step, last: bool) -> Result<String, String> {
        let name = |nodes: &Self, i: usize| nodes.names[i].clone();
        Ok(match step {
            Step::Observation => "observation".into(),
            Step::Noise { from, rows, cols } => {
                let range = [*from, from + rows * cols].map(|x| x as i64);
                let (from, to, axis) =
                    (self.integers(&range[..1]), self.integers(&range[1..]), self.integers(&[1]));
                let part = self.op("Slice", &["noise", &from, &to, &axis]);
                if *rows == 1 { part } else { self.reshape(&part, &[*cols as i64], None) }
            }
            Step::Constant { tensor } => tensor.clone(),
            Step::Linear { x, kernel, bias: Some(bias) } => {
                let x = name(self, *x);
                self.op("Gemm", &[&x, kernel, bias])
            }
            Step::Linear { x, kernel, bias: None } => {
                let x = name(self, *x);
                self.op("MatMul", &[&x, kernel])
            }
            Step::Norm { x, epsilon, scale, shift } => {
                let attributes = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(*epsilon))];
                let x = name(self, *x);
                self.node("LayerNormalization", &[&x, scale, shift], &attributes, None)
            }
            Step::Map { x, f } => {
                let x = name(self, *x);
                self.map(*f, &x)
            }
            Step::Affine { x, by, add } => {
                let mut x = name(self, *x);
                if *by != 1.0 {
                    x = self.with("Mul", &x, *by);
                }
                if *add != 0.0 {
                    x = self.with("Add", &x, *add);
                }
                x
            }
            Step::Clip { x, low, high } => {
                let (x, low, high) = (name(self, *x), self.number(*low), self.number(*high));
                self.op("Clip", &[&x, &low, &high])
            }
            Step::Combine { f, a, b } => {
                let kind = match f {
                    Operator::Add => "Add",
                    Operator::Sub => "Sub",
                    Operator::Mul => "Mul",
                    Operator::Min => "Min",
                    Operator::Max => "Max",
                };
                let (a, b) = (name(self, *a), name(self, *b));
                self.op(kind, &[&a, &b])
            }
            Step::Concat { parts } => {
                let like = parts.iter().copied().find(|&part| self.shapes[part].rows.is_some());
                let mut inputs = Vec::new();
                for &part in parts {
                    inputs.push(match like.filter(|_| self.shapes[part].rows.is_none()) {
                        Some(like) => self.spread(part, like),
                        None => name(self, part),
                    });
                }
                let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
                self.node("Concat", &inputs, &[("axis", Attribute::Int(1))], None)
            }
            Step::Repeat { x, times } => {
                let (x, cols) = (name(self, *x), self.shapes[*x].cols as i64);
                let (apart, times) =
                    (self.reshape(&x, &[1, cols], None), self.integers(&[1, *times as i64, 1]));
                let tiled = self.op("Tile", &[&apart, &times]);
                self.reshape(&tiled, &[cols], None)
            }
            Step::Reduce { x, members, by } => {
                let kind = match by {
                    Reduction::Mean => "ReduceMean",
                    Reduction::Min => "ReduceMin",
                };
                let (x, cols) = (name(self, *x), self.shapes[*x].cols / members);
                if cols == 1 {
                    self.reduce(kind, &x, true)
                } else {
                    let blocks = self.reshape(&x, &[*members as i64, cols as i64], None);
                    self.reduce(kind, &blocks, false)
                }
            }
            Step::Best { candidates, scores } => {
                let n = self.shapes[*candidates].rows.unwrap_or(1) as i64;
                let scores = name(self, *scores);
                let table = self.reshape(&scores, &[n], None);
                let index = self.largest(&table, true);
                self.pick(*candidates, &index)
            }
            Step::Draw { candidates, scores, uniform } => {
                let n = self.shapes[*candidates].rows.unwrap_or(1);
                let (scores, uniform) = (name(self, *scores), name(self, *uniform));
                let table = self.reshape(&scores, &[n as i64], None);
                let top = self.reduce("ReduceMax", &table, true);
                let relative = self.op("Sub", &[&table, &top]);
                let weights = self.op("Exp", &[&relative]);
                let axis = self.integers(&[1]);
                let sums = self.op("CumSum", &[&weights, &axis]);
                let total = self.reduce("ReduceMax", &sums, true);
                let threshold = self.op("Mul", &[&uniform, &total]);
                // The index drawn is the number of cumulative sums that do not exceed the threshold.
                let below = self.op("LessOrEqual", &[&sums, &threshold]);
                let below = self.node("Cast", &[&below], &[("to", Attribute::Int(INT64))], None);
                let count = self.op("ReduceSum", &[&below, &axis]);
                let last = self.integers(&[n as i64 - 1]);
                let index = self.op("Min", &[&count, &last]);
                self.pick(*candidates, &index)
            }
            Step::Choose { logits, q, slack } => {
                if !last {
                    return Err("a choice that is not the action".into());
                }
                let (logits, q) = (name(self, *logits), name(self, *q));
                let top = self.reduce("ReduceMax", &logits, true);
                let least = self.with("Sub", &top, *slack);
                let out = self.op("Less", &[&logits, &least]);
                let never = self.number(f32::MIN);
                let allowed = self.op("Where", &[&out, &never, &q]);
                self.largest(&allowed, false)
            }
        })
    }

    fn map(&mut self, f: Function, x: &str) -> String {
        match f {
            Function::Relu => self.op("Relu", &[x]),
            Function::Tanh => self.op("Tanh", &[x]),
            Function::Sin => self.op("Sin", &[x]),
            Function::Cos => self.op("Cos", &[x]),
            Function::Mish => {
                let softplus = self.op("Softplus", &[x]);
                let tanh = self.op("Tanh", &[&softplus]);
                self.op("Mul", &[x, &tanh])
            }
            // ONNX has a Gelu operator only from opset 20 on. This is its tanh form, x / 2 (1 + tanh(sqrt(2 / pi) x
            // (1 + 0.044715 x x))), in the order of operations that onnxruntime fuses into one kernel.
            Function::Gelu => {
                let scaled = self.with("Mul", x, 0.044_715);
                let square = self.op("Mul", &[&scaled, x]);
                let factor = self.with("Add", &square, 1.0);
                let slope = self.with("Mul", x, (2.0 / std::f64::consts::PI).sqrt() as f32);
                let inner = self.op("Mul", &[&slope, &factor]);
                let tanh = self.op("Tanh", &[&inner]);
                let gate = self.with("Add", &tanh, 1.0);
                let half = self.with("Mul", x, 0.5);
                self.op("Mul", &[&half, &gate])
            }
        }
    }
}

//! Writes StableHLO as text, one operation per line.

use std::collections::HashMap;
use std::fmt::Write;

/// The dimensions of a tensor, at most four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    dims: [usize; 4],
    rank: usize,
}

impl Shape {
    pub(crate) fn new(dims: &[usize]) -> Self {
        let mut all = [0; 4];
        all[..dims.len()].copy_from_slice(dims);
        Shape { dims: all, rank: dims.len() }
    }

    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims[..self.rank]
    }

    fn with(mut self, dim: usize, size: usize) -> Self {
        self.dims[dim] = size;
        self
    }
}

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ElementType {
    F32,
    Bool,
    I32,
}

/// An SSA value: the result of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    id: usize,
    pub(crate) shape: Shape,
    kind: ElementType,
}

impl Value {
    pub(crate) fn dims(&self) -> &[usize] {
        self.shape.dims()
    }

    /// The type in MLIR's syntax.
    fn of_type(&self) -> String {
        let mut text = String::from("tensor<");
        for dim in self.shape.dims() {
            let _ = write!(text, "{dim}x");
        }
        text + match self.kind {
            ElementType::F32 => "f32>",
            ElementType::Bool => "i1>",
            ElementType::I32 => "i32>",
        }
    }
}

/// The operation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fold {
    Add,
    Min,
    Max,
}

/// The body of the program's only function, as it is being written.
#[derive(Default)]
pub(crate) struct Hlo {
    text: String,
    next: usize,
    constants: HashMap<(u32, Shape), Value>,
}

fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(", ")
}

impl Hlo {
    fn value(&mut self, shape: Shape, kind: ElementType) -> Value {
        self.next += 1;
        Value { id: self.next - 1, shape, kind }
    }

    /// Appends `%id = stablehlo.NAME REST`.
    fn push(&mut self, value: Value, rest: &str) -> Value {
        let _ = writeln!(self.text, "    %{} = stablehlo.{rest}", value.id);
        value
    }

    /// An argument of the function.
    pub(crate) fn argument(&mut self, shape: Shape) -> Value {
        self.value(shape, ElementType::F32)
    }

    /// An argument of `i32` indices.
    pub(crate) fn places(&mut self, shape: Shape) -> Value {
        self.value(shape, ElementType::I32)
    }

    pub(crate) fn constant(&mut self, x: f32, shape: Shape) -> Value {
        if let Some(&known) = self.constants.get(&(x.to_bits(), shape)) {
            return known;
        }
        let value = self.value(shape, ElementType::F32);
        self.constants.insert((x.to_bits(), shape), value);
        let literal = format!("constant dense<0x{:08X}> : {}", x.to_bits(), value.of_type());
        self.push(value, &literal)
    }

    /// A constant vector.
    pub(crate) fn vector(&mut self, numbers: &[f32]) -> Value {
        let value = self.value(Shape::new(&[numbers.len()]), ElementType::F32);
        let literals: Vec<String> = numbers.iter().map(|x| format!("0x{:08X}", x.to_bits())).collect();
        let literal = format!("constant dense<[{}]> : {}", literals.join(", "), value.of_type());
        self.push(value, &literal)
    }

    /// An elementwise unary operation, by its StableHLO name.
    pub(crate) fn map(&mut self, name: &str, x: Value) -> Value {
        let value = self.value(x.shape, x.kind);
        self.push(value, &format!("{name} %{} : {}", x.id, value.of_type()))
    }

    /// The error function, which is part of the CHLO dialect.
    pub(crate) fn erf(&mut self, x: Value) -> Value {
        let value = self.value(x.shape, x.kind);
        let (id, of) = (value.id, value.of_type());
        let _ = writeln!(self.text, "    %{id} = chlo.erf %{} : {of} -> {of}", x.id);
        value
    }

    /// An elementwise binary operation, by its StableHLO name. Dimensions of size 1 are broadcast.
    pub(crate) fn zip(&mut self, name: &str, a: Value, b: Value) -> Value {
        let [a, b] = self.together(a, b);
        let value = self.value(a.shape, a.kind);
        self.push(value, &format!("{name} %{}, %{} : {}", a.id, b.id, value.of_type()))
    }

    pub(crate) fn add(&mut self, a: Value, b: Value) -> Value {
        self.zip("add", a, b)
    }

    pub(crate) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.zip("subtract", a, b)
    }

    pub(crate) fn mul(&mut self, a: Value, b: Value) -> Value {
        self.zip("multiply", a, b)
    }

    pub(crate) fn div(&mut self, a: Value, b: Value) -> Value {
        self.zip("divide", a, b)
    }

    /// Multiplies by a scalar.
    pub(crate) fn scale(&mut self, x: Value, by: f32) -> Value {
        let by = self.constant(by, x.shape);
        self.mul(by, x)
    }

    /// Adds a scalar.
    pub(crate) fn shift(&mut self, x: Value, by: f32) -> Value {
        let by = self.constant(by, x.shape);
        self.add(x, by)
    }

    /// Elementwise comparison in the given `direction` (`GT`, `GE`, `EQ`, ...).
    pub(crate) fn compare(&mut self, direction: &str, a: Value, b: Value) -> Value {
        let [a, b] = self.together(a, b);
        let value = self.value(a.shape, ElementType::Bool);
        let (of, to) = (a.of_type(), value.of_type());
        self.push(value, &format!("compare {direction}, %{}, %{}, FLOAT : ({of}, {of}) -> {to}", a.id, b.id))
    }

    /// Compares each entry with a scalar.
    pub(crate) fn compare_with(&mut self, direction: &str, x: Value, number: f32) -> Value {
        let number = self.constant(number, x.shape);
        self.compare(direction, x, number)
    }

    pub(crate) fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        let value = self.value(a.shape, a.kind);
        let (of, to) = (condition.of_type(), value.of_type());
        self.push(value, &format!("select %{}, %{}, %{} : {of}, {to}", condition.id, a.id, b.id))
    }

    /// `a` where the condition holds, `b` elsewhere.
    pub(crate) fn choose(&mut self, condition: Value, a: f32, b: f32) -> Value {
        let [a, b] = [a, b].map(|x| self.constant(x, condition.shape));
        self.select(condition, a, b)
    }

    /// Broadcasts two values of equal rank to a common shape.
    fn together(&mut self, a: Value, b: Value) -> [Value; 2] {
        let mut shape = a.shape;
        for dim in 0..shape.rank {
            if shape.dims[dim] == 1 {
                shape = shape.with(dim, b.shape.dims[dim]);
            }
        }
        [self.fill(a, shape), self.fill(b, shape)]
    }

    /// Broadcasts dimensions of size 1 to `shape`.
    pub(crate) fn fill(&mut self, x: Value, shape: Shape) -> Value {
        if x.shape == shape {
            return x;
        }
        assert_eq!(x.shape.rank, shape.rank, "{:?} as {:?}", x.shape, shape);
        let dims: Vec<usize> = (0..shape.rank).collect();
        self.broadcast(x, &dims, shape)
    }

    /// `broadcast_in_dim`: dimension `i` of `x` becomes dimension `dims[i]` of `shape`.
    pub(crate) fn broadcast(&mut self, x: Value, dims: &[usize], shape: Shape) -> Value {
        let value = self.value(shape, x.kind);
        let (of, to) = (x.of_type(), value.of_type());
        self.push(value, &format!("broadcast_in_dim %{}, dims = [{}] : ({of}) -> {to}", x.id, list(dims)))
    }

    pub(crate) fn reshape(&mut self, x: Value, shape: Shape) -> Value {
        if x.shape == shape {
            return x;
        }
        let value = self.value(shape, x.kind);
        let (of, to) = (x.of_type(), value.of_type());
        self.push(value, &format!("reshape %{} : ({of}) -> {to}", x.id))
    }

    /// Reduces over `dims`, which are kept with size 1.
    pub(crate) fn fold(&mut self, fold: Fold, x: Value, dims: &[usize]) -> Value {
        let (name, zero) = match fold {
            Fold::Add => ("add", 0.0),
            Fold::Min => ("minimum", f32::INFINITY),
            Fold::Max => ("maximum", f32::NEG_INFINITY),
        };
        let zero = self.constant(zero, Shape::new(&[]));
        let left: Vec<usize> = (0..x.shape.rank).filter(|dim| !dims.contains(dim)).collect();
        let left: Vec<usize> = left.iter().map(|&dim| x.shape.dims[dim]).collect();
        let value = self.value(Shape::new(&left), x.kind);
        let (of, to) = (x.of_type(), value.of_type());
        let from = format!("reduce(%{} init: %{}) applies stablehlo.{name}", x.id, zero.id);
        self.push(
            value,
            &format!("{from} across dimensions = [{}] : ({of}, tensor<f32>) -> {to}", list(dims)),
        );
        let kept = dims.iter().fold(x.shape, |shape, &dim| shape.with(dim, 1));
        self.reshape(value, kept)
    }

    pub(crate) fn concat(&mut self, parts: &[Value], dim: usize) -> Value {
        if let [part] = parts {
            return *part;
        }
        let size = parts.iter().map(|part| part.shape.dims[dim]).sum();
        let value = self.value(parts[0].shape.with(dim, size), parts[0].kind);
        let ids: Vec<String> = parts.iter().map(|part| format!("%{}", part.id)).collect();
        let types: Vec<String> = parts.iter().map(Value::of_type).collect();
        let (ids, types, to) = (ids.join(", "), types.join(", "), value.of_type());
        self.push(value, &format!("concatenate {ids}, dim = {dim} : ({types}) -> {to}"))
    }

    /// The slice of this shape that begins at `from`.
    pub(crate) fn slice(&mut self, x: Value, from: &[usize], shape: Shape) -> Value {
        if x.shape == shape {
            return x;
        }
        let value = self.value(shape, x.kind);
        let ranges = from.iter().zip(shape.dims()).map(|(from, size)| format!("{from}:{}", from + size));
        let ranges: Vec<String> = ranges.collect();
        let (of, to) = (x.of_type(), value.of_type());
        self.push(value, &format!("slice %{} [{}] : ({of}) -> {to}", x.id, ranges.join(", ")))
    }

    /// Gathers rows of a matrix: the result has the dimensions of the indices `at`, then one of columns.
    pub(crate) fn rows(&mut self, table: Value, at: Value) -> Value {
        let (places, width) = (at.shape.rank, table.dims()[1]);
        let value = self.value(Shape::new(&[at.dims(), &[width]].concat()), table.kind);
        let numbers = format!(
            "#stablehlo.gather<offset_dims = [{places}], collapsed_slice_dims = [0], start_index_map = [0], \
             index_vector_dim = {places}>"
        );
        let (of, by, to) = (table.of_type(), at.of_type(), value.of_type());
        let (id, x, at) = (value.id, table.id, at.id);
        let sizes = format!("slice_sizes = array<i64: 1, {width}>, indices_are_sorted = false");
        let _ = writeln!(
            self.text,
            "    %{id} = \"stablehlo.gather\"(%{x}, %{at}) <{{dimension_numbers = {numbers}, {sizes}}}> : ({of}, {by}) -> {to}"
        );
        value
    }

    /// Pads `x` with zeros to `shape`, placing it at `from`.
    pub(crate) fn pad(&mut self, x: Value, from: &[usize], shape: Shape) -> Value {
        if x.shape == shape {
            return x;
        }
        let zero = self.constant(0.0, Shape::new(&[]));
        let value = self.value(shape, x.kind);
        let sizes = shape.dims().iter().zip(x.dims());
        let high: Vec<usize> = sizes.zip(from).map(|((all, part), from)| all - part - from).collect();
        let none = vec![0; from.len()];
        let around =
            format!("low = [{}], high = [{}], interior = [{}]", list(from), list(&high), list(&none));
        let (of, to) = (x.of_type(), value.of_type());
        self.push(value, &format!("pad %{}, %{}, {around} : ({of}, tensor<f32>) -> {to}", x.id, zero.id))
    }

    /// The index along a dimension: 0, 1, 2, ...
    pub(crate) fn iota(&mut self, shape: Shape, dim: usize) -> Value {
        let value = self.value(shape, ElementType::F32);
        self.push(value, &format!("iota dim = {dim} : {}", value.of_type()))
    }

    /// `dot_general`: contracts dimension `along.0` of `a` with `along.1` of `b`, both counted after `lead`
    /// batch dimensions that the two share. The remaining dimensions of `a` come before those of `b`.
    pub(crate) fn dot(&mut self, a: Value, b: Value, lead: usize, along: (usize, usize)) -> Value {
        let mut dims = a.dims()[..lead].to_vec();
        let common: Vec<usize> = (0..lead).collect();
        for (x, along) in [(a, along.0), (b, along.1)] {
            dims.extend((lead..x.shape.rank).filter(|&dim| dim != lead + along).map(|dim| x.dims()[dim]));
        }
        let value = self.value(Shape::new(&dims), ElementType::F32);
        let batching = match lead {
            0 => String::new(),
            _ => format!("batching_dims = [{}] x [{}], ", list(&common), list(&common)),
        };
        let contracting = format!("contracting_dims = [{}] x [{}]", lead + along.0, lead + along.1);
        let (of, by, to) = (a.of_type(), b.of_type(), value.of_type());
        let operands = format!("%{}, %{}", a.id, b.id);
        self.push(value, &format!("dot_general {operands}, {batching}{contracting} : ({of}, {by}) -> {to}"))
    }

    /// The finished module. An argument may be donated to a result: its buffer is then reused for the result
    /// of that index.
    pub(crate) fn finish(self, arguments: &[(Value, Option<usize>)], results: &[Value]) -> String {
        let arguments: Vec<String> = (arguments.iter())
            .map(|(value, alias)| {
                let alias = alias.map_or(String::new(), |i| format!(" {{tf.aliasing_output = {i} : i32}}"));
                format!("%{}: {}{alias}", value.id, value.of_type())
            })
            .collect();
        let types: Vec<String> = results.iter().map(Value::of_type).collect();
        let ids: Vec<String> = results.iter().map(|value| format!("%{}", value.id)).collect();
        let (arguments, types, ids) = (arguments.join(", "), types.join(", "), ids.join(", "));
        format!(
            "module @album {{\n  func.func public @main({arguments}) -> ({types}) {{\n{}    return {ids} : {types}\n  }}\n}}\n",
            self.text
        )
    }
}

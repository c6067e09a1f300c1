//! A policy as a list of steps from an observation to an action. There are no loops or branches: the steps of
//! a flow or diffusion are unrolled, so that the cost of a decision is known when the file is loaded.
//!
//! Every step computes a matrix from those of earlier steps, which it refers to by index. It has `rows` rows
//! per observation (one, or one per candidate action), or a single row shared by all.

use crate::file::Tensors;
use serde::{Deserialize, Serialize};

/// Maximum entries of a matrix per observation, steps of a policy, and rows per observation: far above what
/// agents need, and small enough to be allocated.
pub(crate) const MOST_ENTRIES: usize = 1 << 24;
pub(crate) const MOST_STEPS: usize = 1 << 16;

/// The steps of a policy; the last one is the action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Graph {
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One step. `x`, `a`, `b`, `parts`, `candidates`, `scores`, `uniform`, `logits` and `q` are indices of
/// earlier steps; tensors are referred to by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the lines above each variant say what its fields are")]
pub enum Step {
    /// The observation.
    Observation,
    /// Numbers `from..from + rows * cols` of the noise, row by row.
    Noise { from: usize, rows: usize, cols: usize },
    /// One row for all observations: a one-dimensional tensor.
    Constant { tensor: String },
    /// `x W + b` with a kernel of shape `[inputs, outputs]` and a bias of `[outputs]`.
    Linear {
        x: usize,
        kernel: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<String>,
    },
    /// `(x - mean) / sqrt(variance + epsilon) * scale + shift` over the columns of each row.
    Norm { x: usize, epsilon: f32, scale: String, shift: String },
    /// An elementwise function.
    Map { x: usize, f: Function },
    /// `by * x + add`.
    Affine { x: usize, by: f32, add: f32 },
    /// Clips every entry to a range.
    Clip { x: usize, low: f32, high: f32 },
    /// An elementwise function of two matrices; a single row or column is broadcast.
    Combine { f: Operator, a: usize, b: usize },
    /// Concatenates matrices side by side.
    Concat { parts: Vec<usize> },
    /// Repeats each row.
    Repeat { x: usize, times: usize },
    /// Reduces `members` blocks of columns, side by side, to one.
    Reduce { x: usize, members: usize, by: Reduction },
    /// The candidate row of each observation with the highest score, the first in a tie; scores are a column.
    Best { candidates: usize, scores: usize },
    /// A candidate row of each observation, drawn by a number uniform on [0, 1) with probabilities
    /// proportional to `exp(score)`.
    Draw { candidates: usize, scores: usize, uniform: usize },
    /// The index of the largest `q` among the columns whose logit is at most `slack` below the largest logit.
    Choose { logits: usize, q: usize, slack: f32 },
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// `max(x, 0)`.
    Relu,
    /// `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
    Gelu,
    /// `x tanh(ln(1 + e^x))`.
    Mish,
    /// The hyperbolic tangent.
    Tanh,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
}

/// A reduction of several numbers to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// The mean.
    Mean,
    /// The minimum.
    Min,
}

/// The shape of a step's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows per observation; `None` for a single row in all.
    pub rows: Option<usize>,
    /// Number of columns.
    pub cols: usize,
}

impl Shape {
    /// Number of entries per observation.
    pub(crate) fn entries(self) -> usize {
        self.rows.unwrap_or(1) * self.cols
    }
}

impl Step {
    /// The steps that it depends on.
    pub fn operands(&self) -> Vec<usize> {
        match self {
            Step::Observation | Step::Noise { .. } | Step::Constant { .. } => Vec::new(),
            Step::Linear { x, .. }
            | Step::Norm { x, .. }
            | Step::Map { x, .. }
            | Step::Affine { x, .. }
            | Step::Clip { x, .. }
            | Step::Repeat { x, .. }
            | Step::Reduce { x, .. } => vec![*x],
            Step::Combine { a, b, .. } => vec![*a, *b],
            Step::Concat { parts } => parts.clone(),
            Step::Best { candidates, scores } => vec![*candidates, *scores],
            Step::Draw { candidates, scores, uniform } => vec![*candidates, *scores, *uniform],
            Step::Choose { logits, q, .. } => vec![*logits, *q],
        }
    }
}

impl Graph {
    /// The shapes of all steps; an error names the mismatch. Nothing is computed or allocated from sizes in
    /// the file.
    pub fn shapes(&self, observation: usize, noise: usize, tensors: &Tensors) -> Result<Vec<Shape>, String> {
        if !(1..=MOST_STEPS).contains(&self.steps.len()) {
            return Err(format!("{} steps; expected 1 to {MOST_STEPS}", self.steps.len()));
        }
        let mut shapes: Vec<Shape> = Vec::with_capacity(self.steps.len());
        for (i, step) in self.steps.iter().enumerate() {
            if let Some(late) = step.operands().into_iter().find(|&operand| operand >= i) {
                return Err(format!("step {i} needs step {late}, which is not before it"));
            }
            let shape = step.shape(&shapes, observation, noise, tensors);
            let shape = shape.map_err(|what| format!("step {i}: {what}"))?;
            let entries = shape.rows.unwrap_or(1).checked_mul(shape.cols);
            if !entries.is_some_and(|entries| (1..=MOST_ENTRIES).contains(&entries)) {
                return Err(format!("step {i}: {shape:?}; expected 1 to {MOST_ENTRIES} entries"));
            }
            shapes.push(shape);
        }
        Ok(shapes)
    }
}

/// Fails with a reason unless the condition holds.
fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

impl Step {
    /// The shape of its result, from those of the earlier steps.
    fn shape(
        &self,
        before: &[Shape],
        observation: usize,
        noise: usize,
        tensors: &Tensors,
    ) -> Result<Shape, String> {
        let vector = |name: &str, len: usize| match tensors.shape(name)? {
            [found] if *found == len => Ok(()),
            found => Err(format!("tensor `{name}` has shape {found:?}; expected [{len}]")),
        };
        let finite = |x: f32| ensure(x.is_finite(), || format!("the number {x}"));
        Ok(match self {
            Step::Observation => Shape { rows: Some(1), cols: observation },
            Step::Noise { from, rows, cols } => {
                let end = rows.checked_mul(*cols).and_then(|len| len.checked_add(*from));
                ensure(end.is_some_and(|end| end <= noise), || {
                    format!("noise {from} + {rows} x {cols} of {noise}")
                })?;
                Shape { rows: Some(*rows), cols: *cols }
            }
            Step::Constant { tensor } => match tensors.shape(tensor)? {
                [cols] => Shape { rows: None, cols: *cols },
                found => {
                    return Err(format!("tensor `{tensor}` has shape {found:?}; expected one dimension"));
                }
            },
            Step::Linear { x, kernel, bias } => match (tensors.shape(kernel)?, before[*x]) {
                ([inputs, outputs], x) if *inputs == x.cols => {
                    bias.iter().try_for_each(|bias| vector(bias, *outputs))?;
                    Shape { cols: *outputs, ..x }
                }
                (found, x) => {
                    return Err(format!("tensor `{kernel}` has shape {found:?}; expected {} inputs", x.cols));
                }
            },
            Step::Norm { x, epsilon, scale, shift } => {
                ensure(*epsilon >= 0.0 && epsilon.is_finite(), || format!("epsilon {epsilon}"))?;
                vector(scale, before[*x].cols)?;
                vector(shift, before[*x].cols)?;
                before[*x]
            }
            Step::Map { x, .. } => before[*x],
            Step::Affine { x, by, add } => {
                finite(*by)?;
                finite(*add)?;
                before[*x]
            }
            Step::Clip { x, low, high } => {
                ensure(low <= high, || format!("clipped to {low}..{high}"))?;
                before[*x]
            }
            Step::Combine { a, b, .. } => {
                let (a, b) = (before[*a], before[*b]);
                let rows = a.rows.or(b.rows);
                let fit = (a.rows.is_none() || a.rows == rows) && (b.rows.is_none() || b.rows == rows);
                let cols = a.cols.max(b.cols);
                ensure(fit && [a, b].iter().all(|x| x.cols == cols || x.cols == 1), || {
                    format!("{a:?} with {b:?}")
                })?;
                Shape { rows, cols }
            }
            Step::Concat { parts } => {
                let rows = parts.iter().find_map(|&part| before[part].rows);
                let mut cols = 0usize;
                for &part in parts {
                    let part = before[part];
                    ensure(part.rows.is_none() || part.rows == rows, || format!("{part:?} beside {rows:?}"))?;
                    cols = cols.saturating_add(part.cols);
                }
                Shape { rows, cols }
            }
            Step::Repeat { x, times } => match before[*x].rows.map(|rows| rows.checked_mul(*times)) {
                Some(Some(rows)) => Shape { rows: Some(rows), ..before[*x] },
                _ => return Err(format!("{:?} {times} times", before[*x])),
            },
            Step::Reduce { x, members, .. } => {
                let x = before[*x];
                ensure(*members > 0 && x.cols.is_multiple_of(*members), || {
                    format!("{members} members in {} columns", x.cols)
                })?;
                Shape { cols: x.cols / members, ..x }
            }
            Step::Best { candidates, scores } => chosen(before[*candidates], before[*scores])?,
            Step::Draw { candidates, scores, uniform } => {
                let one = Shape { rows: Some(1), cols: 1 };
                ensure(before[*uniform] == one, || format!("{:?} for a uniform number", before[*uniform]))?;
                chosen(before[*candidates], before[*scores])?
            }
            Step::Choose { logits, q, slack } => {
                let (logits, q) = (before[*logits], before[*q]);
                ensure(logits == q && logits.rows == Some(1) && *slack >= 0.0, || {
                    format!("{logits:?} and {q:?}, slack {slack}")
                })?;
                Shape { rows: Some(1), cols: 1 }
            }
        })
    }
}

/// The shape of one candidate.
fn chosen(candidates: Shape, scores: Shape) -> Result<Shape, String> {
    let column = Shape { cols: 1, ..candidates };
    ensure(scores == column && candidates.rows.is_some(), || format!("{scores:?} for {candidates:?}"))?;
    Ok(Shape { rows: Some(1), cols: candidates.cols })
}

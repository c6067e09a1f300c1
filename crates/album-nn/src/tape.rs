//! The tape: records computations, then differentiates them.

mod backward;

pub use backward::Gradients;
pub(crate) use backward::accumulator;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use crate::application::{Application, Scratch};
use crate::buffer::Buffer;
use crate::gemm::PANEL;
use crate::matrix::Matrix;
use crate::mlp::Mlp;
use crate::ops::Op;
use crate::pool::Pool;
use crate::recording::{Notes, Origin};
use crate::var::Var;

/// Records computations on batch-sized matrices and differentiates them.
///
/// A tape lives as long as the training run. Each step calls [`Tape::begin`], builds a loss from [`Var`]s and
/// calls [`Var::backward`]. Buffers are reused: after the first few steps of the same shape nothing is
/// allocated.
pub struct Tape {
    pool: Pool,
    pub(crate) inner: RefCell<Inner>,
}

/// A value on the tape. Slots are reused in order, each keeping its buffers.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) op: Op,
    /// Whether it depends on anything trainable (or a [`Tape::variable`]).
    pub(crate) needs_grad: bool,
    /// Whether the value was computed: on a deferring tape, network outputs are not.
    pub(crate) known: bool,
    pub(crate) value: Buffer,
    /// Valid only if `has_grad`.
    pub(crate) grad: Buffer,
    pub(crate) has_grad: bool,
}

/// The gradient of a network's parameters, in the layout of its weights.
struct NetGradient {
    net: u64,
    buffer: Buffer,
    /// Whether it belongs to the current step.
    live: bool,
    /// Number of steps since it was last needed.
    idle: u32,
}

/// Gradient buffers are dropped after this many steps without use.
const MOST_IDLE: u32 = 1000;

/// Time breakdown of a step; see [`Tape::timings`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// Forward passes of networks.
    pub forward: Duration,
    /// Back-propagation through rows: input gradients of all layers.
    pub backward_rows: Duration,
    /// Weight gradients.
    pub backward_weights: Duration,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) nodes: Vec<Node>,
    pub(crate) live: usize,
    applications: Vec<Application>,
    live_applications: usize,
    /// Shared by applications without a backward pass, one after the other: ten steps of a flow then work in
    /// the same cached memory.
    passing: Application,
    /// Operands of concatenations, which may have any number.
    pub(crate) parts: Vec<u32>,
    gradients: Vec<NetGradient>,
    scratch: Scratch,
    timings: Timings,
    operations: f64,
    keep_zero_rows: bool,
    differentiated: bool,
    /// Origins that nodes do not record themselves, if this tape records.
    pub(crate) notes: Option<Notes>,
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.inner.borrow();
        f.debug_struct("Tape").field("pool", &self.pool).field("values", &inner.live).finish_non_exhaustive()
    }
}

impl Tape {
    /// An empty tape whose networks run on `pool`.
    pub fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone(), inner: RefCell::default() }
    }

    /// The tape's thread pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Discards everything recorded and starts a new step, keeping the buffers.
    pub fn begin(&mut self) -> &Self {
        let inner = self.inner.get_mut();
        inner.live = 0;
        inner.parts.clear();
        if let Some(notes) = &mut inner.notes {
            notes.clear();
        }
        inner.applications[..inner.live_applications].iter_mut().for_each(Application::release);
        inner.live_applications = 0;
        // Buffers of dropped networks must not accumulate; those idle for a few steps are kept.
        inner.gradients.retain_mut(|g| {
            g.idle = if std::mem::replace(&mut g.live, false) { 0 } else { g.idle + 1 };
            g.idle < MOST_IDLE
        });
        inner.timings = Timings::default();
        inner.operations = 0.0;
        inner.differentiated = false;
        self
    }

    /// A constant matrix: data.
    pub fn constant(&self, matrix: &Matrix) -> Var<'_> {
        self.leaf(matrix.rows(), matrix.cols(), matrix.data(), false)
    }

    /// A constant from a slice, row by row.
    ///
    /// # Panics
    /// If `data` does not hold `rows * cols` values.
    #[track_caller]
    pub fn constant_slice(&self, rows: usize, cols: usize, data: &[f32]) -> Var<'_> {
        self.leaf(rows, cols, data, false)
    }

    /// A constant written in place by `fill`; the buffer holds stale values of an earlier step.
    pub fn constant_with(&self, rows: usize, cols: usize, fill: impl FnOnce(&mut [f32])) -> Var<'_> {
        let mut inner = self.inner.borrow_mut();
        let (_, node) = inner.push(rows, cols, Op::Leaf, false);
        fill(&mut node.value);
        inner.note(|| Origin::Given);
        Var::new(self, inner.live - 1)
    }

    /// Like [`Self::constant_with`], for rows of a table that another engine holds; `at` names the rows if they are recorded.
    pub fn constant_of_table(
        &self,
        table: usize,
        at: impl FnOnce() -> Vec<u32>,
        rows: usize,
        cols: usize,
        fill: impl FnOnce(&mut [f32]),
    ) -> Var<'_> {
        let var = self.constant_with(rows, cols, fill);
        self.inner.borrow_mut().note(|| Origin::Rows { table, at: at() });
        var
    }

    /// A constant matrix that `fill` computes from other values, off the tape. Its buffer holds stale values
    /// of an earlier step.
    pub fn constant_of<'t, const N: usize>(
        &'t self,
        from: [Var<'t>; N],
        rows: usize,
        cols: usize,
        fill: impl FnOnce([&[f32]; N], &mut [f32]),
    ) -> Var<'t> {
        let from = from.map(|var| self.own(var));
        let mut inner = self.inner.borrow_mut();
        if let Some((nodes, node)) = inner.derive(rows, cols, Op::Leaf, false, &from) {
            fill(from.map(|i| &nodes[i].value[..]), &mut node.value);
        }
        inner.note(|| Origin::Hidden(from.to_vec()));
        Var::new(self, inner.live - 1)
    }

    /// A constant matrix of zeros.
    pub fn zeros(&self, rows: usize, cols: usize) -> Var<'_> {
        self.filled(rows, cols, 0.0)
    }

    /// A constant matrix whose entries are all `x`.
    pub fn filled(&self, rows: usize, cols: usize, x: f32) -> Var<'_> {
        let mut inner = self.inner.borrow_mut();
        let (_, node) = inner.push(rows, cols, Op::Leaf, false);
        node.value.fill(x);
        inner.note(|| Origin::Filled(x));
        Var::new(self, inner.live - 1)
    }

    /// A matrix whose gradient [`Gradients::wrt`] reports.
    pub fn variable(&self, matrix: &Matrix) -> Var<'_> {
        self.leaf(matrix.rows(), matrix.cols(), matrix.data(), true)
    }

    #[track_caller]
    fn leaf(&self, rows: usize, cols: usize, data: &[f32], needs_grad: bool) -> Var<'_> {
        assert_eq!(data.len(), rows * cols, "{} values cannot fill {rows} x {cols}", data.len());
        let mut inner = self.inner.borrow_mut();
        let (_, node) = inner.push(rows, cols, Op::Leaf, needs_grad);
        node.value.copy_from_slice(data);
        inner.note(|| Origin::Given);
        Var::new(self, inner.live - 1)
    }

    /// Applies a network to every row of `x`. The outputs of ensemble members are side by side.
    ///
    /// # Panics
    /// If the columns of `x` do not match the network's inputs.
    #[track_caller]
    pub fn apply<'t>(&'t self, net: &Mlp, x: Var<'t>) -> Var<'t> {
        self.apply_network(net, x, true)
    }

    /// Applies a network without collecting weight gradients. Gradients still reach `x`, as an actor loss
    /// through a critic needs; if `x` needs none, nothing is kept for the backward pass.
    ///
    /// # Panics
    /// As [`Tape::apply`].
    #[track_caller]
    pub fn apply_frozen<'t>(&'t self, net: &Mlp, x: Var<'t>) -> Var<'t> {
        self.apply_network(net, x, false)
    }

    #[track_caller]
    fn apply_network<'t>(&'t self, net: &Mlp, x: Var<'t>, collect: bool) -> Var<'t> {
        let x = self.own(x);
        let started = Instant::now();
        let inner = &mut *self.inner.borrow_mut();
        let (rows, cols, x_grad) = {
            let node = &inner.nodes[x];
            (node.rows, node.cols, node.needs_grad)
        };
        let inputs = net.spec().inputs;
        assert_eq!(cols, inputs, "a network with {inputs} inputs cannot take {cols} columns");
        let needs_grad = collect || x_grad;
        let columns = net.output_columns();
        if inner.defers() {
            inner.push_unknown(rows, columns, Op::Leaf, needs_grad);
        } else if needs_grad {
            let application = inner.live_applications;
            inner.live_applications += 1;
            if inner.applications.len() < inner.live_applications {
                inner.applications.push(Application::default());
            }
            let mut app = std::mem::take(&mut inner.applications[application]);
            let (nodes, node) = inner.push(rows, columns, Op::Apply { x, application, collect }, true);
            app.forward(&self.pool, net, &nodes[x].value, rows, true, &mut node.value);
            inner.applications[application] = app;
        } else {
            let mut app = std::mem::take(&mut inner.passing);
            let (nodes, node) = inner.push(rows, columns, Op::Leaf, false);
            app.forward(&self.pool, net, &nodes[x].value, rows, false, &mut node.value);
            app.release();
            inner.passing = app;
        }
        if collect && !inner.defers() {
            inner.keep_gradient(net);
        }
        inner.note_net(net, |net| Origin::Apply { x, net, collect });
        inner.timings.forward += started.elapsed();
        inner.operations += 2.0 * rows as f64 * net.layout().products() as f64;
        Var::new(self, inner.live - 1)
    }

    /// A trained matrix as a leaf, with a gradient for [`Adam`](crate::Adam).
    ///
    /// # Panics
    /// If the network is not of the shape [`MlpSpec::parameter`](crate::MlpSpec::parameter).
    #[track_caller]
    pub fn parameter<'t>(&'t self, parameter: &Mlp) -> Var<'t> {
        self.parameter_leaf(parameter, true)
    }

    /// The same as a constant.
    ///
    /// # Panics
    /// As [`Tape::parameter`].
    #[track_caller]
    pub fn parameter_frozen<'t>(&'t self, parameter: &Mlp) -> Var<'t> {
        self.parameter_leaf(parameter, false)
    }

    #[track_caller]
    fn parameter_leaf<'t>(&'t self, parameter: &Mlp, collect: bool) -> Var<'t> {
        let spec = parameter.spec();
        let is_matrix = spec.hidden.is_empty() && !spec.bias && spec.members == 1;
        assert!(is_matrix, "a network with layers is applied, not read");
        let inner = &mut *self.inner.borrow_mut();
        let op = if collect { Op::Parameter { net: parameter.id() } } else { Op::Leaf };
        if inner.is_elsewhere(parameter) {
            inner.push_unknown(spec.inputs, spec.outputs, op, collect);
        } else {
            let (_, node) = inner.push(spec.inputs, spec.outputs, op, collect);
            for_each_row(spec.inputs, spec.outputs, |place, at, len| {
                node.value[at..][..len].copy_from_slice(&parameter.weights().params[place..][..len]);
            });
        }
        if collect && !inner.defers() {
            inner.keep_gradient(parameter);
        }
        inner.note_net(parameter, |net| Origin::Parameter { net, collect });
        Var::new(self, inner.live - 1)
    }

    /// Concatenates matrices of equal height side by side.
    ///
    /// # Panics
    /// If there are none, or their heights differ.
    #[track_caller]
    pub fn concat_cols<'t>(&'t self, parts: &[Var<'t>]) -> Var<'t> {
        self.concat(parts, true)
    }

    /// Stacks matrices of equal width.
    ///
    /// # Panics
    /// If there are none, or their widths differ.
    #[track_caller]
    pub fn concat_rows<'t>(&'t self, parts: &[Var<'t>]) -> Var<'t> {
        self.concat(parts, false)
    }

    #[track_caller]
    fn concat<'t>(&'t self, parts: &[Var<'t>], by_cols: bool) -> Var<'t> {
        let inner = &mut *self.inner.borrow_mut();
        let first = inner.parts.len();
        inner.parts.extend(parts.iter().map(|&part| self.own(part) as u32));
        inner.concat(first, by_cols);
        Var::new(self, inner.live - 1)
    }

    /// The index of a variable, which must belong to this tape.
    #[track_caller]
    pub(crate) fn own(&self, var: Var<'_>) -> usize {
        assert!(std::ptr::eq(self, var.tape()), "a variable of another tape");
        var.index()
    }

    /// Whether backward passes skip rows with zero gradient (on by default). Results agree up to rounding;
    /// only the time differs.
    pub fn set_row_compaction(&mut self, on: bool) {
        self.inner.get_mut().keep_zero_rows = !on;
    }

    /// The time breakdown of the current step so far.
    pub fn timings(&self) -> Timings {
        self.inner.borrow().timings
    }

    /// Floating-point operations of the networks' products in the current step so far, counted from their
    /// shapes: a multiply-add counts as two, and rows that a backward pass skips count like the others.
    pub fn operations(&self) -> f64 {
        self.inner.borrow().operations
    }
}

/// Calls `f(offset in the storage, offset in the matrix, length)` for each contiguous run of a `rows x cols`
/// matrix stored in panels, like the kernel of a layer.
fn for_each_row(rows: usize, cols: usize, mut f: impl FnMut(usize, usize, usize)) {
    for row in 0..rows {
        for col in (0..cols).step_by(PANEL) {
            f(col * rows + row * PANEL, row * cols + col, (cols - col).min(PANEL));
        }
    }
}

impl Inner {
    /// Allocates the gradient of a network.
    fn keep_gradient(&mut self, net: &Mlp) {
        if !self.gradients.iter().any(|g| g.net == net.id()) {
            let buffer = Buffer::zeros(net.layout().len());
            self.gradients.push(NetGradient { net: net.id(), buffer, live: false, idle: 0 });
        }
    }

    /// Takes the next slot; returns the nodes before it and the slot, with its value sized but not filled.
    pub(crate) fn push(
        &mut self,
        rows: usize,
        cols: usize,
        op: Op,
        needs_grad: bool,
    ) -> (&[Node], &mut Node) {
        if self.nodes.len() == self.live {
            self.nodes.push(Node::default());
        }
        let (before, rest) = self.nodes.split_at_mut(self.live);
        self.live += 1;
        let node = &mut rest[0];
        node.rows = rows;
        node.cols = cols;
        node.op = op;
        node.needs_grad = needs_grad;
        node.has_grad = false;
        node.known = true;
        node.value.resize(rows * cols);
        (before, node)
    }

    /// [`Inner::push`] for a value computed from others; `None` if one of these is not known.
    pub(crate) fn derive(
        &mut self,
        rows: usize,
        cols: usize,
        op: Op,
        needs_grad: bool,
        from: &[usize],
    ) -> Option<(&[Node], &mut Node)> {
        if from.iter().all(|&i| self.nodes[i].known) {
            return Some(self.push(rows, cols, op, needs_grad));
        }
        self.push_unknown(rows, cols, op, needs_grad);
        None
    }

    /// Takes the next slot for a value that is not computed here.
    pub(crate) fn push_unknown(&mut self, rows: usize, cols: usize, op: Op, needs_grad: bool) {
        let (_, node) = self.push(0, 0, op, needs_grad);
        (node.rows, node.cols, node.known) = (rows, cols, false);
    }
}

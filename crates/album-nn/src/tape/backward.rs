//! The backward pass over a tape, and the gradients that it leaves.

use super::{Inner, Node, Tape, for_each_row};
use crate::application::Application;
use crate::buffer::Buffer;
use crate::matrix::Matrix;
use crate::mlp::{Mlp, Tensor, tensors};
use crate::ops::Op;
use crate::pool::Pool;
use crate::recording::Origin;
use crate::var::Var;

impl Tape {
    #[track_caller]
    pub(crate) fn backward(&self, loss: usize) -> Gradients<'_> {
        let inner = &mut *self.inner.borrow_mut();
        assert!(!inner.defers(), "a tape that defers has no values to differentiate");
        {
            let node = &inner.nodes[loss];
            let (rows, cols) = (node.rows, node.cols);
            assert!((rows, cols) == (1, 1), "a loss is a single number, not {rows} x {cols}");
        }
        assert!(!inner.differentiated, "a tape differentiates one loss per step: add the losses up");
        inner.differentiated = true;
        if inner.nodes[loss].needs_grad {
            let (_, grad) = accumulator(&mut inner.nodes[loss]);
            grad[0] = 1.0;
            for i in (0..=loss).rev() {
                if inner.nodes[i].has_grad {
                    self.backward_node(inner, i, true);
                }
            }
        }
        // The networks may change from now on.
        inner.applications[..inner.live_applications].iter_mut().for_each(Application::release);
        Gradients { tape: self }
    }

    /// Appends the gradient of the scalar `of` with respect to the earlier value `x` as a constant, before
    /// the backward pass.
    #[track_caller]
    pub(crate) fn gradient_by(&self, of: usize, x: usize) {
        let inner = &mut *self.inner.borrow_mut();
        assert!(
            (inner.nodes[of].rows, inner.nodes[of].cols) == (1, 1) && x < of,
            "the gradient of a single number by an earlier value"
        );
        assert!(!inner.differentiated, "the backward pass of this step is over");
        if inner.defers() {
            let (rows, cols) = (inner.nodes[x].rows, inner.nodes[x].cols);
            inner.push_unknown(rows, cols, Op::Leaf, false);
            return inner.note(|| Origin::GradientBy { of, x });
        }
        if inner.nodes[of].needs_grad {
            accumulator(&mut inner.nodes[of]).1[0] = 1.0;
            for i in (x + 1..=of).rev() {
                if inner.nodes[i].has_grad {
                    self.backward_node(inner, i, false);
                }
            }
        }
        let (rows, cols) = (inner.nodes[x].rows, inner.nodes[x].cols);
        let (nodes, node) = inner.push(rows, cols, Op::Leaf, false);
        if nodes[x].has_grad {
            node.value.copy_from_slice(&nodes[x].grad);
        } else {
            node.value.fill(0.0);
        }
        inner.nodes[..=of].iter_mut().for_each(|node| node.has_grad = false);
        inner.note(|| Origin::GradientBy { of, x });
    }

    /// Propagates the gradient of node `i`; without `weights`, networks collect no weight gradients.
    fn backward_node(&self, inner: &mut Inner, i: usize, weights: bool) {
        let (x, application, collect) = match inner.nodes[i].op {
            Op::Apply { x, application, collect } => (x, application, collect && weights),
            Op::Parameter { net } if weights => return inner.backward_parameter(i, net),
            _ => return inner.backward_op(i),
        };
        let application = &mut inner.applications[application];
        inner.operations += application.backward_operations(collect, inner.nodes[x].needs_grad);
        let (nodes, node) = inner.nodes.split_at_mut(i);
        let input = &mut nodes[x];
        let input_gradient = input.needs_grad.then(|| accumulator(input).1);
        let net = application.net;
        let stored = if collect { inner.gradients.iter_mut().find(|g| g.net == net) } else { None };
        let weights = stored.map(|g| {
            let fresh = !std::mem::replace(&mut g.live, true);
            (&mut g.buffer[..], fresh)
        });
        application.backward(
            &self.pool,
            &mut inner.scratch,
            &node[0].grad,
            weights,
            input_gradient,
            !inner.keep_zero_rows,
            &mut inner.timings,
        );
    }
}

/// A node's value, and its gradient accumulator (initially zero).
pub(crate) fn accumulator(node: &mut Node) -> (&[f32], &mut [f32]) {
    if !node.has_grad {
        node.has_grad = true;
        node.grad.resize(node.value.len());
        node.grad.fill(0.0);
    }
    (&node.value, &mut node.grad)
}

impl Inner {
    /// Adds the gradient of node `i` to that of its parameter.
    fn backward_parameter(&mut self, i: usize, net: u64) {
        let Some(stored) = self.gradients.iter_mut().find(|g| g.net == net) else { return };
        if !std::mem::replace(&mut stored.live, true) {
            stored.buffer.fill(0.0);
        }
        let node = &self.nodes[i];
        for_each_row(node.rows, node.cols, |place, at, len| {
            let sums = stored.buffer[place..][..len].iter_mut();
            sums.zip(&node.grad[at..][..len]).for_each(|(sum, g)| *sum += g);
        });
    }
}

/// In f64, with several independent sums: a single one would wait for each addition.
fn sum_of_squares(x: &[f32]) -> f64 {
    const LANES: usize = 16;
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for i in 0..LANES {
            let x = f64::from(chunk[i]);
            sums[i] += x * x;
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>()
}

/// The result of [`Var::backward`]: gradients, valid until the next step.
#[derive(Clone, Copy, Debug)]
pub struct Gradients<'t> {
    tape: &'t Tape,
}

impl Gradients<'_> {
    /// The gradients of a network's parameters, named and ordered like [`Mlp::tensors`]; zeros if the loss
    /// does not depend on them. A copy, for tests and diagnostics.
    pub fn of(&self, net: &Mlp) -> Vec<Tensor> {
        let all = self.with(net.id(), |gradient| gradient.map(|g| tensors(net.layout(), g)));
        all.unwrap_or_else(|| tensors(net.layout(), &Buffer::zeros(net.layout().len())))
    }

    /// The Euclidean norm of a network's gradient.
    pub fn norm(&self, net: &Mlp) -> f64 {
        self.norm_all(&[net])
    }

    /// The joint Euclidean norm of the gradients of several networks.
    pub fn norm_all(&self, nets: &[&Mlp]) -> f64 {
        let square = |net: &&Mlp| self.with(net.id(), |gradient| gradient.map_or(0.0, sum_of_squares));
        nets.iter().map(square).sum::<f64>().sqrt()
    }

    /// The gradient of a [`Tape::variable`] or of any intermediate value; zeros if the loss does not depend
    /// on it.
    #[track_caller]
    pub fn wrt(&self, var: Var<'_>) -> Matrix {
        let inner = self.tape.inner.borrow();
        let node = &inner.nodes[self.tape.own(var)];
        if node.has_grad {
            Matrix::from_vec(node.rows, node.cols, node.grad.to_vec())
        } else {
            Matrix::zeros(node.rows, node.cols)
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.tape.pool
    }

    /// Calls `f` with the stored gradient of a network, in the layout of its weights.
    pub(crate) fn with<T>(&self, net: u64, f: impl FnOnce(Option<&[f32]>) -> T) -> T {
        let inner = self.tape.inner.borrow();
        let stored = inner.gradients.iter().find(|g| g.net == net && g.live);
        f(stored.map(|g| &g.buffer[..]))
    }
}

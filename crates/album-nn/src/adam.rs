//! Adam.
#![allow(unsafe_code)]

use crate::buffer::{Buffer, SharedMut};
use crate::error::TensorError;
use crate::gemm::PANEL;
use crate::layout::Layout;
use crate::math::{fma, reciprocal};
use crate::mlp::{Mlp, Tensor, load, tensors};
use crate::rowwise::{Lanes, per_isa};
use crate::simd::{Isa, Supported};
use crate::tape::Gradients;
use std::sync::Arc;

/// Adam (Kingma and Ba, 2015) with bias correction, for the parameters of one network.
///
/// `p -= lr * (m_hat / (sqrt(v_hat) + eps) + weight_decay * p)`, as in Optax and PyTorch: AdamW if the weight
/// decay is not 0.
pub struct Adam {
    /// Learning rate; may be changed between steps.
    pub learning_rate: f64,
    /// Weight decay (AdamW); 0 for plain Adam.
    pub weight_decay: f64,
    /// Decay rate of the first moment. In f64, like the others, because `1 - beta` needs all digits.
    pub beta1: f64,
    /// Decay rate of the second moment.
    pub beta2: f64,
    /// Added to the square root of the second moment.
    pub epsilon: f64,
    step: u64,
    layout: Arc<Layout>,
    first: Buffer,
    second: Buffer,
}

impl std::fmt::Debug for Adam {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adam")
            .field("learning_rate", &self.learning_rate)
            .field("steps", &self.step)
            .finish_non_exhaustive()
    }
}

impl Adam {
    /// Zero moments for `net`; betas 0.9 and 0.999, epsilon 1e-8, no weight decay.
    pub fn new(net: &Mlp, learning_rate: f64) -> Self {
        let len = net.layout().len();
        Self {
            learning_rate,
            weight_decay: 0.0,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            step: 0,
            layout: net.layout().clone(),
            first: Buffer::zeros(len),
            second: Buffer::zeros(len),
        }
    }

    /// Number of steps taken.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Updates `net` by its gradient. A network that the loss does not depend on has a zero gradient: its
    /// moments decay, still move its weights, and the step counts.
    ///
    /// # Panics
    /// If the moments belong to a network of another shape.
    #[track_caller]
    pub fn step(&mut self, net: &mut Mlp, gradients: &Gradients<'_>) {
        self.step_scaled(net, gradients, 1.0);
    }

    /// [`Adam::step`] with the gradient scaled, as needed for clipping by norm:
    ///
    /// ```
    /// # use album_nn::{Adam, Gradients, Mlp};
    /// fn clipped_step(adam: &mut Adam, net: &mut Mlp, gradients: &Gradients<'_>, most: f64) {
    ///     let scale = (most / gradients.norm(net)).min(1.0);
    ///     adam.step_scaled(net, gradients, scale as f32);
    /// }
    /// ```
    ///
    /// # Panics
    /// As [`Adam::step`].
    #[track_caller]
    pub fn step_scaled(&mut self, net: &mut Mlp, gradients: &Gradients<'_>, scale: f32) {
        assert_eq!(*net.layout(), self.layout, "these moments belong to a network of another shape");
        let StepRates { rate, root, kept } = self.advance();
        let rates = Rates {
            scale,
            beta1: self.beta1 as f32,
            rest1: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            rest2: (1.0 - self.beta2) as f32,
            epsilon: self.epsilon as f32,
            rate,
            root,
        };
        let first = SharedMut::new(&mut self.first);
        let second = SharedMut::new(&mut self.second);
        let pool = gradients.pool().clone();
        let id = net.id();
        gradients.with(id, |gradient| {
            net.update(&pool, &|range, params| {
                if kept < 1.0 {
                    params.iter_mut().for_each(|p| *p *= kept);
                }
                let job = Update {
                    rates,
                    params: params.as_mut_ptr(),
                    gradient: gradient.map_or(std::ptr::null(), |g| g[range.clone()].as_ptr()),
                    first: first.ptr().wrapping_add(range.start),
                    second: second.ptr().wrapping_add(range.start),
                };
                // SAFETY: strips are disjoint ranges of all four buffers, which have the same layout.
                unsafe { update(pool.supported(), &job, 0, params.len()) };
            });
        });
    }

    /// Counts a step to be taken with the returned rates, here or on a device.
    pub fn advance(&mut self) -> StepRates {
        self.step += 1;
        let step = self.step.min(i32::MAX as u64) as i32;
        let correction1 = 1.0 - self.beta1.powi(step);
        let correction2 = 1.0 - self.beta2.powi(step);
        StepRates {
            rate: (self.learning_rate / correction1) as f32,
            root: (1.0 / correction2.sqrt()) as f32,
            kept: (1.0 - self.learning_rate * self.weight_decay) as f32,
        }
    }

    /// The first moments, named and ordered like [`Mlp::tensors`].
    pub fn first_moments(&self) -> Vec<Tensor> {
        tensors(&self.layout, &self.first)
    }

    /// The second moments, named and ordered like [`Mlp::tensors`].
    pub fn second_moments(&self) -> Vec<Tensor> {
        tensors(&self.layout, &self.second)
    }

    /// Restores a state saved from [`Adam::steps`], [`Adam::first_moments`] and [`Adam::second_moments`].
    ///
    /// # Errors
    /// If the tensors do not fit the network; nothing is changed then.
    pub fn load(&mut self, step: u64, first: &[Tensor], second: &[Tensor]) -> Result<(), TensorError> {
        let (mut m, mut v) = (Buffer::zeros(self.layout.len()), Buffer::zeros(self.layout.len()));
        load(&self.layout, &mut m, first)?;
        load(&self.layout, &mut v, second)?;
        (self.step, self.first, self.second) = (step, m, v);
        Ok(())
    }
}

/// The rates of one step: `p = kept * p - rate * m / (root * sqrt(v) + epsilon)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRates {
    /// Learning rate divided by the bias correction of the first moment.
    pub rate: f32,
    /// One over the square root of the bias correction of the second moment.
    pub root: f32,
    /// The fraction of the parameters that weight decay leaves.
    pub kept: f32,
}

/// The constants of one step.
#[derive(Clone, Copy)]
pub(crate) struct Rates {
    /// Factor on the gradient.
    scale: f32,
    beta1: f32,
    /// `1 - beta1`, rounded only after the subtraction.
    rest1: f32,
    beta2: f32,
    rest2: f32,
    epsilon: f32,
    /// Learning rate divided by the bias correction of the first moment.
    rate: f32,
    /// One over the square root of the bias correction of the second moment.
    root: f32,
}

/// One strip of the parameters with its gradient and moments.
pub(crate) struct Update {
    rates: Rates,
    params: *mut f32,
    /// Null for a zero gradient.
    gradient: *const f32,
    first: *mut f32,
    second: *mut f32,
}

per_isa! {
    /// Updates entries `from..from + count` of the strip.
    ///
    /// # Safety
    /// All four pointers have that many floats, which belong to the caller.
    update, update_body, Update
}

#[inline(always)]
unsafe fn update_body<const FUSED: bool>(job: &Update, from: usize, count: usize) {
    let Rates { scale, beta1, rest1, beta2, rest2, epsilon, rate, root } = job.rates;
    debug_assert!(count.is_multiple_of(PANEL), "strips consist of whole panel rows");
    // One panel row at a time, by value: loops over fixed-size arrays are vectorised.
    for at in (from..from + count).step_by(PANEL) {
        // SAFETY: promised by the caller.
        unsafe {
            let g: Lanes = if job.gradient.is_null() {
                [0.0; PANEL]
            } else {
                job.gradient.add(at).cast::<Lanes>().read()
            };
            let mut m = job.first.add(at).cast::<Lanes>().read();
            let mut v = job.second.add(at).cast::<Lanes>().read();
            let mut p = job.params.add(at).cast::<Lanes>().read();
            for i in 0..PANEL {
                let g = scale * g[i];
                m[i] = fma::<FUSED>(beta1, m[i], rest1 * g);
                v[i] = fma::<FUSED>(beta2, v[i], rest2 * (g * g));
                p[i] -= rate * m[i] * reciprocal::<FUSED>(fma::<FUSED>(v[i].sqrt(), root, epsilon));
            }
            job.first.add(at).cast::<Lanes>().write(m);
            job.second.add(at).cast::<Lanes>().write(v);
            job.params.add(at).cast::<Lanes>().write(p);
        }
    }
}

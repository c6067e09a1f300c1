//! Multi-layer perceptrons: shape, weights, and access to them by name.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;

use crate::activation::Activation;
use crate::buffer::{Buffer, SharedMut};
use crate::error::TensorError;
use crate::gemm::PANEL;
use crate::init::{glorot_limit, uniform};
use crate::layout::{Layout, Strip, TensorKind, read_tensor, write_tensor};
use crate::pool::Pool;

/// The shape of an MLP: Dense -> activation -> LayerNorm (optional), repeated, then Dense.
///
/// ```
/// use album_nn::MlpSpec;
/// let critic = MlpSpec::new(29 + 8, &[512; 4], 1).layer_norm(true).members(2);
/// assert_eq!(critic.outputs, 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MlpSpec {
    /// Input dimension.
    pub inputs: usize,
    /// Widths of the hidden layers. An empty list makes the network an affine map.
    pub hidden: Vec<usize>,
    /// Output dimension of one member.
    pub outputs: usize,
    /// Activation of the hidden layers.
    pub activation: Activation,
    /// LayerNorm after the activation of every hidden layer.
    pub layer_norm: bool,
    /// Whether dense layers have a bias. LayerNorm's own shift is unaffected.
    pub bias: bool,
    /// Number of independently initialised networks of this shape, applied in parallel to the same input.
    pub members: usize,
    /// Scale of the last layer's initial kernel in [`glorot_limit`].
    pub output_scale: f32,
    /// The last layer's initial bias, if it has one.
    pub output_bias: f32,
}

impl MlpSpec {
    /// One member, GELU, no LayerNorm, biases that start at zero, output scale 1.
    pub fn new(inputs: usize, hidden: &[usize], outputs: usize) -> Self {
        Self {
            inputs,
            hidden: hidden.to_vec(),
            outputs,
            activation: Activation::Gelu,
            layer_norm: false,
            bias: true,
            members: 1,
            output_scale: 1.0,
            output_bias: 0.0,
        }
    }

    /// A trained `rows x cols` matrix on its own, initially zero, for
    /// [`Tape::parameter`](crate::Tape::parameter): a scale, a shift, frequencies. It is stored like the
    /// kernel of a layer, so that optimisers, targets and checkpoints can treat it as a network.
    pub fn parameter(rows: usize, cols: usize) -> Self {
        Self::new(rows, &[], cols).bias(false).output_scale(0.0)
    }

    /// Sets the activation of the hidden layers.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    /// Enables or disables biases in the dense layers.
    #[must_use]
    pub fn bias(self, bias: bool) -> Self {
        Self { bias, ..self }
    }

    /// Enables or disables LayerNorm on the hidden layers.
    #[must_use]
    pub fn layer_norm(self, layer_norm: bool) -> Self {
        Self { layer_norm, ..self }
    }

    /// Sets the number of members.
    #[must_use]
    pub fn members(self, members: usize) -> Self {
        Self { members, ..self }
    }

    /// Sets the initial scale of the last kernel.
    #[must_use]
    pub fn output_scale(self, output_scale: f32) -> Self {
        Self { output_scale, ..self }
    }

    /// Sets the initial bias of the last layer.
    #[must_use]
    pub fn output_bias(self, output_bias: f32) -> Self {
        Self { output_bias, ..self }
    }

    fn widths(&self) -> Vec<usize> {
        std::iter::once(self.inputs).chain(self.hidden.iter().copied()).chain([self.outputs]).collect()
    }

    /// Size of its parameters in bytes, without allocating them; `None` on overflow.
    pub fn parameter_bytes(&self) -> Option<u64> {
        let panel = PANEL as u64;
        let mut floats = 0u64;
        for pair in self.widths().windows(2) {
            let (inputs, outputs) = (pair[0] as u64, pair[1] as u64);
            // The kernel in whole panels, bias, scale and shift.
            let layer = inputs.checked_add(3)?.checked_mul(outputs.div_ceil(panel).checked_mul(panel)?)?;
            floats = floats.checked_add(layer)?;
        }
        floats.checked_mul(self.members as u64)?.checked_mul(4)
    }

    /// Bytes per row of all layer outputs; `None` on overflow.
    pub fn row_bytes(&self) -> Option<u64> {
        let widths = self.widths().into_iter().try_fold(0u64, |sum, width| sum.checked_add(width as u64))?;
        widths.checked_mul(self.members as u64)?.checked_mul(4)
    }

    fn layout(&self) -> Layout {
        let widths = self.widths();
        assert!(widths.iter().all(|&w| w > 0), "an MLP needs widths of at least 1, not {widths:?}");
        assert!(self.members > 0, "an MLP needs at least one member");
        Layout::new(&widths, self.bias, self.layer_norm, self.members)
    }
}

/// A parameter tensor with its name, row by row: what a checkpoint stores.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// For example `layer0/kernel`, or `member1/layer2/norm_scale` in an ensemble.
    pub name: String,
    /// `[inputs, outputs]` for a kernel, `[outputs]` for a vector.
    pub shape: Vec<usize>,
    /// The values, row-major.
    pub data: Vec<f32>,
}

/// What a tape needs to apply a network: parameters, and transposed kernels for the backward pass.
#[derive(Clone)]
pub(crate) struct Weights {
    pub(crate) params: Buffer,
    pub(crate) transposed: Buffer,
}

/// A multi-layer perceptron, or an ensemble of them.
///
/// The weights are shared with the tapes that have applied the network: changing them while a tape still
/// holds the application (before its [`backward`](crate::Var::backward) or the next step) copies them first,
/// so the tape keeps the weights it used. A clone is an independent network and takes no memory until either
/// changes.
///
/// ```
/// use album_nn::{Mlp, MlpSpec};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
///
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let net = Mlp::new(MlpSpec::new(3, &[64, 64], 1).layer_norm(true), &mut rng);
/// assert_eq!(net.parameter_count(), 3 * 64 + 3 * 64 + 64 * 64 + 3 * 64 + 64 + 1);
/// assert_eq!(net.tensors()[0].name, "layer0/kernel");
/// ```
pub struct Mlp {
    spec: MlpSpec,
    layout: Arc<Layout>,
    weights: Arc<Weights>,
    id: u64,
}

impl Clone for Mlp {
    fn clone(&self) -> Self {
        let (layout, weights) = (self.layout.clone(), self.weights.clone());
        Self { spec: self.spec.clone(), layout, weights, id: fresh_id() }
    }
}

impl std::fmt::Debug for Mlp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mlp").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// A process-wide unique id, by which gradients are found.
fn fresh_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Mlp {
    /// Draws Glorot uniform kernels, member by member, layer by layer, row by row; biases are zero
    /// but for the last one, LayerNorm's scales one and its shifts zero.
    ///
    /// # Panics
    /// If a width or the number of members is zero.
    pub fn new(spec: MlpSpec, rng: &mut impl Rng) -> Self {
        let layout = spec.layout();
        let mut params = Buffer::zeros(layout.len());
        let mut values = Vec::new();
        let last = layout.layers.len() - 1;
        for place in &layout.places {
            if place.kind == TensorKind::Kernel {
                let (inputs, outputs) = (place.shape[0], place.shape[1]);
                let is_last = place.name.ends_with(&format!("layer{last}/kernel"));
                let scale = if is_last { spec.output_scale } else { 1.0 };
                values.resize(inputs * outputs, 0.0);
                uniform(rng, glorot_limit(inputs, outputs, scale), &mut values);
                write_tensor(&mut params, place, &values);
            } else if place.name.ends_with("norm_scale") {
                write_tensor(&mut params, place, &vec![1.0; place.shape[0]]);
            } else if place.name.ends_with(&format!("layer{last}/bias")) {
                write_tensor(&mut params, place, &vec![spec.output_bias; place.shape[0]]);
            }
        }
        let transposed = Buffer::zeros(layout.members * layout.transposed_len);
        let mut net = Self {
            spec,
            layout: Arc::new(layout),
            weights: Arc::new(Weights { params, transposed }),
            id: fresh_id(),
        };
        net.update(&Pool::new(1), &|_, _| {});
        net
    }

    /// The shape.
    pub fn spec(&self) -> &MlpSpec {
        &self.spec
    }

    /// Number of columns of what [`Tape::apply`](crate::Tape::apply) returns: the outputs of all members.
    pub fn output_columns(&self) -> usize {
        self.spec.outputs * self.spec.members
    }

    /// Number of trainable parameters, without padding.
    pub fn parameter_count(&self) -> usize {
        self.layout.places.iter().map(|place| place.shape.iter().product::<usize>()).sum()
    }

    /// Multiply-adds of all members for one row: the forward pass takes twice as many floating-point
    /// operations. Biases, activations and LayerNorm are not counted.
    pub fn macs(&self) -> usize {
        self.layout.products()
    }

    /// Copies of all parameters in a fixed order.
    pub fn tensors(&self) -> Vec<Tensor> {
        tensors(&self.layout, &self.weights.params)
    }

    /// Replaces all parameters, which must come with the names, shapes and order of [`Mlp::tensors`].
    ///
    /// # Errors
    /// If a tensor is missing, unknown, out of order or of another shape; nothing is changed then.
    pub fn load(&mut self, tensors: &[Tensor]) -> Result<(), TensorError> {
        let mut params = Buffer::zeros(self.layout.len());
        load(&self.layout, &mut params, tensors)?;
        Arc::make_mut(&mut self.weights).params = params;
        self.update(&Pool::new(1), &|_, _| {});
        Ok(())
    }

    /// Moves every parameter towards that of `online`: `self = tau * online + (1 - tau) * self`.
    ///
    /// # Panics
    /// If the networks differ in shape.
    pub fn track(&mut self, online: &Mlp, tau: f32, pool: &Pool) {
        assert_eq!(self.layout, online.layout, "a network can only track one of its own shape");
        let online = online.weights.clone();
        self.update(pool, &|range, params| {
            for (target, online) in params.iter_mut().zip(&online.params[range]) {
                *target = tau * online + (1.0 - tau) * *target;
            }
        });
    }

    /// A process-wide unique id; a clone has its own.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub(crate) fn weights(&self) -> &Arc<Weights> {
        &self.weights
    }

    /// Changes the parameters in parallel, strip by strip, with `change(range of the strip, its values)`, and
    /// updates the transposed kernels while each strip is in cache.
    #[allow(unsafe_code)]
    pub(crate) fn update(
        &mut self,
        pool: &Pool,
        change: &(dyn Fn(std::ops::Range<usize>, &mut [f32]) + Sync),
    ) {
        let layout = &*self.layout;
        let weights = Arc::make_mut(&mut self.weights);
        let params = SharedMut::new(&mut weights.params);
        let transposed = SharedMut::new(&mut weights.transposed);
        pool.run(layout.strips.len(), &|i| {
            let strip = layout.strips[i];
            let range = layout.range(strip);
            // SAFETY: strips are disjoint ranges of the parameters, and each is handled once.
            let values = unsafe { params.slice(range.start, range.len()) };
            change(range, values);
            if let Strip::Kernel { member, layer, panel } = strip {
                let layer = &layout.layers[layer];
                let base = member * layout.transposed_len + layer.transposed;
                let columns = (layer.outputs - panel * PANEL).min(PANEL);
                for block in 0..layer.inputs.div_ceil(PANEL) {
                    let rows = (layer.inputs - block * PANEL).min(PANEL);
                    let start = base + (block * layer.outputs + panel * PANEL) * PANEL;
                    // SAFETY: rows `panel * 32..` of transposed panel `block` belong to this strip alone.
                    let to = unsafe { transposed.slice(start, columns * PANEL) };
                    crate::transpose::block(
                        pool.supported(),
                        &values[block * PANEL * PANEL..][..rows * PANEL],
                        to,
                    );
                }
            }
        });
    }
}

/// Copies all tensors out of a buffer that has the layout of a network's parameters.
pub(crate) fn tensors(layout: &Layout, buffer: &[f32]) -> Vec<Tensor> {
    let tensor = |place| read_tensor(buffer, place);
    (layout.places.iter())
        .map(|place| Tensor { name: place.name.clone(), shape: place.shape.clone(), data: tensor(place) })
        .collect()
}

/// The inverse of [`tensors`].
pub(crate) fn load(layout: &Layout, buffer: &mut [f32], tensors: &[Tensor]) -> Result<(), TensorError> {
    if tensors.len() != layout.places.len() {
        return Err(TensorError::Count { found: tensors.len(), expected: layout.places.len() });
    }
    for (place, tensor) in layout.places.iter().zip(tensors) {
        if place.name != tensor.name {
            return Err(TensorError::Name { found: tensor.name.clone(), expected: place.name.clone() });
        }
        let expected: usize = place.shape.iter().product();
        if place.shape != tensor.shape || tensor.data.len() != expected {
            return Err(TensorError::Shape {
                name: tensor.name.clone(),
                found: tensor.shape.clone(),
                values: tensor.data.len(),
                expected: place.shape.clone(),
            });
        }
        write_tensor(buffer, place, &tensor.data);
    }
    Ok(())
}

//! The position of each parameter of an MLP in the flat buffers of weights, gradients and moments.
//!
//! Kernels are stored in column panels (see [`crate::gemm`]), vectors padded to whole panels. Padding is zero
//! in weights, gradients and moments, so elementwise updates can ignore it.

use crate::gemm::PANEL;

/// Rounds up to whole panels.
pub(crate) fn padded(columns: usize) -> usize {
    columns.div_ceil(PANEL) * PANEL
}

/// One dense layer; offsets count floats from the start of its member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// `inputs x outputs`, in panels of `inputs` rows.
    pub(crate) kernel: usize,
    pub(crate) bias: Option<usize>,
    /// LayerNorm's scale; its shift follows at `scale + padded(outputs)`.
    pub(crate) scale: Option<usize>,
    /// Offset of the transposed kernel (`outputs x inputs`) in the buffer of transposed kernels.
    pub(crate) transposed: usize,
}

impl Layer {
    pub(crate) fn panels(&self) -> usize {
        self.outputs.div_ceil(PANEL)
    }

    pub(crate) fn padded(&self) -> usize {
        padded(self.outputs)
    }

    pub(crate) fn shift(&self) -> Option<usize> {
        self.scale.map(|scale| scale + self.padded())
    }

    /// Offset of the vectors, which follow the kernel: bias, scale, shift.
    fn vectors(&self) -> usize {
        self.kernel + self.panels() * self.inputs * PANEL
    }

    /// Offset of the end of the layer.
    fn end(&self) -> usize {
        let vectors = usize::from(self.bias.is_some()) + 2 * usize::from(self.scale.is_some());
        self.vectors() + vectors * self.padded()
    }
}

/// A part of the parameters that one thread updates at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Strip {
    /// Panel `panel` of the kernel of `layer` in `member`.
    Kernel { member: usize, layer: usize, panel: usize },
    /// The vectors of `layer` in `member`.
    Vectors { member: usize, layer: usize },
}

/// The kind of a parameter tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TensorKind {
    Kernel,
    Vector,
}

/// One tensor as seen from outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) kind: TensorKind,
    /// Offset from the start of the whole buffer.
    pub(crate) offset: usize,
}

/// The layers of one member and the number of members.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) layers: Vec<Layer>,
    pub(crate) members: usize,
    /// Number of floats of one member.
    pub(crate) member_len: usize,
    /// Number of floats of one member's transposed kernels.
    pub(crate) transposed_len: usize,
    pub(crate) strips: Vec<Strip>,
    pub(crate) places: Vec<Place>,
}

impl Layout {
    pub(crate) fn new(widths: &[usize], bias: bool, layer_norm: bool, members: usize) -> Self {
        let mut layers = Vec::new();
        let (mut at, mut transposed) = (0, 0);
        for (l, pair) in widths.windows(2).enumerate() {
            let hidden = l + 2 < widths.len();
            let mut layer =
                Layer { inputs: pair[0], outputs: pair[1], kernel: at, bias: None, scale: None, transposed };
            layer.bias = bias.then(|| layer.vectors());
            layer.scale = (hidden && layer_norm).then(|| layer.end());
            at = layer.end();
            transposed += padded(layer.inputs) * layer.outputs;
            layers.push(layer);
        }
        let mut strips = Vec::new();
        let mut places = Vec::new();
        for member in 0..members {
            for (l, layer) in layers.iter().enumerate() {
                strips.extend((0..layer.panels()).map(|panel| Strip::Kernel { member, layer: l, panel }));
                if layer.end() > layer.vectors() {
                    strips.push(Strip::Vectors { member, layer: l });
                }
                let prefix =
                    if members == 1 { format!("layer{l}") } else { format!("member{member}/layer{l}") };
                let mut place = |name: &str, shape: Vec<usize>, kind, offset| {
                    let offset = member * at + offset;
                    places.push(Place { name: format!("{prefix}/{name}"), shape, kind, offset });
                };
                place("kernel", vec![layer.inputs, layer.outputs], TensorKind::Kernel, layer.kernel);
                if let Some(bias) = layer.bias {
                    place("bias", vec![layer.outputs], TensorKind::Vector, bias);
                }
                if let (Some(scale), Some(shift)) = (layer.scale, layer.shift()) {
                    place("norm_scale", vec![layer.outputs], TensorKind::Vector, scale);
                    place("norm_bias", vec![layer.outputs], TensorKind::Vector, shift);
                }
            }
        }
        Self { layers, members, member_len: at, transposed_len: transposed, strips, places }
    }

    /// Number of floats of a parameter buffer.
    pub(crate) fn len(&self) -> usize {
        self.members * self.member_len
    }

    /// Multiply-adds of all kernels for one row.
    pub(crate) fn products(&self) -> usize {
        self.members * self.layers.iter().map(|layer| layer.inputs * layer.outputs).sum::<usize>()
    }

    /// The range of floats of a strip in a parameter buffer.
    pub(crate) fn range(&self, strip: Strip) -> std::ops::Range<usize> {
        match strip {
            Strip::Kernel { member, layer, panel } => {
                let layer = &self.layers[layer];
                let start = member * self.member_len + layer.kernel + panel * layer.inputs * PANEL;
                start..start + layer.inputs * PANEL
            }
            Strip::Vectors { member, layer } => {
                let layer = &self.layers[layer];
                let base = member * self.member_len;
                base + layer.vectors()..base + layer.end()
            }
        }
    }
}

/// Copies a tensor out of a parameter buffer, row by row.
pub(crate) fn read_tensor(buffer: &[f32], place: &Place) -> Vec<f32> {
    match place.kind {
        TensorKind::Vector => buffer[place.offset..][..place.shape[0]].to_vec(),
        TensorKind::Kernel => {
            let (rows, columns) = (place.shape[0], place.shape[1]);
            let mut out = Vec::with_capacity(rows * columns);
            for row in 0..rows {
                for column in 0..columns {
                    out.push(buffer[kernel_index(place, row, column)]);
                }
            }
            out
        }
    }
}

/// Copies a tensor, given row by row, into a parameter buffer.
pub(crate) fn write_tensor(buffer: &mut [f32], place: &Place, data: &[f32]) {
    match place.kind {
        TensorKind::Vector => buffer[place.offset..][..place.shape[0]].copy_from_slice(data),
        TensorKind::Kernel => {
            let (rows, columns) = (place.shape[0], place.shape[1]);
            for row in 0..rows {
                for column in 0..columns {
                    buffer[kernel_index(place, row, column)] = data[row * columns + column];
                }
            }
        }
    }
}

fn kernel_index(place: &Place, row: usize, column: usize) -> usize {
    place.offset + column / PANEL * place.shape[0] * PANEL + row * PANEL + column % PANEL
}

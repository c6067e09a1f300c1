//! What can be wrong with tensors that come from outside.

/// Why tensors do not fit a network.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TensorError {
    /// Too few or too many.
    #[error("found {found} tensors, expected {expected}")]
    Count {
        /// Tensors given.
        found: usize,
        /// Tensors of the network.
        expected: usize,
    },
    /// Another name, or another order.
    #[error("found tensor `{found}` where `{expected}` was expected")]
    Name {
        /// Name given.
        found: String,
        /// Name at this position.
        expected: String,
    },
    /// Another shape, or values that do not fill the shape.
    #[error("tensor `{name}` has shape {found:?} and {values} values, expected shape {expected:?}")]
    Shape {
        /// Name of the tensor.
        name: String,
        /// Shape given.
        found: Vec<usize>,
        /// Values given.
        values: usize,
        /// Shape in the network.
        expected: Vec<usize>,
    },
}

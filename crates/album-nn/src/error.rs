//! Errors of externally provided tensors.

/// Why tensors do not match a network.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TensorError {
    /// Wrong number of tensors.
    #[error("found {found} tensors, expected {expected}")]
    Count {
        /// Number of tensors given.
        found: usize,
        /// Number of tensors of the network.
        expected: usize,
    },
    /// Wrong name or order.
    #[error("found tensor `{found}` where `{expected}` was expected")]
    Name {
        /// The given name.
        found: String,
        /// The expected name at this position.
        expected: String,
    },
    /// Wrong shape, or values that do not fill the shape.
    #[error("tensor `{name}` has shape {found:?} and {values} values, expected shape {expected:?}")]
    Shape {
        /// Name of the tensor.
        name: String,
        /// The given shape.
        found: Vec<usize>,
        /// Number of values given.
        values: usize,
        /// The shape in the network.
        expected: Vec<usize>,
    },
}

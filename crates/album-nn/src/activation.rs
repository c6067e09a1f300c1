//! Activation functions of hidden layers.

use crate::math::{gelu, gelu_with_slope, mish, mish_with_slope, relu, relu_with_slope};

/// The activation of the hidden layers of an [`Mlp`](crate::Mlp).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// `z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 z^3)))`.
    #[default]
    Gelu,
    /// `max(z, 0)`; the derivative at 0 is 0.
    Relu,
    /// `z * tanh(ln(1 + e^z))`.
    Mish,
}

/// An activation as a compile-time parameter of the row-wise loops, so that it is vectorised with them. Zero
/// at zero, which the padding of panels relies on.
pub(crate) trait Curve {
    fn value<const FUSED: bool>(z: f32) -> f32;
    /// The value and the derivative; both NaN if `z` is NaN.
    fn with_slope<const FUSED: bool>(z: f32) -> (f32, f32);
}

macro_rules! curve {
    ($name:ident, $value:ident, $with_slope:ident) => {
        pub(crate) struct $name;
        impl Curve for $name {
            #[inline(always)]
            fn value<const FUSED: bool>(z: f32) -> f32 {
                $value::<FUSED>(z)
            }
            #[inline(always)]
            fn with_slope<const FUSED: bool>(z: f32) -> (f32, f32) {
                $with_slope::<FUSED>(z)
            }
        }
    };
}

curve!(Gelu, gelu, gelu_with_slope);
curve!(Relu, relu, relu_with_slope);
curve!(Mish, mish, mish_with_slope);

/// Calls `body::<FUSED, curve of the activation>(arguments)`.
macro_rules! with_curve {
    ($activation:expr, $fused:ident, $body:ident($($argument:expr),*)) => {
        match $activation {
            $crate::activation::Activation::Gelu => $body::<$fused, $crate::activation::Gelu>($($argument),*),
            $crate::activation::Activation::Relu => $body::<$fused, $crate::activation::Relu>($($argument),*),
            $crate::activation::Activation::Mish => $body::<$fused, $crate::activation::Mish>($($argument),*),
        }
    };
}
pub(crate) use with_curve;

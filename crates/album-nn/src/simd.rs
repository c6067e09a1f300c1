//! The vector instructions of the kernels, detected at program start.

/// An instruction set with its own kernels.
///
/// All but [`Isa::Scalar`] use fused multiply-adds in the same order, so they give the same bits; the scalar
/// fallback rounds twice per product and agrees up to rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// Plain Rust, for processors without any of the sets below.
    Scalar,
    /// x86-64 with AVX2 and FMA (2013 and later).
    Avx2,
    /// x86-64 with AVX-512 (F, VL, DQ, BW).
    Avx512,
    /// 64-bit Arm.
    Neon,
}

/// How the factors of matrix products are rounded. Weights, sums and everything else are single precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Not at all.
    #[default]
    F32,
    /// To bfloat16, as `vdpbf16ps` multiplies. All instruction sets give the same bits.
    Bf16,
}

impl Precision {
    /// Activations, and gradients of pre-activations, below this size become zero. GELU and its slope go down to
    /// the smallest f32, and sums of such terms would have to be checked for subnormal numbers, one by one. Adam
    /// cannot see such gradients: its epsilon is 2^21 times as large.
    pub(crate) fn least(self) -> f32 {
        match self {
            Precision::F32 => 0.0,
            Precision::Bf16 => f32::from_bits((127 - 48) << 23), // 2^-48
        }
    }
}

impl Isa {
    /// The widest set this processor supports.
    pub fn detect() -> Self {
        [Isa::Avx512, Isa::Avx2, Isa::Neon].into_iter().find(|isa| isa.is_supported()).unwrap_or(Isa::Scalar)
    }

    /// Proof that this processor can run kernels for `self`, if it can.
    pub(crate) fn supported(self) -> Option<Supported> {
        self.is_supported().then_some(Supported { isa: self, precision: Precision::F32 })
    }

    /// Whether this processor can run kernels for `self`.
    pub fn is_supported(self) -> bool {
        match self {
            Isa::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_supported()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => true,
            #[allow(unreachable_patterns)] // the sets of other architectures
            _ => false,
        }
    }
}

/// An instruction set that this processor has. Only detection creates one, so holding one proves that its
/// kernels may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Supported {
    isa: Isa,
    precision: Precision,
}

impl Supported {
    /// The widest set this processor supports.
    pub(crate) fn detect() -> Self {
        Isa::detect().supported().unwrap_or(Supported { isa: Isa::Scalar, precision: Precision::F32 })
    }

    pub(crate) fn isa(self) -> Isa {
        self.isa
    }

    /// The same set with products of this precision.
    pub(crate) fn with(self, precision: Precision) -> Self {
        Supported { precision, ..self }
    }

    pub(crate) fn precision(self) -> Precision {
        self.precision
    }
}

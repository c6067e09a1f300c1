//! Transposition of one block of a kernel, 32 columns of up to 32 rows.
#![allow(unsafe_code)]

use crate::gemm::PANEL;
#[cfg(any(test, target_arch = "x86_64"))]
use crate::simd::Isa;
use crate::simd::Supported;

/// `to[column][row] = from[row][column]`, both with rows of 32. Missing rows of `from` become zeros; columns
/// beyond the size of `to` are dropped.
pub(crate) fn block(isa: Supported, from: &[f32], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if from.len() == PANEL * PANEL
        && to.len() == PANEL * PANEL
        && matches!(isa.isa(), Isa::Avx2 | Isa::Avx512)
    {
        // SAFETY: both are whole blocks, and `isa` proves that the processor has AVX2, which includes AVX.
        unsafe { avx(from.as_ptr(), to.as_mut_ptr()) };
        return;
    }
    let _ = isa; // other architectures have only the plain loop
    let rows = from.len() / PANEL;
    for (column, to) in to.chunks_exact_mut(PANEL).enumerate() {
        for row in 0..rows {
            to[row] = from[row * PANEL + column];
        }
        to[rows..].fill(0.0);
    }
}

/// A whole block, 8 x 8 at a time.
///
/// # Safety
/// Both pointers have 32 x 32 floats; the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn avx(from: *const f32, to: *mut f32) {
    use std::arch::x86_64::*;
    for row in (0..PANEL).step_by(8) {
        for column in (0..PANEL).step_by(8) {
            // SAFETY: rows and columns of the block, by the caller's promise.
            unsafe {
                let source = from.add(row * PANEL + column);
                // r[i] is row i; then pairs, then quadruples of rows are interleaved.
                let r: [__m256; 8] = std::array::from_fn(|i| _mm256_loadu_ps(source.add(i * PANEL)));
                let mut pairs = r;
                for i in (0..8).step_by(2) {
                    pairs[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
                    pairs[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
                }
                let mut quads = r;
                for i in (0..8).step_by(4) {
                    quads[i] = _mm256_shuffle_ps::<0x44>(pairs[i], pairs[i + 2]);
                    quads[i + 1] = _mm256_shuffle_ps::<0xEE>(pairs[i], pairs[i + 2]);
                    quads[i + 2] = _mm256_shuffle_ps::<0x44>(pairs[i + 1], pairs[i + 3]);
                    quads[i + 3] = _mm256_shuffle_ps::<0xEE>(pairs[i + 1], pairs[i + 3]);
                }
                let target = to.add(column * PANEL + row);
                for i in 0..4 {
                    let low = _mm256_permute2f128_ps::<0x20>(quads[i], quads[i + 4]);
                    let high = _mm256_permute2f128_ps::<0x31>(quads[i], quads[i + 4]);
                    _mm256_storeu_ps(target.add(i * PANEL), low);
                    _mm256_storeu_ps(target.add((i + 4) * PANEL), high);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_transposes_every_block() {
        for isa in [Isa::Scalar.supported().unwrap(), Supported::detect()] {
            for (rows, columns) in [(32, 32), (32, 5), (7, 32), (1, 1)] {
                let from: Vec<f32> = (0..rows * PANEL).map(|i| i as f32 + 1.0).collect();
                let mut to = vec![f32::NAN; columns * PANEL];
                block(isa, &from, &mut to);
                for column in 0..columns {
                    for row in 0..PANEL {
                        let expected = if row < rows { from[row * PANEL + column] } else { 0.0 };
                        assert_eq!(to[column * PANEL + row], expected);
                    }
                }
            }
        }
    }
}

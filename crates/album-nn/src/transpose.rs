//! Transposition of one block of a kernel, 32 columns of up to 32 rows.

use crate::gemm::PANEL;
use crate::simd::Isa;

/// `to[column][row] = from[row][column]`, both with rows of 32; missing rows of `from` become zeros.
pub(crate) fn block(_isa: Isa, from: &[f32], to: &mut [f32]) {
    let rows = from.len() / PANEL;
    for (column, to) in to.chunks_exact_mut(PANEL).enumerate() {
        for row in 0..rows {
            to[row] = from[row * PANEL + column];
        }
        to[rows..].fill(0.0);
    }
}

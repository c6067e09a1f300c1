//! Matrix-product throughput of this machine: the reference for everything above the kernels.
#![allow(unsafe_code)]

use std::time::Instant;

use crate::buffer::Buffer;
use crate::gemm::{PANEL, Panels, Product, row_block};
use crate::pool::Pool;

/// Throughput of one thread in GFLOP/s for 128 x 512 x 512 products with the kernels of `pool`: the best of
/// many, operands in cache.
pub fn product_rate(pool: &Pool) -> f64 {
    const ROWS: usize = 128;
    const WIDTH: usize = 512;
    let panels = WIDTH / PANEL;
    let stride = (ROWS + 1) * PANEL;
    let mut a = Buffer::zeros(panels * stride);
    let mut b = Buffer::zeros(panels * WIDTH * PANEL);
    let mut c = Buffer::zeros(panels * stride);
    let operands = [&mut a, &mut b, &mut c].map(|x| x.as_mut_ptr());
    let [a, b, c] =
        [(0, stride), (1, WIDTH * PANEL), (2, stride)].map(|(i, stride)| Panels { ptr: operands[i], stride });
    let product = Product { k: WIDTH, panels, a, b, bias: None, c };
    let mut best = f64::INFINITY;
    for _ in 0..50 {
        let started = Instant::now();
        // SAFETY: the three matrices have the extents of the product, and only this thread knows them.
        unsafe { row_block(pool.supported(), (0, ROWS), &product, |_, _| {}) };
        best = best.min(started.elapsed().as_secs_f64());
    }
    2.0 * (ROWS * WIDTH * WIDTH) as f64 / best / 1e9
}

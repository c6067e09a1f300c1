//! The kernels with AVX512-BF16's own instruction: 14 rows by two 16-lane vectors, two terms at a time.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::super::{PANEL, Start};

/// See [`super::super::Kernels::rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(in crate::gemm) unsafe fn rows<const MR: usize>(
    k: usize,
    mut a: *const f32,
    a_stride: usize,
    mut b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: the caller guarantees the extents of `a`, `b` and `c` and their 64-byte alignment.
    unsafe {
        let mut acc = load::<MR>(c, start);
        let mut left = k;
        while left > 0 {
            let run = left.min(PANEL);
            // The pairs of each row within this panel. Columns past the last one are masked out, whatever they hold.
            let mut pairs = [[0u32; PANEL / 2]; MR];
            let (low, high) = (mask(run), mask(run.saturating_sub(16)));
            for m in 0..MR {
                let row = a.add(m * PANEL);
                let row = [_mm512_maskz_load_ps(low, row), _mm512_maskz_load_ps(high, row.add(16))];
                pairs[m] =
                    std::mem::transmute::<__m512bh, [u32; PANEL / 2]>(_mm512_cvtne2ps_pbh(row[1], row[0]));
            }
            for i in 0..run.div_ceil(2) {
                let right = both::<2>(b, (2 * i + 1 < run).then(|| b.add(PANEL)));
                for m in 0..MR {
                    let pair =
                        std::mem::transmute::<__m512i, __m512bh>(_mm512_set1_epi32(pairs[m][i] as i32));
                    acc[m][0] = _mm512_dpbf16_ps(acc[m][0], pair, right[0]);
                    acc[m][1] = _mm512_dpbf16_ps(acc[m][1], pair, right[1]);
                }
                b = b.add(2 * PANEL);
            }
            a = a.add(a_stride);
            left -= run;
        }
        store(c, &acc);
    }
}

/// See [`super::super::Kernels::cols`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(in crate::gemm) unsafe fn cols<const MR: usize>(
    rows: &[u32],
    a: *const f32,
    mut b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: as in `rows`; every entry of `rows` is a row of `a`.
    unsafe {
        let mut acc = load::<MR>(c, start);
        for pair in rows.chunks(2) {
            let row = |row: u32| _mm512_maskz_loadu_ps(mask(MR), a.add(row as usize * PANEL));
            let second = pair.get(1).map_or_else(|| _mm512_setzero_ps(), |&second| row(second));
            let left: [u32; 16] = std::mem::transmute(interleaved(row(pair[0]), second));
            let right = both::<2>(b, (pair.len() == 2).then(|| b.add(PANEL)));
            for m in 0..MR {
                let pair = std::mem::transmute::<__m512i, __m512bh>(_mm512_set1_epi32(left[m] as i32));
                acc[m][0] = _mm512_dpbf16_ps(acc[m][0], pair, right[0]);
                acc[m][1] = _mm512_dpbf16_ps(acc[m][1], pair, right[1]);
            }
            b = b.add(2 * PANEL);
        }
        store(c, &acc);
    }
}

/// A mask of the lowest `count` of sixteen lanes.
fn mask(count: usize) -> u16 {
    if count >= 16 { u16::MAX } else { (1 << count) - 1 }
}

/// Two rows of a panel, or one row and zeros, interleaved column by column.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn both<const N: usize>(first: *const f32, second: Option<*const f32>) -> [__m512bh; N] {
    std::array::from_fn(|part| {
        // SAFETY: both are rows of a panel, which has `N` vectors.
        unsafe {
            let second =
                second.map_or_else(|| _mm512_setzero_ps(), |second| _mm512_load_ps(second.add(16 * part)));
            interleaved(_mm512_load_ps(first.add(16 * part)), second)
        }
    })
}

/// `first[0], second[0], first[1], ...`, rounded to bfloat16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn interleaved(first: __m512, second: __m512) -> __m512bh {
    const ORDER: [u16; 32] = {
        let mut order = [0; 32];
        let mut i = 0;
        while i < 16 {
            (order[2 * i], order[2 * i + 1]) = (i as u16, 16 + i as u16);
            i += 1;
        }
        order
    };
    // SAFETY: all of these are 64 bytes.
    unsafe {
        let rounded: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(second, first));
        std::mem::transmute(_mm512_permutexvar_epi16(
            std::mem::transmute::<[u16; 32], __m512i>(ORDER),
            rounded,
        ))
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load<const MR: usize>(c: *const f32, start: Start) -> [[__m512; 2]; MR] {
    let mut acc = [[_mm512_setzero_ps(); 2]; MR];
    let (from, step) = match start {
        Start::Zero => return acc,
        Start::Row(row) => (row, 0),
        Start::Output => (c, PANEL),
    };
    for m in 0..MR {
        // SAFETY: `from` has one row of the panel, or `MR` of them when `step` moves on.
        unsafe {
            acc[m] = [_mm512_load_ps(from.add(m * step)), _mm512_load_ps(from.add(m * step + 16))];
        }
    }
    acc
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store<const MR: usize>(c: *mut f32, acc: &[[__m512; 2]; MR]) {
    for m in 0..MR {
        // SAFETY: `c` has `MR` rows of the panel.
        unsafe {
            _mm512_store_ps(c.add(m * PANEL), acc[m][0]);
            _mm512_store_ps(c.add(m * PANEL + 16), acc[m][1]);
        }
    }
}

//! Kernels for AVX512-BF16, which add two terms at a time: 14 rows by two vectors of sums. The instruction is a
//! parameter of the loops, so that processors without it can test them.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::super::{PANEL, Start};

/// Rounding to bfloat16 and the sum of two products.
///
/// # Safety
/// Functions may only be called where the processor has AVX-512 and the instructions of the implementation.
trait Pairs {
    /// 32 bfloat16: those of `first`, then those of `second`.
    unsafe fn rounded(first: __m512, second: __m512) -> __m512i;
    /// `sums + a[1] * b[1] + a[0] * b[0]` in each lane, from left to right.
    unsafe fn add(sums: __m512, a: __m512i, b: __m512i) -> __m512;
    /// Prepares the initial value of a sum.
    unsafe fn start(sums: __m512) -> __m512;
}

/// AVX512-BF16.
struct Instruction;

impl Pairs for Instruction {
    #[inline(always)]
    unsafe fn rounded(first: __m512, second: __m512) -> __m512i {
        // SAFETY: the instruction is promised by the caller; both types are 64 bytes.
        unsafe { std::mem::transmute(_mm512_cvtne2ps_pbh(second, first)) }
    }

    #[inline(always)]
    unsafe fn add(sums: __m512, a: __m512i, b: __m512i) -> __m512 {
        // SAFETY: as above.
        unsafe {
            let a = std::mem::transmute::<__m512i, __m512bh>(a);
            let b = std::mem::transmute::<__m512i, __m512bh>(b);
            _mm512_dpbf16_ps(sums, a, b)
        }
    }

    #[inline(always)]
    unsafe fn start(sums: __m512) -> __m512 {
        sums // the instruction flushes it
    }
}

/// See [`super::super::Kernels::rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(in crate::gemm) unsafe fn rows<const MR: usize>(
    k: usize,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: promised by the caller, and the instructions are enabled here.
    unsafe { rows_by::<Instruction, MR>(k, a, a_stride, b, c, start) }
}

/// See [`super::super::Kernels::cols`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(in crate::gemm) unsafe fn cols<const MR: usize>(
    rows: &[u32],
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: as above.
    unsafe { cols_by::<Instruction, MR>(rows, a, b, c, start) }
}

#[inline(always)]
unsafe fn rows_by<P: Pairs, const MR: usize>(
    k: usize,
    mut a: *const f32,
    a_stride: usize,
    mut b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: the caller guarantees the extents of `a`, `b` and `c`, their 64-byte alignment and the instructions.
    unsafe {
        let mut acc = load::<P, MR>(k, c, start);
        let mut left = k;
        while left > 0 {
            let run = left.min(PANEL);
            // The pairs of each row within this panel. Columns past the last one are masked out, whatever they hold.
            let mut pairs = [[0u32; PANEL / 2]; MR];
            let (low, high) = (mask(run), mask(run.saturating_sub(16)));
            for m in 0..MR {
                let row = a.add(m * PANEL);
                let row = P::rounded(_mm512_maskz_load_ps(low, row), _mm512_maskz_load_ps(high, row.add(16)));
                pairs[m] = std::mem::transmute::<__m512i, [u32; PANEL / 2]>(row);
            }
            for i in 0..run.div_ceil(2) {
                let right = both::<P>(b, 2 * i + 1 < run);
                for m in 0..MR {
                    let pair = _mm512_set1_epi32(pairs[m][i] as i32);
                    acc[m][0] = P::add(acc[m][0], pair, right[0]);
                    acc[m][1] = P::add(acc[m][1], pair, right[1]);
                }
                b = b.wrapping_add(2 * PANEL);
            }
            a = a.wrapping_add(a_stride);
            left -= run;
        }
        store(c, &acc);
    }
}

#[inline(always)]
unsafe fn cols_by<P: Pairs, const MR: usize>(
    rows: &[u32],
    a: *const f32,
    mut b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: as in `rows_by`; every entry of `rows` is a row of `a`.
    unsafe {
        let mut acc = load::<P, MR>(rows.len(), c, start);
        for pair in rows.chunks(2) {
            let first = _mm512_maskz_loadu_ps(mask(MR), a.add(pair[0] as usize * PANEL));
            let second = match pair.get(1) {
                Some(&second) => _mm512_maskz_loadu_ps(mask(MR), a.add(second as usize * PANEL)),
                None => _mm512_setzero_ps(),
            };
            let left = interleaved::<P>(first, second);
            let left = std::mem::transmute::<__m512i, [u32; 16]>(left);
            let right = both::<P>(b, pair.len() == 2);
            for m in 0..MR {
                let pair = _mm512_set1_epi32(left[m] as i32);
                acc[m][0] = P::add(acc[m][0], pair, right[0]);
                acc[m][1] = P::add(acc[m][1], pair, right[1]);
            }
            b = b.wrapping_add(2 * PANEL);
        }
        store(c, &acc);
    }
}

/// A mask of the lowest `count` of sixteen lanes.
#[inline(always)]
fn mask(count: usize) -> u16 {
    if count >= 16 { u16::MAX } else { (1 << count) - 1 }
}

/// Two rows of a panel, or one row and zeros, interleaved column by column.
#[inline(always)]
unsafe fn both<P: Pairs>(rows: *const f32, two: bool) -> [__m512i; 2] {
    // SAFETY: one or two rows of a panel, as the caller says.
    unsafe {
        let mut second = [_mm512_setzero_ps(); 2];
        if two {
            second = [_mm512_load_ps(rows.add(PANEL)), _mm512_load_ps(rows.add(PANEL + 16))];
        }
        [
            interleaved::<P>(_mm512_load_ps(rows), second[0]),
            interleaved::<P>(_mm512_load_ps(rows.add(16)), second[1]),
        ]
    }
}

/// `first[0], second[0], first[1], ...`, rounded to bfloat16.
#[inline(always)]
unsafe fn interleaved<P: Pairs>(first: __m512, second: __m512) -> __m512i {
    const ORDER: [u16; 32] = {
        let mut order = [0; 32];
        let mut i = 0;
        while i < 16 {
            (order[2 * i], order[2 * i + 1]) = (i as u16, 16 + i as u16);
            i += 1;
        }
        order
    };
    // SAFETY: the order is 64 bytes; the instructions are promised by the caller.
    unsafe {
        let order = std::mem::transmute::<[u16; 32], __m512i>(ORDER);
        _mm512_permutexvar_epi16(order, P::rounded(first, second))
    }
}

#[inline(always)]
unsafe fn load<P: Pairs, const MR: usize>(k: usize, c: *const f32, start: Start) -> [[__m512; 2]; MR] {
    // SAFETY: `from` has one row of the panel, or `MR` of them when `step` moves on.
    unsafe {
        let mut acc = [[_mm512_setzero_ps(); 2]; MR];
        let (from, step) = match start {
            Start::Zero => return acc,
            Start::Row(row) => (row, 0),
            Start::Output => (c, PANEL),
        };
        for m in 0..MR {
            let sums = [0, 16].map(|column| _mm512_load_ps(from.add(m * step + column)));
            acc[m] = if k > 0 { sums.map(|sums| P::start(sums)) } else { sums };
        }
        acc
    }
}

#[inline(always)]
unsafe fn store<const MR: usize>(c: *mut f32, acc: &[[__m512; 2]; MR]) {
    for m in 0..MR {
        // SAFETY: `c` has `MR` rows of the panel.
        unsafe {
            _mm512_store_ps(c.add(m * PANEL), acc[m][0]);
            _mm512_store_ps(c.add(m * PANEL + 16), acc[m][1]);
        }
    }
}

/// The kernels on processors without the instruction: each lane by itself, in plain code.
#[cfg(test)]
pub(in crate::gemm) mod plain {
    use super::*;

    struct OneByOne;

    impl Pairs for OneByOne {
        #[inline(always)]
        unsafe fn rounded(first: __m512, second: __m512) -> __m512i {
            // SAFETY: a vector is sixteen floats or 32 halves of one.
            unsafe {
                let x: [f32; 32] = std::mem::transmute([first, second]);
                std::mem::transmute(x.map(|x| (super::super::rounded(x).to_bits() >> 16) as u16))
            }
        }

        #[inline(always)]
        unsafe fn add(sums: __m512, a: __m512i, b: __m512i) -> __m512 {
            // SAFETY: as above.
            unsafe {
                let sums: [f32; 16] = std::mem::transmute(sums);
                let [a, b]: [[[u16; 2]; 16]; 2] = std::mem::transmute([a, b]);
                let terms = |pair: [u16; 2]| pair.map(|x| f32::from_bits(u32::from(x) << 16));
                let sum = |i: usize| super::super::pair(sums[i], terms(a[i]), terms(b[i]));
                std::mem::transmute(std::array::from_fn::<f32, 16, _>(sum))
            }
        }

        #[inline(always)]
        unsafe fn start(sums: __m512) -> __m512 {
            sums
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(in crate::gemm) unsafe fn rows<const MR: usize>(
        k: usize,
        a: *const f32,
        a_stride: usize,
        b: *const f32,
        c: *mut f32,
        start: Start,
    ) {
        // SAFETY: promised by the caller, and the instructions are enabled here.
        unsafe { rows_by::<OneByOne, MR>(k, a, a_stride, b, c, start) }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(in crate::gemm) unsafe fn cols<const MR: usize>(
        rows: &[u32],
        a: *const f32,
        b: *const f32,
        c: *mut f32,
        start: Start,
    ) {
        // SAFETY: as above.
        unsafe { cols_by::<OneByOne, MR>(rows, a, b, c, start) }
    }
}

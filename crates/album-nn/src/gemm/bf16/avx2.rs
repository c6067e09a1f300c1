//! The kernels with AVX2 and FMA, which have no bfloat16 instructions: the bits are the same, but they are
//! slower than the f32 kernels.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::super::{PANEL, Start};

const WIDTH: usize = 8;

/// See [`super::super::Kernels::rows`].
#[target_feature(enable = "avx2,fma")]
pub(in crate::gemm) unsafe fn rows<const MR: usize>(
    k: usize,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: the caller guarantees the extents of `a`, `b` and `c` and their alignment.
    unsafe {
        tile::<MR>(k, |m, i| *a.add(i / PANEL * a_stride + m * PANEL + i % PANEL), b, c, start);
    }
}

/// See [`super::super::Kernels::cols`].
#[target_feature(enable = "avx2,fma")]
pub(in crate::gemm) unsafe fn cols<const MR: usize>(
    rows: &[u32],
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: as in `rows`; every entry of `rows` is a row of `a`.
    unsafe {
        tile::<MR>(rows.len(), |m, i| *a.add(rows[i] as usize * PANEL + m), b, c, start);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const MR: usize>(
    k: usize,
    a: impl Fn(usize, usize) -> f32,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    for column in (0..PANEL).step_by(WIDTH) {
        // SAFETY: `b` has `k` rows of the panel, `c` has `MR`, and a bias has one.
        unsafe {
            let mut acc = [_mm256_setzero_ps(); MR];
            for m in 0..MR {
                acc[m] = match start {
                    Start::Zero => acc[m],
                    Start::Row(row) => _mm256_load_ps(row.add(column)),
                    Start::Output => _mm256_load_ps(c.add(m * PANEL + column)),
                };
                // Flushing the start value is enough: `multiply_add` flushes every sum.
                acc[m] = if k > 0 { flushed(acc[m]) } else { acc[m] };
            }
            for i in (0..k).step_by(2) {
                // The second term of a pair is added first; the last pair may lack it.
                for i in [i + 1, i] {
                    let (inside, zero) = (i < k, _mm256_setzero_ps());
                    let right =
                        if inside { rounded(_mm256_load_ps(b.add(i * PANEL + column))) } else { zero };
                    for m in 0..MR {
                        let left = if inside { rounded(_mm256_set1_ps(a(m, i))) } else { zero };
                        acc[m] = multiply_add(left, right, acc[m]);
                    }
                }
            }
            for m in 0..MR {
                _mm256_store_ps(c.add(m * PANEL + column), acc[m]);
            }
        }
    }
}

/// See [`super::flushed`].
#[inline]
#[target_feature(enable = "avx2,fma")]
fn flushed(x: __m256) -> __m256 {
    let sign = _mm256_set1_ps(-0.0);
    let small = _mm256_cmp_ps::<_CMP_LT_OQ>(_mm256_andnot_ps(sign, x), _mm256_set1_ps(f32::MIN_POSITIVE));
    _mm256_blendv_ps(x, _mm256_and_ps(sign, x), small)
}

/// See [`super::rounded`].
#[inline]
#[target_feature(enable = "avx2,fma")]
fn rounded(x: __m256) -> __m256 {
    let bits = _mm256_castps_si256(flushed(x));
    let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(1 << 22));
    let is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
    let chosen = _mm256_blendv_ps(_mm256_castsi256_ps(up), _mm256_castsi256_ps(quiet), is_nan);
    _mm256_and_ps(chosen, _mm256_castsi256_ps(_mm256_set1_epi32(0xFFFF_0000_u32 as i32)))
}

/// See [`super::multiply_add`]; `c` is flushed already.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn multiply_add(a: __m256, b: __m256, c: __m256) -> __m256 {
    let sum = _mm256_fmadd_ps(a, b, c);
    let size = _mm256_andnot_ps(_mm256_set1_ps(-0.0), sum);
    let small = _mm256_cmp_ps::<_CMP_LE_OQ>(size, _mm256_set1_ps(f32::MIN_POSITIVE));
    let some = _mm256_cmp_ps::<_CMP_NEQ_OQ>(size, _mm256_setzero_ps());
    if _mm256_movemask_ps(_mm256_and_ps(small, some)) == 0 {
        return sum;
    }
    one_by_one(a, b, c)
}

/// The slow path, lane by lane, for sums that may be subnormal; they are rare.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn one_by_one(a: __m256, b: __m256, c: __m256) -> __m256 {
    // SAFETY: a vector is eight floats.
    let [a, b, c]: [[f32; WIDTH]; 3] = unsafe { std::mem::transmute([a, b, c]) };
    let sums: [f32; WIDTH] = std::array::from_fn(|i| super::multiply_add(a[i], b[i], c[i]));
    // SAFETY: eight floats are a vector.
    unsafe { std::mem::transmute(sums) }
}

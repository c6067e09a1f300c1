//! 512-bit kernels that add two terms at a time: 14 rows by two vectors of sums. The instruction is a parameter of
//! the loops, so that they run and are tested on processors without it.
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

/// The same in AVX-512F, BW and DQ. Unless `CAREFUL`, no sum may be subnormal or the smallest normal number; see
/// [`is_ordinary`].
struct Emulation<const CAREFUL: bool>;

impl<const CAREFUL: bool> Pairs for Emulation<CAREFUL> {
    #[inline(always)]
    unsafe fn rounded(first: __m512, second: __m512) -> __m512i {
        // SAFETY: the instructions are promised by the caller.
        unsafe {
            let (first, second) = (upper_halves(first), upper_halves(second));
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second)
        }
    }

    #[inline(always)]
    unsafe fn add(sums: __m512, a: __m512i, b: __m512i) -> __m512 {
        // SAFETY: as above.
        unsafe {
            let sums = multiply_add::<CAREFUL>(upper(a), upper(b), sums);
            multiply_add::<CAREFUL>(lower(a), lower(b), sums)
        }
    }

    #[inline(always)]
    unsafe fn start(sums: __m512) -> __m512 {
        // SAFETY: as above.
        if CAREFUL { unsafe { flushed(sums) } } else { sums }
    }
}

/// Sixteen bfloat16; see [`super::rounded`].
#[inline(always)]
unsafe fn upper_halves(x: __m512) -> __m256i {
    // SAFETY: the instructions are promised by the caller.
    unsafe {
        let bits = _mm512_castps_si512(flushed(x));
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        let digits = _mm512_mask_or_epi32(up, is_nan, bits, _mm512_set1_epi32(1 << 22));
        _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(digits))
    }
}

/// The second terms of sixteen pairs.
#[inline(always)]
unsafe fn upper(x: __m512i) -> __m512 {
    // SAFETY: the instructions are promised by the caller.
    unsafe { _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(0xFFFF_0000_u32 as i32))) }
}

/// The first terms of sixteen pairs.
#[inline(always)]
unsafe fn lower(x: __m512i) -> __m512 {
    // SAFETY: the instructions are promised by the caller.
    unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(x)) }
}

/// See [`super::flushed`].
#[inline(always)]
unsafe fn flushed(x: __m512) -> __m512 {
    const SUBNORMAL: i32 = 0x20;
    // SAFETY: the instructions are promised by the caller.
    unsafe {
        let small = _mm512_fpclass_ps_mask::<SUBNORMAL>(x);
        _mm512_mask_and_ps(x, small, x, _mm512_set1_ps(-0.0))
    }
}

/// See [`super::multiply_add`]; `c` is flushed already.
#[inline(always)]
unsafe fn multiply_add<const CAREFUL: bool>(a: __m512, b: __m512, c: __m512) -> __m512 {
    // SAFETY: the instructions are promised by the caller.
    unsafe {
        let sum = _mm512_fmadd_ps(a, b, c);
        if CAREFUL {
            let size = _mm512_abs_ps(sum);
            let small = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(size, _mm512_set1_ps(f32::MIN_POSITIVE));
            if _mm512_mask_cmp_ps_mask::<_CMP_NEQ_OQ>(small, size, _mm512_setzero_ps()) != 0 {
                return one_by_one(a, b, c);
            }
        }
        sum
    }
}

/// The slow path, lane by lane.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f")]
fn one_by_one(a: __m512, b: __m512, c: __m512) -> __m512 {
    // SAFETY: a vector is sixteen floats.
    let [a, b, c]: [[f32; 16]; 3] = unsafe { std::mem::transmute([a, b, c]) };
    let sums: [f32; 16] = std::array::from_fn(|i| super::multiply_add(a[i], b[i], c[i]));
    // SAFETY: sixteen floats are a vector.
    unsafe { std::mem::transmute(sums) }
}

/// The smallest exponents of some numbers, as biased in their bits. Zeros count as large.
struct Exponents(__m512i);

impl Exponents {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the instructions are promised by the caller, here and below.
        unsafe { Self(_mm512_set1_epi32(-1)) }
    }

    /// Notes sixteen factors, whose subnormal numbers will be flushed.
    #[inline(always)]
    unsafe fn note(&mut self, x: __m512) {
        // Without the sign, and with subnormal numbers wrapped around to the largest values.
        // SAFETY: see `new`.
        unsafe {
            let size = _mm512_slli_epi32::<1>(_mm512_castps_si512(x));
            self.0 = _mm512_min_epu32(self.0, _mm512_sub_epi32(size, _mm512_set1_epi32(1 << 24)));
        }
    }

    #[inline(always)]
    unsafe fn least(self) -> u32 {
        // SAFETY: see `new`.
        unsafe { (_mm512_reduce_min_epu32(self.0) >> 24) + 1 }
    }
}

/// Whether every sum of products of these factors is zero or above the smallest normal number, in any order: all
/// terms and all sums are multiples of the last digit of the smallest possible term.
fn is_ordinary(a: u32, b: u32) -> bool {
    // 2^(a - 127 - 7) * 2^(b - 127 - 7) > 2^-126
    a + b >= 143
}

/// The same for initial values.
#[inline(always)]
unsafe fn starts_ordinary<const MR: usize>(c: *const f32, start: Start) -> bool {
    let (from, rows) = match start {
        Start::Zero => return true,
        Start::Row(row) => (row, 1),
        Start::Output => (c, MR),
    };
    // 2^(exponent - 127 - 23) > 2^-126. Zeros wrap around to the largest value, subnormal numbers do not.
    const LEAST: u32 = 25 << 24;
    // SAFETY: the caller guarantees `rows` rows of the panel and the instructions.
    unsafe {
        let mut least = _mm512_set1_epi32(-1);
        for at in (0..rows * PANEL).step_by(16) {
            let size = _mm512_slli_epi32::<1>(_mm512_castps_si512(_mm512_load_ps(from.add(at))));
            least = _mm512_min_epu32(least, _mm512_sub_epi32(size, _mm512_set1_epi32(1)));
        }
        _mm512_reduce_min_epu32(least) >= LEAST - 1
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

/// [`rows`] without the instruction.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(in crate::gemm) unsafe fn rows_emulated<const MR: usize>(
    k: usize,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: promised by the caller, and the instructions are enabled here.
    unsafe {
        let [mut left, mut right] = [Exponents::new(), Exponents::new()];
        for i in (0..k).step_by(16) {
            let a = a.add(i / PANEL * a_stride + i % PANEL);
            for m in 0..MR {
                left.note(_mm512_maskz_load_ps(mask(k - i), a.add(m * PANEL)));
            }
        }
        for i in 0..2 * k {
            right.note(_mm512_load_ps(b.add(16 * i)));
        }
        if is_ordinary(left.least(), right.least()) && starts_ordinary::<MR>(c, start) {
            return rows_by::<Emulation<false>, MR>(k, a, a_stride, b, c, start);
        }
        for m in 0..MR {
            rows_by::<Emulation<true>, 1>(k, a.add(m * PANEL), a_stride, b, c.add(m * PANEL), start);
        }
    }
}

/// [`cols`] without the instruction.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(in crate::gemm) unsafe fn cols_emulated<const MR: usize>(
    rows: &[u32],
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    start: Start,
) {
    // SAFETY: as above; every entry of `rows` is a row of `a`.
    unsafe {
        let [mut left, mut right] = [Exponents::new(), Exponents::new()];
        for &row in rows {
            left.note(_mm512_maskz_loadu_ps(mask(MR), a.add(row as usize * PANEL)));
        }
        for i in 0..2 * rows.len() {
            right.note(_mm512_load_ps(b.add(16 * i)));
        }
        if is_ordinary(left.least(), right.least()) && starts_ordinary::<MR>(c, start) {
            return cols_by::<Emulation<false>, MR>(rows, a, b, c, start);
        }
        for m in 0..MR {
            cols_by::<Emulation<true>, 1>(rows, a.add(m), b, c.add(m * PANEL), start);
        }
    }
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

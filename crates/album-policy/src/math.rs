//! Scalar functions without branches or calls, so that loops over them are vectorised.

/// `2^x`, with `x` clipped to [-115, 115]; relative error below 3e-7.
#[inline(always)]
fn exp2(x: f32) -> f32 {
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the mantissa.
    const MAGIC: f32 = 12_582_912.0;
    let x = if x > -115.0 { x } else { -115.0 };
    let x = if x < 115.0 { x } else { 115.0 };
    let shifted = x + MAGIC;
    let f = x - (shifted - MAGIC);
    // Minimax polynomial of 2^f on |f| <= 1/2 (the Cephes coefficients).
    let mut p = 1.535_336_2e-4;
    for c in [1.339_887_4e-3, 9.618_437e-3, 5.550_332_5e-2, 0.240_226_48, std::f32::consts::LN_2, 1.0] {
        p = p * f + c;
    }
    f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) = x / (1 + e^(-2u))` with `u` the argument of tanh.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    // sqrt(8 / pi) * log2(e).
    const SLOPE: f32 = 2.302_208_2;
    x / (1.0 + exp2(-x * (x * x * (SLOPE * 0.044_715) + SLOPE)))
}

/// `x tanh(ln(1 + e^x))`.
#[inline(always)]
pub fn mish(x: f32) -> f32 {
    // With u = e^x, tanh(ln(1 + u)) = (u^2 + 2u) / (u^2 + 2u + 2); for positive x both sides are divided by u^2.
    let e = exp2(-std::f32::consts::LOG2_E * x.abs());
    let (above, rest) = if x > 0.0 { (2.0 * e + 1.0, 2.0 * e * e) } else { (e * (e + 2.0), 2.0) };
    x * (above / (above + rest))
}

/// The sum of a function of all entries, in 16 independent sums: a single one would wait for each addition.
#[inline(always)]
pub fn sum(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; 16];
    let (chunks, rest) = row.as_chunks::<16>();
    for chunk in chunks {
        for i in 0..16 {
            sums[i] += f(chunk[i]);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|&x| f(x)).sum::<f32>()
}

/// The dot product, likewise.
#[inline(always)]
pub fn dot(x: &[f32], y: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<16>(), y.as_chunks::<16>());
    for (x, y) in x.iter().zip(y) {
        for i in 0..16 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f32>() + x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum::<f32>()
}

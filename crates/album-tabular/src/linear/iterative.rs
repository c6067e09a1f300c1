//! BiCGSTAB solution of large components.

use super::Side;
use crate::sparse::Csr;

/// BiCGSTAB restarted on the true residual; where it stalls, the contraction `x <- b + T x` takes over.
pub(super) fn solve_iteratively(t: &Csr, b: &[f64], side: Side) -> Vec<f64> {
    let product = |x: &[f64]| if side == Side::Plain { t.multiply(x) } else { t.multiply_transposed(x) };
    let residual = |x: &[f64]| -> Vec<f64> {
        let tx = product(x);
        (0..b.len()).map(|i| b[i] - (x[i] - tx[i])).collect()
    };
    let size = |r: &[f64]| r.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    // The residual cannot be computed more accurately than this.
    let enough = |x: &[f64]| 4.0 * f64::EPSILON * (size(b) + 2.0 * size(x));
    let mut x = b.to_vec();
    let mut r = residual(&x);
    for _ in 0..20 {
        let correction = bicgstab(&product, &r);
        let candidate: Vec<f64> = x.iter().zip(&correction).map(|(x, c)| x + c).collect();
        let after = residual(&candidate);
        if !(size(&after) < size(&r)) {
            break;
        }
        (x, r) = (candidate, after);
        if size(&r) <= enough(&x) {
            return x;
        }
    }
    loop {
        let next: Vec<f64> = x.iter().zip(&r).map(|(x, r)| x + r).collect();
        let after = residual(&next);
        if size(&after) <= enough(&next) || !(size(&after) < size(&r)) {
            return next;
        }
        (x, r) = (next, after);
    }
}

/// A few hundred steps of BiCGSTAB on `(I - T) x = b` from 0.
fn bicgstab(product: &dyn Fn(&[f64]) -> Vec<f64>, b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let apply = |x: &[f64]| -> Vec<f64> {
        let tx = product(x);
        (0..n).map(|i| x[i] - tx[i]).collect()
    };
    let mut x = vec![0.0; n];
    let mut r = b.to_vec();
    let shadow = r.clone();
    let mut p = r.clone();
    let mut rho = dot(&shadow, &r);
    let target = 1e-15 * dot(b, b).sqrt();
    for _ in 0..400 {
        let v = apply(&p);
        let alpha = rho / dot(&shadow, &v);
        let s: Vec<f64> = (0..n).map(|i| r[i] - alpha * v[i]).collect();
        let t = apply(&s);
        let omega = dot(&t, &s) / dot(&t, &t);
        if !alpha.is_finite() || !omega.is_finite() {
            break; // Breakdown: keep the current iterate.
        }
        for i in 0..n {
            x[i] += alpha * p[i] + omega * s[i];
            r[i] = s[i] - omega * t[i];
        }
        let next = dot(&shadow, &r);
        if dot(&r, &r).sqrt() <= target || next == 0.0 {
            break;
        }
        let beta = next / rho * (alpha / omega);
        rho = next;
        for i in 0..n {
            p[i] = r[i] + beta * (p[i] - omega * v[i]);
        }
    }
    x
}

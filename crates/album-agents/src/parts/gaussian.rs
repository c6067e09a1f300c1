//! Gaussian policies with constant deviation 1.

use crate::algorithm::{Decide, Sizes};
use album_nn::{Mlp, MlpSpec, Var};

/// The network of the mean.
pub fn spec(sizes: Sizes, hidden: &[usize]) -> MlpSpec {
    MlpSpec::new(sizes.s, hidden, sizes.a).output_scale(0.01)
}

/// `log N(a; mean, I)` of each row.
pub fn log_density<'t>(a: Var<'t>, mean: Var<'t>) -> Var<'t> {
    let half_log_tau = 0.5 * std::f32::consts::TAU.ln();
    -0.5 * (a - mean).square().sum_cols() - half_log_tau * a.cols() as f32
}

/// Acts by the mean.
pub fn mean(actor: &Mlp) -> Decide {
    let actor = actor.clone();
    Box::new(move |x| x.tape.apply_frozen(&actor, x.s))
}

//! Flow policies: a vector field v(s, x, t) that carries noise at t = 0 to actions at t = 1.

use crate::algorithm::Inputs;
use album_nn::{Mlp, MlpSpec, Var};

/// The network of a vector field over `x` columns: it sees state, point and time.
pub fn field_spec(s: usize, x: usize, hidden: &[usize]) -> MlpSpec {
    MlpSpec::new(s + x + 1, hidden, x)
}

/// A policy that turns noise into `x` columns of actions in one step: it sees state and noise.
pub fn one_step_spec(s: usize, x: usize, hidden: &[usize]) -> MlpSpec {
    MlpSpec::new(s + x, hidden, x)
}

/// Whether gradients reach the weights of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// They stop.
    Frozen,
    /// They pass through all steps.
    Trained,
}

/// Euler's method from noise `x` at t = 0 to t = 1, then clipped to [-1, 1]. Not clipped in between.
pub fn euler<'t>(field: &Mlp, s: Var<'t>, mut x: Var<'t>, steps: usize, through: Through) -> Var<'t> {
    let tape = s.tape();
    for i in 0..steps {
        let t = tape.filled(s.rows(), 1, i as f32 / steps as f32);
        let input = tape.concat_cols(&[s, x, t]);
        let v = match through {
            Through::Frozen => tape.apply_frozen(field, input),
            Through::Trained => tape.apply(field, input),
        };
        x = x + v / steps as f32;
    }
    x.clip(-1.0, 1.0)
}

/// The squared error of flow matching, entry by entry: `(v(s, x_t, t) - (a - x_0))^2` with `x_t = (1-t) x_0 + t a`. Draws
/// `x_0` from N(0, I), then `t` from U[0, 1].
pub fn matching_error<'t>(x: &Inputs<'t, '_>, field: &Mlp, s: Var<'t>, a: Var<'t>) -> Var<'t> {
    let x_0 = x.normal(a.cols());
    let t = x.uniform(1);
    let x_t = (1.0 - t) * x_0 + t * a;
    let v = x.tape.apply(field, x.tape.concat_cols(&[s, x_t, t]));
    (v - (a - x_0)).square()
}

//! The definition of the program's four constraint families.
//!
//! Every row reads `g <= 0` with
//!
//! ```text
//! g_B  = y_1 - Q(s,a)      y_1 = R + gamma P V        g_E  = Q(s,a) - V(s)
//! g_KQ = y_K - Q(s,a)                                 g_KV = y_K - V(s)
//! ```
//!
//! so a family is given by the coefficients of `Q(s,a)`, `V(s)`, `y_1` and `y_K`. The linear program, its
//! certificate, the hinge relaxation and the stationarity conditions are all built from these four numbers.

use crate::mutation::{Mutation, planted};
use serde::Serialize;
use std::ops::{Index, IndexMut};

/// A constraint family, one row per pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `y_1 <= Q`
    B,
    /// `Q <= V`
    E,
    /// `y_K <= Q`
    KQ,
    /// `y_K <= V`
    KV,
}

/// A row of a family: `q Q(s,a) + v V(s) + y_1 y_1(s,a) + y_k y_K(s,a) <= 0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Coefficient of `Q(s,a)`.
    pub q: f64,
    /// Coefficient of `V(s)`.
    pub v: f64,
    /// Coefficient of the one-step target.
    pub y_1: f64,
    /// Coefficient of the K-step target.
    pub y_k: f64,
}

impl Family {
    /// All four families, in the order of their rows.
    pub const ALL: [Family; 4] = [Family::B, Family::E, Family::KQ, Family::KV];

    /// The coefficients of its rows.
    pub fn terms(self) -> Terms {
        let zero = Terms { q: 0.0, v: 0.0, y_1: 0.0, y_k: 0.0 };
        match self {
            Family::B => Terms { q: -1.0, y_1: 1.0, ..zero },
            Family::E if planted(Mutation::SignOfE) => Terms { q: -1.0, v: 1.0, ..zero },
            Family::E => Terms { q: 1.0, v: -1.0, ..zero },
            Family::KQ => Terms { q: -1.0, y_k: 1.0, ..zero },
            Family::KV if planted(Mutation::SignOfKv) => Terms { v: 1.0, y_k: -1.0, ..zero },
            Family::KV => Terms { v: -1.0, y_k: 1.0, ..zero },
        }
    }
}

/// One value per family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PerFamily<T> {
    /// For `y_1 <= Q`.
    pub b: T,
    /// For `Q <= V`.
    pub e: T,
    /// For `y_K <= Q`.
    pub kq: T,
    /// For `y_K <= V`.
    pub kv: T,
}

impl<T> PerFamily<T> {
    /// Computes the value of each family.
    pub fn new(mut make: impl FnMut(Family) -> T) -> Self {
        PerFamily { b: make(Family::B), e: make(Family::E), kq: make(Family::KQ), kv: make(Family::KV) }
    }

    /// The four values in the order of [`Family::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.b, &self.e, &self.kq, &self.kv].into_iter()
    }
}

impl<T> Index<Family> for PerFamily<T> {
    type Output = T;

    fn index(&self, family: Family) -> &T {
        match family {
            Family::B => &self.b,
            Family::E => &self.e,
            Family::KQ => &self.kq,
            Family::KV => &self.kv,
        }
    }
}

impl<T> IndexMut<Family> for PerFamily<T> {
    fn index_mut(&mut self, family: Family) -> &mut T {
        match family {
            Family::B => &mut self.b,
            Family::E => &mut self.e,
            Family::KQ => &mut self.kq,
            Family::KV => &mut self.kv,
        }
    }
}

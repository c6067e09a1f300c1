//! Action spaces: continuous within bounds, or discrete.

use serde::{Deserialize, Serialize};

/// The action space of a dataset in the units of its recording.
///
/// Internally, continuous actions are within [-1, 1], as networks use them; externally they have their
/// physical units. A discrete action is its index everywhere.
///
/// ```
/// use album_data::ActionSpace;
///
/// let space = ActionSpace::Continuous { low: vec![-2.0, 0.0], high: vec![2.0, 100.0] };
/// let mut action = [1.0, 25.0];
/// space.from_physical(&mut action);
/// assert_eq!(action, [0.5, -0.5]);
/// space.to_physical(&mut action);
/// assert_eq!(action, [1.0, 25.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ActionSpace {
    /// A box, with one pair of bounds per action dimension.
    Continuous {
        /// The lower bound of each dimension.
        low: Vec<f32>,
        /// The upper bound of each dimension.
        high: Vec<f32>,
    },
    /// One of `n` choices, stored as its index.
    Discrete {
        /// Number of choices.
        n: usize,
    },
}

impl ActionSpace {
    /// The box [-1, 1] of `dim` dimensions, where internal and physical actions are equal.
    pub fn unit(dim: usize) -> Self {
        Self::Continuous { low: vec![-1.0; dim], high: vec![1.0; dim] }
    }

    /// Dimension of a stored action: 1 for a discrete action.
    pub fn dim(&self) -> usize {
        match self {
            Self::Continuous { low, .. } => low.len(),
            Self::Discrete { .. } => 1,
        }
    }

    /// Whether this is the box [-1, 1].
    pub fn is_unit(&self) -> bool {
        match self {
            Self::Continuous { low, high } => {
                low.iter().all(|&x| x == -1.0) && high.iter().all(|&x| x == 1.0)
            }
            Self::Discrete { .. } => false,
        }
    }

    /// Converts actions within [-1, 1] to physical ones, row by row. With bounds of ±1, the bits do not
    /// change.
    pub fn to_physical(&self, actions: &mut [f32]) {
        self.each(actions, |x, low, high| low + (x + 1.0) * 0.5 * (high - low));
    }

    /// Converts physical actions to those within [-1, 1], row by row: the inverse of
    /// [`to_physical`](Self::to_physical).
    #[allow(
        clippy::wrong_self_convention,
        reason = "the pair of `to_physical`: the space converts, it is not made"
    )]
    pub fn from_physical(&self, actions: &mut [f32]) {
        self.each(actions, |x, low, high| (x - low) / (high - low) * 2.0 - 1.0);
    }

    /// In double precision, so that a round trip changes at most the last bit.
    fn each(&self, actions: &mut [f32], f: impl Fn(f64, f64, f64) -> f64) {
        let Self::Continuous { low, high } = self else { return };
        if self.is_unit() || low.is_empty() {
            return;
        }
        for row in actions.chunks_mut(low.len()) {
            for ((x, &low), &high) in row.iter_mut().zip(low).zip(high) {
                if (low, high) != (-1.0, 1.0) {
                    *x = f(f64::from(*x), f64::from(low), f64::from(high)) as f32;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_box_changes_no_bit() {
        let numbers = [0.1f32, -0.999_99, 1.0, -0.0, 3.5e-42];
        let mut actions = numbers;
        ActionSpace::unit(5).to_physical(&mut actions);
        ActionSpace::unit(5).from_physical(&mut actions);
        assert_eq!(actions.map(f32::to_bits), numbers.map(f32::to_bits));
        let mixed = ActionSpace::Continuous { low: vec![-1.0, 0.0], high: vec![1.0, 4.0] };
        let mut actions = [-0.0f32, 3.0];
        mixed.from_physical(&mut actions);
        assert_eq!(actions.map(f32::to_bits), [-0.0f32, 0.5].map(f32::to_bits));
    }

    #[test]
    fn out_and_in_again() {
        let space = ActionSpace::Continuous { low: vec![-7.3], high: vec![0.11] };
        for i in -100..=100 {
            let x = i as f32 / 100.0;
            let mut action = [x];
            space.to_physical(&mut action);
            space.from_physical(&mut action);
            assert!((action[0] - x).abs() < 1e-6, "{x} {action:?}");
        }
    }

    #[test]
    fn choices_stay_as_they_are() {
        let space = ActionSpace::Discrete { n: 7 };
        let mut actions = [0.0, 6.0];
        space.to_physical(&mut actions);
        assert_eq!((actions, space.dim(), space.is_unit()), ([0.0, 6.0], 1, false));
        let text = serde_json::to_string(&space).unwrap();
        assert_eq!(text, r#"{"kind":"discrete","n":7}"#);
        assert_eq!(serde_json::from_str::<ActionSpace>(&text).unwrap(), space);
    }
}

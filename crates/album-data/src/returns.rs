//! Discounted returns along recorded trajectories.

/// The discounted return of every suffix: `G[t] = r[t] + gamma * mask[t] * G[t+1]`, where nothing follows the
/// end of a trajectory, the last row of the data, or a mask of 0. One backward pass.
///
/// On trajectories that visit each state once, with one action per state, this is the optimal value of the
/// empirical model.
///
/// ```
/// use album_data::returns::suffix_returns;
/// let returns = suffix_returns(&[1.0, 2.0, 4.0], None, &[false, true, true], 0.5);
/// assert_eq!(returns, [2.0, 2.0, 4.0]);
/// ```
///
/// # Panics
///
/// If the slices differ in length.
pub fn suffix_returns(rewards: &[f64], masks: Option<&[f64]>, ends: &[bool], gamma: f64) -> Vec<f64> {
    assert_eq!(rewards.len(), ends.len(), "rewards and ends differ in length");
    if let Some(masks) = masks {
        assert_eq!(rewards.len(), masks.len(), "rewards and masks differ in length");
    }
    let mut returns = vec![0.0; rewards.len()];
    let mut next = 0.0;
    for t in (0..rewards.len()).rev() {
        let mask = masks.map_or(1.0, |masks| masks[t]);
        // A branch rather than a product, since 0 times infinity is not 0.
        let follows = if ends[t] || mask == 0.0 { 0.0 } else { gamma * mask * next };
        next = rewards[t] + follows;
        returns[t] = next;
    }
    returns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn a_mask_cuts_what_follows() {
        let rewards = [1.0, 1.0, 1.0];
        let masks = [1.0, 0.0, 1.0];
        let ends = [false, false, true];
        assert_eq!(suffix_returns(&rewards, Some(&masks), &ends, 0.5), [1.5, 1.0, 1.0]);
    }

    #[test]
    fn infinity_does_not_leak_over_an_end() {
        let rewards = [1.0, f64::NEG_INFINITY];
        assert_eq!(suffix_returns(&rewards, None, &[true, true], 0.9)[0], 1.0);
        let masks = [0.0, 1.0];
        assert_eq!(suffix_returns(&rewards, Some(&masks), &[false, true], 0.9)[0], 1.0);
    }

    #[test]
    fn no_rows() {
        assert!(suffix_returns(&[], None, &[], 0.9).is_empty());
    }

    proptest! {
        #[test]
        fn equals_the_forward_sum(
            rows in vec((-1.0..1.0f64, 0.0..1.0f64, proptest::bool::weighted(0.1)), 0..60),
            gamma in 0.0..1.0f64,
        ) {
            let rewards: Vec<f64> = rows.iter().map(|row| row.0).collect();
            let masks: Vec<f64> = rows.iter().map(|row| row.1).collect();
            let ends: Vec<bool> = rows.iter().map(|row| row.2).collect();
            let returns = suffix_returns(&rewards, Some(&masks), &ends, gamma);
            for start in 0..rows.len() {
                let (mut sum, mut weight) = (0.0, 1.0);
                for t in start..rows.len() {
                    sum += weight * rewards[t];
                    if ends[t] {
                        break;
                    }
                    weight *= gamma * masks[t];
                }
                prop_assert!((returns[start] - sum).abs() < 1e-12);
            }
        }
    }
}

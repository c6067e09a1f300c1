//! Discounted returns along recorded trajectories.

/// The discounted return of every suffix: `G[t] = r[t] + gamma * mask[t] * G[t+1]`,
/// where nothing follows a row that ends a trajectory, the last row of the data,
/// or a mask of 0. One backward pass.
///
/// On trajectories that each visit their states once, with one action per state,
/// this is the optimal value of the empirical model.
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

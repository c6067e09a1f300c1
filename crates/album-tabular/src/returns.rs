//! Returns of the recorded trajectories.

use crate::EmpiricalMdp;
use album_data::returns::suffix_returns;

/// `G_D(s,a)`: the best discounted return of a recorded trajectory from an occurrence of the pair to its end.
///
/// Two passes: the return of every suffix, backwards along each trajectory; then the maximum over the
/// occurrences of a pair. Only trajectories that end in an absorbing state count, because the return of a
/// truncated one says nothing about what follows; a pair without such a trajectory gets `None`.
pub fn best_dataset_return(data: &EmpiricalMdp) -> Vec<Option<f64>> {
    // Returns are sums of R_D, as in the paper; with deterministic rewards that is the recorded reward.
    let rewards: Vec<f64> = data.row_pair.iter().map(|&pair| data.mdp.reward()[pair as usize]).collect();
    let returns = suffix_returns(&rewards, None, &data.row_end, data.mdp.gamma());
    let mut best = vec![None; data.mdp.pairs()];
    let mut complete = false;
    for row in (0..data.rows()).rev() {
        if data.row_end[row] {
            complete = data.ends_absorbed(row);
        }
        let entry = &mut best[data.row_pair[row] as usize];
        if complete && entry.is_none_or(|old| returns[row] > old) {
            *entry = Some(returns[row]);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TabularDataset;

    #[test]
    fn the_best_of_two_trajectories_counts_and_cut_ones_do_not() {
        let mut data = TabularDataset::default();
        data.push(0, 0, 1.0, 1, false);
        data.push(1, 0, 2.0, 9, true);
        data.push(0, 0, 1.0, 1, false);
        data.push(1, 1, 4.0, 9, true);
        data.push(2, 0, 5.0, 0, true); // truncated in a state that other rows leave
        let e = EmpiricalMdp::new(&data, 0.5).unwrap();
        assert_eq!(best_dataset_return(&e), vec![Some(3.0), Some(2.0), Some(4.0), None]);
    }
}

//! MudWorld as training data for networks, and the exact value of any policy in it.

use crate::{ACTIONS, Behaviour, MudWorld, TabularDataset, TabularError, policy_value};
use album_data::{ActionSpace, Dataset, Rows};

/// The encoding of a cell for networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Row and column as two numbers from -1 to 1.
    Coordinates,
    /// One-hot row and one-hot column: `2 size` numbers.
    OneHot,
}

impl MudWorld {
    /// The observation of `cell`.
    ///
    /// ```
    /// use album_tabular::{Encoding, MudWorld};
    /// let world = MudWorld::new(3, 0);
    /// assert_eq!(world.observation(5, Encoding::Coordinates), [0.0, 1.0]);
    /// assert_eq!(world.observation(5, Encoding::OneHot), [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    /// ```
    pub fn observation(&self, cell: usize, encoding: Encoding) -> Vec<f32> {
        let (row, column) = (cell / self.size(), cell % self.size());
        match encoding {
            Encoding::Coordinates => {
                let scaled = |x: usize| 2.0 * x as f32 / (self.size() - 1) as f32 - 1.0;
                vec![scaled(row), scaled(column)]
            }
            Encoding::OneHot => {
                let mut hot = vec![0.0; 2 * self.size()];
                hot[row] = 1.0;
                hot[self.size() + column] = 1.0;
                hot
            }
        }
    }

    /// One of the paper's two datasets as transitions with discrete actions. Entering the goal has mask 0:
    /// nothing follows. An episode cut after its last step counts as truncated.
    ///
    /// ```
    /// use album_tabular::{Behaviour, Encoding, MudWorld, truth::Truth};
    /// let world = MudWorld::new(10, 0);
    /// let data = world.recorded(Behaviour::DownRight, 0.95, Encoding::Coordinates)?;
    /// assert_eq!(data.len(), 2000 * 18);
    /// let truth = Truth::of(&data, 0.95)?;
    /// assert_eq!(truth.states(), 99);
    /// # Ok::<(), album_tabular::TabularError>(())
    /// ```
    pub fn recorded(
        &self,
        behaviour: Behaviour,
        gamma: f64,
        encoding: Encoding,
    ) -> Result<Dataset, TabularError> {
        self.encode(&self.dataset(behaviour, gamma)?, encoding)
    }

    /// Encodes recorded cells as transitions.
    pub fn encode(&self, recorded: &TabularDataset, encoding: Encoding) -> Result<Dataset, TabularError> {
        let mut rows =
            Rows { observation_dim: self.observation(0, encoding).len(), action_dim: 1, ..Rows::default() };
        let mut push = |cell: i64, action: i64, reward: f64, mask: bool, last: bool| {
            rows.observations.extend(self.observation(cell as usize, encoding));
            rows.actions.push(action as f32);
            rows.rewards.push(reward as f32);
            rows.masks.push(if mask { 1.0 } else { 0.0 });
            rows.terminals.push(last);
        };
        for (i, end) in recorded.trajectory_ends().into_iter().enumerate() {
            let next = recorded.next_states[i];
            let goes_on = next as usize != self.goal();
            push(recorded.states[i], recorded.actions[i], recorded.rewards[i], goes_on, false);
            if end {
                push(next, 0, 0.0, true, true);
            }
        }
        Ok(Dataset::in_space(rows, ActionSpace::Discrete { n: ACTIONS.len() })?)
    }

    /// The exact value of a policy in the world itself, cell by cell; the policy gives the probabilities of
    /// the four actions.
    pub fn value_of_policy(
        &self,
        gamma: f64,
        mut policy: impl FnMut(usize) -> Vec<f64>,
    ) -> Result<Vec<f64>, TabularError> {
        let mut probabilities = Vec::with_capacity(4 * self.size() * self.size());
        for cell in 0..self.size() * self.size() {
            probabilities.extend(crate::truth::check_distribution(cell, policy(cell), ACTIONS.len())?);
        }
        Ok(policy_value(&self.mdp(gamma)?, &probabilities).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EmpiricalMdp, Lblp, Solver, max_difference, solve, truth::Truth, value_iteration};

    #[test]
    fn encoded_data_has_the_values_of_the_tabular_one() {
        let world = MudWorld::new(12, 3);
        for behaviour in [Behaviour::DownRight, Behaviour::EpsGreedy] {
            let tabular = world.dataset(behaviour, 0.95).unwrap();
            let empirical = EmpiricalMdp::new(&tabular, 0.95).unwrap();
            let solution = solve(&Lblp::of_data(&empirical, 0.1, 0.05, 1).unwrap(), Solver::Bellman).unwrap();
            for encoding in [Encoding::Coordinates, Encoding::OneHot] {
                let data = world.encode(&tabular, encoding).unwrap();
                assert_eq!(data.len(), tabular.len());
                let truth = Truth::of(&data, 0.95).unwrap();
                assert_eq!(truth.states(), empirical.mdp.decision_states());
                for pair in 0..empirical.mdp.pairs() {
                    let cell = empirical.pair_state_label(pair) as usize;
                    let state = truth.state_of(&world.observation(cell, encoding)).unwrap();
                    let action = empirical.pair_actions[pair] as usize;
                    let q = truth.q(state, action).unwrap();
                    assert!((q - solution.q[pair]).abs() < 1e-5, "rewards are rounded to f32 on the way");
                }
            }
        }
    }

    #[test]
    fn the_value_of_the_best_policy_is_the_value_of_the_world() {
        let world = MudWorld::new(9, 1);
        let mdp = world.mdp(0.9).unwrap();
        let (q, v) = value_iteration(&mdp, 1e-13);
        let best = |cell: usize| {
            let q = &q[mdp.pairs_of(cell)];
            let best = (0..4).fold(0, |best, a| if q[a] > q[best] { a } else { best });
            (0..4).map(|a| f64::from(u8::from(a == best))).collect()
        };
        let values = world.value_of_policy(0.9, best).unwrap();
        assert!(max_difference(&values, &v) < 1e-10);
        assert!(world.value_of_policy(0.9, |_| vec![0.5; 4]).is_err());
    }
}

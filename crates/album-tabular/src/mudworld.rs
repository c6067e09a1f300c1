//! MudWorld: a square grid with muddy cells that are expensive to enter.
//!
//! The agent starts in the top-left cell and must reach the bottom-right one. Entering a muddy cell costs
//! 3.02, any other cell 0.02; entering the goal pays 1 on top and ends the episode. Actions move one cell; an
//! action that would leave the grid leaves the agent in place (and it pays for its own cell again). Cells are
//! muddy independently with probability 0.35; the start and the goal are kept dry, so rewards lie in [-3.02,
//! 0.98] for every seed.
//!
//! A layout is redrawn if most dry cells have no dry path to the goal: there waiting forever (-0.4 at gamma =
//! 0.95) beats crossing the mud, near-optimal agents never arrive, and the data is unlike the paper's.

use crate::{Mdp, TabularDataset, TabularError, value_iteration};
use album_base::rng;
use rand::RngExt;

/// The four actions, in the order of their indices.
pub const ACTIONS: [&str; 4] = ["Up", "Down", "Left", "Right"];
const DOWN: usize = 1;
const RIGHT: usize = 3;

/// Fraction of muddy cells.
pub const MUD_PROBABILITY: f64 = 0.35;
const MUD_COST: f64 = 3.02;
const DRY_COST: f64 = 0.02;

/// A MudWorld layout.
#[derive(Clone, Debug)]
pub struct MudWorld {
    size: usize,
    seed: u64,
    mud: Vec<bool>,
}

impl MudWorld {
    /// The 100 x 100 world of the paper.
    pub const SIZE: usize = 100;

    /// Draws a world of `size` x `size` cells.
    pub fn new(size: usize, seed: u64) -> Self {
        assert!((2..=10_000).contains(&size), "a MudWorld has 2 to 10,000 cells a side, not {size}");
        let mut rng = rng::stream(seed, "mudworld/layout");
        loop {
            let mut mud: Vec<bool> = (0..size * size).map(|_| rng.random_bool(MUD_PROBABILITY)).collect();
            mud[0] = false;
            mud[size * size - 1] = false;
            let world = MudWorld { size, seed, mud };
            if world.goal_is_worth_reaching() {
                return world;
            }
        }
    }

    /// Whether more than half of the dry cells have a dry path to the goal.
    fn goal_is_worth_reaching(&self) -> bool {
        let mut seen = vec![false; self.mud.len()];
        let mut open = vec![self.goal()];
        seen[self.goal()] = true;
        while let Some(cell) = open.pop() {
            for next in (0..ACTIONS.len()).map(|action| self.next(cell, action)) {
                if !seen[next] && !self.mud[next] {
                    seen[next] = true;
                    open.push(next);
                }
            }
        }
        let count = |cells: &[bool], what: bool| cells.iter().filter(|&&cell| cell == what).count();
        2 * count(&seen, true) > count(&self.mud, false)
    }

    /// Side length in cells.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether each cell is muddy, row by row from the top.
    pub fn mud(&self) -> &[bool] {
        &self.mud
    }

    /// The goal: the bottom-right cell.
    pub fn goal(&self) -> usize {
        self.size * self.size - 1
    }

    /// The cell that `action` leads to.
    pub fn next(&self, cell: usize, action: usize) -> usize {
        let (row, column) = (cell / self.size, cell % self.size);
        match action {
            0 if row > 0 => cell - self.size,
            1 if row + 1 < self.size => cell + self.size,
            2 if column > 0 => cell - 1,
            3 if column + 1 < self.size => cell + 1,
            _ => cell,
        }
    }

    /// The reward for entering `cell`.
    pub fn reward(&self, cell: usize) -> f64 {
        let cost = if self.mud[cell] { MUD_COST } else { DRY_COST };
        if cell == self.goal() { 1.0 - cost } else { -cost }
    }

    /// The world as an MDP of `size^2` states and four actions each. The goal is terminal: its actions stay
    /// there with reward 0.
    pub fn mdp(&self, gamma: f64) -> Result<Mdp, TabularError> {
        let pairs: Vec<_> = (0..self.size * self.size)
            .map(|cell| {
                (0..ACTIONS.len())
                    .map(|action| {
                        let next = if cell == self.goal() { cell } else { self.next(cell, action) };
                        let reward = if cell == self.goal() { 0.0 } else { self.reward(next) };
                        (reward, vec![(next, 1.0)])
                    })
                    .collect()
            })
            .collect();
        Mdp::new(gamma, pairs.len(), &pairs)
    }

    /// The `down-right` dataset: from the start, down or right with equal probability, never off the grid, so
    /// every episode reaches the goal after `2 (size - 1)` steps.
    pub fn down_right(&self, episodes: usize) -> TabularDataset {
        let mut rng = rng::stream(self.seed, "mudworld/down-right");
        let mut data = TabularDataset::default();
        for _ in 0..episodes {
            let mut cell = 0;
            while cell != self.goal() {
                let action = match (self.next(cell, DOWN) == cell, self.next(cell, RIGHT) == cell) {
                    (true, _) => RIGHT,
                    (_, true) => DOWN,
                    _ if rng.random_bool(0.5) => DOWN,
                    _ => RIGHT,
                };
                self.record(&mut data, &mut cell, action, false);
            }
        }
        data
    }

    /// The `eps-greedy` dataset: from a uniformly drawn non-goal cell, the optimal action of the world with
    /// probability `1 - epsilon` and a uniform one otherwise, for at most `steps` steps.
    pub fn eps_greedy(
        &self,
        gamma: f64,
        episodes: usize,
        steps: usize,
        epsilon: f64,
    ) -> Result<TabularDataset, TabularError> {
        let mdp = self.mdp(gamma)?;
        let (q, _) = value_iteration(&mdp, 1e-10);
        let greedy: Vec<usize> = (0..self.size * self.size)
            .map(|cell| {
                let q = &q[mdp.pairs_of(cell)];
                (0..ACTIONS.len()).fold(0, |best, a| if q[a] > q[best] { a } else { best })
            })
            .collect();
        let mut rng = rng::stream(self.seed, "mudworld/eps-greedy");
        let mut data = TabularDataset::default();
        for _ in 0..episodes {
            let mut cell = rng.random_range(0..self.goal());
            for step in 1..=steps {
                let explore = rng.random_bool(epsilon);
                let action = if explore { rng.random_range(0..ACTIONS.len()) } else { greedy[cell] };
                self.record(&mut data, &mut cell, action, step == steps);
                if cell == self.goal() {
                    break;
                }
            }
        }
        Ok(data)
    }

    /// One of the paper's two datasets by name: `down-right` (2,000 episodes) or `eps-greedy` (300 episodes of at
    /// most 400 steps, epsilon 0.02).
    pub fn dataset(&self, behaviour: Behaviour, gamma: f64) -> Result<TabularDataset, TabularError> {
        match behaviour {
            Behaviour::DownRight => Ok(self.down_right(2000)),
            Behaviour::EpsGreedy => self.eps_greedy(gamma, 300, 400, 0.02),
        }
    }

    fn record(&self, data: &mut TabularDataset, cell: &mut usize, action: usize, cut: bool) {
        let next = self.next(*cell, action);
        let end = cut || next == self.goal();
        data.push(*cell as i64, action as i64, self.reward(next), next as i64, end);
        *cell = next;
    }
}

/// The behaviour policy of a MudWorld dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Down or right at random.
    DownRight,
    /// Near-optimal, from random starts.
    EpsGreedy,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_world_is_the_one_of_the_appendix() {
        let world = MudWorld::new(MudWorld::SIZE, 0);
        let share = world.mud().iter().filter(|&&m| m).count() as f64 / 1e4;
        assert!((share - 0.35).abs() < 0.02, "{share}");
        let mdp = world.mdp(0.95).unwrap();
        assert_eq!((mdp.states(), mdp.pairs()), (10_000, 40_000));
        assert!(mdp.is_deterministic());
        assert_eq!(mdp.reward_range(), (-3.02, 0.98));
        assert_eq!(world.next(0, 0), 0);
        assert_eq!(world.next(0, 1), 100);
        assert_eq!(world.next(0, 2), 0);
        assert_eq!(world.next(0, 3), 1);
        assert_eq!(world.next(9998, 3), 9999);
    }

    #[test]
    fn down_right_episodes_take_198_steps_to_the_goal() {
        let world = MudWorld::new(100, 3);
        let data = world.down_right(2000);
        assert_eq!(data.len(), 396_000);
        assert!(data.actions.iter().all(|&a| a == 1 || a == 3));
        for episode in 0..2000 {
            let end = 198 * episode + 197;
            assert!(data.terminals[end] && data.next_states[end] == 9999);
            assert_eq!(data.states[198 * episode], 0);
        }
        assert_eq!(data.terminals.iter().filter(|&&t| t).count(), 2000);
    }

    #[test]
    fn eps_greedy_episodes_end_at_the_goal_or_after_400_steps() {
        let world = MudWorld::new(100, 1);
        let data = world.eps_greedy(0.95, 300, 400, 0.02).unwrap();
        let mut start = 0;
        let mut episodes = 0;
        for i in 0..data.len() {
            if data.terminals[i] {
                assert!(data.next_states[i] == 9999 || i + 1 - start == 400);
                start = i + 1;
                episodes += 1;
            } else {
                assert_eq!(data.next_states[i], data.states[i + 1]);
                assert!(data.next_states[i] != 9999);
            }
        }
        assert_eq!(episodes, 300);
    }

    #[test]
    fn nearly_optimal_episodes_reach_the_goal_of_every_seed() {
        for seed in 0..8 {
            let data = MudWorld::new(100, seed).eps_greedy(0.95, 60, 400, 0.02).unwrap();
            let reached = data.next_states.iter().filter(|&&next| next == 9999).count();
            assert!(reached >= 45, "seed {seed}: {reached} of 60 episodes");
        }
    }

    #[test]
    fn only_layouts_around_a_walled_off_goal_are_drawn_again() {
        let redrawn = |seed: &u64| {
            let mut rng = rng::stream(*seed, "mudworld/layout");
            let first: Vec<bool> = (0..10_000).map(|_| rng.random_bool(MUD_PROBABILITY)).collect();
            MudWorld::new(100, *seed).mud()[1..9999] != first[1..9999]
        };
        assert_eq!((0..8).filter(redrawn).collect::<Vec<u64>>(), [2, 4, 6]);
    }

    #[test]
    fn a_seed_gives_the_same_world_and_another_seed_another() {
        let data = |seed| MudWorld::new(20, seed).down_right(5);
        assert_eq!(MudWorld::new(20, 7).mud(), MudWorld::new(20, 7).mud());
        assert_eq!(data(7).actions, data(7).actions);
        assert_ne!(data(7).actions, data(8).actions);
        assert_ne!(MudWorld::new(20, 7).mud(), MudWorld::new(20, 8).mud());
    }
}

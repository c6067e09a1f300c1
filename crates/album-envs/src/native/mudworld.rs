//! MudWorld as an environment: the grid of [`album_tabular::MudWorld`], step by step.

use album_base::rng;
use album_data::ActionSpace;
use album_tabular::{ACTIONS, Behaviour, Encoding, MudWorld};

use crate::env::{Env, EnvShape, Step};
use crate::error::EnvError;

/// Maximum episode length, as in the paper's near-optimal data.
const HORIZON: usize = 400;

/// A MudWorld with discrete actions, whose exact values `album solve` computes.
///
/// Observations are those of the recorded data ([`MudWorld::observation`]). Episodes start where those of the
/// dataset start: in the top-left cell for `down-right`, in any cell but the goal for `eps-greedy`. They end
/// at the goal, with success, or after 400 steps.
///
/// ```
/// use album_envs::{Env, MudWorldEnv};
/// use album_tabular::{Behaviour, Encoding, MudWorld};
///
/// # fn main() -> Result<(), album_envs::EnvError> {
/// let mut env = MudWorldEnv::new(MudWorld::new(3, 0), Behaviour::DownRight, Encoding::Coordinates);
/// assert_eq!(env.reset(0)?, [-1.0, -1.0]);
/// assert_eq!(env.step(&[1.0])?.observation, [0.0, -1.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MudWorldEnv {
    world: MudWorld,
    behaviour: Behaviour,
    encoding: Encoding,
    shape: EnvShape,
    /// The cell and the steps so far, during an episode.
    at: Option<(usize, usize)>,
}

impl MudWorldEnv {
    /// The environment in which a dataset of `behaviour` was recorded.
    pub fn new(world: MudWorld, behaviour: Behaviour, encoding: Encoding) -> Self {
        let actions = ActionSpace::Discrete { n: ACTIONS.len() };
        let observation_dim = world.observation(0, encoding).len();
        let shape = EnvShape { observation_dim, actions, horizon: HORIZON };
        Self { world, behaviour, encoding, shape, at: None }
    }

    /// The grid.
    pub fn world(&self) -> &MudWorld {
        &self.world
    }

    fn observation(&self, cell: usize) -> Vec<f32> {
        self.world.observation(cell, self.encoding)
    }
}

impl Env for MudWorldEnv {
    fn shape(&self) -> &EnvShape {
        &self.shape
    }

    fn reset(&mut self, episode_seed: u64) -> Result<Vec<f32>, EnvError> {
        let cell = match self.behaviour {
            Behaviour::DownRight => 0,
            Behaviour::EpsGreedy => {
                let mut rng = rng::stream(episode_seed, "mudworld start");
                rng::below(&mut rng, self.world.goal() as u64) as usize
            }
        };
        self.at = Some((cell, 0));
        Ok(self.observation(cell))
    }

    fn step(&mut self, action: &[f32]) -> Result<Step, EnvError> {
        self.shape.check_action(action)?;
        let (cell, steps) = self.at.ok_or(EnvError::NoEpisode)?;
        let next = self.world.next(cell, action[0] as usize);
        let terminated = next == self.world.goal();
        let truncated = steps + 1 >= HORIZON;
        self.at = (!terminated && !truncated).then_some((next, steps + 1));
        Ok(Step {
            observation: self.observation(next),
            reward: self.world.reward(next),
            terminated,
            truncated,
            success: Some(terminated),
            frame: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The environment reproduces every transition of both datasets.
    #[test]
    fn transitions_are_those_of_the_tabular_world() {
        for (behaviour, encoding) in
            [(Behaviour::DownRight, Encoding::Coordinates), (Behaviour::EpsGreedy, Encoding::OneHot)]
        {
            let world = MudWorld::new(20, 3);
            let data = world.dataset(behaviour, 0.95).unwrap();
            let mut env = MudWorldEnv::new(world, behaviour, encoding);
            for i in 0..data.len().min(20_000) {
                env.at = Some((data.states[i] as usize, 0));
                let step = env.step(&[data.actions[i] as f32]).unwrap();
                let next = data.next_states[i] as usize;
                assert_eq!(step.observation, env.world.observation(next, encoding));
                assert_eq!(step.reward, data.rewards[i]);
                assert_eq!(step.terminated, next == env.world.goal());
                // The data's `terminals` also mark truncated episodes.
                assert!(!step.terminated || data.terminals[i]);
            }
        }
    }

    /// All state-action pairs, compared with the MDP that `album solve` uses.
    #[test]
    fn the_mdp_is_the_same() {
        let world = MudWorld::new(7, 1);
        let mdp = world.mdp(0.9).unwrap();
        assert!(mdp.is_deterministic());
        let mut env = MudWorldEnv::new(world, Behaviour::EpsGreedy, Encoding::OneHot);
        for cell in 0..env.world.goal() {
            for (action, pair) in mdp.pairs_of(cell).enumerate() {
                env.at = Some((cell, 0));
                let step = env.step(&[action as f32]).unwrap();
                assert_eq!(step.observation, env.observation(mdp.successor(pair)));
                assert_eq!(step.reward, mdp.reward()[pair]);
            }
        }
    }

    #[test]
    fn episodes_start_where_those_of_the_data_do_and_end() {
        let env = |behaviour| MudWorldEnv::new(MudWorld::new(5, 0), behaviour, Encoding::OneHot);
        let mut anywhere = env(Behaviour::EpsGreedy);
        let mut starts = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let start = anywhere.reset(seed).unwrap();
            assert_eq!(start, anywhere.reset(seed).unwrap());
            starts.insert(anywhere.at.unwrap().0);
        }
        assert_eq!(starts, (0..24).collect());
        let mut env = env(Behaviour::DownRight);
        assert!(matches!(env.step(&[0.0]), Err(EnvError::NoEpisode)));
        assert_eq!(env.reset(9).unwrap(), env.observation(0));
        assert!(matches!(env.step(&[4.0]), Err(EnvError::ActionIndex { n: 4, .. })));
        assert!(matches!(env.step(&[0.5]), Err(EnvError::ActionIndex { n: 4, .. })));
        for step in 1..=400 {
            assert_eq!(env.step(&[0.0]).unwrap().truncated, step == 400);
        }
        assert!(matches!(env.step(&[0.0]), Err(EnvError::NoEpisode)));
    }
}

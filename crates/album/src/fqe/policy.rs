//! The policy's actions in every state of the data.

use album_agents::{Agent, Learner, Moment};
use album_data::Dataset;

/// Rows of one call of a policy.
const ROWS: usize = 1024;
/// Draws of a policy that samples, in each state.
const DRAWS: usize = 4;

/// Actions as a [`Dataset`] has them, in every state: those of each episode in order, its last one included.
#[derive(Debug)]
pub(crate) struct PolicyActions {
    width: usize,
    /// One, or several where the policy samples.
    draws: Vec<Vec<f32>>,
}

impl PolicyActions {
    /// Asks the policy, on so many threads. Every state counts as the first of an episode of its own.
    pub fn of(agent: &Learner, data: &Dataset, threads: usize) -> Self {
        let observations: Vec<f32> = data.states().flatten().copied().collect();
        let (dim, width) = (data.observation_dim(), data.action_dim());
        let states = observations.len() / dim;
        let draw = |draw: usize, states: usize| {
            let mut actions = vec![0.0; states * width];
            let part = states.div_ceil(threads.max(1)).next_multiple_of(ROWS);
            let parts = observations[..states * dim].chunks(part * dim).zip(actions.chunks_mut(part * width));
            std::thread::scope(|scope| {
                for (number, (seen, done)) in parts.enumerate() {
                    let mut policy = agent.policy();
                    scope.spawn(move || {
                        let mut answer = Vec::new();
                        let calls = seen.chunks(ROWS * dim).zip(done.chunks_mut(ROWS * width));
                        for (call, (seen, done)) in calls.enumerate() {
                            let first = (draw * states + number * part + call * ROWS) as u64;
                            let moments: Vec<Moment> = (first..first + (seen.len() / dim) as u64)
                                .map(|episode| Moment { episode, step: 0 })
                                .collect();
                            policy.act(seen, &moments, &mut answer);
                            done.copy_from_slice(&answer);
                        }
                    });
                }
            });
            data.action_space().from_physical(&mut actions);
            actions
        };
        let few = states.min(64);
        let samples = draw(0, few) != draw(1, few);
        PolicyActions {
            width,
            draws: (0..if samples { DRAWS } else { 1 }).map(|d| draw(d, states)).collect(),
        }
    }

    /// How many draws there are of each action.
    pub fn draws(&self) -> usize {
        self.draws.len()
    }

    /// All actions of one draw.
    pub fn all(&self, draw: usize) -> &[f32] {
        &self.draws[draw % self.draws.len()]
    }

    /// The action of one draw in one state.
    pub fn at(&self, draw: usize, state: usize) -> &[f32] {
        &self.all(draw)[state * self.width..][..self.width]
    }

    /// The probability of a choice in a state, as far as the draws tell.
    pub fn probability(&self, state: usize, choice: f32) -> f64 {
        let same = self.draws.iter().filter(|draw| draw[state] == choice).count();
        same as f64 / self.draws.len() as f64
    }
}

//! A training batch: transitions, their windows and action chunks.

use crate::dataset::Dataset;
use crate::view::View;

/// Buffers for one batch, allocated once and filled repeatedly by
/// [`Segments::gather`](crate::Segments::gather).
///
/// Matrices are returned as [`View`]s with their shape. The three kinds of states follow each other in one
/// buffer, so that a value network can process them in one pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    pub(crate) observation_dim: usize,
    pub(crate) action_dim: usize,
    pub(crate) chunk: usize,
    pub(crate) indices: Vec<usize>,
    pub(crate) states: Vec<f32>,
    pub(crate) actions: Vec<f32>,
    pub(crate) next_actions: Vec<f32>,
    pub(crate) chunks: Vec<f32>,
    pub(crate) valids: Vec<f32>,
    pub(crate) rewards: Vec<f32>,
    pub(crate) masks: Vec<f32>,
    pub(crate) returns_k: Vec<f32>,
    pub(crate) bootstraps_k: Vec<f32>,
    pub(crate) steps_k: Vec<u32>,
    pub(crate) weights_k: Vec<f32>,
}

impl Batch {
    /// Buffers for `size` transitions of a dataset with chunks of one action.
    /// [`Segments::batch`](crate::Segments::batch) creates those for longer chunks.
    pub fn new(dataset: &Dataset, size: usize) -> Self {
        Self::with_chunk(dataset, size, 1)
    }

    pub(crate) fn with_chunk(dataset: &Dataset, size: usize, chunk: usize) -> Self {
        Self::with_sizes(dataset.observation_dim(), dataset.action_dim(), size, chunk)
    }

    pub(crate) fn with_sizes(observation_dim: usize, action_dim: usize, size: usize, chunk: usize) -> Self {
        let column = vec![0.0; size];
        Self {
            observation_dim,
            action_dim,
            chunk,
            indices: vec![0; size],
            states: vec![0.0; 3 * size * observation_dim],
            actions: vec![0.0; size * action_dim],
            next_actions: vec![0.0; size * action_dim],
            chunks: vec![0.0; size * chunk * action_dim],
            valids: vec![0.0; size * chunk],
            rewards: column.clone(),
            masks: column.clone(),
            returns_k: column.clone(),
            bootstraps_k: column.clone(),
            steps_k: vec![0; size],
            weights_k: column,
        }
    }

    /// Number of transitions.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether the batch has size 0.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Dimension of an observation.
    pub fn observation_dim(&self) -> usize {
        self.observation_dim
    }

    /// Dimension of an action.
    pub fn action_dim(&self) -> usize {
        self.action_dim
    }

    /// Number of actions in a row of [`chunks`](Batch::chunks).
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// The transitions of this batch.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The transitions to gather, for [`Sampler::fill`](crate::Sampler::fill).
    pub fn indices_mut(&mut self) -> &mut [usize] {
        &mut self.indices
    }

    /// The states `s`, then all next states `s'`, then all last states `s_K`: three times as many rows as the
    /// batch.
    pub fn states(&self) -> View<'_> {
        View::new(&self.states, 3 * self.len(), self.observation_dim)
    }

    /// The states `s`.
    pub fn observations(&self) -> View<'_> {
        self.state_block(0)
    }

    /// The states `s'` one step later.
    pub fn next_observations(&self) -> View<'_> {
        self.state_block(1)
    }

    /// The states `s_K` at the end of each window.
    pub fn last_observations(&self) -> View<'_> {
        self.state_block(2)
    }

    /// The actions `a`.
    pub fn actions(&self) -> View<'_> {
        View::new(&self.actions, self.len(), self.action_dim)
    }

    /// The recorded actions `a'` in the states `s'`.
    ///
    /// No action was taken in the last state of an episode, and a file's entry there is meaningless. The
    /// action of the last transition is repeated instead; the original code of ReBRAC takes the first action
    /// of the next episode.
    pub fn next_actions(&self) -> View<'_> {
        View::new(&self.next_actions, self.len(), self.action_dim)
    }

    /// The same, mutable, to substitute the actions of another policy.
    pub fn next_actions_mut(&mut self) -> &mut [f32] {
        &mut self.next_actions
    }

    /// The [`chunk`](Batch::chunk) actions from `a` on, side by side in each row. After the end of an episode
    /// its last action is repeated.
    pub fn chunks(&self) -> View<'_> {
        View::new(&self.chunks, self.len(), self.chunk * self.action_dim)
    }

    /// 1 for every recorded action of [`chunks`](Batch::chunks), 0 for those repeated after the end of the
    /// episode: [`chunk`](Batch::chunk) numbers per row, of which the first is 1.
    pub fn valids(&self) -> View<'_> {
        View::new(&self.valids, self.len(), self.chunk)
    }

    /// The rewards `r` of `s` and `a`.
    pub fn rewards(&self) -> &[f32] {
        &self.rewards
    }

    /// The masks `m`: 0 where the task is solved in `s`.
    pub fn masks(&self) -> &[f32] {
        &self.masks
    }

    /// The discounted sums of rewards in each window.
    pub fn returns_k(&self) -> &[f32] {
        &self.returns_k
    }

    /// The factor of `V(s_K)` in the K-step target: `gamma^h`, or 0 after a goal.
    pub fn bootstraps_k(&self) -> &[f32] {
        &self.bootstraps_k
    }

    /// The number of steps from `s` to `s_K`.
    pub fn steps_k(&self) -> &[u32] {
        &self.steps_k
    }

    /// The `valid` weight of each row in K-step losses, see [`KStepTail`](crate::KStepTail). A loss is always
    /// the batch mean of weight times term.
    pub fn weights_k(&self) -> &[f32] {
        &self.weights_k
    }

    fn state_block(&self, block: usize) -> View<'_> {
        self.states().range(block * self.len()..(block + 1) * self.len())
    }
}

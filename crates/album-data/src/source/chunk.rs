//! Consecutive rows of a log as numbers.

use crate::source::layout::Layout;

/// Consecutive rows of a log. Row `i` is row `base + i` of its file.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub rows: usize,
    pub observations: Vec<f32>,
    pub next_observations: Vec<f32>,
    pub actions: Vec<f32>,
    pub rewards: Vec<f32>,
    pub masks: Vec<f32>,
    pub terminals: Vec<bool>,
    pub timeouts: Vec<bool>,
    pub end_states: Vec<bool>,
    pub episodes: Vec<i64>,
    pub steps: Vec<i64>,
    pub base: isize,
}

impl Chunk {
    pub fn state(&self, row: usize, dim: usize) -> &[f32] {
        &self.observations[row * dim..][..dim]
    }

    pub fn successor(&self, row: usize, dim: usize) -> Option<&[f32]> {
        (!self.next_observations.is_empty()).then(|| &self.next_observations[row * dim..][..dim])
    }

    /// Drops all rows but the last.
    pub fn keep_last(&mut self, layout: &Layout) {
        self.keep_from(self.rows.saturating_sub(1), layout);
    }

    /// Drops the rows before `first`.
    pub fn keep_from(&mut self, first: usize, layout: &Layout) {
        fn cut<T>(all: &mut Vec<T>, first: usize, width: usize) {
            let gone = (first * width).min(all.len());
            all.drain(..gone);
        }
        let (dim, action_dim) = (layout.observation_dim(), layout.action_dim());
        cut(&mut self.observations, first, dim);
        cut(&mut self.next_observations, first, dim);
        cut(&mut self.actions, first, action_dim);
        cut(&mut self.rewards, first, 1);
        cut(&mut self.masks, first, 1);
        cut(&mut self.terminals, first, 1);
        cut(&mut self.timeouts, first, 1);
        cut(&mut self.end_states, first, 1);
        cut(&mut self.episodes, first, 1);
        cut(&mut self.steps, first, 1);
        self.rows -= first;
        self.base += first as isize;
    }

    /// The same rows in another order.
    pub fn permuted(&self, order: &[usize], layout: &Layout) -> Self {
        fn pick<T: Copy>(all: &[T], order: &[usize], width: usize) -> Vec<T> {
            if all.is_empty() {
                return Vec::new();
            }
            order.iter().flat_map(|&row| &all[row * width..(row + 1) * width]).copied().collect()
        }
        let (dim, action_dim) = (layout.observation_dim(), layout.action_dim());
        Self {
            rows: self.rows,
            observations: pick(&self.observations, order, dim),
            next_observations: pick(&self.next_observations, order, dim),
            actions: pick(&self.actions, order, action_dim),
            rewards: pick(&self.rewards, order, 1),
            masks: pick(&self.masks, order, 1),
            terminals: pick(&self.terminals, order, 1),
            timeouts: pick(&self.timeouts, order, 1),
            end_states: pick(&self.end_states, order, 1),
            episodes: pick(&self.episodes, order, 1),
            steps: pick(&self.steps, order, 1),
            base: self.base,
        }
    }
}

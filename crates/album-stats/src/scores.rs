//! A complete matrix of scores and its aggregates.

use super::StatisticsError;
use super::summary::{median, sum};

/// The scores of some runs (seeds) on some tasks. There is at least one of each, none is missing and all are
/// finite.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    runs: usize,
    /// The scores, task by task.
    values: Vec<f64>,
}

impl Scores {
    /// From one row of task scores per run.
    ///
    /// # Errors
    ///
    /// If there are none, if a run lacks a task, or if a score is not finite.
    ///
    /// ```
    /// use album_stats::Scores;
    /// let scores = Scores::new(&[[1.0, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(scores.task(0), [1.0, 3.0]);
    /// let error = Scores::new(&[vec![1.0, 2.0], vec![3.0]]).unwrap_err();
    /// assert!(error.to_string().starts_with("run 1 has scores of 1 tasks, run 0 of 2"));
    /// # Ok::<(), album_stats::StatisticsError>(())
    /// ```
    pub fn new<R: AsRef<[f64]>>(runs: &[R]) -> Result<Scores, StatisticsError> {
        let tasks = runs.first().map_or(0, |run| run.as_ref().len());
        if tasks == 0 {
            return Err(StatisticsError::Empty { runs: runs.len(), tasks });
        }
        for (run, scores) in runs.iter().map(AsRef::as_ref).enumerate() {
            if scores.len() != tasks {
                return Err(StatisticsError::Ragged { run, found: scores.len(), expected: tasks });
            }
            if let Some(task) = scores.iter().position(|x| !x.is_finite()) {
                return Err(StatisticsError::NotFinite { run, task, value: scores[task] });
            }
        }
        let values = (0..tasks).flat_map(|task| runs.iter().map(move |run| run.as_ref()[task])).collect();
        Ok(Scores { runs: runs.len(), values })
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// The number of tasks.
    pub fn tasks(&self) -> usize {
        self.values.len() / self.runs
    }

    /// All scores, grouped by task.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The scores of a task, in order of runs.
    ///
    /// # Panics
    ///
    /// If there is no such task.
    pub fn task(&self, task: usize) -> &[f64] {
        &self.values[task * self.runs..(task + 1) * self.runs]
    }

    /// The mean of each task over runs.
    pub fn task_means(&self) -> Vec<f64> {
        self.values.chunks_exact(self.runs).map(average).collect()
    }

    /// The mean of each run over tasks. Their standard deviation is what the paper gives beside an
    /// environment's mean.
    pub fn run_means(&self) -> Vec<f64> {
        let total = |run| sum(self.values.iter().skip(run).step_by(self.runs).copied());
        (0..self.runs).map(|run| total(run) / self.tasks() as f64).collect()
    }

    /// Whether there are several runs with identical scores, which say nothing about their spread.
    pub fn runs_agree(&self) -> bool {
        self.runs > 1 && self.values.chunks_exact(self.runs).all(|task| task.iter().all(|x| *x == task[0]))
    }

    /// The mean of all scores.
    pub fn mean(&self) -> f64 {
        average(&self.values)
    }

    /// The median of the tasks' means.
    pub fn median(&self) -> f64 {
        median(self.task_means()).unwrap_or(f64::NAN)
    }

    /// The interquartile mean: the mean of all scores without the lowest and the highest quarter (each
    /// rounded down to whole scores).
    ///
    /// ```
    /// use album_stats::Scores;
    /// assert_eq!(Scores::new(&[[-100.0, 1.0, 3.0, 100.0]])?.iqm(), 2.0);
    /// assert_eq!(Scores::new(&[[0.0, 3.0, 3.0]])?.iqm(), 2.0);
    /// # Ok::<(), album_stats::StatisticsError>(())
    /// ```
    pub fn iqm(&self) -> f64 {
        let mut values = self.values.clone();
        let cut = values.len() / 4;
        let end = values.len() - cut;
        // Only which scores lie between the quartiles matters, not their order.
        values.select_nth_unstable_by(end - 1, f64::total_cmp);
        values[..end].select_nth_unstable_by(cut, f64::total_cmp);
        average(&values[cut..end])
    }

    /// The mean shortfall of the scores from `target`; scores above it do not compensate.
    pub fn optimality_gap(&self, target: f64) -> f64 {
        target - sum(self.values.iter().map(|x| x.min(target))) / self.values.len() as f64
    }

    /// Replaces every score.
    pub(super) fn map(&mut self, with: impl Fn(f64) -> f64) {
        self.values.iter_mut().for_each(|x| *x = with(*x));
    }

    /// Redraws the runs of each task: `draw(n)` is a number below `n`. Scores stay with their task.
    pub(super) fn redraw_into(&self, drawn: &mut Scores, mut draw: impl FnMut(usize) -> usize) {
        let tasks = self.values.chunks_exact(self.runs);
        for (from, to) in tasks.zip(drawn.values.chunks_exact_mut(self.runs)) {
            to.fill_with(|| from[draw(self.runs)]);
        }
    }
}

/// The mean of a non-empty list.
fn average(values: &[f64]) -> f64 {
    sum(values.iter().copied()) / values.len() as f64
}

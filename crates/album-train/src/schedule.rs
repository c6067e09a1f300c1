//! When to log, evaluate and save.

use crate::error::TrainError;

/// When to log, evaluate and save. Periods are in updates, and 0 means never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Total number of updates.
    pub steps: u64,
    /// Updates between logged metrics.
    pub log_every: u64,
    /// Updates between checks of the metrics for NaN and infinity; they are also checked whenever they are
    /// logged.
    pub check_every: u64,
    /// Updates between evaluations; there is always one at the end.
    pub eval_every: u64,
    /// Whether to evaluate before the first update, too.
    pub eval_at_start: bool,
    /// Updates between checkpoints; there is always one at the end.
    pub save_every: u64,
    /// Whether to save a checkpoint after every evaluation, too.
    pub save_at_evaluations: bool,
    /// How many of the latest checkpoints to keep, at least 1.
    pub keep: usize,
    /// Whether to keep the best checkpoint too and end the run with it: the one with the best evaluation or,
    /// without evaluations, the lowest held-out loss.
    pub keep_best: bool,
    /// Stop early once the best checkpoint is this many steps old; 0 for never.
    pub patience: u64,
}

impl Schedule {
    /// A run of this many steps with the intervals of the FQL code: logs every 5,000 steps, evaluations and
    /// checkpoints every 100,000.
    pub fn new(steps: u64) -> Self {
        Schedule {
            steps,
            log_every: 5_000,
            check_every: 100,
            eval_every: 100_000,
            eval_at_start: false,
            save_every: 100_000,
            save_at_evaluations: false,
            keep: 2,
            keep_best: false,
            patience: 0,
        }
    }

    /// Refuses an invalid schedule.
    pub fn check(&self) -> Result<(), TrainError> {
        let fail = |key, expected| Err(TrainError::Schedule { key, found: 0, expected });
        match self {
            Schedule { steps: 0, .. } => fail("steps", "at least 1"),
            Schedule { keep: 0, .. } => fail("keep", "at least 1 checkpoint"),
            _ => Ok(()),
        }
    }

    pub(crate) fn logs(&self, step: u64) -> bool {
        every(self.log_every, step)
    }

    pub(crate) fn checks(&self, step: u64) -> bool {
        every(self.check_every, step)
    }

    pub(crate) fn evaluates(&self, step: u64) -> bool {
        step == self.steps || every(self.eval_every, step) || step == 0 && self.eval_at_start
    }

    /// Whether the best checkpoint is recent enough to continue.
    pub(crate) fn is_patient(&self, step: u64, best: Option<u64>) -> bool {
        self.patience == 0 || best.is_none_or(|best| step < best.saturating_add(self.patience))
    }

    pub(crate) fn saves(&self, step: u64) -> bool {
        step == self.steps
            || every(self.save_every, step)
            || self.save_at_evaluations && step > 0 && self.evaluates(step)
    }
}

fn every(period: u64, step: u64) -> bool {
    period > 0 && step > 0 && step.is_multiple_of(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due() {
        let schedule = Schedule { log_every: 2, eval_every: 3, save_every: 0, ..Schedule::new(7) };
        let due = |when: fn(&Schedule, u64) -> bool, schedule: &Schedule| {
            (0..=7).filter(|&step| when(schedule, step)).collect::<Vec<_>>()
        };
        assert_eq!(due(Schedule::logs, &schedule), [2, 4, 6]);
        assert_eq!(due(Schedule::evaluates, &schedule), [3, 6, 7]);
        assert_eq!(due(Schedule::saves, &schedule), [7]);
        let schedule = Schedule { eval_at_start: true, save_at_evaluations: true, ..schedule };
        assert_eq!(due(Schedule::evaluates, &schedule), [0, 3, 6, 7]);
        assert_eq!(due(Schedule::saves, &schedule), [3, 6, 7]);
        assert!(Schedule::new(0).check().is_err());
        assert!(Schedule { keep: 0, ..Schedule::new(1) }.check().is_err());
    }
}

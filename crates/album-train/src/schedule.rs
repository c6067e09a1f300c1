//! When to log, evaluate and save.

use crate::error::TrainError;

/// When what is done. Steps are counted in updates done, and 0 means never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Updates of the whole run.
    pub steps: u64,
    /// Metrics are logged every so many steps.
    pub log_every: u64,
    /// Metrics are checked for NaN and infinity every so many steps, and whenever they are logged.
    pub check_every: u64,
    /// The policy is evaluated every so many steps, and at the end.
    pub eval_every: u64,
    /// The policy is evaluated before the first update, too.
    pub eval_at_start: bool,
    /// A checkpoint is written every so many steps, and at the end.
    pub save_every: u64,
    /// A checkpoint is written after every evaluation, too.
    pub save_at_evaluations: bool,
    /// How many checkpoints are kept, at least 1.
    pub keep: usize,
    /// The best checkpoint is kept too, and is what the run ends with: the best evaluation where there are some, else the
    /// least loss on the held-out data.
    pub keep_best: bool,
    /// A run ends when its best checkpoint is this many steps old; 0 for never.
    pub patience: u64,
}

impl Schedule {
    /// A run of so many steps as users of the FQL code know it: logs every 5,000 steps, evaluations every 100,000,
    /// and checkpoints with them.
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

    /// Refuses what cannot be followed.
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

    /// Whether the best checkpoint is young enough to go on.
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

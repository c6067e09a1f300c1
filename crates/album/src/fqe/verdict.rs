//! What follows from the numbers.

use super::interval::Estimate;
use serde::{Deserialize, Serialize};

/// Whether the policy is worth more than what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is.
    #[serde(rename = "better")]
    Better,
    /// It is worth less.
    #[serde(rename = "worse")]
    Worse,
    /// The uncertainty is larger than the difference.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// The estimator does not even reproduce the return that was observed.
    #[serde(rename = "not calibrated")]
    NotCalibrated,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::CannotTell => "cannot tell",
            Verdict::NotCalibrated => "not calibrated",
        })
    }
}

/// A calibration gap up to this share of the observed return, or of its deviation if that is larger, is no reason to
/// distrust the estimator. It still counts as uncertainty.
const TOLERANCE: f64 = 0.1;
/// Where estimates stand for more of the "observed" return than this, there is nothing to calibrate with.
const MOST_TAIL: f64 = 0.9;
/// Where the policy leaves the data in more states than this, its value is a guess.
const MOST_OUTSIDE: f64 = 0.5;

/// What a verdict depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Policy minus behaviour, by the same estimator.
    pub difference: Estimate,
    /// The estimated value of the behaviour.
    pub estimated: Estimate,
    /// What was observed.
    pub observed: f64,
    /// The standard deviation of the episodes' returns.
    pub deviation: f64,
    /// The weight of estimates in what was observed, where recordings were cut.
    pub tail: f64,
    /// The share of states where the policy leaves the data.
    pub outside: f64,
}

impl Facts {
    /// Estimated minus observed return of the behaviour, as far as it was observed.
    pub fn gap(&self) -> f64 {
        (self.estimated.mean - self.observed) / (1.0 - self.tail).max(1.0 - MOST_TAIL)
    }

    /// The verdict with its reason.
    pub fn verdict(&self) -> (Verdict, String) {
        let gap = self.gap().abs();
        let scale = self.observed.abs().max(self.deviation);
        let width = (self.estimated.high - self.estimated.low) / 2.0;
        if self.tail > MOST_TAIL {
            let why = format!(
                "the recordings are too short for this discount: {:.0} % of a value lies behind their ends",
                100.0 * self.tail
            );
            return (Verdict::NotCalibrated, why);
        }
        if !gap.is_finite() || gap > width.max(TOLERANCE * scale) {
            let why = format!(
                "the estimated value of the behaviour is {:.4} and its observed return {:.4}",
                self.estimated.mean, self.observed
            );
            return (Verdict::NotCalibrated, why);
        }
        if self.outside > MOST_OUTSIDE {
            let why = format!(
                "the policy leaves the data's support in {:.0} % of the states, and what follows there was never seen",
                100.0 * self.outside
            );
            return (Verdict::CannotTell, why);
        }
        let Estimate { mean, low, high } = self.difference;
        let told = format!(
            "policy minus behaviour is {mean:.4} (95 % interval {low:.4} to {high:.4}), the calibration gap {gap:.4}"
        );
        match () {
            () if low > gap => (Verdict::Better, told),
            () if high < -gap => (Verdict::Worse, told),
            () => (Verdict::CannotTell, told),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts {
        difference: Estimate { mean: 5.0, low: 3.0, high: 7.0 },
        estimated: Estimate { mean: -50.0, low: -51.0, high: -49.0 },
        observed: -49.0,
        deviation: 10.0,
        tail: 0.0,
        outside: 0.1,
    };

    fn verdict(change: impl FnOnce(&mut Facts)) -> Verdict {
        let mut facts = FACTS;
        change(&mut facts);
        facts.verdict().0
    }

    #[test]
    fn the_rule() {
        assert_eq!(verdict(|_| ()), Verdict::Better);
        assert_eq!(
            verdict(|f| f.difference = Estimate { mean: -5.0, low: -7.0, high: -3.0 }),
            Verdict::Worse
        );
        assert_eq!(
            verdict(|f| f.difference = Estimate { mean: 1.0, low: -1.0, high: 3.0 }),
            Verdict::CannotTell
        );
        // A gap of 4 is tolerated, and no difference within it counts.
        assert_eq!(verdict(|f| f.observed = -46.0), Verdict::CannotTell);
        assert_eq!(verdict(|f| f.outside = 0.6), Verdict::CannotTell);
    }

    #[test]
    fn calibration_comes_first() {
        assert_eq!(verdict(|f| f.observed = -30.0), Verdict::NotCalibrated);
        // A wide interval explains the gap, and then hides the difference.
        let wide = |f: &mut Facts| {
            f.observed = -30.0;
            f.estimated = Estimate { mean: -50.0, low: -75.0, high: -25.0 };
        };
        assert_eq!(verdict(wide), Verdict::CannotTell);
        // Half of what was "observed" is an estimate: the gap counts twice.
        assert_eq!(verdict(|f| (f.observed, f.tail) = (-46.5, 0.5)), Verdict::NotCalibrated);
        assert_eq!(verdict(|f| f.tail = 0.95), Verdict::NotCalibrated);
        assert_eq!(verdict(|f| f.estimated.mean = f64::NAN), Verdict::NotCalibrated);
    }

    #[test]
    fn names_are_those_of_the_documentation() {
        for verdict in [Verdict::Better, Verdict::Worse, Verdict::CannotTell, Verdict::NotCalibrated] {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{verdict}\""));
        }
    }
}

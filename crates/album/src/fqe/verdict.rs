//! The rule that turns the estimates into a verdict.

use super::interval::Estimate;
use album_base::number::significant;
use serde::{Deserialize, Serialize};

/// Whether the policy is better than the recorded behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The policy is better.
    #[serde(rename = "better")]
    Better,
    /// The policy is worse.
    #[serde(rename = "worse")]
    Worse,
    /// The uncertainty exceeds the difference.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// The estimator does not reproduce the observed return.
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

/// Tolerated calibration gap, as a fraction of the observed return or of its standard deviation, whichever is larger.
/// A tolerated gap still counts as uncertainty.
const TOLERANCE: f64 = 0.1;
/// If estimates make up more than this share of the "observed" return, calibration is impossible.
const MOST_TAIL: f64 = 0.9;
/// If the policy is outside the support in more than this fraction of states, its value is a guess.
const MOST_OUTSIDE: f64 = 0.5;

/// The inputs of the rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Policy minus behaviour, by the same estimator.
    pub difference: Estimate,
    /// The estimated value of the behaviour.
    pub estimated: Estimate,
    /// Observed return of the behaviour.
    pub observed: f64,
    /// Standard deviation of the episodes' returns.
    pub deviation: f64,
    /// Weight of estimates in the observed return, where recordings were truncated.
    pub tail: f64,
    /// Fraction of states where the policy leaves the support of the data.
    pub outside: f64,
}

impl Facts {
    /// Estimated minus observed return of the behaviour, relative to the observed share of that return.
    pub fn gap(&self) -> f64 {
        (self.estimated.mean - self.observed) / (1.0 - self.tail).max(1.0 - MOST_TAIL)
    }

    /// The verdict and the reason for it.
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
                "the estimated value of the behaviour is {} and its observed return {}",
                short(self.estimated.mean),
                short(self.observed)
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
            "policy minus behaviour is {} (95 % interval {} to {}), the calibration gap {}",
            short(mean),
            short(low),
            short(high),
            short(gap)
        );
        match () {
            () if low > gap => (Verdict::Better, told),
            () if high < -gap => (Verdict::Worse, told),
            () => (Verdict::CannotTell, told),
        }
    }
}

/// A number as the table of the report has it.
fn short(x: f64) -> String {
    significant(x, 4)
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
        // A gap of 4 is tolerated, but differences smaller than it do not count.
        assert_eq!(verdict(|f| f.observed = -46.0), Verdict::CannotTell);
        assert_eq!(verdict(|f| f.outside = 0.6), Verdict::CannotTell);
    }

    #[test]
    fn calibration_comes_first() {
        assert_eq!(verdict(|f| f.observed = -30.0), Verdict::NotCalibrated);
        // A wide interval excuses the gap, but also hides the difference.
        let wide = |f: &mut Facts| {
            f.observed = -30.0;
            f.estimated = Estimate { mean: -50.0, low: -75.0, high: -25.0 };
        };
        assert_eq!(verdict(wide), Verdict::CannotTell);
        // Half of the "observed" return is an estimate, so the gap counts twice.
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

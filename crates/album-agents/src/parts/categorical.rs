//! Values as categorical distributions over bins of a fixed range, fitted by cross-entropy to HL-Gauss
//! targets: a scalar `y` becomes the probability masses of a normal distribution around it, truncated to the
//! range.

use crate::parts::critic::Aggregate;
use album_nn::{NormalBins, Tape, Var};

/// Bins of equal width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    /// Lower end of the first bin.
    pub low: f64,
    /// Upper end of the last bin.
    pub high: f64,
    /// Number of bins.
    pub count: usize,
    /// Standard deviation of targets, in bin widths.
    pub sigma: f64,
}

impl Bins {
    fn width(&self) -> f64 {
        (self.high - self.low) / self.count as f64
    }

    fn centres<'t>(&self, tape: &'t Tape) -> Var<'t> {
        tape.constant_with(1, self.count, |out| {
            let centres = (0..self.count).map(|i| (self.low + (i as f64 + 0.5) * self.width()) as f32);
            out.iter_mut().zip(centres).for_each(|(out, centre)| *out = centre);
        })
    }

    /// Log-probabilities, one row for each member of each row.
    pub fn log_probabilities<'t>(&self, logits: Var<'t>) -> Var<'t> {
        let members = logits.cols() / self.count;
        logits.reshape(logits.rows() * members, self.count).log_softmax_cols()
    }

    /// The expectations of distributions, with a column for each of `members`.
    pub fn expectation<'t>(&self, log_p: Var<'t>, members: usize) -> Var<'t> {
        let mean = (log_p.exp() * self.centres(log_p.tape())).sum_cols();
        mean.reshape(log_p.rows() / members, members)
    }

    /// The HL-Gauss distributions around a column of numbers, which are first clipped to the range.
    pub fn around<'t>(&self, y: Var<'t>) -> Var<'t> {
        let sigma = self.sigma * self.width();
        y.normal_masses(NormalBins { low: self.low, high: self.high, count: self.count, sigma })
    }

    /// One distribution per row from those of all members: their mean, or the one with the smallest
    /// expectation.
    pub fn aggregate<'t>(&self, log_p: Var<'t>, members: usize, aggregate: Aggregate) -> Var<'t> {
        let (rows, m) = (log_p.rows() / members, self.count);
        let p = log_p.exp().detach().reshape(rows, members * m);
        let member = |i: usize| p.slice_cols(i * m, (i + 1) * m);
        // For the minimum: 1 for the member that attains it and 0 for the others.
        let least = (-self.expectation(log_p, members)).argmax_cols();
        let share = |i: usize| match aggregate {
            Aggregate::Mean => member(i) / members as f32,
            Aggregate::Min => (1.0 - (least - i as f32).abs().ge(0.5)) * member(i),
        };
        (1..members).fold(share(0), |sum, i| sum + share(i))
    }
}

/// The cross-entropies of predictions, `members` per row of targets, side by side.
pub fn cross_entropy<'t>(target: Var<'t>, log_p: Var<'t>, members: usize) -> Var<'t> {
    let target = if members == 1 { target } else { target.repeat_rows(members) };
    -(target * log_p).sum_cols().reshape(log_p.rows() / members, members)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use album_nn::Pool;

    const BINS: Bins = Bins { low: -2.0, high: 2.0, count: 40, sigma: 0.75 };

    #[test]
    fn targets_sum_to_one_and_keep_their_mean_inside_the_range() {
        let tape = Tape::new(&Pool::new(1));
        let y = tape.constant_slice(5, 1, &[0.0, 0.33, -1.2, 7.0, -90.0]);
        let p = BINS.around(y);
        let sums = p.sum_cols().with_value(<[f32]>::to_vec);
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-6), "{sums:?}");
        let means = (p * BINS.centres(&tape)).sum_cols().with_value(<[f32]>::to_vec);
        for (mean, y) in means.iter().zip([0.0, 0.33, -1.2]) {
            assert!((mean - y).abs() < 1e-3, "{mean} against {y}");
        }
        // Truncated at the ends: half a normal distribution around 2 and -2.
        assert!((means[3] - 1.94).abs() < 0.01 && (means[4] + 1.94).abs() < 0.01, "{means:?}");
    }

    #[test]
    fn aggregation_takes_the_mean_of_members_or_the_least() {
        let bins = Bins { low: 0.0, high: 2.0, count: 2, sigma: 0.75 };
        let tape = Tape::new(&Pool::new(1));
        let third = 2f32.ln();
        // Probabilities (1/2, 1/2) and (2/3, 1/3): the second has the lower mean.
        let log_p = bins.log_probabilities(tape.constant_slice(1, 4, &[0.0, 0.0, third, 0.0]));
        let means = bins.expectation(log_p, 2).with_value(<[f32]>::to_vec);
        assert!((means[0] - 1.0).abs() < 1e-6 && (means[1] - 5.0 / 6.0).abs() < 1e-6, "{means:?}");
        let aggregated = |aggregate| bins.aggregate(log_p, 2, aggregate).with_value(<[f32]>::to_vec);
        assert!((aggregated(Aggregate::Mean)[0] - 7.0 / 12.0).abs() < 1e-6);
        assert!((aggregated(Aggregate::Min)[0] - 2.0 / 3.0).abs() < 1e-6);
    }
}

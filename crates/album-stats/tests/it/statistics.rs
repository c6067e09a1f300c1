//! Statistics of edge cases, and properties that hold for any input.

#![allow(clippy::unwrap_used)]

use album_stats::{Bootstrap, Divisor, Interval, Scores, StatisticsError, deviation, improvement, profile};

/// A quick bootstrap.
fn bootstrap(seed: u64) -> Bootstrap {
    Bootstrap { resamples: 2000, ..Bootstrap::new(seed) }
}

fn point(value: f64) -> Interval {
    Interval { low: value, high: value }
}

#[test]
fn one_run_has_no_width() {
    let scores = Scores::new(&[[10.0, 20.0, 60.0]]).unwrap();
    assert_eq!((scores.runs(), scores.tasks()), (1, 3));
    assert_eq!((scores.mean(), scores.median(), scores.iqm()), (30.0, 20.0, 30.0));
    assert_eq!(scores.run_means(), [30.0]);
    assert_eq!(bootstrap(0).interval(&scores, Scores::mean).unwrap(), point(30.0));
    assert_eq!(bootstrap(0).improvement(&scores, &scores).unwrap(), point(0.5));
    assert_eq!(bootstrap(0).profile(&scores, &[15.0]).unwrap(), [point(2.0 / 3.0)]);
    assert_eq!(deviation(scores.task(0), Divisor::Count), Some(0.0));
    assert_eq!(deviation(scores.task(0), Divisor::CountLessOne), None);
}

#[test]
fn one_task() {
    let scores = Scores::new(&[[1.0], [2.0], [3.0], [4.0], [90.0]]).unwrap();
    assert_eq!((scores.runs(), scores.tasks()), (5, 1));
    // Of five scores one is cut at each end.
    assert_eq!((scores.mean(), scores.median(), scores.iqm()), (20.0, 20.0, 3.0));
    let interval = bootstrap(0).interval(&scores, Scores::mean).unwrap();
    assert!(interval.low > 1.0 && interval.low < 5.0 && interval.high > 38.0 && interval.high < 70.0);
}

#[test]
fn equal_scores() {
    let scores = Scores::new(&[[12.3; 4]; 3]).unwrap();
    for value in [scores.mean(), scores.median(), scores.iqm(), 100.0 - scores.optimality_gap(100.0)] {
        assert!((value - 12.3).abs() < 1e-13);
    }
    let interval = bootstrap(0).interval(&scores, Scores::iqm).unwrap();
    assert_eq!(interval, point(scores.iqm()));
    assert_eq!(improvement(&scores, &scores), Ok(0.5));
    assert_eq!(bootstrap(0).improvement(&scores, &scores).unwrap(), point(0.5));
    // Strictly above.
    assert_eq!(profile(&scores, &[12.2, 12.3]).unwrap(), [1.0, 0.0]);
    assert_eq!(bootstrap(0).profile(&scores, &[12.2, 12.3]).unwrap(), [point(1.0), point(0.0)]);
}

#[test]
fn no_scores() {
    let none: [[f64; 2]; 0] = [];
    assert_eq!(Scores::new(&none), Err(StatisticsError::Empty { runs: 0, tasks: 0 }));
    let error = Scores::new(&[vec![], vec![]]).unwrap_err();
    assert_eq!(error, StatisticsError::Empty { runs: 2, tasks: 0 });
    assert!(error.to_string().contains("2 runs of 0 tasks"));
}

#[test]
fn missing_scores() {
    let error = Scores::new(&[vec![1.0, 2.0], vec![1.0, 2.0], vec![1.0]]).unwrap_err();
    assert_eq!(error, StatisticsError::Ragged { run: 2, found: 1, expected: 2 });
    assert!(error.to_string().contains("every run needs a score of every task"));
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = Scores::new(&[[1.0, 2.0], [1.0, value]]).unwrap_err();
        let expected = format!("run 1 on task 1 is {value}, expected a finite number");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[test]
fn requests_that_make_no_sense() {
    let one = Scores::new(&[[1.0]]).unwrap();
    let two = Scores::new(&[[1.0, 2.0]]).unwrap();
    let differ = StatisticsError::TasksDiffer { left: 1, right: 2 };
    assert_eq!(improvement(&one, &two), Err(differ.clone()));
    assert_eq!(bootstrap(0).improvement(&one, &two), Err(differ));
    let falling = StatisticsError::Thresholds { index: 1, value: 0.0, previous: 1.0 };
    assert_eq!(profile(&one, &[1.0, 0.0]), Err(falling.clone()));
    assert_eq!(bootstrap(0).profile(&one, &[1.0, 0.0]), Err(falling));
    assert!(profile(&one, &[f64::NAN]).unwrap_err().to_string().contains("is NaN, after -inf"));
    assert!(profile(&one, &[]).unwrap().is_empty());
    assert!(bootstrap(0).profile(&one, &[]).unwrap().is_empty());

    let none = Bootstrap { resamples: 0, ..bootstrap(0) };
    assert_eq!(none.interval(&one, Scores::mean), Err(StatisticsError::NoResamples));
    assert_eq!(none.improvement(&one, &one), Err(StatisticsError::NoResamples));
    assert_eq!(none.profile(&one, &[0.0]), Err(StatisticsError::NoResamples));
    for level in [0.0, 1.0, 95.0, -0.5] {
        let invalid = Bootstrap { level, ..bootstrap(0) };
        assert_eq!(invalid.interval(&one, Scores::mean), Err(StatisticsError::Level(level)));
    }
    assert!(Bootstrap { level: f64::NAN, ..bootstrap(0) }.interval(&one, Scores::mean).is_err());
    let once = Bootstrap { resamples: 1, ..bootstrap(0) };
    assert_eq!(once.interval(&one, Scores::mean).unwrap(), point(1.0));
}

#[test]
fn the_seed_decides() {
    let scores = Scores::new(&[[1.5, 20.0], [4.0, 37.0], [9.0, 51.0], [2.0, 44.0]]).unwrap();
    let interval_from = |seed| bootstrap(seed).interval(&scores, Scores::mean).unwrap();
    assert_eq!(interval_from(1), interval_from(1));
    assert_ne!(interval_from(1), interval_from(2));
}

/// Runs are drawn within their task: all runs of a task score the same, so resamples vary only if tasks are mixed.
#[test]
fn tasks_are_strata() {
    let scores = Scores::new(&[[0.0, 100.0], [0.0, 100.0], [0.0, 100.0]]).unwrap();
    assert_eq!(bootstrap(0).interval(&scores, Scores::mean).unwrap(), point(50.0));
}

/// The exact answer is known here: for one task, the mean of a resample of two runs is 0, 1/2 or 1 with
/// probability 1/4, 1/2, 1/4.
#[test]
fn percentiles_of_a_known_distribution() {
    let scores = Scores::new(&[[0.0], [1.0]]).unwrap();
    let interval_at = |level| Bootstrap { level, ..bootstrap(5) }.interval(&scores, Scores::mean).unwrap();
    assert_eq!(interval_at(0.3), point(0.5));
    assert_eq!(interval_at(0.6), Interval { low: 0.0, high: 1.0 });
}

/// With few possible scores the distribution over resamples can be computed: the sum of independent draws
/// over tasks and runs.
#[test]
fn ends_are_those_of_the_exact_distribution() {
    let runs = [
        [0.0, 50.0, 100.0, 0.0, 50.0],
        [50.0, 50.0, 100.0, 50.0, 0.0],
        [50.0, 100.0, 0.0, 50.0, 100.0],
        [0.0, 50.0, 50.0, 100.0, 50.0],
        [100.0, 0.0, 50.0, 0.0, 50.0],
    ];
    let scores = Scores::new(&runs).unwrap();
    let cells = scores.values().len();
    // The probability of each sum of 25 draws, where `part` is the contribution of a score.
    let exact = |part: &dyn Fn(f64) -> usize| {
        let mut likely = vec![1.0];
        for task in 0..scores.tasks() {
            for _ in 0..scores.runs() {
                let mut next = vec![0.0; likely.len() + 2];
                for (sum, p) in likely.iter().enumerate() {
                    scores.task(task).iter().for_each(|&x| next[sum + part(x)] += p / scores.runs() as f64);
                }
                likely = next;
            }
        }
        likely
    };
    // The sum at which this fraction of resamples is reached, and its distance from a step.
    let percentile = |likely: &[f64], share: f64| {
        let below = |sum: &usize| likely[..=*sum].iter().sum::<f64>();
        let sum = (0..likely.len()).find(|sum| below(sum) >= share).unwrap();
        let room = (below(&sum) - share).min(share - below(&sum) + likely[sum]);
        assert!(room > 0.003, "too near to tell: {room}");
        sum
    };

    let likely = exact(&|x| (x / 50.0) as usize);
    let mean = |share| 50.0 * percentile(&likely, share) as f64 / cells as f64;
    let found = Bootstrap::new(1).interval(&scores, Scores::mean).unwrap();
    assert!((found.low - mean(0.025)).abs() < 1e-12 && (found.high - mean(0.975)).abs() < 1e-12, "{found:?}");

    let likely = exact(&|x| usize::from(x > 50.0));
    let share = |share| percentile(&likely, share) as f64 / cells as f64;
    let band = Bootstrap::new(1).profile(&scores, &[50.0]).unwrap();
    assert_eq!(band, [Interval { low: share(0.025), high: share(0.975) }]);
}

#[test]
fn intervals_are_closed() {
    let interval = Interval { low: 1.0, high: 2.0 };
    assert!(interval.contains(1.0) && interval.contains(2.0));
    assert!(!interval.contains(0.9) && !interval.contains(2.1) && !interval.contains(f64::NAN));
}

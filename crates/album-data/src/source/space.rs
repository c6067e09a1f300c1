//! The action space of a log, from the user, the file's metadata or the actions themselves.

use crate::action_space::ActionSpace;
use crate::error::{DataError, Place};
use crate::source::log::FieldType;
use crate::source::{ActionKind, Source};

/// Maximum number of choices.
const MAX_CHOICES: usize = 1 << 16;
/// If the actions are exactly the integers 0, 1, ..., n - 1, they are taken as choices without asking, up to
/// this n.
const CLEARLY_CHOICES: usize = 256;
/// Tolerance for rounding errors beyond a bound, as a fraction of the range.
const SLACK: f64 = 1e-5;

/// Statistics of all actions.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActionStats {
    pub min: Vec<f32>,
    pub max: Vec<f32>,
    pub whole: bool,
    /// For one-dimensional actions: whether each of the integers from 0 on occurs.
    used: Vec<bool>,
}

impl ActionStats {
    pub fn new(dim: usize) -> Self {
        let used = if dim == 1 { vec![false; CLEARLY_CHOICES] } else { Vec::new() };
        Self { min: vec![f32::INFINITY; dim], max: vec![f32::NEG_INFINITY; dim], whole: true, used }
    }

    pub fn add(&mut self, action: &[f32]) {
        for ((&x, min), max) in action.iter().zip(&mut self.min).zip(&mut self.max) {
            *min = x.min(*min);
            *max = x.max(*max);
            self.whole = self.whole && x.fract() == 0.0;
        }
        if let [x] = action
            && *x >= 0.0
            && let Some(used) = self.used.get_mut(*x as usize)
        {
            *used = true;
        }
    }

    /// The number of choices n, if the actions are 0, 1, ..., n - 1 and all occur.
    fn clear_choices(&self) -> Option<usize> {
        let n = self.used.iter().position(|used| !used)?;
        (self.whole && n >= 2 && self.min == [0.0] && self.max == [(n - 1) as f32]).then_some(n)
    }
}

/// Determines the action space; also returns a sentence that says how.
pub(crate) fn decide(
    source: &Source,
    stats: &ActionStats,
    kinds: &[FieldType],
    labels: Option<&[String]>,
    known: Option<&ActionSpace>,
    place: &Place,
) -> Result<(ActionSpace, Option<String>), DataError> {
    let undecided = |question: String| DataError::Undecided { place: place.clone(), question };
    let dim = stats.min.len();
    if let Some(labels) = labels {
        return match source.actions {
            Some(ActionKind::Continuous) => Err(undecided(
                "--actions is continuous, but the actions are text; expected numbers".to_owned(),
            )),
            _ => Ok((ActionSpace::Discrete { n: labels.len() }, None)),
        };
    }
    if let (Some(ActionSpace::Discrete { n }), None | Some(ActionKind::Discrete)) = (known, source.actions) {
        check_choices(stats, Some(*n), place)?;
        return Ok((ActionSpace::Discrete { n: *n }, None));
    }
    // Integers stored as floats count only if they look like choices.
    let integers = stats.whole
        && (kinds.iter().all(|kind| matches!(kind, FieldType::Integer | FieldType::Bool))
            || stats.clear_choices().is_some());
    let bounded = !source.action_bounds.is_empty() || matches!(known, Some(ActionSpace::Continuous { .. }));
    match source.actions {
        Some(ActionKind::Discrete) => {
            let n = check_choices(stats, None, place)?;
            return Ok((ActionSpace::Discrete { n }, None));
        }
        None if integers && !bounded => {
            if kinds == [FieldType::Bool] {
                return Ok((ActionSpace::Discrete { n: 2 }, None));
            }
            if let Some(n) = stats.clear_choices()
                && kinds == [FieldType::Integer]
            {
                let guess = format!("actions: {n} choices, since they are the whole numbers 0 to {}", n - 1);
                return Ok((ActionSpace::Discrete { n }, Some(guess)));
            }
            let (min, max) = (
                stats.min.iter().fold(f32::INFINITY, |a, &b| a.min(b)),
                stats.max.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b)),
            );
            let width = if dim == 1 { String::new() } else { format!("{dim} ") };
            return Err(undecided(format!(
                "found actions of {width}whole numbers from {min} to {max}, which may be choices or amounts; say which \
                 with --actions discrete or --actions continuous"
            )));
        }
        _ => {}
    }
    let (space, guess) = bounds(source, stats, known);
    if let ActionSpace::Continuous { low, high } = &space
        && let Some(i) = (0..low.len()).find(|&i| !(low[i] < high[i]))
    {
        let problem = format!("found action bounds {} to {}, expected the lower one first", low[i], high[i]);
        return Err(DataError::Columns { place: place.clone(), problem });
    }
    Ok((space, guess))
}

/// The bounds given by the user, for actions of dimension `dim`.
pub(crate) fn given_bounds(
    source: &Source,
    dim: usize,
    place: &Place,
) -> Result<Option<ActionSpace>, DataError> {
    let pairs = &source.action_bounds;
    if pairs.is_empty() {
        return Ok(None);
    }
    let problem = if pairs.len() != 1 && pairs.len() != dim {
        Some(format!(
            "found {} pairs of action bounds for actions of dimension {dim}, expected 1 or {dim}",
            pairs.len()
        ))
    } else {
        let bad = pairs.iter().find(|[low, high]| !(low < high && low.is_finite() && high.is_finite()));
        bad.map(|[low, high]| {
            format!("found action bounds {low} to {high}, expected two numbers, the lower one first")
        })
    };
    if let Some(question) = problem {
        return Err(DataError::Undecided { place: place.clone(), question });
    }
    let pair = |i: usize| pairs[i.min(pairs.len() - 1)];
    let (low, high) = (0..dim).map(|i| (pair(i)[0], pair(i)[1])).unzip();
    Ok(Some(ActionSpace::Continuous { low, high }))
}

/// The first component of an action that lies outside the bounds.
pub(crate) fn outside(space: &ActionSpace, action: &[f32]) -> Option<usize> {
    let ActionSpace::Continuous { low, high } = space else { return None };
    (0..action.len()).find(|&i| {
        let (x, low, high) = (f64::from(action[i]), f64::from(low[i]), f64::from(high[i]));
        let slack = SLACK * (high - low);
        !(x >= low - slack && x <= high + slack)
    })
}

fn check_choices(stats: &ActionStats, n: Option<usize>, place: &Place) -> Result<usize, DataError> {
    let problem = |found: String| DataError::Columns { place: place.clone(), problem: found };
    let (&[min], &[max]) = (&stats.min[..], &stats.max[..]) else {
        let dim = stats.min.len();
        return Err(problem(format!(
            "found discrete actions of dimension {dim}, expected one number: the choice"
        )));
    };
    if !stats.whole || min < 0.0 {
        return Err(problem(format!(
            "found discrete actions from {min} to {max}{}, expected the whole numbers from 0 on",
            if stats.whole { "" } else { ", some with fractions" }
        )));
    }
    let limit = n.unwrap_or(MAX_CHOICES);
    if max as usize >= limit {
        return Err(problem(format!("found choice {max}, expected less than {limit}")));
    }
    Ok(n.unwrap_or(max as usize + 1))
}

/// Bounds from the user, the file or the data. Components within ±1 get bounds of ±1, since most datasets are
/// normalised that way.
fn bounds(
    source: &Source,
    stats: &ActionStats,
    known: Option<&ActionSpace>,
) -> (ActionSpace, Option<String>) {
    let dim = stats.min.len();
    let said = |i: usize| match source.action_bounds.len() {
        0 => None,
        1 => Some(source.action_bounds[0]),
        _ => source.action_bounds.get(i).copied(),
    };
    let file = |i: usize| match known {
        Some(ActionSpace::Continuous { low, high }) if low[i].is_finite() && high[i].is_finite() => {
            Some([low[i], high[i]])
        }
        _ => None,
    };
    let mut guessed = false;
    let mut of_data = |i: usize| {
        let (min, max) = (stats.min[i], stats.max[i]);
        let slack = 1.0 + SLACK as f32;
        if min >= -slack && max <= slack || !(min.is_finite() && max.is_finite()) {
            return [-1.0, 1.0];
        }
        guessed = true;
        // A constant component has no range, so one is made up around it.
        if min == max { [min - 1.0, max + 1.0] } else { [min, max] }
    };
    let (low, high): (Vec<f32>, Vec<f32>) = (0..dim)
        .map(|i| said(i).or_else(|| file(i)).unwrap_or_else(|| of_data(i)))
        .map(|[low, high]| (low, high))
        .unzip();
    let guess = guessed.then(|| "action bounds: the least and greatest actions in the data".to_owned());
    (ActionSpace::Continuous { low, high }, guess)
}

//! Nearest-neighbour search over recorded state-action pairs.

use super::interval::{deviation, mean};
use album_data::{ActionSpace, Dataset};

/// Maximum number of recorded pairs searched, evenly spread over the data.
const MOST: usize = 5000;

/// An index of recorded pairs.
pub(crate) struct Neighbours<'d> {
    pub data: &'d Dataset,
    space: Space,
    places: Vec<Place>,
    pairs: Vec<Pair>,
    threads: usize,
}

/// One transition. `state` is its index among all states; an episode has one more state than it has transitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub transition: usize,
    pub episode: usize,
    pub state: usize,
}

/// A query point. Pairs of its own episode do not count as neighbours.
pub(crate) struct Pair {
    episode: usize,
    point: Vec<f32>,
}

impl<'d> Neighbours<'d> {
    pub fn of(data: &'d Dataset, threads: usize) -> Self {
        let (space, places) = (Space::of(data), spread(data, MOST));
        let pair = |place: &Place| Pair {
            episode: place.episode,
            point: space.point(data.observation(place.transition), data.action(place.transition)),
        };
        let pairs = places.iter().map(pair).collect();
        Neighbours { data, space, places, pairs, threads }
    }

    /// The indexed transitions.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Makes a query point.
    pub fn pair(&self, episode: usize, observation: &[f32], action: &[f32]) -> Pair {
        Pair { episode, point: self.space.point(observation, action) }
    }

    /// Distance to the nearest recorded pair of another episode, and its index, for every query. The distance is
    /// infinite if there is none.
    pub fn nearest(&self, asked: &[Pair]) -> Vec<(f64, usize)> {
        let mut found = vec![(f64::INFINITY, 0); asked.len()];
        let part = asked.len().div_ceil(self.threads.max(1)).max(1);
        std::thread::scope(|scope| {
            for (asked, found) in asked.chunks(part).zip(found.chunks_mut(part)) {
                scope.spawn(move || {
                    for (pair, found) in asked.iter().zip(found) {
                        for (place, other) in self.pairs.iter().enumerate() {
                            if other.episode != pair.episode {
                                let distance = self.space.distance(&pair.point, &other.point);
                                if distance < found.0 {
                                    *found = (distance, place);
                                }
                            }
                        }
                    }
                });
            }
        });
        found
    }
}

/// At most `most` transitions, evenly spread over the data.
pub(crate) fn spread(data: &Dataset, most: usize) -> Vec<Place> {
    (0..data.len())
        .step_by(data.len().div_ceil(most).max(1))
        .map(|transition| {
            let episode = data.episodes().locate(transition).episode;
            Place { transition, episode, state: transition + episode }
        })
        .collect()
}

/// Coordinates in which states and actions count equally, standardised by the data. Two discrete actions are
/// neighbours only if they are the same.
struct Space {
    /// Mean and weight of every dimension.
    scales: Vec<(f32, f32)>,
    discrete: bool,
}

impl Space {
    fn of(data: &Dataset) -> Self {
        let sample = spread(data, MOST);
        let column = |width: usize, number: &dyn Fn(&Place) -> f32| {
            let numbers: Vec<f64> = sample.iter().map(|place| number(place).into()).collect();
            let deviation = deviation(&numbers);
            // A constant column does not contribute to distances.
            let weight = if deviation > 1e-6 { 1.0 / (deviation * (width as f64).sqrt()) } else { 0.0 };
            (mean(&numbers) as f32, weight as f32)
        };
        let (s, a) = (data.observation_dim(), data.action_dim());
        let mut scales: Vec<(f32, f32)> =
            (0..s).map(|j| column(s, &|place| data.observation(place.transition)[j])).collect();
        let discrete = matches!(data.action_space(), ActionSpace::Discrete { .. });
        match discrete {
            true => scales.push((0.0, 1.0)),
            false => scales.extend((0..a).map(|j| column(a, &|place| data.action(place.transition)[j]))),
        }
        Space { scales, discrete }
    }

    fn point(&self, observation: &[f32], action: &[f32]) -> Vec<f32> {
        let numbers = observation.iter().chain(action);
        numbers.zip(&self.scales).map(|(x, (mean, weight))| (x - mean) * weight).collect()
    }

    fn distance(&self, x: &[f32], y: &[f32]) -> f64 {
        if self.discrete && x.last() != y.last() {
            return f64::INFINITY;
        }
        f64::from(x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum::<f32>()).sqrt()
    }
}

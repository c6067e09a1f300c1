//! The episode index: the only place that knows where episodes end.

use std::ops::Range;

/// Where the episodes of a dataset begin and end.
///
/// There are two ways of counting. A *transition* is a pair of consecutive states; an episode of `T`
/// transitions has `T + 1` *rows*, one per state:
///
/// ```text
/// episode            0                  1
///            /------------------\  /-----------\
/// row          0   1   2   3   4    5   6   7
/// state        s0  s1  s2  s3  s4   s0  s1  s2
/// transition   0   1   2   3        4   5
/// ```
///
/// The episode of a transition is found by bisection: a thousand episodes take eight kilobytes, which stay in
/// cache, and ten comparisons. A [part](Self::part) of the episodes keeps the rows of the whole and renumbers
/// its transitions.
///
/// ```
/// use album_data::Episodes;
/// let episodes = Episodes::from_lengths(&[4, 2]);
/// assert_eq!(episodes.transitions(), 6);
/// assert_eq!(episodes.rows(), 8);
/// let window = episodes.locate(3);
/// assert_eq!((window.row, window.left), (3, 1)); // the last of its episode
/// assert_eq!(episodes.locate(4).row, 5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episodes {
    /// First transition of every episode, and the total number of transitions.
    starts: Vec<usize>,
    /// First row of every episode.
    first_rows: Vec<usize>,
}

/// The location of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The episode, counted from 0.
    pub episode: usize,
    /// The row of the transition's first state.
    pub row: usize,
    /// Number of transitions left in the episode, including this one: at least 1.
    pub left: usize,
}

impl Episodes {
    /// Consecutive episodes with these numbers of transitions. A length of 0 is an episode that consists of a
    /// single state.
    pub fn from_lengths(lengths: &[usize]) -> Self {
        let mut starts = Vec::with_capacity(lengths.len() + 1);
        let mut total = 0;
        starts.push(0);
        starts.extend(lengths.iter().map(|length| {
            total += length;
            total
        }));
        Self::one_after_the_other(starts)
    }

    /// Episodes whose last rows are marked `true`. Rows after the last `true` are left out;
    /// [`Dataset`](crate::Dataset) refuses them first.
    pub fn from_last_rows(last: &[bool]) -> Self {
        let mut starts = vec![0];
        let ends = last.iter().enumerate().filter(|(_, last)| **last);
        // This and every earlier episode has one row more than transitions.
        starts.extend(ends.enumerate().map(|(episode, (row, _))| row - episode));
        Self::one_after_the_other(starts)
    }

    /// Every episode has one row more than transitions, and there are no gaps between them.
    fn one_after_the_other(starts: Vec<usize>) -> Self {
        let first_rows =
            starts[..starts.len() - 1].iter().enumerate().map(|(episode, start)| start + episode).collect();
        Self { starts, first_rows }
    }

    /// Some of these episodes, in the given order, at their original rows.
    pub fn part(&self, episodes: &[usize]) -> Self {
        let lengths: Vec<usize> = episodes.iter().map(|&episode| self.length(episode)).collect();
        let first_rows = episodes.iter().map(|&episode| self.first_rows[episode]).collect();
        Self { first_rows, ..Self::from_lengths(&lengths) }
    }

    /// Number of episodes.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no episodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Total number of transitions.
    pub fn transitions(&self) -> usize {
        self.starts[self.len()]
    }

    /// Total number of rows: one more per episode than transitions.
    pub fn rows(&self) -> usize {
        self.transitions() + self.len()
    }

    /// First transition of an episode.
    pub fn start(&self, episode: usize) -> usize {
        self.starts[episode]
    }

    /// Number of transitions of an episode.
    pub fn length(&self, episode: usize) -> usize {
        self.starts[episode + 1] - self.starts[episode]
    }

    /// The rows of an episode: one more than transitions.
    pub fn rows_of(&self, episode: usize) -> Range<usize> {
        let first = self.first_rows[episode];
        first..first + self.length(episode) + 1
    }

    /// The last row of every episode, which has only a state.
    pub fn last_rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|episode| self.rows_of(episode).end - 1)
    }

    /// The episode and row of a transition, and its distance to the end of the episode.
    ///
    /// # Panics
    ///
    /// If there is no such transition.
    pub fn locate(&self, transition: usize) -> Location {
        assert!(transition < self.transitions(), "transition {transition} of {}", self.transitions());
        let episode = self.starts.partition_point(|&start| start <= transition) - 1;
        let row = self.first_rows[episode] + transition - self.starts[episode];
        Location { episode, row, left: self.starts[episode + 1] - transition }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn flags_and_lengths_agree() {
        let last = [false, false, true, true, false, true];
        assert_eq!(Episodes::from_last_rows(&last), Episodes::from_lengths(&[2, 0, 1]));
        assert_eq!(Episodes::from_last_rows(&[]), Episodes::from_lengths(&[]));
    }

    #[test]
    fn a_part_keeps_its_rows() {
        let part = Episodes::from_lengths(&[2, 3, 1]).part(&[1, 2]);
        assert_eq!((part.len(), part.transitions(), part.rows()), (2, 4, 6));
        assert_eq!(part.locate(0), Location { episode: 0, row: 3, left: 3 });
        assert_eq!(part.locate(3), Location { episode: 1, row: 7, left: 1 });
        assert_eq!(part.last_rows().collect::<Vec<_>>(), [6, 8]);
        assert_eq!((part.start(1), part.rows_of(1)), (3, 7..9));
    }

    proptest! {
        #[test]
        fn every_transition_is_found(lengths in vec(0usize..5, 0..8)) {
            let episodes = Episodes::from_lengths(&lengths);
            let (mut transition, mut row) = (0, 0);
            for (episode, &length) in lengths.iter().enumerate() {
                prop_assert_eq!(episodes.length(episode), length);
                prop_assert_eq!(episodes.start(episode), transition);
                for step in 0..length {
                    let expected = Location { episode, row: row + step, left: length - step };
                    prop_assert_eq!(episodes.locate(transition + step), expected);
                }
                transition += length;
                row += length + 1;
                prop_assert_eq!(episodes.last_rows().nth(episode), Some(row - 1));
            }
            prop_assert_eq!(episodes.transitions(), transition);
            prop_assert_eq!(episodes.rows(), row);
        }
    }
}

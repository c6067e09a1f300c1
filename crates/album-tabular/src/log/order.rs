//! The rows of a log in order of episode and step.

use super::Source;
use super::labels::Labels;
use crate::TabularError;

/// The order of the rows.
#[derive(Debug)]
pub(crate) struct Order {
    /// The row at each position; empty if the rows are already in order.
    rows: Vec<u32>,
    /// The start of each episode, and the end of the last.
    pub starts: Vec<usize>,
    pub warnings: Vec<String>,
}

impl Order {
    /// Orders rows by first appearance of their episode, and by step.
    pub fn of(source: &Source<'_>, episode: &str, step: Option<&str>) -> Result<Self, TabularError> {
        let (labels, episodes) = Labels::of_column(source, episode, None)?;
        let steps = step.map(|step| Labels::of_column(source, step, None)).transpose()?;
        let mut starts = vec![0];
        let mut seen = vec![false; labels.count()];
        seen[episodes[0] as usize] = true;
        let mut in_order = true;
        for row in 1..episodes.len() {
            if episodes[row] != episodes[row - 1] {
                if std::mem::replace(&mut seen[episodes[row] as usize], true) {
                    in_order = false;
                    if step.is_none() {
                        let problem = format!(
                            "row {row}: episode `{}` continues after another one; sort the rows, or name the column that \
                             orders them (--step)",
                            labels.text(episodes[row] as usize)
                        );
                        return Err(TabularError::Log(format!("{}: {problem}", source.place())));
                    }
                    break;
                }
                starts.push(row);
            } else if let Some((_, steps)) = &steps {
                in_order &= steps[row] > steps[row - 1];
            }
        }
        starts.push(episodes.len());
        let mut order = Self { rows: Vec::new(), starts, warnings: Vec::new() };
        if let (Some((step_labels, steps)), Some(step)) = (&steps, step) {
            if !in_order {
                order.sort(&episodes, steps, labels.count());
                order.refuse_duplicates(source, step, (&labels, &episodes), (step_labels, steps))?;
            }
            order.note_gaps(step, step_labels, steps);
        }
        Ok(order)
    }

    fn sort(&mut self, episodes: &[u32], steps: &[u32], count: usize) {
        let mut first = vec![u32::MAX; count];
        for (row, &episode) in episodes.iter().enumerate().rev() {
            first[episode as usize] = row as u32;
        }
        let mut rows: Vec<u32> = (0..episodes.len() as u32).collect();
        rows.sort_by_key(|&row| (first[episodes[row as usize] as usize], steps[row as usize]));
        self.starts = vec![0];
        let changes = |i: &usize| episodes[rows[*i] as usize] != episodes[rows[*i - 1] as usize];
        self.starts.extend((1..rows.len()).filter(changes));
        self.starts.push(rows.len());
        self.rows = rows;
    }

    fn refuse_duplicates(
        &self,
        source: &Source<'_>,
        step: &str,
        (labels, episodes): (&Labels, &[u32]),
        (step_labels, steps): (&Labels, &[u32]),
    ) -> Result<(), TabularError> {
        let twice = self
            .starts
            .windows(2)
            .flat_map(|episode| episode[0] + 1..episode[1])
            .find(|&i| steps[self.row(i)] == steps[self.row(i - 1)]);
        let Some(i) = twice else { return Ok(()) };
        let (first, second) = (self.row(i - 1), self.row(i));
        Err(TabularError::Log(format!(
            "{}: column `{step}`: rows {first} and {second} of episode `{}` both are step {}; expected each step once",
            source.place(),
            labels.text(episodes[first] as usize),
            step_labels.text(steps[first] as usize)
        )))
    }

    /// Consecutive step numbers must not skip any, or a wrong state would count as the successor.
    fn note_gaps(&mut self, step: &str, labels: &Labels, steps: &[u32]) {
        let Some(numbers) = labels.integers() else { return };
        let (mut ones, mut others) = (0usize, 0usize);
        for episode in self.starts.windows(2) {
            for i in episode[0] + 1..episode[1] {
                let number = |i: usize| numbers[steps[self.row(i)] as usize];
                if number(i) - number(i - 1) == 1 { ones += 1 } else { others += 1 }
            }
        }
        if others > 0 && ones > others {
            self.warnings.push(format!(
                "column `{step}` skips numbers in {others} places; the row after a gap is taken for the next state"
            ));
        }
    }

    /// The row at a position.
    pub fn row(&self, place: usize) -> usize {
        self.rows.get(place).map_or(place, |&row| row as usize)
    }
}

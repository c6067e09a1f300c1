//! Assembles rows of a log into episodes.
//!
//! Every episode of a dataset has one more state than transitions. In a log without next observations, the
//! state after the last row of an episode is unknown. All formats follow one rule:
//!
//! | last row of the episode | next state recorded | not recorded |
//! |---|---|---|
//! | terminal | kept | kept; its own state stands in for the next state, which is never used |
//! | timeout | kept | its state becomes the final state; its action and reward are dropped |

use std::collections::HashSet;
use std::ops::Range;

use crate::action_space::ActionSpace;
use crate::dataset::Role;
use crate::error::DataError;
use crate::load::checks::{BadNumbers, OnBad, Problem};
use crate::source::chunk::Chunk;
use crate::source::layout::Layout;
use crate::source::log::{LogFile, Stop};
use crate::source::sink::{Sink, Step, Steps};
use crate::source::space::{ActionStats, outside};
use crate::source::{EndCounts, Ends};

/// How episodes end, decided from the columns before rows are read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rules {
    /// The meaning of a flag other than a timeout; without flags, the meaning of every end.
    pub ends: Option<Ends>,
    /// Whether a row with both flags is terminal: true if the terminal flag does not mark every end.
    pub terminal_wins: bool,
    pub reward_last: Option<f32>,
}

/// Statistics gathered during assembly.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub ends: EndCounts,
    pub dropped: usize,
    /// Episodes that ended without a flag, in a log with flags.
    pub unflagged: usize,
    /// Number of next states that differ from the state of the following row, and the place of the first.
    pub jumps: usize,
    pub first_jump: Option<String>,
    pub bad: Vec<BadNumbers>,
    pub actions: ActionStats,
}

pub(crate) struct Assembler<'a> {
    pub layout: &'a Layout,
    pub rules: Rules,
    pub on_bad: OnBad,
    /// Action bounds given by the user.
    pub bounds: Option<ActionSpace>,
    pub sink: &'a mut dyn Sink,
    pub seen: Seen,
    pub table: &'a dyn LogFile,
    /// Original row numbers, if the rows were sorted.
    pub order: Option<&'a [usize]>,
    /// Episodes of this file that have ended.
    ended: HashSet<i64>,
    /// Whether the current episode has a transition yet.
    begun: bool,
    /// How the episode ends, according to the row before its end state.
    flagged: Option<Ends>,
    last_mask: f32,
}

impl<'a> Assembler<'a> {
    pub fn new(
        layout: &'a Layout,
        rules: Rules,
        on_bad: OnBad,
        sink: &'a mut dyn Sink,
        table: &'a dyn LogFile,
    ) -> Self {
        let seen = Seen { actions: ActionStats::new(layout.action_dim()), ..Seen::default() };
        Self {
            layout,
            rules,
            on_bad,
            bounds: None,
            sink,
            seen,
            table,
            order: None,
            ended: HashSet::new(),
            begun: false,
            flagged: None,
            last_mask: 1.0,
        }
    }

    /// Starts another file, whose episode ids are unrelated to those before.
    pub fn next_file(&mut self, table: &'a dyn LogFile) {
        self.table = table;
        self.ended.clear();
    }

    /// Checks the numbers in rows `first..` of a chunk.
    pub fn check(&mut self, chunk: &Chunk, first: usize) -> Result<(), DataError> {
        let (dim, action_dim) = (self.layout.observation_dim(), self.layout.action_dim());
        let is_end = |row: usize| chunk.end_states.get(row).copied().unwrap_or(false);
        let columns = [
            ("observations", Role::State, &chunk.observations, dim),
            ("next_observations", Role::State, &chunk.next_observations, dim),
            // Only finiteness: bounds are checked below, if the user gave any.
            ("actions", Role::State, &chunk.actions, action_dim),
            ("rewards", Role::Reward, &chunk.rewards, 1),
            ("masks", Role::Mask, &chunk.masks, 1),
        ];
        for (name, role, data, width) in columns {
            if data.is_empty() {
                continue;
            }
            let mut from = first * width;
            while let Some(i) = role.first_bad(&data[from..]).map(|i| i + from) {
                from = i + 1;
                let (row, column, value) = (i / width, i % width, data[i]);
                if name != "observations" && is_end(row) {
                    continue; // placeholders in end states
                }
                let problem = role.problem(value);
                self.bad(chunk, row, name, column, value, problem, problem.expected())?;
            }
        }
        let Some(bounds) = self.bounds.clone() else { return Ok(()) };
        for row in (first..chunk.rows).filter(|&row| !is_end(row)) {
            let action = &chunk.actions[row * action_dim..][..action_dim];
            if let Some(i) = outside(&bounds, action) {
                let expected = "an action within --action-bounds";
                self.bad(chunk, row, "actions", i, action[i], Problem::OutOfRange, expected)?;
            }
        }
        Ok(())
    }

    /// Adds all rows but the last, which may continue in the next chunk.
    pub fn rows(&mut self, chunk: &Chunk) -> Result<(), Stop> {
        let mut row = 0;
        while row + 1 < chunk.rows {
            let end = (row..chunk.rows - 1).find(|&row| !self.is_plain(chunk, row)).unwrap_or(chunk.rows - 1);
            if row < end {
                self.steps(chunk, row..end)?;
                row = end;
            } else {
                self.row(chunk, row, Some(row + 1))?;
                row += 1;
            }
        }
        Ok(())
    }

    /// Whether nothing happens in a row but a transition to the state of the next row.
    fn is_plain(&self, chunk: &Chunk, row: usize) -> bool {
        let is = |flags: &[bool], row: usize| flags.get(row).copied().unwrap_or(false);
        let dim = self.layout.observation_dim();
        !is(&chunk.terminals, row)
            && !is(&chunk.timeouts, row)
            && !is(&chunk.end_states, row)
            && !is(&chunk.end_states, row + 1)
            && (chunk.episodes.is_empty() || chunk.episodes[row] == chunk.episodes[row + 1])
            && (chunk.steps.is_empty() || chunk.steps[row + 1] == chunk.steps[row].wrapping_add(1))
            && chunk.successor(row, dim).is_none_or(|successor| successor == chunk.state(row + 1, dim))
    }

    /// Adds rows in which nothing happens but transitions.
    fn steps(&mut self, chunk: &Chunk, rows: Range<usize>) -> Result<(), DataError> {
        let (dim, action_dim) = (self.layout.observation_dim(), self.layout.action_dim());
        let steps = Steps {
            states: &chunk.observations[rows.start * dim..rows.end * dim],
            actions: &chunk.actions[rows.start * action_dim..rows.end * action_dim],
            rewards: &chunk.rewards[rows.clone()],
            masks: if chunk.masks.is_empty() { &[] } else { &chunk.masks[rows] },
        };
        steps.actions.chunks_exact(action_dim.max(1)).for_each(|action| self.seen.actions.add(action));
        self.begun = true;
        self.last_mask = steps.masks.last().copied().unwrap_or(1.0);
        self.sink.rows(steps)
    }

    /// Adds a row; `next` is the following row of the same file.
    pub fn row(&mut self, chunk: &Chunk, row: usize, next: Option<usize>) -> Result<(), Stop> {
        let (dim, action_dim) = (self.layout.observation_dim(), self.layout.action_dim());
        let state = chunk.state(row, dim);
        let same = next.is_some_and(|next| match chunk.episodes.get(next) {
            Some(id) => *id == chunk.episodes[row],
            None => true,
        });
        if !same {
            self.leave(chunk, row, next)?;
        }
        if chunk.end_states.get(row).copied().unwrap_or(false) {
            let end = self.flagged.take();
            return Ok(self.end(state, end)?);
        }
        if same && let Some(next) = next {
            self.check_step(chunk, row, next)?;
        }
        let flag = self.flag(chunk, row);
        let action = &chunk.actions[row * action_dim..][..action_dim];
        let leads_to_end_state = same && next.is_some_and(|next| chunk.end_states.get(next) == Some(&true));
        if leads_to_end_state {
            let end = self.what_ended(flag, false);
            self.step(state, action, chunk, row, end == Ends::Terminal)?;
            self.flagged = Some(end);
            return Ok(());
        }
        if flag.is_some() && same && !chunk.episodes.is_empty() {
            return Err(Stop::Data(self.goes_on(chunk, row)));
        }
        let successor = chunk.successor(row, dim);
        let jumps = same
            && flag.is_none()
            && next.is_some_and(|next| successor.is_some_and(|s| s != chunk.state(next, dim)));
        if jumps {
            self.seen.jumps += 1;
            if self.seen.first_jump.is_none() {
                let place = self.place();
                self.seen.first_jump = Some(format!("{place}, {}", self.row_name(chunk, row)));
            }
        }
        if flag.is_none() && same && !jumps {
            self.step(state, action, chunk, row, false)?;
            return Ok(());
        }
        let end = self.what_ended(flag, jumps);
        let terminal = end == Ends::Terminal || chunk.masks.get(row) == Some(&0.0);
        if terminal || successor.is_some() {
            self.step(state, action, chunk, row, end == Ends::Terminal)?;
        } else {
            self.seen.dropped += 1;
        }
        Ok(self.end(successor.unwrap_or(state), Some(end))?)
    }

    fn step(
        &mut self,
        state: &[f32],
        action: &[f32],
        chunk: &Chunk,
        row: usize,
        terminal: bool,
    ) -> Result<(), DataError> {
        let mask = match chunk.masks.get(row) {
            Some(mask) => *mask,
            None if terminal => 0.0,
            None => 1.0,
        };
        self.seen.actions.add(action);
        self.begun = true;
        self.last_mask = mask;
        self.sink.row(state, Some(Step { action, reward: chunk.rewards[row], mask }))
    }

    fn end(&mut self, state: &[f32], end: Option<Ends>) -> Result<(), DataError> {
        if let Some(reward) = self.rules.reward_last.filter(|_| self.begun) {
            self.sink.set_last_reward(reward);
        }
        let solved = std::mem::take(&mut self.begun) && self.last_mask == 0.0;
        match end.unwrap_or_else(|| self.what_ended(None, false)) {
            _ if solved => self.seen.ends.terminal += 1,
            Ends::Terminal => self.seen.ends.terminal += 1,
            Ends::Timeout => self.seen.ends.timeout += 1,
        }
        self.sink.row(state, None)
    }

    /// The end marked by the flags of a row.
    fn flag(&self, chunk: &Chunk, row: usize) -> Option<Ends> {
        let is = |flags: &[bool]| flags.get(row).copied().unwrap_or(false);
        match (is(&chunk.terminals), is(&chunk.timeouts)) {
            (true, true) if self.rules.terminal_wins => Some(Ends::Terminal),
            (_, true) => Some(Ends::Timeout),
            (true, false) => Some(self.rules.ends.unwrap_or(Ends::Terminal)),
            (false, false) => None,
        }
    }

    /// How an episode ended, given the flag of its last row.
    fn what_ended(&mut self, flag: Option<Ends>, jumped: bool) -> Ends {
        let has_flags = self.layout.terminal.is_some() || self.layout.timeout.is_some();
        match (flag, self.rules.ends) {
            (Some(end), _) => end,
            (None, Some(end)) if !has_flags && !jumped => end,
            (None, _) => {
                self.seen.unflagged += usize::from(has_flags && !jumped);
                Ends::Timeout
            }
        }
    }

    /// Marks the episode of `row` as ended. Refuses a next row that returns to an earlier episode.
    fn leave(&mut self, chunk: &Chunk, row: usize, next: Option<usize>) -> Result<(), Stop> {
        let Some(&id) = chunk.episodes.get(row) else { return Ok(()) };
        self.ended.insert(id);
        if let Some(next) = next
            && self.ended.contains(&chunk.episodes[next])
        {
            let fix = if self.layout.step.is_some() {
                "expected the rows of an episode to follow each other"
            } else {
                "expected the rows of an episode to follow each other; sort the file by episode and time, or name \
                 the column that counts steps with --columns step=NAME"
            };
            let error =
                self.episode_error(chunk, next, format!("an episode that had ended goes on here; {fix}"));
            return Err(if self.layout.step.is_some() { Stop::Unsorted(error) } else { Stop::Data(error) });
        }
        Ok(())
    }

    fn check_step(&self, chunk: &Chunk, row: usize, next: usize) -> Result<(), Stop> {
        let (Some(&step), Some(&after)) = (chunk.steps.get(row), chunk.steps.get(next)) else {
            return Ok(());
        };
        if after == step.wrapping_add(1) {
            return Ok(());
        }
        // Without an episode column, steps restart where flags mark an end.
        if chunk.episodes.is_empty() && self.flag(chunk, row).is_some() {
            return Ok(());
        }
        let what = if after == step {
            format!("found step {after} twice in one episode, expected it once")
        } else {
            format!("found step {after} after step {step}, expected {}", step.wrapping_add(1))
        };
        let error = self.episode_error(chunk, next, what);
        Err(if after < step { Stop::Unsorted(error) } else { Stop::Data(error) })
    }
}

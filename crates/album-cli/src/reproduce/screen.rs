//! The progress display of `album reproduce`.

use album_base::progress::{self, Amount, MultiProgress, ProgressBar};
use album_base::say;
use album_experiments::executor::Event;
use album_experiments::{Plan, PlannedRun};

use std::collections::HashMap;

/// A bar for all steps and one for each active run; plain lines where standard error is not a terminal.
pub struct Screen {
    all: MultiProgress,
    total: Option<ProgressBar>,
    steps: u64,
    runs: HashMap<String, ProgressBar>,
}

impl Screen {
    /// An empty screen; the first [`Event::Total`] draws the overall bar.
    pub fn new(plan: &Plan) -> Self {
        let steps = plan.runs.iter().map(PlannedRun::steps).sum();
        Screen { all: progress::several(), total: None, steps, runs: HashMap::new() }
    }

    /// Shows an executor's event.
    pub fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Note(line) => self.say(&line),
            Event::Started(run) => {
                let bar = progress::bar(run.steps(), Amount::Count);
                let bar = match &self.total {
                    Some(total) => self.all.insert_before(total, bar),
                    None => self.all.add(bar),
                };
                bar.set_message(run.id.clone());
                self.runs.insert(run.id.clone(), bar);
            }
            Event::Step(run, step) => {
                if let Some(bar) = self.runs.get(&run.id) {
                    bar.set_position(step);
                }
            }
            Event::Ended(run) => {
                if let Some(bar) = self.runs.remove(&run.id) {
                    bar.finish_and_clear();
                    self.all.remove(&bar);
                }
            }
            Event::Total(done) => match &self.total {
                Some(bar) => bar.set_position(done),
                None => {
                    let bar = self.all.add(progress::bar(self.steps, Amount::Share));
                    bar.set_prefix("all");
                    bar.set_position(done);
                    // Steps done earlier would distort the remaining time.
                    bar.reset_eta();
                    self.total = Some(bar);
                }
            },
        }
    }

    /// Removes the bars.
    pub fn clear(&self) {
        if let Some(bar) = &self.total {
            bar.finish_and_clear();
        }
    }

    fn say(&self, line: &str) {
        let hidden = self.total.as_ref().is_none_or(ProgressBar::is_hidden);
        if hidden || self.all.println(line).is_err() {
            say!("{line}");
        }
    }
}

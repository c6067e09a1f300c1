//! The progress line of `album train`.

use album_base::console::{self, Level};
use album_base::number::compact;
use album_base::progress::{self, Amount, ProgressBar};
use album_train::Event;

/// Steps, steps per second, remaining time, the last success rate and the range of V.
pub struct LiveLine {
    bar: ProgressBar,
    success: String,
    values: String,
    speed: String,
}

impl LiveLine {
    /// A line for a run of this many steps.
    pub fn new(steps: u64) -> Self {
        let bar = progress::bar(steps, Amount::Count).with_prefix("training");
        LiveLine { bar, success: String::new(), values: String::new(), speed: String::new() }
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, line: String) {
        progress::say(&self.bar, &line);
    }

    /// Shows an event of the trainer. `run` names the run if there are several.
    pub fn show(&mut self, run: &str, event: &Event<'_>) {
        match event {
            Event::Started { step, .. } => {
                self.bar.set_position(*step);
                self.bar.reset_eta();
                if *step > 0 {
                    self.say(format!("{run}resuming after step {step}"));
                }
            }
            Event::Warning(text) => progress::warn(&self.bar, &format!("{run}{text}")),
            Event::Progress { step, ms_per_step } => {
                self.bar.set_position(*step);
                self.speed = format!("{:.0} steps/s", 1e3 / ms_per_step);
            }
            Event::Logged { step, metrics, row, .. } => {
                if console::shows(Level::Verbose) {
                    let shown: Vec<String> =
                        row.iter().map(|(name, value)| format!("{name} {value:.4}")).collect();
                    self.say(format!("{run}step {step:>8}  {}", shown.join("  ")));
                }
                let metric = |name: &str| metrics.iter().find(|m| m.0 == name).map(|m| m.1);
                if let (Some(low), Some(high)) = (metric("value/v_min"), metric("value/v_max")) {
                    self.values = format!("V {low:.1} to {high:.1}");
                }
            }
            Event::Evaluating { .. } => self.bar.set_message("evaluating"),
            Event::Evaluated { evaluation, seconds, background } => {
                let summary = evaluation.summary();
                self.success = summary
                    .success
                    .map_or_else(String::new, |share| format!("success {:.0} %", 100.0 * share));
                let line = format!(
                    "{run}step {:>8}  {}  return {}  length {:.0}  {}  evaluated in {seconds:.1} s{}",
                    summary.step,
                    self.success,
                    compact(summary.mean_return),
                    summary.length,
                    self.values,
                    if *background { " beside training" } else { "" }
                );
                self.say(line);
            }
            Event::Saved { step, .. } if console::shows(Level::Verbose) => {
                self.say(format!("{run}step {step:>8}  checkpoint saved"));
            }
            Event::Saved { .. } | Event::Stopped { .. } => {}
        }
        if !matches!(event, Event::Evaluating { .. }) {
            let parts = [&self.speed, &self.success, &self.values];
            let message: Vec<&str> = parts.iter().map(|s| s.as_str()).filter(|s| !s.is_empty()).collect();
            self.bar.set_message(message.join("  "));
        }
    }
}

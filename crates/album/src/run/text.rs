//! The text that a run prints before and after training.

use super::{Finished, Run};
use crate::error::Error;
use crate::problem::Problem;
use crate::report;
use album_base::number::{bytes, compact, grouped, seconds};
use album_data::{ActionSpace, Description};
use std::fmt;

impl Run {
    /// What is trained on which data, and what was detected about the user's own data.
    pub fn introduction(&self) -> Result<String, Error> {
        let (config, data) = (self.config(), self.data());
        let held_out = self.held_out().map(|data| data.episodes().len());
        let mut text = format!(
            "{} on {}, seed {}: {} steps on {} transitions in {}, into {}",
            config.agent,
            config.problem,
            config.seed,
            grouped(config.train.steps as i64),
            grouped(data.len() as i64),
            report::episodes(config, data.episodes().len(), held_out),
            self.path().display()
        );
        if let Problem::Own(own) = &config.problem {
            let description = &own.read()?.description;
            text.push_str(&format!("\n{}", described(description)));
            description.guesses.iter().for_each(|guess| text.push_str(&format!("\nguessed: {guess}")));
        }
        text.push_str(&format!("\nmemory: about {} besides the data", bytes(self.memory())));
        Ok(text)
    }
}

fn described(data: &Description) -> String {
    let actions = match &data.action_space {
        ActionSpace::Discrete { n } => format!("{n} choices"),
        ActionSpace::Continuous { low, high } => {
            let bounds = low.iter().zip(high).map(|(low, high)| format!("[{low}, {high}]"));
            format!("{} in {}", data.action_names.join(", "), bounds.collect::<Vec<_>>().join(" x "))
        }
    };
    format!(
        "data: {}, {}-dimensional observations, actions {actions}; {} episodes end in a terminal, {} in a timeout",
        data.format,
        data.observation_names.len(),
        data.ends.terminal,
        data.ends.timeout
    )
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finished { run, result, page } = self;
        if !result.finished {
            f.write_str("stopped early: ")?;
        }
        match result.evaluations.last() {
            None => f.write_str("no evaluation")?,
            Some(last) => {
                let episodes = last.episodes;
                if let (Some(success), Some([low, high])) = (last.success, last.success_interval) {
                    let [success, low, high] = [success, low, high].map(|share| 100.0 * share);
                    write!(
                        f,
                        "success {success:.1} % (95 % interval {low:.1} to {high:.1}, {episodes} episodes)"
                    )?;
                } else {
                    let score = result.score.map_or(String::new(), |score| format!(", score {score:.1}"));
                    write!(f, "return {}{score} ({episodes} episodes)", compact(last.mean_return))?;
                }
                if !result.finished {
                    write!(f, " at the last evaluation, after step {}", last.step)?;
                }
            }
        }
        write!(
            f,
            "; {} steps in {} ({:.2} ms per step)\nrun      {}\nreport   {}\nweights  {}",
            result.steps,
            seconds(result.wall_seconds),
            result.ms_per_step,
            run.display(),
            page.display(),
            result.weights_sha256
        )
    }
}

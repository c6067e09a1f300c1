//! Prints an evaluation on the command line.

use super::{Estimate, Evaluation};
use std::fmt;

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |name: &str, Estimate { mean, low, high }: &Estimate| {
            format!("{name:<34} {mean:>10.4}   95 % interval {low:.4} to {high:.4}")
        };
        let (subject, found) = (&self.subject, &self.diagnostics);
        writeln!(
            f,
            "{} of {} after {} steps, on {} episodes ({}); values at initial states, discounted by {}",
            subject.agent, subject.task, subject.step, self.episodes, subject.data, self.gamma
        )?;
        writeln!(f, "{}", row("policy", &self.policy))?;
        writeln!(f, "{:<34} {:>10.4}", "policy, over recorded steps", found.unseen.walked)?;
        writeln!(f, "{}", row("behaviour, same estimator", &self.behaviour.estimated))?;
        writeln!(f, "{:<34} {:>10.4}", "behaviour, observed return", self.behaviour.observed)?;
        writeln!(f, "{}", row("policy minus behaviour", &self.difference))?;
        if let Some(importance) = &self.importance {
            if let Some(wis) = &importance.wis {
                writeln!(f, "{}", row("policy, weighted importance", wis))?;
            }
            writeln!(f, "{}", row("policy, per-decision importance", &importance.pdis))?;
            writeln!(f, "{}", row("policy, doubly robust", &importance.dr))?;
            writeln!(f, "{:<34} {:>10.1}", "effective sample size", importance.effective_sample_size)?;
        }
        write!(
            f,
            "diagnostics: TD error {:.4}, median distance of actions {:.3}, outside the data's support in {:.0} % of states",
            found.td_error.mean_absolute,
            found.action_distance.q50,
            100.0 * found.support.outside
        )?;
        let unseen = &found.unseen;
        write!(
            f,
            ", room for what was never recorded {:.4} below and {:.4} above",
            unseen.below, unseen.above
        )?;
        if let Some(value) = found.agent_value {
            write!(f, ", the agent's own value {value:.4}")?;
        }
        write!(f, "\nverdict: {}: {}", self.verdict, self.reason)
    }
}

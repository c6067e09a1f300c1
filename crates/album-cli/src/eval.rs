//! `album eval`: a look at the policy of a run, and at its critic.

use crate::output;
use crate::resources::ResourceArgs;
use album::Error as Failure;
use album::judge::{Critic, Judgement, Look, judge};
use album_base::say;
use album_train::StopFlag;
use std::path::PathBuf;

/// A look at a trained policy.
#[derive(clap::Args)]
pub struct Args {
    /// The run directory
    run: PathBuf,
    /// Episodes
    #[arg(long, default_value_t = 50)]
    episodes: usize,
    /// Evaluate the checkpoint of this step [default: the latest]
    #[arg(long)]
    step: Option<u64>,
    /// Seed of the episodes [default: the run's]
    #[arg(long)]
    seed: Option<u64>,
    /// Write films of the first N episodes (GIF) into the run directory
    #[arg(long, value_name = "N", default_value_t = 0)]
    video: usize,
    /// Also compare the critic's values with the best values that the data supports
    #[arg(long)]
    critic: bool,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album eval`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Args { episodes, step, seed, video: videos, critic, .. } = *args;
    if episodes == 0 && !critic {
        return Err(Failure::Usage("--episodes is 0; expected at least 1, or --critic".into()));
    }
    let look = Look { episodes, step, seed, videos, critic };
    let judged = judge(&args.run, &look, &args.resources.get(), &StopFlag::on_signals()?)?;
    for warning in &judged.warnings {
        say!("warning: {warning}");
    }
    output::show(args.json, &judged, || text(&judged))
}

fn text(judged: &Judgement) -> String {
    let result = &judged.result;
    let mut text = format!("{} after {} steps", result.task, result.steps);
    if let Some(last) = result.evaluations.last() {
        if let (Some(success), Some([low, high])) = (last.success, last.success_interval) {
            let [success, low, high] = [success, low, high].map(|share| 100.0 * share);
            text.push_str(&format!(": success {success:.1} % (95 % interval {low:.1} to {high:.1})"));
        }
        text.push_str(&format!(
            " over {} episodes, return {:.1}, length {:.0}; {} steps in {:.1} s, {} episodes side by side",
            last.episodes, last.mean_return, last.length, last.timesteps, result.eval_seconds, judged.slots
        ));
    }
    for film in &judged.videos {
        text.push_str(&format!("\nfilm     {}", film.display()));
    }
    if let Some(critic) = &judged.critic {
        text.push_str(&format!("\n{}", critic_lines(critic)));
    }
    text
}

fn critic_lines(Critic { learned, v_star }: &Critic) -> String {
    let value = |name: &str| learned.get(name).copied().unwrap_or(f64::NAN);
    let line = |name, [max, mean, min]: [f64; 3]| {
        format!("{name:<10} max {max:>8.1}  mean {mean:>8.1}  min {min:>8.1}")
    };
    format!(
        "{}\n{}  g_B <= 0 on {:.0} % of the data",
        line("V* of data", [v_star.max, v_star.mean, v_star.min]),
        line("learned V", ["value/v_max", "value/v_mean", "value/v_min"].map(value)),
        100.0 * value("critic/g_b_satisfied")
    )
}

//! `album data expert`.

use crate::output;
use crate::resources::ResourceArgs;
use album::Error as Failure;
use album::expert::{self, Expert};
use album_base::progress::{self, Amount};
use album_base::say;
use album_train::{OnlineEvent, StopFlag};
use std::io::IsTerminal;
use std::path::PathBuf;

/// The arguments of `album data expert`.
#[derive(clap::Args)]
pub struct Args {
    /// Whose: `ant`, which walks in commanded directions
    #[arg(value_enum)]
    body: Body,
    /// The policy's file; `csv`, `svg` and `state` files of the same name are written beside it [default: in album's cache,
    /// where `album data generate` looks]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Steps in the environment, with one update each
    #[arg(long, value_name = "N", default_value_t = Expert::STEPS)]
    steps: u64,
    /// Seed of the training
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Episodes that the trained policy is judged by
    #[arg(long, value_name = "N", default_value_t = 20)]
    episodes: usize,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Body {
    /// Four legs
    Ant,
}

/// Runs `album data expert`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Body::Ant = args.body;
    let expert = Expert {
        steps: args.steps,
        seed: args.seed,
        episodes: args.episodes,
        out: match &args.out {
            Some(file) => file.clone(),
            None => expert::cached()?,
        },
        resources: args.resources.get(),
    };
    let (bar, lines) =
        (progress::bar(args.steps, Amount::Count).with_prefix("steps"), !std::io::stderr().is_terminal());
    let trained = expert.train(&StopFlag::on_signals()?, &mut |event| match event {
        OnlineEvent::Resumed { step } => progress::say(&bar, &format!("going on after {step} steps")),
        OnlineEvent::Lost { reason } => {
            progress::say(&bar, &format!("the environment was lost, its episode is played again: {reason}"));
        }
        OnlineEvent::Logged { step, recent } => {
            bar.set_position(*step);
            let message = format!("{:.3} m a step, episodes of {:.0}", recent.reward, recent.length);
            if lines {
                say!("{step} steps: {message}");
            }
            bar.set_message(message);
        }
        _ => {}
    });
    bar.finish_and_clear();
    let trained = trained?;
    output::show(args.json, &trained, || {
        format!(
            "wrote {} after {} steps: {:.3} m a step ({:.2} m/s) along the commanded direction, episodes of {:.0} steps",
            trained.policy.display(),
            trained.steps,
            trained.metres_per_step,
            trained.metres_per_second,
            trained.length
        )
    })
}

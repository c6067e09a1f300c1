//! `album data expert`.

use crate::output;
use crate::resources::ResourceArgs;
use album::Error as Failure;
use album::expert::Expert;
use album_base::progress::{self, Amount, Lines};
use album_train::{OnlineEvent, StopFlag};
use std::path::PathBuf;
use std::time::Duration;

/// The arguments of `album data expert`.
#[derive(clap::Args)]
pub struct Args {
    /// The body to train: `ant`, which learns to walk in commanded directions
    #[arg(value_enum)]
    body: Body,
    /// The policy file; `csv`, `svg` and `state` files of the same name are written beside it
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Environment steps, each followed by one gradient update
    #[arg(long, value_name = "N", default_value_t = Expert::STEPS)]
    steps: u64,
    /// Training seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Episodes to evaluate the trained policy on
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
    /// A four-legged robot
    Ant,
}

/// Runs `album data expert`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Body::Ant = args.body;
    let expert = Expert {
        steps: args.steps,
        seed: args.seed,
        episodes: args.episodes,
        out: args.out.clone(),
        resources: args.resources.get(),
    };
    let bar = progress::bar(args.steps, Amount::Count).with_prefix("steps");
    let mut lines = Lines::every(Duration::from_secs(30));
    let trained = expert.train(&StopFlag::on_signals()?, &mut |event| match event {
        OnlineEvent::Logged { step, recent } => {
            bar.set_position(*step);
            lines.say(&bar, || format!("{step} steps: {recent}"));
            bar.set_message(recent.to_string());
        }
        _ => progress::say(&bar, &event.to_string()),
    });
    bar.finish_and_clear();
    let trained = trained?;
    output::show(args.json, &trained, || trained.to_string())
}

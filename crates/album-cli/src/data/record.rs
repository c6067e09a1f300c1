//! `album data record`.

use crate::choices::choices;
use crate::output;
use crate::resources::ResourceArgs;
use album::Error as Failure;
use album::rollouts::{Layout, RolloutRequest};
use album_base::progress::{self, Amount};
use album_envs::EnvSpec;
use album_envs::rollouts::Progress;
use album_train::StopFlag;
use clap::builder::TypedValueParser;
use std::num::NonZero;
use std::path::PathBuf;

/// The arguments of `album data record`.
#[derive(clap::Args)]
pub struct Args {
    /// The environment: gymnasium:ID, or FILE.py:FUNCTION that returns one
    #[arg(long, value_name = "ENV")]
    env: String,
    /// A keyword argument of the environment; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    env_arg: Vec<String>,
    /// The policy: `random`, a run directory, or FILE.py:FUNCTION that takes an observation (and a NumPy
    /// generator)
    #[arg(long, value_name = "POLICY", default_value = "random")]
    policy: String,
    /// Standard deviation of Gaussian noise on every action, as a fraction of half the action's range
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    noise: f64,
    /// Fraction of actions that are replaced by uniformly random ones
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    epsilon: f64,
    /// Number of episodes
    #[arg(long, value_name = "N", default_value = "100")]
    episodes: NonZero<usize>,
    /// Cut episodes after this many steps [default: the environment's own limit]
    #[arg(long, value_name = "N")]
    max_steps: Option<NonZero<usize>>,
    /// Seed of the recording
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The file to write, or the folder for `--format minari`
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Format of the output
    #[arg(long, value_parser = layouts(), default_value = "npz")]
    format: Layout,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

fn layouts() -> impl TypedValueParser<Value = Layout> {
    choices([
        ("npz", Layout::Npz, "One npz file with a row for each transition"),
        ("minari", Layout::Minari, "A Minari dataset folder (HDF5)"),
    ])
}

/// Runs `album data record`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let request = RolloutRequest {
        env: args.env.parse::<EnvSpec>()?.with_args(&args.env_arg)?,
        policy: args.policy.clone(),
        noise: args.noise,
        epsilon: args.epsilon,
        episodes: args.episodes,
        max_steps: args.max_steps,
        seed: args.seed,
        out: args.out.clone(),
        layout: args.format,
        resources: args.resources.get(),
    };
    let bar = progress::bar(args.episodes.get() as u64, Amount::Count).with_prefix("episodes");
    let recorded = request.record(&StopFlag::on_signals()?, &mut |progress| match progress {
        Progress::Recorded { episodes, .. } => bar.set_position(episodes as u64),
        Progress::Lost { reason } => {
            progress::warn(&bar, &format!("a worker died and its episode is repeated: {reason}"));
        }
        _ => {}
    });
    bar.finish_and_clear();
    let recorded = recorded?;
    output::show(args.json, &recorded, || recorded.to_string())
}

//! `album eval`: a look at the policy of a run, and at its critic.

use crate::resources::ResourceArgs;
use crate::{output, video};
use album::{Error as Failure, Trained};
use album_agents::Agent;
use album_tabular::{ValueSummary, in_sample_values};
use album_train::{Episode, Outcome, Plan, RunResult, StopFlag, critic_statistics, episode_seeds, evaluate};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// A look at a trained policy.
#[derive(clap::Args)]
pub struct Args {
    /// The run directory
    run: PathBuf,
    /// Episodes
    #[arg(long, default_value_t = 50)]
    episodes: usize,
    /// Evaluate the checkpoint of this step (default: the latest)
    #[arg(long)]
    step: Option<u64>,
    /// Seed of the episodes (default: the run's)
    #[arg(long)]
    seed: Option<u64>,
    /// Write films of the first N episodes (GIF) into the run directory
    #[arg(long, value_name = "N", default_value_t = 0)]
    video: usize,
    /// Also tell what the critic says about the data, beside the best values that the data supports
    #[arg(long)]
    critic: bool,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Every third step is a picture, and OGBench's arm moves 20 times a second: about twice as fast as it is.
const FRAMES_PER_SECOND: f64 = 15.0;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    result: RunResult,
    /// Processes or native environments that ran the episodes.
    workers: usize,
    episodes: Vec<Episode>,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    videos: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    critic: Option<Critic>,
}

/// The critic over a fixed sample of the data, and the best values that the data supports.
#[derive(Serialize)]
struct Critic {
    learned: BTreeMap<String, f64>,
    v_star: ValueSummary,
}

/// Runs `album eval`.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.episodes == 0 && !args.critic {
        return Err(Failure::Usage("--episodes is 0; expected at least 1, or --critic".into()));
    }
    let start = Instant::now();
    let resources = args.resources.get();
    let trained = Trained::open(&args.run, args.step, &resources)?;
    let data = args.critic.then(|| trained.data()).transpose()?;
    let Trained { config, mut agent, checkpoint } = trained;
    let step = checkpoint.step();
    let stop = StopFlag::on_signals()?;
    let seeds = episode_seeds(args.seed.unwrap_or(config.seed), step, args.episodes);
    let plan = Plan { step, seeds, paths: 0, videos: args.video.min(args.episodes) };
    let mut envs = config.problem.environments(args.episodes, &resources)?;
    let outcome = evaluate(agent.policy().as_mut(), envs.as_mut(), &plan, &stop)?;
    let Some(Outcome { evaluation, seconds, warnings, videos }) = outcome else {
        return Err(Failure::Stopped("evaluation stopped; nothing was changed".into()));
    };
    let mut films = Vec::new();
    if !videos.is_empty() {
        let folder = args.run.join("videos");
        std::fs::create_dir_all(&folder).map_err(Failure::io(&folder))?;
    }
    for (number, frames) in videos.iter().enumerate() {
        let path = args.run.join("videos").join(format!("step_{step:09}-episode_{number:03}.gif"));
        video::write_gif(&path, frames, FRAMES_PER_SECOND)?;
        films.push(path);
    }
    let critic = match &data {
        Some(data) => {
            let v_star = in_sample_values(data, config.setup()?.common().gamma)?.summary;
            Some(Critic { learned: critic_statistics(&mut agent, data)?, v_star })
        }
        None => None,
    };
    let summary = evaluation.summary();
    let evaluated = args.episodes > 0;
    let result = RunResult {
        success: evaluated.then_some(summary.success),
        evaluations: if evaluated { vec![summary.clone()] } else { Vec::new() },
        wall_seconds: start.elapsed().as_secs_f64(),
        eval_seconds: seconds,
        ..RunResult::of(&checkpoint, step == config.train.steps, agent.parameters())
    }
    .with_versions(envs.versions());
    if args.json {
        let episodes = evaluation.episodes;
        return output::print_json(&Report {
            result,
            workers: envs.workers(),
            episodes,
            warnings,
            videos: films,
            critic,
        });
    }
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    let mut text = format!("{} after {step} steps", config.problem);
    if evaluated {
        let [low, high] = summary.success_interval;
        text.push_str(&format!(
            ": success {:.1} % (95 % interval {:.1} to {:.1}) over {} episodes, return {:.1}, length {:.0}; {} steps in \
             {seconds:.1} s, {} episodes side by side",
            100.0 * summary.success,
            100.0 * low,
            100.0 * high,
            summary.episodes,
            summary.mean_return,
            summary.length,
            summary.timesteps,
            envs.slots()
        ));
    }
    for film in films {
        text.push_str(&format!("\nfilm     {}", film.display()));
    }
    if let Some(critic) = critic {
        text.push_str(&format!("\n{}", critic_lines(&critic)));
    }
    output::print(&text)
}

fn critic_lines(Critic { learned, v_star }: &Critic) -> String {
    let of = |name: &str| learned.get(name).copied().unwrap_or(f64::NAN);
    let line = |name, [max, mean, min]: [f64; 3]| {
        format!("{name:<10} max {max:>8.1}  mean {mean:>8.1}  min {min:>8.1}")
    };
    format!(
        "{}\n{}  g_B <= 0 on {:.0} % of the data",
        line("V* of data", [v_star.max, v_star.mean, v_star.min]),
        line("learned V", ["value/v_max", "value/v_mean", "value/v_min"].map(of)),
        100.0 * of("critic/g_b_satisfied")
    )
}

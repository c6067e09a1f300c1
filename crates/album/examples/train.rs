//! The training loop by hand: a dataset, an agent, batches, updates, actions.
//!
//! `cargo run --release -p album --example train`

#![allow(clippy::print_stderr)] // an example

use album_agents::agents::album::{Config, HingeCritic};
use album_agents::{Agent, Common, Learner, Metrics, Moment};
use album_data::{Dataset, Rows, Sampler, Segments};
use album_nn::Pool;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let data = Dataset::from_rows(walks())?;
    let (steps, seed) = (2_000, 0);
    let common = Common { hidden: vec![64, 64], gamma: 0.9, ..Common::default() };
    let config =
        Config { common, critic: HingeCritic { k: 5, ..HingeCritic::default() }, ..Config::default() };
    let mut agent = Learner::new(&config, &data, steps, seed, &Pool::new(0))?;

    // Segments extract (s, a, r, s', s_K, ...) from the episodes; the sampler chooses which.
    let segments = Segments::new(agent.segments())?;
    let sampler = Sampler::new(seed, data.len());
    let mut batch = segments.batch(&data, agent.batch_size());
    let mut metrics = Metrics::new();
    for step in 0..steps {
        sampler.fill(step, batch.indices_mut());
        segments.gather(&data, &mut batch);
        let logging = step % 500 == 499;
        let loss = agent.update(&batch, step, logging.then_some(&mut metrics));
        if logging {
            let v =
                metrics.iter().find(|metric| metric.0 == "value/v_mean").map_or(f64::NAN, |metric| metric.1);
            eprintln!("step {:>5}  loss {loss:>8.4}  mean V {v:>8.3}", step + 1);
        }
    }

    let mut policy = agent.policy();
    let observations = [-0.8, -0.3, 0.3, 0.8];
    let moments: Vec<Moment> = (0..4).map(|episode| Moment { episode, step: 0 }).collect();
    let mut actions = Vec::new();
    policy.act(&observations, &moments, &mut actions);
    for (x, push) in observations.iter().zip(&actions) {
        eprintln!("at {x:>4}: push {push:>5.2}");
    }
    Ok(())
}

/// Random walks on a line; the reward is highest at 0.
fn walks() -> Rows {
    let mut rows = Rows { observation_dim: 1, action_dim: 1, ..Rows::default() };
    for episode in 0..1000 {
        let mut x = (episode % 21) as f32 / 10.0 - 1.0;
        for step in 0..10 {
            let push = if (episode * 7 + step * 13) % 11 < 5 { -0.8 } else { 0.8 };
            rows.observations.push(x);
            rows.actions.push(push);
            rows.rewards.push(-x.abs());
            rows.masks.push(1.0);
            rows.terminals.push(step == 9);
            x = (x + 0.2 * push).clamp(-1.0, 1.0);
        }
    }
    rows
}

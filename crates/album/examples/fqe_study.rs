//! How good is fitted Q evaluation where the true value of a policy is known?
//!
//! ```text
//! cargo run --release -p album --example fqe_study -- OUT [pointmaze] [mudworld] [pendulum]
//! ```
//!
//! Trains several agents briefly in each of three worlds, evaluates every checkpoint on held-out episodes,
//! and computes the true value of each policy. `OUT/WORLD.csv` has one row per policy; a second call
//! continues where the first stopped. `OUT/WORLD.npz` has the data and the policies' actions, from which
//! `benches/peers/fqe_d3rlpy.py` has d3rlpy answer the same question.

#![allow(clippy::print_stderr)] // an example

use album::fqe::{Judge, Settings};
use album::{Dataset, Rows};
use album_agents::{Agent, AgentKind, Common, Learner, Moment, Policy};
use album_base::rng;
use album_data::ogbench::{MazeSize, within};
use album_data::{ActionSpace, NpzWriter, Sampler, Segments};
use album_envs::navigate::{Recipe, record};
use album_envs::{Maze, advance};
use album_nn::Pool;
use album_tabular::{Behaviour, Encoding, MudWorld};
use std::error::Error;
use std::fmt::Write as _;
use std::num::NonZero;
use std::path::Path;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The mean value of a policy over the initial-state distribution.
type Truth = Box<dyn Fn(&mut dyn Policy) -> Outcome<f64>>;

struct World {
    name: &'static str,
    /// Agents, with their settings.
    agents: [(&'static str, &'static str); 4],
    settings: &'static str,
    /// Steps after which the policy is evaluated.
    checkpoints: [u64; 6],
    gamma: f64,
    data: Dataset,
    held_out: Dataset,
    truth: Truth,
}

const COLUMNS: &str = "number,policy,truth,mean,low,high,behaviour,observed,verdict,outside,unseen,below,above,walked,wis,pdis,dr,ess,gap,agent_value,difference";

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("expected a folder for the results")?;
    let named: Vec<String> = arguments.collect();
    std::fs::create_dir_all(&out)?;
    for (name, world) in
        [("mudworld", mudworld as fn() -> Outcome<World>), ("pendulum", pendulum), ("pointmaze", pointmaze)]
    {
        if named.is_empty() || named.iter().any(|asked| asked == name) {
            study(&world()?, Path::new(&out))?;
        }
    }
    Ok(())
}

fn study(world: &World, out: &Path) -> Outcome<()> {
    let World { data, held_out, .. } = world;
    let observations: Vec<f32> = held_out.states().flatten().copied().collect();
    let states = observations.len() / held_out.observation_dim();
    let moments: Vec<Moment> = (0..states as u64).map(|episode| Moment { episode, step: 0 }).collect();
    let mut npz = NpzWriter::create(out.join(format!("{}.npz", world.name)))?;
    write_data(&mut npz, held_out, &observations)?;
    let pool = Pool::new(1);
    let mut settings: toml::Table = world.settings.parse()?;
    settings.insert("gamma".into(), world.gamma.into());

    // True values and actions of all policies first, so that the d3rlpy study can start.
    let mut policies = Vec::new();
    for (name, own) in world.agents {
        let kind = AgentKind::find(name)?;
        let mut table = kind.defaults()?;
        table.extend(settings.clone());
        table.extend(own.parse::<toml::Table>()?);
        let setup = kind.setup(&table)?;
        let last = world.checkpoints[world.checkpoints.len() - 1];
        let mut agent = Learner::new(setup.as_ref(), data, last, 0, &pool)?;
        let segments = Segments::new(agent.segments())?;
        let (sampler, mut batch) = (Sampler::new(0, data.len()), segments.batch(data, agent.batch_size()));
        for step in 0..last {
            sampler.fill(step, batch.indices_mut());
            segments.gather(data, &mut batch);
            agent.update(&batch, step, None);
            if world.checkpoints.contains(&(step + 1)) {
                let truth = (world.truth)(agent.policy().as_mut())?;
                let mut actions = Vec::new();
                agent.policy().act(&observations, &moments, &mut actions);
                held_out.action_space().from_physical(&mut actions);
                let name = format!("policy_{}", policies.len());
                npz.array_f32(&name, &[states, actions.len() / states], &actions)?;
                let mut copy = Learner::new(setup.as_ref(), data, last, 0, &pool)?;
                copy.load(&agent.state())?;
                let name = format!("{}-{}", kind.name, step + 1);
                eprintln!("{} {name}: truth {truth:.3}", world.name);
                policies.push((name, truth, copy));
            }
        }
    }
    let common: Common = settings.try_into()?;
    let how = Settings { threads: 1, ..Settings::of(common) };
    let mut judge = Judge::new(held_out, None, &how)?;
    npz.array_f32("gamma", &[1], &[world.gamma as f32])?;
    npz.array_i64("updates", &[1], &[judge.updates() as i64])?;
    npz.array_i64("policies", &[1], &[policies.len() as i64])?;
    npz.finish()?;

    let path = out.join(format!("{}.csv", world.name));
    let mut csv = std::fs::read_to_string(&path).unwrap_or_else(|_| format!("{COLUMNS}\n"));
    // First an early and a late checkpoint of every agent, so that partial results cover all of them equally.
    let each = world.checkpoints.len();
    let mut order: Vec<usize> = (0..policies.len()).collect();
    order.sort_by_key(|policy| ((policy % each + policy / each) % (each / 2), *policy));
    for policy in order {
        let (name, truth, agent) = &mut policies[policy];
        if csv.lines().any(|line| line.split(',').nth(1) == Some(name)) {
            continue;
        }
        let found = judge.evaluate(agent)?;
        let importance = found.importance.as_ref();
        let number = |x: Option<f64>| x.map_or_else(String::new, |x| x.to_string());
        let unseen = &found.diagnostics.unseen;
        writeln!(
            csv,
            "{policy},{name},{truth},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            found.policy.mean,
            found.policy.low,
            found.policy.high,
            found.behaviour.estimated.mean,
            found.behaviour.observed,
            found.verdict,
            found.diagnostics.support.outside,
            unseen.weight,
            unseen.below,
            unseen.above,
            unseen.walked,
            number(importance.and_then(|i| i.wis).map(|wis| wis.mean)),
            number(importance.map(|i| i.pdis.mean)),
            number(importance.map(|i| i.dr.mean)),
            number(importance.map(|i| i.effective_sample_size)),
            found.diagnostics.calibration_gap,
            number(found.diagnostics.agent_value),
            found.difference.mean,
        )?;
        eprintln!(
            "{} {name}: truth {truth:.3}, {:?}, {unseen:?}: {}",
            world.name, found.policy, found.verdict
        );
        std::fs::write(&path, &csv)?;
    }
    Ok(())
}

/// The held-out data state by state, including the final state of each episode.
fn write_data(npz: &mut NpzWriter, data: &Dataset, observations: &[f32]) -> Outcome<()> {
    let (mut actions, mut rewards, mut masks, mut last) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let width = data.action_dim();
    for episode in 0..data.episodes().len() {
        actions.extend_from_slice(data.episode_actions(episode).data());
        actions.extend(vec![0.0; width]);
        rewards.extend_from_slice(data.episode_rewards(episode));
        rewards.push(0.0);
        masks.extend_from_slice(data.episode_masks(episode));
        masks.push(1.0);
        last.extend(vec![false; data.episodes().length(episode)]);
        last.push(true);
    }
    let n = last.len();
    npz.array_f32("observations", &[n, data.observation_dim()], observations)?;
    npz.array_f32("actions", &[n, width], &actions)?;
    npz.array_f32("rewards", &[n], &rewards)?;
    npz.array_f32("masks", &[n], &masks)?;
    npz.array_bool("last", &[n], &last)?;
    let choices = match data.action_space() {
        ActionSpace::Discrete { n } => *n,
        ActionSpace::Continuous { .. } => 0,
    };
    npz.array_i64("choices", &[1], &[choices as i64])?;
    Ok(())
}

/// MudWorld, 10 x 10, with near-optimal data; the true values are exact.
fn mudworld() -> Outcome<World> {
    let (gamma, encoding) = (0.95, Encoding::OneHot);
    let world = MudWorld::new(10, 0);
    let (data, held_out) = world.recorded(Behaviour::EpsGreedy, gamma, encoding)?.hold_out(0.3, 0)?;
    let truth = move |policy: &mut dyn Policy| {
        let values = world.value_of_policy(gamma, |cell| {
            let mut action = Vec::new();
            policy.act(&world.observation(cell, encoding), &[Moment { episode: 0, step: 0 }], &mut action);
            (0..4).map(|a| f64::from(u8::from(a as f32 == action[0]))).collect()
        })?;
        Ok(values[..world.goal()].iter().sum::<f64>() / world.goal() as f64)
    };
    Ok(World {
        name: "mudworld",
        agents: [("album", ""), ("bc", ""), ("iql", ""), ("hinge-iql", "")],
        settings: "hidden = [32, 32]\nstandardize = true\nreward_scale = 5.0",
        checkpoints: [30, 100, 300, 1000, 2000, 4000],
        gamma,
        data,
        held_out,
        truth: Box::new(truth),
    })
}

/// Steps per episode of Pendulum.
const SWINGS: usize = 100;

/// The dynamics of gymnasium's Pendulum-v1: angle, velocity, torque -> reward.
fn swing([angle, speed]: &mut [f64; 2], torque: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    let wrapped = (*angle + PI).rem_euclid(TAU) - PI;
    let reward = -(wrapped * wrapped + 0.1 * *speed * *speed + 0.001 * torque * torque);
    *speed = (*speed + (15.0 * angle.sin() + 3.0 * torque) * 0.05).clamp(-8.0, 8.0);
    *angle += *speed * 0.05;
    reward
}

fn seen([angle, speed]: [f64; 2]) -> [f32; 3] {
    [angle.cos() as f32, angle.sin() as f32, speed as f32]
}

fn hanging(seed: u64) -> [f64; 2] {
    let mut draw = rng::stream(seed, "pendulum");
    [(2.0 * rng::unit(&mut draw) - 1.0) * std::f64::consts::PI, 2.0 * rng::unit(&mut draw) - 1.0]
}

/// Pendulum: episodes of a noisy controller of varying quality.
fn pendulum() -> Outcome<World> {
    let recorded = |first: u64, episodes: u64| -> Outcome<Dataset> {
        let mut rows = Rows { observation_dim: 3, action_dim: 1, ..Rows::default() };
        for episode in first..first + episodes {
            let (mut state, mut draw) = (hanging(episode), rng::stream(episode, "hand"));
            let shaky = 0.2 + 0.6 * rng::unit(&mut draw);
            for step in 0..=SWINGS {
                let near = state[0].cos() > 0.8;
                let steady =
                    if near { -8.0 * state[0].sin() - 2.0 * state[1] } else { 2.0 * state[1].signum() };
                let random = 4.0 * rng::unit(&mut draw) - 2.0;
                let torque = if rng::unit(&mut draw) < shaky { random } else { steady.clamp(-2.0, 2.0) };
                rows.observations.extend(seen(state));
                rows.actions.push(torque as f32);
                rows.masks.push(1.0);
                rows.terminals.push(step == SWINGS);
                rows.rewards.push(swing(&mut state, torque) as f32);
            }
        }
        Ok(Dataset::in_space(rows, ActionSpace::Continuous { low: vec![-2.0], high: vec![2.0] })?)
    };
    let gamma = 0.95;
    let truth = move |policy: &mut dyn Policy| {
        let mut states: Vec<[f64; 2]> = (1_000_000..1_000_500).map(hanging).collect();
        let (mut sum, mut weight, mut actions) = (0.0, 1.0 / states.len() as f64, Vec::new());
        for step in 0..200 {
            let observations: Vec<f32> = states.iter().flat_map(|&state| seen(state)).collect();
            let moments: Vec<Moment> =
                (0..states.len() as u64).map(|episode| Moment { episode, step }).collect();
            policy.act(&observations, &moments, &mut actions);
            for (state, &torque) in states.iter_mut().zip(&actions) {
                sum += weight * swing(state, torque.into());
            }
            weight *= gamma;
        }
        Ok(sum)
    };
    Ok(World {
        name: "pendulum",
        agents: [("album", ""), ("bc", ""), ("iql", ""), ("fql", "")],
        settings: "hidden = [32, 32]\nstandardize = true\nreward_scale = 0.1",
        checkpoints: [30, 100, 300, 1000, 2000, 4000],
        gamma,
        data: recorded(0, 300)?,
        held_out: recorded(10_000, 100)?,
        truth: Box::new(truth),
    })
}

/// PointMaze, medium: OGBench's recipe, labelled with the first task's goal.
fn pointmaze() -> Outcome<World> {
    let (size, gamma) = (MazeSize::Medium, 0.97);
    let goal = size.tasks()[0].goal.center();
    let solved = move |[x, y]: [f64; 2]| within([x, y], goal, 1.0);
    let recorded = |seed: u64, episodes: usize| -> Outcome<Dataset> {
        let recipe = Recipe { episodes, rows: 301, ..Recipe::train(size, seed) };
        let recording = record(&recipe, NonZero::<usize>::MIN);
        let at = recording
            .positions
            .chunks_exact(2)
            .map(|p| solved([p[0].into(), p[1].into()]))
            .collect::<Vec<_>>();
        Ok(Dataset::from_rows(Rows {
            observation_dim: 2,
            action_dim: 2,
            rewards: at.iter().map(|&at| if at { 0.0 } else { -1.0 }).collect(),
            masks: at.iter().map(|&at| if at { 0.0 } else { 1.0 }).collect(),
            observations: recording.positions,
            actions: recording.actions,
            terminals: recording.terminals,
        })?)
    };
    let starts = record(&Recipe { episodes: 400, rows: 1, ..Recipe::train(size, 99) }, NonZero::<usize>::MIN);
    let maze = Maze::new(size);
    let truth = move |policy: &mut dyn Policy| {
        let mut running: Vec<(u64, [f64; 2])> = starts
            .positions
            .chunks_exact(2)
            .enumerate()
            .map(|(episode, p)| (episode as u64, [p[0].into(), p[1].into()]))
            .collect();
        let (mut sum, mut weight, mut actions) = (0.0, 1.0 / running.len() as f64, Vec::new());
        for step in 0..400 {
            running.retain(|&(_, position)| !solved(position));
            sum -= weight * running.len() as f64;
            weight *= gamma;
            let observations: Vec<f32> =
                running.iter().flat_map(|(_, position)| position.map(|x| x as f32)).collect();
            let moments: Vec<Moment> = running.iter().map(|&(episode, _)| Moment { episode, step }).collect();
            policy.act(&observations, &moments, &mut actions);
            for ((_, position), action) in running.iter_mut().zip(actions.chunks_exact(2)) {
                *position = advance(&maze, *position, [action[0].into(), action[1].into()]).position;
            }
        }
        Ok(sum)
    };
    Ok(World {
        name: "pointmaze",
        // As in the presets for PointMaze.
        agents: [
            ("album", "alpha_bc = 0.001\ncritic_lr = 1e-3\nactor_lr = 1e-3"),
            ("bc", "lr = 1e-3"),
            ("iql", "lr = 1e-3\ntau = 0.05\nalpha = 10.0"),
            ("fql", "lr = 1e-3\ntau = 0.05\nalpha = 1.0\nq_agg = \"min\""),
        ],
        settings: "hidden = [32, 32]\nstandardize = true\nreward_scale = 0.3\nfourier_features = 32\nfourier_scale = 3.0",
        checkpoints: [100, 300, 1000, 2500, 5000, 8000],
        gamma,
        data: recorded(0, 300)?,
        held_out: recorded(1, 100)?,
        truth: Box::new(truth),
    })
}

//! Small data and small agents for the tests.
#![allow(clippy::unwrap_used, dead_code)] // each test file uses a part of it

use album_agents::{Agent, AgentKind, Learner, Metrics};
use album_base::rng;
use album_data::{ActionSpace, Batch, Dataset, Rows, Sampler, Segments};
use album_nn::Pool;
use album_xla::Device;

/// Episodes of `rows` states with three coordinates, and actions with two; no task is solved.
pub fn data(episodes: usize, rows: usize) -> Dataset {
    let n = episodes * rows;
    let mut draw = rng::stream(4, "test");
    let mut numbers =
        |n: usize| -> Vec<f32> { (0..n).map(|_| 2.0 * rng::unit(&mut draw) as f32 - 1.0).collect() };
    Dataset::from_rows(Rows {
        observation_dim: 3,
        action_dim: 2,
        observations: numbers(3 * n),
        actions: numbers(2 * n),
        rewards: vec![-1.0; n],
        masks: vec![1.0; n],
        terminals: (0..n).map(|row| row % rows == rows - 1).collect(),
    })
    .unwrap()
}

/// The same with choices for actions and random rewards.
pub fn discrete_data(episodes: usize, rows: usize, choices: usize) -> Dataset {
    let n = episodes * rows;
    let mut draw = rng::stream(5, "test");
    let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| rng::unit(&mut draw) as f32).collect() };
    let rows = Rows {
        observation_dim: 3,
        action_dim: 1,
        observations: numbers(3 * n).into_iter().map(|x| 2.0 * x - 1.0).collect(),
        actions: numbers(n).into_iter().map(|x| (x * choices as f32).floor()).collect(),
        rewards: numbers(n).into_iter().map(|x| x - 1.0).collect(),
        masks: (0..n).map(|row| if row % rows == rows - 3 { 0.0 } else { 1.0 }).collect(),
        terminals: (0..n).map(|row| row % rows == rows - 1).collect(),
    };
    Dataset::in_space(rows, ActionSpace::Discrete { n: choices }).unwrap()
}

/// Updates `0..steps`.
pub fn train(agent: &mut Learner, data: &Dataset, steps: u64) {
    let segments = Segments::new(agent.segments()).unwrap();
    let mut batch = segments.batch(data, agent.batch_size());
    for step in 0..steps {
        Sampler::new(1, data.len()).fill(step, batch.indices_mut());
        segments.gather(data, &mut batch);
        assert!(agent.update(&batch, step, None).is_finite());
    }
}

/// The value of a logged metric.
pub fn metric(metrics: &Metrics, name: &str) -> f64 {
    metrics.iter().find(|metric| metric.0 == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// An agent with small networks; `total_steps` is the length of its schedules.
pub fn agent(name: &str, settings: &str, data: &Dataset, total_steps: u64) -> Learner {
    let kind = AgentKind::find(name).unwrap();
    let mut table = kind.defaults().unwrap();
    table.extend("hidden = [8]".parse::<toml::Table>().unwrap());
    table.extend(settings.parse::<toml::Table>().unwrap());
    Learner::new(kind.setup(&table).unwrap().as_ref(), data, total_steps, 0, &Pool::new(1)).unwrap()
}

/// The batch of some transitions.
pub fn batch(agent: &Learner, data: &Dataset, indices: &[usize]) -> Batch {
    let segments = Segments::new(agent.segments()).unwrap();
    let mut batch = segments.batch(data, indices.len());
    batch.indices_mut().copy_from_slice(indices);
    segments.gather(data, &mut batch);
    batch
}

/// The first device of the plugin named by the environment variable.
pub fn device() -> Option<Device> {
    let Some(plugin) = std::env::var_os(album_xla::PLUGIN) else {
        album_testing::skip("xla", "ALBUM_XLA_PLUGIN does not name a plugin");
        return None;
    };
    Some(Device::all(plugin.as_ref()).unwrap().remove(0))
}

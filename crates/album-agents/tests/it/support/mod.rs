//! Small data and small agents for the tests.
#![allow(clippy::unwrap_used, dead_code)] // each test file uses a part of it

use album_agents::{Agent, AgentKind, Learner};
use album_base::rng;
use album_data::{Batch, Dataset, Rows, Segments};
use album_nn::Pool;

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

/// An agent with small networks; `total_steps` is what schedules stretch over.
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

//! Data with the sizes of antmaze-large, which the paper measures cost on.

use crate::error::Error;
use album_base::rng;
use album_data::{Dataset, Rows};

/// Random data: its contents do not affect the time of a step, except that a realistic share of hinges is
/// active. Episodes have 1000 steps.
pub fn antmaze_large(episodes: usize) -> Result<Dataset, Error> {
    let (observation_dim, action_dim, rows) = (29, 8, episodes * 1001);
    let mut draw = rng::stream(0, "bench");
    let mut normal = |n: usize| -> Vec<f32> {
        (0..n.div_ceil(2)).flat_map(|_| rng::normal_pair(&mut draw)).map(|x| x as f32).take(n).collect()
    };
    let observations = normal(rows * observation_dim);
    let actions = normal(rows * action_dim).into_iter().map(f32::tanh).collect();
    Dataset::from_rows(Rows {
        observation_dim,
        action_dim,
        observations,
        actions,
        rewards: vec![-1.0; rows],
        masks: vec![1.0; rows],
        terminals: (0..rows).map(|row| row % 1001 == 1000).collect(),
    })
    .map_err(Error::Data)
}

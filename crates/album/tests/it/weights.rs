//! The weights of every agent after 200 steps, bit for bit: a change of the engine, sampling or a loss shows
//! here first.

use album::{Dataset, Fit, Rows};
use album_agents::AGENTS;
use std::fmt::Write;

/// Integers over powers of two, so that the data is identical on every machine.
fn data() -> Dataset {
    let (episodes, length) = (20, 50);
    let mut rows = Rows { observation_dim: 3, action_dim: 2, ..Rows::default() };
    let mut state = 1u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as f32 / 32_768.0 - 1.0
    };
    for _ in 0..episodes {
        for step in 0..length {
            rows.observations.extend([draw(), draw(), step as f32 / 64.0]);
            rows.actions.extend([draw() * 0.75, draw() * 0.75]);
            rows.rewards.push(if step % 17 == 16 { 0.0 } else { -1.0 });
            rows.masks.push(if step % 17 == 16 { 0.0 } else { 1.0 });
            rows.terminals.push(step + 1 == length);
        }
    }
    Dataset::from_rows(rows).unwrap()
}

/// Only with glibc: the last bit of `exp`, `tanh` and the like differs between C libraries. `ALBUM_BLESS=1`
/// rewrites the list; every changed line must be explained by a corrected error.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "other mathematical functions")]
fn two_hundred_steps_of_every_agent_give_the_accepted_weights() {
    let data = data();
    let mut found = String::from("agent,weights_sha256\n");
    for kind in AGENTS {
        let fit = Fit::new(kind.name).unwrap().set("hidden", vec![16, 16]).unwrap();
        let fitted = fit.set("batch_size", 16).unwrap().steps(200).threads(1).run(&data).unwrap();
        writeln!(found, "{},{}", kind.name, fitted.weights_sha256()).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/weights.csv");
    if std::env::var_os("ALBUM_BLESS").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    let accepted = std::fs::read_to_string(path).unwrap();
    for (found, accepted) in found.lines().zip(accepted.lines()) {
        assert_eq!(found, accepted);
    }
    assert_eq!(found.lines().count(), accepted.lines().count());
}

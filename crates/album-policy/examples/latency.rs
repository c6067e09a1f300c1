//! Latency of single decisions, queried over a pipe: every line `N` on standard input is answered with the
//! median of N decisions in nanoseconds. `benches/policy_latency.py` alternates it with onnxruntime.
//!
//! ```text
//! cargo run --release -p album-policy --example latency -- policy.safetensors
//! ```
#![allow(clippy::print_stdout)]

use album_policy::Policy;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: latency POLICY.safetensors")?;
    let mut policy = Policy::load(file)?;
    let mut observation = vec![0.1; policy.manifest().observation_dim()];
    let mut action = vec![0.0; policy.manifest().decision_len()];
    for line in std::io::stdin().lines() {
        let count: usize = line?.trim().parse()?;
        let mut times = Vec::with_capacity(count);
        for i in 0..count {
            observation[0] = (i % 10) as f32 * 0.1;
            let start = Instant::now();
            policy.act(&observation, &mut action)?;
            times.push(start.elapsed().as_nanos());
        }
        times.sort_unstable();
        println!("{}", times.get(count / 2).unwrap_or(&0));
    }
    Ok(())
}

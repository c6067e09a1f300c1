//! Compares an exported policy with its agent on the same observations and the same noise.

use super::Format;
use crate::error::Error;
use album_agents::{Agent, Learner, Moment, RecordedPolicy};
use album_base::rng;
use album_data::ActionSpace;
use album_envs::Python;
use album_policy::{Policy, PolicyFile};
use serde::Serialize;
use std::io::Write;
use std::process::Stdio;

/// If two candidates' scores differ by less than this, relatively, rounding decides which one is taken.
const CLOSE: f32 = 1e-5;
/// A larger difference cannot be rounding: the exported policy is a different one.
const MOST_DIFFERENCE: f64 = 1e-3;
/// Exit code of the script if onnxruntime is missing.
const MISSING: i32 = 42;
const SCRIPT: &str = include_str!("onnx_run.py");

/// How an exported policy compares with its agent.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The runtime that executed the file.
    pub by: String,
    /// Number of observations compared.
    pub observations: usize,
    /// Largest difference, in units of half an action's range; for discrete actions 1 if any differs.
    pub max_difference: f64,
    /// Number of observations left out because two candidates or choices are tied up to rounding.
    pub close_calls: usize,
}

impl Checked {
    /// Refuses a file whose policy differs from the agent's.
    pub(super) fn accepted(self) -> Result<Self, Error> {
        // Written so that NaN fails.
        if self.max_difference <= MOST_DIFFERENCE {
            return Ok(self);
        }
        Err(Error::Numerical(format!(
            "{}: the exported policy differs from the agent by {:e} of half an action's range; expected at most {MOST_DIFFERENCE:e}. \
             Nothing was written; please report it with the run's config.toml",
            self.by, self.max_difference
        )))
    }
}

/// Compares an encoded policy with the agent on `n` random observations. The inner error says why the comparison
/// cannot be made on this machine.
pub fn check(
    agent: &Learner,
    policy: &PolicyFile,
    format: Format,
    bytes: &[u8],
    n: usize,
) -> Result<Result<Checked, String>, Error> {
    let recorded = agent.recorded_policy();
    let questions = Questions::new(&recorded, n);
    let expected = questions.asked(agent, &recorded);
    let failed = |e: album_policy::PolicyError| Error::Numerical(format!("the exported policy: {e}"));
    let mut own = Policy::new(policy.clone()).map_err(failed)?;
    let (s, z, a) = questions.widths;
    let mut close = vec![false; n];
    let mut found = vec![0.0; n * a];
    for i in 0..n {
        let (observation, noise) = (&questions.observations[i * s..][..s], &questions.noise[i * z..][..z]);
        own.act_with(observation, noise, &mut found[i * a..][..a]).map_err(failed)?;
        close[i] = own.margin() < CLOSE;
    }
    let by = match format {
        Format::Safetensors => {
            let mut policy = Policy::from_bytes(bytes).map_err(failed)?;
            policy.act_with(&questions.observations, &questions.noise, &mut found).map_err(failed)?;
            "album-policy".to_owned()
        }
        Format::Onnx => match run_onnx(bytes, &questions)? {
            Ok((by, actions)) => {
                found = actions;
                by
            }
            Err(reason) => return Ok(Err(reason)),
        },
    };
    let scale = scale(&recorded.actions, recorded.open_loop);
    let mut max_difference = 0.0f64;
    for i in (0..n).filter(|&i| !close[i]) {
        for j in 0..a {
            let difference = f64::from(expected[i * a + j]) - f64::from(found[i * a + j]);
            // NaN must not count as agreement.
            let difference = (difference / scale[j]).abs();
            max_difference = if difference <= max_difference { max_difference } else { difference };
        }
    }
    let close_calls = close.iter().filter(|close| **close).count();
    Ok(Ok(Checked { by, observations: n - close_calls, max_difference, close_calls }))
}

/// Half the range of each number in a decision.
fn scale(actions: &ActionSpace, open_loop: usize) -> Vec<f64> {
    let one = match actions {
        ActionSpace::Discrete { .. } => vec![1.0],
        ActionSpace::Continuous { low, high } => {
            let half = low.iter().zip(high).map(|(low, high)| 0.5 * (f64::from(*high) - f64::from(*low)));
            half.map(|half| if half > 0.0 { half } else { 1.0 }).collect()
        }
    };
    one.repeat(open_loop)
}

/// Random observations, with the noise that the agent draws for them.
struct Questions {
    observations: Vec<f32>,
    noise: Vec<f32>,
    /// Widths of an observation, of its noise and of a decision.
    widths: (usize, usize, usize),
}

impl Questions {
    /// Normal observations, with the data's mean and scale if the agent standardises, else standard normal.
    fn new(recorded: &RecordedPolicy, n: usize) -> Self {
        let encoding = &recorded.encoding;
        let s = encoding.observation_dim();
        let mut stream = rng::stream(0, "export check");
        let (mut observations, mut noise) = (Vec::with_capacity(n * s), Vec::new());
        while observations.len() < n * s {
            let (mean, inverse) = encoding.standard().map_or((0.0, 1.0), |all| all[observations.len() % s]);
            let [z, _] = rng::normal_pair(&mut stream);
            observations.push((f64::from(mean) + z / f64::from(inverse)) as f32);
        }
        for i in 0..n {
            noise.extend(recorded.noise(moment(i, 0)).concat());
        }
        let decision = recorded.open_loop * recorded.actions.dim();
        let z = noise.len().checked_div(n).unwrap_or(0);
        Questions { observations, noise, widths: (s, z, decision) }
    }

    /// The agent's decisions, with all actions of a chunk.
    fn asked(&self, agent: &Learner, recorded: &RecordedPolicy) -> Vec<f32> {
        let (s, _, a) = self.widths;
        let (n, h, dim) = (self.observations.len() / s, recorded.open_loop, recorded.actions.dim());
        let mut policy = agent.policy();
        let (mut decisions, mut actions) = (vec![0.0; n * a], Vec::new());
        for step in 0..h {
            // In small batches: an agent discards plans when too many episodes are open.
            for from in (0..n).step_by(512) {
                let to = (from + 512).min(n);
                let moments: Vec<Moment> = (from..to).map(|i| moment(i, step)).collect();
                policy.act(&self.observations[from * s..to * s], &moments, &mut actions);
                for (i, action) in (from..to).zip(actions.chunks_exact(dim)) {
                    decisions[i * a + step * dim..][..dim].copy_from_slice(action);
                }
            }
        }
        decisions
    }
}

fn moment(i: usize, step: usize) -> Moment {
    Moment { episode: i as u64, step: step as u64 }
}

/// The answers of onnxruntime and its version, or the reason why it cannot run.
#[allow(clippy::type_complexity, reason = "an answer, or why there is none, or a failure")]
fn run_onnx(bytes: &[u8], questions: &Questions) -> Result<Result<(String, Vec<f32>), String>, Error> {
    let python = match Python::find(None) {
        Ok(python) => python,
        Err(_) => {
            return Ok(Err(
                "no Python with onnxruntime; `album setup gymnasium onnxruntime` makes one".into()
            ));
        }
    };
    let (s, z, a) = questions.widths;
    let n = questions.observations.len() / s;
    let mut input =
        [bytes.len(), n, s, z].map(|x| x as u64).iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    input.extend(bytes);
    for numbers in [&questions.observations, &questions.noise] {
        input.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
    }
    let failed = |e: std::io::Error| Error::Tool(format!("{}: {e}", python.interpreter().display()));
    let mut child = python
        .command()
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut stdin = child.stdin.take();
    let writer = std::thread::spawn(move || {
        // If the script stops reading, its standard error says why.
        if let Some(stdin) = &mut stdin {
            let _ = stdin.write_all(&input);
        }
    });
    let said = child.wait_with_output().map_err(failed)?;
    let _ = writer.join();
    let complaint = String::from_utf8_lossy(&said.stderr);
    if said.status.code() == Some(MISSING) {
        return Ok(Err(format!(
            "{} has no onnxruntime; `album setup gymnasium onnxruntime` installs it",
            python.interpreter().display()
        )));
    }
    let newline = said.stdout.iter().position(|byte| *byte == b'\n');
    match newline.map(|at| said.stdout.split_at(at)) {
        Some((version, numbers)) if said.status.success() && numbers.len() == 1 + 4 * n * a => {
            let numbers = numbers[1..].as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
            Ok(Ok((format!("onnxruntime {}", String::from_utf8_lossy(version)), numbers)))
        }
        _ => Err(Error::Tool(format!("onnxruntime does not run the exported model: {}", complaint.trim()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_policy_is_refused() {
        let checked =
            |max_difference| Checked { by: "x".into(), observations: 9, max_difference, close_calls: 0 };
        assert!(checked(1e-5).accepted().is_ok());
        for difference in [2e-3, f64::NAN] {
            assert_eq!(checked(difference).accepted().unwrap_err().exit_code(), 4);
        }
    }
}

//! The exported form against the agent, on the same observations with the same noise.

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

/// Below this, relative to the scores, the better of two candidates is a matter of rounding.
const CLOSE: f32 = 1e-5;
/// A larger difference is no rounding error: the exported form is another policy.
const MOST_DIFFERENCE: f64 = 1e-3;
/// The exit code by which the script says that onnxruntime is missing.
const MISSING: i32 = 42;
const SCRIPT: &str = include_str!("onnx_run.py");

/// How an exported policy compares with its agent.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// What ran the file.
    pub by: String,
    /// Observations that were compared.
    pub observations: usize,
    /// The largest difference, in halves of the range of an action. For choices, 1 if any differs.
    pub max_difference: f64,
    /// Observations that were left out, because two candidates or choices are equally good but for rounding.
    pub close_calls: usize,
}

impl Checked {
    /// Refuses a file that does something else than the agent.
    pub(super) fn accepted(self) -> Result<Self, Error> {
        // NaN must not pass.
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

/// Compares the bytes of an exported file with the agent on `n` random observations; the inner error says why that is not
/// possible here.
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
            // NaN must not pass for agreement.
            let difference = (difference / scale[j]).abs();
            max_difference = if difference <= max_difference { max_difference } else { difference };
        }
    }
    let close_calls = close.iter().filter(|close| **close).count();
    Ok(Ok(Checked { by, observations: n - close_calls, max_difference, close_calls }))
}

/// Half the range of each number of a decision.
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

/// Observations with the noise that the agent draws for them.
struct Questions {
    observations: Vec<f32>,
    noise: Vec<f32>,
    /// Of an observation, of its noise, of a decision.
    widths: (usize, usize, usize),
}

impl Questions {
    /// Spread like the data where the agent knows how, standard normal otherwise.
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

    /// What the agent does: every action of each decision.
    fn asked(&self, agent: &Learner, recorded: &RecordedPolicy) -> Vec<f32> {
        let (s, _, a) = self.widths;
        let (n, h, dim) = (self.observations.len() / s, recorded.open_loop, recorded.actions.dim());
        let mut policy = agent.policy();
        let (mut decisions, mut actions) = (vec![0.0; n * a], Vec::new());
        for step in 0..h {
            // Few at a time: an agent forgets plans when there are too many episodes.
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

/// What onnxruntime does, with its version, or why it cannot run.
#[allow(clippy::type_complexity, reason = "an answer, or why there is none, or a failure")]
fn run_onnx(bytes: &[u8], questions: &Questions) -> Result<Result<(String, Vec<f32>), String>, Error> {
    let python = match Python::find(None) {
        Ok(python) => python,
        Err(e) => return Ok(Err(format!("no Python with onnxruntime: {e}"))),
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
        // A script that stops reading says why on its standard error.
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

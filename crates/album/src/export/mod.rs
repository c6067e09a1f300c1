//! A policy in one file: everything from an observation to an action in physical units, without the dataset, the agent or
//! this workspace.
//!
//! [`album_agents::RecordedPolicy`] is what an agent computed for one observation. `steps` makes the steps of a
//! [`PolicyFile`] of it; that is the safetensors form, which the crate `album-policy` runs, and `onnx` writes the same steps
//! as an ONNX model. Neither knows an agent.

mod check;
mod onnx;
mod steps;

use crate::error::Error;
use crate::names;
use crate::resources::Resources;
use crate::run::Trained;
use album_agents::{Agent, Learner};
use album_base::{atomic, files};
use album_data::ActionSpace;
use album_policy::{Actions, Manifest, PolicyFile};
use album_train::weights_sha256;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

pub use check::{Checked, check};
pub use onnx::OPSET;

/// How a policy is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For any runtime that reads ONNX.
    Onnx,
    /// For the crate `album-policy` and `album act`.
    Safetensors,
}

/// Which policy, and where to.
#[derive(Clone, Debug)]
pub struct Export {
    /// The checkpoint of this step; otherwise the best or the latest one.
    pub step: Option<u64>,
    /// How it is written.
    pub format: Format,
    /// The file.
    pub out: PathBuf,
    /// Observations on which the file is compared with the agent.
    pub check: Option<usize>,
}

/// What was written.
#[derive(Clone, Debug, Serialize)]
pub struct Exported {
    /// The file.
    pub file: PathBuf,
    /// How it is written.
    pub format: Format,
    /// The version of ONNX's operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opset: Option<i64>,
    /// What the policy takes.
    pub inputs: Vec<Port>,
    /// What it returns.
    pub outputs: Vec<Port>,
    /// The largest difference from the agent, in halves of the range of an action; `None` where nothing was compared.
    pub max_difference: Option<f64>,
    /// What was compared, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// Why nothing was compared, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        for (what, ports) in [("in ", &self.inputs), ("out", &self.outputs)] {
            for port in ports {
                write!(f, "\n{what}  {} {} {:?}", port.name, port.kind, port.sizes)?;
            }
        }
        let Some(checked) = &self.checked else { return Ok(()) };
        let Checked { by, max_difference, observations, close_calls, .. } = checked;
        write!(f, "\n{by}: largest difference {max_difference:.1e} on {observations} observations")?;
        match close_calls {
            0 => Ok(()),
            n => write!(f, "; {n} left out, where two choices differ by rounding only"),
        }
    }
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Port {
    /// Its name.
    pub name: &'static str,
    /// `float32` or `int64`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Sizes after that of the batch.
    pub sizes: Vec<usize>,
}

/// Where a policy comes from.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// What it learned to do.
    pub task: String,
    /// The algorithm.
    pub agent: String,
    /// The seed of the run.
    pub seed: u64,
    /// Updates done.
    pub step: u64,
    /// Names of the numbers in an observation; numbered where there are none.
    pub observations: Vec<String>,
    /// Names of the numbers in an action or of choices; numbered where there are none.
    pub actions: Vec<String>,
}

/// Writes the policy of a run into a file, which is replaced if it exists, or stays as it was if anything fails.
pub fn export(run: &Path, export: &Export) -> Result<Exported, Error> {
    let trained = Trained::open(run, export.step, &Resources::default())?;
    refuse_replacing(run, &export.out)?;
    let names = names::read(run)?.unwrap_or_default();
    let about = About {
        task: trained.config.problem.to_string(),
        agent: trained.config.agent.clone(),
        seed: trained.config.seed,
        step: trained.checkpoint.step(),
        observations: names.observations,
        actions: names.actions,
    };
    let policy = policy_file(&trained.agent, &about)?;
    let bytes = encode(&policy, export.format)?;
    // Compared before it takes the place of anything.
    let (checked, skipped) = match export.check {
        None => (None, None),
        Some(n) => match check(&trained.agent, &policy, export.format, &bytes, n)? {
            Ok(checked) => (Some(checked.accepted()?), None),
            Err(reason) => (None, Some(reason)),
        },
    };
    atomic::write(&export.out, &bytes).map_err(Error::io(&export.out))?;
    let (inputs, outputs) = ports(&policy.manifest, export.format);
    Ok(Exported {
        file: export.out.clone(),
        format: export.format,
        opset: (export.format == Format::Onnx).then_some(OPSET),
        inputs,
        outputs,
        max_difference: checked.as_ref().map(|checked| checked.max_difference),
        checked,
        skipped,
    })
}

/// Refuses to replace a file of the run itself: only another policy beside them.
fn refuse_replacing(run: &Path, out: &Path) -> Result<(), Error> {
    let is_policy = out.extension().is_some_and(|end| end == "onnx" || end == "safetensors");
    let of_run = files::is_inside(out, run) && out.exists() && !is_policy;
    if of_run || files::is_inside(out, &run.join("checkpoints")) {
        return Err(Error::Usage(format!(
            "{} belongs to the run; choose another name for the policy",
            out.display()
        )));
    }
    Ok(())
}

/// The policy of an agent, in all its parts.
pub fn policy_file(agent: &Learner, about: &About) -> Result<PolicyFile, Error> {
    let recorded = agent.recorded_policy();
    let steps::Built { graph, tensors, noise } = steps::build(&recorded)?;
    let named = |names: &[String], what: &str, n: usize| match names.len() {
        found if found == n => names.to_vec(),
        _ => numbered(what, n),
    };
    let dim = recorded.actions.dim();
    let actions = match recorded.actions {
        ActionSpace::Continuous { low, high } => {
            Actions::Continuous { names: named(&about.actions, "action", dim), low, high }
        }
        ActionSpace::Discrete { n } => {
            let labels = if about.actions.len() == n && n > 1 { about.actions.clone() } else { Vec::new() };
            Actions::Discrete { n, names: labels }
        }
    };
    Ok(PolicyFile {
        manifest: Manifest {
            task: about.task.clone(),
            agent: about.agent.clone(),
            seed: about.seed,
            step: about.step,
            weights_sha256: weights_sha256(&agent.state()),
            album: env!("CARGO_PKG_VERSION").into(),
            observations: named(&about.observations, "observation", recorded.encoding.observation_dim()),
            actions,
            open_loop: recorded.open_loop,
            noise,
        },
        graph,
        tensors,
    })
}

/// The bytes of a policy's file.
pub fn encode(policy: &PolicyFile, format: Format) -> Result<Vec<u8>, Error> {
    match format {
        Format::Safetensors => policy.to_bytes().map_err(|e| e.to_string()),
        Format::Onnx => onnx::encode(policy),
    }
    .map_err(|reason| Error::Config(format!("the policy cannot be exported: {reason}")))
}

fn ports(manifest: &Manifest, format: Format) -> (Vec<Port>, Vec<Port>) {
    let float = |name, sizes| Port { name, kind: "float32", sizes };
    let mut inputs = vec![float("observation", vec![manifest.observation_dim()])];
    if !manifest.noise.is_empty() {
        inputs.push(float("noise", vec![manifest.noise.len()]));
    }
    let dim = manifest.actions.dim();
    let output = match (&manifest.actions, format) {
        (Actions::Discrete { .. }, Format::Onnx) => Port { name: "action", kind: "int64", sizes: vec![] },
        _ if manifest.open_loop > 1 => float("action", vec![manifest.open_loop, dim]),
        _ => float("action", vec![dim]),
    };
    (inputs, vec![output])
}

fn numbered(what: &str, n: usize) -> Vec<String> {
    if n == 1 { vec![what.to_owned()] } else { (0..n).map(|i| format!("{what}[{i}]")).collect() }
}

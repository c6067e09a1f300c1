//! Exports a policy as one self-contained file that maps an observation to an action in physical units, without the
//! dataset, the agent or this workspace.
//!
//! [`album_agents::RecordedPolicy`] records what an agent computes for one observation. `steps` turns it into the
//! steps of a [`PolicyFile`], the safetensors form, which the crate `album-policy` runs; `onnx` writes the same steps
//! as an ONNX model. Neither depends on a particular agent.

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

/// File format of an exported policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// ONNX, for any runtime that reads it.
    Onnx,
    /// Safetensors, for the crate `album-policy` and `album act`.
    Safetensors,
}

/// Which policy to export, and where to.
#[derive(Clone, Debug)]
pub struct Export {
    /// Step of the checkpoint; by default the best one, else the latest.
    pub step: Option<u64>,
    /// File format.
    pub format: Format,
    /// Output file.
    pub out: PathBuf,
    /// Number of observations on which to compare the file with the agent.
    pub check: Option<usize>,
}

/// Summary of an export.
#[derive(Clone, Debug, Serialize)]
pub struct Exported {
    /// The file written.
    pub file: PathBuf,
    /// Its format.
    pub format: Format,
    /// ONNX opset version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opset: Option<i64>,
    /// Inputs of the policy.
    pub inputs: Vec<Port>,
    /// Outputs of the policy.
    pub outputs: Vec<Port>,
    /// Largest difference from the agent, in units of half an action's range; `None` if nothing was compared.
    pub max_difference: Option<f64>,
    /// Result of the comparison, if one was requested and made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// Why a requested comparison was skipped.
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

/// An input or output of the policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Port {
    /// Its name.
    pub name: &'static str,
    /// `float32` or `int64`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Dimensions after the batch dimension.
    pub sizes: Vec<usize>,
}

/// Provenance of a policy.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Task that it was trained on.
    pub task: String,
    /// Name of the algorithm.
    pub agent: String,
    /// Seed of the run.
    pub seed: u64,
    /// Number of updates done.
    pub step: u64,
    /// Names of the observation dimensions; if empty, they are numbered.
    pub observations: Vec<String>,
    /// Names of the action dimensions or of the discrete actions; if empty, they are numbered.
    pub actions: Vec<String>,
}

/// Writes the policy of a run to a file. An existing file is replaced, and left untouched if anything fails.
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
    // Compare before replacing an existing file.
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

/// Refuses to overwrite a file of the run itself, unless that file is an exported policy.
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

/// Converts an agent's policy into a [`PolicyFile`].
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

/// Encodes a policy in the given format.
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

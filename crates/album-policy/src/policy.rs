//! A loaded policy.

use crate::compute::Inputs;
use crate::error::PolicyError;
use crate::file::{PolicyFile, Tensors};
use crate::graph::{Graph, Shape, Step};
use crate::kernel::Kernel;
use crate::manifest::Manifest;
use crate::random::Random;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Maximum entries of a matrix in one pass: a large batch is processed in several.
const PASS: usize = 1 << 20;

/// Maximum size of a policy file in bytes.
const MOST_FILE: u64 = 4 << 30;
/// Maximum count of numbers that a policy may keep per observation.
const MOST_MEMORY: usize = 1 << 26;

/// A policy, ready to act. It keeps its buffers: nothing is allocated after the first call of a size.
///
/// ```no_run
/// use album_policy::Policy;
///
/// let mut policy = Policy::load("policy.safetensors")?;
/// let observations = vec![0.0; policy.manifest().observation_dim()];
/// let mut actions = vec![0.0; policy.manifest().decision_len()];
/// policy.act(&observations, &mut actions)?;
/// # Ok::<(), album_policy::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Policy {
    manifest: Manifest,
    pub(crate) steps: Vec<Planned>,
    /// Storage of matrices; that of matrices no longer needed is reused.
    pub(crate) slots: Vec<Slot>,
    /// Observations per pass.
    pass: usize,
    noise: Vec<f32>,
    random: Random,
    margin: f32,
}

/// A step with its weights and slot.
#[derive(Debug)]
pub(crate) struct Planned {
    pub step: Step,
    pub shape: Shape,
    /// The slot of its result; unused for constants.
    pub slot: usize,
    pub weights: Weights,
}

#[derive(Debug)]
pub(crate) enum Weights {
    None,
    Row(Arc<[f32]>),
    Dense(Arc<Kernel>, Option<Arc<[f32]>>),
    Norm(Arc<[f32]>, Arc<[f32]>),
}

#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Count of numbers per observation.
    entries: usize,
    pub data: Vec<f32>,
}

impl Policy {
    /// Loads a policy from a file written by `album export --format safetensors`. The file is not trusted:
    /// whatever it contains, the result is an error or a policy that acts.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PolicyError> {
        let path = path.as_ref();
        let io = |source| PolicyError::Io { path: path.to_owned(), source };
        // Checked before opening: a pipe would block forever, and a device has no end.
        let found = std::fs::metadata(path).map_err(io)?;
        if !found.is_file() || found.len() > MOST_FILE {
            let kind =
                if found.is_file() { format!("{} bytes", found.len()) } else { "no regular file".into() };
            return Err(PolicyError::damaged(format!(
                "found {kind}; expected a file of at most {MOST_FILE} bytes"
            )));
        }
        Self::from_bytes(&std::fs::read(path).map_err(io)?)
    }

    /// Loads a policy from the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PolicyError> {
        Self::new(PolicyFile::from_bytes(bytes)?)
    }

    /// Builds a policy from its parts.
    pub fn new(PolicyFile { manifest, graph, tensors }: PolicyFile) -> Result<Self, PolicyError> {
        manifest.check().map_err(PolicyError::Damaged)?;
        let shapes = graph
            .shapes(manifest.observation_dim(), manifest.noise.len(), &tensors)
            .map_err(PolicyError::Damaged)?;
        let decision = Shape { rows: Some(1), cols: manifest.decision_len() };
        if shapes.last() != Some(&decision) {
            return Err(PolicyError::damaged(format!(
                "it ends in {:?}; expected {decision:?}",
                shapes.last()
            )));
        }
        let largest = shapes.iter().map(|shape| shape.entries()).max().unwrap_or(1);
        let (places, slots) = places(&graph, &shapes);
        let memory = slots.iter().map(|slot| slot.entries).sum::<usize>();
        if memory > MOST_MEMORY {
            return Err(PolicyError::damaged(format!(
                "it needs {memory} numbers; expected at most {MOST_MEMORY}"
            )));
        }
        let mut pool = Pool { tensors: &tensors, rows: HashMap::new(), kernels: HashMap::new() };
        let steps = graph.steps.into_iter().zip(shapes).zip(places);
        let steps = steps.map(|((step, shape), slot)| {
            let weights = pool.weights(&step);
            Planned { step, shape, slot, weights }
        });
        Ok(Policy {
            steps: steps.collect(),
            slots,
            pass: (PASS / largest).clamp(1, 256),
            noise: Vec::new(),
            random: Random::new(0),
            margin: f32::INFINITY,
            manifest,
        })
    }

    /// The origin, inputs and outputs of the policy.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Restarts the noise of a stochastic policy with a seed; the default seed is 0.
    pub fn seed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    /// Writes a decision for each observation, row by row: actions in physical units, or the index of a
    /// choice. The actions of one decision are side by side. A stochastic policy draws its own noise.
    pub fn act(&mut self, observations: &[f32], actions: &mut [f32]) -> Result<(), PolicyError> {
        let rows = self.rows(observations, actions)?;
        let mut noise = std::mem::take(&mut self.noise);
        let (shape, width) = (self.manifest.noise, self.manifest.noise.len());
        noise.resize((rows * width).max(noise.len()), 0.0);
        for row in noise[..rows * width].chunks_exact_mut(width.max(1)) {
            let (normal, uniform) = row.split_at_mut(shape.normal);
            self.random.normal(normal);
            uniform.fill_with(|| self.random.uniform());
        }
        let acted = self.act_with(observations, &noise[..rows * width], actions);
        self.noise = noise;
        acted
    }

    /// The same with given noise, [`Manifest::noise`] numbers per observation.
    pub fn act_with(
        &mut self,
        observations: &[f32],
        noise: &[f32],
        actions: &mut [f32],
    ) -> Result<(), PolicyError> {
        let rows = self.rows(observations, actions)?;
        let widths =
            [self.manifest.observation_dim(), self.manifest.noise.len(), self.manifest.decision_len()];
        let expected = rows * widths[1];
        if noise.len() != expected {
            return Err(PolicyError::Length {
                what: "noise",
                found: noise.len(),
                expected: expected.to_string(),
            });
        }
        if let Some(at) = observations.iter().position(|x| !x.is_finite()) {
            let name = self.manifest.observations[at % widths[0]].clone();
            return Err(PolicyError::NotFinite { row: at / widths[0], name, found: observations[at] });
        }
        self.margin = f32::INFINITY;
        for from in (0..rows).step_by(self.pass) {
            let count = (rows - from).min(self.pass);
            let part = |width: usize| from * width..(from + count) * width;
            self.run(count, &observations[part(widths[0])], &noise[part(widths[1])]);
            if let Some(last) = self.steps.last() {
                let decided = &self.slots[last.slot].data[..count * widths[2]];
                actions[part(widths[2])].copy_from_slice(decided);
            }
        }
        match actions.iter().position(|x| !x.is_finite()) {
            Some(at) => Err(PolicyError::Overflow { row: at / widths[2] }),
            None => Ok(()),
        }
    }

    /// The lead of the best candidate or choice over the next best one in the last call, relative to its
    /// score, at the closest of its rows; infinite for policies that do not choose. If it is as small as
    /// rounding errors, another machine may choose differently.
    pub fn margin(&self) -> f32 {
        self.margin
    }

    /// The number of observations.
    fn rows(&self, observations: &[f32], actions: &[f32]) -> Result<usize, PolicyError> {
        let (width, decision) = (self.manifest.observation_dim(), self.manifest.decision_len());
        let length = |what, found, expected| Err(PolicyError::Length { what, found, expected });
        if !observations.len().is_multiple_of(width) {
            let expected = format!("{width} for each observation");
            return length("observations", observations.len(), expected);
        }
        let rows = observations.len() / width;
        if actions.len() != rows * decision {
            let expected = format!("{decision} for each of {rows} observations");
            return length("actions", actions.len(), expected);
        }
        Ok(rows)
    }

    fn run(&mut self, batch: usize, observations: &[f32], noise: &[f32]) {
        for slot in &mut self.slots {
            slot.data.resize((slot.entries * batch).max(slot.data.len()), 0.0);
        }
        for i in 0..self.steps.len() {
            if matches!(self.steps[i].step, Step::Constant { .. }) {
                continue;
            }
            let slot = self.steps[i].slot;
            let mut data = std::mem::take(&mut self.slots[slot].data);
            let shape = self.steps[i].shape;
            let rows = shape.rows.map_or(1, |rows| rows * batch);
            let inputs = Inputs { policy: self, batch, observations, noise };
            let margin = inputs.compute(i, rows, &mut data[..rows * shape.cols]);
            self.margin = self.margin.min(margin);
            self.slots[slot].data = data;
        }
    }
}

/// Shares tensors between the steps that refer to them.
struct Pool<'a> {
    tensors: &'a Tensors,
    rows: HashMap<String, Arc<[f32]>>,
    kernels: HashMap<String, Arc<Kernel>>,
}

impl Pool<'_> {
    fn row(&mut self, name: &str) -> Arc<[f32]> {
        let data = self.tensors.data(name);
        self.rows.entry(name.to_owned()).or_insert_with(|| data.into()).clone()
    }

    fn weights(&mut self, step: &Step) -> Weights {
        match step {
            Step::Constant { tensor } => Weights::Row(self.row(tensor)),
            Step::Norm { scale, shift, .. } => Weights::Norm(self.row(scale), self.row(shift)),
            Step::Linear { kernel, bias, .. } => {
                let (data, shape) = (self.tensors.data(kernel), self.tensors.shape(kernel));
                let new = || match shape {
                    Ok([inputs, outputs]) => Arc::new(Kernel::new(*inputs, *outputs, data)),
                    _ => Arc::new(Kernel::new(0, 0, &[])), // the shapes were checked
                };
                let dense = self.kernels.entry(kernel.clone()).or_insert_with(new).clone();
                Weights::Dense(dense, bias.as_ref().map(|bias| self.row(bias)))
            }
            _ => Weights::None,
        }
    }
}

/// A slot for every step, and the slots. An elementwise step works in place if its operand is not needed
/// afterwards; a slot whose matrix is no longer needed is reused.
fn places(graph: &Graph, shapes: &[Shape]) -> (Vec<usize>, Vec<Slot>) {
    let mut last_use: Vec<usize> = (0..graph.steps.len()).collect();
    for (i, step) in graph.steps.iter().enumerate() {
        step.operands().into_iter().for_each(|operand| last_use[operand] = i);
    }
    let is_constant = |i: usize| matches!(graph.steps[i], Step::Constant { .. });
    let (mut places, mut slots, mut free) = (Vec::new(), Vec::<Slot>::new(), Vec::<usize>::new());
    for (i, step) in graph.steps.iter().enumerate() {
        let entries = shapes[i].entries();
        let in_place = match step {
            Step::Norm { x, .. } | Step::Map { x, .. } | Step::Affine { x, .. } | Step::Clip { x, .. } => {
                Some(*x).filter(|&x| last_use[x] == i && !is_constant(x))
            }
            _ => None,
        };
        let slot = match in_place {
            _ if is_constant(i) => usize::MAX,
            Some(x) => places[x],
            None => {
                let fits = free.iter().position(|&slot| slots[slot].entries >= entries);
                match fits.or(free.len().checked_sub(1)) {
                    Some(at) => free.swap_remove(at),
                    None => {
                        slots.push(Slot::default());
                        slots.len() - 1
                    }
                }
            }
        };
        if let Some(slot) = slots.get_mut(slot) {
            slot.entries = slot.entries.max(entries);
        }
        let mut done = step.operands();
        done.sort_unstable();
        done.dedup();
        done.retain(|&x| last_use[x] == i && !is_constant(x) && in_place != Some(x));
        free.extend(done.into_iter().map(|x| places[x]));
        places.push(slot);
    }
    (places, slots)
}

//! The networks of one agent, or of several seeds of it, on a device, with the programs that update them.

use crate::XlaError;
use crate::pjrt::{Buffer, Device, Executable};
use crate::program::{self, Program};
use crate::step::{Ask, Net, Step};
use std::time::{Duration, Instant};

/// Networks with their Adam moments on a device, and the compiled programs that update them.
pub(crate) struct Session {
    device: Device,
    nets: Vec<Net>,
    /// The tensors of all networks: weights, then first and second moments of trained networks. Empty until
    /// they are loaded, and after a failed update has lost them.
    state: Vec<Buffer>,
    /// How many seeds are loaded.
    seeds: usize,
    /// The tables that batches are gathered from, with their dimensions.
    tables: Vec<(Buffer, [usize; 2])>,
    programs: Vec<Compiled>,
}

/// All tensors of one seed.
pub(crate) type Tensors = Vec<Vec<f32>>;

struct Compiled {
    step: Step,
    seeds: usize,
    program: Program,
    executable: Executable,
    compile_time: Duration,
}

/// Statistics of a compiled program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramSize {
    /// Lines of StableHLO.
    pub lines: usize,
    /// How long compilation took.
    pub compile_time: Duration,
    /// Peak memory in bytes, if the compiler reports it.
    pub peak_memory: Option<u64>,
}

/// What an update reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateMetrics {
    /// Stage by stage, the loss and then the metrics.
    pub numbers: Vec<f32>,
    /// The gradient norms of the trained networks, stage by stage, if requested.
    pub norms: Vec<f32>,
}

impl Session {
    /// A session for networks of these shapes; [`Session::load`] fills in their weights.
    pub(crate) fn new(device: &Device, nets: Vec<Net>) -> Self {
        let (state, tables, programs) = (Vec::new(), Vec::new(), Vec::new());
        Session { device: device.clone(), nets, state, seeds: 0, tables, programs }
    }

    pub(crate) fn nets(&self) -> &[Net] {
        &self.nets
    }

    /// The programs compiled so far.
    pub(crate) fn programs(&self) -> impl Iterator<Item = ProgramSize> {
        self.programs.iter().map(|compiled| ProgramSize {
            lines: compiled.program.text.lines().count(),
            compile_time: compiled.compile_time,
            peak_memory: compiled.executable.peak_memory(),
        })
    }

    /// The dimensions of all state tensors: network by network, weights, then first and second moments if it
    /// is trained.
    fn slots(&self) -> Vec<&[usize]> {
        let mut slots = Vec::new();
        for net in &self.nets {
            for _ in 0..net.copies() {
                slots.extend(net.tensors.iter().map(Vec::as_slice));
            }
        }
        slots
    }

    /// Copies the tensors of these seeds to the device. Each seed's are ordered network by network: weights,
    /// first moments, second moments.
    ///
    /// # Panics
    /// If the number of tensors or their sizes do not fit the networks.
    pub(crate) fn load(&mut self, seeds: &[&Tensors]) -> Result<(), XlaError> {
        let lead = lead(seeds.len());
        let mut state = Vec::new();
        for (slot, dims) in self.slots().into_iter().enumerate() {
            let dims = [&lead, dims].concat();
            state.push(match seeds {
                [seed] => self.device.upload(&seed[slot], &dims)?,
                _ => self.device.upload(&together(seeds.iter().map(|seed| &seed[slot][..])), &dims)?,
            });
        }
        assert!(seeds.iter().all(|seed| seed.len() == state.len()), "more tensors than the networks have");
        (self.state, self.seeds) = (state, seeds.len());
        Ok(())
    }

    /// Copies all tensors back, seed by seed, in the order of [`Session::load`].
    pub(crate) fn read(&self) -> Result<Vec<Tensors>, XlaError> {
        if self.state.is_empty() {
            return Err(XlaError::Unsupported("the networks on the device are lost".into()));
        }
        let mut seeds = vec![Tensors::new(); self.seeds];
        for (buffer, dims) in self.state.iter().zip(self.slots()) {
            let size: usize = dims.iter().product();
            let mut data = vec![0.0; self.seeds * size];
            buffer.download(&mut data)?;
            for (i, seed) in seeds.iter_mut().enumerate() {
                seed.push(data[i * size..][..size].to_vec());
            }
        }
        Ok(seeds)
    }

    /// Copies a row-major table to the device, for updates to gather rows from.
    pub(crate) fn lend(&mut self, rows: &[f32], width: usize) -> Result<(), XlaError> {
        let dims = [rows.len() / width.max(1), width];
        self.tables.push((self.device.upload(rows, &dims)?, dims));
        Ok(())
    }

    /// Runs one update of all loaded seeds, which must ask for the same computation.
    pub(crate) fn run(&mut self, asks: &[&Ask]) -> Result<Vec<UpdateMetrics>, XlaError> {
        let [first, ..] = asks else { return Ok(Vec::new()) };
        debug_assert!(asks.len() == self.seeds && asks.iter().all(|ask| ask.is_like(first)));
        let stages: usize = first.step.stages.iter().map(|stage| 1 + stage.measures.len()).sum();
        let is_it = |compiled: &Compiled| compiled.seeds == asks.len() && compiled.step.is_like(&first.step);
        let at = match self.programs.iter().position(is_it) {
            Some(at) => at,
            None => {
                let compiled = self.compile(first)?;
                self.programs.push(compiled);
                self.programs.len() - 1
            }
        };
        let Compiled { program, executable, .. } = &self.programs[at];
        let lead = lead(asks.len());
        let places = if self.tables.is_empty() {
            None
        } else {
            let places = together(asks.iter().map(|ask| &ask.places[..]));
            Some(self.device.upload(&places, &[&lead[..], &[first.places.len()]].concat())?)
        };
        let data = together(asks.iter().map(|ask| &ask.data[..]));
        let data = self.device.upload(&data, &[&lead[..], &[first.data.len()]].concat())?;
        let tables = self.tables.iter().map(|table| &table.0);
        let arguments: Vec<&Buffer> = self.state.iter().chain(tables).chain(&places).chain([&data]).collect();
        let results = executable.run(&arguments);
        let mut numbers = vec![0.0; asks.len() * program.report];
        let results = results.and_then(|results| {
            if let Some(report) = results.last() {
                report.download(&mut numbers)?;
            }
            Ok(results)
        });
        // The state was donated to the program: if that failed, it is lost.
        let results = results.inspect_err(|_| self.state.clear())?;
        for (&slot, new) in program.changed.iter().zip(results) {
            self.state[slot] = new;
        }
        let report = |numbers: &[f32]| {
            let (numbers, norms) = numbers.split_at(stages);
            UpdateMetrics { numbers: numbers.to_vec(), norms: norms.to_vec() }
        };
        Ok(numbers.chunks_exact(program.report.max(1)).map(report).collect())
    }

    fn compile(&self, ask: &Ask) -> Result<Compiled, XlaError> {
        let Ask { step, data, places } = ask;
        let (seeds, tables): (_, Vec<[usize; 2]>) = (self.seeds, self.tables.iter().map(|t| t.1).collect());
        let program = program::emit(&self.nets, step, &lead(seeds), &tables, places.len(), data.len())?;
        let start = Instant::now();
        let executable = self.device.compile(&program.text).map_err(|error| match error {
            XlaError::Plugin { message, .. } => saved(message, &program.text),
            other => other,
        })?;
        Ok(Compiled { step: step.clone(), seeds, program, executable, compile_time: start.elapsed() })
    }
}

/// The leading dimension: the number of seeds, unless there is only one.
fn lead(seeds: usize) -> Vec<usize> {
    if seeds == 1 { Vec::new() } else { vec![seeds] }
}

fn together<'a, T: Copy + 'a>(parts: impl Iterator<Item = &'a [T]>) -> Vec<T> {
    parts.flatten().copied().collect()
}

/// Saves a program that does not compile, so that it can be reported, and makes the error.
fn saved(message: String, text: &str) -> XlaError {
    let program = std::env::temp_dir().join(format!("album-step-{}.mlir", std::process::id()));
    match std::fs::write(&program, text) {
        Ok(()) => XlaError::Compile { message, program },
        Err(_) => XlaError::Plugin { doing: "compiling a step", code: 0, message },
    }
}

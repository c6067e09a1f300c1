//! The networks of one agent, or of several seeds of it, on a device.

use crate::XlaError;
use crate::pjrt::{Buffer, Device, Executable};
use crate::program::{self, Program, RATES};
use crate::step::{Net, Step};
use album_nn::StepRates;
use std::time::{Duration, Instant};

/// Networks with their moments on a device, and the programs that update them.
pub struct Session {
    device: Device,
    nets: Vec<Net>,
    /// The tensors of all networks: weights, then first and second moments of those that are trained. Empty before they are
    /// loaded, and after a failure has lost them.
    state: Vec<Buffer>,
    programs: Vec<Compiled>,
    data: Vec<f32>,
}

struct Compiled {
    step: Step,
    program: Program,
    executable: Executable,
    compile_time: Duration,
}

/// A program in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramSize {
    /// Lines of its text.
    pub lines: usize,
    /// How long the plugin compiled it.
    pub compile_time: Duration,
    /// The most memory that it takes in bytes, where the compiler tells.
    pub peak_memory: Option<u64>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let programs = self.programs.len();
        f.debug_struct("Session")
            .field("device", &self.device)
            .field("programs", &programs)
            .finish_non_exhaustive()
    }
}

/// What an update reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The loss of each stage, followed by its measures, stage by stage.
    pub numbers: Vec<f32>,
    /// The norms of the gradients of trained networks, stage by stage, if they were asked for.
    pub norms: Vec<f32>,
}

impl Session {
    /// A place for these networks. Their numbers are loaded afterwards.
    pub fn new(device: &Device, nets: Vec<Net>) -> Self {
        Session { device: device.clone(), nets, state: Vec::new(), programs: Vec::new(), data: Vec::new() }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The networks.
    pub fn nets(&self) -> &[Net] {
        &self.nets
    }

    /// The programs so far.
    pub fn programs(&self) -> impl Iterator<Item = ProgramSize> {
        self.programs.iter().map(|compiled| ProgramSize {
            lines: compiled.program.text.lines().count(),
            compile_time: compiled.compile_time,
            peak_memory: compiled.executable.peak_memory(),
        })
    }

    /// The dimensions of all tensors: network by network, weights, then first and second moments of those that are trained.
    fn slots(&self) -> Vec<&[usize]> {
        let mut slots = Vec::new();
        for net in &self.nets {
            for _ in 0..net.copies() {
                slots.extend(net.tensors.iter().map(Vec::as_slice));
            }
        }
        slots
    }

    /// Copies all numbers to the device, in the order of networks: weights, first moments, second moments.
    ///
    /// # Panics
    /// If there are fewer or more tensors than the networks have, or of other sizes.
    pub fn load<'a>(&mut self, tensors: impl IntoIterator<Item = &'a [f32]>) -> Result<(), XlaError> {
        let mut tensors = tensors.into_iter();
        let mut state = Vec::new();
        for dims in self.slots() {
            let data = tensors.next().unwrap_or_default();
            state.push(self.device.upload(data, dims)?);
        }
        assert!(tensors.next().is_none(), "more tensors than the networks have");
        self.state = state;
        Ok(())
    }

    /// Copies all numbers back, in the same order.
    pub fn read(&self) -> Result<Vec<Vec<f32>>, XlaError> {
        if self.state.is_empty() {
            return Err(XlaError::Unsupported("the networks on the device are lost".into()));
        }
        let mut tensors = Vec::new();
        for (buffer, dims) in self.state.iter().zip(self.slots()) {
            let mut data = vec![0.0; dims.iter().product()];
            buffer.download(&mut data)?;
            tensors.push(data);
        }
        Ok(tensors)
    }

    /// Runs one update. `rates` are those of the trained networks in order.
    pub fn run(&mut self, mut step: Step, rates: &[StepRates]) -> Result<Report, XlaError> {
        self.data.clear();
        self.data.extend(rates.iter().flat_map(|r| [r.rate, r.root, r.kept]));
        debug_assert_eq!(self.data.len(), RATES * self.nets.iter().filter(|net| net.is_trained()).count());
        step.take_inputs(&mut self.data)?;
        let stages: Vec<usize> = step.stages.iter().map(|stage| 1 + stage.measures.len()).collect();
        let at = match self.programs.iter().position(|compiled| compiled.step.is_like(&step)) {
            Some(at) => at,
            None => {
                let compiled = self.compile(step)?;
                self.programs.push(compiled);
                self.programs.len() - 1
            }
        };
        let Compiled { program, executable, .. } = &self.programs[at];
        let data = self.device.upload(&self.data, &[self.data.len()])?;
        let arguments: Vec<&Buffer> = self.state.iter().chain([&data]).collect();
        let results = executable.run(&arguments);
        let mut numbers = vec![0.0; program.report];
        let results = results.and_then(|results| {
            if let Some(report) = results.last() {
                report.download(&mut numbers)?;
            }
            Ok(results)
        });
        // What was to be updated in place is gone if that failed.
        let results = results.inspect_err(|_| self.state.clear())?;
        for (&slot, new) in program.changed.iter().zip(results) {
            self.state[slot] = new;
        }
        let norms = numbers.split_off(stages.iter().sum());
        Ok(Report { numbers, norms })
    }

    fn compile(&self, step: Step) -> Result<Compiled, XlaError> {
        let program = program::emit(&self.nets, &step, &[], self.data.len())?;
        let start = Instant::now();
        let executable = self.device.compile(&program.text).map_err(|error| match error {
            XlaError::Plugin { message, .. } => saved(message, &program.text),
            other => other,
        })?;
        Ok(Compiled { step, program, executable, compile_time: start.elapsed() })
    }
}

/// The error of a program that does not compile, which is kept for a report.
fn saved(message: String, text: &str) -> XlaError {
    let program = std::env::temp_dir().join(format!("album-step-{}.mlir", std::process::id()));
    match std::fs::write(&program, text) {
        Ok(()) => XlaError::Compile { message, program },
        Err(_) => XlaError::Plugin { doing: "compiling a step", code: 0, message },
    }
}

//! Measures the paper's cost table on this machine, for every agent.
//!
//! Every measurement runs in its own process, so that peak memory is that of one agent, and the agents take
//! turns, so that a temporary slowdown of the machine affects all of them.

use super::{check, median, mib, peak_mib, time_steps};
use crate::cost::{ACTOR_EVERY_STEP, AgentCost, Costs, Counted, DeviceMemory, StepTime};
use crate::published::Published;
use album::Error;
use album::sizes::antmaze_large;
use album_agents::{AGENTS, Agent, AgentKind, Learner};
use album_base::{atomic, suggest};
use album_data::{Dataset, Segments};
use album_nn::Pool;
use album_stats::{Divisor, deviation};
use album_xla::{Device, DeviceName};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;

/// The measurements of `album bench cost`.
#[derive(Clone, Debug)]
pub struct CostBench {
    /// Names of agents, or [`ACTOR_EVERY_STEP`]; empty for all.
    pub agents: Vec<String>,
    /// Thread counts; 0 means all processors.
    pub threads: Vec<usize>,
    /// Number of seeds, one per round; all agents take turns within a round.
    pub rounds: usize,
    /// Steps to time per round.
    pub steps: usize,
    /// The device that runs the updates, if not the CPU; thread counts do not matter then.
    pub device: Option<DeviceName>,
}

impl Default for CostBench {
    fn default() -> Self {
        CostBench { agents: Vec::new(), threads: vec![1, 0], rounds: 5, steps: 20, device: None }
    }
}

/// The measurement of one process, which is started as `album bench cost --measure` and prints this as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    ms_per_step: f64,
    peak_rss_mib: f64,
    device: Option<String>,
    device_memory: Option<DeviceMemory>,
}

impl CostBench {
    /// Measures everything in processes of the program `album`. `progress` receives the next measurement, and
    /// how many of how many are done.
    pub fn run(&self, album: &Path, progress: &mut dyn FnMut(&str, usize, usize)) -> Result<Costs, Error> {
        let names = names(&self.agents)?;
        let asked = if self.device.is_some() { &[0][..] } else { &self.threads };
        let mut threads: Vec<usize> = asked.iter().map(|&threads| Pool::new(threads).threads()).collect();
        threads.sort_unstable();
        threads.dedup();
        let all = self.rounds * names.len() * threads.len();
        // By agent, by thread count, by seed.
        let mut measured: Vec<Vec<Vec<Measured>>> =
            names.iter().map(|_| threads.iter().map(|_| Vec::new()).collect()).collect();
        let mut done = 0;
        for seed in 0..self.rounds {
            for (name, by_threads) in names.iter().zip(&mut measured) {
                progress(&format!("{name}, seed {seed}"), done, all);
                for (&threads, measured) in threads.iter().zip(by_threads) {
                    measured.push(self.in_a_process(album, name, threads, seed)?);
                    done += 1;
                }
            }
        }
        let device = measured.iter().flatten().flatten().find_map(|measured| measured.device.clone());
        let agents = names.iter().zip(&measured).map(|(name, measured)| cost(name, &threads, measured));
        Ok(Costs { seeds: self.rounds, device, agents: agents.collect::<Result<_, _>>()? })
    }

    fn in_a_process(&self, album: &Path, name: &str, threads: usize, seed: usize) -> Result<Measured, Error> {
        let failed = |what: String| Error::Tool(format!("measuring {name}: {what}"));
        let output = Command::new(album)
            .args(["bench", "cost", "--measure", name, "--seed", &seed.to_string()])
            .args(["--steps", &self.steps.to_string()])
            .args(match self.device {
                Some(device) => ["--device".to_owned(), device.to_string()],
                None => ["--threads".to_owned(), threads.to_string()],
            })
            .output()
            .map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            let said =
                String::from_utf8_lossy(&output.stderr).trim().trim_start_matches("error: ").to_owned();
            // No plugin or no such device: nothing was measured.
            return Err(if output.status.code() == Some(3) { Error::Config(said) } else { failed(said) });
        }
        serde_json::from_slice(&output.stdout).map_err(|e| failed(e.to_string()))
    }
}

/// The requested agents, or all.
fn names(asked: &[String]) -> Result<Vec<String>, Error> {
    let mut all: Vec<&str> = AGENTS.iter().map(|kind| kind.name).collect();
    all.push(ACTOR_EVERY_STEP);
    for name in asked {
        if !all.contains(&name.as_str()) {
            let hint = suggest::hint(name, all.iter().copied());
            return Err(Error::Usage(format!("there is no agent `{name}`{hint}")));
        }
    }
    Ok(if asked.is_empty() { all.into_iter().map(str::to_owned).collect() } else { asked.to_vec() })
}

fn learner(name: &str, threads: usize, seed: u64) -> Result<(Learner, Dataset), Error> {
    let kind = AgentKind::find(name.trim_end_matches('*'))?;
    let mut settings = kind.defaults()?;
    if name == ACTOR_EVERY_STEP {
        settings.insert("actor_every".into(), 1.into());
    }
    let data = antmaze_large(20)?;
    let agent = Learner::new(kind.setup(&settings)?.as_ref(), &data, 1_000_000, seed, &Pool::new(threads))?;
    Ok((agent, data))
}

/// Measures one agent in this process.
pub fn measure(
    name: &str,
    threads: usize,
    seed: u64,
    steps: usize,
    device: Option<DeviceName>,
) -> Result<Measured, Error> {
    let (mut agent, data) = learner(name, threads, seed)?;
    let device = device.map(DeviceName::open).transpose()?;
    if let Some(device) = &device {
        agent.move_to(device);
    }
    let (laps, _) = time_steps(&mut agent, &data, steps)?;
    check(&agent)?;
    // The mean of an even and an odd step, because some agents alternate.
    let pairs = laps.chunks(2).map(|laps| laps.iter().map(|lap| lap.whole).sum::<f64>() / laps.len() as f64);
    Ok(Measured {
        ms_per_step: 1e3 * median(pairs),
        peak_rss_mib: peak_mib().unwrap_or(f64::NAN),
        device_memory: device.as_ref().and_then(|device| memory(device, &agent)),
        device: device.map(|device| device.name().to_owned()),
    })
}

/// Peak memory on a device, by the best available count.
fn memory(device: &Device, agent: &Learner) -> Option<DeviceMemory> {
    let counted = |counted_by, bytes| DeviceMemory { mib: mib(bytes), counted_by };
    let by_device = device.memory().and_then(|memory| memory.peak).map(|peak| counted(Counted::Device, peak));
    let by_compiler = || agent.programs().iter().filter_map(|program| program.peak_memory).max();
    by_device.or_else(|| by_compiler().map(|peak| counted(Counted::Compiler, peak)))
}

fn cost(name: &str, threads: &[usize], measured: &[Vec<Measured>]) -> Result<AgentCost, Error> {
    let (mut agent, data) = learner(name, 0, 0)?;
    let segments = Segments::new(agent.segments()).map_err(|e| Error::Config(e.to_string()))?;
    let mut batch = segments.batch(&data, agent.batch_size());
    segments.gather(&data, &mut batch);
    let time = |(&threads, measured): (&usize, &Vec<Measured>)| {
        let times: Vec<f64> = measured.iter().map(|m| m.ms_per_step).collect();
        let deviation = deviation(&times, Divisor::Count).unwrap_or(f64::NAN);
        StepTime { threads, ms_per_step: median(times.into_iter()), deviation }
    };
    let peak = |measured: &Vec<Measured>| median(measured.iter().map(|m| m.peak_rss_mib));
    Ok(AgentCost {
        agent: name.to_owned(),
        parameters: agent.parameters(),
        gflop_per_step: agent.operations(&batch) / 1e9,
        times: threads.iter().zip(measured).map(time).collect(),
        value_networks: agent.value_networks(),
        peak_rss_mib: measured.last().map_or(f64::NAN, peak),
        // Every seed needs the same.
        device_memory: measured.last().and_then(|measured| measured.first()?.device_memory),
    })
}

impl Costs {
    /// The table for a terminal.
    pub fn text(&self) -> String {
        let (table, seeds) = (self.table().to_text(), self.seeds);
        let on = self.device.as_ref().map_or(String::new(), |device| format!(", updates on {device}"));
        format!("{table}antmaze-large sizes, default settings, medians and deviations over {seeds} seeds{on}")
    }

    /// Writes the figures, the table and `cost.json` into a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let published = Published::load().map_err(|e| Error::Numerical(e.to_string()))?;
        let json = serde_json::to_string_pretty(self).map_err(|e| Error::Numerical(e.to_string()))?;
        let files = [
            ("cost.json", json + "\n"),
            ("cost.svg", self.bars(&published).render()),
            ("pareto.svg", self.pareto(&published).render()),
            ("cost.csv", self.table().to_csv()),
        ];
        let files = files.map(|(name, content)| (name.to_owned(), content));
        atomic::write_together(folder, files).map_err(|(path, e)| Error::io(&path)(e))?;
        Ok(())
    }
}

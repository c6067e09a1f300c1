//! Every agent against the traces in `tests/data`, recorded in double precision by independent JAX
//! implementations (`tests/references/*.py`): losses, gradients, directional derivatives by finite
//! differences, and all weights after 1 and after 20 updates.
#![allow(clippy::unwrap_used)]

use album_agents::{AGENTS, Agent, AgentKind, Learner, Metrics, Noise};
use album_data::{DType, Dataset, Npz, Rows, Segments};
use album_nn::{Pool, Tensor};
use album_xla::Device;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

struct Trace {
    file: String,
    arrays: HashMap<String, Vec<f64>>,
}

impl Trace {
    fn read(path: &Path) -> Self {
        let mut npz = Npz::open(path).unwrap();
        let names = npz.names().to_vec();
        let arrays = names.into_iter().map(|name| {
            let array = npz.read(&name).unwrap();
            let values = match array.dtype() {
                DType::U8 | DType::I64 => {
                    array.into_integers().unwrap().into_iter().map(|x| x as f64).collect()
                }
                _ => array.into_floats().unwrap(),
            };
            // The files have dots where names have slashes.
            (name.replace('.', "/"), values)
        });
        Trace { file: path.file_stem().unwrap().to_string_lossy().into_owned(), arrays: arrays.collect() }
    }

    fn get(&self, name: &str) -> &[f64] {
        self.arrays.get(name).unwrap_or_else(|| panic!("{}: no {name}", self.file))
    }

    fn single(&self, name: &str) -> Vec<f32> {
        self.get(name).iter().map(|&x| x as f32).collect()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.get(name).iter().map(|&x| x as u8).collect()).unwrap()
    }

    fn dataset(&self) -> Dataset {
        let rows = self.get("rewards").len();
        Dataset::from_rows(Rows {
            observation_dim: self.get("observations").len() / rows,
            action_dim: self.get("actions").len() / rows,
            observations: self.single("observations"),
            actions: self.single("actions"),
            rewards: self.single("rewards"),
            masks: self.single("masks"),
            terminals: self.get("terminals").iter().map(|&x| x != 0.0).collect(),
        })
        .unwrap()
    }

    fn noise(&self, step: usize) -> Noise {
        let draws = (0..).map_while(|i| {
            let name = format!("noise/{step}/{i}");
            self.arrays.contains_key(&name).then(|| self.single(&name))
        });
        Noise::recorded(draws)
    }

    /// Compares tensors with those recorded under `when/network/`, relative to the largest entry of each, as
    /// single entries may be arbitrarily close to zero.
    fn compare(&self, when: &str, network: &str, tensors: &[Tensor], tolerance: f64) {
        for tensor in tensors {
            let name = format!("{when}/{network}/{}", tensor.name);
            let expected = self.get(&name);
            assert_eq!(tensor.data.len(), expected.len(), "{}: {name}", self.file);
            let size = expected.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
            for (found, expected) in tensor.data.iter().zip(expected) {
                let difference = (f64::from(*found) - expected).abs();
                assert!(difference <= tolerance * size, "{}: {name}: {found} against {expected}", self.file);
            }
        }
    }
}

fn traces() -> Vec<Trace> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "npz"));
    paths.sort();
    paths.iter().map(|path| Trace::read(path)).collect()
}

fn close(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1e-2),
        "{what}: {found} against {expected}"
    );
}

/// The directional derivative along the direction that the references use.
fn slope(gradient: &[Tensor]) -> f64 {
    let values = gradient.iter().flat_map(|tensor| &tensor.data);
    values.enumerate().map(|(i, &g)| f64::from(g) * (1.0 + i as f64).sin()).sum()
}

/// On a device, the gradients of the native tape are not checked again.
fn replay(trace: &Trace, device: Option<&Device>) {
    let kind = AgentKind::find(&trace.text("agent")).unwrap();
    let mut settings = kind.defaults().unwrap();
    settings.extend(trace.text("config").parse::<toml::Table>().unwrap());
    let data = trace.dataset();
    let setup = kind.setup(&settings).unwrap();
    let mut agent = Learner::new(setup.as_ref(), &data, 20, 0, &Pool::new(2)).unwrap();
    let mut state = agent.state();
    for network in &mut state.networks {
        for tensor in &mut network.weights {
            tensor.data = trace.single(&format!("initial/{}/{}", network.name, tensor.name));
        }
    }
    agent.load(&state).unwrap();
    if let Some(device) = device {
        agent.move_to(device);
    }
    let initial = trace.arrays.keys().filter(|name| name.starts_with("initial/")).count();
    assert_eq!(initial, state.networks.iter().map(|n| n.weights.len()).sum::<usize>(), "{}", trace.file);

    let segments = Segments::new(agent.segments()).unwrap();
    let rows = trace.get("indices/0").len();
    let mut batch = segments.batch(&data, rows);
    for (step, &expected) in trace.get("losses").iter().enumerate() {
        let indices = trace.get(&format!("indices/{step}")).to_vec();
        batch.indices_mut().iter_mut().zip(indices).for_each(|(to, from)| *to = from as usize);
        segments.gather(&data, &mut batch);
        if step == 0 && device.is_none() {
            let (_, gradients) = agent.gradients(&batch, 0, &mut trace.noise(0));
            for (network, gradient) in gradients {
                trace.compare("gradient", &network, &gradient, 1e-4);
                let what = format!("{}: slope of {network}", trace.file);
                close(&what, slope(&gradient), trace.get(&format!("slope/{network}"))[0], 1e-4);
            }
        }
        let mut metrics = Metrics::new();
        let loss = agent.update_with(&batch, step as u64, &mut trace.noise(step), Some(&mut metrics));
        close(
            &format!("{}: loss of step {step}", trace.file),
            loss,
            expected,
            if step == 0 { 1e-5 } else { 1e-3 },
        );
        if step == 0 {
            let expected: BTreeMap<String, f64> = serde_json::from_str(&trace.text("metrics")).unwrap();
            for (name, expected) in expected {
                let found = metrics.iter().find(|m| m.0 == name).unwrap_or_else(|| panic!("no {name}")).1;
                // An actor that sees the updated critic inherits the rounding of that update.
                close(&format!("{}: {name}", trace.file), found, expected, 3e-5);
            }
            for network in agent.state().networks {
                trace.compare("first", &network.name, &network.weights, 1e-5);
            }
        }
    }
    for network in agent.state().networks {
        trace.compare("last", &network.name, &network.weights, 1e-3);
    }
}

#[test]
fn updates_match_the_references() {
    let traces = traces();
    traces.iter().for_each(|trace| replay(trace, None));
    let seen: BTreeSet<String> = traces.iter().map(|trace| trace.text("agent")).collect();
    // ALBUM has its own trace, in `jax_trace.rs`.
    let missing: Vec<&str> = AGENTS
        .iter()
        .map(|kind| kind.name)
        .filter(|name| *name != "album" && !seen.contains(*name))
        .collect();
    assert!(missing.is_empty(), "agents without a trace: {missing:?}");
}

#[test]
fn updates_on_a_device_match_the_references() {
    let Some(device) = crate::support::device() else { return };
    for trace in traces() {
        replay(&trace, Some(&device));
    }
}

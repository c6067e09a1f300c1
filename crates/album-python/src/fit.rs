//! Training while Python stays responsive.
//!
//! The run trains in a thread of its own. The calling thread waits without the GIL, delivers events, steps
//! the caller's environment and checks for signals: Ctrl-C stops the run at its next step.

use crate::agent::{Agent, Home};
use crate::dataset::Dataset;
use crate::env::{CallersEnv, adapt};
use crate::errors::{exception, raise};
use album::together::Accelerator;
use album::{Finished, Overrides, Own, Problem, Resources, Run, Trained, config};
use album_envs::EnvError;
use album_train::{Event, StopFlag};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often signals are checked.
const PATIENCE: Duration = Duration::from_millis(50);

/// How many messages may queue for a slow callback before training waits for it.
const WAITING: usize = 64;

/// Parses settings from JSON.
pub fn table(json: &str) -> PyResult<toml::Table> {
    serde_json::from_str(json).map_err(|e| PyValueError::new_err(format!("settings: {e}")))
}

/// A message from the training thread to the calling one.
enum Message {
    Said(Said),
    Call(Box<dyn FnOnce(Python<'_>) + Send>),
}

/// An event, as the Python side expects it.
enum Said {
    Row { kind: &'static str, step: u64, row: Vec<(String, f64)> },
    Warning(String),
    Progress { step: u64, ms_per_step: f64 },
}

impl Said {
    fn of(event: &Event<'_>) -> Option<Self> {
        Some(match event {
            Event::Logged { step, row, .. } => Said::Row { kind: "log", step: *step, row: row.to_vec() },
            Event::Evaluated { evaluation, .. } => {
                Said::Row { kind: "log", step: evaluation.step, row: evaluation.summary().row() }
            }
            Event::Warning(text) => Said::Warning(text.clone()),
            Event::Started { step, .. } => Said::Progress { step: *step, ms_per_step: 0.0 },
            Event::Progress { step, ms_per_step } => {
                Said::Progress { step: *step, ms_per_step: *ms_per_step }
            }
            Event::Stopped { step } => Said::Progress { step: *step, ms_per_step: 0.0 },
            Event::Evaluating { .. } | Event::Saved { .. } => return None,
        })
    }

    fn tell(self, on_event: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = on_event.py();
        match self {
            Said::Row { kind, step, row } => {
                let metrics = PyDict::new(py);
                row.into_iter().try_for_each(|(name, value)| metrics.set_item(name, value))?;
                on_event.call1((kind, step, metrics))?;
            }
            Said::Warning(text) => _ = on_event.call1(("warning", 0, text))?,
            Said::Progress { step, ms_per_step } => _ = on_event.call1(("progress", step, ms_per_step))?,
        }
        Ok(())
    }
}

/// Runs functions in the thread that called `fit`.
#[derive(Clone)]
pub struct Caller {
    sender: SyncSender<Message>,
    /// The exception raised there, for `fit` to raise again.
    failure: Arc<Mutex<Option<PyErr>>>,
}

impl Caller {
    /// Runs `f` there and waits for its result.
    pub fn call<T: Send + 'static>(
        &self,
        f: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
    ) -> Result<T, EnvError> {
        let (sender, receiver) = sync_channel(1);
        let failure = Arc::clone(&self.failure);
        let run = move |py: Python<'_>| {
            let result = f(py).map_err(|error| {
                let text = error.value(py).to_string();
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                text
            });
            _ = sender.send(result); // `call` is waiting for it
        };
        let gone = || EnvError::Failed("the environment is gone: the call of fit has ended".into());
        self.sender.send(Message::Call(Box::new(run))).map_err(|_| gone())?;
        receiver.recv().map_err(|_| gone())?.map_err(EnvError::Failed)
    }
}

/// Trains an agent. Returns it, whether Ctrl-C stopped it, and the exception of a callback that stopped it.
#[pyfunction]
#[pyo3(signature = (agent, settings, seed, data, train, threads, device, allow_unbounded, env, on_event))]
#[allow(clippy::too_many_arguments, reason = "the keywords of fit, which Python has named")]
pub fn fit(
    py: Python<'_>,
    agent: &str,
    settings: &str,
    seed: u64,
    data: &Dataset,
    train: &str,
    threads: usize,
    device: Option<&str>,
    allow_unbounded: bool,
    env: Option<Bound<'_, PyAny>>,
    on_event: &Bound<'_, PyAny>,
) -> PyResult<(Agent, bool, Option<PyErr>)> {
    let refuse = |e: album::Error| raise(py, e);
    let mut settings = table(settings)?;
    let gamma = settings.remove("gamma").and_then(|gamma| gamma.as_float());
    let memory = data.source.format == Some(album_data::Format::Memory);
    let name = memory.then_some("memory");
    let own = Own::of_data(data.source.clone(), data.data.clone(), name).map_err(refuse)?;
    let overrides = Overrides {
        problem: Some(Problem::Own(Box::new(own))),
        agent: Some(agent.to_owned()),
        seed: Some(seed),
        gamma,
        settings,
        train: table(train)?,
        ..Overrides::default()
    };
    let resolved = py.detach(|| config::resolve(&overrides)).map_err(refuse)?;
    let adapted = env.map(|env| adapt(&env)).transpose()?;
    let device = py.detach(|| device.map(Accelerator::named).transpose()).map_err(refuse)?;

    let folder = tempfile::Builder::new().prefix("album-").tempdir()?;
    let path = folder.path().join("run");
    let resources = Resources { threads, ..Resources::default() };
    let begin = || Run::begin(resolved.config, &path, allow_unbounded, &resources);
    let mut run = py.detach(begin).map_err(refuse)?;
    if let Some(device) = device {
        run = device.takes(run).map_err(refuse)?;
    }
    let total = run.config().train.steps;
    on_event.call1(("total", total, py.None()))?;

    let (sender, receiver) = sync_channel(WAITING);
    let caller = Caller { sender: sender.clone(), failure: Arc::default() };
    let env_failure = Arc::clone(&caller.failure);
    match adapted {
        Some((adapter, shape)) => {
            run = run.judged_in(Box::new(CallersEnv::new(adapter, shape, caller))).map_err(refuse)?;
        }
        // The channel closes when its last sender is dropped.
        None => drop(caller),
    }
    let stop = StopFlag::new();
    let raised = stop.clone();
    let training = std::thread::spawn(move || {
        run.train(raised, &mut |event| {
            // The calling thread receives until this one ends, so sending cannot fail. Progress is not worth
            // waiting for.
            match Said::of(event) {
                Some(said @ Said::Progress { .. }) => _ = sender.try_send(Message::Said(said)),
                Some(said) => _ = sender.send(Message::Said(said)),
                None => {}
            }
        })
    });
    let receiver = Mutex::new(receiver);
    let (mut interrupted, mut failure) = (false, None);
    loop {
        let message =
            py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE));
        match message {
            Ok(Message::Said(said)) if failure.is_none() => failure = said.tell(on_event).err(),
            Ok(Message::Said(_)) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Message::Call(f)) => f(py),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        // The first Ctrl-C stops the run and still returns the agent; a second one raises.
        match py.check_signals() {
            Ok(()) => interrupted |= on_event.getattr("interrupted")?.is_truthy()?,
            Err(error) if !interrupted && error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                interrupted = true;
            }
            Err(error) => failure = failure.or(Some(error)),
        }
        if interrupted || failure.is_some() {
            stop.set();
        }
    }
    let finished = py.detach(|| training.join());
    let Ok(finished) = finished else {
        return Err(exception(
            py,
            "AlbumError",
            "training panicked; please report this as a bug of album".into(),
        ));
    };
    let Finished { result, .. } = finished.map_err(|error| {
        let error = raise(py, error);
        let cause = env_failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.set_cause(py, cause);
        error
    })?;
    let trained = py.detach(|| Trained::open(&path, None, &resources)).map_err(refuse)?;
    let agent = Agent::new(trained, Home::Temporary(folder), Some(result), resolved.chosen)?;
    Ok((agent, interrupted, failure))
}

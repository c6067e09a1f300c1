//! A client for the part of MLflow's REST API that a run needs.

use crate::http;
use serde_json::{Value, json};
use std::time::Duration;
use ureq::Agent;

/// Maximum number of metrics per request.
pub const MOST_METRICS: usize = 1000;
/// Maximum number of parameters per request.
pub const MOST_PARAMS: usize = 100;
/// Maximum length of a parameter value that every server version accepts, in characters.
const LONGEST_PARAM: usize = 500;
/// Responses are read up to this many bytes.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Why a request failed.
#[derive(Debug)]
pub enum Failure {
    /// The server could not be reached; retrying may help.
    Unreachable(String),
    /// The server refused; retrying does not help.
    Refused(String),
    /// The requested object does not exist.
    Missing(String),
}

pub struct Client {
    agent: Agent,
    base: String,
}

impl Client {
    pub fn new(uri: &str, patience: Duration) -> Self {
        let agent = http::config(patience).timeout_global(Some(patience)).build().into();
        Client { agent, base: format!("{uri}/api/2.0/mlflow") }
    }

    /// Looks up the id of an experiment by name; creates it if necessary.
    pub fn experiment(&self, name: &str) -> Result<String, Failure> {
        let found =
            self.agent.get(format!("{}/experiments/get-by-name", self.base)).query("experiment_name", name);
        match answer(found.call()) {
            Ok(found) => text(&found, "/experiment/experiment_id"),
            Err(Failure::Missing(_)) => {
                text(&self.post("experiments/create", &json!({ "name": name }))?, "/experiment_id")
            }
            Err(other) => Err(other),
        }
    }

    /// Creates a run; returns its id.
    pub fn create(&self, experiment: &str, name: &str, time: u64) -> Result<String, Failure> {
        let tags = [("mlflow.runName", name), ("mlflow.source.name", "album")];
        let tags = tags.map(|(key, value)| json!({ "key": key, "value": value }));
        let body = json!({ "experiment_id": experiment, "run_name": name, "start_time": time, "tags": tags });
        text(&self.post("runs/create", &body)?, "/run/info/run_id")
    }

    /// Logs metrics and parameters to a run.
    pub fn log(&self, run: &str, metrics: &[Value], params: &[(String, String)]) -> Result<(), Failure> {
        let param = |(key, value): &(String, String)| json!({ "key": key, "value": value.chars().take(LONGEST_PARAM).collect::<String>() });
        let params: Vec<Value> = params.iter().map(param).collect();
        self.post("runs/log-batch", &json!({ "run_id": run, "metrics": metrics, "params": params }))
            .map(|_| ())
    }

    /// Updates the status of a run.
    pub fn update(&self, run: &str, status: &str, end: Option<u64>) -> Result<(), Failure> {
        let mut body = json!({ "run_id": run, "status": status });
        if let Some(end) = end {
            body["end_time"] = end.into();
        }
        self.post("runs/update", &body).map(|_| ())
    }

    fn post(&self, what: &str, body: &Value) -> Result<Value, Failure> {
        let request =
            self.agent.post(format!("{}/{what}", self.base)).header("Content-Type", "application/json");
        answer(request.send(body.to_string()))
    }
}

/// The finite metrics of a row, in MLflow's format.
pub fn metrics(step: u64, time: u64, row: &[(String, f64)]) -> impl Iterator<Item = Value> {
    let finite = row.iter().filter(|(_, value)| value.is_finite());
    finite.map(move |(key, value)| json!({ "key": key, "value": value, "timestamp": time, "step": step }))
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value, Failure> {
    let mut response = response.map_err(|e| Failure::Unreachable(format!("no answer: {e}")))?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string();
    let body = body.map_err(|e| Failure::Unreachable(format!("the connection broke: {e}")))?;
    let parsed: Option<Value> = serde_json::from_str(&body).ok();
    let message = || {
        let told = parsed.as_ref().and_then(|value| value["message"].as_str());
        let told: String = told.unwrap_or_default().chars().take(200).collect();
        format!("the server answered {status} {}", told.escape_debug())
    };
    match status {
        200..=299 => {
            parsed.ok_or_else(|| Failure::Refused("its answer is no JSON: no MLflow server?".into()))
        }
        404 if parsed.is_some() => Err(Failure::Missing(message())),
        408 | 425 | 429 | 500..=599 => Err(Failure::Unreachable(message())),
        _ => Err(Failure::Refused(message())),
    }
}

fn text(value: &Value, place: &str) -> Result<String, Failure> {
    let found = value.pointer(place).and_then(Value::as_str).map(str::to_owned);
    found.ok_or_else(|| Failure::Refused(format!("its answer has no {place}: no MLflow server?")))
}

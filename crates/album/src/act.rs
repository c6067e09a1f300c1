//! Runs a policy in a pipe: one observation per input line, one action per output line.

use crate::error::Error;
use album_policy::{Actions, Manifest, Policy, PolicyError};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::path::Path;

/// The longest input line in bytes.
const MOST_LINE: u64 = 16 << 20;

/// Counts of answered lines and of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Lines with an action.
    pub actions: usize,
    /// Lines with an error.
    pub errors: usize,
}

impl Answered {
    /// Fails if any line had an error.
    pub fn finish(self) -> Result<(), Error> {
        match self.errors {
            0 => Ok(()),
            errors => Err(Error::Load(format!(
                "{errors} of {} observations could not be answered; see the lines with `error`",
                errors + self.actions
            ))),
        }
    }
}

/// Reads a policy file.
pub fn load(file: &Path) -> Result<Policy, Error> {
    Policy::load(file).map_err(|e| match e {
        PolicyError::Io { path, source } => Error::Io { what: path.display().to_string(), source },
        e => Error::Load(format!("{}: {e}", file.display())),
    })
}

/// Answers every line of `input`, an array of numbers or an object with a number for every name, with an
/// action in physical units: an array for continuous actions, an array of arrays for several actions, a label
/// or index for a discrete choice. An invalid line is answered with `{"line": ..., "error": ...}`; empty
/// lines are skipped.
pub fn act(policy: &mut Policy, input: &mut dyn BufRead, output: &mut dyn Write) -> Result<Answered, Error> {
    let io = |what: &str| {
        let what = what.to_owned();
        move |source| Error::Io { what, source }
    };
    let names: HashMap<String, usize> =
        policy.manifest().observations.iter().enumerate().map(|(i, name)| (name.clone(), i)).collect();
    let mut answered = Answered::default();
    let mut actions = vec![0.0; policy.manifest().decision_len()];
    let mut observation = vec![0.0; policy.manifest().observation_dim()];
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = Read::take(&mut *input, MOST_LINE).read_until(b'\n', &mut line);
        if read.map_err(io("standard input"))? == 0 {
            break;
        }
        if line.len() as u64 == MOST_LINE && line.last() != Some(&b'\n') {
            return Err(Error::Load(format!("line {number} has more than {MOST_LINE} bytes")));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let done = parse(&line, &names, policy.manifest(), &mut observation)
            .and_then(|()| policy.act(&observation, &mut actions).map_err(|e| e.to_string()));
        let answer = match done {
            Ok(()) => {
                answered.actions += 1;
                told(policy.manifest(), &actions)
            }
            Err(error) => {
                answered.errors += 1;
                serde_json::json!({"line": number, "error": error}).to_string()
            }
        };
        let written = writeln!(output, "{answer}");
        // Flushed at once: the other end waits for the action.
        match written.and_then(|()| output.flush()) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => break,
            result => result.map_err(io("standard output"))?,
        }
    }
    Ok(answered)
}

/// Parses an observation.
fn parse(
    line: &[u8],
    names: &HashMap<String, usize>,
    manifest: &Manifest,
    observation: &mut [f32],
) -> Result<(), String> {
    let value: Value = serde_json::from_slice(line).map_err(|e| {
        let text = String::from_utf8_lossy(line);
        match ["NaN", "Infinity", "nan", "inf"].iter().find(|word| text.contains(*word)) {
            Some(word) => format!("found {word}; expected finite numbers"),
            None => format!("not JSON: {e}"),
        }
    })?;
    match value {
        Value::Array(numbers) => {
            if numbers.len() != observation.len() {
                return Err(format!("found {} numbers; expected {}", numbers.len(), observation.len()));
            }
            for ((x, value), name) in observation.iter_mut().zip(&numbers).zip(&manifest.observations) {
                *x = finite(name, value)?;
            }
            Ok(())
        }
        Value::Object(entries) => {
            let mut given = vec![false; observation.len()];
            for (name, value) in &entries {
                if let (Value::String(category), false) = (value, names.contains_key(name)) {
                    category_of(name, category, names, manifest, observation, &mut given)?;
                    continue;
                }
                let known = manifest.observations.iter().map(String::as_str);
                let place = *names.get(name).ok_or_else(|| {
                    format!("there is no `{name}`{}", album_base::suggest::hint(name, known))
                })?;
                (observation[place], given[place]) = (finite(name, value)?, true);
            }
            match given.iter().position(|given| !given) {
                Some(missing) => Err(format!("`{}` is missing", manifest.observations[missing])),
                None => Ok(()),
            }
        }
        _ => Err("expected an array of numbers, or an object with a number for every name".into()),
    }
}

/// One-hot encodes a category given by its label: 1 for `NAME=CATEGORY`, 0 for the other categories of NAME.
fn category_of(
    name: &str,
    category: &str,
    names: &HashMap<String, usize>,
    manifest: &Manifest,
    observation: &mut [f32],
    given: &mut [bool],
) -> Result<(), String> {
    let mut known = Vec::new();
    for (place, other) in manifest.observations.iter().enumerate() {
        if let Some(other) = other.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
            (observation[place], given[place]) = (0.0, true);
            known.push(other);
        }
    }
    match names.get(&format!("{name}={category}")) {
        Some(&place) => {
            observation[place] = 1.0;
            Ok(())
        }
        None if known.is_empty() => {
            let all = manifest.observations.iter().map(String::as_str);
            Err(format!("there is no `{name}`{}", album_base::suggest::hint(name, all)))
        }
        None => Err(format!("`{name}` is `{category}`; expected one of {}", known.join(", "))),
    }
}

fn finite(name: &str, value: &Value) -> Result<f32, String> {
    let number = match value {
        Value::Bool(x) => Some(f64::from(u8::from(*x))),
        value => value.as_f64(),
    };
    match number.map(|x| x as f32).filter(|x| x.is_finite()) {
        Some(x) => Ok(x),
        None => Err(format!("`{name}` is {value}; expected a finite number")),
    }
}

/// Actions as JSON, with no more digits than single precision has.
fn told(manifest: &Manifest, actions: &[f32]) -> String {
    let text = match &manifest.actions {
        Actions::Discrete { names, .. } => {
            let choice = actions[0] as usize;
            match names.get(choice) {
                Some(name) => serde_json::to_string(name),
                None => serde_json::to_string(&choice),
            }
        }
        Actions::Continuous { low, .. } if manifest.open_loop > 1 => {
            serde_json::to_string(&actions.chunks(low.len()).collect::<Vec<_>>())
        }
        Actions::Continuous { .. } => serde_json::to_string(actions),
    };
    text.unwrap_or_default() // numbers and strings always serialise
}

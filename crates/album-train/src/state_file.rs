//! An agent's state as a safetensors file.
//!
//! Tensors are named `q/weights/layer0/kernel`, `q/first_moments/layer0/kernel`, and so on. The order of
//! networks and tensors, the optimisers' step counters and what the agent derived from its data (the
//! [`Blueprint`]) are in the header's metadata, under the key `album`.

use std::borrow::Cow;
use std::collections::HashMap;

use album_agents::{AgentState, Blueprint, NetworkState};
use album_nn::Tensor;
use safetensors::tensor::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use album_base::hex::hex;

const KEY: &str = "album";

#[derive(Serialize, Deserialize)]
struct Header {
    blueprint: Blueprint,
    networks: Vec<NetworkHeader>,
}

#[derive(Serialize, Deserialize)]
struct NetworkHeader {
    name: String,
    steps: u64,
    weights: Vec<String>,
    first_moments: Vec<String>,
    second_moments: Vec<String>,
}

/// Serialises the state.
pub(crate) fn encode(state: &AgentState) -> Result<Vec<u8>, String> {
    let names = |tensors: &[Tensor]| tensors.iter().map(|tensor| tensor.name.clone()).collect();
    let mut networks = Vec::new();
    let mut tensors = Vec::new();
    for network in &state.networks {
        networks.push(NetworkHeader {
            name: network.name.clone(),
            steps: network.steps,
            weights: names(&network.weights),
            first_moments: names(&network.first_moments),
            second_moments: names(&network.second_moments),
        });
        for (kind, of_kind) in kinds(network) {
            let key = |tensor: &Tensor| format!("{}/{kind}/{}", network.name, tensor.name);
            tensors.extend(of_kind.iter().map(|tensor| (key(tensor), Numbers(tensor))));
        }
    }
    let header = serde_json::to_string(&Header { blueprint: state.blueprint.clone(), networks })
        .map_err(|e| e.to_string())?;
    // A single entry: the order of a hash map's entries would vary between runs.
    let metadata = HashMap::from([(KEY.to_owned(), header)]);
    safetensors::serialize(tensors, Some(metadata)).map_err(|e| e.to_string())
}

/// A tensor for safetensors, converted to bytes only when written.
struct Numbers<'a>(&'a Tensor);

impl View for Numbers<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }
    fn shape(&self) -> &[usize] {
        &self.0.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        self.0.data.iter().flat_map(|x| x.to_le_bytes()).collect()
    }
    fn data_len(&self) -> usize {
        4 * self.0.data.len()
    }
}

/// Parses the file.
pub(crate) fn decode(bytes: &[u8]) -> Result<AgentState, String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| e.to_string())?;
    let file = SafeTensors::deserialize(bytes).map_err(|e| e.to_string())?;
    let header = metadata.metadata().as_ref().and_then(|map| map.get(KEY));
    let header = header.ok_or_else(|| format!("found no `{KEY}` in the metadata"))?;
    let header: Header = serde_json::from_str(header).map_err(|e| e.to_string())?;
    let read = |network: &str, kind: &str, names: &[String]| {
        names
            .iter()
            .map(|name| tensor(&file, &format!("{network}/{kind}/{name}"), name))
            .collect::<Result<Vec<_>, _>>()
    };
    let networks = header.networks.iter().map(|network| {
        Ok(NetworkState {
            weights: read(&network.name, "weights", &network.weights)?,
            first_moments: read(&network.name, "first_moments", &network.first_moments)?,
            second_moments: read(&network.name, "second_moments", &network.second_moments)?,
            name: network.name.clone(),
            steps: network.steps,
        })
    });
    let networks = networks.collect::<Result<_, String>>()?;
    Ok(AgentState { blueprint: header.blueprint, networks })
}

fn tensor(file: &SafeTensors<'_>, key: &str, name: &str) -> Result<Tensor, String> {
    let view = file.tensor(key).map_err(|e| format!("tensor `{key}`: {e}"))?;
    if view.dtype() != Dtype::F32 {
        return Err(format!("tensor `{key}`: found {:?}, expected F32", view.dtype()));
    }
    let (numbers, _) = view.data().as_chunks::<4>();
    let data = numbers.iter().map(|x| f32::from_le_bytes(*x)).collect();
    Ok(Tensor { name: name.to_owned(), shape: view.shape().to_vec(), data })
}

fn kinds(network: &NetworkState) -> [(&'static str, &[Tensor]); 3] {
    [
        ("weights", &network.weights),
        ("first_moments", &network.first_moments),
        ("second_moments", &network.second_moments),
    ]
}

/// The first NaN or infinity, with its location.
pub(crate) fn not_finite(state: &AgentState) -> Option<(String, f32)> {
    for network in &state.networks {
        for (kind, tensors) in kinds(network) {
            for tensor in tensors {
                if let Some(&value) = tensor.data.iter().find(|x| !x.is_finite()) {
                    return Some((format!("{kind} of network {}, {}", network.name, tensor.name), value));
                }
            }
        }
    }
    None
}

/// SHA-256 of all weights: networks in order, their tensors in order, row by row as little-endian bytes.
///
/// Moments and counters are excluded, so that it identifies what was learned.
pub fn weights_sha256(state: &AgentState) -> String {
    let mut hash = Sha256::new();
    let mut bytes = Vec::new();
    for tensor in state.networks.iter().flat_map(|network| &network.weights) {
        bytes.clear();
        bytes.extend(tensor.data.iter().flat_map(|x| x.to_le_bytes()));
        hash.update(&bytes);
    }
    hex(hash.finalize().as_slice())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn state(first: f32) -> AgentState {
        let tensor = |name: &str, data: Vec<f32>| Tensor { name: name.into(), shape: vec![data.len()], data };
        let network = |name: &str, moments: bool| NetworkState {
            name: name.into(),
            weights: vec![tensor("b", vec![first, -0.0]), tensor("a", vec![f32::MIN_POSITIVE / 3.0])],
            first_moments: if moments { vec![tensor("b", vec![0.1, 0.2])] } else { vec![] },
            second_moments: if moments { vec![tensor("b", vec![1e-30, 2e20])] } else { vec![] },
            steps: u64::MAX,
        };
        // Numbers that must survive the text format bit for bit.
        let blueprint = serde_json::json!({
            "encoding": { "observation_dim": 1, "standard": [[0.1f32, 1.0f32 / 3.0]], "frequencies": [f32::MIN_POSITIVE] },
            "action_dim": 2,
            "value_range": [-98.700005f32, 0.1f32 + 0.2f32],
        });
        let blueprint = serde_json::from_value(blueprint).unwrap();
        AgentState { blueprint, networks: vec![network("v", true), network("actor", false)] }
    }

    #[test]
    fn round_trip_keeps_bits_and_order() {
        let bytes = encode(&state(1.5)).unwrap();
        let back = decode(&bytes).unwrap();
        assert_eq!(back, state(1.5));
        assert!(back.networks[0].weights[0].data[1].is_sign_negative());
        assert_eq!(bytes, encode(&state(1.5)).unwrap());
    }

    #[test]
    fn the_hash_sees_weights_only() {
        // Computed with Python's struct and hashlib.
        let golden = "c838f31b3614677e89386837b5a3cade352a7b45cb331a449a30d9359d5c3802";
        assert_eq!(weights_sha256(&state(1.5)), golden);
        let mut moments = state(1.5);
        moments.networks[0].first_moments[0].data[0] = 7.0;
        moments.networks[0].steps = 0;
        assert_eq!(weights_sha256(&moments), weights_sha256(&state(1.5)));
        assert_ne!(weights_sha256(&state(1.0)), weights_sha256(&state(1.5)));
    }

    #[test]
    fn non_finite_numbers_are_found_with_their_place() {
        assert_eq!(not_finite(&state(1.0)), None);
        let (place, value) = not_finite(&state(f32::INFINITY)).unwrap();
        assert_eq!((place.as_str(), value), ("weights of network v, b", f32::INFINITY));
        let mut moments = state(0.0);
        moments.networks[0].second_moments[0].data[1] = f32::NAN;
        assert_eq!(not_finite(&moments).unwrap().0, "second_moments of network v, b");
    }
}

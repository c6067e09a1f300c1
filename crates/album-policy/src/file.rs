//! Policy files: safetensors, with the manifest and the steps as JSON in its metadata.
//!
//! ```text
//! 8 bytes     the length of the header, little endian
//! header      {"__metadata__": {"album_policy": "1", "policy": "{...}", "steps": "[...]"},
//!              "NAME": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}, ...}
//! tensors     one after the other, without gaps
//! ```

use crate::error::PolicyError;
use crate::graph::Graph;
use crate::manifest::Manifest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file version that is written and read.
pub const VERSION: u32 = 1;

/// Maximum size of a header in bytes.
const MOST_HEADER: usize = 64 << 20;

/// Named arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors(BTreeMap<String, Tensor>);

#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Tensors {
    /// Adds or replaces an array, given row by row.
    pub fn insert(&mut self, name: impl Into<String>, shape: Vec<usize>, data: Vec<f32>) {
        self.0.insert(name.into(), Tensor { shape, data });
    }

    /// Whether there is an array of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// All arrays: name, shape, data.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), &tensor.shape[..], &tensor.data[..]))
    }

    /// The shape of an array.
    pub(crate) fn shape(&self, name: &str) -> Result<&[usize], String> {
        self.0.get(name).map(|tensor| &tensor.shape[..]).ok_or_else(|| format!("tensor `{name}` is missing"))
    }

    /// The numbers of an array.
    pub(crate) fn data(&self, name: &str) -> &[f32] {
        self.0.get(name).map_or(&[], |tensor| &tensor.data)
    }
}

#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "__metadata__")]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: BTreeMap<String, Entry>,
}

/// The contents of a policy file.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyFile {
    /// The metadata.
    pub manifest: Manifest,
    /// The computation from an observation to an action.
    pub graph: Graph,
    /// The weights.
    pub tensors: Tensors,
}

impl PolicyFile {
    /// Serialises the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, PolicyError> {
        let text = |e: serde_json::Error| PolicyError::damaged(e.to_string());
        let metadata = BTreeMap::from([
            ("album_policy".to_owned(), VERSION.to_string()),
            ("policy".to_owned(), serde_json::to_string(&self.manifest).map_err(text)?),
            ("steps".to_owned(), serde_json::to_string(&self.graph).map_err(text)?),
        ]);
        let (mut data, mut tensors) = (Vec::new(), BTreeMap::new());
        for (name, shape, numbers) in self.tensors.iter() {
            let from = data.len();
            data.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
            let data_offsets = [from, data.len()];
            tensors
                .insert(name.to_owned(), Entry { dtype: "F32".into(), shape: shape.to_vec(), data_offsets });
        }
        let mut header = serde_json::to_vec(&Header { metadata, tensors }).map_err(text)?;
        header.resize(header.len().next_multiple_of(8), b' ');
        Ok([&(header.len() as u64).to_le_bytes(), &header[..], &data].concat())
    }

    /// Parses a file. Nothing in it is trusted: the result is consistent in itself.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PolicyError> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| {
            PolicyError::damaged(format!("{} bytes are not a safetensors file", bytes.len()))
        })?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > rest.len() || length > MOST_HEADER {
            return Err(PolicyError::damaged(format!(
                "a header of {length} bytes in a file of {}; expected a safetensors file",
                bytes.len()
            )));
        }
        let (header, data) = rest.split_at(length);
        let header: Header = serde_json::from_slice(header)
            .map_err(|e| PolicyError::damaged(format!("its header is not that of a policy: {e}")))?;
        let metadata = |key: &str| {
            let missing = || PolicyError::damaged(format!("its metadata has no `{key}`"));
            header.metadata.get(key).ok_or_else(missing)
        };
        let found = metadata("album_policy")?;
        if *found != VERSION.to_string() {
            return Err(PolicyError::Version { found: found.escape_debug().to_string(), expected: VERSION });
        }
        let json = |key, e| PolicyError::damaged(format!("its metadata `{key}`: {e}"));
        let manifest: Manifest = serde_json::from_str(metadata("policy")?).map_err(|e| json("policy", e))?;
        let graph: Graph = serde_json::from_str(metadata("steps")?).map_err(|e| json("steps", e))?;
        let tensors = read(&header.tensors, data).map_err(PolicyError::Damaged)?;
        manifest.check().map_err(PolicyError::Damaged)?;
        Ok(PolicyFile { manifest, graph, tensors })
    }
}

/// The tensors, which must fill the data exactly, as safetensors requires: no array can claim to be larger
/// than the file.
fn read(entries: &BTreeMap<String, Entry>, data: &[u8]) -> Result<Tensors, String> {
    let mut order: Vec<(&String, &Entry)> = entries.iter().collect();
    order.sort_by_key(|(_, entry)| entry.data_offsets);
    let (mut tensors, mut at) = (Tensors::default(), 0);
    for (name, entry) in order {
        let [from, to] = entry.data_offsets;
        if entry.dtype != "F32" {
            return Err(format!("tensor `{name}` is {}; expected F32", entry.dtype.escape_debug()));
        }
        let bytes = entry.shape.iter().try_fold(4usize, |bytes, &size| bytes.checked_mul(size));
        if from != at || to < from || to > data.len() || bytes != Some(to - from) {
            return Err(format!(
                "tensor `{name}` of shape {:?} at bytes {from}..{to}; expected its bytes from {at} on, in {}",
                entry.shape,
                data.len()
            ));
        }
        let numbers: Vec<f32> =
            data[from..to].as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if let Some(place) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(format!(
                "tensor `{name}` holds {} at {place}; expected finite numbers",
                numbers[place]
            ));
        }
        tensors.insert(name.as_str(), entry.shape.clone(), numbers);
        at = to;
    }
    if at != data.len() {
        return Err(format!("{} bytes follow the last tensor", data.len() - at));
    }
    Ok(tensors)
}

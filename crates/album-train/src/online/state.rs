//! The checkpoint of an online run: a safetensors file with the agent, the replay buffer and, in the header,
//! the progress.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use album_agents::{Agent, AgentState, Learner};
use album_base::atomic;
use album_data::Replay;
use safetensors::tensor::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};

use super::OnlineProgress;
use crate::error::TrainError;
use crate::files::sha256;
use crate::state_file;

const KEY: &str = "album-online";
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    album: String,
    identity: String,
    progress: OnlineProgress,
    /// Hashes of the agent's bytes and of the replay buffer's.
    sha256: [String; 2],
}

/// Raw bytes with a shape.
struct Part<'a>(Dtype, [usize; 1], Cow<'a, [u8]>);

impl View for Part<'_> {
    fn dtype(&self) -> Dtype {
        self.0
    }
    fn shape(&self) -> &[usize] {
        &self.1
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.2)
    }
    fn data_len(&self) -> usize {
        self.2.len()
    }
}

pub(super) fn save(
    path: &Path,
    identity: &str,
    agent: &AgentState,
    replay: &Replay,
    progress: &OnlineProgress,
) -> Result<(), TrainError> {
    let invalid = |reason: String| TrainError::damaged(path, format!("cannot be written: {reason}"));
    let agent = state_file::encode(agent).map_err(invalid)?;
    let numbers: Vec<u8> = replay.numbers().iter().flat_map(|x| x.to_le_bytes()).collect();
    let header = Header {
        format: FORMAT,
        album: env!("CARGO_PKG_VERSION").into(),
        identity: identity.to_owned(),
        progress: progress.clone(),
        sha256: [sha256(&agent), sha256(&numbers)],
    };
    let header = serde_json::to_string(&header).map_err(|e| invalid(e.to_string()))?;
    let parts = [
        ("agent", Part(Dtype::U8, [agent.len()], agent.into())),
        ("replay", Part(Dtype::F32, [replay.numbers().len()], numbers.into())),
    ];
    let bytes = safetensors::serialize(parts, Some(HashMap::from([(KEY.to_owned(), header)])))
        .map_err(|e| invalid(e.to_string()))?;
    atomic::write(path, &bytes).map_err(TrainError::io("write", path))
}

/// Loads a checkpoint into the agent and the replay buffer; `None` if there is none.
pub(super) fn load(
    path: &Path,
    identity: &str,
    agent: &mut Learner,
    replay: &mut Replay,
) -> Result<Option<OnlineProgress>, TrainError> {
    let bytes = match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(TrainError::io("read", path))?,
    };
    let damaged = |reason: String| TrainError::damaged(path, reason);
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(e.to_string()))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| damaged(e.to_string()))?;
    let header = metadata.metadata().as_ref().and_then(|map| map.get(KEY));
    let header = header.ok_or_else(|| damaged(format!("found no `{KEY}` in the metadata")))?;
    let header: Header = serde_json::from_str(header).map_err(|e| damaged(e.to_string()))?;
    if header.format != FORMAT {
        let (path, found, writer, expected) = (path.to_path_buf(), header.format, header.album, FORMAT);
        return Err(TrainError::Version { path, found, writer, expected });
    }
    if header.identity != identity {
        let differs = |(a, b): &(&str, &str)| a != b;
        let lines = header.identity.lines().zip(identity.lines()).find(differs);
        let (found, expected) = lines.unwrap_or((&header.identity, identity));
        return Err(TrainError::Mismatch {
            path: path.to_path_buf(),
            what: "the recipe".into(),
            found: format!("`{found}`"),
            expected: format!("`{expected}`"),
        });
    }
    let part = |name: &str, sum: &str| {
        let view = file.tensor(name).map_err(|e| damaged(format!("`{name}`: {e}")))?;
        match sha256(view.data()) == sum {
            true => Ok(view.data()),
            false => Err(damaged(format!("the SHA-256 of `{name}` is not the one in the header"))),
        }
    };
    let state = state_file::decode(part("agent", &header.sha256[0])?).map_err(damaged)?;
    let (numbers, _) = part("replay", &header.sha256[1])?.as_chunks::<4>();
    let numbers = numbers.iter().map(|x| f32::from_le_bytes(*x)).collect();
    if !replay.restore(header.progress.step, numbers) {
        return Err(damaged(format!("its replay buffer is not that of {} steps", header.progress.step)));
    }
    agent.load(&state).map_err(|source| TrainError::Agent { path: path.to_path_buf(), source })?;
    Ok(Some(header.progress))
}

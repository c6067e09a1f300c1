//! Checkpoints: everything a run needs to resume as if it had never stopped.
//!
//! A checkpoint is a directory `step_000012345` with
//!
//! - `agent.safetensors`: weights, moments and step counters of all networks, and what the agent derived from
//!   its data;
//! - `manifest.json`: the [`Manifest`];
//! - `SHA256SUMS`: hashes of these two files, in the format of `sha256sum -c`.
//!
//! It is written under a temporary name, synced and renamed, so that a checkpoint under its final name is
//! always complete. The latest one is found by listing the directory; no file points to it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use album_agents::AgentState;
use album_base::files::{self, Links};
use serde::{Deserialize, Serialize};

use crate::best::Best;
use crate::error::TrainError;
use crate::evaluate::EvaluationSummary;
use crate::files::{names, sha256, sync_directory, write_synced};
use crate::identity::Identity;
use crate::state_file;

/// The checkpoint format that this version writes and reads.
///
/// 2: includes the agent's blueprint, so that its policy needs no data.
pub const FORMAT: u32 = 2;

const AGENT: &str = "agent.safetensors";
const MANIFEST: &str = "manifest.json";
const SUMS: &str = "SHA256SUMS";
/// The largest accepted file: more than any agent that fits into memory.
const LONGEST: u64 = 1 << 38;
/// Prefix of checkpoints that are being written or deleted.
const TEMPORARY: &str = ".tmp-";
/// Prefix of a checkpoint that is being replaced by another of the same step.
const REPLACED: &str = ".old-";

/// Metadata of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the checkpoint, [`FORMAT`].
    pub format: u32,
    /// The version of album that wrote it.
    pub album: String,
    /// Identity of the run.
    #[serde(flatten)]
    pub identity: Identity,
    /// Progress of the run.
    #[serde(flatten)]
    pub progress: Progress,
    /// The random streams of the master seed by name, with the number of steps drawn from each. Draws are
    /// functions of seed, name and step, so this is the whole random state.
    pub streams: BTreeMap<String, u64>,
    /// SHA-256 of the other files of the checkpoint.
    pub files: BTreeMap<String, String>,
}

/// Progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Number of updates done.
    pub step: u64,
    /// Seconds spent on updates.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub train_seconds: f64,
    /// Seconds spent on the run, not counting the time between a stop and its resumption.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub wall_seconds: f64,
    /// Seconds spent on evaluations.
    #[serde(default, deserialize_with = "crate::numbers::or_nan")]
    pub eval_seconds: f64,
    /// The evaluations so far.
    pub evaluations: Vec<EvaluationSummary>,
    /// The best checkpoint so far, if one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
    /// Length of each log file in bytes; anything beyond is newer than the checkpoint.
    pub logs: BTreeMap<String, u64>,
}

/// A checkpoint that was read and verified.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Its path.
    pub path: PathBuf,
    /// Its metadata.
    pub manifest: Manifest,
    /// The agent's state.
    pub state: AgentState,
}

impl Checkpoint {
    /// Number of updates done.
    pub fn step(&self) -> u64 {
        self.manifest.progress.step
    }

    /// Restores the state into an agent of the same configuration.
    pub fn restore(&self, agent: &mut dyn album_agents::Agent) -> Result<(), TrainError> {
        agent.load(&self.state).map_err(|source| TrainError::Agent { path: self.path.clone(), source })
    }

    /// Refuses a checkpoint of another run, naming the difference.
    pub fn check(&self, identity: &Identity) -> Result<(), TrainError> {
        identity.check(&self.manifest.identity, &self.path)
    }
}

/// The latest intact checkpoint, and what is wrong with later ones.
#[derive(Debug, Default)]
pub struct Latest {
    /// `None` if there is no intact one.
    pub checkpoint: Option<Checkpoint>,
    /// One error for each later, damaged checkpoint.
    pub damaged: Vec<TrainError>,
}

/// Writes a checkpoint into the directory of checkpoints and returns its path.
///
/// Replaces a checkpoint of the same step. On an error, the directory is left as it was.
pub fn save(
    directory: &Path,
    identity: &Identity,
    progress: &Progress,
    state: &AgentState,
) -> Result<PathBuf, TrainError> {
    let name = name_of(progress.step);
    let target = directory.join(&name);
    let temporary = directory.join(format!("{TEMPORARY}{name}"));
    let written = write(&temporary, identity, progress, state).and_then(|()| {
        let replaced = directory.join(format!("{REPLACED}{name}"));
        // If the process dies between the two renames, `recover` undoes the first.
        let replacing = target.exists();
        if replacing {
            if replaced.exists() {
                remove(&replaced)?;
            }
            fs::rename(&target, &replaced).map_err(TrainError::io("rename", &target))?;
        }
        fs::rename(&temporary, &target).map_err(TrainError::io("rename", &temporary))?;
        sync_directory(directory)?;
        if replacing {
            // A leftover is harmless; `recover` tries again.
            let _ = remove(&replaced);
        }
        Ok(())
    });
    if written.is_err() {
        // The original error says more than a failed cleanup would.
        let _ = fs::remove_dir_all(&temporary);
        let _ = recover(directory);
    }
    written.map(|()| target)
}

fn write(
    path: &Path,
    identity: &Identity,
    progress: &Progress,
    state: &AgentState,
) -> Result<(), TrainError> {
    if path.exists() {
        remove(path)?;
    }
    fs::create_dir(path).map_err(TrainError::io("create the directory", path))?;
    let invalid = |reason: String| TrainError::damaged(path, format!("cannot be written: {reason}"));
    let agent = state_file::encode(state).map_err(invalid)?;
    let manifest = Manifest {
        format: FORMAT,
        album: env!("CARGO_PKG_VERSION").into(),
        identity: identity.clone(),
        progress: progress.clone(),
        streams: BTreeMap::from([("sampler".into(), progress.step), ("eval".into(), progress.step)]),
        files: BTreeMap::from([(AGENT.into(), sha256(&agent))]),
    };
    let manifest = serde_json::to_vec_pretty(&manifest).map_err(|e| invalid(e.to_string()))?;
    write_synced(&path.join(AGENT), &agent)?;
    write_synced(&path.join(MANIFEST), &manifest)?;
    write_synced(&path.join(SUMS), sums(&agent, &manifest).as_bytes())?;
    sync_directory(path)
}

fn sums(agent: &[u8], manifest: &[u8]) -> String {
    format!("{}  {AGENT}\n{}  {MANIFEST}\n", sha256(agent), sha256(manifest))
}

/// Reads one checkpoint and verifies every byte.
pub fn load(path: &Path) -> Result<Checkpoint, TrainError> {
    let read = |name: &str| {
        let file = path.join(name);
        files::read(&file, Links::Refuse, LONGEST).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                TrainError::damaged(&file, "the file is missing")
            }
            _ => TrainError::Io { action: "read", path: file, source },
        })
    };
    let (agent, manifest, found) = (read(AGENT)?, read(MANIFEST)?, read(SUMS)?);
    let expected = sums(&agent, &manifest);
    if found != expected.as_bytes() {
        let found = String::from_utf8_lossy(&found);
        let wrong =
            [AGENT, MANIFEST].into_iter().zip(expected.lines()).find(|(_, line)| !found.contains(line));
        let name = wrong.map_or(SUMS, |(name, _)| name);
        return Err(TrainError::damaged(
            &path.join(name),
            format!("its SHA-256 is not the one in {SUMS}; the file changed after it was written"),
        ));
    }

    #[derive(Deserialize)]
    struct Version {
        format: u32,
        album: String,
    }
    let file = path.join(MANIFEST);
    let damaged = |e: serde_json::Error| TrainError::damaged(&file, e.to_string());
    let version: Version = serde_json::from_slice(&manifest).map_err(damaged)?;
    if version.format != FORMAT {
        return Err(TrainError::Version {
            path: path.to_path_buf(),
            found: version.format,
            writer: version.album,
            expected: FORMAT,
        });
    }
    let manifest: Manifest = serde_json::from_slice(&manifest).map_err(damaged)?;
    if step_of(path) != Some(manifest.progress.step) {
        let step = manifest.progress.step;
        return Err(TrainError::damaged(
            path,
            format!("the directory was renamed; its manifest says step {step}"),
        ));
    }
    if manifest.files.get(AGENT) != Some(&sha256(&agent)) {
        return Err(TrainError::damaged(
            &path.join(AGENT),
            format!("its SHA-256 is not the one in {MANIFEST}"),
        ));
    }
    let state =
        state_file::decode(&agent).map_err(|reason| TrainError::damaged(&path.join(AGENT), reason))?;
    Ok(Checkpoint { path: path.to_path_buf(), manifest, state })
}

/// The latest intact checkpoint in a directory of checkpoints.
///
/// Damaged ones are skipped and reported. A checkpoint in another format is an error: it is intact, and
/// falling back to an older one would lose work.
pub fn latest(directory: &Path) -> Result<Latest, TrainError> {
    let mut latest = Latest::default();
    match fs::symlink_metadata(directory) {
        Ok(found) if found.is_dir() => {}
        // Following a link would read, or delete, checkpoints elsewhere.
        Ok(found) if found.is_symlink() => {
            return Err(TrainError::damaged(directory, "found a symbolic link, expected a directory"));
        }
        _ => return Ok(latest),
    }
    for path in list(directory)?.into_iter().rev() {
        match load(&path) {
            Ok(checkpoint) => {
                latest.checkpoint = Some(checkpoint);
                break;
            }
            Err(error @ TrainError::Damaged { .. }) => latest.damaged.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok(latest)
}

/// The latest intact checkpoint; an error if there is none.
pub fn require_latest(directory: &Path) -> Result<Checkpoint, TrainError> {
    let Latest { checkpoint, damaged } = latest(directory)?;
    match (checkpoint, damaged.into_iter().next()) {
        (Some(checkpoint), _) => Ok(checkpoint),
        (None, Some(error)) => Err(error),
        (None, None) => Err(TrainError::NoCheckpoint { path: directory.to_path_buf() }),
    }
}

/// The checkpoint of this step; the error lists the available steps.
pub fn at(directory: &Path, step: u64) -> Result<Checkpoint, TrainError> {
    let path = directory.join(name_of(step));
    if path.is_dir() {
        return load(&path);
    }
    let found = list(directory)?.iter().filter_map(|path| step_of(path)).collect();
    Err(TrainError::NoSuchStep { path: directory.to_path_buf(), step, found })
}

/// The checkpoints in a directory by step, intact or not.
pub fn list(directory: &Path) -> Result<Vec<PathBuf>, TrainError> {
    let mut found: Vec<_> = names(directory)?
        .into_iter()
        .map(|name| directory.join(name))
        .filter_map(|path| step_of(&path).map(|step| (step, path)))
        .collect();
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Deletes all but the last `keep` checkpoints and the best one.
pub(crate) fn prune(directory: &Path, keep: usize, best: Option<u64>) -> Result<(), TrainError> {
    let found = list(directory)?;
    let old = found[..found.len().saturating_sub(keep)].iter();
    old.filter(|path| best.is_none() || step_of(path) != best).try_for_each(|path| remove(path))
}

/// Renames the damaged checkpoints after a step, so that they no longer count.
pub(crate) fn set_aside_after(directory: &Path, step: u64) -> Result<(), TrainError> {
    for path in list(directory)? {
        if step_of(&path) > Some(step) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let aside = path.with_file_name(format!("damaged-{name}"));
            if aside.exists() {
                remove(&aside)?;
            }
            fs::rename(&path, &aside).map_err(TrainError::io("rename", &path))?;
        }
    }
    Ok(())
}

/// Cleans up after an interrupted [`save`].
pub(crate) fn recover(directory: &Path) -> Result<(), TrainError> {
    for name in names(directory)? {
        let path = directory.join(&name);
        if let Some(original) = name.strip_prefix(REPLACED) {
            let target = directory.join(original);
            if target.exists() {
                remove(&path)?;
            } else {
                fs::rename(&path, &target).map_err(TrainError::io("rename", &path))?;
            }
        } else if name.starts_with(TEMPORARY) {
            fs::remove_dir_all(&path).map_err(TrainError::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Deletes a checkpoint so that no partial one is ever visible under its name.
fn remove(path: &Path) -> Result<(), TrainError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let trash = path.with_file_name(format!("{TEMPORARY}gone-{}", name.trim_start_matches('.')));
    if trash.exists() {
        fs::remove_dir_all(&trash).map_err(TrainError::io("remove", &trash))?;
    }
    fs::rename(path, &trash).map_err(TrainError::io("rename", path))?;
    fs::remove_dir_all(&trash).map_err(TrainError::io("remove", &trash))
}

fn name_of(step: u64) -> String {
    format!("step_{step:09}")
}

fn step_of(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_prefix("step_")?;
    let plain = digits.len() >= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_file::tests::state;

    fn identity() -> Identity {
        Identity {
            task: "t".into(),
            agent: "album".into(),
            seed: 1,
            dataset: "00".into(),
            held_out: None,
            config: "k = 10\n".into(),
            defaults: String::new(),
        }
    }

    fn progress(step: u64) -> Progress {
        let logs = BTreeMap::from([("train.csv".into(), 17)]);
        Progress {
            step,
            train_seconds: 0.1,
            wall_seconds: 1.0 / 3.0,
            eval_seconds: 0.0,
            best: None,
            evaluations: vec![],
            logs,
        }
    }

    fn save_step(dir: &Path, step: u64, first: f32) -> PathBuf {
        save(dir, &identity(), &progress(step), &state(first)).unwrap()
    }

    #[test]
    fn round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let path = save_step(dir.path(), 12345, 1.5);
        assert_eq!(path.file_name().unwrap(), "step_000012345");
        let back = load(&path).unwrap();
        assert_eq!(back.state, state(1.5));
        assert_eq!(back.manifest.progress, progress(12345));
        assert_eq!(back.manifest.identity, identity());
        back.check(&identity()).unwrap();
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = save_step(dir.path(), 7, 1.5);
        let mut flips = 0;
        for name in [AGENT, MANIFEST, SUMS] {
            let file = path.join(name);
            let good = fs::read(&file).unwrap();
            for i in 0..good.len() {
                let mut bad = good.clone();
                bad[i] ^= 1 << (i % 8);
                fs::write(&file, &bad).unwrap();
                let error = load(&path).unwrap_err();
                assert!(matches!(error, TrainError::Damaged { .. }), "{name} {i}: {error}");
                flips += 1;
            }
            for length in [0, 1, good.len() / 2, good.len() - 1] {
                fs::write(&file, &good[..length]).unwrap();
                assert!(matches!(load(&path), Err(TrainError::Damaged { .. })), "{name} cut to {length}");
            }
            fs::write(&file, [&good[..], b"\n"].concat()).unwrap();
            assert!(load(&path).is_err());
            fs::remove_file(&file).unwrap();
            let message = load(&path).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("missing"), "{message}");
            fs::write(&file, &good).unwrap();
            load(&path).unwrap();
        }
        assert!(flips > 1000);
    }

    #[test]
    fn the_damaged_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for name in [AGENT, MANIFEST, SUMS] {
            let path = save_step(dir.path(), 7, 1.5);
            let file = path.join(name);
            let mut bytes = fs::read(&file).unwrap();
            // In SHA256SUMS, the final newline, which belongs to no hash.
            let place = if name == SUMS { bytes.len() - 1 } else { bytes.len() / 2 };
            bytes[place] ^= 1;
            fs::write(&file, bytes).unwrap();
            let message = load(&path).unwrap_err().to_string();
            assert!(message.contains(&format!("{name}: damaged")), "{message}");
        }
    }

    #[test]
    fn the_latest_whole_one_is_found() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(require_latest(dir.path()), Err(TrainError::NoCheckpoint { .. })));
        for step in [5, 999_999_999, 1_000_000_000] {
            save_step(dir.path(), step, 1.0);
        }
        fs::create_dir(dir.path().join("step_best")).unwrap();
        fs::write(dir.path().join("step_000000006"), "").unwrap();
        fs::create_dir(dir.path().join(format!("{TEMPORARY}step_000000099"))).unwrap();
        assert_eq!(require_latest(dir.path()).unwrap().step(), 1_000_000_000);
        fs::write(dir.path().join("step_1000000000").join(AGENT), "").unwrap();
        let found = latest(dir.path()).unwrap();
        assert_eq!(found.checkpoint.unwrap().step(), 999_999_999);
        assert_eq!(found.damaged.len(), 1);
        for path in list(dir.path()).unwrap() {
            let _ = fs::write(path.join(MANIFEST), ""); // one of them is a file
        }
        assert!(matches!(require_latest(dir.path()), Err(TrainError::Damaged { .. })));
    }

    #[test]
    fn a_renamed_checkpoint_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = save_step(dir.path(), 5, 1.0);
        let other = path.with_file_name("step_000000006");
        fs::rename(&path, &other).unwrap();
        assert!(load(&other).unwrap_err().to_string().contains("its manifest says step 5"));
    }

    #[test]
    fn other_formats_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = save_step(dir.path(), 5, 1.0);
        let manifest =
            fs::read_to_string(path.join(MANIFEST)).unwrap().replace("\"format\": 2", "\"format\": 1");
        let agent = fs::read(path.join(AGENT)).unwrap();
        fs::write(path.join(SUMS), sums(&agent, manifest.as_bytes())).unwrap();
        fs::write(path.join(MANIFEST), manifest).unwrap();
        for error in [load(&path).unwrap_err(), latest(dir.path()).unwrap_err()] {
            assert!(
                error
                    .to_string()
                    .contains("checkpoint format 1 (written by album 0.1.0), expected format 2; train again")
            );
        }
    }

    #[test]
    fn one_of_the_same_step_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        save_step(dir.path(), 5, 1.0);
        let path = save_step(dir.path(), 5, 2.0);
        assert_eq!(load(&path).unwrap().state, state(2.0));
        assert_eq!(names(dir.path()).unwrap(), ["step_000000005"]);
    }

    #[test]
    fn an_interrupted_replacement_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        let path = save_step(dir.path(), 5, 1.0);
        fs::rename(&path, dir.path().join(format!("{REPLACED}step_000000005"))).unwrap();
        fs::create_dir(dir.path().join(format!("{TEMPORARY}step_000000005"))).unwrap();
        recover(dir.path()).unwrap();
        assert_eq!(load(&path).unwrap().state, state(1.0));
        assert_eq!(names(dir.path()).unwrap(), ["step_000000005"]);
    }

    #[test]
    fn only_the_last_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for step in 1..=4 {
            save_step(dir.path(), step, 1.0);
            prune(dir.path(), 2, None).unwrap();
        }
        assert_eq!(names(dir.path()).unwrap(), ["step_000000003", "step_000000004"]);
    }
}

//! The possible states of a disk after a power failure.
//!
//! A file's contents and a folder's entries are independent: each has its own history, and syncing one says
//! nothing about the other. Changes before the last sync are on the disk. Of the later ones, a folder may
//! have kept any prefix (entries reach a journal in order), and a file none, all, or all but a part of its
//! last write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// A file or folder, independent of its names.
pub type Inode = usize;

/// The folder in which everything happens.
pub const ROOT: Inode = 0;

/// Maximum number of states of one moment; beyond it, those that lose or keep everything, and all that differ
/// from one of these in one file or folder.
const MOST_AT_ONCE: usize = 3000;

/// A change, in the order in which the program made it.
#[derive(Clone, Debug)]
pub enum Change {
    Write { file: Inode, at: usize, bytes: Vec<u8> },
    Truncate { file: Inode, length: usize },
    Link { folder: Inode, name: String, inode: Inode },
    Unlink { folder: Inode, name: String },
    Rename { folder: Inode, from: String, to: String },
    Exchange { folder: Inode, a: String, b: String },
    Sync(Inode),
}

impl Change {
    /// The file or folder that it changes.
    fn of(&self) -> Inode {
        match self {
            Change::Write { file, .. } | Change::Truncate { file, .. } => *file,
            Change::Link { folder, .. }
            | Change::Unlink { folder, .. }
            | Change::Rename { folder, .. }
            | Change::Exchange { folder, .. } => *folder,
            Change::Sync(inode) => *inode,
        }
    }

    fn is_entry(&self) -> bool {
        !matches!(self, Change::Write { .. } | Change::Truncate { .. } | Change::Sync(_))
    }
}

/// The initial state, and the changes.
#[derive(Default)]
pub struct History {
    /// Contents of files.
    pub files: HashMap<Inode, Vec<u8>>,
    /// Entries of folders.
    pub folders: HashMap<Inode, BTreeMap<String, Inode>>,
    pub changes: Vec<Change>,
}

/// Paths and contents; `None` for a folder.
pub type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// How much of an object's unsynced history is kept.
#[derive(Clone, Copy)]
struct Kept {
    changes: usize,
    /// Whether the last change is only half written.
    torn: bool,
}

impl History {
    /// Every distinct state that the disk may be in, at any moment of the failure.
    pub fn states(&self) -> Vec<Tree> {
        let (mut seen, mut states) = (BTreeSet::new(), Vec::new());
        for moment in 0..=self.changes.len() {
            for kept in self.choices(moment) {
                let tree = self.tree(moment, &kept);
                let mut hasher = DefaultHasher::new();
                tree.hash(&mut hasher);
                if seen.insert(hasher.finish()) {
                    states.push(tree);
                }
            }
        }
        states
    }

    /// The unsynced changes of every object.
    fn pending(&self, moment: usize) -> BTreeMap<Inode, Vec<usize>> {
        let mut pending: BTreeMap<Inode, Vec<usize>> = BTreeMap::new();
        for (i, change) in self.changes[..moment].iter().enumerate() {
            match change {
                Change::Sync(inode) => _ = pending.remove(inode),
                change => pending.entry(change.of()).or_default().push(i),
            }
        }
        pending
    }

    /// Combinations of what is kept of each object.
    fn choices(&self, moment: usize) -> Vec<BTreeMap<Inode, Kept>> {
        let options: Vec<(Inode, Vec<Kept>)> = self
            .pending(moment)
            .into_iter()
            .map(|(inode, changes)| {
                let whole = |changes| Kept { changes, torn: false };
                let all = changes.len();
                let kept = if self.changes[changes[0]].is_entry() {
                    (0..=all).map(whole).collect()
                } else {
                    vec![whole(0), Kept { changes: all, torn: true }, whole(all)]
                };
                (inode, kept)
            })
            .collect();
        let product = options.iter().try_fold(1usize, |n, (_, kept)| n.checked_mul(kept.len()));
        if product.is_some_and(|n| n <= MOST_AT_ONCE) {
            let mut all = vec![BTreeMap::new()];
            for (inode, kept) in &options {
                let with = |chosen: &BTreeMap<Inode, Kept>| {
                    let chosen = chosen.clone();
                    kept.iter().map(move |&kept| {
                        let mut chosen = chosen.clone();
                        chosen.insert(*inode, kept);
                        chosen
                    })
                };
                all = all.iter().flat_map(with).collect();
            }
            return all;
        }
        let extreme = |last: bool| -> BTreeMap<Inode, Kept> {
            options
                .iter()
                .map(|(inode, kept)| (*inode, kept[if last { kept.len() - 1 } else { 0 }]))
                .collect()
        };
        let mut all = Vec::new();
        for base in [extreme(false), extreme(true)] {
            for (inode, kept) in &options {
                for &kept in kept {
                    let mut chosen = base.clone();
                    chosen.insert(*inode, kept);
                    all.push(chosen);
                }
            }
        }
        all
    }

    fn tree(&self, moment: usize, kept: &BTreeMap<Inode, Kept>) -> Tree {
        let (mut files, mut folders) = (self.files.clone(), self.folders.clone());
        let pending = self.pending(moment);
        for (i, change) in self.changes[..moment].iter().enumerate() {
            let place = pending.get(&change.of()).and_then(|pending| pending.binary_search(&i).ok());
            let torn = match (place, kept.get(&change.of())) {
                (None, _) | (_, None) => false,
                (Some(place), Some(kept)) if place < kept.changes => kept.torn && place + 1 == kept.changes,
                _ => continue, // lost
            };
            apply(change, torn, &mut files, &mut folders);
        }
        let mut tree = Tree::new();
        gather("", ROOT, &files, &folders, &mut tree);
        tree
    }

    /// The disk in its final state.
    pub fn end(&self) -> Tree {
        let moment = self.changes.len();
        let all = self.pending(moment);
        let kept = all.iter().map(|(inode, changes)| (*inode, Kept { changes: changes.len(), torn: false }));
        self.tree(moment, &kept.collect())
    }
}

fn apply(
    change: &Change,
    torn: bool,
    files: &mut HashMap<Inode, Vec<u8>>,
    folders: &mut HashMap<Inode, BTreeMap<String, Inode>>,
) {
    match change {
        Change::Write { file, at, bytes } => {
            let bytes = if torn { &bytes[..bytes.len() / 2] } else { &bytes[..] };
            let contents = files.entry(*file).or_default();
            contents.resize(contents.len().max(at + bytes.len()), 0);
            contents[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        Change::Truncate { file, length } => files.entry(*file).or_default().resize(*length, 0),
        Change::Link { folder, name, inode } => {
            folders.entry(*folder).or_default().insert(name.clone(), *inode);
        }
        Change::Unlink { folder, name } => _ = folders.entry(*folder).or_default().remove(name),
        Change::Rename { folder, from, to } => {
            let entries = folders.entry(*folder).or_default();
            if let Some(inode) = entries.remove(from) {
                entries.insert(to.clone(), inode);
            }
        }
        Change::Exchange { folder, a, b } => {
            let entries = folders.entry(*folder).or_default();
            if let (Some(first), Some(second)) = (entries.remove(a), entries.remove(b)) {
                entries.extend([(a.clone(), second), (b.clone(), first)]);
            }
        }
        Change::Sync(_) => {}
    }
}

fn gather(
    path: &str,
    folder: Inode,
    files: &HashMap<Inode, Vec<u8>>,
    folders: &HashMap<Inode, BTreeMap<String, Inode>>,
    tree: &mut Tree,
) {
    for (name, inode) in folders.get(&folder).into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        if let Some(contents) = files.get(inode) {
            tree.insert(path, Some(contents.clone()));
        } else {
            gather(&path, *inode, files, folders, tree);
            tree.insert(path, None);
        }
    }
}

/// Writes the tree as a folder.
pub fn write(tree: &Tree, place: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(place);
    let failed = |e: std::io::Error| format!("{}: {e}", place.display());
    fs::create_dir_all(place).map_err(failed)?;
    for (path, contents) in tree {
        match contents {
            None => fs::create_dir_all(place.join(path)).map_err(failed)?,
            Some(contents) => {
                let path = place.join(path);
                fs::create_dir_all(path.parent().unwrap_or(place)).map_err(failed)?;
                fs::write(&path, contents).map_err(failed)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is written, synced and renamed: before the folder is synced, there is the old file, both
    /// names or the new one, but never half of the new one.
    #[test]
    fn a_synced_file_is_whole_under_its_new_name() {
        let name = String::from;
        let mut history = History::default();
        history.files.insert(1, b"old".to_vec());
        history.folders.insert(ROOT, BTreeMap::from([(name("x"), 1)]));
        history.files.insert(2, Vec::new());
        history.changes = vec![
            Change::Link { folder: ROOT, name: name("x.tmp"), inode: 2 },
            Change::Write { file: 2, at: 0, bytes: b"new!".to_vec() },
            Change::Sync(2),
            Change::Rename { folder: ROOT, from: name("x.tmp"), to: name("x") },
            Change::Sync(ROOT),
        ];
        let contents = |tree: &Tree| tree.get("x").cloned().flatten().unwrap_or_default();
        let states = history.states();
        assert!(states.iter().all(|tree| [b"old".to_vec(), b"new!".to_vec()].contains(&contents(tree))));
        let found: BTreeSet<Option<Vec<u8>>> =
            states.iter().filter_map(|tree| tree.get("x.tmp").cloned()).collect();
        assert!(found.contains(&Some(Vec::new())) && found.contains(&Some(b"ne".to_vec())));
        assert_eq!(contents(&history.end()), b"new!");
        // Without the sync of the file, the new name may be empty.
        history.changes.remove(2);
        assert!(history.states().iter().any(|tree| contents(tree).is_empty()));
    }
}

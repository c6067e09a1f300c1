//! The changes that a program makes to a folder, from its system calls.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use super::disk::{Change, History, Inode, ROOT};

/// Calls that change files. Those that the model does not support are traced in order to be refused.
const CALLS: &str = "trace=open,openat,creat,write,pwrite64,writev,pwritev,lseek,ftruncate,truncate,close,dup,dup2,dup3,\
    fcntl,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,\
    copy_file_range,sendfile,fallocate,sync,syncfs,sync_file_range";

/// Runs a command under strace, and returns the history of a folder.
pub fn record(command: &Command, place: &Path, log: &Path) -> Result<History, String> {
    let place = place.canonicalize().map_err(|e| format!("{}: {e}", place.display()))?;
    let mut recorder = Recorder::new(&place)?;
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-y", "-xx", "-s", "100000000", "-e", CALLS, "-e", "signal=none", "-o"])
        .arg(log);
    strace.arg(command.get_program()).args(command.get_args());
    strace.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    strace.current_dir(command.get_current_dir().unwrap_or(&place));
    let output = strace.output().map_err(|e| format!("strace: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{strace:?}: {}: {said}", output.status));
    }
    let text = fs::read(log).map_err(|e| format!("{}: {e}", log.display()))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut unfinished: HashMap<&str, String> = HashMap::new();
    for line in text.lines() {
        let (process, call) = line.trim_start().split_once(char::is_whitespace).unwrap_or((line, ""));
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            // Another thread may get the number of a descriptor before the call that closes it returns.
            if begun.starts_with("close(") {
                recorder.call(&format!("{begun}) = 0"))?;
            } else {
                unfinished.insert(process, begun.to_owned());
            }
        } else if call.starts_with("<... ") {
            let rest = call.split_once(" resumed>").map_or("", |(_, rest)| rest);
            // The result of a call that was interrupted in the log stands in a column of its own.
            if let (Some(begun), Some((rest, result))) = (unfinished.remove(process), rest.rsplit_once(" = "))
            {
                recorder.call(&format!("{begun}{} = {result}", rest.trim_end()))?;
            }
        } else {
            recorder.call(call)?;
        }
    }
    Ok(recorder.history)
}

/// An open file.
struct Open {
    inode: Inode,
    at: usize,
    append: bool,
}

struct Recorder {
    place: PathBuf,
    history: History,
    /// The disk as the program sees it.
    lengths: HashMap<Inode, usize>,
    folders: HashMap<Inode, BTreeMap<String, Inode>>,
    open: HashMap<u32, Open>,
    next: Inode,
}

impl Recorder {
    fn new(place: &Path) -> Result<Self, String> {
        let mut recorder = Recorder {
            place: place.to_path_buf(),
            history: History::default(),
            lengths: HashMap::new(),
            folders: HashMap::new(),
            open: HashMap::new(),
            next: ROOT + 1,
        };
        recorder.take_in(place, ROOT).map_err(|e| format!("{}: {e}", place.display()))?;
        recorder.history.folders = recorder.folders.clone();
        Ok(recorder)
    }

    fn take_in(&mut self, folder: &Path, inode: Inode) -> std::io::Result<()> {
        self.folders.insert(inode, BTreeMap::new());
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let child = self.new_inode();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.folders.entry(inode).or_default().insert(name, child);
            if path.is_dir() {
                self.take_in(&path, child)?;
            } else {
                let contents = fs::read(&path)?;
                self.lengths.insert(child, contents.len());
                self.history.files.insert(child, contents);
            }
        }
        Ok(())
    }

    fn new_inode(&mut self) -> Inode {
        self.next += 1;
        self.next - 1
    }

    /// One complete call with its result.
    fn call(&mut self, text: &str) -> Result<(), String> {
        let Some((name, rest)) = text.split_once('(') else { return Ok(()) };
        let Some((arguments, result)) = rest.rsplit_once(") = ") else { return Ok(()) };
        let result = result.split(['<', ' ']).next().unwrap_or_default();
        let Ok(result) = result.parse::<i64>() else { return Ok(()) };
        if result < 0 {
            return Ok(());
        }
        let arguments = split(arguments);
        let unknown = || format!("power: no model of {}", text.chars().take(300).collect::<String>());
        let text_of = |i: usize| arguments.get(i).map(|argument| quoted(argument)).ok_or_else(unknown);
        match name {
            "open" | "creat" | "openat" => {
                let at = usize::from(name == "openat");
                let path = self.path(arguments.first().filter(|_| at == 1), &text_of(at)?);
                let flags = if name == "creat" { "O_CREAT|O_TRUNC" } else { arguments[at + 1].as_str() };
                self.opened(&path, flags, result as u32);
            }
            "write" => {
                if let Some(file) = self.open.get_mut(&descriptor(&arguments[0])) {
                    let mut bytes = quoted(&arguments[1]);
                    bytes.truncate(result as usize);
                    let length = self.lengths.entry(file.inode).or_default();
                    let at = if file.append { *length } else { file.at };
                    file.at = at + bytes.len();
                    *length = (*length).max(file.at);
                    self.history.changes.push(Change::Write { file: file.inode, at, bytes });
                }
            }
            "lseek" => {
                if let Some(file) = self.open.get_mut(&descriptor(&arguments[0])) {
                    file.at = result as usize;
                }
            }
            "ftruncate" => {
                if let Some(file) = self.open.get(&descriptor(&arguments[0])) {
                    let length = arguments[1].trim().parse().map_err(|_| unknown())?;
                    self.lengths.insert(file.inode, length);
                    self.history.changes.push(Change::Truncate { file: file.inode, length });
                }
            }
            "fsync" | "fdatasync" => {
                if let Some(file) = self.open.get(&descriptor(&arguments[0])) {
                    self.history.changes.push(Change::Sync(file.inode));
                }
            }
            "close" => _ = self.open.remove(&descriptor(&arguments[0])),
            "mkdir" | "mkdirat" => {
                let at = usize::from(name == "mkdirat");
                let path = self.path(arguments.first().filter(|_| at == 1), &text_of(at)?);
                if let Some((folder, name)) = self.entry(&path) {
                    let inode = self.new_inode();
                    self.folders.insert(inode, BTreeMap::new());
                    self.history.folders.insert(inode, BTreeMap::new());
                    self.link(folder, name, inode);
                }
            }
            "unlink" | "rmdir" | "unlinkat" => {
                let at = usize::from(name == "unlinkat");
                let path = self.path(arguments.first().filter(|_| at == 1), &text_of(at)?);
                if let Some((folder, name)) = self.entry(&path) {
                    self.folders.entry(folder).or_default().remove(&name);
                    self.history.changes.push(Change::Unlink { folder, name });
                }
            }
            "rename" | "renameat" | "renameat2" => {
                let at = if name == "rename" { [0, 1] } else { [1, 3] };
                let base = |i: usize| arguments.get(i).filter(|_| name != "rename");
                let paths = [self.path(base(0), &text_of(at[0])?), self.path(base(2), &text_of(at[1])?)];
                let flags = arguments.get(4).map_or("", String::as_str);
                match [self.entry(&paths[0]), self.entry(&paths[1])] {
                    [None, None] => {}
                    [Some((folder, from)), Some((other, to))] if folder == other => {
                        self.renamed(folder, from, to, flags.contains("EXCHANGE"));
                    }
                    _ => return Err(unknown()),
                }
            }
            // Irrelevant on descriptors that are not ours.
            "dup" | "dup2" | "dup3" | "fcntl" | "pwrite64" | "writev" | "pwritev" | "copy_file_range"
            | "sendfile" | "fallocate" | "sync_file_range" => {
                let copies =
                    name.starts_with("dup") || arguments.get(1).is_some_and(|a| a.contains("F_DUPFD"));
                let ours =
                    arguments.iter().any(|a| a.contains('<') && self.open.contains_key(&descriptor(a)));
                if ours && (copies || name != "fcntl") {
                    return Err(unknown());
                }
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn opened(&mut self, path: &Path, flags: &str, descriptor: u32) {
        self.open.remove(&descriptor);
        let inode = match self.find(path) {
            Some(inode) => inode,
            None => {
                let Some((folder, name)) = self.entry(path).filter(|_| flags.contains("O_CREAT")) else {
                    return;
                };
                let inode = self.new_inode();
                self.lengths.insert(inode, 0);
                self.history.files.insert(inode, Vec::new());
                self.link(folder, name, inode);
                inode
            }
        };
        if flags.contains("O_TRUNC") && self.lengths.get(&inode).is_some_and(|&length| length > 0) {
            self.lengths.insert(inode, 0);
            self.history.changes.push(Change::Truncate { file: inode, length: 0 });
        }
        self.open.insert(descriptor, Open { inode, at: 0, append: flags.contains("O_APPEND") });
    }

    fn link(&mut self, folder: Inode, name: String, inode: Inode) {
        self.folders.entry(folder).or_default().insert(name.clone(), inode);
        self.history.changes.push(Change::Link { folder, name, inode });
    }

    fn renamed(&mut self, folder: Inode, from: String, to: String, exchange: bool) {
        let entries = self.folders.entry(folder).or_default();
        let Some(inode) = entries.remove(&from) else { return };
        if exchange && let Some(other) = entries.insert(to.clone(), inode) {
            entries.insert(from.clone(), other);
            self.history.changes.push(Change::Exchange { folder, a: from, b: to });
        } else {
            entries.insert(to.clone(), inode);
            self.history.changes.push(Change::Rename { folder, from, to });
        }
    }

    /// An absolute path; `base` is a descriptor with the path of its folder.
    fn path(&self, base: Option<&String>, path: &[u8]) -> PathBuf {
        let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
        if path.is_absolute() {
            return path;
        }
        let of_base = base.and_then(|base| base.split_once('<')?.1.strip_suffix('>'));
        let base = of_base.map(|text| String::from_utf8_lossy(&unescape(text)).into_owned());
        base.map_or_else(|| self.place.clone(), PathBuf::from).join(path)
    }

    /// The folder and name of a path inside the place.
    fn entry(&self, path: &Path) -> Option<(Inode, String)> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((self.find(path.parent()?)?, name))
    }

    fn find(&self, path: &Path) -> Option<Inode> {
        let mut inode = ROOT;
        for part in path.strip_prefix(&self.place).ok()?.components() {
            if let Component::Normal(name) = part {
                inode = *self.folders.get(&inode)?.get(name.to_string_lossy().as_ref())?;
            }
        }
        Some(inode)
    }
}

fn descriptor(argument: &str) -> u32 {
    argument.trim().split('<').next().and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

/// Splits arguments at commas outside quotes and brackets.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quoted) = (vec![String::new()], 0, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted, // quotes within are \x22
            '[' | '{' | '<' if !quoted => depth += 1,
            ']' | '}' | '>' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            ' ' if !quoted && parts.last().is_some_and(String::is_empty) => continue,
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

fn quoted(argument: &str) -> Vec<u8> {
    let inside = argument.split_once('"').map_or("", |(_, rest)| rest);
    unescape(inside.split('"').next().unwrap_or_default())
}

/// Bytes of `\x61\x62`.
fn unescape(text: &str) -> Vec<u8> {
    if !text.contains("\\x") {
        return text.as_bytes().to_vec();
    }
    text.split("\\x").skip(1).filter_map(|digits| u8::from_str_radix(digits.get(..2)?, 16).ok()).collect()
}

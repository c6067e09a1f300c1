//! `album setup xla`: a PJRT plugin, installed from a Python package or given as a file, and tested before it
//! counts as ready.

use crate::error::Error;
use crate::setup::failure;
use album_base::cache;
use album_envs::python;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// A Python package, by its short name.
    Package(&'static str),
    /// An existing library.
    Library(PathBuf),
}

/// Short name, pip requirement, and the library inside. The versions match the interface that album is bound
/// to.
const PACKAGES: [[&str; 3]; 4] = [
    ["cpu", "xla-cpu-pjrt==0.0.1", "xla_cpu_pjrt.so"],
    ["cuda12", "jax-cuda12-plugin[with-cuda]==0.8.1", "xla_cuda_plugin.so"],
    ["cuda13", "jax-cuda13-plugin[with-cuda]==0.8.1", "xla_cuda_plugin.so"],
    ["tpu", "libtpu==0.0.30", "libtpu.so"],
];

impl std::str::FromStr for Plugin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some([name, ..]) = PACKAGES.iter().find(|[name, ..]| *name == text) {
            return Ok(Plugin::Package(name));
        }
        let path = Path::new(text);
        if path.is_file() {
            return std::path::absolute(path).map(Plugin::Library).map_err(|e| format!("{text}: {e}"));
        }
        Err(format!("`{text}` is neither cpu, cuda12, cuda13 or tpu nor the file of a library"))
    }
}

/// A working plugin.
#[derive(Debug, Serialize)]
pub struct XlaInstallation {
    /// The library.
    pub library: PathBuf,
    /// Its devices in order: `--device xla:N` is device N.
    pub devices: Vec<String>,
}

impl fmt::Display for XlaInstallation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.devices.iter().enumerate() {
            writeln!(f, "xla:{i}  {name}")?;
        }
        write!(f, "from {}", self.library.display())
    }
}

/// Installs a plugin with pip, or takes an existing library; tests it in a separate `album` process, which
/// gets the library as its last argument; and makes it the plugin of `--device xla`.
pub fn xla(
    plugin: &Plugin,
    python: &Path,
    album: &mut Command,
    say: &mut dyn FnMut(&str),
) -> Result<XlaInstallation, Error> {
    let library = match plugin {
        Plugin::Library(path) => path.clone(),
        Plugin::Package(name) => fetched(name, python, say)?,
    };
    say(&format!("trying {}", library.display()));
    let output = album.arg(&library).stdin(Stdio::null()).output().map_err(Error::io(&library))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(0) => {}
        Some(3) => return Err(Error::Config(said.trim_start_matches("error: ").to_owned())),
        Some(_) => return Err(Error::Tool(said.trim_start_matches("error: ").to_owned())),
        None => {
            return Err(Error::Tool(format!(
                "{}: the plugin ended the process that tried it ({}); does it suit this machine? {said}",
                library.display(),
                output.status
            )));
        }
    }
    let devices: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    album_xla::choose(&library).map_err(Error::io(&library))?;
    Ok(XlaInstallation { library, devices })
}

fn fetched(name: &str, python: &Path, say: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
    let Some([_, package, library]) = PACKAGES.iter().find(|package| package[0] == name) else {
        return Err(Error::Usage(format!("there is no plugin `{name}`")));
    };
    let folder = cache::folder()?.join(format!("xla-{name}"));
    python::set_up_from(python, &folder, &format!("{package}\n"), say).map_err(failure)?;
    find(&folder, library).ok_or_else(|| {
        Error::Tool(format!(
            "{}: {package} has no file {library}; expected the plugin there",
            folder.display()
        ))
    })
}

/// Finds a file by name in a folder or below it.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in folder.read_dir().ok()?.flatten() {
            if entry.file_name() == name {
                return Some(entry.path());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    None
}

//! Errors of plugins and devices.

use std::path::PathBuf;

/// Why a device cannot be used, or why it failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum XlaError {
    /// No plugin is set up.
    #[error(
        "no XLA plugin is set up: `album setup xla` fetches one, or {} names the library of one",
        crate::PLUGIN
    )]
    NoPlugin,
    /// The file is not a library that this machine can load.
    #[error("{}: not a library that can be loaded here: {reason}", .path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// The loader's message.
        reason: String,
    },
    /// The library is not a PJRT plugin.
    #[error("{}: not a PJRT plugin: {reason}", .path.display())]
    NotAPlugin {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        reason: String,
    },
    /// The plugin implements an incompatible version of PJRT.
    #[error("{}: a plugin of PJRT {}.{}; this program speaks {}.{}", .path.display(), .found.0, .found.1, .expected.0, .expected.1)]
    Version {
        /// The file.
        path: PathBuf,
        /// The plugin's version.
        found: (i32, i32),
        /// The version we support.
        expected: (i32, i32),
    },
    /// The plugin has no device of this index.
    #[error("there is no device xla:{index}; the plugin has {}", devices(*.count))]
    Device {
        /// The index that was asked for.
        index: usize,
        /// How many devices there are.
        count: usize,
    },
    /// The device has too little memory.
    #[error("the device is out of memory while {doing}: {message}")]
    OutOfMemory {
        /// What was being done.
        doing: &'static str,
        /// The plugin's message.
        message: String,
    },
    /// The dataset does not fit into the device's memory.
    #[error(
        "the data takes {needed} on the device, which has {free} free; without --device-data only batches are copied to it"
    )]
    Room {
        /// The memory it needs.
        needed: String,
        /// The memory that is free.
        free: String,
    },
    /// The plugin failed to compile a program.
    #[error("the plugin does not compile this step ({message}); the program was saved to {} for a report", .program.display())]
    Compile {
        /// The plugin's message.
        message: String,
        /// Where the program was saved.
        program: PathBuf,
    },
    /// Any other error of the plugin.
    #[error("the XLA plugin failed while {doing}: {message} (code {code})")]
    Plugin {
        /// What was being done.
        doing: &'static str,
        /// The plugin's error code.
        code: i32,
        /// The plugin's message.
        message: String,
    },
    /// The step cannot be turned into a program.
    #[error("this step cannot run on a device: {0}")]
    Unsupported(String),
}

fn devices(count: usize) -> String {
    match count {
        0 => "none".to_owned(),
        1 => "one, xla:0".to_owned(),
        _ => format!("{count}, xla:0 to xla:{}", count - 1),
    }
}

//! What can go wrong with a device.

use std::path::PathBuf;

/// Why a device cannot be used, or failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum XlaError {
    /// No plugin is set up.
    #[error(
        "no XLA plugin is set up: `album setup xla` fetches one, or {} names the library of one",
        crate::PLUGIN
    )]
    NoPlugin,
    /// A file that cannot be loaded.
    #[error("{}: not a library that can be loaded here: {reason}", .path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What the loader says.
        reason: String,
    },
    /// A library that is something else.
    #[error("{}: not a PJRT plugin: {reason}", .path.display())]
    NotAPlugin {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        reason: String,
    },
    /// A plugin of another interface.
    #[error("{}: a plugin of PJRT {}.{}; this program speaks {}.{}", .path.display(), .found.0, .found.1, .expected.0, .expected.1)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: (i32, i32),
        /// Ours.
        expected: (i32, i32),
    },
    /// A device that does not exist.
    #[error("there is no device xla:{index}; the plugin has {}", devices(*.count))]
    Device {
        /// What was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The device has too little memory.
    #[error("the device is out of memory while {doing}: {message}")]
    OutOfMemory {
        /// What was under way.
        doing: &'static str,
        /// What the plugin says.
        message: String,
    },
    /// A dataset that is larger than the device.
    #[error(
        "the data takes {needed} on the device, which has {there} left; without --device-data only batches go there"
    )]
    Room {
        /// What it takes.
        needed: String,
        /// What there is.
        there: String,
    },
    /// A program that the plugin does not compile.
    #[error("the plugin does not compile this step ({message}); the program was saved to {} for a report", .program.display())]
    Compile {
        /// What the plugin says.
        message: String,
        /// Where the program is.
        program: PathBuf,
    },
    /// Anything else that the plugin says.
    #[error("the XLA plugin failed while {doing}: {message} (code {code})")]
    Plugin {
        /// What was under way.
        doing: &'static str,
        /// The plugin's code.
        code: i32,
        /// What the plugin says.
        message: String,
    },
    /// A step that no program can be made of.
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

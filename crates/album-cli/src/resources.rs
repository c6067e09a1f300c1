//! Options shared by all commands that train or evaluate.

use album::together::Accelerator;
use album::{Error as Failure, Resources};
use album_xla::DeviceName;
use std::path::PathBuf;

/// The resources of a command; results do not depend on them.
#[derive(clap::Args)]
pub struct ResourceArgs {
    /// Worker threads; results do not depend on how many (0: all processors)
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Worker processes for Python environments; results do not depend on how many (0: all processors)
    #[arg(long, default_value_t = 0)]
    pub workers: usize,
    /// A Python with ogbench installed [default: $ALBUM_PYTHON, else the one made by `album setup ogbench`]
    #[arg(long)]
    pub python: Option<PathBuf>,
}

impl ResourceArgs {
    /// The options as the library takes them.
    pub fn get(&self) -> Resources {
        Resources { threads: self.threads, workers: self.workers, python: self.python.clone() }
    }
}

/// Where training happens.
#[derive(clap::Args)]
pub struct DeviceArgs {
    /// Train on a device of the plugin that `album setup xla` fetched: xla, or xla:N [default: the processor]
    #[arg(long, value_name = "xla[:N]")]
    device: Option<DeviceName>,
    /// Keep the data on the device too: an update then sends only row indices; no result changes
    #[arg(long, requires = "device")]
    device_data: bool,
}

impl DeviceArgs {
    /// Opens the device, if one was named.
    pub fn open(&self) -> Result<Option<Accelerator>, Failure> {
        Accelerator::open(self.device, self.device_data)
    }
}

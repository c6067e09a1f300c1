//! Finds the plugin and opens one of its devices.

use crate::hlo::{Hlo, Shape};
use crate::{Device, XlaError};
use album_base::{atomic, cache};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The environment variable with the path of the plugin's library.
pub const PLUGIN: &str = "ALBUM_XLA_PLUGIN";

/// The file in the cache folder that holds the path if the variable is not set.
const CHOSEN: &str = "xla-plugin.txt";

/// The plugin's library: the one that [`PLUGIN`] names, or else the one recorded by [`choose`].
pub fn plugin() -> Result<PathBuf, XlaError> {
    if let Some(path) = std::env::var_os(PLUGIN).filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let file = cache::folder().map_err(|_| XlaError::NoPlugin)?.join(CHOSEN);
    let path = std::fs::read_to_string(file).map_err(|_| XlaError::NoPlugin)?;
    Ok(PathBuf::from(path.trim_end_matches('\n')))
}

/// Records this library as the plugin for later commands.
pub fn choose(library: &Path) -> std::io::Result<()> {
    let folder = cache::folder().map_err(std::io::Error::other)?;
    std::fs::create_dir_all(&folder)?;
    atomic::write(&folder.join(CHOSEN), format!("{}\n", library.display()).as_bytes())
}

/// A device by its index in the plugin's list: `xla`, `xla:0`, `xla:1`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceName(pub usize);

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = match text.strip_prefix("xla") {
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix(':').and_then(|number| number.parse().ok()),
            None => None,
        };
        number.map(DeviceName).ok_or_else(|| format!("there is no device `{text}`; expected xla or xla:N"))
    }
}

impl std::fmt::Display for DeviceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "xla:{}", self.0)
    }
}

impl DeviceName {
    /// Opens the device.
    pub fn open(self) -> Result<Device, XlaError> {
        let mut devices = Device::all(&plugin()?)?;
        let count = devices.len();
        if self.0 >= count {
            return Err(XlaError::Device { index: self.0, count });
        }
        Ok(devices.swap_remove(self.0))
    }
}

/// Runs a small program on every device of a plugin and returns the names of the devices. A plugin that does
/// not fit the machine may abort the process.
pub fn try_out(library: &Path) -> Result<Vec<String>, XlaError> {
    let devices = Device::all(library)?;
    for device in &devices {
        let mut hlo = Hlo::default();
        let x = hlo.argument(Shape::new(&[2, 2]));
        let square = hlo.dot(x, x, 0, (1, 0));
        let executable = device.compile(&hlo.finish(&[(x, None)], &[square]))?;
        let results = executable.run(&[&device.upload(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?])?;
        let mut found = [0.0; 4];
        results.iter().try_for_each(|result| result.download(&mut found))?;
        if found != [7.0, 10.0, 15.0, 22.0] {
            let message = format!("a product of small integers is {found:?}; expected 7, 10, 15, 22");
            return Err(XlaError::Plugin { doing: "trying it out", code: 0, message });
        }
    }
    Ok(devices.iter().map(|device| device.name().to_owned()).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_numbers() {
        assert_eq!("xla".parse(), Ok(DeviceName(0)));
        assert_eq!("xla:3".parse(), Ok(DeviceName(3)));
        assert_eq!(DeviceName(3).to_string(), "xla:3");
        for wrong in ["xla:", "xla:-1", "xla3", "cuda", "xla:1 ", ""] {
            let error = wrong.parse::<DeviceName>().unwrap_err();
            assert!(error.contains("expected xla or xla:N"), "{error}");
        }
    }
}

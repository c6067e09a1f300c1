//! Tests that need a plugin, and tests of files that are not plugins.

mod fuzz;
mod group;
mod update;

use crate::hlo::{Hlo, Shape};
use crate::{Device, XlaError};
use std::path::Path;
use std::sync::OnceLock;

/// The first device of the plugin that the environment names.
pub(crate) fn device() -> Option<&'static Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    let open = || {
        let plugin = std::env::var_os(crate::PLUGIN)?;
        Some(Device::all(Path::new(&plugin)).unwrap().remove(0))
    };
    let device = DEVICE.get_or_init(open).as_ref();
    if device.is_none() {
        album_testing::skip("xla", "ALBUM_XLA_PLUGIN does not name a plugin");
    }
    device
}

/// `x + y` of vectors of three, where the sum reuses the buffer of `x`.
fn sum() -> String {
    let mut hlo = Hlo::default();
    let shape = Shape::new(&[3]);
    let (x, y) = (hlo.argument(shape), hlo.argument(shape));
    let sum = hlo.add(x, y);
    hlo.finish(&[(x, Some(0)), (y, None)], &[sum])
}

#[test]
fn a_program_runs_and_updates_its_argument_in_place() {
    let Some(device) = device() else { return };
    let executable = device.compile(&sum()).unwrap();
    let y = device.upload(&[1.0, 10.0, -1.5], &[3]).unwrap();
    let mut x = device.upload(&[0.5, 0.25, f32::MAX], &[3]).unwrap();
    for _ in 0..4 {
        x = executable.run(&[&x, &y]).unwrap().remove(0);
    }
    let mut found = [0.0; 3];
    x.download(&mut found).unwrap();
    assert_eq!(found, [4.5, 40.25, f32::MAX]);
    assert!(!device.name().is_empty() && !device.version().unwrap().is_empty());
    // Only some devices report their memory; compiled programs always do.
    assert!(device.memory().is_none_or(|memory| memory.peak.is_none_or(|peak| peak >= memory.in_use)));
    assert!(executable.peak_memory().is_some_and(|bytes| bytes >= 24), "{:?}", executable.peak_memory());
}

#[test]
fn a_buffer_that_was_reused_is_refused() {
    let Some(device) = device() else { return };
    let executable = device.compile(&sum()).unwrap();
    let [x, y] = [1.0, 2.0].map(|x| device.upload(&[x; 3], &[3]).unwrap());
    let _sum = executable.run(&[&x, &y]).unwrap();
    let again = executable.run(&[&x, &y]).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(again.contains("running a step") || x.download(&mut [0.0; 3]).is_err(), "{again}");
}

#[test]
fn a_program_that_makes_no_sense_fails_with_the_plugins_words() {
    let Some(device) = device() else { return };
    let Err(error) = device.compile("module { nonsense }") else { panic!("it compiled") };
    assert!(matches!(&error, XlaError::Plugin { message, .. } if !message.is_empty()), "{error}");
}

#[test]
fn what_is_no_plugin_is_refused() {
    let missing = Device::all(Path::new("/does/not/exist.so")).unwrap_err();
    assert!(matches!(missing, XlaError::Load { .. }), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.so");
    std::fs::write(&text, "not a library").unwrap();
    let error = Device::all(&text).unwrap_err().to_string();
    assert!(error.contains("not a library that can be loaded here"), "{error}");
    // A library that is not a plugin.
    let other = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"];
    if let Some(other) = other.iter().map(Path::new).find(|path| path.exists()) {
        let error = Device::all(other).unwrap_err().to_string();
        assert!(error.contains("not a PJRT plugin: it has no function GetPjrtApi"), "{error}");
    }
}

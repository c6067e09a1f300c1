//! A run directory from a stranger: configuration and checkpoint, as far as an agent that acts.

#![no_main]

use std::sync::LazyLock;

use album::Trained;
use album_fuzz::{Folder, base};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<Folder> =
    LazyLock::new(|| Folder::of(base::run_directory("iql")).only(&["config.toml", "manifest.json"]));

fuzz_target!(|input: &[u8]| {
    FOLDER.with(input, |root, _| {
        let _ = Trained::open(root, None, &base::resources());
    });
});

//! A folder of NumPy arrays as a log.

#![no_main]

use std::sync::LazyLock;

use album_data::Source;
use album_fuzz::{Folder, base};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<Folder> = LazyLock::new(|| base::arrays());

fuzz_target!(|input: &[u8]| {
    FOLDER.with(input, |root, _| {
        let _ = Source::of(root).read();
    });
});

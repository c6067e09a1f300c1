//! Imported columns, mapped into memory.

#![no_main]

use std::sync::LazyLock;

use album_data::Source;
use album_fuzz::{Folder, base};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<Folder> = LazyLock::new(|| base::columns());

fuzz_target!(|input: &[u8]| {
    FOLDER.with(input, |root, _| {
        if let Ok(data) = Source::of(root).read() {
            // Pages of the map are touched.
            let _ = data.dataset.content_hash();
        }
        let _ = album_data::columns::verify(root);
    });
});

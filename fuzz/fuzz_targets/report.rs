//! What a run wrote, read back and drawn.

#![no_main]

use std::sync::LazyLock;

use album_fuzz::{Folder, base};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    let mut folder = Folder::of(base::run_directory("album"));
    folder.files.retain(|(path, _)| {
        path.parent() == Some(&folder.root) && path.extension().is_some_and(|e| e != "html" && e != "lock")
    });
    folder
});

fuzz_target!(|input: &[u8]| {
    FOLDER.with(input, |root, _| {
        let _ = album::report::write(root);
    });
});

//! Minari's folders, in both forms.

#![no_main]

use std::sync::LazyLock;

use album_data::Source;
use album_fuzz::{Folder, base};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<Folder> = LazyLock::new(|| base::golden_folder("minari/album"));

fuzz_target!(|input: &[u8]| {
    FOLDER.with(input, |root, path| {
        let dataset = path.strip_prefix(root).ok().and_then(|path| path.iter().next());
        let _ = Source::of(root.join(dataset.unwrap_or_default())).read();
    });
});

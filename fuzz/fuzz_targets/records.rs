//! The records of a run: logs, evaluations, result.

#![no_main]

use std::sync::LazyLock;

use album_fuzz::{Folder, base};
use album_train::Records;
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    let names = ["config.toml", "result.json", "train.csv", "eval.csv", "episodes.jsonl", "value_maps.jsonl"];
    Folder::of(base::run_directory("album")).only(&names)
});

fuzz_target!(|input: &[u8]| {
    FOLDER.with(input, |root, _| {
        if let Ok(records) = Records::read(root) {
            for name in records.train.names() {
                let _ = records.train.series(name);
            }
        }
    });
});

//! The five arrays of `album solve`.

#![no_main]

use album_fuzz::{file, run};
use album_tabular::TabularDataset;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    run(|| {
        if let Ok(data) = TabularDataset::read_npz(&file("x.npz", input)) {
            assert_eq!(data.trajectory_ends().len(), data.len());
            let _ = data.unmarked_ends();
        }
    });
});

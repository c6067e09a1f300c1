//! An archive of NumPy arrays: plain, as a recording, as a log.

#![no_main]

use album_data::{Labels, Npz, Source, load};
use album_fuzz::{file, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let path = file("x.npz", input);
    run(|| {
        if let Ok(mut npz) = Npz::open(&path) {
            for name in npz.names().to_vec() {
                let _ = npz.read(&name);
            }
            let _ = load(&path, Labels::Own);
            let _ = Source::of(&path).read();
        }
    });
});

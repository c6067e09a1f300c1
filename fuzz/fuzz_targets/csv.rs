//! A text table as a log, plain or compressed.

#![no_main]

use album_data::Source;
use album_fuzz::{file, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    run(|| {
        let _ = Source::of(file("x.csv", input)).read();
    });
});

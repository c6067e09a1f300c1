//! `result.json` of a run: what is read can be written and read again.

#![no_main]

use album_fuzz::{file, run, scratch};
use album_train::Records;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    file("result.json", input);
    run(|| {
        let _ = Records::result_of(scratch());
    });
});

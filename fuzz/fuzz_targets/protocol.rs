//! What a worker process sends.

#![no_main]

use album_fuzz::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    run(|| {
        let _ = album_envs::python::count_messages(input);
    });
});

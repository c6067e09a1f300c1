//! The configuration of a run, resolved and as a file of options.

#![no_main]

use album::config::read;
use album_fuzz::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    album_fuzz::scratch();
    run(|| {
        let Ok(config) = read(text, "x.toml") else { return };
        let _ = config.setup();
        let _ = config.violated_boundedness();
        let _ = config.to_toml();
    });
});

//! An experiment file from a stranger, as far as its list of runs.

#![no_main]

use album_experiments::{Experiment, Scale};
use album_fuzz::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    run(|| {
        let Ok(experiment) = Experiment::parse("x", text, "x.toml") else { return };
        for scale in [Scale::Small, Scale::Paper] {
            let _ = experiment.run_count(scale);
        }
    });
});

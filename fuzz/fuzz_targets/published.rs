//! A table of published numbers.

#![no_main]

use album_experiments::published;
use album_fuzz::run;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    run(|| {
        if let Ok(rows) = published::parse("x", text) {
            for row in &rows {
                let _ = (row.settings().count(), row.is_score());
            }
        }
    });
});

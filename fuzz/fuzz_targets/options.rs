//! A TOML file for `--config` with a pair for `--set` in its first line.

#![no_main]

use album::{Overrides, config};
use album_fuzz::{file, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (pair, text) = text.split_once('\n').unwrap_or((text, ""));
    let set = if pair.is_empty() { vec![] } else { vec![pair.to_owned()] };
    let overrides = Overrides { file: Some(file("x.toml", text.as_bytes())), set, ..Overrides::default() };
    run(|| {
        let _ = config::resolve(&overrides);
    });
});

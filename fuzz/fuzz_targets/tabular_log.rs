//! A labelled table of `album solve`, in every form of a table.

#![no_main]

use album_data::table::Table;
use album_fuzz::{file, run};
use album_tabular::log::{Log, LogColumns};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let name = match input {
        [b'P', b'A', b'R', b'1', ..] => "x.parquet",
        [b'P', b'K', ..] => "x.npz",
        _ => "x.csv",
    };
    let path = file(name, input);
    let columns = LogColumns {
        state: vec!["state".into()],
        action: "action".into(),
        reward: "reward".into(),
        episode: "episode".into(),
        terminal: Some("terminal".into()),
        ..LogColumns::default()
    };
    run(|| {
        if let Ok(table) = Table::open(&[&path]) {
            let _ = Log::read(&table, &columns);
        }
    });
});

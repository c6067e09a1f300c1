//! Reads a log into memory, or imports it into a folder: the work that `benches/own_data/import_speed.py` compares with
//! that of pandas, pyarrow and h5py.
//!
//! `cargo run --release -p album-data --example read_log -- FILE [FOLDER]`
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use album_data::Source;
use album_data::columns::import_source;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let start = Instant::now();
    let transitions = match &arguments[..] {
        [file] => Source::of(file).read()?.dataset.len(),
        [file, folder] => {
            let imported = import_source(&Source::of(file), Path::new(folder), true, &mut |_| true)?;
            imported.map_or(0, |(imported, _)| imported.transitions)
        }
        _ => return Err("usage: read_log FILE [FOLDER]".into()),
    };
    println!("{transitions} transitions in {:.3} s", start.elapsed().as_secs_f64());
    Ok(())
}

#![allow(clippy::all, clippy::print_stdout, clippy::unwrap_used, missing_docs)]
use album_tabular::theory::*;
use std::time::Instant;
fn main() {
    for name in NAMES {
        let t = Instant::now();
        let e = Effort { seeds: 8, size: 100, instances: 200, progress: &|_, _| {} };
        for c in verify(name, &e).unwrap() {
            println!(
                "{} {:12} {:100} {:.3e}  {}",
                if c.passed { "ok  " } else { "FAIL" },
                c.name,
                c.statement,
                c.measured,
                c.bound
            );
        }
        println!("{name} {:?}", t.elapsed());
    }
}

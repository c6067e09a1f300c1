//! Files of every format that lost their end or some bytes, or ask for more than they hold: an error or other numbers,
//! never a panic, never much memory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use album_base::rng;
use album_data::{DataError, Ends, Format, Source};
use rand::RngExt;

const FILES: [(&str, Format); 10] = [
    ("log.npz", Format::Npz),
    ("states.npz", Format::Npz),
    ("d4rl.hdf5", Format::D4rl),
    ("narrow.hdf5", Format::D4rl),
    ("robomimic.hdf5", Format::Robomimic),
    ("minari/album/hdf5-v0/data/main_data.hdf5", Format::Minari),
    ("log.parquet", Format::Parquet),
    ("lists.parquet", Format::Parquet),
    ("log.csv.gz", Format::Csv),
    ("log.csv", Format::Csv),
];

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Reads whatever it is; the time is bounded.
fn read(path: &Path, format: Format, what: &str) -> bool {
    let ends = (format == Format::Robomimic).then_some(Ends::Terminal);
    let start = Instant::now();
    let read = || Source { ends, format: Some(format), ..Source::of(path) }.read().is_ok();
    let result = std::panic::catch_unwind(read);
    assert!(start.elapsed() < Duration::from_secs(20), "{what}: {:?}", start.elapsed());
    result.unwrap_or_else(|_| panic!("{what} panicked"))
}

/// Peak memory of this process in bytes, where the system tells it.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}

#[test]
fn prefixes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in FILES {
        let (bytes, path) = (std::fs::read(golden(name)).unwrap(), dir.path().join("part"));
        std::fs::write(&path, &bytes).unwrap();
        assert!(read(&path, format, name), "{name}");
        let step = (bytes.len() / 60).max(1);
        for length in (0..bytes.len()).step_by(step) {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let what = format!("{length} of {} bytes of {name}", bytes.len());
            let complete = read(&path, format, &what);
            // A text that ends with a line is a shorter text.
            assert!(!complete || name == "log.csv", "{what}");
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    let before = peak();
    let mut random = rng::stream(14, "damage");
    for (name, format) in FILES {
        let (bytes, path) = (std::fs::read(golden(name)).unwrap(), dir.path().join("changed"));
        for round in 0..80 {
            let mut changed = bytes.clone();
            for _ in 0..1 + round % 4 {
                let at = random.random_range(0..changed.len());
                changed[at] = match round % 3 {
                    0 => random.random(),
                    1 => 0xff,
                    _ => changed[at] ^ (1 << random.random_range(0..8u8)),
                };
            }
            std::fs::write(&path, &changed).unwrap();
            read(&path, format, &format!("round {round} of {name}"));
        }
    }
    let grown = peak().saturating_sub(before);
    assert!(grown < 600 << 20, "{grown} bytes");
}

fn refusal(path: &Path) -> DataError {
    Source::of(path).read().unwrap_err()
}

#[test]
fn claims_are_held_against_limits() {
    // 6.4 GB of zeros in a few kilobytes, and groups without end.
    let error = refusal(&golden("bomb.hdf5"));
    assert!(matches!(error, DataError::Limit { .. }), "{error}");
    let error = refusal(&golden("deep.hdf5"));
    assert!(error.to_string().contains("the depth of groups is 9, but the limit is 8"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.csv");
    let names: Vec<String> = (0..1_000_000).map(|i| format!("c{i}")).collect();
    let numbers = vec!["0"; 1_000_000];
    std::fs::write(&path, format!("{}\n{}\n", names.join(","), numbers.join(","))).unwrap();
    let error = refusal(&path);
    assert!(error.to_string().contains("the number of columns is 1000000"), "{error}");
}

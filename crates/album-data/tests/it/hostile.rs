//! Files that must be refused, each with the error that it deserves, at once
//! and without taking memory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use album_data::{Array, DataError, Limits, Npz, read_npy};
use common::*;

/// The kinds of [`DataError`] without their fields.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ErrorKind {
    Io,
    WrongFile,
    DamagedArchive,
    EntryName,
    DuplicateName,
    Overlap,
    Encrypted,
    Compression,
    Limit,
    Header,
    Dtype,
    Length,
    DamagedData,
    Checksum,
    Missing,
    WrongType,
    Value,
    Other,
}
use ErrorKind::*;

fn kind(error: &DataError) -> ErrorKind {
    match error {
        DataError::Io { .. } => Io,
        DataError::WrongFileKind { .. } => WrongFile,
        DataError::DamagedArchive { .. } => DamagedArchive,
        DataError::EntryName { .. } => EntryName,
        DataError::DuplicateName { .. } => DuplicateName,
        DataError::Overlap { .. } => Overlap,
        DataError::Encrypted { .. } => Encrypted,
        DataError::Compression { .. } => Compression,
        DataError::Limit { .. } => Limit,
        DataError::Header { .. } => Header,
        DataError::Dtype { .. } => Dtype,
        DataError::Length { .. } => Length,
        DataError::DamagedData { .. } => DamagedData,
        DataError::Checksum { .. } => Checksum,
        DataError::Missing { .. } => Missing,
        DataError::WrongType { .. } => WrongType,
        DataError::Value { .. } => Value,
        _ => Other,
    }
}

/// A file, the error it deserves, and words that the message must contain.
struct Case {
    bytes: Vec<u8>,
    kind: ErrorKind,
    words: &'static str,
}

fn case(bytes: Vec<u8>, kind: ErrorKind, words: &'static str) -> Case {
    Case { bytes, kind, words }
}

fn read_all(path: &Path) -> Result<Vec<Array>, DataError> {
    let mut npz = Npz::open(path)?;
    let names = npz.names().to_vec();
    names.iter().map(|name| npz.read(name)).collect()
}

/// Checks that each file is refused as it should be, in time and within memory.
fn check(cases: Vec<Case>, read: impl Fn(&Path) -> Result<(), DataError>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hostile.file");
    let memory = peak_memory();
    for Case { bytes, kind: expected, words } in cases {
        std::fs::write(&path, &bytes).unwrap();
        let timed = || {
            let start = Instant::now();
            (read(&path).expect_err(words), start.elapsed())
        };
        let (error, mut elapsed) = timed();
        // A busy machine may be slow once, a slow reader is slow always.
        for _ in 0..3 {
            if elapsed > Duration::from_millis(100) {
                elapsed = timed().1;
            }
        }
        let message = error.to_string();
        assert_eq!(kind(&error), expected, "{message}");
        assert!(message.contains(words), "`{words}` is not in: {message}");
        assert!(message.contains("hostile.file"), "no file in: {message}");
        assert!(message.len() < 700, "{message}");
        assert!(!message.contains(char::is_control), "{message:?}");
        assert!(elapsed < Duration::from_millis(100), "{elapsed:?}: {message}");
    }
    if let (Some(before), Some(after)) = (memory, peak_memory()) {
        // The kernel counts in portions for each thread, so that the peak may even seem to fall.
        let taken = after.saturating_sub(before);
        assert!(taken < 64 << 10, "took {taken} kB");
    }
}

/// Held by every test from its first line: memory is measured for the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most memory this process ever had, in kB, as Linux tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn check_npz(cases: Vec<Case>) {
    check(cases, |path| read_all(path).map(|_| ()));
}

#[test]
fn honest_files_are_read() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("honest.npz");
    let honest = [plain("a.npy", &three()), deflated("b.npy", &three())];
    std::fs::write(&path, archive(&honest)).unwrap();
    assert_eq!(read_all(&path).unwrap().len(), 2);

    // A writer that cannot seek leaves checksum and sizes to the table.
    let mut piped = deflated("a.npy", &three());
    piped.flags = 8;
    piped.local_crc = Some(0);
    piped.local_size = Some(0);
    std::fs::write(&path, archive(&[piped])).unwrap();
    assert_eq!(read_all(&path).unwrap().len(), 1);

    // Sizes and end record of large archives.
    let content = three();
    let mut large = plain("a.npy", &content);
    large.extra = vec![1, 0, 16, 0];
    large.extra.extend((content.len() as u64).to_le_bytes());
    large.extra.extend((content.len() as u64).to_le_bytes());
    (large.size, large.compressed) = (u32::MAX, u32::MAX);
    let bytes = archive_with(&[large], |end| {
        let at = u64::from(end.table_start + end.table_size);
        end.before = end_64(1, end.table_size.into(), end.table_start.into(), at);
        (end.here, end.total) = (u16::MAX, u16::MAX);
        (end.table_size, end.table_start) = (u32::MAX, u32::MAX);
    });
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(read_all(&path).unwrap()[0].shape, [3]);

    // No array at all.
    std::fs::write(&path, archive(&[])).unwrap();
    assert!(read_all(&path).unwrap().is_empty());
}

#[test]
fn other_files() {
    let _alone = alone();
    let honest = archive(&[plain("a.npy", &three())]);
    let appended = [honest.as_slice(), b"more"].concat();
    let prepended = [b"#!/bin/sh\n", honest.as_slice()].concat();
    check_npz(vec![
        case(vec![], WrongFile, "found an empty file"),
        case(b"\x80\x04\x95\x10".to_vec(), WrongFile, "a Python pickle, which album never"),
        case(three(), WrongFile, "a single .npy array"),
        case(b"\x89HDF\r\n\x1a\n".to_vec(), WrongFile, "an HDF5 file"),
        case(b"\x1f\x8b\x08".to_vec(), WrongFile, "a gzip file"),
        case(b"{\"a\": 1}\x1b[2J".to_vec(), WrongFile, "a file that starts with"),
        case(b"PK\x03\x04".to_vec(), DamagedArchive, "cut off"),
        case([b'P', b'K', 3, 4].repeat(50), DamagedArchive, "cut off"),
        case(honest[..honest.len() - 1].to_vec(), DamagedArchive, "cut off"),
        case(appended, DamagedArchive, "something was appended"),
        case(prepended, WrongFile, "a file that starts with `#!/bin`"),
    ]);
}

#[test]
fn lying_end_records() {
    let _alone = alone();
    let one = [plain("a.npy", &three())];
    let with = |change: &dyn Fn(&mut End)| archive_with(&one, change);
    let with_64 = |entries: u64, size: u64, shift: u64| {
        archive_with(&one, |end| {
            let at = u64::from(end.table_start + end.table_size);
            end.before = end_64(entries, size, end.table_start.into(), at + shift);
            (end.here, end.total, end.table_size) = (u16::MAX, u16::MAX, u32::MAX);
        })
    };
    let table = u64::from(46u32 + 5);
    check_npz(vec![
        case(with(&|end| end.comment = b"hi".to_vec()), DamagedArchive, "appended"),
        case(with(&|end| end.disk = 1), DamagedArchive, "multi-part"),
        case(with(&|end| end.here = 0), DamagedArchive, "multi-part"),
        case(with(&|end| end.table_start += 1), DamagedArchive, "expected it to end at"),
        case(with(&|end| end.table_start = u32::MAX), DamagedArchive, "expected it to end at"),
        case(with(&|end| end.table_size -= 1), DamagedArchive, "expected it to end at"),
        case(with(&|end| (end.here, end.total) = (2, 2)), DamagedArchive, "claims 2 entries"),
        case(with(&|end| (end.here, end.total) = (0, 0)), DamagedArchive, "are left after"),
        case(with(&|end| end.before = vec![0; 9]), DamagedArchive, "expected it to end at"),
        case(with_64(1, table, 1), DamagedArchive, "zip64 end record"),
        case(with_64(1, u64::MAX, 0), DamagedArchive, "expected it to end at"),
        case(with_64(1 << 60, table, 0), DamagedArchive, "entries in a table"),
        case(with(&|end| end.before = end_64(1, 0, 0, 0)[56..].to_vec()), DamagedArchive, "zip64 end record"),
        case(
            with(&|end| {
                let at = u64::from(end.table_start + end.table_size);
                end.before = end_64(2, end.table_size.into(), end.table_start.into(), at);
            }),
            DamagedArchive,
            "contradict each other",
        ),
    ]);
}

#[test]
fn lying_tables() {
    let _alone = alone();
    let changed = |change: &dyn Fn(&mut Entry)| {
        let mut entry = plain("a.npy", &three());
        change(&mut entry);
        archive(&[plain("first.npy", &three()), entry])
    };
    let inflating = |change: &dyn Fn(&mut Entry)| {
        let mut entry = deflated("a.npy", &three());
        change(&mut entry);
        archive(&[entry])
    };
    let many: Vec<Entry> = (0..1025).map(|i| plain(&format!("{i}.npy"), b"")).collect();
    let wide: Vec<Entry> = (0..20)
        .map(|i| Entry {
            extra: [vec![9, 9, 0xfb, 0xff], vec![0; 0xfffb]].concat(),
            ..plain(&format!("{i}.npy"), &three())
        })
        .collect();
    check_npz(vec![
        case(archive(&many), Limit, "the number of arrays is 1025, but the limit is 1024"),
        case(archive(&wide), Limit, "table of contents in bytes"),
        case(changed(&|e| e.table_signature = 7), DamagedArchive, "malformed"),
        case(changed(&|e| e.extra = vec![1, 0, 9, 0]), DamagedArchive, "malformed"),
        case(changed(&|e| e.extra = vec![1]), DamagedArchive, "malformed"),
        // All ones without the extra field that should hold the number.
        case(changed(&|e| e.size = u32::MAX), DamagedArchive, "malformed"),
        case(changed(&|e| e.flags = 1), Encrypted, "array `a`: the entry is encrypted"),
        case(changed(&|e| e.flags = 1 << 6), Encrypted, "encrypted"),
        case(changed(&|e| e.flags = 1 << 13), Encrypted, "encrypted"),
        case(changed(&|e| e.method = 9), Compression, "method 9"),
        case(changed(&|e| e.method = 12), Compression, "method 12"),
        case(changed(&|e| e.method = 93), Compression, "method 93"),
        case(changed(&|e| e.method = 99), Compression, "method 99"),
        case(
            changed(&|e| {
                e.size = u32::MAX;
                e.extra = vec![1, 0, 8, 0];
                e.extra.extend((1u64 << 40).to_le_bytes());
            }),
            Limit,
            "the size in bytes is 1099511627776",
        ),
        case(inflating(&|e| e.size = 300 << 20), Limit, "the ratio of inflated"),
        case(changed(&|e| e.size += 1), DamagedArchive, "is not compressed, yet"),
        case(changed(&|e| e.local_signature = 7), DamagedArchive, "local header is missing"),
        case(changed(&|e| e.local_name = Some(b"b.npy".to_vec())), DamagedArchive, "contradicts the table"),
        case(changed(&|e| e.local_name = Some(b"a.npyx".to_vec())), DamagedArchive, "contradicts the table"),
        case(changed(&|e| e.local_crc = Some(0)), DamagedArchive, "contradicts the table"),
        case(changed(&|e| e.local_method = Some(8)), DamagedArchive, "contradicts the table"),
        case(changed(&|e| e.local_size = Some(1)), DamagedArchive, "contradicts the table"),
        case(changed(&|e| e.header_offset = Some(1)), DamagedArchive, "header is missing"),
        case(changed(&|e| e.header_offset = Some(u32::MAX - 1)), DamagedArchive, "beyond the end"),
        case(changed(&|e| (e.size, e.compressed) = (9999, 9999)), DamagedArchive, "beyond the end"),
    ]);
}

#[test]
fn bad_names() {
    let _alone = alone();
    let named = |name: &[u8]| {
        let mut entry = plain("", &three());
        entry.name = name.to_vec();
        archive(&[entry])
    };
    let long = [b"x".repeat(60_000), b".txt".to_vec()].concat();
    check_npz(vec![
        case(named(b"../a.npy"), EntryName, "contains `..`"),
        case(named(b"..\\a.npy"), EntryName, "contains `..`"),
        case(named(b"/etc/a.npy"), EntryName, "is an absolute path"),
        case(named(b"\\a.npy"), EntryName, "is an absolute path"),
        case(named(b"C:a.npy"), EntryName, "is an absolute path"),
        case(named(b"dir/a.npy"), EntryName, "is in a directory"),
        case(named(b"dir\\a.npy"), EntryName, "is in a directory"),
        case(named(b"dir/"), EntryName, "is in a directory"),
        case(named(b"a\0.npy"), EntryName, "contains a control character"),
        case(named(b"\x1b[2Ja.npy"), EntryName, "contains a control character"),
        case(named(b"a\xff.npy"), EntryName, "is not UTF-8"),
        case(named(b"a.txt"), EntryName, "`a.txt` does not end in .npy"),
        case(named(b"inner.npz"), EntryName, "does not end in .npy"),
        case(named(b"a.pkl"), EntryName, "does not end in .npy"),
        case(named(b".npy"), EntryName, "is empty"),
        case(named(b""), EntryName, "is empty"),
        case(named(&long), EntryName, "does not end in .npy"),
        case(
            archive(&[plain("a.npy", &three()), plain("a.npy", &three())]),
            DuplicateName,
            "array `a`: the archive holds this name twice",
        ),
    ]);
}

#[test]
fn overlapping_entries() {
    let _alone = alone();
    // The second entry lies within the first one's data.
    let inner = plain("b.npy", &three());
    let outer = plain("a.npy", &npy("'|u1'", "False", "(99,)", &local(&inner)));
    let inside = outer.stored.len() - local(&inner).len();
    let within = Entry { header_offset: Some((30 + 5 + inside) as u32), ..inner.clone() };
    let same = Entry { header_offset: Some(0), ..plain("a.npy", &three()) };
    // Data that goes on into the table of contents.
    let mut greedy = deflated("a.npy", &three());
    greedy.compressed += 10;
    check_npz(vec![
        case(archive(&[outer, within]), Overlap, "array `a`: its bytes overlap array `b`"),
        case(archive(&[same.clone(), same]), DuplicateName, "twice"),
        case(archive(&[greedy]), Overlap, "overlap the table of contents"),
    ]);
}

#[test]
fn damaged_data() {
    let _alone = alone();
    let content = three();
    let changed = |entry: Entry, change: &dyn Fn(&mut Entry)| {
        let mut entry = entry;
        change(&mut entry);
        archive(&[entry])
    };
    let stored = || plain("a.npy", &content);
    let packed = || deflated("a.npy", &content);
    let swap = |e: &mut Entry, bytes: Vec<u8>| {
        e.compressed = bytes.len() as u32;
        e.stored = bytes;
    };
    let last = content.len() - 1;
    check_npz(vec![
        case(changed(stored(), &|e| e.stored[last] ^= 1), Checksum, "array `a`: CRC-32"),
        case(changed(stored(), &|e| e.crc ^= 1), Checksum, "CRC-32"),
        case(changed(packed(), &|e| e.crc ^= 1), Checksum, "CRC-32"),
        case(changed(packed(), &|e| swap(e, vec![0xff; 40])), DamagedData, "damaged compressed"),
        case(changed(packed(), &|e| swap(e, e.stored[..20].to_vec())), DamagedData, "incomplete"),
        case(
            changed(packed(), &|e| swap(e, e.stored[..e.stored.len() - 4].to_vec())),
            DamagedData,
            "incomplete",
        ),
        case(changed(packed(), &|e| swap(e, deflate(&content[..last]))), Length, "found 23 bytes"),
        case(
            changed(packed(), &|e| swap(e, [e.stored.clone(), vec![0; 3]].concat())),
            DamagedData,
            "bytes follow the end of the compressed stream",
        ),
        case(
            changed(packed(), &|e| {
                swap(e, deflate(&[content.clone(), vec![0]].concat()));
            }),
            DamagedData,
            "more bytes than the table",
        ),
        case(changed(packed(), &|e| swap(e, vec![])), DamagedData, "incomplete"),
        case(changed(packed(), &|e| e.size = 7), Header, "ends within the header"),
        case(changed(packed(), &|e| e.size -= 1), Length, "found 23 bytes, expected 24"),
        case(changed(packed(), &|e| e.size = 1 << 20), Length, "expected 24 for shape [3]"),
    ]);
}

/// Array files, which are refused alone as well as in archives.
fn bad_arrays() -> Vec<Case> {
    let v1 = |header: &str| npy_raw((1, 0), header.as_bytes(), &[0; 24]);
    let shaped = |shape: &str| npy("'<i8'", "False", shape, &[0; 24]);
    let typed = |descr: &str| npy(descr, "False", "(3,)", &[0; 24]);
    let mut endless = three();
    endless[6] = 2;
    endless.splice(8..10, u32::MAX.to_le_bytes());
    let axes = "1, ".repeat(65);
    let ones = "9".repeat(30);
    let code = "{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (3,)}";
    vec![
        case(b"\x93NUMPX\x01\x00".to_vec(), WrongFile, "starts with `\\x93NUMPX`"),
        case(b"\x93NUM".to_vec(), WrongFile, "starts with `\\x93NUM`"),
        case(b"\x80\x04\x95\x10\0\0\0\0\0".to_vec(), WrongFile, "pickle"),
        case(npy_raw((0, 0), b"", b""), Header, "format version 0.0"),
        case(npy_raw((1, 1), b"", b""), Header, "format version 1.1"),
        case(npy_raw((4, 0), b"", b""), Header, "format version 4.0, expected 1.0, 2.0 or 3.0"),
        case(endless, Limit, "npy header in bytes is 4294967295, but the limit is 10000"),
        case(v1(&" ".repeat(10_001)), Limit, "is 10001, but the limit is 10000"),
        case(three()[..9].to_vec(), Header, "ends within the header"),
        case(three()[..40].to_vec(), Header, "ends within the header"),
        case(v1(""), Header, "found its end, expected `{`"),
        case(v1("[1, 2]"), Header, "expected `{`"),
        case(v1("{"), Header, "found its end, expected a quoted string"),
        case(v1("{'descr': '<i8'"), Header, "expected `,` or `}`"),
        case(v1("{'descr': '<i8"), Header, "closed string"),
        case(v1("{'descr' '<i8'}"), Header, "expected `:`"),
        case(v1("{'descr': '<i\\x38', }"), Header, "without escapes"),
        case(v1("{'fortran_order': False, 'shape': (3,)}"), Header, "`descr` is missing"),
        case(v1("{'descr': '<i8', 'shape': (3,)}"), Header, "`fortran_order` is missing"),
        case(v1("{'descr': '<i8', 'fortran_order': False}"), Header, "`shape` is missing"),
        case(v1("{'descr': '<i8', 'descr': '<i8'}"), Header, "`descr` appears twice"),
        case(v1("{'desc': '<i8'}"), Header, "unknown key `desc`"),
        case(
            v1("{'descr': '<i8', 'fortran_order': False, 'shape': (3,)} + x"),
            Header,
            "found `+` behind the dictionary",
        ),
        case(v1(code), Header, "expected a quoted string"),
        case(npy("'<i8'", "0", "(3,)", &[0; 24]), Header, "expected `True` or `False`"),
        case(shaped("3"), Header, "expected `(`"),
        case(shaped("(3)"), Header, "expected `,`"),
        case(shaped("(-3,)"), Header, "a whole number"),
        case(shaped("(3.0,)"), Header, "expected `,`"),
        case(shaped("(03,)"), Header, "a whole number"),
        case(shaped("(3 3,)"), Header, "expected `,`"),
        case(shaped("(,)"), Header, "a whole number"),
        case(shaped(&format!("({ones},)")), Header, "beyond 64 bits"),
        case(shaped("(4294967296, 4294967296)"), Header, "more elements than any memory"),
        case(shaped("(2305843009213693952,)"), Header, "more elements than any memory"),
        case(shaped("(1099511627776,)"), Length, "found 24 bytes, expected 8796093022208"),
        case(shaped(&format!("({axes})")), Limit, "the number of axes is 65"),
        case(shaped("(2,)"), Length, "found 24 bytes, expected 16 for shape [2]"),
        case(shaped("(4,)"), Length, "found 24 bytes, expected 32 for shape [4]"),
        case(shaped("(0, 18446744073709551615)"), Length, "expected 0"),
        case(three()[..three().len() - 1].to_vec(), Length, "found 23 bytes"),
        case([three(), vec![0]].concat(), Length, "found 25 bytes"),
        case(typed("'|O'"), Dtype, "dtype |O holds Python objects (a pickle), which album never"),
        case(typed("'O'"), Dtype, "Python objects"),
        case(typed("[('x', '<f8'), ('y', '<f8')]"), Dtype, "is structured"),
        case(typed("('<f8', (2,))"), Dtype, "is structured"),
        case(typed("'<U5'"), Dtype, "holds text"),
        case(typed("'|S5'"), Dtype, "holds text"),
        case(typed("'<c16'"), Dtype, "complex"),
        case(typed("'<f2'"), Dtype, ".astype(np.float32)"),
        case(typed("'<f16'"), Dtype, "extended precision"),
        case(typed("'>f8'"), Dtype, "is big-endian"),
        case(typed("'>i4'"), Dtype, "is big-endian"),
        case(typed("'|i8'"), Dtype, "no byte order"),
        case(typed("'<M8[ns]'"), Dtype, "dates or times"),
        case(typed("'<m8[s]'"), Dtype, "dates or times"),
        case(typed("'|V8'"), Dtype, "raw bytes"),
        case(typed("'<q9'"), Dtype, "is unknown"),
        case(typed("''"), Dtype, "is unknown"),
        case(typed(&format!("'{}'", "\x1b".repeat(300))), Dtype, "is unknown"),
        case(npy("'|b1'", "False", "(3,)", &[0, 1, 2]), Value, "row 2: found byte 2 in a bool"),
        case(npy("'|b1'", "True", "(2, 2)", &[0, 9, 1, 1]), Value, "row 1, column 0: found byte 9"),
    ]
}

#[test]
fn bad_arrays_in_archives() {
    let _alone = alone();
    let packed = |entry: fn(&str, &[u8]) -> Entry| {
        bad_arrays()
            .into_iter()
            .map(|one| Case { bytes: archive(&[entry("actions.npy", &one.bytes)]), ..one })
            .collect()
    };
    check_npz(packed(plain));
    check_npz(packed(deflated));
}

#[test]
fn bad_array_files() {
    let _alone = alone();
    let mut cases = bad_arrays();
    cases.push(case(vec![], WrongFile, "an empty file"));
    cases.push(case(archive(&[]), WrongFile, "a zip archive (.npz)"));
    check(cases, |path| read_npy(path).map(|_| ()));
}

#[test]
fn unfit_values() {
    let _alone = alone();
    let file = |content: &[u8]| archive(&[plain("terminals.npy", content)]);
    let flags = npy("'|u1'", "False", "(4,)", &[0, 1, 2, 1]);
    let floats = npy("'<f8'", "False", "(1,)", &1f64.to_le_bytes());
    check(
        vec![
            case(file(&flags), Value, "array `terminals`: row 2: found 2, expected 0 or 1"),
            case(file(&floats), WrongType, "found dtype float64, expected bool"),
        ],
        |path| Npz::open(path)?.read("terminals")?.into_bools().map(|_| ()),
    );
    let large = npy("'<u8'", "False", "(2,)", &[[0; 8], [0xff; 8]].concat());
    check(
        vec![
            case(file(&large), Value, "row 1: found 18446744073709551615, expected at most"),
            case(file(&floats), WrongType, "found dtype float64, expected an integer type"),
        ],
        |path| Npz::open(path)?.read("terminals")?.into_integers().map(|_| ()),
    );
    check(
        vec![case(file(&large), Missing, "array `actions`: not in the archive, which holds `ter")],
        |path| Npz::open(path)?.read("actions").map(|_| ()),
    );
}

#[test]
fn own_limits() {
    let _alone = alone();
    let zeros = npy("'|u1'", "False", "(99,)", &[0; 99]);
    let bytes = || archive(&[deflated("a.npy", &zeros), plain("b.npy", &three())]);
    let with = |limits: Limits, words| {
        check(vec![case(bytes(), Limit, words)], |path| {
            let mut npz = Npz::open_with(path, &limits)?;
            npz.read("a").map(|_| ())
        });
    };
    let default = Limits::default;
    with(Limits { max_entries: 1, ..default() }, "number of arrays is 2");
    with(Limits { max_directory_bytes: 50, ..default() }, "table of contents");
    with(Limits { max_header_bytes: 20, ..default() }, "npy header");
    with(Limits { max_rank: 0, ..default() }, "number of axes is 1");
    with(Limits { max_array_bytes: 30, ..default() }, "array `a`: the size in bytes");
    with(Limits { max_total_bytes: 150, ..default() }, "size of all arrays");
    with(Limits { max_ratio: 1, ratio_free_bytes: 9, ..default() }, "ratio");
}

#[test]
fn not_files() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(kind(&Npz::open(dir.path()).unwrap_err()), WrongFile);
    assert_eq!(kind(&read_npy(dir.path()).unwrap_err()), WrongFile);
    let missing = dir.path().join("missing.npz");
    let error = Npz::open(&missing).unwrap_err();
    assert_eq!(kind(&error), Io);
    assert!(error.to_string().contains("missing.npz"), "{error}");
}

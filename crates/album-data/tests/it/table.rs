//! Tables: what is read, what is refused, and files that are damaged on purpose.

use album_data::table::{ColumnData, ColumnType, Lists, Table, TableWriter, Text};
use album_data::{DataError, Limits};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn file(dir: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn text(codes: &[u32], categories: &[&str]) -> ColumnData {
    let categories = Arc::new(categories.iter().map(|label| label.to_string()).collect());
    ColumnData::Text(Text { codes: codes.to_vec(), categories })
}

fn columns() -> Vec<(String, ColumnData)> {
    let named = |name: &str, data| (name.to_owned(), data);
    vec![
        named("who", text(&[0, 1, 0, 2, 2], &["b", "ä, \"quoted\"", ""])),
        named("count", ColumnData::Int(vec![3, -1, i64::MAX, 0, 7])),
        named("reward", ColumnData::Float(vec![0.1, -1e300, 0.0, 5e-324, 2.5])),
        named("done", ColumnData::Bool(vec![false, true, false, false, true])),
        named("small", ColumnData::Float32(vec![0.1, 1.0, 2.0, 3.0, 4.0])),
        named("list", ColumnData::List(Lists { width: 2, values: (0u8..10).map(f32::from).collect() })),
    ]
}

fn write(path: &Path, columns: &[(String, ColumnData)]) {
    TableWriter::write(path, columns).unwrap().commit().unwrap();
}

fn names(columns: &[(String, ColumnData)]) -> Vec<&str> {
    columns.iter().map(|(name, _)| name.as_str()).collect()
}

fn message(result: Result<impl std::fmt::Debug, DataError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn parquet_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let columns = columns();
    write(&path, &columns);
    let table = Table::open(&[&path]).unwrap();
    assert_eq!(
        (table.rows(), table.names()),
        (5, names(&columns).as_slice().iter().map(|n| n.to_string()).collect::<Vec<_>>().as_slice())
    );
    assert_eq!(table.kinds()[5], ColumnType::List);
    for (found, (name, expected)) in table.read(&names(&columns)).unwrap().iter().zip(&columns) {
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn csv_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let columns = &columns()[..4];
    write(&path, columns);
    let found = Table::open(&[&path]).unwrap().read(&names(columns)).unwrap();
    for (found, (name, expected)) in found.iter().zip(columns) {
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn npz_arrays_are_columns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.npz");
    let columns = &columns()[1..];
    write(&path, columns);
    let table = Table::open(&[&path]).unwrap();
    assert_eq!(table.rows(), 5);
    for (found, (name, expected)) in table.read(&names(columns)).unwrap().iter().zip(columns) {
        assert_eq!(found, expected, "{name}");
    }
    let mut rows = 0;
    table
        .visit(&["list", "count"], 2, |part| {
            assert_eq!(part.first, rows);
            rows += part.columns[1].len();
            assert!(part.columns.iter().all(|column| column.len() <= 2));
            Ok::<_, DataError>(())
        })
        .unwrap();
    assert_eq!(rows, 5);
    let mut npz = album_data::NpzWriter::create(&path).unwrap();
    npz.array_i64("a", &[2], &[1, 2]).unwrap();
    npz.array_i64("b", &[3], &[1, 2, 3]).unwrap();
    npz.finish().unwrap();
    let error = message(Table::open(&[&path]));
    assert!(error.contains("column `b` has 3 rows, column `a` 2"), "{error}");
}

/// Parts are what a whole read gives, with the same codes, over several files of different formats.
#[test]
fn parts_are_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let n = 50_000;
    let labels: Vec<String> = (0..n).map(|i| format!("s{}", (i * i) % 97)).collect();
    let csv: String = std::iter::once("label,x\n".to_owned())
        .chain(labels.iter().enumerate().map(|(i, label)| format!("{label},{i}\n")))
        .collect();
    let first = file(&dir, "a.csv", &csv);
    let table = Table::open(&[&first]).unwrap();
    let columns = table.read(&["label", "x"]).unwrap();
    let second = dir.path().join("b.parquet");
    write(&second, &[("x".to_owned(), columns[1].clone()), ("label".to_owned(), columns[0].clone())]);

    let both = Table::open(&[&first, &second]).unwrap();
    assert_eq!(both.rows(), 2 * n);
    let whole = both.read(&["label", "x"]).unwrap();
    let (mut codes, mut xs, mut last) = (Vec::new(), Vec::new(), Arc::default());
    both.visit(&["label", "x"], 7_001, |part| {
        assert_eq!(part.first, xs.len());
        let [ColumnData::Text(text), ColumnData::Int(x)] = &part.columns[..] else { panic!() };
        codes.extend(&text.codes);
        xs.extend(x);
        last = Arc::clone(&text.categories);
        Ok::<_, DataError>(())
    })
    .unwrap();
    assert_eq!(whole[0], ColumnData::Text(Text { codes, categories: last }));
    assert_eq!(whole[1], ColumnData::Int(xs));
}

#[test]
fn types_of_csv_columns() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(
        &dir,
        "t.csv",
        "\u{feff}int;float;gap;flag;mixed;id;word;empty\n1;1;1;true;1;12345678901234567890;nan;\n-2;2.5;;False;x;2;inf;\n",
    );
    let table = Table::open(&[path]).unwrap();
    use ColumnType::{Bool, Float, Int, Text};
    assert_eq!(table.kinds(), [Int, Float, Float, Bool, Text, Text, Float, Float]);
    assert_eq!(table.names()[0], "int");
    let columns = table.read(&["gap", "word"]).unwrap();
    let gap = columns[0].numbers().unwrap();
    assert!(gap[0] == 1.0 && gap[1].is_nan());
    assert_eq!(columns[1].numbers().unwrap()[1], f64::INFINITY);
    assert_eq!(table.read(&["mixed"]).unwrap()[0].numbers(), Err(1));
}

#[test]
fn gzip_and_tabs() {
    let dir = tempfile::tempdir().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(b"a\tb\n1\tx,y\n").unwrap();
    let path = file(&dir, "t.csv.gz", gzip.finish().unwrap());
    let columns = Table::open(&[path]).unwrap().read(&["b", "a"]).unwrap();
    assert_eq!(columns, [text(&[0], &["x,y"]), ColumnData::Int(vec![1])]);
}

#[test]
fn refusals_name_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let good = file(&dir, "good.csv", "state,reward\na,1\nb,oops\n");
    let table = Table::open(&[&good]).unwrap();
    let error = message(table.read(&["rewards"]));
    assert!(error.ends_with("good.csv: no column `rewards`; did you mean `reward`?"), "{error}");
    let rewards = &table.read(&["reward"]).unwrap()[0];
    let row = rewards.numbers().unwrap_err();
    let error = table.bad_value("reward", row, rewards.label(row), "a number").to_string();
    assert!(error.ends_with("column `reward`, row 1: found `oops`, expected a number"), "{error}");

    let ragged = file(&dir, "ragged.csv", "a,b\n1,2\n3\n");
    assert!(message(Table::open(&[ragged])).ends_with("line 3 has 1 fields, the first line 2"));
    let twice = file(&dir, "twice.csv", "a,a\n1,2\n");
    assert!(message(Table::open(&[twice])).contains("column `a` is there twice"));
    let other = file(&dir, "other.csv", "state,rewards\na,1\n");
    assert!(message(Table::open(&[&good, &other])).contains("other.csv: no column `reward`"));
    for content in [&b""[..], b"a\0b\n", b"\x89HDF\r\n"] {
        let error = message(Table::open(&[file(&dir, "x.csv", content)]));
        assert!(error.contains("expected a table: Parquet, CSV, gzipped CSV or npz"), "{error}");
    }
    assert!(message(TableWriter::write(&dir.path().join("x.txt"), &[])).contains(".parquet, .csv or .npz"));
}

/// Lines without quotes are parsed in parallel, and from the first quote on record by record: with the same result.
#[test]
fn quotes_may_begin_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let rows = 60_000;
    let line = |row: usize, quoted: bool, end: &str| {
        let label = if quoted { format!("\"n{}\"", row % 7) } else { format!("n{}", row % 7) };
        format!("{row},{label},{}.5{end}", row % 100)
    };
    let text = |quoted: fn(usize) -> bool, end: &str| {
        let lines: String = (0..rows).map(|row| line(row, quoted(row), end)).collect();
        format!("id,name,x{end}{lines}")
    };
    let read = |name: &str, text: String| {
        let table = Table::open(&[file(&dir, name, text)]).unwrap();
        assert_eq!(table.rows(), rows);
        table.read(&["x", "name", "id"]).unwrap()
    };
    let plain = read("plain.csv", text(|_| false, "\n"));
    let ColumnData::Int(ids) = &plain[2] else { panic!("{:?}", plain[2].kind()) };
    assert!(ids.iter().enumerate().all(|(row, &id)| row as i64 == id));
    for (name, quoted) in
        [("first", (|row| row == 0) as fn(usize) -> bool), ("late", |row| row > 50_000), ("all", |_| true)]
    {
        assert_eq!(read(&format!("{name}.csv"), text(quoted, "\n")), plain, "{name}");
        assert_eq!(read(&format!("{name}-windows.csv"), text(quoted, "\r\n")), plain, "{name}, CRLF");
    }
    assert_eq!(read("blank.csv", text(|_| false, "\n\n")), plain);
    assert_eq!(read("returns.csv", text(|_| false, "\r")), plain);

    for (name, quoted) in [("plain", (|_| false) as fn(usize) -> bool), ("quoted", |row| row > 20_000)] {
        let mut lines: Vec<String> = text(quoted, "\n").lines().map(str::to_owned).collect();
        lines[55_000] += ",";
        let error = message(Table::open(&[file(&dir, &format!("{name}.csv"), lines.join("\n"))]));
        assert!(error.contains("line 55001 has 4 fields, the first line 3"), "{name}: {error}");
    }
}

#[test]
fn limits_hold() {
    let dir = tempfile::tempdir().unwrap();
    let wide = file(&dir, "wide.csv", vec!["c"; 1_000_000].join(","));
    assert!(
        message(Table::open(&[wide])).contains("the number of columns is 1000000, but the limit is 16384")
    );
    let limits = Limits { max_row_bytes: 1 << 20, ratio_free_bytes: 1 << 20, ..Limits::default() };
    let quote = format!("a,b\n1,\"{}", "x".repeat(4 << 20));
    let error = message(Table::open_with(&[file(&dir, "quote.csv", quote)], &limits));
    assert!(error.contains("a quote may be left open"), "{error}");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..1 << 12 {
        gzip.write_all(&b"0,0\n".repeat(1 << 10)).unwrap();
    }
    let error = message(Table::open_with(&[file(&dir, "bomb.csv.gz", gzip.finish().unwrap())], &limits));
    assert!(error.contains("inflates to more bytes than the limit"), "{error}");
    let path = dir.path().join("t.parquet");
    write(&path, &columns());
    let limits = Limits { max_array_bytes: 16, ..Limits::default() };
    assert!(message(Table::open_with(&[path], &limits)).contains("the number of rows is 5"));
}

/// Every prefix and every single changed byte gives values or an error, never a panic or an abort.
#[test]
fn damaged_parquet() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let columns = columns();
    write(&path, &columns);
    let good = std::fs::read(&path).unwrap();
    let read = |bytes: &[u8]| {
        let path = file(&dir, "damaged.parquet", bytes);
        Table::open(&[path]).and_then(|table| {
            let names: Vec<&str> = table.names().iter().map(String::as_str).collect();
            table.read(&names)
        })
    };
    for length in (0..good.len()).step_by(29) {
        assert!(read(&good[..length]).is_err(), "{length} of {} bytes", good.len());
    }
    for at in 0..good.len() {
        for change in [0x81, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= change;
            let _ = read(&bad);
        }
    }
}

/// Files that pyarrow 26 wrote: three row groups with zstd and dictionaries; data pages of version 2 with gzip and none.
#[test]
fn files_of_pyarrow() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for name in ["pyarrow-zstd.parquet", "pyarrow-gzip-v2.parquet"] {
        let table = Table::open(&[folder.join(name)]).unwrap();
        let get = |column: &str| table.read(&[column]).unwrap().remove(0);
        assert_eq!(get("text"), text(&[0, 1, 2, 0, 3], &["a", "", "b", "ä"]), "{name}");
        assert_eq!(get("dict"), text(&[0, 1, 0, 0, 1], &["x", "y"]));
        assert_eq!(get("i32"), ColumnData::Int(vec![1, -2, 3, 4, 5]));
        assert_eq!(get("u8"), ColumnData::Int(vec![0, 255, 7, 8, 9]));
        assert_eq!(get("u32"), ColumnData::Int(vec![0, 4_294_967_295, 7, 8, 9]));
        let ColumnData::Float32(narrow) = get("f32") else { panic!() };
        assert!(narrow[0] == 0.5 && narrow[1].is_nan() && narrow[4] == 3.5);
        let ColumnData::Float(wide) = get("f64") else { panic!() };
        assert!(wide[0] == 0.1 && wide[1].is_nan() && wide[2] == -1e300);
        assert_eq!(get("bool"), ColumnData::Bool(vec![true, false, true, true, false]));
        assert_eq!(get("day"), ColumnData::Int(vec![1; 5]));
        let ColumnData::List(lists) = get("list") else { panic!() };
        assert_eq!((lists.width, lists.values.len(), lists.values[3]), (2, 10, 4.0));
        assert!(lists.values[5].is_nan());
        let fixed = Lists { width: 2, values: (1u8..=10).map(f32::from).collect() };
        assert_eq!(get("fixed"), ColumnData::List(fixed));
        assert_eq!(get("struct.pos"), ColumnData::List(Lists { width: 1, values: vec![1.0; 5] }));
        assert_eq!(get("struct.speed"), ColumnData::Float(vec![0.0, 1.0, 2.0, 3.0, 4.0]));
    }
    let decimals = Table::open(&[folder.join("pyarrow-gzip-v2.parquet")]).unwrap();
    assert_eq!(decimals.read(&["decimal"]).unwrap()[0], ColumnData::Float(vec![1.25, -0.5, 3.0, 4.0, 5.0]));
    let bytes = Table::open(&[folder.join("pyarrow-zstd.parquet")]).unwrap();
    assert!(message(bytes.read(&["decimal"])).contains("column `decimal` holds bytes of fixed length"));
}

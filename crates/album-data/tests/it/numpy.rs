//! NumPy's files and ours mean the same to both.
//!
//! Runs where the variable `ALBUM_TEST_PYTHON` names a Python that has NumPy.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;

use std::path::Path;
use std::process::Command;

use album_data::{Array, DType, Data, Npz, NpzWriter, read_npy};
use common::bytes;

/// Writes arrays of every type, order and rank, and what is in them as raw
/// bytes in C order; prints one line for each: file, name, dtype, shape.
const WRITE: &str = r#"
import os, sys
import numpy as np
rng = np.random.default_rng(0)
shapes = [(), (0,), (7,), (3, 5), (5, 1), (0, 4), (2, 3, 4), (2, 1, 3, 2), (2,) * 6]
types = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
arrays = {}
for dtype in types:
    for order in "CF":
        for shape in shapes + [(300, 400)]:
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            bits = rng.bytes(size)
            if dtype == "b1":
                bits = bytes(b & 1 for b in bits)
            array = np.frombuffer(bits, dtype).reshape(shape).copy(order=order)
            name = f"{dtype}_{order}_" + "x".join(map(str, shape))
            arrays[name] = array
arrays["r\u00e9compense"] = np.arange(3)
expected = open("expected.bin", "wb")
def note(file, name, array):
    expected.write(array.tobytes(order="C"))
    shape = ",".join(map(str, array.shape))
    print(f"{file}\t{name}\t{array.dtype.name}\t{shape}")
np.savez("plain.npz", **arrays)
np.savez_compressed("packed.npz", **arrays)
# Through a pipe, a zip file has its sizes behind the data.
read, write = os.pipe()
if os.fork() == 0:
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        np.savez_compressed(pipe, **arrays)
    os._exit(0)
os.close(write)
with os.fdopen(read, "rb") as pipe, open("piped.npz", "wb") as file:
    file.write(pipe.read())
for file in ["plain.npz", "packed.npz", "piped.npz"]:
    for name, array in arrays.items():
        note(file, name, array)
for version in [(1, 0), (2, 0), (3, 0)]:
    for name in ["f4_F_3x5", "i8_C_7", "b1_C_"]:
        file = f"{version[0]}_{name}.npy"
        with open(file, "wb") as out:
            np.lib.format.write_array(out, arrays[name], version=version)
        note(file, "", arrays[name])
refused = {
    "object": np.array([1, "a"], dtype=object),
    "text": np.array(["a", "bc"]),
    "bytes": np.array([b"a", b"bc"]),
    "half": np.zeros(3, np.float16),
    "complex": np.zeros(3, np.complex64),
    "big": np.zeros(3, ">i4"),
    "dates": np.zeros(3, "datetime64[s]"),
    "fields": np.zeros(3, [("x", "f4"), ("y", "f4")]),
    "long": np.zeros(3, np.longdouble),
}
np.savez("refused.npz", **refused)
"#;

/// Loads an archive and prints each array as name, dtype, shape, bytes.
const READ: &str = r#"
import sys
import numpy as np
with np.load(sys.argv[1], allow_pickle=False) as archive:
    for name in archive.files:
        array = archive[name]
        shape = ",".join(map(str, array.shape))
        print(f"{name}\t{array.dtype.name}\t{shape}\t{array.tobytes(order='C').hex()}")
"#;

fn python(directory: &Path, script: &str, arguments: &[&str]) -> Option<String> {
    let Some(interpreter) = std::env::var_os("ALBUM_TEST_PYTHON") else {
        album_testing::skip("python", "ALBUM_TEST_PYTHON names no Python with NumPy");
        return None;
    };
    let output = Command::new(interpreter)
        .arg("-c")
        .arg(script)
        .args(arguments)
        .env("PYTHONIOENCODING", "utf-8")
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn shape_text(array: &Array) -> String {
    let axes: Vec<String> = array.shape.iter().map(usize::to_string).collect();
    axes.join(",")
}

#[test]
fn numpy_arrays_are_read_bit_by_bit() {
    let dir = tempfile::tempdir().unwrap();
    let Some(lines) = python(dir.path(), WRITE, &[]) else {
        return;
    };
    let expected = std::fs::read(dir.path().join("expected.bin")).unwrap();
    let mut rest = expected.as_slice();
    let mut count = 0;
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let path = dir.path().join(fields[0]);
        let array = if fields[0].ends_with(".npz") {
            Npz::open(&path).unwrap().read(fields[1]).unwrap()
        } else {
            read_npy(&path).unwrap()
        };
        assert_eq!(array.dtype().to_string(), fields[2], "{line}");
        assert_eq!(shape_text(&array), fields[3], "{line}");
        let found = bytes(&array.data);
        assert!(rest.starts_with(&found), "{line}");
        rest = &rest[found.len()..];
        count += 1;
    }
    assert!(rest.is_empty());
    assert!(count > 600, "{count}");

    let mut refused = Npz::open(dir.path().join("refused.npz")).unwrap();
    let names = refused.names().to_vec();
    assert_eq!(names.len(), 9);
    for name in names {
        let error = refused.read(&name).unwrap_err();
        assert!(matches!(error, album_data::DataError::Dtype { .. }), "{error}");
        eprintln!("{error}");
    }
}

#[test]
fn our_arrays_are_read_by_numpy() {
    let shapes: [&[usize]; 6] = [&[], &[0], &[7], &[3, 5], &[2, 0], &[2, 3, 4]];
    for compressed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ours.npz");
        let mut writer =
            (if compressed { NpzWriter::create(&path) } else { NpzWriter::create_stored(&path) }).unwrap();
        let mut written = Vec::new();
        for shape in shapes {
            let n = shape.iter().product::<usize>() as u64;
            let bits = || (1..=n).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for data in [
                Data::Bool(bits().map(|x| x & 1 == 0).collect()),
                Data::I8(bits().map(|x| x as i8).collect()),
                Data::I16(bits().map(|x| x as i16).collect()),
                Data::I32(bits().map(|x| x as i32).collect()),
                Data::I64(bits().map(|x| x as i64).collect()),
                Data::U8(bits().map(|x| x as u8).collect()),
                Data::U16(bits().map(|x| x as u16).collect()),
                Data::U32(bits().map(|x| x as u32).collect()),
                Data::U64(bits().collect()),
                Data::F32(bits().map(|x| f32::from_bits(x as u32)).collect()),
                Data::F64(bits().map(f64::from_bits).collect()),
            ] {
                let array = Array::new(shape.to_vec(), data).unwrap();
                let name = format!("{}_{}é", array.dtype(), shape_text(&array));
                writer.array(&name, &array).unwrap();
                let hex = album_base::hex::hex(&bytes(&array.data));
                written.push(format!("{name}\t{}\t{}\t{hex}", array.dtype(), shape_text(&array)));
            }
        }
        writer.finish().unwrap();
        let Some(lines) = python(dir.path(), READ, &["ours.npz"]) else {
            return;
        };
        assert_eq!(lines.lines().collect::<Vec<_>>(), written);
        assert_eq!(written.len(), shapes.len() * DType::ALL.len());
    }
}

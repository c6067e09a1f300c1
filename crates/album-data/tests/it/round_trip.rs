//! What is written is what is read, bit by bit.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;

use album_data::{Array, DType, Data, DataError, Npz, NpzWriter};
use common::bytes;
use proptest::collection::vec;
use proptest::prelude::*;

/// Random bits as an array of some type.
fn array(dtype: DType, shape: Vec<usize>, bits: &[u64]) -> Array {
    let bits = bits.iter().copied();
    let data = match dtype {
        DType::Bool => Data::Bool(bits.map(|x| x & 1 == 1).collect()),
        DType::I8 => Data::I8(bits.map(|x| x as i8).collect()),
        DType::I16 => Data::I16(bits.map(|x| x as i16).collect()),
        DType::I32 => Data::I32(bits.map(|x| x as i32).collect()),
        DType::I64 => Data::I64(bits.map(|x| x as i64).collect()),
        DType::U8 => Data::U8(bits.map(|x| x as u8).collect()),
        DType::U16 => Data::U16(bits.map(|x| x as u16).collect()),
        DType::U32 => Data::U32(bits.map(|x| x as u32).collect()),
        DType::U64 => Data::U64(bits.collect()),
        DType::F32 => Data::F32(bits.map(|x| f32::from_bits(x as u32)).collect()),
        DType::F64 => Data::F64(bits.map(f64::from_bits).collect()),
    };
    Array::new(shape, data).unwrap()
}

fn arrays() -> impl Strategy<Value = Array> {
    let dtype = proptest::sample::select(&DType::ALL[..]);
    let shape = vec(0usize..7, 0..5);
    (dtype, shape).prop_flat_map(|(dtype, shape)| {
        vec(any::<u64>(), shape.iter().product::<usize>())
            .prop_map(move |bits| array(dtype, shape.clone(), &bits))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn archives(list in vec(arrays(), 0..5), compressed: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let mut writer = (if compressed { NpzWriter::create(&path) } else { NpzWriter::create_stored(&path) }).unwrap();
        for (i, array) in list.iter().enumerate() {
            writer.array(&format!("a{i}"), array).unwrap();
        }
        writer.finish().unwrap();
        let mut npz = Npz::open(&path).unwrap();
        prop_assert_eq!(npz.names().len(), list.len());
        for (i, array) in list.iter().enumerate() {
            let read = npz.read(&format!("a{i}")).unwrap();
            prop_assert_eq!(&read.shape, &array.shape);
            prop_assert_eq!(read.dtype(), array.dtype());
            prop_assert_eq!(bytes(&read.data), bytes(&array.data));
        }
    }

    #[test]
    fn conversions_keep_values(values in vec(any::<i16>(), 0..50)) {
        let wide: Vec<i64> = values.iter().map(|&x| x.into()).collect();
        let array = Array::new(vec![values.len()], Data::I16(values.clone())).unwrap();
        prop_assert_eq!(array.clone().into_integers().unwrap(), wide.clone());
        let floats: Vec<f64> = wide.iter().map(|&x| x as f64).collect();
        prop_assert_eq!(array.clone().into_floats().unwrap(), floats.clone());
        let narrow: Vec<f32> = floats.iter().map(|&x| x as f32).collect();
        prop_assert_eq!(array.into_f32().unwrap(), narrow);
    }
}

#[test]
fn longer_than_the_buffer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npz");
    for compressed in [false, true] {
        let bits: Vec<u64> = (0..100_003u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut writer =
            (if compressed { NpzWriter::create(&path) } else { NpzWriter::create_stored(&path) }).unwrap();
        for dtype in DType::ALL {
            let array = array(dtype, vec![bits.len()], &bits);
            writer.array(&dtype.to_string(), &array).unwrap();
        }
        writer.finish().unwrap();
        let mut npz = Npz::open(&path).unwrap();
        for dtype in DType::ALL {
            let read = npz.read(&dtype.to_string()).unwrap();
            let written = array(dtype, vec![bits.len()], &bits);
            assert_eq!(bytes(&read.data), bytes(&written.data), "{dtype}");
        }
    }
}

#[test]
fn equal_arrays_give_equal_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = dir.path().join(name);
        let mut writer = NpzWriter::create(&path).unwrap();
        writer.array_f64("x", &[2, 2], &[1.0, 2.0, 3.0, f64::NAN]).unwrap();
        writer.finish().unwrap();
        std::fs::read(path).unwrap()
    };
    let first = write("a.npz");
    std::thread::sleep(std::time::Duration::from_millis(10));
    assert_eq!(first, write("b.npz"));
}

#[test]
fn the_writer_refuses_what_the_reader_would() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npz");
    let mut writer = NpzWriter::create_stored(&path).unwrap();
    for name in ["", "../x", "/x", "a/b", "a\\b", "C:x", "a\nb"] {
        let error = writer.array_i64(name, &[0], &[]).unwrap_err();
        assert!(matches!(error, DataError::EntryName { .. }), "{error}");
    }
    let error = writer.array_i64("x", &[2, 2], &[1, 2, 3]).unwrap_err();
    assert!(matches!(error, DataError::ShapeMismatch { found: 3, .. }), "{error}");
    let error = writer.array_i64("x", &[1; 65], &[1]).unwrap_err();
    assert!(matches!(error, DataError::Limit { found: 65, .. }), "{error}");
    writer.array_i64("x", &[2], &[1, 2]).unwrap();
    let error = writer.array_bool("x", &[], &[true]).unwrap_err();
    assert!(matches!(error, DataError::DuplicateName { .. }), "{error}");
    writer.finish().unwrap();
    assert_eq!(Npz::open(&path).unwrap().names(), ["x"]);
}

#[test]
fn an_unfinished_archive_leaves_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npz");
    std::fs::write(&path, "old").unwrap();
    let mut writer = NpzWriter::create(&path).unwrap();
    writer.array_i64("x", &[1], &[1]).unwrap();
    drop(writer);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn parts_give_the_same_bytes_as_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, parts) = (dir.path().join("whole.npz"), dir.path().join("parts.npz"));
    let numbers: Vec<f32> = (0..60_000).map(|i| (i as f32).sin()).collect();
    let mut npz = NpzWriter::create(&whole).unwrap();
    npz.array_f32("x", &[20_000, 3], &numbers).unwrap();
    npz.finish().unwrap();

    for size in [1, 35, 7_001, 50_000] {
        let mut npz = NpzWriter::create(&parts).unwrap();
        let pieces = numbers.chunks(size).map(|piece| Ok::<_, DataError>(Data::F32(piece.to_vec())));
        npz.array_of_parts("x", DType::F32, &[20_000, 3], pieces).unwrap();
        npz.finish().unwrap();
        assert!(std::fs::read(&parts).unwrap() == std::fs::read(&whole).unwrap(), "parts of {size}");
    }
}

#[test]
fn wrong_parts_drop_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npz");
    let attempt = |parts: Vec<Data>| {
        let mut npz = NpzWriter::create_stored(&path).unwrap();
        let parts = parts.into_iter().map(Ok::<_, DataError>);
        let message = npz.array_of_parts("x", DType::I64, &[2], parts).unwrap_err().to_string();
        // Whatever comes after it, the array has a hole.
        assert!(npz.array_i64("y", &[1], &[1]).is_err());
        assert!(npz.finish().is_err());
        assert!(!path.exists());
        message
    };
    let message = attempt(vec![Data::I64(vec![1])]);
    assert!(message.contains("1 elements were given for shape [2]"), "{message}");
    let message = attempt(vec![Data::I64(vec![1, 2]), Data::I64(vec![3])]);
    assert!(message.contains("3 elements were given"), "{message}");
    let message = attempt(vec![Data::F64(vec![1.0, 2.0])]);
    assert!(message.contains("found dtype float64"), "{message}");
}

//! Builds zip and npy files byte by byte, so that every field can lie.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::io::Write;

use album_data::Data;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// An npy file of version 1.0 with this header text.
pub fn npy_raw(version: (u8, u8), header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version.0, version.1]);
    if version.0 == 1 {
        bytes.extend((header.len() as u16).to_le_bytes());
    } else {
        bytes.extend((header.len() as u32).to_le_bytes());
    }
    bytes.extend(header);
    bytes.extend(payload);
    bytes
}

/// An npy file with these three header values.
pub fn npy(descr: &str, fortran: &str, shape: &str, payload: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    npy_raw((1, 0), header.as_bytes(), payload)
}

/// A valid array of three int64.
pub fn three() -> Vec<u8> {
    npy("'<i8'", "False", "(3,)", &[0; 24])
}

pub fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// One archive entry; the fields start out honest.
#[derive(Clone)]
pub struct Entry {
    pub name: Vec<u8>,
    pub flags: u16,
    pub method: u16,
    pub crc: u32,
    pub compressed: u32,
    pub size: u32,
    pub extra: Vec<u8>,
    pub stored: Vec<u8>,
    /// `None`: where the header is.
    pub header_offset: Option<u32>,
    /// What the local header says where it shall differ.
    pub local_name: Option<Vec<u8>>,
    pub local_crc: Option<u32>,
    pub local_method: Option<u16>,
    pub local_size: Option<u32>,
    pub local_signature: u32,
    pub table_signature: u32,
}

pub fn plain(name: &str, content: &[u8]) -> Entry {
    Entry {
        name: name.as_bytes().to_vec(),
        flags: 0,
        method: 0,
        crc: crc32(content),
        compressed: content.len() as u32,
        size: content.len() as u32,
        extra: Vec::new(),
        stored: content.to_vec(),
        header_offset: None,
        local_name: None,
        local_crc: None,
        local_method: None,
        local_size: None,
        local_signature: 0x0403_4b50,
        table_signature: 0x0201_4b50,
    }
}

pub fn deflated(name: &str, content: &[u8]) -> Entry {
    let stored = deflate(content);
    Entry { method: 8, compressed: stored.len() as u32, stored, ..plain(name, content) }
}

/// The local header and the data of an entry.
pub fn local(entry: &Entry) -> Vec<u8> {
    let name = entry.local_name.as_ref().unwrap_or(&entry.name);
    let mut out = Vec::new();
    out.extend(entry.local_signature.to_le_bytes());
    out.extend(20u16.to_le_bytes());
    out.extend(entry.flags.to_le_bytes());
    out.extend(entry.local_method.unwrap_or(entry.method).to_le_bytes());
    out.extend([0; 4]);
    out.extend(entry.local_crc.unwrap_or(entry.crc).to_le_bytes());
    out.extend(entry.compressed.to_le_bytes());
    out.extend(entry.local_size.unwrap_or(entry.size).to_le_bytes());
    out.extend((name.len() as u16).to_le_bytes());
    out.extend([0; 2]);
    out.extend(name);
    out.extend(&entry.stored);
    out
}

/// The end record; the fields start out honest.
pub struct End {
    pub disk: u16,
    pub here: u16,
    pub total: u16,
    pub table_size: u32,
    pub table_start: u32,
    pub comment: Vec<u8>,
    /// Put between the table and the end record.
    pub before: Vec<u8>,
}

pub fn archive(entries: &[Entry]) -> Vec<u8> {
    archive_with(entries, |_| {})
}

pub fn archive_with(entries: &[Entry], change: impl Fn(&mut End)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut table = Vec::new();
    for entry in entries {
        let offset = entry.header_offset.unwrap_or(out.len() as u32);
        out.extend(local(entry));
        table.extend(entry.table_signature.to_le_bytes());
        table.extend([20, 3, 20, 0]);
        table.extend(entry.flags.to_le_bytes());
        table.extend(entry.method.to_le_bytes());
        table.extend([0; 4]);
        table.extend(entry.crc.to_le_bytes());
        table.extend(entry.compressed.to_le_bytes());
        table.extend(entry.size.to_le_bytes());
        table.extend((entry.name.len() as u16).to_le_bytes());
        table.extend((entry.extra.len() as u16).to_le_bytes());
        table.extend([0; 10]);
        table.extend(offset.to_le_bytes());
        table.extend(&entry.name);
        table.extend(&entry.extra);
    }
    let mut end = End {
        disk: 0,
        here: entries.len() as u16,
        total: entries.len() as u16,
        table_size: table.len() as u32,
        table_start: out.len() as u32,
        comment: Vec::new(),
        before: Vec::new(),
    };
    change(&mut end);
    out.extend(table);
    out.extend(end.before);
    out.extend(0x0605_4b50u32.to_le_bytes());
    out.extend(end.disk.to_le_bytes());
    out.extend([0; 2]);
    out.extend(end.here.to_le_bytes());
    out.extend(end.total.to_le_bytes());
    out.extend(end.table_size.to_le_bytes());
    out.extend(end.table_start.to_le_bytes());
    out.extend((end.comment.len() as u16).to_le_bytes());
    out.extend(end.comment);
    out
}

/// A zip64 end record and its locator.
pub fn end_64(entries: u64, size: u64, start: u64, record_at: u64) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(0x0606_4b50u32.to_le_bytes());
    out.extend(44u64.to_le_bytes());
    out.extend([45, 3, 45, 0]);
    out.extend([0; 8]);
    for field in [entries, entries, size, start] {
        out.extend(field.to_le_bytes());
    }
    out.extend(0x0706_4b50u32.to_le_bytes());
    out.extend([0; 4]);
    out.extend(record_at.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out
}

/// The elements as the file holds them, so that NaN equals NaN.
pub fn bytes(data: &Data) -> Vec<u8> {
    macro_rules! all {
        ($v:expr) => {
            $v.iter().flat_map(|x| x.to_le_bytes()).collect()
        };
    }
    match data {
        Data::Bool(v) => v.iter().map(|&b| u8::from(b)).collect(),
        Data::I8(v) => all!(v),
        Data::I16(v) => all!(v),
        Data::I32(v) => all!(v),
        Data::I64(v) => all!(v),
        Data::U8(v) => all!(v),
        Data::U16(v) => all!(v),
        Data::U32(v) => all!(v),
        Data::U64(v) => all!(v),
        Data::F32(v) => all!(v),
        Data::F64(v) => all!(v),
    }
}

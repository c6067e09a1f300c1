//! TensorBoard event files, restricted to scalars.
//!
//! A file is a sequence of records: length (8 bytes, little-endian), masked CRC-32C of the length, data, masked
//! CRC-32C of the data. The data is a protobuf message `Event`; the first one holds the file's version.

/// The first bytes of a file: the length of its first record.
pub(crate) const FIRST_LENGTH: [u8; 8] = 24u64.to_le_bytes();

/// The first record of a file.
pub(crate) fn first_record(wall_time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    double(&mut event, 1, wall_time);
    bytes(&mut event, 3, b"brain.Event:2");
    record(&event)
}

/// A record with scalars of one step.
pub(crate) fn scalars<'a>(
    wall_time: f64,
    step: u64,
    values: impl IntoIterator<Item = (&'a str, f64)>,
) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in values {
        let mut entry = Vec::new();
        bytes(&mut entry, 1, tag.as_bytes());
        key(&mut entry, 2, 5);
        entry.extend((value as f32).to_le_bytes());
        bytes(&mut summary, 1, &entry);
    }
    let mut event = Vec::new();
    double(&mut event, 1, wall_time);
    key(&mut event, 2, 0);
    varint(&mut event, step);
    bytes(&mut event, 5, &summary);
    record(&event)
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(data.len() + 16);
    out.extend(length);
    out.extend(masked_crc(&length).to_le_bytes());
    out.extend(data);
    out.extend(masked_crc(data).to_le_bytes());
    out
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Field number and wire type.
fn key(out: &mut Vec<u8>, field: u64, wire: u64) {
    varint(out, field << 3 | wire);
}

fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    key(out, field, 1);
    out.extend(value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    key(out, field, 2);
    varint(out, value.len() as u64);
    out.extend(value);
}

/// CRCs are masked because data that contains its own CRC would defeat them.
fn masked_crc(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli).
fn crc32c(data: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut i = 0;
        while i < 256 {
            let mut crc = i as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
                bit += 1;
            }
            table[i] = crc;
            i += 1;
        }
        table
    };
    !data.iter().fold(!0, |crc: u32, &byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_vectors() {
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&std::array::from_fn::<u8, 32, _>(|i| i as u8)), 0x46dd_794e);
        assert_eq!(crc32c(&std::array::from_fn::<u8, 32, _>(|i| 31 - i as u8)), 0x113f_db5c);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    /// Computed by an independent implementation in Python.
    #[test]
    fn golden_bytes() {
        let expected = "\
            1800000000000000a37f4b220900000000000000401a0d627261696e2e4576656e743a32ff2ee0e730000000\
            0000000095f5d05f0900000000000000401081042a220a160a0f747261696e696e672f612f6c6f7373150000\
            c0bf0a080a017115cdcccc3d4ba6a183";
        let mut found = first_record(2.0);
        found.extend(scalars(2.0, 513, [("training/a/loss", -1.5), ("q", 0.1)]));
        assert_eq!(album_base::hex::hex(&found), expected);
    }
}

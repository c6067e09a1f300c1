//! Hexadecimal encoding.

/// Bytes as lower-case hexadecimal digits.
///
/// ```
/// assert_eq!(album_base::hex::hex(&[0x0f, 0xa0]), "0fa0");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

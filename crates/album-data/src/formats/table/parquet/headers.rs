//! The headers of pages, read before the parquet crate allocates what they claim.

use std::io::{self, Read};

/// How deep structures in a header may be nested; those of the format are three deep.
const DEEPEST: usize = 8;

/// The sizes in a page's header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PageSizes {
    /// Bytes of the header itself.
    pub(super) header: u64,
    /// Bytes after it.
    pub(super) stored: u64,
    /// Bytes of the page in memory.
    pub(super) inflated: u64,
}

/// Reads a header: a structure in Thrift's compact protocol, of which only the sizes matter here. If a size is given
/// twice, the larger one counts.
pub(super) fn page_sizes(input: impl Read) -> io::Result<PageSizes> {
    let mut header = Header { input, sizes: PageSizes::default() };
    header.structure(0)?;
    Ok(header.sizes)
}

struct Header<R> {
    input: R,
    sizes: PageSizes,
}

impl<R: Read> Header<R> {
    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        self.sizes.header += 1;
        Ok(byte[0])
    }

    fn skip(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.input).take(count), &mut io::sink())?;
        self.sizes.header += skipped;
        if skipped < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    fn structure(&mut self, depth: usize) -> io::Result<()> {
        let mut field = 0u64;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            // A small step from the last field's number, or the number itself, with its sign in the last bit.
            field = match byte >> 4 {
                0 => self.varint()? >> 1,
                step => field + u64::from(step),
            };
            match (depth, field, byte & 0xf) {
                (0, 2, 5) => self.sizes.inflated = self.sizes.inflated.max(self.varint()? >> 1),
                (0, 3, 5) => self.sizes.stored = self.sizes.stored.max(self.varint()? >> 1),
                (_, _, 1 | 2) => {} // flags are part of the field's type
                (_, _, kind) => self.value(kind, depth)?,
            }
        }
    }

    /// Skips a value.
    fn value(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        if depth >= DEEPEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match kind {
            1..=3 => self.skip(1),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(length)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let count = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
                (0..count).try_for_each(|_| self.value(byte & 0xf, depth + 1))
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.value(kinds >> 4, depth + 1)?;
                    self.value(kinds & 0xf, depth + 1)
                })
            }
            12 => self.structure(depth + 1),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_between_other_fields() {
        // A data page of 100 bytes, 60 of them stored: type 0, sizes, a structure with a number, a text and a list.
        let header = [
            0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x78, 0x2c, 0x15, 0x08, 0x18, 2, b'a', b'b', 0x19, 0x25, 2,
            4, 0, 0,
        ];
        let mut input = &header[..];
        let sizes = page_sizes(&mut input).unwrap();
        assert_eq!(sizes, PageSizes { header: header.len() as u64, stored: 60, inflated: 100 });
        assert!(input.is_empty());
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for bytes in
            [&[][..], &[0x15], &[0x1c; 40], &[0x18, 0xff, 0xff, 0xff, 0xff, 0x0f], &[0x1f, 0], &[0x15; 3]]
        {
            assert!(page_sizes(bytes).is_err(), "{bytes:?}");
        }
        assert!(
            page_sizes(&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..])
                .is_err()
        );
    }
}

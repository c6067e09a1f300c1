//! Arrays whose chunks are narrower than their rows, as h5py makes them unless told otherwise.
//!
//! The crate's slices copy such chunks row by row, which takes longer than their decompression. Here the chunks
//! that share a range of rows, a band, are decoded one after the other and put side by side.

use hdf5_reader::error::Error;
use hdf5_reader::{Dataset, DatasetChunkIterator};

/// Maximum size of a band in memory.
const MAX_BAND_BYTES: usize = 16 << 20;

/// Reads rows from first to last, one band at a time.
pub(super) struct Bands {
    chunks: DatasetChunkIterator,
    rows: usize,
    /// Rows and columns of a chunk.
    chunk: [usize; 2],
    columns: usize,
    element: usize,
    /// The bytes of the current band, which starts at row `first` and ends before row `end`.
    band: Vec<u8>,
    first: usize,
    end: usize,
}

impl Bands {
    /// `None` if the array is not of this kind.
    pub fn new(dataset: &Dataset) -> Result<Option<Self>, Error> {
        let (&[rows, columns], Some(chunk)) = (dataset.shape(), dataset.chunks()) else { return Ok(None) };
        let &[height, width] = &chunk[..] else { return Ok(None) };
        let [rows, columns] = [rows, columns].map(|axis| usize::try_from(axis).unwrap_or(usize::MAX));
        let chunk = [height as usize, width as usize];
        let element = dataset.raw_element_size()?;
        let size = chunk[0].saturating_mul(columns).saturating_mul(element);
        if chunk[0] == 0 || chunk[1] == 0 || chunk[1] >= columns || size > MAX_BAND_BYTES {
            return Ok(None);
        }
        let chunks = dataset.iter_chunks()?;
        Ok(Some(Self { chunks, rows, chunk, columns, element, band: Vec::new(), first: 0, end: 0 }))
    }

    /// The bytes of the next `rows` rows, from row `first` on, which must follow those read before. `None` if a chunk is
    /// missing or out of order.
    pub fn read(&mut self, first: usize, rows: usize) -> Result<Option<Vec<u8>>, Error> {
        let row_bytes = self.columns * self.element;
        let mut bytes = Vec::with_capacity(rows * row_bytes);
        let (mut at, end) = (first, first + rows);
        while at < end {
            if at >= self.end && !self.next_band()? {
                return Ok(None);
            }
            if at < self.first {
                return Ok(None);
            }
            let to = end.min(self.end);
            bytes.extend_from_slice(&self.band[(at - self.first) * row_bytes..(to - self.first) * row_bytes]);
            at = to;
        }
        Ok(Some(bytes))
    }

    /// Decodes the next band; false if a chunk is missing or out of order.
    fn next_band(&mut self) -> Result<bool, Error> {
        let [height, width] = self.chunk;
        (self.first, self.end) = (self.end, self.rows.min(self.end + height));
        let row_bytes = self.columns * self.element;
        self.band.resize((self.end - self.first) * row_bytes, 0);
        for column in (0..self.columns).step_by(width) {
            let Some(chunk) = self.chunks.next() else { return Ok(false) };
            let chunk = chunk?;
            let bytes = chunk.bytes();
            let in_order = chunk.offsets() == [self.first as u64, column as u64];
            if !in_order || bytes.len() != height * width * self.element {
                return Ok(false);
            }
            let (stride, offset) = (width * self.element, column * self.element);
            // The last chunk may reach beyond the row.
            let length = stride.min(row_bytes - offset);
            match stride {
                4 => place::<4>(bytes, &mut self.band, row_bytes, offset),
                8 if length == 8 => place::<8>(bytes, &mut self.band, row_bytes, offset),
                _ => {
                    let rows = self.band.chunks_exact_mut(row_bytes).zip(bytes.chunks_exact(stride));
                    rows.for_each(|(row, from)| row[offset..][..length].copy_from_slice(&from[..length]));
                }
            }
        }
        Ok(true)
    }
}

/// Puts a chunk of `N` bytes per row in its place.
fn place<const N: usize>(chunk: &[u8], band: &mut [u8], row_bytes: usize, offset: usize) {
    for (row, from) in band.chunks_exact_mut(row_bytes).zip(chunk.as_chunks::<N>().0) {
        row[offset..][..N].copy_from_slice(from);
    }
}

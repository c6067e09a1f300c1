//! Memory-mapped columns: the only unsafe code of this crate.
//!
//! Unlike reading rows on demand, a map lets a dataset hand out slices as if it were in memory, and a batch
//! takes microseconds if its pages are cached (`examples/gather_columns.rs` measures both).
//!
//! The price: if a mapped file is truncated, processes that read the lost part die of SIGBUS; if it is
//! written to, their data changes. Columns are therefore written under a temporary name, renamed when
//! complete, and made read-only. A new import replaces the folder rather than its files, so that running
//! programs keep the old ones.
#![allow(unsafe_code, reason = "memory maps cannot be made without it")]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// A read-only file of `f32`, mapped into memory.
#[derive(Debug)]
pub(crate) struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a file. The caller has checked that its size is a positive multiple of four bytes.
    pub fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the map is private to this type, read-only, and only handed out as shared slices. The file
        // must not change meanwhile; this cannot be enforced, but the module's documentation lists the
        // precautions.
        let map = unsafe { Mmap::map(file)? };
        // Batches are random: without this advice, read-ahead loads 128 kB for a row of a few hundred bytes
        // and evicts useful pages. If the system refuses it, only speed is lost.
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Random);
        Ok(Self(map))
    }

    /// The numbers of the file.
    pub fn floats(&self) -> &[f32] {
        // SAFETY: every bit pattern of four bytes is a valid `f32`.
        let (before, numbers, _) = unsafe { self.0.align_to::<f32>() };
        debug_assert!(before.is_empty(), "maps start at a page");
        numbers
    }
}

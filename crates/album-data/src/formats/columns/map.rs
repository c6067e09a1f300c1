//! A file of numbers as a slice: the only unsafe code of this crate.
//!
//! Compared with reading each row where it is needed, a map lets a dataset hand out
//! slices as one in memory does, and a batch costs microseconds where the pages are
//! cached (`examples/gather_columns.rs` measures both).
//!
//! The price: truncating a mapped file ends every process that reads the lost
//! part with the signal SIGBUS, and writing into it changes the numbers under
//! them. Columns are therefore written under another name, renamed when they are
//! whole, and made read-only; a new import replaces the folder and not the files, so
//! that programs which have the old ones open keep them.
#![allow(unsafe_code, reason = "memory maps cannot be made without it")]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// A read-only file of 32-bit numbers, mapped into memory.
#[derive(Debug)]
pub(crate) struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a file whose size was checked: a positive multiple of four bytes.
    pub fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the map is private to this type, read-only and handed out as shared slices only. That nobody
        // changes the file meanwhile is what the module's text asks for; no program can enforce it.
        let map = unsafe { Mmap::map(file)? };
        // Batches are drawn at random: without this, the system reads 128 kB for each row of a few hundred bytes,
        // and drops as much that was of use. Refusal costs only speed.
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Random);
        Ok(Self(map))
    }

    /// The numbers.
    pub fn floats(&self) -> &[f32] {
        // SAFETY: every pattern of four bytes is an `f32`.
        let (before, numbers, _) = unsafe { self.0.align_to::<f32>() };
        debug_assert!(before.is_empty(), "maps start at a page");
        numbers
    }
}

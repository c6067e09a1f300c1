//! A growable array of `f32` aligned to cache lines.
//!
//! The kernels read whole 64-byte vectors; one that straddles two cache lines costs two loads, and
//! `Vec<f32>` promises only four-byte alignment.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

/// One cache line of floats; its alignment becomes the alignment of the buffer.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// Cache-line aligned storage that never shrinks, so that reuse costs no allocation.
#[derive(Clone, Default)]
pub(crate) struct Buffer {
    lines: Vec<Line>,
    len: usize,
}

impl Buffer {
    /// A buffer of `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        Self { lines: vec![Line([0.0; 16]); len.div_ceil(16)], len }
    }

    /// Sets the length. Existing contents stay in place; newly allocated parts are zero.
    pub(crate) fn resize(&mut self, len: usize) {
        let lines = len.div_ceil(16);
        if lines > self.lines.len() {
            self.lines.resize(lines, Line([0.0; 16]));
        }
        self.len = len;
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `Line` is `repr(C)` over `[f32; 16]` without padding, so the lines are
        // `16 * lines.len()` initialised floats in a row, and `len` never exceeds that.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// A pointer into a [`Buffer`] that several threads write through, each to its own part.
///
/// Creating one is safe; the `unsafe` promise (disjoint parts, in bounds, buffer alive) is made
/// where it is dereferenced.
#[derive(Clone, Copy)]
pub(crate) struct SharedMut(*mut f32);

// SAFETY: the pointer itself carries no access; every dereference states why it does not race.
unsafe impl Send for SharedMut {}
// SAFETY: as above.
unsafe impl Sync for SharedMut {}

impl SharedMut {
    pub(crate) fn new(slice: &mut [f32]) -> Self {
        Self(slice.as_mut_ptr())
    }

    pub(crate) fn ptr(self) -> *mut f32 {
        self.0
    }

    /// The `len` floats starting at `start`.
    ///
    /// # Safety
    /// The range lies inside the slice this was made from, that slice is still borrowed, and no
    /// other thread touches the range meanwhile.
    pub(crate) unsafe fn slice<'a>(self, start: usize, len: usize) -> &'a mut [f32] {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

//! Copies between row-major matrices and panels.
#![allow(unsafe_code)]

use crate::gemm::{PANEL, Panels};

/// Copies a row-major matrix into panels.
pub(super) fn pack_rows(from: &[f32], columns: usize, to: &mut [f32], stride: usize) {
    for (r, row) in from.chunks_exact(columns).enumerate() {
        for (p, part) in row.chunks(PANEL).enumerate() {
            let to = &mut to[p * stride + r * PANEL..][..PANEL];
            to[..part.len()].copy_from_slice(part);
            to[part.len()..].fill(0.0);
        }
    }
}

/// Copies one row into panels.
///
/// # Safety
/// The row exists in `to` and belongs to the caller.
pub(super) unsafe fn pack_row(from: &[f32], to: Panels, row: usize) {
    for (p, part) in from.chunks(PANEL).enumerate() {
        // SAFETY: promised by the caller.
        let to = unsafe { std::slice::from_raw_parts_mut(to.at(p, row), PANEL) };
        to[..part.len()].copy_from_slice(part);
        to[part.len()..].fill(0.0);
    }
}

/// Copies one row out of panels.
///
/// # Safety
/// The row exists in `from` and nobody writes to it.
pub(super) unsafe fn unpack_row(from: Panels, row: usize, to: &mut [f32]) {
    for (p, part) in to.chunks_mut(PANEL).enumerate() {
        // SAFETY: promised by the caller.
        part.copy_from_slice(unsafe { std::slice::from_raw_parts(from.at(p, row), part.len()) });
    }
}

/// Adds one row of a matrix in panels to `to`.
///
/// # Safety
/// As for [`unpack_row`].
pub(super) unsafe fn add_row(from: Panels, row: usize, to: &mut [f32]) {
    for (p, part) in to.chunks_mut(PANEL).enumerate() {
        // SAFETY: promised by the caller.
        let from = unsafe { std::slice::from_raw_parts(from.at(p, row), part.len()) };
        for (to, from) in part.iter_mut().zip(from) {
            *to += from;
        }
    }
}

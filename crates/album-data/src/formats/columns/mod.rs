//! Datasets as folders of columns, for data larger than memory.
//!
//! [`import()`] converts npz files of any size to a folder, part by part:
//!
//! ```text
//! cube-quadruple-play-100m-v0.columns/
//!   manifest.json       format, rows, widths, sizes and SHA-256 of the files below, names of the sources
//!   observations.f32    rows of little-endian numbers, without a header
//!   actions.f32         clipped, and 0 in the last row of every episode, as in a `Dataset`
//!   qpos.f32            \ if the sources have them: rewards and masks of any task
//!   button_states.i8    / are computed from these when the data is loaded
//!   rewards.f32         \ the sources' own rewards and masks, if they have them
//!   masks.f32           /
//!   episodes.u64        number of transitions of every episode
//! ```
//!
//! [`load`](crate::load()) accepts the folder in place of a file. Observations and actions are memory-mapped:
//! the system loads the pages that batches touch, and evicts them when it needs the memory. Only rewards and
//! masks are held in memory, eight bytes per row. The import has checked that all numbers are finite; loading
//! reads every column it needs once, to verify its hash. [`verify`] checks all columns.
//!
//! A dataset has the same hash whether loaded from the folder or from the file, so that a run can be resumed
//! with either.

mod folder;
mod import;
mod log;
mod manifest;
mod map;
mod writer;

pub use folder::verify;
pub use import::{Import, Imported, import};
pub use log::import_source;

pub(crate) use folder::{Folder, description, is_folder};
pub(crate) use map::MappedFile;

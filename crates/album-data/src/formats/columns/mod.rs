//! Datasets as folders of columns, for data larger than memory.
//!
//! [`import()`] turns npz files into a folder once, in parts, whatever their size:
//!
//! ```text
//! cube-quadruple-play-100m-v0.columns/
//!   manifest.json       format, rows, widths, sizes and SHA-256 of the files below, names of the sources
//!   observations.f32    row by row, little-endian, nothing else
//!   actions.f32         clipped, and 0 in the last row of every episode: as a `Dataset` has them
//!   qpos.f32            \ as far as the sources have them: rewards and masks of any task
//!   button_states.i8    / are computed from them when the data is loaded
//!   rewards.f32         \ the sources' own rewards and masks, as far as they have them
//!   masks.f32           /
//!   episodes.u64        transitions of every episode
//! ```
//!
//! [`load`](crate::load()) takes the folder in place of a file. Observations and actions are
//! then mapped into memory: the system reads the pages that batches touch, and drops them when it needs the
//! memory. In memory are eight bytes a row, its reward and mask. Whether all numbers are finite was asked by the
//! import; loading reads every column that it needs once, to hold it against the hashes of the manifest.
//! [`verify`] looks at all of them.
//!
//! The hash of a dataset is the same from the folder and from the file, so that a run may be resumed with either.

mod folder;
mod import;
mod log;
mod manifest;
mod map;

pub use folder::verify;
pub use import::{Import, Imported, import};
pub use log::import_source;

pub(crate) use folder::{Folder, description, is_folder};
pub(crate) use map::MappedFile;

//! Reads files into checked datasets.
//!
//! [`load()`] reads a file into a [`Dataset`] of episodes. [`Segments`] extract K-step windows for the
//! transitions that a [`Sampler`] draws. [`ogbench`] has tasks, their goals and their files; [`columns`]
//! keeps data larger than memory on disk.
//!
//! ```text
//! formats/   npz (npy headers, zip directory, writer), columns (memory-mapped), hdf5, tables, Minari, LeRobot
//! load/      recordings: arrays -> checks and labels -> Dataset, and a sentence for everything that is ignored
//! source/    anyone's log: fields -> what they mean -> episodes -> Dataset, and what was guessed
//! ogbench/   environments, tasks, goals, how complete a recording is
//! dataset, episodes, view, segments, batch, replay, sampler, returns
//! ```
//!
//! ```
//! use album_data::{Labels, NpzWriter, Sampler, SegmentConfig, Segments, load};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("walk.npz");
//! let mut writer = NpzWriter::create(&path)?;
//! writer.array_f32("observations", &[4, 1], &[0.0, 1.0, 2.0, 3.0])?;
//! writer.array_f32("actions", &[4, 1], &[1.0, 1.0, 1.0, 0.0])?;
//! writer.array_f32("rewards", &[4], &[-1.0, -1.0, -1.0, 0.0])?;
//! writer.array_bool("terminals", &[4], &[false, false, false, true])?;
//! writer.finish()?; // only now is there a file
//!
//! let dataset = load(&path, Labels::Own)?.dataset;
//! let segments = Segments::new(SegmentConfig { k: 2, ..SegmentConfig::default() })?;
//! let mut batch = segments.batch(&dataset, 32);
//! Sampler::new(0, dataset.len()).fill(0, batch.indices_mut());
//! segments.gather(&dataset, &mut batch);
//! assert_eq!((batch.observations().rows(), batch.observations().cols()), (32, 1));
//! # Ok(())
//! # }
//! ```
//!
//! # Files
//!
//! Files are not trusted: whatever they claim is checked against [`Limits`] and the actual bytes before
//! memory is allocated, pickles are never read, and every error names the file and array, what was found and
//! what was expected. Arrays are decompressed directly into their vectors, so that reading takes little more
//! memory than the result.
//!
//! ```
//! use album_data::{Npz, NpzWriter};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("data.npz");
//! let mut writer = NpzWriter::create(&path)?;
//! writer.array_i64("actions", &[3], &[0, 2, 1])?;
//! writer.array_f64("rewards", &[3], &[0.0, 0.0, 1.0])?;
//! writer.array_bool("terminals", &[3], &[false, false, true])?;
//! writer.finish()?; // only now is there a file
//!
//! let mut npz = Npz::open(&path)?;
//! assert_eq!(npz.names(), ["actions", "rewards", "terminals"]);
//! assert_eq!(npz.read("actions")?.into_integers()?, [0, 2, 1]);
//! assert_eq!(npz.read("rewards")?.into_floats()?, [0.0, 0.0, 1.0]);
//!
//! let error = npz.read("rewards")?.into_integers().unwrap_err();
//! assert!(error.to_string().ends_with(
//!     "data.npz: array `rewards`: found dtype float64, expected an integer type"
//! ));
//! # Ok(())
//! # }
//! ```

mod action_space;
mod batch;
mod column;
mod dataset;
mod episodes;
mod error;
mod formats;
mod limits;
mod load;
pub mod ogbench;
mod parallel;
mod replay;
pub mod returns;
mod sampler;
mod segments;
mod source;
mod view;

pub use action_space::ActionSpace;
pub use batch::Batch;
pub use dataset::{ACTION_LIMIT, Dataset, HoldOutError, Rows};
pub use episodes::{Episodes, Location};
pub use error::{DataError, Place};
pub use formats::columns;
pub use formats::npz::Npz;
pub use formats::npz::array::{Array, DType, Data};
pub use formats::npz::npy::{read_npy, read_npy_with};
pub use formats::npz::writer::NpzWriter;
pub use formats::table;
pub use limits::Limits;
pub use load::{
    BadNumbers, Labels, Loaded, Problem, Unchecked, has_own_rewards, load, load_unchecked, needs_task,
    validation_beside,
};
pub use replay::Replay;
pub use sampler::Sampler;
pub use segments::{AfterGoal, KStepTail, SegmentConfig, SegmentError, Segments};
pub use source::{
    ActionKind, ColumnMap, ColumnMapError, Description, Elements, EndCounts, Ends, Format, LentArray, Source,
    SourceData,
};
pub use view::View;

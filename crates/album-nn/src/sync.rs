//! Building blocks of the thread pool. The pool's model (`xtask/loom`) has a module of the same name with
//! loom's types.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::{Builder, JoinHandle, yield_now};
pub(crate) use std::thread_local;

/// How often a waiting thread polls before it sleeps: some 20 microseconds, the usual time between two
/// parallel loops of a training step.
pub(crate) const SPINS: u32 = 2_000;

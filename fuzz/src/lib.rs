//! Shared by the fuzz targets: a folder in memory, a memory limit, and the handling of panics.
//!
//! A target is a reader, given bytes in place of its file. It may refuse them; it must not panic, overflow,
//! allocate more than [`MOST_BYTES`] at once or exceed the time limit of `cargo xtask fuzz`.

pub mod base;

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::{env, fs, process};

use libfuzzer_sys as _; // the coverage callbacks, for `seeds` too

/// Maximum size of a single allocation: the inputs have a few kilobytes. Archives of up to 256 MiB may have
/// any compression ratio (`Limits::ratio_free_bytes`), and a growing vector doubles.
pub const MOST_BYTES: usize = 640 << 20;

/// The system's allocator with a limit, which works without a sanitizer.
struct Capped;

#[global_allocator]
static ALLOCATOR: Capped = Capped;

// SAFETY: every call goes to the system's allocator unchanged, or ends the process.
unsafe impl GlobalAlloc for Capped {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn check(size: usize) {
    if size > MOST_BYTES {
        let trace = std::backtrace::Backtrace::force_capture();
        eprintln!("==== {size} bytes asked for at once, expected at most {MOST_BYTES}\n{trace}");
        process::abort();
    }
}

/// Runs a target. A panic caught inside (as those of a library are) is not a finding; one that escapes is.
pub fn run(body: impl FnOnce()) {
    static LAST: OnceLock<Mutex<String>> = OnceLock::new();
    let last = LAST.get_or_init(|| {
        std::panic::set_hook(Box::new(|info| {
            let trace = std::backtrace::Backtrace::force_capture();
            if let Some(Ok(mut last)) = LAST.get().map(Mutex::lock) {
                *last = format!("{info}\n{trace}");
            }
        }));
        Mutex::default()
    });
    if catch_unwind(AssertUnwindSafe(body)).is_err() {
        eprintln!("==== panic: {}", last.lock().map(|last| last.clone()).unwrap_or_default());
        process::abort();
    }
}

/// A folder of this process, in memory if possible. `cargo xtask fuzz` removes it.
pub fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<PathBuf> = OnceLock::new();
    SCRATCH.get_or_init(|| {
        let shared = Path::new("/dev/shm");
        let place = if shared.is_dir() { shared.to_path_buf() } else { env::temp_dir() };
        let root = env::var_os("ALBUM_FUZZ_SCRATCH").map_or(place, PathBuf::from);
        let folder = root.join(format!("album-fuzz-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for the inputs");
        // An empty working directory, so that relative paths in the inputs find nothing.
        let empty = folder.join("empty");
        fs::create_dir(&empty).and_then(|()| env::set_current_dir(&empty)).expect("an empty folder");
        folder
    })
}

/// Writes the input to a file of that name.
pub fn file(name: &str, input: &[u8]) -> PathBuf {
    let path = scratch().join(name);
    fs::write(&path, input).expect("the input can be written");
    path
}

/// A valid folder in which one file is replaced: the first byte of an input selects the file, the rest is its
/// contents.
pub struct Folder {
    pub root: PathBuf,
    /// Paths and contents, in the order of their names.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

impl Folder {
    /// All files below a folder.
    pub fn of(root: PathBuf) -> Self {
        let mut files = Vec::new();
        collect(&root, &mut files);
        files.sort();
        Self { root, files }
    }

    /// Keeps only the files whose names end like this.
    pub fn only(mut self, ends: &[&str]) -> Self {
        self.files.retain(|(path, _)| ends.iter().any(|end| path.ends_with(end)));
        self
    }

    /// Calls `look` with one file replaced.
    pub fn with(&self, input: &[u8], look: impl FnOnce(&Path, &Path)) {
        let Some((&which, contents)) = input.split_first() else { return };
        let (path, original) = &self.files[usize::from(which) % self.files.len()];
        fs::write(path, contents).expect("the input can be written");
        run(|| look(&self.root, path));
        fs::write(path, original).expect("the file can be restored");
    }

    /// Inputs that leave the folder unchanged.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let numbered = self.files.iter().enumerate();
        numbered.map(|(i, (_, contents))| [&[i as u8][..], contents].concat()).collect()
    }
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if let Ok(contents) = fs::read(&path) {
            files.push((path, contents));
        }
    }
}

//! A fake interpreter that hands out prepared chunks instead of recording.
#![allow(dead_code)] // each test file uses a part of it
#![allow(clippy::unwrap_used)]

use album_data::NpzWriter;
use std::fs;
use std::path::{Path, PathBuf};

/// Prepared chunks of cube-single, and scripts that hand them out.
pub struct Fake {
    pub folder: PathBuf,
}

impl Fake {
    /// Prepares `episodes` training episodes and a tenth as many for validation, in chunks.
    pub fn new(folder: &Path, episodes: usize, rows: usize, chunk: usize) -> Self {
        fs::create_dir_all(folder).unwrap();
        for (prefix, first_value, episodes) in
            [("train", 0.0, episodes), ("validation", 0.5, episodes.div_ceil(10))]
        {
            for first in (0..episodes).step_by(chunk) {
                let count = chunk.min(episodes - first);
                let path = folder.join(format!("{prefix}-{first:06}-{count}.npz"));
                write_chunk(&path, first_value, first * rows, rows, count);
            }
        }
        Self { folder: folder.to_path_buf() }
    }

    /// An interpreter that runs `before` ahead of each chunk, whose name is `$name`, and records the names of
    /// all requested chunks.
    pub fn python(&self, name: &str, before: &str) -> PathBuf {
        let path = self.folder.join(name);
        let store = self.folder.display();
        let script = format!(
            r#"
byte() {{ printf "\\$(printf %03o "$1")"; }}
recorded() {{ printf '\005\000\000\000\000'; }}
# Hello: 28 and 5 numbers, and as many rows as the last argument says.
printf '\001\113\000\000\000ALBUMENV\004\000\000\000\034\000\000\000\005\000\000\000'
byte $(($7 % 256)); byte $(($7 / 256)); printf '\000\000\000\000\000\000'
for bound in 1 2 3 4 5; do printf '\000\000\200\277'; done; for bound in 1 2 3 4 5; do printf '\000\000\200\077'; done
printf 'fake 1\n'
tab=$(printf '\t')
while head -c 5 >/dev/null; IFS="$tab" read -r seeds path; do
  name=${{path##*/}}
  echo "$name" >> "{store}/asked"
  {before}
  for seed in $seeds; do recorded; done
  cp "{store}/$name" "$path.$$" && mv "$path.$$" "$path" && printf '\006\000\000\000\000'
done
"#
        );
        album_testing::script(&path, &script);
        path
    }

    /// Chunks requested since the last call.
    pub fn asked(&self) -> Vec<String> {
        let path = self.folder.join("asked");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(&path);
        text.lines().map(str::to_owned).collect()
    }
}

/// Every number is the index of its row, shifted by `first_value`.
fn write_chunk(path: &Path, first_value: f32, first_row: usize, rows: usize, episodes: usize) {
    let n = rows * episodes;
    let column = |width: usize| -> Vec<f32> {
        (0..n * width).map(|i| first_value + (first_row + i / width) as f32).collect()
    };
    let mut npz = NpzWriter::create_stored(path).unwrap();
    npz.array_f32("observations", &[n, 28], &column(28)).unwrap();
    npz.array_f32("actions", &[n, 5], &vec![0.25; n * 5]).unwrap();
    let terminals: Vec<bool> = (0..n).map(|row| (row + 1) % rows == 0).collect();
    npz.array_bool("terminals", &[n], &terminals).unwrap();
    npz.array_f32("qpos", &[n, 21], &column(21)).unwrap();
    npz.array_f32("qvel", &[n, 20], &column(20)).unwrap();
    npz.finish().unwrap();
}

//! Episodes as animated GIFs.

use crate::error::Error;
use album_base::atomic::AtomicFile;
use album_envs::Frame;
use color_quant::NeuQuant;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::Path;

/// How long the last frame stays, in hundredths of a second.
const PAUSE: u16 = 100;

/// Number of pixels sampled to choose the palette.
const SAMPLE: usize = 40_000;

/// Writes frames as a looping GIF at `fps` frames per second.
///
/// All frames share 256 colours, and each stores only the rectangle that differs from the previous one.
pub fn write_gif(path: &Path, frames: &[Frame], fps: f64) -> Result<(), Error> {
    let refuse = |what: String| Error::Config(format!("{}: {what}", path.display()));
    let Some(first) = frames.first() else {
        return Err(refuse("found no frames; the environment cannot render".into()));
    };
    let (Ok(width), Ok(height)) = (u16::try_from(first.width), u16::try_from(first.height)) else {
        return Err(refuse(format!(
            "found frames of {} x {} pixels, expected at most 65535 x 65535",
            first.width, first.height
        )));
    };
    let bytes = 3 * first.width * first.height;
    if let Some(other) = frames.iter().find(|frame| frame.width != first.width || frame.rgb.len() != bytes) {
        let found = (other.width, other.height);
        return Err(refuse(format!(
            "found frames of {found:?} and of {:?} pixels",
            (first.width, first.height)
        )));
    }
    let mut colours = Colours::of(frames);
    let delay = (100.0 / fps).round().clamp(2.0, 1000.0) as u16;
    let mut file = AtomicFile::create(path).map_err(Error::io(path))?;
    let mut write = || -> Result<(), gif::EncodingError> {
        let mut encoder = gif::Encoder::new(BufWriter::new(&mut file), width, height, &colours.palette())?;
        encoder.set_repeat(gif::Repeat::Infinite)?;
        let mut before = None;
        for (number, frame) in frames.iter().enumerate() {
            let pixels = colours.pixels(frame);
            let (rows, columns) = changed(before.as_deref(), &pixels, frame.width);
            let part = rows.clone().flat_map(|row| &pixels[row * frame.width..][columns.clone()]);
            encoder.write_frame(&gif::Frame {
                delay: if number + 1 == frames.len() { delay.max(PAUSE) } else { delay },
                left: columns.start as u16,
                top: rows.start as u16,
                width: columns.len() as u16,
                height: rows.len() as u16,
                buffer: Cow::Owned(part.copied().collect()),
                ..gif::Frame::default()
            })?;
            before = Some(pixels);
        }
        encoder.into_inner()?.flush()?;
        Ok(())
    };
    write().map_err(|e| Error::Io { what: path.display().to_string(), source: std::io::Error::other(e) })?;
    file.commit().map_err(Error::io(path))
}

/// The rectangle that differs from the previous frame; the whole frame for the first. Never empty.
fn changed(
    before: Option<&[u8]>,
    now: &[u8],
    width: usize,
) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    let Some(before) = before else { return (0..now.len() / width, 0..width) };
    let places: Vec<usize> = (0..now.len()).filter(|&place| before[place] != now[place]).collect();
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return (0..1, 0..1) };
    let columns = || places.iter().map(|place| place % width);
    let (left, right) = (columns().min().unwrap_or(0), columns().max().unwrap_or(0));
    (first / width..last / width + 1, left..right + 1)
}

/// A palette, with a cache of the nearest palette index for each colour seen.
struct Colours {
    palette: NeuQuant,
    nearest: HashMap<[u8; 3], u8>,
}

impl Colours {
    fn of(frames: &[Frame]) -> Self {
        let pixels: usize = frames.iter().map(|frame| frame.rgb.len() / 3).sum();
        let all = frames.iter().flat_map(|frame| frame.rgb.as_chunks::<3>().0);
        let sample: Vec<u8> =
            all.step_by(pixels.div_ceil(SAMPLE).max(1)).flat_map(|&[r, g, b]| [r, g, b, 255]).collect();
        Self { palette: NeuQuant::new(3, 256, &sample), nearest: HashMap::new() }
    }

    fn palette(&self) -> Vec<u8> {
        self.palette.color_map_rgb()
    }

    /// The palette index of each pixel of a frame.
    fn pixels(&mut self, frame: &Frame) -> Vec<u8> {
        let Self { palette, nearest } = self;
        let mut place = |&[r, g, b]: &[u8; 3]| {
            *nearest.entry([r, g, b]).or_insert_with(|| palette.index_of(&[r, g, b, 255]) as u8)
        };
        frame.rgb.as_chunks::<3>().0.iter().map(&mut place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disc that moves over a shaded background.
    fn frame(time: usize) -> Frame {
        let (width, height) = (60_usize, 40_usize);
        let rgb = (0..width * height).flat_map(|place| {
            let (x, y) = (place % width, place / width);
            let (dx, dy) = (x.abs_diff(10 + 3 * time), y.abs_diff(20));
            if dx * dx + dy * dy < 50 { [250, 60, 30] } else { [(2 * x) as u8, (4 * y) as u8, 120] }
        });
        Frame { width, height, rgb: rgb.collect() }
    }

    /// What a viewer shows after each frame.
    fn shown(path: &Path) -> (Vec<Vec<u8>>, Vec<u16>) {
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(std::fs::File::open(path).unwrap()).unwrap();
        let width = decoder.width() as usize;
        let mut screen = vec![0; 3 * width * decoder.height() as usize];
        let (mut screens, mut delays) = (Vec::new(), Vec::new());
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            for (place, pixel) in frame.buffer.as_chunks::<4>().0.iter().enumerate() {
                let (x, y) = (place % frame.width as usize, place / frame.width as usize);
                let at = 3 * ((y + frame.top as usize) * width + x + frame.left as usize);
                screen[at..at + 3].copy_from_slice(&pixel[..3]);
            }
            screens.push(screen.clone());
            delays.push(frame.delay);
        }
        (screens, delays)
    }

    #[test]
    fn a_viewer_sees_the_frames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("episode.gif");
        // The third frame equals the second: nothing changes.
        let frames = [frame(0), frame(1), frame(1), frame(5), frame(9)];
        write_gif(&path, &frames, 20.0).unwrap();
        let (screens, delays) = shown(&path);
        assert_eq!(delays, [5, 5, 5, 5, 100]);
        for (screen, frame) in screens.iter().zip(&frames) {
            let error = screen.iter().zip(&frame.rgb).map(|(&a, &b)| u64::from(a.abs_diff(b))).sum::<u64>();
            assert!(
                error as f64 / (frame.rgb.len() as f64) < 4.0,
                "mean error {error} / {}",
                frame.rgb.len()
            );
        }
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(size < 12_000, "{size} bytes");
    }

    #[test]
    fn small_and_plain_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dot.gif");
        write_gif(&path, &[Frame { width: 1, height: 1, rgb: vec![0, 0, 0] }], 1000.0).unwrap();
        let (screens, delays) = shown(&path);
        assert_eq!((screens.len(), &delays[..]), (1, &[100][..]));
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("episode.gif");
        let message = write_gif(&path, &[], 10.0).unwrap_err().to_string();
        assert!(message.ends_with("found no frames; the environment cannot render"));
        let other = Frame { width: 2, height: 1, rgb: vec![0; 6] };
        let message = write_gif(&path, &[frame(0), other], 10.0).unwrap_err().to_string();
        assert!(message.contains("found frames of (2, 1) and of (60, 40) pixels"), "{message}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

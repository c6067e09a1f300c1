//! The messages between album and its workers; [`python`](super) documents them.

use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use album_data::ActionSpace;

use crate::env::{EnvShape, FRAME_INTERVAL, Frame, Step};

/// The version of the protocol.
pub const PROTOCOL: u32 = 4;

const MAGIC: &[u8; 8] = b"ALBUMENV";

/// Room for frames of 800 x 800 pixels; OGBench's have 200 x 200.
const LONGEST_BODY: u32 = 1 << 21;

/// Indices must be exact in an `f32`.
const MOST_CHOICES: usize = 1 << 24;

/// Bytes of kind and length.
const HEADER: usize = 5;

/// The capacity of a pipe.
const READ_AT_ONCE: usize = 1 << 16;

/// How many bytes of an invalid message are quoted.
const QUOTED: usize = 65;

/// A worker's description of its suite.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Hello {
    pub shape: EnvShape,
    /// Packages with their versions, in the suite's order, `python` last.
    pub versions: Vec<(String, String)>,
}

impl Hello {
    /// The packages in one line, such as `ogbench-1.2.2 mujoco-4.0.0`.
    pub fn packages(&self) -> String {
        let packages = self.versions.iter().filter(|(name, _)| name != "python");
        packages.map(|(name, version)| format!("{name}-{version}")).collect::<Vec<_>>().join(" ")
    }
}

/// Why a worker gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A new worker can repeat the episodes.
    EpisodeLost,
    /// A module is missing.
    NoModule,
    /// A new worker would fail in the same way.
    Hopeless,
}

/// A message from a worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Hello(Hello),
    Started {
        environment: usize,
        observation: Vec<f32>,
        frame: Option<Frame>,
    },
    Stepped {
        environment: usize,
        step: Step,
    },
    /// An episode of the requested file is recorded.
    Recorded,
    /// The file is complete.
    Written,
    Error(Cause, String),
}

/// Why there are no more messages.
#[derive(Debug, PartialEq)]
pub(super) enum Broken {
    /// The worker closed its output.
    Ended,
    /// The worker's protocol differs from [`PROTOCOL`].
    OtherProtocol(u32),
    /// The worker sent an invalid message. The text says what was found and expected.
    Garbage(String),
}

/// Writes a reset into `buffer`, replacing its contents.
pub(super) fn reset(buffer: &mut Vec<u8>, environment: usize, seed: u64, frames: bool) {
    header(buffer, 1, 16);
    buffer.extend((environment as u32).to_le_bytes());
    buffer.extend(seed.to_le_bytes());
    buffer.extend(if frames { FRAME_INTERVAL } else { 0 }.to_le_bytes());
}

/// Writes a step into `buffer`, replacing its contents. The action is clipped here, because clipping in NumPy
/// costs more than the rest of a message.
pub(super) fn step(buffer: &mut Vec<u8>, environment: usize, action: &[f32], space: &ActionSpace) {
    header(buffer, 2, 4 + 4 * action.len());
    buffer.extend((environment as u32).to_le_bytes());
    match space {
        ActionSpace::Continuous { low, high } => {
            let bounds = low.iter().zip(high);
            buffer.extend(
                action.iter().zip(bounds).flat_map(|(x, (&low, &high))| x.clamp(low, high).to_le_bytes()),
            );
        }
        ActionSpace::Discrete { .. } => buffer.extend(action.iter().flat_map(|x| x.to_le_bytes())),
    }
}

/// A request to record an episode for each seed into one file.
pub(crate) fn record_request(seeds: &[u64], path: &Path) -> Vec<u8> {
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let line = [seeds.join(" ").as_bytes(), b"\t", path.as_os_str().as_bytes(), b"\n"].concat();
    let mut request = Vec::new();
    header(&mut request, 3, line.len());
    request.extend(line);
    request
}

fn header(buffer: &mut Vec<u8>, kind: u8, length: usize) {
    buffer.clear();
    buffer.push(kind);
    buffer.extend((length as u32).to_le_bytes());
}

/// Splits a worker's output into messages.
#[derive(Debug)]
pub(super) struct Reader {
    /// Observation dimension, from the hello.
    observation_dim: usize,
    /// The target of reads.
    buffer: Vec<u8>,
    /// What was read.
    bytes: Vec<u8>,
    /// Number of these bytes that belong to messages already returned.
    taken: usize,
    ended: bool,
}

impl Reader {
    pub fn new() -> Self {
        Self { observation_dim: 0, buffer: vec![0; READ_AT_ONCE], bytes: Vec::new(), taken: 0, ended: false }
    }

    /// Reads once; blocks only if nothing is available.
    pub fn read(&mut self, mut from: impl Read) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        match from.read(&mut self.buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => self.ended = true,
            Ok(read) => self.bytes.extend_from_slice(&self.buffer[..read]),
        }
    }

    /// The next message, if it is complete.
    pub fn next(&mut self) -> Option<Result<Message, Broken>> {
        let bytes = &self.bytes[self.taken..];
        let Some((&[kind, ref length @ ..], rest)) = bytes.split_first_chunk::<HEADER>() else {
            return self.ended.then(|| match bytes {
                [] => Err(Broken::Ended),
                text => Err(garbage(format_args!("`{}`", text.escape_ascii()))),
            });
        };
        let length = u32::from_le_bytes(*length);
        if !(1..=6).contains(&kind) || length > LONGEST_BODY {
            // Most likely printed text, of which some is quoted.
            let text = &bytes[..bytes.len().min(QUOTED)];
            return Some(Err(garbage(format_args!("`{}`", text.escape_ascii()))));
        }
        let Some(body) = rest.get(..length as usize) else {
            let found = rest.len();
            return self.ended.then(|| Err(garbage(format_args!("{found} bytes of a message of {length}"))));
        };
        self.taken += HEADER + body.len();
        let message = parse(kind, body, self.observation_dim);
        if let Ok(Message::Hello(hello)) = &message {
            self.observation_dim = hello.shape.observation_dim;
        }
        Some(message)
    }
}

fn parse(kind: u8, body: &[u8], observation_dim: usize) -> Result<Message, Broken> {
    let mut body = Body(body);
    match kind {
        1 => hello(&mut body).map(Message::Hello),
        2 => {
            let environment = body.u32()? as usize;
            let observation = body.numbers(observation_dim)?;
            Ok(Message::Started { environment, observation, frame: body.frame()? })
        }
        3 => {
            let environment = body.u32()? as usize;
            let reward = f64::from_le_bytes(body.take()?);
            let [flags] = body.take()?;
            if flags > 15 {
                return Err(garbage(format_args!("flags {flags}, expected at most 15")));
            }
            let step = Step {
                reward,
                terminated: flags & 1 != 0,
                truncated: flags & 2 != 0,
                success: (flags & 8 == 0).then_some(flags & 4 != 0),
                observation: body.numbers(observation_dim)?,
                frame: body.frame()?,
            };
            Ok(Message::Stepped { environment, step })
        }
        5 => Ok(Message::Recorded),
        6 => Ok(Message::Written),
        _ => {
            let cause = match body.take()? {
                [0] => Cause::EpisodeLost,
                [1] => Cause::NoModule,
                _ => Cause::Hopeless,
            };
            Ok(Message::Error(cause, String::from_utf8_lossy(body.0).into_owned()))
        }
    }
}

fn hello(body: &mut Body<'_>) -> Result<Hello, Broken> {
    let magic: [u8; 8] = body.take()?;
    if &magic != MAGIC {
        return Err(garbage(format_args!("`{}`", magic.escape_ascii())));
    }
    let protocol = body.u32()?;
    if protocol != PROTOCOL {
        return Err(Broken::OtherProtocol(protocol));
    }
    let mut number = || body.u32().map(|n| n as usize);
    let (observation_dim, action_dim, horizon, choices) = (number()?, number()?, number()?, number()?);
    let actions = match choices {
        0 => continuous(body, action_dim)?,
        n if action_dim == 1 && n <= MOST_CHOICES => ActionSpace::Discrete { n },
        n => return Err(garbage(format_args!("{n} discrete actions of dimension {action_dim}"))),
    };
    let lines = String::from_utf8_lossy(body.0);
    let versions = lines.lines().filter_map(|line| line.split_once(' '));
    let versions = versions.map(|(name, version)| (name.to_owned(), version.to_owned())).collect();
    Ok(Hello { shape: EnvShape { observation_dim, actions, horizon }, versions })
}

fn continuous(body: &mut Body<'_>, dim: usize) -> Result<ActionSpace, Broken> {
    let (low, high) = (body.numbers(dim)?, body.numbers(dim)?);
    match low.iter().zip(&high).find(|(low, high)| !(low <= high)) {
        Some((low, high)) => Err(garbage(format_args!("actions from {low} to {high}"))),
        None => Ok(ActionSpace::Continuous { low, high }),
    }
}

fn garbage(found: std::fmt::Arguments<'_>) -> Broken {
    Broken::Garbage(format!("found {found}, expected a message of album's protocol {PROTOCOL}"))
}

/// The rest of a message's body.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let short = || garbage(format_args!("a message that ends {} bytes early", N - self.0.len()));
        let (first, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u32(&mut self) -> Result<u32, Broken> {
        self.take().map(u32::from_le_bytes)
    }

    fn numbers(&mut self, count: usize) -> Result<Vec<f32>, Broken> {
        let Some((bytes, rest)) = self.0.split_at_checked(count.saturating_mul(4)) else {
            let found = self.0.len() / 4;
            return Err(garbage(format_args!("{found} numbers instead of {count}")));
        };
        self.0 = rest;
        let (numbers, _) = bytes.as_chunks();
        Ok(numbers.iter().map(|&number| f32::from_le_bytes(number)).collect())
    }

    fn frame(&mut self) -> Result<Option<Frame>, Broken> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (width, height) = (self.u32()?, self.u32()?);
        // Both fit in 32 bits, so the product of two and 3 fits in 128.
        if self.0.len() as u128 != 3 * u128::from(width) * u128::from(height) {
            let found = self.0.len();
            return Err(garbage(format_args!("a frame of {width} x {height} pixels with {found} bytes")));
        }
        let (width, height) = (width as usize, height as usize);
        Ok(Some(Frame { width, height, rgb: std::mem::take(&mut self.0).to_vec() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32).to_le_bytes(), body].concat()
    }

    fn read(bytes: &[u8]) -> Result<Message, Broken> {
        let mut reader = Reader { observation_dim: 2, ..Reader::new() };
        reader.read(bytes);
        reader.read(&[][..]);
        reader.next().unwrap()
    }

    fn found(bytes: &[u8]) -> String {
        match read(bytes).unwrap_err() {
            Broken::Garbage(text) => text,
            other => panic!("{other:?}"),
        }
    }

    fn greeting(protocol: u32) -> Vec<u8> {
        let numbers: Vec<u8> = [protocol, 2, 1, 200, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
        let bounds: Vec<u8> = [-2.0_f32, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        message(
            1,
            &[b"ALBUMENV", &numbers[..], &bounds, b"ogbench 1.2.2\nmujoco 4.0.0\npython 3.11\n"].concat(),
        )
    }

    #[test]
    fn hello_is_understood() {
        let Message::Hello(hello) = read(&greeting(PROTOCOL)).unwrap() else { panic!() };
        let actions = ActionSpace::Continuous { low: vec![-2.0], high: vec![3.0] };
        assert_eq!(hello.shape, EnvShape { observation_dim: 2, actions, horizon: 200 });
        assert_eq!(hello.packages(), "ogbench-1.2.2 mujoco-4.0.0");
        assert_eq!(read(&greeting(1)), Err(Broken::OtherProtocol(1)));
    }

    #[test]
    fn answers_are_understood() {
        let observation: Vec<u8> = [0.5_f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let started = Message::Started { environment: 1, observation: vec![0.5, -2.0], frame: None };
        assert_eq!(read(&message(2, &[&[1, 0, 0, 0], &observation[..]].concat())).unwrap(), started);
        let picture = [&1_u32.to_le_bytes()[..], &2_u32.to_le_bytes(), &[1, 2, 3, 4, 5, 6]].concat();
        let body = [&[2, 0, 0, 0][..], &(-1.0_f64).to_le_bytes(), &[0b101], &observation, &picture].concat();
        let step = Step {
            observation: vec![0.5, -2.0],
            reward: -1.0,
            terminated: true,
            truncated: false,
            success: Some(true),
            frame: Some(Frame { width: 1, height: 2, rgb: vec![1, 2, 3, 4, 5, 6] }),
        };
        assert_eq!(read(&message(3, &body)).unwrap(), Message::Stepped { environment: 2, step });
        assert_eq!(read(&message(5, b"")).unwrap(), Message::Recorded);
        assert_eq!(read(&message(6, b"")).unwrap(), Message::Written);
        assert_eq!(
            read(&message(4, b"\x01ogbench")).unwrap(),
            Message::Error(Cause::NoModule, "ogbench".into())
        );
    }

    #[test]
    fn requests_are_as_documented() {
        let mut buffer = vec![9; 9];
        reset(&mut buffer, 1, 0x0102, true);
        assert_eq!(buffer, [1, 16, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        step(&mut buffer, 0, &[1.5], &ActionSpace::unit(1));
        assert_eq!(buffer, [2, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 63]);
        step(&mut buffer, 0, &[2.0], &ActionSpace::Discrete { n: 3 });
        assert_eq!(buffer, [2, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64]);
        let request = record_request(&[7, u64::MAX], Path::new("/a/b.npz"));
        assert_eq!(request, b"\x03\x20\0\0\x007 18446744073709551615\t/a/b.npz\n");
    }

    #[test]
    fn nonsense_is_named() {
        assert_eq!(read(b""), Err(Broken::Ended));
        assert!(found(b"Warning: hi\n").starts_with("found `Warning: hi\\n`, expected a message of album's"));
        assert!(found(&[3, 255, 255, 255, 255]).contains("\\xff"));
        assert!(found(&message(2, &[0; 8])).contains("found 1 numbers instead of 2"));
        assert!(found(&message(2, &[0; 13])).contains("ends 3 bytes early"));
        assert!(found(&message(3, &[0; 12])).contains("ends 1 bytes early"));
        assert!(found(&message(2, &[9; 22])).contains("pixels with 2 bytes"));
        assert!(found(&greeting(PROTOCOL)[..9]).contains("found 4 bytes of a message of"));
        assert!(found(&message(1, b"ALBUMENW\0")).contains("`ALBUMENW`"));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let whole = greeting(PROTOCOL);
        for end in 0..whole.len() {
            for flip in 0..whole.len() {
                let mut bytes = whole[..end].to_vec();
                if let Some(byte) = bytes.get_mut(flip) {
                    *byte ^= 0x81;
                }
                let _ = read(&bytes);
            }
        }
    }
}

//! `album data fetch` against servers that break off, stall, lie and change their files.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::common;

use album_data::NpzWriter;
use common::snapshot;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NAME: &str = "pointmaze-medium-stitch-v0";
const TRAIN: &str = "pointmaze-medium-stitch-v0.npz";
const VALIDATION: &str = "pointmaze-medium-stitch-v0-val.npz";

/// A file in the official layout; its size depends only on the number of rows.
fn data_file(rows: usize, seed: f32) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.npz");
    let mut npz = NpzWriter::create_stored(&path).unwrap();
    let numbers: Vec<f32> = (0..2 * rows).map(|i| (i as f32 * 0.37 + seed).sin()).collect();
    let terminals: Vec<bool> = (1..=rows).map(|i| i % 11 == 0 || i == rows).collect();
    npz.array_f32("observations", &[rows, 2], &numbers).unwrap();
    npz.array_f32("actions", &[rows, 2], &numbers).unwrap();
    npz.array_bool("terminals", &[rows], &terminals).unwrap();
    npz.array_f32("qpos", &[rows, 2], &numbers).unwrap();
    npz.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// How a server answers one request for the training file.
#[derive(Clone)]
struct Answer {
    status: u16,
    body: Vec<u8>,
    etag: &'static str,
    /// `None`: until the connection closes.
    length: Option<usize>,
    /// Sends only this many bytes, then waits before it closes the connection.
    breaks_at: usize,
    stalls: Duration,
    /// Serves ranges, and the whole file if `If-Range` names another ETag.
    ranges: bool,
}

fn whole(body: &[u8], etag: &'static str) -> Answer {
    let (length, stalls) = (Some(body.len()), Duration::ZERO);
    Answer { status: 200, body: body.to_vec(), etag, length, breaks_at: usize::MAX, stalls, ranges: true }
}

fn status(status: u16) -> Answer {
    Answer { status, ..whole(b"<html>no</html>", "") }
}

struct Server {
    base: String,
    /// The headers of each request for the training file.
    requests: Arc<Mutex<Vec<String>>>,
}

/// Answers the n-th request for the training file with the n-th answer, repeating the last one, and always
/// serves the validation file correctly.
fn serve(answers: Vec<Answer>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/data", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::<String>::new()));
    let seen = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let head = head.join("\n").to_lowercase();
            let mut answer = whole(&data_file(22, 1.0), "\"val\"");
            if !head.contains("-val.npz") {
                let mut seen = seen.lock().unwrap();
                answer = answers[seen.len().min(answers.len() - 1)].clone();
                seen.push(head.clone());
            }
            // One thread per connection: one may stall while the next arrives.
            std::thread::spawn(move || answer.send(&head, &mut stream));
        }
    });
    Server { base, requests }
}

impl Answer {
    fn send(mut self, head: &str, stream: &mut impl Write) -> std::io::Result<()> {
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let from: Option<usize> =
            header("range: bytes=").map(|range| range.trim_matches('-').parse().unwrap());
        let same = header("if-range: ").is_none_or(|etag| etag == self.etag);
        let total = self.body.len();
        let mut range = String::new();
        if let Some(from) = from.filter(|from| self.ranges && same && *from < total) {
            self.status = 206;
            self.body.drain(..from);
            self.length = Some(self.body.len());
            range = format!("Content-Range: bytes {from}-{}/{total}\r\n", total - 1);
        }
        let length = self.length.map_or(String::new(), |length| format!("Content-Length: {length}\r\n"));
        let etag = if self.etag.is_empty() { String::new() } else { format!("ETag: {}\r\n", self.etag) };
        write!(stream, "HTTP/1.1 {} -\r\nConnection: close\r\n{length}{etag}{range}\r\n", self.status)?;
        stream.write_all(&self.body[..self.breaks_at.min(self.body.len())])?;
        stream.flush()?;
        std::thread::sleep(self.stalls);
        Ok(())
    }
}

impl Server {
    /// Where each request for the training file began.
    fn ranges(&self) -> Vec<usize> {
        let start = |head: &String| {
            let range = head.lines().find_map(|line| line.strip_prefix("range: bytes="))?;
            range.trim_matches('-').parse().ok()
        };
        self.requests.lock().unwrap().iter().map(|head| start(head).unwrap_or(0)).collect()
    }
}

fn command(folder: &Path, base: &str, patience: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_album"));
    command
        .args(["data", "fetch", NAME, "--json", "--patience", patience, "--from", base, "--out"])
        .arg(folder);
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(proxy).env_remove(proxy.to_lowercase());
    }
    command.env_remove("ALBUM_DATA_URL").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn fetch(folder: &Path, server: &Server) -> Output {
    command(folder, &server.base, "0.6").output().unwrap()
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Fetches both files and compares the training file with its expected contents.
fn succeeds(folder: &Path, server: &Server, train: &[u8]) -> Value {
    let output = fetch(folder, server);
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    let expected = [VALIDATION, TRAIN].map(|file| [file.to_owned(), format!("{file}.json")]).concat();
    assert_eq!(names(folder), expected);
    assert!(std::fs::read(folder.join(TRAIN)).unwrap() == train, "other bytes than the server's");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A fetch that fails with this exit code and a message containing these words.
fn fails(folder: &Path, server: &Server, code: i32, words: &[&str]) {
    let output = fetch(folder, server);
    let message = message(&output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(output.stdout.is_empty(), "printed a result");
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn part(folder: &Path) -> Vec<u8> {
    assert_eq!(names(folder), [format!("{TRAIN}.part"), format!("{TRAIN}.part.json")]);
    std::fs::read(folder.join(format!("{TRAIN}.part"))).unwrap()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn both_files_arrive_once_with_their_records() {
    let (folder, file) = (folder(), data_file(500, 0.0));
    let server = serve(vec![whole(&file, "\"one\"")]);
    let report = succeeds(folder.path(), &server, &file);
    let record = std::fs::read(folder.path().join(format!("{TRAIN}.json"))).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    for (key, expected) in [("url", format!("{}/{TRAIN}", server.base).into()), ("size", file.len().into())] {
        assert_eq!((&record[key], &report["files"][0][key]), (&expected, &expected));
    }
    let sum = Command::new("sha256sum").arg(folder.path().join(TRAIN)).output().unwrap();
    assert!(String::from_utf8_lossy(&sum.stdout).starts_with(record["sha256"].as_str().unwrap()));

    let before = snapshot(folder.path());
    let again = succeeds(folder.path(), &server, &file);
    assert_eq!(again["files"][0]["kept"], true);
    assert_eq!(server.ranges(), [0]);
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn breaks_and_silence_are_resumed() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let stalls = Answer { breaks_at: 500, stalls: Duration::from_secs(3), ..whole(&file, "\"one\"") };
    let breaks = Answer { breaks_at: 10_000, ..whole(&file, "\"one\"") };
    let server = serve(vec![status(503), stalls, breaks, whole(&file, "\"one\"")]);
    succeeds(folder.path(), &server, &file);
    assert_eq!(server.ranges(), [0, 0, 500, 10_500]);
    assert!(server.requests.lock().unwrap()[2].contains("if-range: \"one\""));
}

#[test]
fn the_next_call_resumes_and_another_address_does_not() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let first = Answer { breaks_at: 10_000, ..whole(&file, "\"one\"") };
    let nothing = Answer { breaks_at: 0, ..first.clone() };
    let mut answers = vec![first];
    answers.extend(vec![nothing; 4]);
    answers.push(Answer { etag: "", ..status(200) }); // a captive portal's log-in page
    answers.push(whole(&file, "\"one\""));
    let server = serve(answers);
    fails(folder.path(), &server, 5, &[TRAIN, "5 attempts", "10000 bytes are in", "resumes", "--from"]);
    assert!(part(folder.path()) == file[..10_000]);
    fails(folder.path(), &server, 3, &["begins with `<html>", "expected a zip file"]);
    assert!(part(folder.path()) == file[..10_000]);
    let other = tempfile::tempdir().unwrap();
    for name in names(folder.path()) {
        std::fs::copy(folder.path().join(&name), other.path().join(&name)).unwrap();
    }
    succeeds(folder.path(), &server, &file);
    assert_eq!(server.ranges().last(), Some(&10_000));
    let mirror = serve(vec![whole(&file, "\"one\"")]);
    succeeds(other.path(), &mirror, &file);
    assert_eq!(mirror.ranges(), [0]);
}

#[test]
fn a_file_that_changed_starts_over() {
    let (old, new) = (data_file(3000, 0.0), data_file(2500, 5.0));
    // A new version is recognised by its ETag, or by its length where the server ignores If-Range.
    for etag in ["\"new\"", "\"old\""] {
        let folder = folder();
        let first = Answer { breaks_at: 10_000, ..whole(&old, "\"old\"") };
        let server = serve(vec![first, whole(&new, etag)]);
        succeeds(folder.path(), &server, &new);
        assert_eq!(server.ranges()[1], 10_000);
    }
}

#[test]
fn a_part_that_cannot_be_resumed_is_removed() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    // Without an ETag or date, the rest may belong to another version of the file.
    let server = serve(vec![Answer { breaks_at: 10_000, ..whole(&file, "") }]);
    fails(folder.path(), &server, 5, &["nothing was kept"]);
    assert_eq!(server.ranges(), [0; 5]);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn what_is_no_data_file_leaves_everything_as_it_was() {
    let good = data_file(1000, 0.0);
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 0x10;
    let huge = Answer { length: Some(1 << 60), ..whole(&good, "") };
    let longer = Answer { length: Some(good.len() - 1000), ..whole(&good, "") };
    for (answer, code, words) in [
        (whole(b"<!DOCTYPE html>", ""), 3, vec!["expected a zip file", "--from"]),
        (whole(b"", ""), 3, vec!["expected a zip file"]),
        (whole(&good[..good.len() - 7], ""), 3, vec!["damaged archive", "nothing was kept"]),
        (whole(&flipped, ""), 3, vec!["CRC-32"]),
        (longer, 3, vec!["damaged archive"]), // read up to the announced length
        (huge, 5, vec!["needs 1152921504606846976 bytes"]),
        (status(404), 5, vec!["404 Not Found", "--from"]),
        (status(500), 5, vec!["500 Internal Server Error", "5 attempts", "nothing was kept"]),
    ] {
        let folder = folder();
        std::fs::write(folder.path().join("other"), "kept").unwrap();
        let before = snapshot(folder.path());
        fails(folder.path(), &serve(vec![answer]), code, &[&words[..], &[TRAIN]].concat());
        assert_eq!(snapshot(folder.path()), before);
    }
}

#[test]
fn files_that_are_there_are_not_replaced() {
    let (folder, file, own) = (folder(), data_file(300, 0.0), data_file(200, 3.0));
    let server = serve(vec![whole(&file, "")]);
    std::fs::write(folder.path().join(TRAIN), "not mine").unwrap();
    let before = snapshot(folder.path());
    fails(folder.path(), &server, 3, &[TRAIN, "existed already", "delete it"]);
    assert_eq!(snapshot(folder.path()), before);

    std::fs::remove_file(folder.path().join(TRAIN)).unwrap();
    let first = succeeds(folder.path(), &server, &file);
    std::fs::write(folder.path().join(TRAIN), &own).unwrap();
    let again = succeeds(folder.path(), &server, &own);
    assert_eq!(again["files"][0]["earlier_sha256"], first["files"][0]["sha256"]);
}

#[test]
fn bad_addresses_and_credentials() {
    let (folder, file) = (folder(), data_file(300, 0.0));
    for base in
        ["ftp://h/data", "127.0.0.1/data", "http://", "http:///data", "http://a b/data", "http://h/d?x=y"]
    {
        let output = command(folder.path(), base, "1").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{base}: {}", message(&output));
        assert!(message(&output).contains("ALBUM_DATA_URL"), "{}", message(&output));
    }
    let server = serve(vec![Answer { breaks_at: 500, ..whole(&file, "\"one\"") }, status(403)]);
    let secret = server.base.replace("http://", "http://me:hidden@");
    let output = command(folder.path(), &secret, "1").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(server.requests.lock().unwrap()[0].contains("authorization: basic"));
    let stored = std::fs::read_to_string(folder.path().join(format!("{TRAIN}.part.json"))).unwrap();
    assert!(stored.contains(&server.base));
    assert!(!format!("{stored}{}", message(&output)).contains("hidden"));
}

#[test]
fn the_cache_is_where_train_looks() {
    let (cache, file) = (folder(), data_file(300, 0.0));
    let server = serve(vec![whole(&file, "")]);
    let output = Command::new(env!("CARGO_BIN_EXE_album"))
        .args(["data", "fetch", "pointmaze-medium-stitch-singletask-task2-v0"])
        .env("ALBUM_CACHE", cache.path())
        .env("ALBUM_DATA_URL", format!("{}/", server.base))
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("sha256"));
    assert!(cache.path().join(TRAIN).is_file());
    // `album train` finds the file by itself.
    assert!(!message(&output).contains("--data"), "{}", message(&output));
}

/// Starts a fetch from a server that stalls after 10,000 bytes, and waits until they have arrived.
fn stalled(folder: &Path, server: &Server) -> std::process::Child {
    let mut child = command(folder, &server.base, "30").spawn().unwrap();
    let since = Instant::now();
    while !folder.join(format!("{TRAIN}.part")).metadata().is_ok_and(|part| part.len() == 10_000) {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing arrives");
        assert!(child.try_wait().unwrap().is_none(), "ended early");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[cfg(unix)]
#[test]
fn signals_end_it_at_once_and_nothing_is_lost() {
    for (signal, code) in [("-INT", Some(75)), ("-TERM", Some(75)), ("-KILL", None)] {
        let (folder, file) = (folder(), data_file(3000, 0.0));
        let silent = Answer { breaks_at: 10_000, stalls: Duration::from_secs(20), ..whole(&file, "\"one\"") };
        let server = serve(vec![silent, whole(&file, "\"one\"")]);
        let child = stalled(folder.path(), &server);
        let since = Instant::now();
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert!(since.elapsed() < Duration::from_secs(15));
        assert_eq!(output.status.code(), code);
        assert!(code.is_none() || message(&output).contains("the same command resumes"));
        assert!(part(folder.path()) == file[..10_000]);
        succeeds(folder.path(), &server, &file);
        assert_eq!(server.ranges(), [0, 10_000]);
    }
}

#[test]
fn two_at_once_download_once_and_one_takes_over_from_one_that_dies() {
    for dies in [false, true] {
        let (folder, file) = (folder(), data_file(3000, 0.0));
        let stalls = Duration::from_secs(if dies { 20 } else { 2 });
        let server = serve(vec![
            Answer { breaks_at: 10_000, stalls, ..whole(&file, "\"one\"") },
            whole(&file, "\"one\""),
        ]);
        let mut first = stalled(folder.path(), &server);
        let mut second = command(folder.path(), &server.base, "1").spawn().unwrap();
        let mut line = String::new();
        BufReader::new(second.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("waiting"), "{line}");
        if dies {
            first.kill().unwrap();
        }
        let output = first.wait_with_output().unwrap();
        assert!(dies || output.status.success(), "{}", message(&output));
        assert!(second.wait().unwrap().success());
        assert_eq!(server.ranges(), [0, 10_000]);
        succeeds(folder.path(), &server, &file);
    }
}

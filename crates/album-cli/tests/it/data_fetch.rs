//! `album data fetch` against a server on this machine that does what servers do: break off, lie, stall, change.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::common;

use album_data::NpzWriter;
use common::snapshot;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NAME: &str = "pointmaze-medium-stitch-v0";
const TRAIN: &str = "pointmaze-medium-stitch-v0.npz";
const VALIDATION: &str = "pointmaze-medium-stitch-v0-val.npz";

/// An official-looking file of so many rows.
fn data_file(rows: usize, seed: f32) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.npz");
    // Stored, not deflated, so that its size follows from the rows.
    let mut npz = NpzWriter::create_stored(&path).unwrap();
    let numbers: Vec<f32> = (0..2 * rows).map(|i| (i as f32 * 0.37 + seed).sin()).collect();
    let terminals: Vec<bool> = (1..=rows).map(|i| i % 11 == 0 || i == rows).collect();
    npz.array_f32("observations", &[rows, 2], &numbers).unwrap();
    npz.array_f32("actions", &[rows, 2], &numbers).unwrap();
    npz.array_bool("terminals", &[rows], &terminals).unwrap();
    npz.array_f32("qpos", &[rows, 2], &numbers).unwrap();
    npz.array_f32("qvel", &[rows, 2], &numbers).unwrap();
    npz.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// What the server was asked.
#[derive(Clone, Debug, PartialEq)]
struct Request {
    path: String,
    range: Option<usize>,
    if_range: Option<String>,
}

/// What the server answers.
#[derive(Clone, Default)]
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Sent instead of the body's length; an empty text sends none.
    length: Option<String>,
    /// Bytes of the body after which the connection ends.
    breaks_at: Option<usize>,
    /// How long the connection stays open, silent, after what was sent.
    stalls: Duration,
}

impl Answer {
    fn new(status: u16, body: &[u8]) -> Self {
        Answer { status, body: body.to_vec(), ..Answer::default() }
    }

    /// As servers of files answer: the rest where a rest was asked for, unless the ETag is another.
    fn file(request: &Request, body: &[u8], etag: Option<&str>) -> Self {
        let same = request.if_range.is_none() || request.if_range.as_deref() == etag;
        let mut answer = match request.range {
            Some(from) if same && from >= body.len() => {
                let mut answer = Answer::new(416, b"");
                answer.headers.push(("Content-Range", format!("bytes */{}", body.len())));
                answer
            }
            Some(from) if same => {
                let mut answer = Answer::new(206, &body[from..]);
                let last = body.len() - 1;
                answer.headers.push(("Content-Range", format!("bytes {from}-{last}/{}", body.len())));
                answer
            }
            _ => Answer::new(200, body),
        };
        answer.headers.extend(etag.map(|etag| ("ETag", etag.to_owned())));
        answer
    }

    fn send(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Whatever\r\nConnection: close\r\n", self.status);
        match self.length.as_deref() {
            None => head += &format!("Content-Length: {}\r\n", self.body.len()),
            Some("") => {}
            Some(length) => head += &format!("Content-Length: {length}\r\n"),
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(head.as_bytes())?;
        stream.write_all(b"\r\n")?;
        stream.write_all(&self.body[..self.breaks_at.unwrap_or(self.body.len())])?;
        stream.flush()?;
        std::thread::sleep(self.stalls);
        Ok(())
    }
}

/// A server; it lives as long as the test.
struct Server {
    base: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// `answer` is given each request, and how many there were for the same file before.
    fn new(answer: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/data", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let request = read_request(&stream);
                    let before = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.iter().filter(|other| other.path == request.path).count() - 1
                    };
                    // The client may have gone.
                    let _ = answer(&request, before).send(&mut stream);
                });
            }
        });
        Server { base, requests }
    }

    /// A server that behaves well about the validation file, and about the training file as told.
    fn of_train(answer: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Self {
        let validation = data_file(20, 1.0);
        Server::new(move |request, before| {
            if request.path.ends_with("-val.npz") {
                Answer::file(request, &validation, Some("\"val\""))
            } else {
                answer(request, before)
            }
        })
    }

    /// Where each request for the training file began.
    fn ranges(&self) -> Vec<Option<usize>> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|r| r.path.ends_with(TRAIN)).map(|r| r.range).collect()
    }
}

fn read_request(stream: &TcpStream) -> Request {
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    let headers: HashMap<String, String> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        })
        .collect();
    let range = headers
        .get("range")
        .map(|r| r.strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap().parse().unwrap());
    Request { path, range, if_range: headers.get("if-range").cloned() }
}

/// `album data fetch` into `folder`, with so many seconds of patience.
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

fn fetch(folder: &Path, base: &str) -> Output {
    command(folder, base, "1").output().unwrap()
}

fn says(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The JSON object of a fetch that worked.
fn done(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", says(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A fetch that failed with this code and these words, and printed no result.
fn failed(output: &Output, code: i32, words: &[&str]) {
    let message = says(output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(output.stdout.is_empty(), "printed a result");
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Both files with their records, the training file with this content, and nothing else.
fn complete(folder: &Path, train: &[u8]) {
    let expected = [VALIDATION, TRAIN].map(|file| [file.to_owned(), format!("{file}.json")]).concat();
    assert_eq!(names(folder), expected);
    assert!(std::fs::read(folder.join(TRAIN)).unwrap() == train, "other bytes than the server's");
}

/// One part with what it is a part of, and nothing else; its bytes.
fn partial(folder: &Path) -> Vec<u8> {
    let names = names(folder);
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with(&format!("{TRAIN}.")) && names[0].ends_with(".part"), "{names:?}");
    assert_eq!(names[1], format!("{}.json", names[0]));
    std::fs::read(folder.join(&names[0])).unwrap()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn both_files_arrive_with_their_records() {
    let (folder, file) = (folder(), data_file(500, 0.0));
    let content = file.clone();
    let server = Server::of_train(move |request, _| Answer::file(request, &content, Some("\"one\"")));
    let report = done(&fetch(folder.path(), &server.base));
    complete(folder.path(), &file);
    assert_eq!(report["dataset"], NAME);
    let train = &report["files"][0];
    assert_eq!((&train["kept"], &train["size"]), (&Value::from(false), &Value::from(file.len())));
    let record: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join(format!("{TRAIN}.json"))).unwrap()).unwrap();
    for key in ["url", "size", "sha256", "etag", "date"] {
        assert_eq!(record[key], train[key], "{key}");
        assert!(!record[key].is_null(), "{key}");
    }
    assert_eq!(record["url"], format!("{}/{TRAIN}", server.base));
    assert_eq!(record["etag"], "\"one\"");
    let sum = Command::new("sha256sum").arg(folder.path().join(TRAIN)).output();
    if let Ok(sum) = sum {
        assert!(String::from_utf8_lossy(&sum.stdout).starts_with(record["sha256"].as_str().unwrap()));
    }

    // Again: nothing is asked for, nothing changes.
    let before = snapshot(folder.path());
    let asked = server.requests.lock().unwrap().len();
    let again = done(&fetch(folder.path(), &server.base));
    assert_eq!(again["files"][0]["kept"], true);
    assert_eq!(again["files"][0]["sha256"], record["sha256"]);
    assert_eq!(server.requests.lock().unwrap().len(), asked);
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn names_of_tasks_and_addresses() {
    let file = data_file(50, 0.0);
    let content = file.clone();
    let server = Server::of_train(move |request, _| Answer::file(request, &content, None));
    // The cache by default, the address from the environment, a slash behind it.
    for name in ["pointmaze-medium-stitch", "pointmaze-medium-stitch-singletask-task2-v0"] {
        let cache = folder();
        let output = Command::new(env!("CARGO_BIN_EXE_album"))
            .args(["data", "fetch", name])
            .env("ALBUM_CACHE", cache.path().join("deep/cache"))
            .env("ALBUM_DATA_URL", format!("{}/", server.base))
            .env("NO_PROXY", "127.0.0.1")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", says(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("fetched") && text.contains("sha256"), "{text}");
        complete(&cache.path().join("deep/cache"), &file);
    }
    assert!(server.requests.lock().unwrap().iter().all(|r| !r.path.contains("//")));

    let empty = folder();
    let run = |name: &str, base: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_album"));
        command.args(["data", "fetch", name, "--from", base, "--out"]).arg(empty.path());
        command.output().unwrap()
    };
    failed(
        &run("pointmaze-medum-stitch-v0", &server.base),
        3,
        &["did you mean `pointmaze-medium-stitch-v0`"],
    );
    failed(&run("../../etc/passwd", &server.base), 3, &["unknown dataset"]);
    for base in ["ftp://127.0.0.1/data", "127.0.0.1/data", "http://", "http:///data", "http://a b/data", ""] {
        failed(&run(NAME, base), 2, &[&format!("`{base}`"), "https://", "ALBUM_DATA_URL"]);
    }
    assert!(names(empty.path()).is_empty());
}

#[test]
fn a_broken_connection_goes_on_where_it_broke() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let content = file.clone();
    let server = Server::of_train(move |request, before| {
        let breaks_at = [Some(10_000), Some(20_000), None][before];
        Answer { breaks_at, ..Answer::file(request, &content, Some("\"one\"")) }
    });
    let report = done(&fetch(folder.path(), &server.base));
    complete(folder.path(), &file);
    assert_eq!(server.ranges(), [None, Some(10_000), Some(30_000)]);
    assert_eq!(server.requests.lock().unwrap()[1].if_range.as_deref(), Some("\"one\""));
    assert_eq!(report["files"][0]["resumed_from"], 0);
}

#[test]
fn the_next_call_goes_on_as_well() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let content = file.clone();
    // Never gets beyond 10,000 bytes until it is asked for the sixth time.
    let server = Server::of_train(move |request, before| {
        let breaks_at = (before < 5).then(|| 10_000 - request.range.unwrap_or(0));
        Answer { breaks_at, ..Answer::file(request, &content, Some("\"one\"")) }
    });
    failed(
        &fetch(folder.path(), &server.base),
        5,
        &[TRAIN, "10.00 kB of 100.15 kB", "the same command goes on", "5 attempts", "--from"],
    );
    assert!(partial(folder.path()) == file[..10_000]);
    let report = done(&fetch(folder.path(), &server.base));
    complete(folder.path(), &file);
    assert_eq!(server.ranges().last(), Some(&Some(10_000)));
    assert_eq!(report["files"][0]["resumed_from"], 10_000);
}

#[test]
fn a_server_without_ranges_starts_over() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let content = file.clone();
    let server = Server::of_train(move |_, before| Answer {
        breaks_at: (before < 2).then_some(10_000),
        ..Answer::new(200, &content)
    });
    done(&fetch(folder.path(), &server.base));
    complete(folder.path(), &file);
    assert_eq!(server.ranges(), [None, Some(10_000), Some(10_000)]);
}

#[test]
fn a_file_that_changed_starts_over() {
    let (old, new) = (data_file(3000, 0.0), data_file(2500, 5.0));
    // With an ETag and If-Range; without If-Range support; and with nothing but a length.
    for (case, etags) in [(0, true), (1, true), (2, false)] {
        let folder = folder();
        let (before_change, after_change) = (old.clone(), new.clone());
        let server = Server::of_train(move |request, before| {
            let (content, etag) =
                if before == 0 { (&before_change, "\"old\"") } else { (&after_change, "\"new\"") };
            let request =
                if case == 0 { request.clone() } else { Request { if_range: None, ..request.clone() } };
            Answer {
                breaks_at: (before == 0).then_some(10_000),
                ..Answer::file(&request, content, etags.then_some(etag))
            }
        });
        done(&fetch(folder.path(), &server.base));
        complete(folder.path(), &new);
        assert_eq!(server.ranges()[1], Some(10_000), "case {case}");
    }
}

#[test]
fn pieces_of_two_versions_are_noticed_without_any_hint() {
    let (folder, old, new) = (folder(), data_file(3000, 0.0), data_file(3000, 5.0));
    assert_eq!(old.len(), new.len());
    let content = new.clone();
    let server = Server::of_train(move |request, before| {
        let content = if before == 0 { &old } else { &content };
        Answer { breaks_at: (before == 0).then_some(10_000), ..Answer::file(request, content, None) }
    });
    done(&fetch(folder.path(), &server.base));
    complete(folder.path(), &new);
    assert_eq!(server.ranges(), [None, Some(10_000), None]);
}

#[test]
fn nothing_behind_the_part() {
    // Without a length the end looks like a break; asked for more, the server says that this was all.
    let (folder, file) = (folder(), data_file(1000, 0.0));
    let content = file.clone();
    let server = Server::of_train(move |request, before| {
        if before == 0 {
            let mut body = format!("{:x}\r\n", content.len()).into_bytes();
            body.extend(&content); // no end of the last chunk
            Answer {
                length: Some(String::new()),
                headers: vec![("Transfer-Encoding", "chunked".to_owned())],
                ..Answer::new(200, &body)
            }
        } else {
            Answer::file(request, &content, None)
        }
    });
    done(&fetch(folder.path(), &server.base));
    complete(folder.path(), &file);
    assert_eq!(server.ranges(), [None, Some(file.len())]);
}

#[test]
fn lengths_that_are_wrong() {
    let file = data_file(1000, 0.0);
    // Shorter than the file: what arrives is a damaged archive.
    let content = file.clone();
    let server = Server::of_train(move |_, _| Answer {
        length: Some((content.len() - 1000).to_string()),
        ..Answer::new(200, &content)
    });
    let short = folder();
    failed(&fetch(short.path(), &server.base), 3, &[TRAIN, "damaged archive", "Nothing was kept"]);
    assert!(names(short.path()).is_empty());

    // Longer: it never ends.
    for ranges in [false, true] {
        let content = file.clone();
        let server = Server::of_train(move |request, _| match request.range {
            Some(_) if ranges => Answer::file(request, &content, None),
            _ => Answer { length: Some((content.len() + 1000).to_string()), ..Answer::new(200, &content) },
        });
        let long = folder();
        failed(&fetch(long.path(), &server.base), 5, &[TRAIN, "5 attempts", "--from"]);
        assert!(!names(long.path()).iter().any(|name| name == TRAIN || name == VALIDATION));
    }

    // More than any disk holds.
    let content = file.clone();
    let server = Server::of_train(move |_, _| Answer {
        length: Some((1_u64 << 60).to_string()),
        ..Answer::new(200, &content)
    });
    let full = folder();
    failed(&fetch(full.path(), &server.base), 5, &[TRAIN, "needs", "left", "--out"]);
    assert!(names(full.path()).is_empty());
}

#[test]
fn what_is_no_data_file_is_refused() {
    let html = format!("\n<!DOCTYPE html><html><title>Sorry</title>{}", " ".repeat(470));
    let pointer = "version https://git-lfs.github.com/spec/v1";
    let good = data_file(1000, 0.0);
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 0x10;
    let mut noise = b"PK\x03\x04".to_vec();
    noise.extend((0..5000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8));
    let scene = {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let mut npz = NpzWriter::create(&path).unwrap();
        npz.array_f32("observations", &[2, 40], &[0.0; 80]).unwrap();
        npz.array_f32("actions", &[2, 5], &[0.0; 10]).unwrap();
        npz.array_bool("terminals", &[2], &[false, true]).unwrap();
        npz.finish().unwrap();
        std::fs::read(path).unwrap()
    };
    for (body, words) in [
        (html.as_bytes(), vec!["found an HTML page of 512 bytes", "expected a zip file", "--from"]),
        (pointer.as_bytes(), vec!["begins with `version https://git-", "expected a zip file"]),
        (b"", vec!["found nothing", "expected a zip file"]),
        (&noise, vec!["pointmaze-medium", "damaged archive"]),
        (&good[..good.len() - 7], vec!["pointmaze-medium", "damaged archive"]),
        (&flipped, vec!["pointmaze-medium", "CRC-32"]),
        (&scene, vec!["`observations`", "[2, 40]", "[2, 2] for pointmaze-medium"]),
    ] {
        let folder = folder();
        // A stranger's file and an earlier good validation file stay as they are.
        std::fs::write(folder.path().join("other"), "kept").unwrap();
        std::fs::write(folder.path().join(VALIDATION), data_file(20, 1.0)).unwrap();
        let before = snapshot(folder.path());
        let body = body.to_vec();
        let server = Server::of_train(move |request, _| Answer::file(request, &body, None));
        let words: Vec<&str> = words.into_iter().chain([TRAIN]).collect();
        failed(&fetch(folder.path(), &server.base), 3, &words);
        assert_eq!(snapshot(folder.path()), before);
    }
}

#[test]
fn a_page_of_somebody_else_does_not_cost_the_part() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let content = file.clone();
    let server = Server::of_train(move |request, before| match before {
        0..5 => {
            let breaks_at = Some(10_000 - request.range.unwrap_or(0));
            Answer { breaks_at, ..Answer::file(request, &content, Some("\"one\"")) }
        }
        5 => Answer::new(200, b"<html>Log in to use this network</html>"),
        _ => Answer::file(request, &content, Some("\"one\"")),
    });
    failed(&fetch(folder.path(), &server.base), 5, &["goes on"]);
    failed(&fetch(folder.path(), &server.base), 3, &["HTML"]);
    assert!(partial(folder.path()) == file[..10_000]);
    assert_eq!(done(&fetch(folder.path(), &server.base))["files"][0]["resumed_from"], 10_000);
    complete(folder.path(), &file);
}

#[test]
fn a_part_from_another_address_is_not_mixed_in() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let content = file.clone();
    let broken = Server::of_train(move |request, _| {
        let breaks_at = Some(10_000 - request.range.unwrap_or(0));
        Answer { breaks_at, ..Answer::file(request, &content, Some("\"one\"")) }
    });
    failed(&fetch(folder.path(), &broken.base), 5, &["goes on"]);
    let down = Server::new(|_, _| Answer::new(503, b""));
    let stays = format!("10.00 kB of 100.15 kB from {}/{TRAIN} stay in", broken.base);
    failed(&fetch(folder.path(), &down.base), 5, &["nothing has arrived", &stays]);
    let content = file.clone();
    let mirror = Server::of_train(move |request, _| Answer::file(request, &content, Some("\"one\"")));
    let output = fetch(folder.path(), &mirror.base);
    done(&output);
    assert!(says(&output).contains(&format!("came from {}", broken.base)), "{}", says(&output));
    assert_eq!(mirror.ranges(), [None]);
    complete(folder.path(), &file);
}

#[test]
fn answers_that_are_no_file() {
    for (status, words) in [
        (404, vec!["404 Not Found", "does not have", "--from"]),
        (403, vec!["403 Forbidden", "--from"]),
        (500, vec!["500 Internal Server Error", "5 attempts", "nothing has arrived", "--from"]),
    ] {
        let folder = folder();
        let server = Server::new(move |_, _| Answer::new(status, b"<html>no</html>"));
        let words: Vec<&str> = words.into_iter().chain([TRAIN]).collect();
        failed(&fetch(folder.path(), &server.base), 5, &words);
        assert!(names(folder.path()).is_empty());
        assert_eq!(server.ranges().len(), if status == 500 { 5 } else { 1 });
    }
    // The training file is good and stays; the validation file is missing.
    let (folder, file) = (folder(), data_file(100, 0.0));
    let content = file.clone();
    let server = Server::new(move |request, _| match request.path.ends_with(TRAIN) {
        true => Answer::file(request, &content, None),
        false => Answer::new(404, b""),
    });
    failed(&fetch(folder.path(), &server.base), 5, &[VALIDATION, "404"]);
    assert_eq!(names(folder.path()), [TRAIN.to_owned(), format!("{TRAIN}.json")]);
}

#[test]
fn a_server_that_recovers_and_one_that_redirects() {
    let file = data_file(100, 0.0);
    let content = file.clone();
    let server = Server::of_train(move |request, before| match before {
        0 => Answer::new(500, b"oops"),
        1 => Answer::new(503, b"oops"),
        _ => Answer::file(request, &content, None),
    });
    let recovered = folder();
    done(&fetch(recovered.path(), &server.base));
    complete(recovered.path(), &file);

    let content = file.clone();
    let mirror = Server::of_train(move |request, before| Answer {
        breaks_at: (before == 0).then_some(1000),
        ..Answer::file(request, &content, Some("\"one\""))
    });
    let target = mirror.base.clone();
    let server = Server::new(move |request, _| {
        let file = request.path.rsplit('/').next().unwrap();
        let headers = vec![("Location", format!("{target}/{file}"))];
        Answer { headers, ..Answer::new(302, b"") }
    });
    let redirected = folder();
    let report = done(&fetch(redirected.path(), &server.base));
    complete(redirected.path(), &file);
    assert_eq!(mirror.ranges(), [None, Some(1000)]);
    assert_eq!(report["files"][0]["url"], format!("{}/{TRAIN}", server.base));

    let circle = Server::new(|request, _| Answer {
        headers: vec![("Location", request.path.clone())],
        ..Answer::new(302, b"")
    });
    let empty = folder();
    failed(&fetch(empty.path(), &circle.base), 5, &["redirected"]);
    assert!(names(empty.path()).is_empty());
}

#[test]
fn a_server_that_stalls() {
    let (folder, file) = (folder(), data_file(1000, 0.0));
    let content = file.clone();
    let server = Server::of_train(move |request, before| match before {
        // Before the head, in the body, and then no more.
        0 => {
            std::thread::sleep(Duration::from_secs(2));
            Answer::new(500, b"")
        }
        1 => Answer {
            breaks_at: Some(1000),
            stalls: Duration::from_secs(2),
            ..Answer::file(request, &content, Some("\"one\""))
        },
        _ => Answer::file(request, &content, Some("\"one\"")),
    });
    let output = fetch(folder.path(), &server.base);
    done(&output);
    complete(folder.path(), &file);
    assert!(says(&output).contains("silent for 1 s"), "{}", says(&output));
    assert_eq!(server.ranges(), [None, None, Some(1000)]);
}

#[test]
fn a_server_that_always_stalls() {
    let (folder, file) = (folder(), data_file(1000, 0.0));
    let content = file.clone();
    let server = Server::of_train(move |request, _| Answer {
        breaks_at: Some(1000 - request.range.unwrap_or(0)),
        stalls: Duration::from_secs(5),
        ..Answer::file(request, &content, Some("\"one\""))
    });
    // Two attempts after the one that brought something, not four: each costs all the patience.
    let words = ["silent for 1 s", "Given up after 3 attempts", "1.00 kB of", "the same command goes on"];
    failed(&fetch(folder.path(), &server.base), 5, &words);
    assert!(partial(folder.path()) == file[..1000]);
}

#[test]
fn no_server_at_all() {
    let folder = folder();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = fetch(folder.path(), &format!("http://127.0.0.1:{port}"));
    failed(&output, 5, &[TRAIN, "no answer", "refused", "5 attempts", "nothing has arrived", "--from"]);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn folders_that_cannot_be_written() {
    let server = Server::new(|_, _| panic!("no request is needed to see this"));
    let folder = folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    failed(&fetch(&file.join("below"), &server.base), 5, &["file/below"]);
    failed(&fetch(&file, &server.base), 5, &["file"]);
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let closed = folder.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
        if std::fs::write(closed.join("x"), "").is_ok() {
            eprintln!("skipped: this user may write anywhere");
            return;
        }
        failed(&fetch(&closed, &server.base), 5, &["closed", "ermission denied"]);
        assert!(names(&closed).is_empty());
    }
}

/// Starts a fetch from a server that stalls after 10,000 bytes, and waits until they are there.
fn stalled(folder: &Path, server: &Server) -> Child {
    let mut child = command(folder, &server.base, "30").spawn().unwrap();
    let since = Instant::now();
    let arrived = || {
        std::fs::read_dir(folder)
            .unwrap()
            .any(|entry| entry.unwrap().metadata().is_ok_and(|metadata| metadata.len() == 10_000))
    };
    while !arrived() {
        assert!(since.elapsed() < Duration::from_secs(10), "nothing arrives");
        assert!(child.try_wait().unwrap().is_none(), "ended early");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// Answers the first request with 10,000 bytes and silence, all others well.
fn stalling_server(file: &[u8], silence: Duration) -> Server {
    let content = file.to_vec();
    Server::of_train(move |request, before| {
        let answer = Answer::file(request, &content, Some("\"one\""));
        if before == 0 { Answer { breaks_at: Some(10_000), stalls: silence, ..answer } } else { answer }
    })
}

#[test]
fn killed_in_the_middle_and_run_again() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let server = stalling_server(&file, Duration::from_secs(20));
    let mut child = stalled(folder.path(), &server);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(partial(folder.path()) == file[..10_000]);
    let report = done(&fetch(folder.path(), &server.base));
    complete(folder.path(), &file);
    assert_eq!(report["files"][0]["resumed_from"], 10_000);
    assert_eq!(server.ranges(), [None, Some(10_000)]);
}

#[cfg(unix)]
#[test]
fn a_signal_stops_at_once_and_keeps_the_part() {
    for signal in ["-INT", "-TERM"] {
        let (folder, file) = (folder(), data_file(3000, 0.0));
        let server = stalling_server(&file, Duration::from_secs(20));
        let child = stalled(folder.path(), &server);
        let since = Instant::now();
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert!(since.elapsed() < Duration::from_secs(2));
        failed(&output, 75, &["stopped", "10.00 kB", "the same command goes on"]);
        assert!(partial(folder.path()) == file[..10_000]);
        done(&fetch(folder.path(), &server.base));
        complete(folder.path(), &file);
    }
}

#[test]
fn two_at_once_download_one_file_once() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let server = stalling_server(&file, Duration::from_millis(1500));
    let first = stalled(folder.path(), &server);
    let process = first.id();
    // The second waits for the first, whose connection breaks and goes on.
    let second = fetch(folder.path(), &server.base);
    done(&first.wait_with_output().unwrap());
    let report = done(&second);
    assert_eq!(report["files"][0]["kept"], true);
    assert!(says(&second).contains(&format!("process {process} is fetching {TRAIN}")), "{}", says(&second));
    complete(folder.path(), &file);
    assert_eq!(server.ranges(), [None, Some(10_000)]);
}

#[test]
fn one_that_waits_takes_over_from_one_that_dies() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let server = stalling_server(&file, Duration::from_secs(20));
    let mut first = stalled(folder.path(), &server);
    let mut second = command(folder.path(), &server.base, "1").spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(second.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for it"), "{line}");
    first.kill().unwrap();
    first.wait().unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let output = second.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{rest}");
    complete(folder.path(), &file);
    assert_eq!(server.ranges(), [None, Some(10_000)]);
}

#[test]
fn many_at_the_same_moment() {
    let (folder, file) = (folder(), data_file(3000, 0.0));
    let content = file.clone();
    let server = Server::of_train(move |request, _| Answer::file(request, &content, Some("\"one\"")));
    let children: Vec<Child> =
        (0..6).map(|_| command(folder.path(), &server.base, "1").spawn().unwrap()).collect();
    for child in children {
        done(&child.wait_with_output().unwrap());
    }
    complete(folder.path(), &file);
}

#[test]
fn files_that_are_there_are_not_replaced() {
    let (folder, file) = (folder(), data_file(300, 0.0));
    let content = file.clone();
    let server = Server::of_train(move |request, _| Answer::file(request, &content, None));
    // A bad one is named, not replaced.
    std::fs::write(folder.path().join(TRAIN), "not mine").unwrap();
    let before = snapshot(folder.path());
    failed(&fetch(folder.path(), &server.base), 3, &[TRAIN, "not mi", "there already", "delete it"]);
    assert_eq!(snapshot(folder.path()), before);

    // A good one of unknown origin is kept.
    let own = data_file(200, 3.0);
    std::fs::write(folder.path().join(TRAIN), &own).unwrap();
    let report = done(&fetch(folder.path(), &server.base));
    assert_eq!(report["files"][0]["kept"], true);
    assert!(std::fs::read(folder.path().join(TRAIN)).unwrap() == own);

    // Deleted, fetched, changed: the record notices.
    std::fs::remove_file(folder.path().join(TRAIN)).unwrap();
    let first = done(&fetch(folder.path(), &server.base));
    std::fs::write(folder.path().join(TRAIN), &own).unwrap();
    let output = fetch(folder.path(), &server.base);
    assert_eq!(done(&output)["files"][0]["earlier_sha256"], first["files"][0]["sha256"]);
    assert!(says(&output).contains("is not what was fetched"), "{}", says(&output));

    // Deleted and fetched again from a server that has another version.
    std::fs::remove_file(folder.path().join(TRAIN)).unwrap();
    let content = own.clone();
    let server = Server::of_train(move |request, _| Answer::file(request, &content, None));
    let output = fetch(folder.path(), &server.base);
    assert_eq!(done(&output)["files"][0]["earlier_sha256"], first["files"][0]["sha256"]);
    assert!(says(&output).contains("not what an earlier fetch brought"), "{}", says(&output));
    complete(folder.path(), &own);
}

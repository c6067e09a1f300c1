//! Tests against servers that answer, are slow, refuse or disappear.

use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// How the test server treats requests.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Answers,
    Hangs,
    Refuses,
    /// Answers this many requests, then disappears.
    Leaves(usize),
}

/// A server that implements the part of MLflow that the tests need; requests are forwarded to the channel.
fn serve(manner: Manner) -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let (heard, requests) = channel();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        let mut answered = 0;
        for stream in listener.incoming().map_while(Result::ok) {
            if manner == Manner::Hangs {
                held.push(stream);
                continue;
            }
            while let Some(request) = hear(&stream) {
                let answer = match manner {
                    Manner::Refuses => ("403 Forbidden", "{\"message\": \"not you\"}"),
                    _ => ("200 OK", answer(&request.0)),
                };
                let (status, body) = answer;
                let length = body.len();
                write!(&stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
                if heard.send(request).is_err() {
                    return;
                }
                answered += 1;
                if manner == Manner::Leaves(answered) {
                    return;
                }
            }
        }
    });
    (uri, requests)
}

fn answer(path: &str) -> &'static str {
    if path.contains("get-by-name") {
        r#"{"experiment": {"experiment_id": "7"}}"#
    } else if path.contains("runs/create") {
        r#"{"run": {"info": {"run_id": "abc"}}}"#
    } else {
        "{}"
    }
}

fn hear(stream: &TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok().filter(|&n| n > 0)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first.split(' ').nth(1)?.to_owned(), String::from_utf8(body).ok()?))
}

const BRIEF: Duration = Duration::from_millis(300);

fn tracker(uri: &str, run: &Path) -> Tracker {
    let params = vec![("album.k".to_owned(), "10".to_owned())];
    let about = About { experiment: "walk".into(), name: "album-seed0".into(), params };
    let note = read_note(run).unwrap().filter(|note| note.uri == uri);
    Tracker::start(uri, run, note, about, BRIEF)
}

/// Logs some rows and checks that no call blocks. Returns all warnings.
///
/// A single row may take long on a busy machine. A call that waited for the server would make the usual row slow, or,
/// with a full queue, never return.
fn train(mut tracker: Tracker, rows: u64) -> Vec<String> {
    let (mut told, mut times) = (Vec::new(), Vec::new());
    for step in 1..=rows {
        let row = [("training/loss".to_owned(), 0.5), ("evaluation/success".to_owned(), f64::NAN)];
        let start = Instant::now();
        let event = Event::Logged { step, metrics: &Vec::new(), row: &row, ms_per_step: 1.0 };
        told.extend(tracker.observe(&event));
        times.push(start.elapsed());
    }
    times.sort();
    let usual = times[times.len() / 2];
    assert!(usual < Duration::from_millis(5), "a row took {usual:?}");
    let start = Instant::now();
    told.extend(tracker.end("FINISHED"));
    assert!(start.elapsed() < Duration::from_secs(30), "the end took {:?}", start.elapsed());
    told
}

#[test]
fn rows_arrive_and_a_resumed_run_goes_on_in_the_same_one() {
    let folder = tempfile::tempdir().unwrap();
    let (uri, requests) = serve(Manner::Answers);
    assert_eq!(train(tracker(&uri, folder.path()), 30), Vec::<String>::new());
    let heard: Vec<_> = requests.try_iter().collect();
    let calls_to = |end: &str| heard.iter().filter(|(path, _)| path.ends_with(end)).collect::<Vec<_>>();
    assert!(heard[0].0.ends_with("get-by-name?experiment_name=walk"), "{}", heard[0].0);
    assert_eq!(calls_to("runs/create").len(), 1);
    let logged: Vec<serde_json::Value> =
        calls_to("log-batch").iter().map(|(_, body)| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(logged[0]["params"][0]["key"], "album.k");
    let metrics: Vec<&serde_json::Value> =
        logged.iter().flat_map(|body| body["metrics"].as_array().unwrap()).collect();
    // NaN is left out: the server does not accept it.
    assert_eq!(metrics.len(), 30);
    assert_eq!((&metrics[29]["key"], &metrics[29]["step"]), (&"training/loss".into(), &30.into()));
    assert!(calls_to("runs/update")[0].1.contains("FINISHED"));

    assert_eq!(read_note(folder.path()).unwrap().unwrap().run_id, "abc");
    assert_eq!(train(tracker(&uri, folder.path()), 3), Vec::<String>::new());
    let heard: Vec<_> = requests.try_iter().collect();
    assert!(heard[0].0.ends_with("runs/update") && heard[0].1.contains("RUNNING"));
    assert!(heard.iter().all(|(path, _)| !path.ends_with("runs/create")));
}

#[test]
fn a_server_that_is_not_there_is_reported_and_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let uri = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let told = train(tracker(&uri, folder.path()), 50).join("\n");
    assert!(told.contains("no answer") && told.contains("was not logged there (50 rows)"), "{told}");
    assert_eq!(read_note(folder.path()).unwrap(), None);
}

#[test]
fn a_slow_server_is_reported_and_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (uri, _requests) = serve(Manner::Hangs);
    // More rows than fit into the queue.
    let told = train(tracker(&uri, folder.path()), QUEUE as u64 + 500).join("\n");
    assert!(told.contains("no answer") && told.contains("too slow"), "{told}");
}

#[test]
fn a_server_that_refuses_is_asked_once() {
    let folder = tempfile::tempdir().unwrap();
    let (uri, requests) = serve(Manner::Refuses);
    let told = train(tracker(&uri, folder.path()), 10).join("\n");
    assert!(told.contains("it refuses: the server answered 403 not you"), "{told}");
    assert_eq!(requests.try_iter().count(), 1);
}

#[test]
fn a_server_that_vanishes_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (uri, requests) = serve(Manner::Leaves(3));
    let mut tracker = tracker(&uri, folder.path());
    // Wait until the run has been created before the server disappears.
    for _ in 0..3 {
        requests.recv_timeout(Duration::from_secs(5)).unwrap();
    }
    let row = [("training/loss".to_owned(), 0.5)];
    let event = Event::Logged { step: 1, metrics: &Vec::new(), row: &row, ms_per_step: 1.0 };
    let mut told = tracker.observe(&event);
    told.extend(tracker.end("FINISHED"));
    let told = told.join("\n");
    assert!(told.contains("1 rows were not sent") && told.contains("the end of the run"), "{told}");
    assert_eq!(read_note(folder.path()).unwrap().unwrap().run_id, "abc");
}

#[test]
fn addresses_are_checked_where_they_are_given() {
    let target = |text: &str| text.parse::<Target>();
    assert_eq!(target("mlflow:http://127.0.0.1:5000/").unwrap().uri, "http://127.0.0.1:5000");
    for bad in ["http://x", "mlflow:", "mlflow:file:///tmp", "mlflow:http://", "mlflow:http://me:secret@host"]
    {
        assert!(target(bad).unwrap_err().to_string().contains("expected mlflow:http"), "{bad}");
    }
}

#[test]
fn parameters_are_flat() {
    let pairs = params("agent = \"album\"\n[album]\nk = 10\nhidden = [8, 8]\n").unwrap();
    let expected = [("agent", "album"), ("album.hidden", "[8, 8]"), ("album.k", "10")];
    let mut found: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
}

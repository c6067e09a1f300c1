//! Trackers as a user meets them. Misbehaving servers are covered by the library's tests.

use crate::common::{album, fails, json, pointmaze_data};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TASK: &str = "pointmaze-medium-navigate-singletask-v0";

fn train(folder: &Path, more: &[&str]) -> Vec<String> {
    pointmaze_data(&folder.join("data.npz"));
    let args = ["train", TASK, "--data", "data.npz", "--steps", "40", "--eval-episodes", "0", "--out", "run"];
    let set = ["--set", "hidden=[8]", "--set", "batch_size=8", "--set", "log_every=5"];
    args.iter().chain(&set).chain(more).map(|&arg| arg.to_owned()).collect()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_server_that_is_not_there_changes_no_weight() {
    let folder = tempfile::tempdir().unwrap();
    let track = format!("mlflow:http://127.0.0.1:{}", free_port());
    let args = train(folder.path(), &["--track", &track]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = album(folder.path(), &args);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("no answer") && told.contains("was not logged there"), "{told}");
    let tracked = std::fs::read(folder.path().join("run/result.json")).unwrap();
    let tracked: serde_json::Value = serde_json::from_slice(&tracked).unwrap();
    let plain: Vec<&str> =
        args[..args.len() - 2].iter().map(|&arg| if arg == "run" { "plain" } else { arg }).collect();
    let plain = json(folder.path(), &[&plain[..], &["--json"]].concat());
    assert_eq!(tracked["weights_sha256"], plain["weights_sha256"]);
}

#[test]
fn bad_trackers_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    for track in ["wandb:x", "mlflow:/tmp/store", "mlflow:http://me:secret@host"] {
        let args = train(folder.path(), &["--track", track]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        fails(folder.path(), &args, 2, &["expected mlflow:http://HOST:PORT"]);
    }
    assert!(!folder.path().join("run").exists());
    fails(folder.path(), &["log", "nothing", "--wandb"], 5, &["nothing"]);
    fails(folder.path(), &["log", ".", "--wandb"], 3, &["not a run"]);
    fails(folder.path(), &["log", "nothing"], 2, &["--wandb"]);
}

/// A fake wandb package that records its calls.
const WANDB: &str = r#"
import json, os
told = []
class Run:
    summary = {}
    dir = None
    def log(self, row, step): told.append([step, row])
    def finish(self):
        with open(os.path.join(os.path.dirname(self.dir), "told.json"), "w") as file:
            json.dump({"init": Run.given, "rows": told, "summary": self.summary}, file)
def init(**given):
    Run.given = given
    run = Run()
    run.dir = os.path.join(given["dir"], "wandb", "offline", "files")
    os.makedirs(run.dir)
    print("wandb: hello")
    return run
"#;

#[test]
fn a_run_is_exported_to_wandb() {
    let python = std::env::var("ALBUM_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    if Command::new(&python).arg("-V").output().is_err() {
        return album_testing::skip("python", "there is no python3");
    }
    let folder = tempfile::tempdir().unwrap();
    let args = train(folder.path(), &["--json"]);
    json(folder.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    std::fs::create_dir(folder.path().join("packages")).unwrap();
    std::fs::write(folder.path().join("packages/wandb.py"), WANDB).unwrap();
    let log = |packages: &str| {
        Command::new(env!("CARGO_BIN_EXE_album"))
            .args(["log", "run", "--wandb", "--json", "--project", "mazes", "--python", &python])
            .current_dir(folder.path())
            .env("PYTHONPATH", folder.path().join(packages))
            .output()
            .unwrap()
    };
    let output = log("packages");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((said["mode"].as_str(), said["project"].as_str()), (Some("offline"), Some("mazes")));
    let noted = std::fs::read(folder.path().join("run/wandb/offline/told.json")).unwrap();
    let noted: serde_json::Value = serde_json::from_slice(&noted).unwrap();
    assert_eq!(said["rows"], noted["rows"].as_array().unwrap().len());
    assert_eq!((&noted["init"]["mode"], &noted["init"]["config"]["seed"]), (&"offline".into(), &0.into()));
    let last = noted["rows"].as_array().unwrap().last().unwrap();
    assert!(last[0] == 40 && last[1].as_object().unwrap().keys().any(|key| key.starts_with("training/")));
    assert_eq!(noted["summary"]["result/steps"], 40);
}

/// A server that stops when the test ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The tests' Python, if it has the package.
fn python_with(package: &str) -> Option<PathBuf> {
    let python = PathBuf::from(std::env::var_os("ALBUM_TEST_PYTHON")?);
    let has = format!("import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)");
    Command::new(&python).args(["-c", &has]).status().is_ok_and(|status| status.success()).then_some(python)
}

#[test]
fn a_real_mlflow_server() {
    let Some(python) = python_with("mlflow") else {
        return album_testing::skip("mlflow", "the Python of the tests has no package mlflow");
    };
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let uri = format!("http://127.0.0.1:{port}");
    let store = format!("sqlite:///{}", folder.path().join("store.db").display());
    let server = Command::new(&python)
        .args([
            "-m",
            "mlflow",
            "server",
            "--host",
            "127.0.0.1",
            "--workers",
            "1",
            "--port",
            &port.to_string(),
        ])
        .args(["--backend-store-uri", &store])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Server(server);
    let ask = |what: &str| {
        let script =
            format!("import urllib.request as u; print(u.urlopen('{uri}{what}', timeout=5).read().decode())");
        let output = Command::new(&python).args(["-c", &script]).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let until = Instant::now() + Duration::from_secs(180);
    while ask("/health").is_none() {
        assert!(Instant::now() < until, "the server does not answer");
        std::thread::sleep(Duration::from_secs(1));
    }
    let args = train(folder.path(), &["--track", &format!("mlflow:{uri}/"), "--json"]);
    json(folder.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    let note = |folder: &Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(folder.join("run/tracker.json")).unwrap()).unwrap()
    };
    let id = note(folder.path())["run_id"].as_str().unwrap().to_owned();
    let run = || -> serde_json::Value {
        let text = ask(&format!("/api/2.0/mlflow/runs/get?run_id={id}")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let first = run();
    assert_eq!(first["run"]["info"]["status"], "FINISHED");
    let params = first["run"]["data"]["params"].as_array().unwrap();
    assert!(params.iter().any(|param| param["key"] == "album.batch_size" && param["value"] == "8"));
    let metric = |run: &serde_json::Value, key: &str| {
        run["run"]["data"]["metrics"].as_array().unwrap().iter().find(|metric| metric["key"] == key).cloned()
    };
    assert_eq!(metric(&first, "training/value/v_mean").unwrap()["step"], 40);

    // A resumed run continues in the same tracker run without being told where that is.
    json(folder.path(), &["resume", "run", "--steps", "60", "--json"]);
    assert_eq!(note(folder.path())["run_id"], id);
    let second = run();
    assert_eq!(second["run"]["info"]["status"], "FINISHED");
    assert_eq!(metric(&second, "training/value/v_mean").unwrap()["step"], 60);
}

#[test]
fn a_real_wandb() {
    let Some(python) = python_with("wandb") else {
        return album_testing::skip("wandb", "the Python of the tests has no package wandb");
    };
    let folder = tempfile::tempdir().unwrap();
    let args = train(folder.path(), &["--json"]);
    json(folder.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    let said =
        json(folder.path(), &["log", "run", "--wandb", "--json", "--python", python.to_str().unwrap()]);
    let place = PathBuf::from(said["folder"].as_str().unwrap());
    assert!(
        place
            .read_dir()
            .unwrap()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().ends_with(".wandb"))
    );
}

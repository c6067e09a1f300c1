//! Untrusted files, run directories and experiments: album touches nothing outside them, runs no other
//! program, and refuses special files instead of blocking on them.

use crate::common::{Columns, album, fails, json, pipe, pointmaze_data, refuses, shell, snapshot};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const TASK: &str = "pointmaze-medium-navigate-singletask-task1-v0";

/// A folder with data, a run of 20 steps that wants 40, and a file of the user's.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    pointmaze_data(&folder.path().join("data.npz"));
    let mut args = vec!["train", TASK, "--data", "data.npz", "--out", "run", "--json", "--steps", "20"];
    args.extend([
        "--set",
        "hidden=[8]",
        "--set",
        "batch_size=8",
        "--set",
        "log_every=5",
        "--eval-episodes",
        "1",
    ]);
    json(folder.path(), &args);
    edit(&folder.path().join("run/config.toml"), "steps = 20", "steps = 40");
    fs::remove_file(folder.path().join("run/result.json")).unwrap();
    fs::write(folder.path().join("mine.txt"), "precious\n").unwrap();
    folder
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

/// Replaces a file of the run with something else, and tries every command that works on runs.
fn each_command_refuses(name: &str, put: impl Fn(&Path)) {
    let folder = folder();
    let path = folder.path().join("run").join(name);
    let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    put(&path);
    for args in [
        &["resume", "run"][..],
        &["eval", "run", "--episodes", "1"],
        &["fqe", "run", "--updates", "5"],
        &["export", "run", "--format", "safetensors", "--out", "policy.safetensors"],
        &["train", TASK, "--data", "data.npz", "--from", "run", "--out", "next"],
        &["log", "run", "--wandb", "--python", "/nonexistent"],
    ] {
        refuses(folder.path(), args, 3, &[name]);
    }
    assert_eq!(fs::read_to_string(folder.path().join("mine.txt")).unwrap(), "precious\n", "{name}");
}

#[test]
fn links_out_of_a_run_are_not_followed() {
    let names = ["run.lock", "result.json", "report.html", "train.csv", "eval.csv", "timing.csv", "videos"];
    for name in names.into_iter().chain(["episodes.jsonl", "differences.json", "fqe.json", "checkpoints"]) {
        each_command_refuses(name, |path| symlink("../mine.txt", path).unwrap());
    }
    // No file is created through a dangling link.
    each_command_refuses("report.html", |path| symlink("../new.html", path).unwrap());
}

#[test]
fn a_pipe_in_a_run_is_not_waited_for() {
    for name in ["run.lock", "config.toml", "result.json", "train.csv"] {
        each_command_refuses(name, pipe);
    }
}

/// A hard link does not look like a link; only its contents show that the file is not ours.
#[test]
fn a_file_is_cut_only_if_it_begins_as_ours() {
    for name in ["run.lock", "train.csv", "eval.csv", "episodes.jsonl", "events.out.tfevents.album"] {
        let folder = folder();
        let path = folder.path().join("run").join(name);
        fs::remove_file(&path).unwrap();
        // Longer than the log, which would be truncated.
        let mine = "precious\n".repeat(1000);
        fs::write(folder.path().join("mine.txt"), &mine).unwrap();
        fs::hard_link(folder.path().join("mine.txt"), &path).unwrap();
        let output = album(folder.path(), &["resume", "run"]);
        assert!(!output.status.success(), "{name}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(name), "{name}");
        assert_eq!(fs::read_to_string(folder.path().join("mine.txt")).unwrap(), mine, "{name}");
    }
}

#[test]
fn a_pipe_or_device_is_no_data() {
    let folder = tempfile::tempdir().unwrap();
    pipe(&folder.path().join("pipe"));
    pipe(&folder.path().join("pipe.toml"));
    pipe(&folder.path().join("pipe.csv"));
    symlink("/dev/zero", folder.path().join("zero.csv")).unwrap();
    let columns = ["--state", "s", "--action", "a", "--reward", "r", "--episode", "e"];
    for file in ["pipe", "pipe.csv", "zero.csv"] {
        for args in [
            &["data", "inspect", file][..],
            &["data", "import", file, "--out", "out"],
            &["train", "--data", file, "--out", "out"],
            &["train", TASK, "--data", file, "--out", "out"],
            &["solve", file],
            &[&["solve", file][..], &columns].concat(),
            &["act", file],
            &["train", "--config", file, "--out", "out"],
        ] {
            refuses(folder.path(), args, 3, &[file]);
        }
    }
    refuses(folder.path(), &["reproduce", "pipe.toml"], 3, &["pipe.toml"]);
    assert!(!folder.path().join("out").exists());
}

/// An untrusted experiment file may request runs, `bench cost` and `verify`, but no other program.
#[test]
fn an_experiment_starts_nothing_but_album() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("evil.sh");
    fs::write(&script, "#!/bin/sh\ntouch started\n").unwrap();
    shell(folder.path(), "chmod +x evil.sh");
    for command in [
        r#"command = ["bench", "solve", "--python", "./evil.sh"]"#,
        r#"command = "verify; ./evil.sh""#,
        r#"command = { cost = { rounds = 1, python = "./evil.sh" } }"#,
        r#"command = { cost = { rounds = 1, album = "./evil.sh" } }"#,
        r#"command = { run = "./evil.sh" }"#,
        r#"command = { cost = { rounds = 1000000000 } }"#,
        "python = \"./evil.sh\"\ntasks = { pointmaze-medium-navigate = [1] }\nseeds = 1",
        "tasks = { pointmaze-medium-navigate = [1] }\nseeds = 1\nset = { python = \"./evil.sh\" }",
        "tasks = { pointmaze-medium-navigate = [1] }\nseeds = 1\nset = { \"env.python\" = \"./evil.sh\" }",
    ] {
        let text = format!("[small]\n{command}\n\n[[variant]]\nagent = \"bc\"\n");
        fs::write(folder.path().join("stranger.toml"), text).unwrap();
        refuses(folder.path(), &["reproduce", "stranger.toml", "--results", "results"], 3, &[]);
        assert!(!folder.path().join("started").exists(), "{command}");
    }
}

#[test]
fn a_result_never_replaces_what_it_was_made_from() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    Columns::chain().write(folder.path(), "x.npz");
    fs::create_dir(at("inside")).unwrap();
    symlink("x.npz", at("link.npz")).unwrap();
    fs::hard_link(at("x.npz"), at("hard.npz")).unwrap();
    let before = snapshot(folder.path());
    for out in ["x.npz", "./x.npz", "inside/../x.npz", "link.npz", "hard.npz"] {
        for option in ["--out", "--mps"] {
            fails(folder.path(), &["solve", "x.npz", option, out], 2, &["is the input"]);
        }
        fails(folder.path(), &["solve", "link.npz", "--out", out], 2, &["is the input"]);
    }
    assert_eq!(snapshot(folder.path()), before);

    let before = snapshot(&at("run"));
    for out in
        ["run/config.toml", "run/train.csv", "inside/../run/config.toml", "run/checkpoints/policy.onnx"]
    {
        let args = ["export", "run", "--format", "onnx", "--out", out];
        fails(folder.path(), &args, 2, &["belongs to the run"]);
    }
    assert_eq!(snapshot(&at("run")), before);
    json(folder.path(), &["export", "run", "--format", "onnx", "--out", "run/policy.onnx", "--json"]);
    json(folder.path(), &["export", "run", "--format", "onnx", "--out", "run/policy.onnx", "--json"]);
}

#[test]
fn values_that_are_no_numbers_are_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let mut data = Columns::chain();
    (data.next_states, data.rewards) = (vec![1, 0], vec![1e308, 1e308]);
    data.write(folder.path(), "loop.npz");
    fails(folder.path(), &["solve", "loop.npz", "--out", "out.npz"], 4, &["inf", "scale them down"]);
    let rows: String = (0..20).map(|i| format!("{i},s,a,1e308\n{i},s,a,1e308\n{i},s,a,1e308\n")).collect();
    fs::write(folder.path().join("log.csv"), format!("e,s,a,r\n{rows}")).unwrap();
    let columns = ["--state", "s", "--action", "a", "--reward", "r", "--episode", "e", "--out", "out.csv"];
    fails(folder.path(), &[&["solve", "log.csv"][..], &columns].concat(), 4, &["inf", "scale them down"]);
    assert!(!folder.path().join("out.npz").exists() && !folder.path().join("out.csv").exists());
}

/// The same fault gives the same exit code in every command.
#[test]
fn exit_codes_agree() {
    let folder = folder();
    let log = |action: &str| format!("episode,obs,action,reward,terminated\n0,1,0.5,0,0\n0,2,{action},1,1\n");
    fs::write(folder.path().join("nan.csv"), log("nan")).unwrap();
    let commands = |data: &'static str| -> Vec<Vec<&'static str>> {
        vec![
            vec!["data", "import", data, "--out", "out"],
            vec!["train", "--data", data, "--out", "out"],
            vec!["train", TASK, "--data", data, "--out", "out"],
            vec!["fqe", "run", "--data", data],
        ]
    };
    for args in commands("missing.npz") {
        refuses(folder.path(), &args, 5, &["missing.npz"]);
    }
    for args in [&["data", "inspect", "missing.npz"][..], &["solve", "missing.npz"]] {
        refuses(folder.path(), args, 5, &["missing.npz"]);
    }
    refuses(folder.path(), &["data", "import", "--verify", "missing.columns"], 5, &["missing.columns"]);
    for args in [&["resume"][..], &["eval"], &["fqe"], &["report"], &["log", "--wandb"]] {
        refuses(folder.path(), &[args, &["missing"]].concat(), 5, &["missing"]);
    }
    for args in commands("nan.csv") {
        refuses(folder.path(), &args, 3, &["nan.csv"]);
    }
    // Ambiguities that only the user can resolve.
    let flags = "episode,obs,action,reward,done\n0,1,0.5,0,0\n0,2,1.5,1,1\n";
    fs::write(folder.path().join("undecided.csv"), flags).unwrap();
    for args in [&["data", "inspect"][..], &["data", "import"], &["train", "--data"]] {
        refuses(folder.path(), &[args, &["undecided.csv"]].concat(), 2, &["--ends"]);
    }
}

#[test]
fn a_relative_path_in_a_file_is_stored_whole() {
    let folder = folder();
    fs::write(folder.path().join("my.toml"), format!("task = \"{TASK}\"\ndata = \"data.npz\"\n")).unwrap();
    let args =
        ["train", "--config", "my.toml", "--steps", "2", "--set", "hidden=[8]", "--eval-episodes", "0"];
    let trained = album(folder.path(), &[&args[..], &["--out", "other"]].concat());
    assert!(trained.status.success(), "{}", String::from_utf8_lossy(&trained.stderr));
    let resumed = album(&folder.path().join("other"), &["resume", ".", "--steps", "4"]);
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
}

#[test]
fn a_run_that_is_beyond_its_end_says_so() {
    let folder = folder();
    edit(&folder.path().join("run/config.toml"), "steps = 40", "steps = 10");
    refuses(folder.path(), &["resume", "run"], 3, &["step 20", "step 10", "album resume --steps"]);
}

#[test]
fn import_replaces_only_what_an_import_made() {
    let folder = folder();
    json(folder.path(), &["data", "import", "data.npz", "--out", "x.columns", "--json"]);
    let notes = folder.path().join("x.columns/notes.txt");
    fs::write(&notes, "mine").unwrap();
    let force = ["data", "import", "data.npz", "--out", "x.columns", "--force"];
    refuses(folder.path(), &force, 3, &["notes.txt"]);
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
    fs::remove_file(&notes).unwrap();
    refuses(folder.path(), &force, 0, &[]);
}

#[test]
fn a_changed_number_of_an_imported_column_is_noticed() {
    let folder = folder();
    json(folder.path(), &["data", "import", "data.npz", "--out", "x.columns", "--json"]);
    let column = folder.path().join("x.columns/observations.f32");
    let mut bytes = fs::read(&column).unwrap();
    bytes[4000] ^= 1;
    fs::remove_file(&column).unwrap(); // it is read-only
    fs::write(&column, bytes).unwrap();
    let train = ["train", TASK, "--data", "x.columns", "--steps", "2", "--out", "out"];
    refuses(folder.path(), &train, 3, &["observations.f32", "SHA-256", "changed"]);
    assert!(!folder.path().join("out").exists());
}

#[test]
fn spreadsheets_see_no_formula() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..10).map(|i| format!("{i},@s,=cmd(),1\n{i},+t,=cmd(),0\n")).collect();
    fs::write(folder.path().join("log.csv"), format!("e,s,a,r\n{rows}")).unwrap();
    let args = ["solve", "log.csv", "--state", "s", "--action", "a", "--reward", "r", "--episode", "e"];
    json(folder.path(), &[&args[..], &["--out", "policy.csv", "--json"]].concat());
    let policy = fs::read_to_string(folder.path().join("policy.csv")).unwrap();
    assert!(policy.contains("'=cmd()") && policy.contains("'@s"), "{policy}");
    let cells = policy.split([',', '\n']).map(|cell| cell.trim_matches('"'));
    assert!(cells.into_iter().all(|cell| !cell.starts_with(['=', '+', '@'])), "{policy}");
}

/// Files are limited to 8 kB: smaller than the page, larger than some tables.
#[test]
fn a_full_disk_leaves_no_half_report() {
    let folder = folder();
    json(folder.path(), &["resume", "run", "--json"]);
    let output = shell(folder.path(), "trap '' XFSZ; ulimit -f 8; album report run --out page; echo $?");
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "5");
    assert!(!folder.path().join("page").exists());
    json(folder.path(), &["report", "run", "--out", "page", "--json"]);
    let before = snapshot(&folder.path().join("page"));
    edit(&folder.path().join("run/result.json"), "\"seed\": 0", "\"seed\": 7");
    shell(folder.path(), "trap '' XFSZ; ulimit -f 8; album report run --out page");
    assert_eq!(snapshot(&folder.path().join("page")), before);
}

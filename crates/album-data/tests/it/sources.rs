//! Logs of any kind: what their columns mean, what ends an episode, what actions are.

use std::path::{Path, PathBuf};

use album_data::{
    ACTION_LIMIT, ActionKind, ActionSpace, DataError, Dataset, Ends, NpzWriter, Source, SourceData,
};

/// Two episodes of three and two steps; the first one is over, the second one is cut.
pub struct Log {
    pub observations: Vec<f32>,
    pub next_observations: Vec<f32>,
    pub actions: Vec<f32>,
    pub rewards: Vec<f32>,
    pub terminals: Vec<bool>,
    pub timeouts: Vec<bool>,
    pub episodes: Vec<i64>,
}

pub fn log() -> Log {
    let states = [0.5, 1.5, 2.5, 3.5, 10.0, 11.0, 12.0].map(|x: f32| [x, -x]);
    let row = |i: usize| states[i];
    Log {
        observations: [0, 1, 2, 4, 5].into_iter().flat_map(row).collect(),
        next_observations: [1, 2, 3, 5, 6].into_iter().flat_map(row).collect(),
        actions: vec![-2.0, 0.0, 2.0, 1.0, -1.0],
        rewards: vec![0.1, 0.2, 0.3, 0.4, 0.5],
        terminals: vec![false, false, true, false, false],
        timeouts: vec![false, false, false, false, true],
        episodes: vec![7, 7, 7, 8, 8],
    }
}

fn write(path: &Path, log: &Log, names: &[&str]) {
    let mut writer = NpzWriter::create(path).unwrap();
    for name in names {
        match *name {
            "observations" => writer.array_f32(name, &[5, 2], &log.observations),
            "next_observations" => writer.array_f32(name, &[5, 2], &log.next_observations),
            "actions" => writer.array_f32(name, &[5, 1], &log.actions),
            "rewards" => writer.array_f32(name, &[5], &log.rewards),
            "terminals" | "dones" | "terminations" => writer.array_bool(name, &[5], &log.terminals),
            "timeouts" | "truncations" => writer.array_bool(name, &[5], &log.timeouts),
            "episode_ids" => writer.array_i64(name, &[5], &log.episodes),
            other => panic!("{other}"),
        }
        .unwrap();
    }
    writer.finish().unwrap();
}

fn file(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.npz");
    write(&path, &log(), names);
    (dir, path)
}

fn message(result: Result<SourceData, DataError>) -> String {
    result.unwrap_err().to_string()
}

const BASE: [&str; 3] = ["observations", "actions", "rewards"];

#[test]
fn nothing_is_lost_with_next_observations() {
    let (_dir, path) = file(&[&BASE[..], &["next_observations", "terminations", "truncations"]].concat());
    let SourceData { dataset, description, warnings } = Source::of(&path).read().unwrap();
    assert_eq!((dataset.len(), dataset.episodes().len()), (5, 2));
    assert_eq!((description.ends.terminal, description.ends.timeout), (1, 1));
    assert_eq!(dataset.next_observation(4), [12.0, -12.0]);
    assert_eq!([0, 2, 4].map(|t| dataset.mask(t)), [1.0, 0.0, 1.0]);
    assert_eq!(description.action_space, ActionSpace::Continuous { low: vec![-2.0], high: vec![2.0] });
    assert_eq!([0, 1, 3].map(|t| dataset.action(t)[0]), [-ACTION_LIMIT, 0.0, 0.5]);
    assert_eq!(description.observation_names, ["observations[0]", "observations[1]"]);
    assert!(description.guesses.iter().any(|guess| guess.contains("action bounds")), "{description:?}");
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn without_successors_a_terminal_is_kept_and_a_timeout_is_not() {
    let (_dir, path) = file(&[&BASE[..], &["terminals", "timeouts"]].concat());
    let SourceData { dataset, description, warnings } = Source::of(&path).read().unwrap();
    assert_eq!(dataset.len(), 4);
    assert_eq!((dataset.observation(2), dataset.next_observation(2)), (&[2.5, -2.5][..], &[2.5, -2.5][..]));
    assert_eq!((dataset.mask(2), dataset.next_observation(3)), (0.0, &[11.0, -11.0][..]));
    assert_eq!((description.ends.terminal, description.ends.timeout), (1, 1));
    assert!(warnings[0].starts_with("1 transitions at timeouts"), "{warnings:?}");
}

#[test]
fn one_flag_is_a_question() {
    let (_dir, path) = file(&[&BASE[..], &["dones", "episode_ids"]].concat());
    let text = message(Source::of(&path).read());
    assert!(text.contains("`dones`") && text.contains("--ends terminal or --ends timeout"), "{text}");
    let read = |ends| Source { ends: Some(ends), ..Source::of(&path) }.read().unwrap();
    let terminal = read(Ends::Terminal);
    assert_eq!((terminal.description.ends.terminal, terminal.description.ends.timeout), (1, 1));
    assert!(terminal.warnings.iter().any(|warning| warning.contains("end without a flag")));
    let timeout = read(Ends::Timeout);
    assert_eq!((timeout.description.ends.terminal, timeout.description.ends.timeout), (0, 2));
    assert_eq!(timeout.dataset.len(), 3);
    // A name that leaves no doubt, and a mapping, answer it.
    let (_dir, path) = file(&[&BASE[..], &["terminations", "episode_ids"]].concat());
    assert_eq!(Source::of(&path).read().unwrap().dataset, terminal.dataset);
}

#[test]
fn a_terminal_flag_beside_a_timeout() {
    let mut both = log();
    both.terminals[4] = true;
    let dir = tempfile::tempdir().unwrap();
    let ends = |names: [&str; 2]| {
        let path = dir.path().join(format!("{}.npz", names[0]));
        write(&path, &both, &[&BASE[..], &names].concat());
        Source::of(&path).read().unwrap().description.ends
    };
    // `dones` marks any end, and the timeout says which; `terminations` is an end of the task.
    assert_eq!(ends(["dones", "timeouts"]).timeout, 1);
    assert_eq!(ends(["terminations", "truncations"]).terminal, 2);
}

#[test]
fn one_more_state_than_steps() {
    let log = log();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.npz");
    let mut writer = NpzWriter::create(&path).unwrap();
    let states: Vec<f32> =
        [0.5, 1.5, 2.5, 3.5, 10.0, 11.0, 12.0].into_iter().flat_map(|x: f32| [x, -x]).collect();
    writer.array_f32("observations", &[7, 2], &states).unwrap();
    writer.array_f32("actions", &[5, 1], &log.actions).unwrap();
    writer.array_f32("rewards", &[5], &log.rewards).unwrap();
    writer.array_bool("terminations", &[5], &log.terminals).unwrap();
    writer.array_bool("truncations", &[5], &log.timeouts).unwrap();
    writer.finish().unwrap();
    let (_dir, other) = file(&[&BASE[..], &["next_observations", "terminals", "timeouts"]].concat());
    let (data, expected) = (Source::of(&path).read().unwrap(), Source::of(&other).read().unwrap());
    assert_eq!(data.dataset, expected.dataset);
    assert_eq!(data.dataset.content_hash(), expected.dataset.content_hash());
    assert_eq!(data.description.ends, expected.description.ends);
}

#[test]
fn a_folder_of_arrays_and_several_files() {
    let names = [&BASE[..], &["next_observations", "terminals", "timeouts"]].concat();
    let (dir, path) = file(&names);
    let one: Dataset = Source::of(&path).read().unwrap().dataset;
    let two = Source { paths: vec![path.clone(), path.clone()], ..Source::default() }.read().unwrap();
    assert_eq!((two.dataset.len(), two.description.episodes), (10, 4));
    std::fs::copy(&path, dir.path().join("log-2.npz")).unwrap();
    assert_eq!(Source::of(dir.path()).read().unwrap().dataset, two.dataset);
    // The members of an npz file are npy files.
    let folder = dir.path().join("arrays");
    std::fs::create_dir(&folder).unwrap();
    let mut archive = zip::ZipArchive::new(std::fs::File::open(&path).unwrap()).unwrap();
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).unwrap();
        let name = entry.name().unwrap().into_owned();
        let mut out = std::fs::File::create(folder.join(name)).unwrap();
        std::io::copy(&mut entry, &mut out).unwrap();
    }
    assert_eq!(Source::of(&folder).read().unwrap().dataset, one);
}

#[test]
fn choices_and_amounts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.npz");
    let write = |actions: &[i64]| {
        let log = log();
        let mut writer = NpzWriter::create(&path).unwrap();
        writer.array_f32("observations", &[5, 2], &log.observations).unwrap();
        writer.array_i64("actions", &[5], actions).unwrap();
        writer.array_f32("rewards", &[5], &log.rewards).unwrap();
        writer.array_bool("terminated", &[5], &[false, false, true, false, true]).unwrap();
        writer.finish().unwrap();
    };
    write(&[0, 2, 1, 2, 0]);
    let data = Source::of(&path).read().unwrap();
    assert_eq!(data.dataset.action_space(), &ActionSpace::Discrete { n: 3 });
    assert_eq!((data.dataset.action(1), data.dataset.action_dim()), (&[2.0][..], 1));
    assert!(data.description.guesses.iter().any(|guess| guess.contains("3 choices")));
    write(&[0, 30, 0, 10, 0]);
    let text = message(Source::of(&path).read());
    assert!(text.contains("whole numbers from 0 to 30") && text.contains("--actions discrete"), "{text}");
    let read = |kind| Source { actions: Some(kind), ..Source::of(&path) }.read().unwrap().dataset;
    assert_eq!(read(ActionKind::Discrete).action_space(), &ActionSpace::Discrete { n: 31 });
    assert!((read(ActionKind::Continuous).action(3)[0] + 1.0 / 3.0).abs() < 1e-6);
    write(&[0, -1, 0, 1, 0]);
    let text = message(Source { actions: Some(ActionKind::Discrete), ..Source::of(&path) }.read());
    assert!(text.contains("from -1 to 1, expected the whole numbers from 0 on"), "{text}");
}

#[test]
fn bounds_are_promises() {
    let (_dir, path) = file(&[&BASE[..], &["terminals", "timeouts"]].concat());
    let read = |bounds: &[[f32; 2]]| Source { action_bounds: bounds.to_vec(), ..Source::of(&path) }.read();
    assert_eq!(read(&[[-4.0, 4.0]]).unwrap().dataset.action(0), [-0.5]);
    let text = message(read(&[[-1.0, 1.0]]));
    assert!(
        text.contains("column `actions`, row 0: found -2, expected an action within --action-bounds"),
        "{text}"
    );
    assert!(message(read(&[[1.0, -1.0]])).contains("the lower one first"));
    assert!(message(read(&[[-1.0, 1.0]; 3])).contains("3 pairs of action bounds for actions of dimension 1"));
}

#[test]
fn what_is_wrong_is_located() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.npz");
    let names = [&BASE[..], &["terminals", "timeouts", "episode_ids"]].concat();
    let with = |change: fn(&mut Log)| {
        let mut log = log();
        change(&mut log);
        write(&path, &log, &names);
        message(Source::of(&path).read())
    };
    let text = with(|log| log.rewards[3] = f32::NAN);
    assert!(text.ends_with("column `rewards`, row 3: found NaN, expected a finite number"), "{text}");
    let text = with(|log| log.observations[3] = f32::INFINITY);
    assert!(text.contains("column `observations[1]`, row 1: found inf"), "{text}");
    let text = with(|log| log.episodes[4] = 7);
    assert!(text.contains("row 4: an episode that had ended goes on here"), "{text}");
    let text = with(|log| log.terminals[0] = true);
    assert!(text.contains("row 0: the episode ends here by its flag, but goes on"), "{text}");
    let (_dir, path) = file(&["observations", "actions", "terminals", "timeouts"]);
    let text = message(Source::of(&path).read());
    assert!(text.contains("found no column for `reward` among `observations`"), "{text}");
    let data = Source { reward_last: Some(1.0), ..Source::of(&path) }.read().unwrap().dataset;
    assert_eq!((0..4).map(|t| data.reward(t)).collect::<Vec<_>>(), [0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn a_source_is_kept_as_text() {
    let source = Source {
        columns: "obs=x*,action=u1+u2".parse().unwrap(),
        ends: Some(Ends::Timeout),
        action_bounds: vec![[-2.0, 2.0]],
        ..Source::of("log.npz")
    };
    let text = serde_json::to_string(&source).unwrap();
    assert_eq!(serde_json::from_str::<Source>(&text).unwrap(), source);
    assert!(!text.contains("reward_last"), "{text}");
}

/// A CSV file of 3,000 steps, whose cells of column `which` change from row 2,000 on.
fn late(path: &Path, which: &str, cell: &str) {
    let mut text = String::from("episode,obs,action,reward,terminated\n");
    for row in 0..3000 {
        let mut cells = vec![
            ("episode", (row / 100).to_string()),
            ("obs", (row % 7).to_string()),
            ("action", if row % 2 == 0 { "-1.5" } else { "2.5" }.to_owned()),
            ("reward", "1".to_owned()),
            ("terminated", if row % 100 == 99 { "True" } else { "False" }.to_owned()),
        ];
        for (name, value) in &mut cells {
            if row >= 2000 && *name == which {
                *value = cell.replace('#', value);
            }
        }
        let cells: Vec<String> = cells.into_iter().map(|(_, cell)| cell).collect();
        text.push_str(&format!("{}\n", cells.join(",")));
    }
    std::fs::write(path, text).unwrap();
}

/// Types are first taken from the start of a CSV file; a file that changes later is read as if they had not been.
#[test]
fn types_may_change_late_in_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.csv");
    let read = |which: &str, cell: &str| {
        late(&path, which, cell);
        Source::of(&path).read()
    };
    let plain = read("none", "").unwrap();
    assert_eq!((plain.dataset.len(), plain.dataset.observation(2005)), (3000, &[(2005 % 7) as f32][..]));
    // The same numbers in another notation, or episodes with names.
    for (which, cell) in
        [("obs", "#.0"), ("obs", "#e0"), ("obs", " # "), ("episode", "e#"), ("reward", "1.0")]
    {
        let data = read(which, cell).unwrap();
        assert_eq!(data.dataset.content_hash(), plain.dataset.content_hash(), "{which} {cell}");
    }
    assert_eq!(read("obs", "#.5").unwrap().dataset.observation(2005), [(2005 % 7) as f32 + 0.5]);
    // A missing cell makes numbers of whole numbers, and is no number.
    assert!(message(read("obs", "")).contains("row 2000"), "{}", message(read("obs", "")));
    assert!(message(read("reward", "none")).contains("row 2000"), "{}", message(read("reward", "none")));
    let short = message(read("reward", "1,1"));
    assert!(short.contains("line 2002 has 6 fields"), "{short}");
    let text = message(read("obs", "warm"));
    assert!(text.contains("row 2000: found `warm`, expected a number as in the other rows"), "{text}");
}

/// A file whose first line is a table's: the message says what the rest lacks.
#[test]
fn tables_that_are_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.csv");
    for (content, expected) in [
        (&b"episode,obs,action,reward\n"[..], "found a line of column names without rows below it"),
        (b"episode,obs,action,reward", "found a line of column names without rows below it"),
        (b"episode,obs,action,reward\n0,\xe9,1,1\n", "found a table that is not UTF-8 (byte 0xe9 at 28)"),
        (b"episode,obs\0,action,reward\n0,1,1,1\n", "found a table with zero bytes in it"),
        (b"{\"episode\": 1, \"obs\": 2}\n", "found a file that starts with"),
    ] {
        std::fs::write(&path, content).unwrap();
        let message = message(Source::of(&path).read());
        assert!(message.contains(expected), "{message}");
    }
}

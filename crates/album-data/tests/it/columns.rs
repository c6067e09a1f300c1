//! Folders of columns: the same data as from files, and what is refused.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use album_data::columns::{Import, Imported, import, verify};
use album_data::ogbench::{TaskName, load_task};
use album_data::{Array, Batch, Data, DataError, Dataset, NpzWriter, SegmentConfig, Segments};

const SCENE: &str = "scene-play-singletask-task2-v0";

fn task(name: &str) -> TaskName {
    name.parse().unwrap()
}

type Arrays = Vec<(&'static str, Array)>;

/// Scene data: `episodes` recordings of 7 rows, with numbers that depend on `salt`.
fn arrays(episodes: usize, salt: usize) -> Arrays {
    let rows = episodes * 7;
    let floats = |width: usize, scale: f32| {
        let numbers = (0..rows * width).map(|i| ((i * 31 + salt * 17) % 101) as f32 * scale - 1.5).collect();
        Array::new(vec![rows, width], Data::F32(numbers)).unwrap()
    };
    let mut actions = floats(5, 0.03);
    if let Data::F32(numbers) = &mut actions.data {
        numbers.iter_mut().for_each(|x| *x = x.clamp(-1.0, 1.0));
    }
    let buttons = (0..rows * 2).map(|i| ((i / 3 + salt) % 2) as i64).collect();
    let terminals = (0..rows).map(|row| row % 7 == 6).collect();
    vec![
        ("observations", floats(40, 0.5)),
        ("actions", actions),
        ("terminals", Array::new(vec![rows], Data::Bool(terminals)).unwrap()),
        ("qpos", floats(25, 0.02)),
        ("qvel", floats(24, 1.0)),
        ("button_states", Array::new(vec![rows, 2], Data::I64(buttons)).unwrap()),
    ]
}

fn write(path: &Path, arrays: &[(&str, Array)]) {
    let mut writer = NpzWriter::create(path).unwrap();
    for (name, array) in arrays {
        writer.array(name, array).unwrap();
    }
    writer.finish().unwrap();
}

fn imported(sources: &[PathBuf], target: &Path) -> Result<Imported, DataError> {
    let what = Import { sources, target, replace: false, environment: None };
    import(&what, &mut |_, _| true).map(Option::unwrap)
}

/// A folder `data.columns` beside the `data.npz` it was made from.
fn example() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (file, folder) = (dir.path().join("data.npz"), dir.path().join("data.columns"));
    write(&file, &arrays(400, 1));
    imported(std::slice::from_ref(&file), &folder).unwrap();
    (dir, file, folder)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// State, action, next state, reward, mask, terminal.
type Transition = (Vec<f32>, Vec<f32>, Vec<f32>, f32, f32, bool);

/// All that a program can see of a dataset.
fn seen(data: &Dataset) -> Vec<Transition> {
    let one = |t| {
        let (s, a, next) = (data.observation(t), data.action(t), data.next_observation(t));
        (s.to_vec(), a.to_vec(), next.to_vec(), data.reward(t), data.mask(t), data.terminal(t))
    };
    (0..data.len()).map(one).collect()
}

/// All windows of a dataset, with chunks that go beyond the ends of episodes.
fn windows(data: &Dataset) -> Batch {
    let segments = Segments::new(SegmentConfig { k: 4, chunk: 4, ..SegmentConfig::default() }).unwrap();
    let mut batch = segments.batch(data, data.len());
    batch.indices_mut().iter_mut().enumerate().for_each(|(i, index)| *index = i);
    segments.gather(data, &mut batch);
    batch
}

#[test]
fn one_import_serves_every_task_and_has_the_hash_of_the_file() {
    let (_dir, file, folder) = example();
    let mut rewards = Vec::new();
    for number in 1..=5 {
        let task = task(&format!("scene-play-singletask-task{number}-v0"));
        let (owned, mapped) = (load_task(&file, &task).unwrap(), load_task(&folder, &task).unwrap());
        assert_eq!((owned.len(), owned.episodes().len()), (2400, 400));
        assert_eq!(seen(&owned), seen(&mapped));
        assert_eq!(owned, mapped);
        assert_eq!(windows(&owned), windows(&mapped));
        assert_eq!(owned.content_hash(), mapped.content_hash());
        assert!(mapped.states().eq(owned.states()));
        rewards.push((0..owned.len()).map(|t| owned.reward(t)).collect::<Vec<_>>());
    }
    // The tasks do not all say the same, or nothing was tested.
    rewards.dedup();
    assert!(rewards.len() > 1);
    verify(&folder).unwrap();
    let files =
        ["actions.f32", "button_states.i8", "episodes.u64", "manifest.json", "observations.f32", "qpos.f32"];
    assert_eq!(names(&folder), files);
}

#[test]
fn slices_follow_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (first, second) = (arrays(3, 1), arrays(2, 2));
    write(&path("0.npz"), &first);
    write(&path("1.npz"), &second);
    let report = imported(&[path("0.npz"), path("1.npz")], &path("both")).unwrap();
    assert_eq!((report.transitions, report.episodes), (30, 5));
    assert_eq!(report.columns["observations"], 40);
    let both = load_task(path("both"), &task(SCENE)).unwrap();
    let parts = ["0.npz", "1.npz"].map(|name| seen(&load_task(path(name), &task(SCENE)).unwrap()));
    assert_eq!(seen(&both), parts.concat());
    assert!(fs::read_to_string(path("both/manifest.json")).unwrap().contains("\"1.npz\""));
}

#[test]
fn other_types_and_orders_are_converted() {
    let dir = tempfile::tempdir().unwrap();
    let (file, folder) = (dir.path().join("data.npz"), dir.path().join("data.columns"));
    let mut arrays = arrays(40, 3);
    for (_, array) in &mut arrays {
        array.data = match &array.data {
            Data::F32(v) => Data::F64(v.iter().map(|&x| f64::from(x) + 1e-12).collect()),
            Data::I64(v) => Data::U8(v.iter().map(|&x| x as u8).collect()),
            Data::Bool(v) => Data::I32(v.iter().map(|&x| i32::from(x)).collect()),
            other => other.clone(),
        };
    }
    write(&file, &arrays);
    imported(std::slice::from_ref(&file), &folder).unwrap();
    let (owned, mapped) =
        (load_task(&file, &task(SCENE)).unwrap(), load_task(&folder, &task(SCENE)).unwrap());
    assert_eq!(owned, mapped);
}

#[test]
fn bad_sources_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (file, folder) = (dir.path().join("bad.npz"), dir.path().join("data.columns"));
    let message = |change: &dyn Fn(&mut Arrays)| {
        let mut arrays = arrays(400, 1);
        change(&mut arrays);
        write(&file, &arrays);
        let error = imported(std::slice::from_ref(&file), &folder).unwrap_err().to_string();
        assert_eq!(names(dir.path()), ["bad.npz"], "{error}");
        error
    };
    let set = |index: usize, element: usize, value: f32| {
        move |arrays: &mut Arrays| {
            if let Data::F32(v) = &mut arrays[index].1.data {
                v[element] = value;
            }
        }
    };
    let text = message(&set(0, 40 * 2000 + 3, f32::NAN));
    assert!(
        text.ends_with("array `observations`: row 2000, column 3: found NaN, expected a finite number"),
        "{text}"
    );
    let text = message(&set(1, 5 * 2004 + 4, f32::INFINITY));
    assert!(
        text.ends_with("array `actions`: row 2004, column 4: found inf, expected a finite number"),
        "{text}"
    );
    let text = message(&set(3, 25 * 2702, f32::NAN));
    assert!(
        text.ends_with("array `qpos`: row 2702, column 0: found NaN, expected a finite number"),
        "{text}"
    );
    let text = message(&|arrays| {
        if let Data::I64(v) = &mut arrays[5].1.data {
            v[2 * 2003 + 1] = 200;
        }
    });
    assert!(
        text.ends_with("array `button_states`: row 2003, column 1: found 200, expected -128 to 127"),
        "{text}"
    );
    let text = message(&|arrays| {
        if let Data::Bool(v) = &mut arrays[2].1.data {
            v[2799] = false;
        }
    });
    assert!(text.contains("array `terminals`: row 2799: found false, expected true"), "{text}");
    let text = message(&|arrays| drop(arrays.remove(1)));
    assert!(text.contains("array `actions`: not in the archive"), "{text}");

    // A slice that does not fit the others, and a file cut off.
    let mut other = arrays(2, 1);
    other.remove(5);
    write(&file, &arrays(2, 1));
    write(&dir.path().join("other.npz"), &other);
    let text = imported(&[file.clone(), dir.path().join("other.npz")], &folder).unwrap_err().to_string();
    assert!(text.contains("other.npz") && text.contains("the columns of"), "{text}");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 30]).unwrap();
    assert!(imported(std::slice::from_ref(&file), &folder).is_err());
    assert_eq!(names(dir.path()), ["bad.npz", "other.npz"]);
}

#[test]
fn an_import_can_be_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("data.npz");
    write(&file, &arrays(4000, 1));
    let target = dir.path().join("data.columns");
    let what =
        Import { sources: std::slice::from_ref(&file), target: &target, replace: false, environment: None };
    let mut calls = 0;
    let result = import(&what, &mut |done, total| {
        assert!(done <= total);
        calls += 1;
        calls < 3
    });
    assert!(result.unwrap().is_none());
    assert_eq!((calls, names(dir.path())), (3, vec!["data.npz".to_owned()]));
}

#[test]
fn only_our_folders_are_replaced_and_only_if_asked() {
    let (dir, file, folder) = example();
    let again = |target: &Path, replace| {
        let what = Import { sources: std::slice::from_ref(&file), target, replace, environment: None };
        import(&what, &mut |_, _| true).map(|done| done.unwrap().episodes)
    };
    let mapped = load_task(&folder, &task(SCENE)).unwrap();
    let before = seen(&mapped);
    assert!(again(&folder, false).unwrap_err().to_string().contains("already exists"));
    write(&file, &arrays(10, 9));
    assert_eq!(again(&folder, true).unwrap(), 10);
    assert_eq!(load_task(&folder, &task(SCENE)).unwrap().episodes().len(), 10);
    // Who had the old columns open keeps them.
    assert_eq!(seen(&mapped), before);

    let precious = dir.path().join("precious");
    fs::create_dir(&precious).unwrap();
    assert_eq!(again(&precious, false).unwrap(), 10); // was empty
    let thesis = dir.path().join("thesis");
    fs::create_dir(&thesis).unwrap();
    fs::write(thesis.join("thesis.tex"), "\\end").unwrap();
    assert!(again(&thesis, true).unwrap_err().to_string().contains("not an imported folder"));
    assert!(
        again(&thesis.join("thesis.tex"), true).unwrap_err().to_string().contains("not a readable folder")
    );
    assert_eq!(names(&thesis), ["thesis.tex"]);
}

/// Replaces text in the manifest.
fn edit(folder: &Path, from: &str, to: &str) {
    let path = folder.join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::remove_file(&path).unwrap();
    fs::write(&path, text.replace(from, to)).unwrap();
}

/// Gives a read-only file other bytes.
fn overwrite(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_folders_are_refused() {
    let load = |folder: &Path| load_task(folder, &task(SCENE)).unwrap_err().to_string();
    type Damage<'a> = (&'a dyn Fn(&Path), &'a [&'a str]);
    let cut = |name: &'static str, keep: usize| {
        move |folder: &Path| {
            let bytes = fs::read(folder.join(name)).unwrap();
            overwrite(&folder.join(name), &bytes.repeat(2)[..keep]);
        }
    };
    let damages: [Damage<'_>; 14] = [
        (&|f| edit(f, "\"version\": 1", "\"version\": 3"), &["found version 3, expected 1 or 2"]),
        (&|f| edit(f, "album columns", "other columns"), &["found format `other columns`"]),
        (&|f| edit(f, "\"little\"", "\"big\""), &["found byte order `big`, expected `little`"]),
        (&|f| edit(f, "\"rows\": 2800", "\"rows\": 2801"), &["bytes are not 2801 rows"]),
        (&|f| edit(f, "\"rows\": 2800", "\"rows\": -1"), &["manifest.json", "damaged columns"]),
        (&|f| edit(f, "\"rows\": 2800", "\"rows\": 99999999999999999"), &["rows of"]),
        (&|f| edit(f, "\"observations\"", "\"../../secret\""), &["no column `observations`"]),
        (&|f| edit(f, "\"qpos\"", "\"../../secret\""), &["unknown column `../../secret`"]),
        (&|f| edit(f, "\"float32\"", "\"float64\""), &["found dtype float64, expected float32"]),
        (&|f| edit(f, "\"sources\"", "\"sauces\""), &["unknown field `sauces`"]),
        (&|f| overwrite(&f.join("manifest.json"), b"{\"format\": \"album"), &["manifest.json", "EOF"]),
        (&cut("observations.f32", 447_999), &["observations.f32", "found 447999 bytes, expected 448000"]),
        (&cut("actions.f32", 56_004), &["actions.f32", "found 56004 bytes, expected 56000"]),
        (&|f| fs::remove_file(f.join("qpos.f32")).unwrap(), &["qpos.f32"]),
    ];
    for (damage, words) in damages {
        let (_dir, _, folder) = example();
        damage(&folder);
        let message = load(&folder);
        for word in words {
            assert!(message.contains(word), "no `{word}` in: {message}");
        }
    }
    let (dir, _, folder) = example();
    overwrite(&folder.join("episodes.u64"), &6u64.to_le_bytes().repeat(399));
    assert!(load(&folder).contains("episodes.u64: damaged columns: found 3192 bytes"));
    overwrite(&folder.join("episodes.u64"), &u64::MAX.to_le_bytes().repeat(400));
    let message = load(&folder);
    let hashes: Vec<&str> =
        message.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() == 64).collect();
    let [found, expected] = hashes[..] else { panic!("{message}") };
    edit(&folder, expected, found); // a manifest that lies, too
    assert!(load(&folder).contains("have countless transitions, expected 400 with 2400"));
    assert!(
        load(dir.path()).contains("found a folder without manifest.json, expected an npz file, or a folder")
    );
}

#[test]
fn a_flipped_bit_is_found() {
    let (_dir, _, folder) = example();
    let path = folder.join("observations.f32");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100_000] ^= 1;
    overwrite(&path, &bytes);
    let loaded = load_task(&folder, &task(SCENE)).unwrap_err().to_string();
    for message in [loaded, verify(&folder).unwrap_err().to_string()] {
        assert!(message.contains("observations.f32: damaged columns: SHA-256 of the file is"), "{message}");
    }
}

#[test]
fn a_task_needs_its_columns() {
    let (dir, file, folder) = example();
    let cube = task("cube-double-play-singletask-v0");
    let message = load_task(&folder, &cube).unwrap_err().to_string();
    assert!(message.contains("found shape [2800, 25], expected [2800, 28] for cube-double"), "{message}");
    assert!(message.ends_with("looks like data of scene, not of cube-double"), "{message}");
    let mut arrays = arrays(2, 1);
    arrays.remove(5);
    write(&file, &arrays);
    let target = dir.path().join("without");
    imported(std::slice::from_ref(&file), &target).unwrap();
    let message = load_task(&target, &task(SCENE)).unwrap_err().to_string();
    assert!(message.contains("`button_states`: not in the archive, which holds `actions`"), "{message}");
    // With the task, the import refuses at once.
    let checked = |name: &str, target: &str| {
        let target = dir.path().join(target);
        let environment = Some(task(name).environment());
        let what =
            Import { sources: std::slice::from_ref(&file), target: &target, replace: false, environment };
        import(&what, &mut |_, _| true).map(|_| ()).map_err(|e| e.to_string())
    };
    assert!(checked(SCENE, "a").unwrap_err().contains("`button_states`: not in the archive"));
    assert!(
        checked("cube-single-play-singletask-v0", "b")
            .unwrap_err()
            .contains("expected [14, 21] for cube-single")
    );
    assert!(!dir.path().join("a").exists() && !dir.path().join("b").exists());
}

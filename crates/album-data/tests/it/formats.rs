//! One log in every format, written by the libraries that people use (`golden/make.py`): the same dataset, bit by bit.

use std::path::PathBuf;

use album_data::columns::import_source;
use album_data::{ActionSpace, DataError, Description, Ends, Format, Source, SourceData};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn read(source: &Source) -> SourceData {
    source.read().unwrap_or_else(|e| panic!("{:?}: {e}", source.paths))
}

fn hash(source: &Source) -> String {
    read(source).dataset.content_hash()
}

/// With bounds, so that they are not taken from the part of the data that a format keeps.
fn bounded(name: &str) -> Source {
    Source { action_bounds: vec![[-4.0, 4.0]], ..Source::of(golden(name)) }
}

#[test]
fn all_formats_are_the_same_dataset() {
    let expected = hash(&bounded("log.npz"));
    for (name, format) in [
        ("states.npz", Format::Npz),
        ("npy", Format::Npy),
        ("d4rl.hdf5", Format::D4rl),
        ("narrow.hdf5", Format::D4rl),
        ("log.csv", Format::Csv),
        ("log.csv.gz", Format::Csv),
        ("shuffled.csv", Format::Csv),
        ("log.parquet", Format::Parquet),
        ("lists.parquet", Format::Parquet),
        ("minari/album/hdf5-v0", Format::Minari),
        ("minari/album/hdf5-v0/data/main_data.hdf5", Format::Minari),
        ("minari/album/parquet-v0", Format::Minari),
    ] {
        let data = read(&bounded(name));
        assert_eq!(data.description.format, format, "{name}");
        assert_eq!((data.description.ends.terminal, data.description.ends.timeout), (1, 1), "{name}");
        assert_eq!((data.dataset.len(), data.dataset.episodes().len()), (8, 2), "{name}");
        assert_eq!(data.dataset.content_hash(), expected, "{name}");
    }
}

/// Chunks that were never written hold zeros.
#[test]
fn chunks_that_are_missing_are_filled() {
    let data = read(&Source { ends: Some(Ends::Terminal), ..Source::of(golden("holes.hdf5")) }).dataset;
    let first: Vec<f32> = (0..10).map(|t| data.observation(t)[0]).collect();
    assert_eq!(first, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    assert!((0..10).all(|t| data.observation(t)[1..] == [0.0, 0.0]));
}

/// All episodes end by themselves, so that formats without timeouts or next observations hold all of it, too.
#[test]
fn every_format_can_hold_the_same_log() {
    let dir = tempfile::tempdir().unwrap();
    let imported = dir.path().join("imported");
    let source = bounded("ended/log.npz");
    let expected = hash(&source);
    import_source(&source, &imported, false, &mut |_| true).unwrap().unwrap();
    let mut formats: Vec<Format> = vec![Format::Columns];
    assert_eq!(hash(&Source::of(&imported)), expected);
    for (name, ends) in [
        ("log.npz", None),
        ("states.npz", None),
        ("npy", None),
        ("d4rl.hdf5", None),
        ("robomimic.hdf5", Some(Ends::Terminal)),
        ("minari/album/hdf5-v0/data/main_data.hdf5", None),
        ("minari/album/hdf5-v0", None),
        ("minari/album/parquet-v0", None),
        ("log.parquet", None),
        ("lists.parquet", None),
        ("log.csv", None),
        ("log.csv.gz", None),
        ("shuffled.csv", None),
        ("lerobot", Some(Ends::Terminal)),
    ] {
        let data = read(&Source { ends, ..bounded(&format!("ended/{name}")) });
        assert_eq!((data.dataset.len(), data.description.ends.terminal), (34, 4), "{name}");
        assert_eq!(data.dataset.content_hash(), expected, "{name}");
        formats.push(data.description.format);
    }
    assert!(Format::ALL.iter().all(|format| formats.contains(format)), "{formats:?}");
}

#[test]
fn formats_that_do_not_say_what_ended_episodes() {
    let ends = Some(Ends::Terminal);
    let plain: Source = Source { ends, columns: "terminal=,timeout=".parse().unwrap(), ..bounded("log.npz") };
    let error = bounded("robomimic.hdf5").read().unwrap_err().to_string();
    assert!(error.contains("`dones`") && error.contains("--ends"), "{error}");
    let robomimic = read(&Source { ends, ..bounded("robomimic.hdf5") });
    assert_eq!(robomimic.description.observation_names, ["obs/pos[0]", "obs/pos[1]", "obs/vel"]);
    assert_eq!(robomimic.dataset.content_hash(), hash(&plain));

    let error = bounded("lerobot").read().unwrap_err().to_string();
    assert!(error.contains("`reward`") && error.contains("--reward-last 1"), "{error}");
    let rewarded = |source: Source| Source { reward_last: Some(1.0), ..source };
    let lerobot = read(&rewarded(Source { ends, ..bounded("lerobot") }));
    let columns = "terminal=,timeout=,next_obs=".parse().unwrap();
    assert_eq!(lerobot.dataset.content_hash(), hash(&rewarded(Source { columns, ..plain })));
    assert_eq!(lerobot.description.format, Format::Lerobot);
    let total: f32 = (0..lerobot.dataset.len()).map(|t| lerobot.dataset.reward(t)).sum();
    assert_eq!(total, 2.0);
}

#[test]
fn minari_knows_its_action_space() {
    let Description { action_space, observation_names, .. } =
        read(&Source::of(golden("minari/album/parquet-v0"))).description;
    let ActionSpace::Continuous { low, high } = action_space else { panic!("{action_space:?}") };
    // The second bound is infinite in the space: that of the data.
    assert_eq!((low[0], high[0]), (-4.0, 4.0));
    assert!(low[1] > -3.0 && high[1] < 3.0 && low[1] < high[1]);
    assert_eq!(observation_names, ["observations/pos[0]", "observations/pos[1]", "observations/vel"]);
    let error = Source::of(golden("minari/album/arrow-v0")).read().unwrap_err().to_string();
    assert!(error.contains("form `arrow`") && error.contains("data_format='parquet'"), "{error}");
}

#[test]
fn bounds_and_order_are_guessed_aloud() {
    let data = read(&Source::of(golden("log.csv")));
    let guesses = data.description.guesses.join("\n");
    for words in ["episode=eps_id", "step=t", "obs=obs_0+obs_1+obs_2", "next_obs=next_obs_0", "action bounds"]
    {
        assert!(guesses.contains(words), "{guesses}");
    }
    assert_eq!(data.description.observation_names, ["obs_0", "obs_1", "obs_2"]);
    assert!(data.warnings.is_empty(), "{:?}", data.warnings);
}

fn csv(text: &str) -> Result<SourceData, DataError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.csv");
    std::fs::write(&path, text).unwrap();
    Source::of(&path).read()
}

#[test]
fn text_columns_are_categories() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.csv");
    std::fs::write(
        &path,
        "run,obs_level,obs_mode,action,reward,terminated\na,1,idle,left,0,0\na,2,busy,right,0,0\na,3,idle,left,1,1\n\
         b,4,off,stay,0,0\nb,5,busy,left,2,1\n",
    )
    .unwrap();
    let data = read(&Source { columns: "episode=run".parse().unwrap(), ..Source::of(&path) });
    assert_eq!(
        data.description.observation_names,
        ["obs_level", "obs_mode=busy", "obs_mode=idle", "obs_mode=off"]
    );
    assert_eq!(data.description.categories["obs_mode"], ["busy", "idle", "off"]);
    assert_eq!(data.dataset.observation(1), [2.0, 1.0, 0.0, 0.0]);
    assert_eq!(data.dataset.action_space(), &ActionSpace::Discrete { n: 3 });
    assert_eq!(data.description.action_names, ["left", "right", "stay"]);
    assert_eq!((0..5).map(|t| data.dataset.action(t)[0]).collect::<Vec<_>>(), [0.0, 1.0, 0.0, 2.0, 0.0]);
}

#[test]
fn bad_tables_are_located() {
    let message = |text: &str| csv(text).unwrap_err().to_string();
    let rows = |lines: &str| format!("episode,step,obs,action,reward,terminated,truncated\n{lines}");
    let text = message(&rows("0,0,1.5,0.5,1,0,0\n0,2,1.5,0.5,1,1,0\n"));
    assert!(text.contains("row 1: found step 2 after step 0, expected 1"), "{text}");
    let text = message(&rows("0,0,1.5,0.5,1,0,0\n0,0,1.5,0.5,1,1,0\n"));
    assert!(text.contains("row 1: found step 0 twice in one episode"), "{text}");
    let text = message(&rows("0,0,1.5,0.5,1,0,0\n0,1,fast,0.5,1,1,0\n1,0,2.5,0.5,1,1,0\n"));
    assert!(text.contains("column `obs`, row 1: found `fast`, expected a number"), "{text}");
    // One word makes text of a whole column; far down, it is in another part of the file than the first rows.
    for odd in [1, 100_000] {
        let line = |i: usize| match i == odd {
            true => format!("0,{i},1.5,0.5,n/a,0,0\n"),
            false => format!("0,{i},1.5,0.5,0.25,{},0\n", u8::from(i == odd + 1)),
        };
        let text = message(&rows(&(0..odd + 2).map(line).collect::<String>()));
        assert!(
            text.contains(&format!("column `reward`, row {odd}: found `n/a`, expected a number")),
            "{text}"
        );
    }
    let text = message(&rows("0,0,1.5,0.5,1,0,0\n0,1,2.5,0.5,1,yes,0\n"));
    assert!(text.contains("column `terminated`, row 1: found `yes`, expected 0 or 1"), "{text}");
    let text = message(&rows("0,0,1.5,0.5,,0,0\n0,1,2.5,0.5,1,1,0\n"));
    assert!(text.contains("column `reward`, row 0: found NaN, expected a finite number"), "{text}");
    let text = message(&rows("0,0,1.5,0.5,1,2,0\n0,1,2.5,0.5,1,1,0\n"));
    assert!(text.contains("column `terminated`, row 0: found 2, expected 0 or 1"), "{text}");
    let text = message("episode,obs,action,reward,terminated\n0,1.5,0.5,1,0\n1,1.5,0.5,1,0\n0,1.5,0.5,1,1\n");
    assert!(text.contains("row 2: an episode that had ended goes on here"), "{text}");
    let text = message("episode,obs,actoin,reward\n0,1,2,3\n");
    assert!(text.contains("found no column for `action`"), "{text}");
}

#[test]
fn a_minari_id_stands_for_its_folder() {
    let data = read(&Source { format: Some(Format::Minari), ..bounded("minari/album/hdf5-v0") });
    assert_eq!(data.dataset.len(), 8);
    // What is no id and no file is a file that is missing.
    let error = Source::of("no/such-dataset-v0").read().unwrap_err();
    assert!(matches!(error, DataError::Io { .. }), "{error}");
}

#[test]
fn an_imported_log_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["log.npz", "d4rl.hdf5", "shuffled.csv", "lists.parquet", "minari/album/parquet-v0"] {
        let (source, folder) = (Source::of(golden(name)), dir.path().join(name.replace('/', "-")));
        let (imported, description) = import_source(&source, &folder, false, &mut |_| true).unwrap().unwrap();
        let (mapped, in_memory) = (read(&Source::of(&folder)), read(&source));
        assert_eq!(mapped.dataset.content_hash(), in_memory.dataset.content_hash(), "{name}");
        assert_eq!(mapped.dataset, in_memory.dataset, "{name}");
        assert_eq!((&mapped.description, &description), (&in_memory.description, &in_memory.description));
        assert_eq!((imported.transitions, imported.episodes), (8, 2));
        album_data::columns::verify(&folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 6, "{name}");
        let again = import_source(&source, &folder, false, &mut |_| true).unwrap_err().to_string();
        assert!(again.contains("already exists"), "{again}");
        let said =
            Source { ends: Some(Ends::Terminal), ..Source::of(&folder) }.read().unwrap_err().to_string();
        assert!(said.contains("settled by its import"), "{said}");
    }
    let failed = dir.path().join("failed");
    let bad = Source { columns: "reward=obs_9".parse().unwrap(), ..Source::of(golden("log.csv")) };
    assert!(import_source(&bad, &failed, false, &mut |_| true).is_err() && !failed.exists());
}

/// Long episodes are cut where the memory for them ends; the dataset is the same.
#[test]
fn long_episodes_are_imported_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let (path, folder) = (dir.path().join("log.csv"), dir.path().join("log.columns"));
    let mut text = "episode,obs,action,reward,terminated\n".to_owned();
    let mut row = |episode: usize, step: usize, last: bool| {
        let action = (step * 7 % 1000) as f32 / 100.0;
        text += &format!("{episode},{step},{action},{},{}\n", step % 3, u8::from(last));
    };
    for (episode, length) in [3, 150_000, 65_536, 65_535, 1, 70_000].into_iter().enumerate() {
        (0..length).for_each(|step| row(episode, step, step + 1 == length));
    }
    std::fs::write(&path, text).unwrap();
    let source = Source::of(&path);
    import_source(&source, &folder, false, &mut |_| true).unwrap().unwrap();
    assert_eq!(read(&Source::of(&folder)).dataset, read(&source).dataset);
    let stopped = dir.path().join("stopped");
    assert!(import_source(&source, &stopped, false, &mut |_| false).unwrap().is_none() && !stopped.exists());
}

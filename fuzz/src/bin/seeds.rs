//! Writes the initial inputs of fuzzing: `seeds FOLDER`, with one folder per target.

use std::fs;
use std::path::Path;

use album_fuzz::Folder;
use album_fuzz::base::{self, golden_file};

fn main() {
    let folder = std::env::args().nth(1).expect("usage: seeds FOLDER");
    let out = std::path::absolute(&folder).expect("a folder");
    let write = |target: &str, seeds: Vec<Vec<u8>>| {
        let folder = out.join(target);
        fs::create_dir_all(&folder).expect("a folder");
        for (i, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{i}")), seed).expect("a seed");
        }
    };
    let golden = |names: &[&str]| names.iter().map(|name| golden_file(name)).collect::<Vec<_>>();
    let texts =
        |folder: &str, end: &str| texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder), end);

    write("npy", base::npys().into_iter().map(|(_, bytes)| bytes).collect());
    write("npz", golden(&["log.npz", "states.npz"]));
    write("csv", golden(&["log.csv", "shuffled.csv", "log.csv.gz"]));
    write("parquet", golden(&["log.parquet", "lists.parquet"]));
    let minari = "minari/album/hdf5-v0/data/main_data.hdf5";
    write("hdf5", golden(&["d4rl.hdf5", "robomimic.hdf5", "bomb.hdf5", minari]));
    write("arrays", base::arrays().seeds());
    write("columns", base::columns().seeds());
    write("lerobot", base::golden_folder("lerobot").seeds());
    write("minari", base::golden_folder("minari/album").seeds());
    write("tabular_npz", vec![base::tabular_npz()]);
    write("tabular_log", base::labelled());

    let album = base::run_directory("album");
    let checkpoints = album_train::checkpoint::list(&album.join("checkpoints")).expect("checkpoints");
    write("checkpoint", Folder::of(checkpoints[0].clone()).seeds());
    let run = Folder::of(base::run_directory("iql")).only(&["config.toml", "manifest.json"]);
    write("run", run.seeds());
    write("report", small(&album, &["html", "lock"]).seeds());
    let names = ["config.toml", "result.json", "train.csv", "eval.csv", "episodes.jsonl", "value_maps.jsonl"];
    write("records", Folder::of(album.clone()).only(&names).seeds());
    write("result", vec![fs::read(album.join("result.json")).expect("a result")]);
    let configs = ["album", "iql"].map(|agent| base::run_directory(agent).join("config.toml"));
    write("config", configs.iter().map(|path| fs::read(path).expect("a configuration")).collect());
    let pairs = ["steps=20", "hidden=[4, 4]", "holdout=0.1"];
    let presets = texts("presets", "toml").into_iter().zip(pairs.iter().cycle());
    let option = |(text, pair): (Vec<u8>, &&str)| [pair.as_bytes(), b"\n", &text].concat();
    write(
        "options",
        presets.map(option).chain([b"k=3\nagent = \"iql\"\n[iql]\ngamma = 0.9\n".to_vec()]).collect(),
    );
    write("policy", ["album", "iql"].map(base::policy).into());
    write("act", vec![b"[0.5, 0.25]\n{\"obs_0\": 1, \"obs_1\": -2e-3}\n\n[1]\nnull\n".to_vec()]);
    write("protocol", vec![conversation()]);
    write("experiment", texts("experiments", "toml"));
    write("published", texts("experiments/published", "csv"));
    let _ = fs::remove_dir_all(album_fuzz::scratch());
}

/// The files of a run, without its checkpoints and those whose names end like this.
fn small(run: &Path, without: &[&str]) -> Folder {
    let mut folder = Folder::of(run.to_path_buf());
    let wanted = |path: &Path| path.extension().is_some_and(|e| !without.iter().any(|end| e == *end));
    folder.files.retain(|(path, _)| path.parent() == Some(run) && wanted(path));
    folder
}

fn texts(folder: &Path, end: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == end));
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a text")).collect()
}

/// The messages of a worker in a short episode.
fn conversation() -> Vec<u8> {
    let message = |kind: u8, body: &[u8]| [&[kind][..], &(body.len() as u32).to_le_bytes(), body].concat();
    let integers = |values: &[u32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let floats = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let protocol = album_envs::python::PROTOCOL;
    let hello =
        [b"ALBUMENV", &integers(&[protocol, 2, 1, 200, 0])[..], &floats(&[-1.0, 1.0]), b"python 3.11\n"];
    let started = [integers(&[0]), floats(&[0.5, 1.5])].concat();
    let reward = (-1.0_f64).to_le_bytes();
    let stepped =
        [&integers(&[0])[..], &reward, &[1], &floats(&[0.5, 1.5]), &integers(&[1, 1]), b"rgb"].concat();
    let messages =
        [(1, hello.concat()), (2, started), (3, stepped), (5, vec![]), (6, vec![]), (4, b"\0lost".to_vec())];
    messages.iter().flat_map(|(kind, body)| message(*kind, body)).collect()
}

//! A checkpoint whose sums are right: what is behind them is read, too.

#![no_main]

use std::fs;
use std::sync::LazyLock;

use album_fuzz::{Folder, base};
use album_train::checkpoint;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
    let checkpoints = base::run_directory("album").join("checkpoints");
    Folder::of(checkpoint::list(&checkpoints).expect("checkpoints").remove(0))
});

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fuzz_target!(|input: &[u8]| {
    FOLDER.with(input, |root, path| {
        let file = |name: &str| FOLDER.files.iter().find(|(path, _)| path.ends_with(name)).expect("a file");
        let [agent, manifest, sums] = ["agent.safetensors", "manifest.json", "SHA256SUMS"].map(file);
        if !path.ends_with("SHA256SUMS") {
            let new = fs::read(&agent.0).expect("weights");
            if path.ends_with("agent.safetensors") {
                let text = String::from_utf8_lossy(&manifest.1).replace(&sha256(&agent.1), &sha256(&new));
                fs::write(&manifest.0, text).expect("a manifest");
            }
            let text = fs::read(&manifest.0).expect("a manifest");
            let lines = format!("{}  agent.safetensors\n{}  manifest.json\n", sha256(&new), sha256(&text));
            fs::write(&sums.0, lines).expect("sums");
        }
        let _ = checkpoint::load(root);
        for (path, contents) in [manifest, sums] {
            fs::write(path, contents).expect("the file can be restored");
        }
    });
});

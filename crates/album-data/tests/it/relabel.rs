//! Every environment and task: what album makes of a file is what the package `ogbench` makes of it, bit for bit.
//!
//! Runs where the variable `ALBUM_PYTHON` names a Python that has `ogbench`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;
use std::process::{Command, Stdio};

use album_data::ogbench::{ENVIRONMENTS, TaskName, load_task};
use album_data::{ACTION_LIMIT, Dataset, Npz};

#[test]
fn labels_are_those_of_the_package() {
    let Some(python) = std::env::var_os("ALBUM_PYTHON") else {
        album_testing::skip("python", "ALBUM_PYTHON is not set; it names a Python that has ogbench");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(python)
        .args(["-W", "ignore", "-c", include_str!("../relabel.py")])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for environment in &ENVIRONMENTS {
        writeln!(child.stdin.as_mut().unwrap(), "{}", environment.name).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());

    let facts: Vec<String> = ENVIRONMENTS
        .iter()
        .map(|e| {
            let dims = [e.observation_dim, e.action_dim, e.qpos_dim, e.buttons(), e.horizon, e.default_task];
            dims.iter().fold(e.name.to_owned(), |line, number| format!("{line} {number}"))
        })
        .collect();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().collect::<Vec<_>>(), facts);

    for environment in &ENVIRONMENTS {
        let name = environment.name;
        let kind = environment.data_kinds[0];
        let mut expected = Npz::open(folder.path().join(format!("{name}-out.npz"))).unwrap();
        let mut column = |key: &str| expected.read(key).unwrap().into_f32().unwrap();
        let actions: Vec<f32> =
            column("actions").iter().map(|a| a.clamp(-ACTION_LIMIT, ACTION_LIMIT)).collect();
        for task in 1..=5 {
            let task: TaskName = format!("{name}-{kind}-singletask-task{task}-v0").parse().unwrap();
            let data = load_task(folder.path().join(format!("{name}.npz")), &task).unwrap();
            let same = |key: &str, found: Vec<f32>, expected: &[f32]| {
                assert_eq!(found.len(), expected.len(), "{task}: {key}");
                let differ = (0..found.len()).find(|&i| found[i].to_bits() != expected[i].to_bits());
                if let Some(i) = differ {
                    panic!("{task}: {key}[{i}] is {:?}, expected {:?}", found[i], expected[i]);
                }
            };
            let all = |get: &dyn Fn(&Dataset, usize) -> Vec<f32>| -> Vec<f32> {
                (0..data.len()).flat_map(|t| get(&data, t)).collect()
            };
            let rewards = all(&|data, t| vec![data.reward(t)]);
            let masks = all(&|data, t| vec![data.mask(t)]);
            // A comparison says nothing unless there are states of both kinds.
            assert!(masks.contains(&0.0) && masks.contains(&1.0), "{task}");
            same("rewards", rewards, &column(&format!("rewards{}", task.task())));
            same("masks", masks, &column(&format!("masks{}", task.task())));
            same("observations", all(&|data, t| data.observation(t).to_vec()), &column("observations"));
            same(
                "next_observations",
                all(&|data, t| data.next_observation(t).to_vec()),
                &column("next_observations"),
            );
            same("actions", all(&|data, t| data.action(t).to_vec()), &actions);
            same("terminals", all(&|data, t| vec![f32::from(data.terminal(t))]), &column("terminals"));
        }
    }
}

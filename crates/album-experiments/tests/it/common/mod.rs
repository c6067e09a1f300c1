//! Fake runs: directories as `album train` leaves them, with chosen numbers.
#![allow(clippy::unwrap_used, dead_code)]

use album_experiments::{Arm, Protocol, Run, Source, Study};
use album_train::{CriticStatistics, DataStatistics, EvaluationSummary, Records, RunResult, ValueMap};
use std::collections::BTreeMap;
use std::path::Path;

/// A run of ALBUM with an evaluation every 1000 steps.
pub struct Fake<'a> {
    pub task: &'a str,
    pub seed: u64,
    /// Success rates.
    pub success: &'a [f64],
    pub lambda_k: f64,
    pub finished: bool,
    /// Mean V at the end, and over the steps.
    pub values: Option<f64>,
    pub maps: bool,
}

impl Default for Fake<'_> {
    fn default() -> Self {
        let task = "pointmaze-medium-navigate-singletask-task1-v0";
        Fake { task, seed: 0, success: &[1.0], lambda_k: 1.0, finished: true, values: None, maps: false }
    }
}

impl Fake<'_> {
    /// Writes the directory and reads it back.
    pub fn write(&self, path: &Path) -> Run {
        std::fs::create_dir_all(path).unwrap();
        let config = format!(
            "agent = \"album\"\nseed = {}\ntask = \"{}\"\n\n[album]\ngamma = 0.995\nlambda_b = 2.5\nlambda_k = {:?}\n\
             reward_scale = 0.5\n\n[train]\nsteps = {}\n",
            self.seed,
            self.task,
            self.lambda_k,
            1000 * self.success.len()
        );
        std::fs::write(path.join("config.toml"), config).unwrap();
        let mut eval = "evaluation/success,step\n".to_owned();
        let mut train = "training/value/v_mean,step\n".to_owned();
        let mut maps = String::new();
        let mut evaluations = Vec::new();
        for (number, success) in self.success.iter().enumerate() {
            let step = 1000 * (number as u64 + 1);
            eval.push_str(&format!("{success},{step}\n"));
            train.push_str(&format!("{},{step}\n", self.values.unwrap_or(-10.0) * step as f64 / 1000.0));
            let summary = serde_json::json!({
                "step": step, "success": success, "success_interval": [0.0, 1.0], "return": -5.0, "length": 5.0,
                "final_reward": 0.0, "episodes": 50, "timesteps": 250
            });
            evaluations.push(serde_json::from_value::<EvaluationSummary>(summary).unwrap());
            let values = (0..64).map(|k| (k % 8 != 0).then_some(-(k as f32) - number as f32)).collect();
            let map = ValueMap { step, rows: 8, columns: 8, values };
            maps.push_str(&(serde_json::to_string(&map).unwrap() + "\n"));
        }
        std::fs::write(path.join("eval.csv"), eval).unwrap();
        std::fs::write(path.join("train.csv"), train).unwrap();
        if self.maps {
            std::fs::write(path.join("value_maps.jsonl"), maps).unwrap();
        }
        let statistics = |v: f64| CriticStatistics {
            v_max: v + 20.0,
            v_mean: v,
            v_min: v - 10.0,
            g_b_satisfied: Some(0.875),
        };
        let result = RunResult {
            best: None,
            score: None,
            task: self.task.into(),
            agent: "album".into(),
            seed: self.seed,
            steps: 1000 * self.success.len() as u64,
            finished: self.finished,
            success: self.success.last().copied(),
            evaluations,
            learned_values: self.values.map(statistics),
            data_values: self.values.map(|_| DataStatistics {
                v_max: 0.0,
                v_mean: -50.0,
                v_min: -100.0,
                trajectories_reaching_goal: 0.25,
            }),
            data_episodes: Some(10),
            held_out_episodes: None,
            ms_per_step: 1.0,
            wall_seconds: 60.0,
            eval_seconds: 1.0,
            device: None,
            parameters: 10,
            weights_sha256: "00".into(),
            dataset_sha256: "11".into(),
            versions: BTreeMap::from([("album".into(), "0.1.0".into())]),
        };
        std::fs::write(path.join("result.json"), serde_json::to_string(&result).unwrap() + "\n").unwrap();
        std::fs::write(path.join("report.html"), "<!DOCTYPE html>").unwrap();
        Run {
            seed: self.seed,
            path: path.to_path_buf(),
            command: format!("album train {} --seed {}", self.task, self.seed),
            records: Some(Records::read(path).unwrap()),
            failure: None,
        }
    }
}

/// An arm of ALBUM.
pub fn arm(label: &str, setting: &str, task: &str, runs: Vec<Run>) -> Arm {
    let (method, setting, task) = ("ALBUM".into(), setting.into(), task.into());
    Arm { label: label.into(), method, setting, task, baseline: None, at: None, source: Source::Agent, runs }
}

/// A study by the last evaluation.
pub fn study(name: &str, published: Option<&str>, arms: Vec<Arm>) -> Study {
    Study {
        name: name.into(),
        title: format!("A study of {name}"),
        question: "Does it work? In the paper it does.".into(),
        reference: "tab:x".into(),
        scale: None,
        published: published.map(str::to_owned),
        protocol: Protocol::Final,
        metrics: vec!["success".into()],
        value_maps: false,
        command: format!("album reproduce {name}"),
        arms,
        outputs: None,
    }
}

/// Two settings of lambda_k on two of the paper's tasks and three seeds, with values and maps.
pub fn sweep(folder: &Path) -> Study {
    let tasks = ["antmaze-large-navigate-singletask-task1-v0", "scene-play-singletask-task2-v0"];
    let mut arms = Vec::new();
    for (k, lambda_k) in [0.0, 1.0].into_iter().enumerate() {
        for (t, task) in tasks.into_iter().enumerate() {
            let runs = (0..3u64).map(|seed| {
                let last = [[0.0, 0.02, 0.02], [0.9, 0.94, 0.96]][k][seed as usize];
                let success = [0.0, 0.5 * last, last];
                let values = Some([-40_000.0, -100.0][k] - seed as f64);
                let fake =
                    Fake { task, seed, success: &success, lambda_k, values, maps: t == 0, ..Fake::default() };
                fake.write(&folder.join(format!("runs/{k}-{t}-{seed}")))
            });
            let (label, setting) = (format!("lambda_k = {lambda_k}"), format!("lambda_k={lambda_k}"));
            arms.push(arm(&label, &setting, task, runs.collect()));
        }
    }
    let mut sweep = study("sweep", Some("boundedness"), arms);
    sweep.metrics = ["condition", "v_max", "v_mean", "v_max_minus_v_mean", "g_b_satisfied", "success"]
        .map(str::to_owned)
        .into();
    sweep
}

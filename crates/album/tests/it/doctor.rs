//! The doctor's findings on files made for it.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use album::doctor::{Diagnosis, examine};
use album_data::columns::{Import, import};
use album_data::{Labels, NpzWriter, load_unchecked};

/// Rows with one-dimensional observations and actions; the rest is filled in.
struct File {
    observations: Vec<f32>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
    masks: Vec<f32>,
    ends: Vec<usize>,
}

impl File {
    /// One walk through distinct states with reward -1.
    fn walk(length: usize) -> Self {
        Self {
            observations: (0..=length).map(|i| i as f32 / 7.0).collect(),
            actions: (0..=length).map(|i| (i % 3) as f32 / 4.0).collect(),
            rewards: vec![-1.0; length + 1],
            masks: vec![1.0; length + 1],
            ends: vec![length],
        }
    }

    fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("own.npz");
        let rows = self.observations.len();
        let mut writer = NpzWriter::create(&path).unwrap();
        writer.array_f32("observations", &[rows, 1], &self.observations).unwrap();
        writer.array_f32("actions", &[rows, 1], &self.actions).unwrap();
        writer.array_f32("rewards", &[rows], &self.rewards).unwrap();
        writer.array_f32("masks", &[rows], &self.masks).unwrap();
        let terminals: Vec<bool> = (0..rows).map(|row| self.ends.contains(&row)).collect();
        writer.array_bool("terminals", &[rows], &terminals).unwrap();
        writer.finish().unwrap();
        path
    }

    fn report(&self, gamma: f64) -> Diagnosis {
        let folder = tempfile::tempdir().unwrap();
        examine(&load_unchecked(self.write(folder.path()), Labels::Own).unwrap(), gamma).unwrap()
    }

    fn codes(&self) -> Vec<&'static str> {
        self.report(0.9).warnings.iter().map(|warning| warning.code).collect()
    }
}

#[test]
fn values_of_a_walk_are_its_returns() {
    let mut file = File::walk(1000);
    let labels = file.report(0.995).labels.unwrap();
    let expected = -(1.0 - 0.995f64.powi(1000)) / (1.0 - 0.995);
    let v = labels.v_star.unwrap();
    assert!((v.min - expected).abs() < 1e-9, "{} {expected}", v.min);
    assert_eq!((v.max, labels.return_to_go), (-1.0, labels.v_star));
    assert_eq!((labels.mask_zeros, labels.goal_episode_share), (0, 0.0));
    // The goal at row 500 raises the values of earlier states only.
    (file.rewards[500], file.masks[500]) = (0.0, 0.0);
    let labels = file.report(0.995).labels.unwrap();
    let v = labels.v_star.unwrap();
    assert!((v.min + (1.0 - 0.995f64.powi(500)) / (1.0 - 0.995)).abs() < 1e-9);
    assert_eq!((v.max, labels.mask_zeros, labels.goal_episode_share), (0.0, 1, 1.0));
    assert_eq!(labels.reward_sum, -999.0);
}

/// Two walks that meet in state 2: the first leads nowhere, the second to the goal.
fn meeting() -> File {
    File {
        observations: vec![0.0, 1.0, 2.0, 3.0, 4.0, 10.0, 2.0, 20.0, 21.0],
        actions: vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0],
        rewards: vec![-1.0, -1.0, -1.0, -1.0, 0.0, -1.0, -1.0, 0.0, 0.0],
        masks: vec![1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0],
        ends: vec![4, 8],
    }
}

#[test]
fn where_walks_meet_the_better_one_counts() {
    let report = meeting().report(0.5);
    let labels = report.labels.unwrap();
    // By hand: V(2) = max(-1 - 0.5, -1) = -1, V(1) = -1.5, V(0) = -1.75, V(3) = -1, V(10) = -1.5, V(20) = 0.
    let v = labels.v_star.unwrap();
    assert_eq!((v.max, v.min), (0.0, -1.75));
    assert!((v.mean - (-1.75 - 1.5 - 1.0 - 1.0 - 1.5 - 1.0 + 0.0) / 7.0).abs() < 1e-12);
    assert_eq!(labels.return_to_go.unwrap().min, -1.875);
    assert_eq!(labels.v_star_above_return_share, Some(3.0 / 7.0));
    assert_eq!(labels.v_star_above_return_max, Some(0.5));
    assert_eq!((report.repeats.distinct_states, report.repeats.repeated_pairs), (8, 0));
}

#[test]
fn cycles_are_solved() {
    // 0 -> 1 -> 0 -> 1 -> ... is worth -1 / (1 - gamma); the recorded walk ended after three steps.
    let file = File {
        observations: vec![0.0, 1.0, 0.0, 1.0],
        actions: vec![0.0; 4],
        rewards: vec![-1.0; 4],
        masks: vec![1.0; 4],
        ends: vec![3],
    };
    let report = file.report(0.995);
    let v = report.labels.unwrap().v_star.unwrap();
    assert!((v.min + 200.0).abs() < 1e-6 && (v.max + 200.0).abs() < 1e-6, "{v:?}");
    assert_eq!(report.repeats.duplicate_transitions, 1);
    // A cycle with positive reward converges from below.
    let file = File { rewards: vec![1.0, 0.0, 1.0, 0.0], ..file };
    let v = file.report(0.9).labels.unwrap().v_star.unwrap();
    assert!((v.max - 1.0 / (1.0 - 0.81)).abs() < 1e-7, "{v:?}");
}

#[test]
fn outcomes_are_averaged() {
    // State 0, action 0 leads to 1 (then reward -1) and to 2 (then reward -3).
    let file = File {
        observations: vec![0.0, 1.0, 8.0, 0.0, 2.0, 9.0],
        actions: vec![0.0; 6],
        rewards: vec![-1.0, -1.0, 0.0, -2.0, -3.0, 0.0],
        masks: vec![1.0; 6],
        ends: vec![2, 5],
    };
    let report = file.report(0.5);
    assert_eq!(report.labels.unwrap().v_star.unwrap().min, -3.0); // of state 2
    let mean = (-2.5 - 2.5 - 1.0 - 3.0) / 4.0; // V(0) = -1.5 + 0.5 * (-2)
    assert_eq!(file.report(0.5).labels.unwrap().v_star.unwrap().mean, mean);
    assert_eq!(report.repeats.pairs_with_several_successors, 1);
    assert_eq!(report.repeats.pairs_with_several_rewards, 1);
    assert_eq!(report.repeats.different, Some((0, 3)));
    let codes: Vec<&str> = report.warnings.iter().map(|warning| warning.code).collect();
    assert!(codes.contains(&"stochastic") && codes.contains(&"stochastic_rewards"), "{codes:?}");
}

#[test]
fn a_successor_behind_a_goal_does_not_matter() {
    let file = File {
        observations: vec![0.0, 1.0, 0.0, 2.0],
        actions: vec![0.0; 4],
        rewards: vec![0.0; 4],
        masks: vec![0.0, 1.0, 0.0, 1.0],
        ends: vec![1, 3],
    };
    assert_eq!(file.report(0.9).repeats.pairs_with_several_successors, 0);
}

#[test]
fn a_healthy_file_has_no_warnings() {
    let mut file = File::walk(100);
    (file.rewards[50], file.masks[50]) = (0.0, 0.0);
    assert_eq!(file.codes(), Vec::<&str>::new());
}

#[test]
fn each_ailment_has_its_warning() {
    let codes = |change: fn(&mut File)| {
        let mut file = File::walk(100);
        (file.rewards[50], file.masks[50]) = (0.0, 0.0);
        change(&mut file);
        file.codes()
    };
    assert_eq!(codes(|f| f.observations[3] = f32::NAN), ["non_finite"]);
    assert_eq!(codes(|f| f.actions[3] = f32::INFINITY), ["non_finite"]);
    assert_eq!(codes(|f| f.actions[100] = 9.0), Vec::<&str>::new()); // the last row has no action
    assert_eq!(codes(|f| f.rewards[7] = f32::NAN), ["non_finite", "no_values"]);
    assert_eq!(codes(|f| f.masks[7] = 0.5), ["bad_masks", "no_values"]);
    assert_eq!(codes(|f| f.actions[3] = -1.5), ["actions_out_of_range"]);
    assert_eq!(codes(|f| f.actions.fill(1.0)), ["constant_actions", "saturated_actions"]);
    assert_eq!(codes(|f| f.ends = vec![60]), ["unfinished_episode"]);
    assert_eq!(codes(|f| f.ends.push(60)), Vec::<&str>::new());
    assert_eq!(codes(|f| f.ends.push(0)), ["empty_episodes"]);
    assert_eq!(codes(|f| f.ends.push(5)), ["short_episodes"]);
    assert_eq!(codes(|f| f.masks[50] = 1.0), ["goal_never_reached"]);
    assert_eq!(codes(|f| f.rewards[60] = 0.0), ["reward_mask_mismatch"]);
    assert_eq!(codes(|f| f.rewards[50] = -1.0), ["reward_mask_mismatch"]);
    // Costs of any size count no steps to a goal: a log may end in a failure, or never.
    let cost = |f: &mut File| f.rewards.iter_mut().zip(0..).for_each(|(r, i)| *r = -0.01 * i as f32);
    assert_eq!(codes(cost), Vec::<&str>::new());
    let endless = |f: &mut File| {
        f.rewards.iter_mut().zip(0..).for_each(|(r, i)| *r = -0.01 * i as f32);
        f.masks[50] = 1.0;
    };
    assert_eq!(codes(endless), Vec::<&str>::new());
    // Equal rewards make all actions equal only where no action can end the task earlier than another.
    let endless = |f: &mut File| (f.rewards[50], f.masks[50]) = (-1.0, 1.0);
    assert_eq!(codes(endless), ["goal_never_reached", "constant_rewards"]);
    assert_eq!(codes(|f| f.masks.fill(0.0)), ["always_solved", "reward_mask_mismatch"]);
    assert_eq!(codes(|f| f.observations.iter_mut().for_each(|x| *x *= 1e4)), ["unscaled_observations"]);
    let repeated = codes(|f| f.observations.fill(0.0));
    assert!(repeated.contains(&"constant_observations") && repeated.contains(&"duplicates"), "{repeated:?}");
}

#[test]
fn bad_numbers_are_located_and_counted() {
    let mut file = File::walk(20);
    (file.observations[4], file.observations[9]) = (f32::NEG_INFINITY, f32::NAN);
    (file.actions[2], file.actions[3]) = (-1.5, 2.0);
    let report = file.report(0.9);
    let bad = &report.non_finite[0];
    assert_eq!((bad.array.as_str(), bad.count, bad.row, bad.column), ("observations", 2, 4, Some(0)));
    assert_eq!(bad.value, "-inf");
    let outside = report.actions_outside.unwrap();
    assert_eq!((outside.count, outside.row, outside.value.as_str()), (2, 2, "-1.5"));
    // Ranges cover only the finite numbers.
    assert_eq!((report.observations[0].min, report.observations[0].max), (0.0, f64::from(20.0f32 / 7.0)));
}

#[test]
fn a_folder_is_told_as_its_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let (file, columns) = (folder.path().join("maze.npz"), folder.path().join("maze.columns"));
    let mut writer = NpzWriter::create(&file).unwrap();
    let xy: Vec<f32> = (0..40).map(|i| i as f32).collect();
    writer.array_f32("observations", &[20, 2], &xy).unwrap();
    writer.array_f32("actions", &[20, 2], &[0.5; 40]).unwrap();
    writer.array_f32("qpos", &[20, 2], &xy).unwrap();
    writer.array_bool("terminals", &[20], &(0..20).map(|i| i == 19).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    let what =
        Import { sources: std::slice::from_ref(&file), target: &columns, replace: false, environment: None };
    import(&what, &mut |_, _| true).unwrap();
    let task = "pointmaze-medium-navigate-singletask-v0".parse().unwrap();
    for labels in [Labels::Task(&task), Labels::None] {
        let diagnosis = |path: &Path| examine(&load_unchecked(path, labels).unwrap(), 0.9).unwrap();
        assert_eq!(diagnosis(&columns), diagnosis(&file));
    }
}

#[test]
fn many_rewards_are_put_into_ranges() {
    let mut file = File::walk(100);
    file.rewards = (0..=100).map(|i| i as f32).collect();
    let bins = file.report(0.9).labels.unwrap().reward_histogram;
    assert_eq!(bins.len(), 10);
    assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), 100);
    assert_eq!((bins[0].from, bins[9].to), (0.0, 99.0));
}

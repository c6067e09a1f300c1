//! `album solve` from the outside: results, files, JSON contract.

use crate::common;

use album_data::Npz;
use common::{Columns, album, json, python};
use std::process::Command;

#[test]
fn mudworld_reports_what_the_contract_names() {
    let folder = tempfile::tempdir().unwrap();
    for data in ["down-right", "eps-greedy"] {
        let r = json(folder.path(), &["solve", "mudworld", "--data", data, "--seed", "3", "--json"]);
        let number = |key: &str| r[key].as_f64().unwrap_or_else(|| panic!("{data}: {key} is {}", r[key]));
        assert_eq!(number("variables"), number("pairs") + number("states"));
        assert_eq!(number("constraints"), 4.0 * number("pairs"));
        assert!(r["nonzeros"].is_null(), "nothing asked for the matrix");
        assert!(number("objective") < 0.0);
        assert!(number("seconds") > 0.0);
        let parts: f64 =
            ["assembly", "solution", "certificate"].iter().map(|p| number(&format!("seconds_{p}"))).sum();
        assert!((parts - number("seconds")).abs() < 1e-9);
        for part in ["primal", "dual", "gap"] {
            assert!(r["certificate"][part].as_f64().unwrap() < 1e-9, "{data}: {part}");
        }
        assert!(number("max_dual_b") >= number("max_dual_e") && number("max_dual_e") > 0.0);
        assert!(number("diff_vs_value_iteration") < 1e-9);
        assert_eq!(r["sandwich"]["violations"], 0, "{data}");
        assert!(r["sandwich"]["max_violation"].as_f64().unwrap() < 1e-9);
    }
}

/// Where every state leads to many others, the matrix of 30-step rollouts would be dense; it must not be
/// assembled.
#[test]
fn a_long_horizon_on_stochastic_data_assembles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (states, rows) = (20_000i64, 100_000i64);
    let state = |i: i64| (i * 7919) % states;
    Columns {
        states: (0..rows).map(state).collect(),
        actions: vec![0; rows as usize],
        next_states: (0..rows).map(|i| (i * 104_729 + i / states * 7907) % states).collect(),
        rewards: (0..rows).map(|i| (i % 17) as f64 - 9.0).collect(),
        terminals: vec![true; rows as usize],
    }
    .write(folder.path(), "data.npz");
    let r = json(folder.path(), &["solve", "data.npz", "--k", "30", "--json"]);
    assert_eq!(r["deterministic"], false);
    for part in ["primal", "dual", "slackness", "gap"] {
        assert!(r["certificate"][part].as_f64().unwrap() < 1e-9, "{part}: {}", r["certificate"]);
    }
    assert!(r["diff_vs_value_iteration"].as_f64().unwrap() < 1e-9);
}

#[test]
fn the_same_seed_gives_the_same_answer_and_k_does_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let objective = |seed: &str, k: &str| {
        let args = ["solve", "mudworld", "--size", "30", "--seed", seed, "--k", k, "--json"];
        json(folder.path(), &args)["objective"].as_f64().unwrap()
    };
    assert_eq!(objective("1", "10"), objective("1", "10"));
    assert_ne!(objective("1", "10"), objective("2", "10"));
    assert_eq!(objective("1", "2"), objective("1", "20"));
}

#[test]
fn own_data_comes_back_with_its_own_numbers() {
    let folder = tempfile::tempdir().unwrap();
    // State -7 has two actions; 1000000 is absorbing.
    let data = Columns {
        states: vec![-7, 3, -7, 5],
        actions: vec![10, 0, -10, 0],
        next_states: vec![3, 1_000_000, 5, 1_000_000],
        rewards: vec![0.0, 1.0, 0.0, 4.0],
        terminals: vec![false, true, false, true],
    };
    data.write(folder.path(), "data.npz");
    let r = json(folder.path(), &["solve", "data.npz", "--gamma", "0.5", "--out", "out.npz", "--json"]);
    assert_eq!((r["pairs"].as_u64(), r["states"].as_u64()), (Some(4), Some(3)));
    assert_eq!(r["absorbing_states"], 1);
    assert_eq!(r["sandwich"]["violations"], 0);
    let mut out = Npz::open(folder.path().join("out.npz")).unwrap();
    assert_eq!(out.read("states").unwrap().into_integers().unwrap(), [-7, 3, 5]);
    assert_eq!(out.read("v").unwrap().into_floats().unwrap(), [2.0, 1.0, 4.0]);
    assert_eq!(out.read("pair_states").unwrap().into_integers().unwrap(), [-7, -7, 3, 5]);
    assert_eq!(out.read("pair_actions").unwrap().into_integers().unwrap(), [-10, 10, 0, 0]);
    assert_eq!(out.read("q").unwrap().into_floats().unwrap(), [2.0, 0.5, 1.0, 4.0]);
    for key in ["dual_b", "dual_e"] {
        assert_eq!(out.read(key).unwrap().into_floats().unwrap().len(), 4);
    }
}

#[test]
fn stochastic_data_is_solved_and_says_why_there_is_no_sandwich() {
    let folder = tempfile::tempdir().unwrap();
    let mut data = Columns::chain();
    // The same pair leads to state 1 and, once, to state 2.
    data.states.push(0);
    data.actions.push(0);
    data.next_states.push(2);
    data.rewards.push(1.0);
    data.terminals.push(true);
    data.write(folder.path(), "data.npz");
    let r = json(folder.path(), &["solve", "data.npz", "--gamma", "0.5", "--out", "out.npz", "--json"]);
    assert_eq!(r["deterministic"], false);
    assert_eq!(r["sandwich"]["applies"], false);
    assert!(r["sandwich"]["what"].as_str().unwrap().contains("stochastic"));
    assert!(r["sandwich"]["violations"].is_null());
    let v = Npz::open(folder.path().join("out.npz")).unwrap().read("v").unwrap().into_floats().unwrap();
    assert_eq!(v, [1.0 + 0.5 * 0.5 * 2.0, 2.0]);
}

#[test]
fn cut_trajectories_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut data = Columns::chain();
    data.states[1] = 7; // row 0 leads to 1, row 1 starts in 7
    data.write(folder.path(), "data.npz");
    let output = album(folder.path(), &["solve", "data.npz", "--json"]);
    assert!(output.status.success());
    let r: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        r["warnings"][0].as_str().unwrap().contains("row 0 leads to state 1, but row 1 starts in state 7")
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("warning: row 0"));
}

#[test]
fn text_output_is_for_people() {
    let folder = tempfile::tempdir().unwrap();
    Columns::chain().write(folder.path(), "data.npz");
    let output = album(
        folder.path(),
        &["solve", "data.npz", "--gamma", "0.5", "--omega-q", "0.5", "--omega-v", "0.25"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    // Everything but the times is fixed: these numbers are sums of powers of two.
    let fixed: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("time")).collect();
    let expected = "           data  data.npz: 2 transitions in 1 trajectory
  empirical MDP  2 pairs, 2 states with actions, 1 absorbing, deterministic
        program  4 variables, 8 constraints (K = 10, gamma = 0.5)
      objective  1.500000000000
           V*_D  min 2, mean 2, max 2
    certificate  primal 0, dual 0, slackness 0, gap 0
  largest duals  lambda_B 0.562, lambda_E 0.312
value iteration  differs by 0
       sandwich  G_D <= Q*_D: 0 violations, largest 0";
    assert_eq!(fixed.join("\n"), expected);
}

/// Solves the exported program with HiGHS's own reader, and the dataset by value iteration in NumPy.
const CHECK: &str = r#"
import json, subprocess, sys
import numpy as np, highspy

album, folder = sys.argv[1:]
rng = np.random.default_rng(0)
for case in range(6):
    n, actions, rows = int(rng.integers(2, 40)), int(rng.integers(1, 5)), int(rng.integers(1, 800))
    gamma = float(rng.uniform(0, 0.99))
    data = {
        "states": rng.integers(0, n, rows) * 11 - 50,
        "actions": rng.integers(0, actions, rows).astype(np.int32),
        "next_states": rng.integers(0, n + 2, rows) * 11 - 50,
        "rewards": rng.normal(size=rows).astype(np.float32),
        "terminals": rng.random(rows) < 0.3,
    }
    np.savez_compressed(f"{folder}/data.npz", **data)
    command = [album, "solve", f"{folder}/data.npz", "--gamma", repr(gamma), "--k", "4", "--json",
               "--mps", f"{folder}/program.mps", "--out", f"{folder}/out.npz"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    out = np.load(f"{folder}/out.npz", allow_pickle=False)

    # Value iteration on averages, from scratch.
    pairs = sorted(set(zip(data["states"].tolist(), data["actions"].tolist())))
    assert pairs == list(zip(out["pair_states"].tolist(), out["pair_actions"].tolist()))
    states = sorted(set(data["states"].tolist()))
    assert states == out["states"].tolist()
    v = dict.fromkeys(states, 0.0)
    rows_of = {p: np.flatnonzero((data["states"] == p[0]) & (data["actions"] == p[1])) for p in pairs}
    for _ in range(6000):
        q = {p: float(np.mean([float(data["rewards"][i]) + gamma * v.get(int(data["next_states"][i]), 0.0)
                               for i in r])) for p, r in rows_of.items()}
        new = {s: max(q[p] for p in pairs if p[0] == s) for s in states}
        change = max(abs(new[s] - v[s]) for s in states)
        v = new
        if change < 1e-13:
            break
    assert np.allclose(out["v"], [v[s] for s in states], rtol=0, atol=1e-9), case
    assert np.allclose(out["q"], [q[p] for p in pairs], rtol=0, atol=1e-9), case

    # The interior-point method of every build, which is told nothing about the structure of the program.
    command[command.index("--mps"):] = ["--out", f"{folder}/interior.npz", "--solver", "interior-point"]
    interior = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert all(interior["certificate"][part] < 1e-6 for part in ("primal", "dual", "slackness", "gap")), interior
    assert np.allclose(np.load(f"{folder}/interior.npz")["v"], out["v"], rtol=0, atol=1e-6), case

    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    assert h.readModel(f"{folder}/program.mps") == highspy.HighsStatus.kOk
    lp = h.getLp()
    assert (lp.num_col_, lp.num_row_) == (report["variables"], report["constraints"]), case
    assert len(lp.a_matrix_.value_) == report["nonzeros"], case
    lp.col_cost_ = np.asarray(lp.col_cost_) * 1e4  # frequencies are small against absolute tolerances
    h.passModel(lp)
    h.run()
    assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    x = np.asarray(h.getSolution().col_value)
    assert np.allclose(x[: len(pairs)], out["q"], atol=1e-6), case
    assert np.allclose(x[len(pairs):], out["v"], atol=1e-6), case
print("6 cases agree")
"#;

#[test]
fn numpy_and_highs_agree_on_random_stochastic_data() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(python)
        .args(["-c", CHECK, env!("CARGO_BIN_EXE_album")])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "6 cases agree");
}

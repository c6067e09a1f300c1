//! Logs from text to advice.

use super::*;
use crate::TabularError;
use album_base::rng;
use album_data::table::TableWriter;
use rand::RngExt;

fn columns(state: &[&str]) -> LogColumns {
    LogColumns {
        state: state.iter().map(|name| name.to_string()).collect(),
        action: "a".into(),
        reward: "r".into(),
        episode: "e".into(),
        ..LogColumns::default()
    }
}

fn read(content: &str, columns: &LogColumns) -> Result<Log, TabularError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    std::fs::write(&path, content).unwrap();
    Log::read(&Table::open(&[path]).unwrap(), columns)
}

fn refused(content: &str, columns: &LogColumns, words: &[&str]) {
    let message = read(content, columns).unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}

fn question() -> Question {
    Question { gamma: 0.5, ..Question::default() }
}

const TWO: &str = "e,x,y,a,r\n1,hot,1,go,0\n1,hot,2,go,1\n2,hot,1,stay,0\n2,cold,2,go,8\n";

#[test]
fn several_columns_are_one_state() {
    let log = read(TWO, &columns(&["x", "y"])).unwrap();
    assert_eq!((log.data.len(), log.episodes()), (4, 2));
    let advice = Advice::new(&log, &question()).unwrap();
    let labels: Vec<Vec<String>> = (0..3).map(|s| log.state_labels(&advice, s)).collect();
    assert_eq!(labels, [["cold", "2"], ["hot", "1"], ["hot", "2"]]);
    assert_eq!(advice.value, [8.0, 4.0, 1.0]);
    assert_eq!(advice.behaviour_value[1], 0.5 * 0.5 + 0.5 * 4.0);
    assert_eq!(log.action_label(&advice, 1), "stay");
    assert_eq!(advice.gain, [0.0, 1.75, 0.0]);
    assert_eq!((advice.initial_value, advice.recorded_return), (4.0, 2.25));
    // With one column only, states that differ in the other are merged.
    assert_eq!(Advice::new(&read(TWO, &columns(&["x"])).unwrap(), &question()).unwrap().states(), 2);
}

#[test]
fn the_policy_keeps_the_labels() {
    let log = read(TWO, &columns(&["x", "y"])).unwrap();
    let advice = Advice::new(&log, &Question { bootstrap: 20, ..question() }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["p.csv", "p.parquet"] {
        let path = folder.path().join(name);
        TableWriter::write(&path, &log.policy_columns(&advice)).unwrap().commit().unwrap();
        let table = Table::open(&[&path]).unwrap();
        let found = table.read(&["x", "y", "best_action", "value", "count", "gain_is_certain"]).unwrap();
        assert_eq!((0..3).map(|s| found[0].label(s)).collect::<Vec<_>>(), ["cold", "hot", "hot"]);
        assert_eq!(found[1], ColumnData::Int(vec![2, 1, 2]));
        assert_eq!(found[2].label(1), "stay");
        assert_eq!(found[3], ColumnData::Float(vec![8.0, 4.0, 1.0]));
        assert_eq!(found[4], ColumnData::Int(vec![1, 2, 1]));
        assert_eq!(found[5], ColumnData::Bool(vec![false; 3]), "two episodes prove nothing");
    }
}

#[test]
fn steps_order_rows_and_interleaved_episodes() {
    let mixed = "e,t,s,a,r\nq,1,1,0,1\np,0,0,0,0\nq,0,0,1,0\np,1,2,0,5\n";
    let mut by_step = columns(&["s"]);
    by_step.step = Some("t".into());
    let log = read(mixed, &by_step).unwrap();
    assert_eq!(log.data.rewards, [0.0, 1.0, 0.0, 5.0]);
    assert_eq!(log.data.states, [0, 1, 0, 2]);
    assert_eq!(log.data.next_states, [1, 3, 2, 3]);
    refused(mixed, &columns(&["s"]), &["row 2", "`q`", "--step"]);
    let twice = "e,t,s,a,r\np,0,0,0,0\np,1,1,0,0\np,1,2,0,0\n";
    refused(twice, &by_step, &["`t`", "rows 1 and 2", "`p`", "step 1"]);
    let gap = "e,t,s,a,r\np,0,0,0,0\np,1,1,0,0\np,2,1,0,0\np,4,1,0,0\n";
    assert!(read(gap, &by_step).unwrap().warnings[0].contains("skips numbers in 1 places"));
}

#[test]
fn what_ends_an_episode() {
    let text = "e,s,a,r,done\n1,A,x,1,0\n1,B,x,2,1\n2,A,x,1,0\n2,B,x,2,0\n";
    let mut flagged = columns(&["s"]);
    flagged.terminal = Some("done".into());
    let log = read(text, &flagged).unwrap();
    assert_eq!(log.data.len(), 3, "nobody knows what followed the last row");
    assert!(log.warnings[0].contains("1 episodes were cut"), "{:?}", log.warnings);
    assert_eq!(read(text, &columns(&["s"])).unwrap().data.len(), 4);
    refused("e,s,a,r,done\n1,A,x,1,1\n1,B,x,2,1\n", &flagged, &["`done`, row 0", "continues"]);
}

#[test]
fn successors_may_be_columns() {
    let text = "e,s,next,a,r\n1,1,2,x,1\n1,2,,x,2\n2,1,3,y,0\n";
    let mut named = columns(&["s"]);
    named.next_state = vec!["next".into()];
    let log = read(text, &named).unwrap();
    // The second row has no successor and no terminal flag, so it is left out.
    assert_eq!(log.data.next_states, [1, 2]);
    refused("e,s,next,a,r\n1,1,,x,1\n1,2,1,x,2\n", &named, &["`next`, row 0", "continues"]);
    named.next_state.push("s".into());
    refused(text, &named, &["2 columns of the next state", "1 columns of the state"]);
}

#[test]
fn numbers_are_cut_into_parts_of_equally_many_rows() {
    let rows: String = (0..100).map(|i| format!("{i},{},0,0\n", i * i)).collect();
    let mut binned = columns(&["x"]);
    binned.bins = vec![("x".into(), 4)];
    let log = read(&format!("e,x,a,r\n{rows}"), &binned).unwrap();
    let advice = Advice::new(&log, &question()).unwrap();
    assert_eq!(advice.count, [25; 4]);
    let labels: Vec<String> = (0..4).map(|s| log.state_label(s)).collect();
    assert_eq!(labels, ["< 625", "625 to 2500", "2500 to 5625", ">= 5625"]);
    // Equal numbers share a bin.
    let log = read("e,x,a,r\n1,5,0,0\n2,5,0,0\n3,5,0,0\n4,7,0,0\n", &binned).unwrap();
    assert_eq!(Advice::new(&log, &question()).unwrap().count, [3, 1]);
    binned.bins = vec![("y".into(), 4)];
    refused("e,x,a,r\n1,5,0,0\n", &binned, &["`y` has bins, but is not a state column"]);
}

#[test]
fn bad_values_are_named() {
    refused("e,s,a,r\n1,A,x,1\n1,B,x,oops\n", &columns(&["s"]), &["`r`, row 1", "`oops`", "a number"]);
    refused("e,s,a,r\n1,A,x,1\n1,B,x,nan\n", &columns(&["s"]), &["`r`, row 1", "`NaN`", "a finite number"]);
    refused("e,s,a,r\n1,A,x,1\n1,B,x,\n", &columns(&["s"]), &["`r`, row 1", "a finite number"]);
    refused("e,s,a,r\n1,1,x,1\n1,,x,1\n", &columns(&["s"]), &["`s`, row 1", "a value in every row"]);
    refused("e,state,a,r\n1,1,x,1\n", &columns(&["states"]), &["no column `states`", "`state`"]);
    refused("e,s,a,r\n", &columns(&["s"]), &["empty"]);
    let log = read("e,s,a,r\n1,A,x,1e308\n1,A,x,1e308\n1,A,x,1e308\n", &columns(&["s"])).unwrap();
    let error = Advice::new(&log, &Question { gamma: 0.99, ..Question::default() }).unwrap_err();
    assert!(error.is_numerical() && error.to_string().contains("scale them down"), "{error}");
}

#[test]
fn rare_actions_are_not_recommended() {
    // One lucky row of `b` against many of `a`; state Z has only rare actions.
    let mut text = "e,s,a,r\n".to_owned();
    (0..10).for_each(|i| text += &format!("{i},A,a,1\n"));
    text += "10,A,b,9\n11,Z,b,4\n12,Z,a,2\n";
    let log = read(&text, &columns(&["s"])).unwrap();
    let best = |min_count| {
        let advice = Advice::new(&log, &Question { min_count, ..question() }).unwrap();
        (log.action_label(&advice, 0), advice.value.clone(), advice.best[1].is_some())
    };
    assert_eq!(best(1), ("b".into(), vec![9.0, 4.0], true));
    assert_eq!(best(2), ("a".into(), vec![1.0, 3.0], false));
}

/// Two states of 400 rows each: in one, action `y` is better by 1 with noise of 1; in the other both are
/// equal.
#[test]
fn intervals_tell_a_gain_from_chance() {
    let mut rng = rng::stream(5, "test");
    let mut text = "e,s,a,r\n".to_owned();
    for e in 0..800 {
        let (state, action) = (["real", "none"][e % 2], ["x", "y"][rng.random_range(0..2)]);
        let noise: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let reward = noise + if state == "real" && action == "y" { 1.0 } else { 0.0 };
        text += &format!("{e},{state},{action},{reward}\n");
    }
    let log = read(&text, &columns(&["s"])).unwrap();
    let run = |seed| Advice::new(&log, &Question { bootstrap: 200, seed, ..question() }).unwrap();
    let advice = run(1);
    let intervals = advice.intervals.as_ref().unwrap();
    assert_eq!(intervals.certain, [false, true], "{:?}", intervals.gain);
    assert!(advice.gain.iter().all(|&gain| gain >= 0.0), "in the log itself the best is never worse");
    assert!(intervals.gain[0].low < 0.0, "{:?}", intervals.gain);
    assert!((intervals.gain[1].low..intervals.gain[1].high).contains(&advice.gain[1]));
    assert!((intervals.value[1].low..intervals.value[1].high).contains(&advice.value[1]));
    assert!(
        (intervals.recorded_return.low..intervals.recorded_return.high).contains(&advice.recorded_return)
    );
    assert_eq!(run(1).intervals, advice.intervals, "seeded, whatever the threads");
    assert_ne!(run(2).intervals, advice.intervals);
}

/// The bootstrap's own arithmetic: a resample with every episode once agrees with the log.
#[test]
fn values_agree_with_the_tabular_solution() {
    let world = crate::MudWorld::new(8, 0);
    let data = world.dataset(crate::Behaviour::EpsGreedy, 0.95).unwrap();
    let mut text = "e,s,a,r,next\n".to_owned();
    let mut episode = 0;
    for (i, end) in data.trajectory_ends().into_iter().enumerate() {
        let (s, a, r, next) = (data.states[i], data.actions[i], data.rewards[i], data.next_states[i]);
        text += &format!("{episode},{s},{a},{r},{next}\n");
        episode += usize::from(end);
    }
    let mut named = columns(&["s"]);
    named.next_state = vec!["next".into()];
    let log = read(&text, &named).unwrap();
    let advice = Advice::new(&log, &Question { bootstrap: 50, ..Question::default() }).unwrap();
    let empirical = crate::EmpiricalMdp::new(&data, 0.95).unwrap();
    let lblp = crate::Lblp::of_data(&empirical, 0.1, 0.05, 1).unwrap();
    let solution = crate::solve(&lblp, crate::Solver::Bellman).unwrap();
    assert!(crate::max_difference(&advice.value, &solution.v) < 1e-10);
    assert!(advice.residual < 1e-10);
    // The world is deterministic: where the data contains the best action, resampling changes nothing.
    let intervals = advice.intervals.unwrap();
    for s in 0..advice.value.len() {
        let Interval { low, high } = intervals.value[s];
        assert!(low.is_nan() || high <= advice.value[s] + 1e-5, "state {s}");
    }
}

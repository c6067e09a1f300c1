//! `album act` without a process: lines in, lines out.

use album::act::{Answered, act};
use album_policy::{Actions, Graph, Manifest, Noise, Policy, PolicyFile, Step, Tensors};
use serde_json::Value;

/// The policy `[2 flow, mode=low + 10 mode=high]`, with one or two actions per observation.
fn policy(open_loop: usize) -> Policy {
    let mut tensors = Tensors::default();
    tensors.insert("w", vec![3, 2], vec![2.0, 0.0, 0.0, 1.0, 0.0, 10.0]);
    let dim = 2 / open_loop;
    let names = (0..dim).map(|i| format!("u{i}")).collect();
    let manifest = Manifest {
        task: "pump".into(),
        agent: "test".into(),
        seed: 0,
        step: 0,
        weights_sha256: String::new(),
        album: String::new(),
        observations: ["flow", "mode=low", "mode=high"].map(str::to_owned).to_vec(),
        actions: Actions::Continuous { names, low: vec![-100.0; dim], high: vec![100.0; dim] },
        open_loop,
        noise: Noise::default(),
    };
    let linear = Step::Linear { x: 0, kernel: "w".into(), bias: None };
    let graph = Graph { steps: vec![Step::Observation, linear] };
    Policy::new(PolicyFile { manifest, graph, tensors }).unwrap()
}

fn answers(policy: &mut Policy, input: &str) -> (Answered, Vec<Value>) {
    let mut output = Vec::new();
    let answered = act(policy, &mut input.as_bytes(), &mut output).unwrap();
    let lines = String::from_utf8(output).unwrap();
    (answered, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn observations_by_order_by_name_and_by_category() {
    let input = "[0.1, 1, 0]\n\n{\"mode=high\": 1, \"flow\": 0.2, \"mode=low\": 0}\n{\"mode\": \"low\", \"flow\": -1e0}";
    let (answered, lines) = answers(&mut policy(1), input);
    assert_eq!(answered, Answered { actions: 3, errors: 0 });
    answered.finish().unwrap();
    assert_eq!(
        lines,
        [serde_json::json!([0.2, 1.0]), serde_json::json!([0.4, 10.0]), serde_json::json!([-2.0, 1.0])]
    );
    let (_, lines) = answers(&mut policy(2), "[0.5, 1, 0]");
    assert_eq!(lines, [serde_json::json!([[1.0], [1.0]])], "several actions are an array of arrays");
}

#[test]
fn a_line_that_cannot_be_answered_is_told_with_its_number() {
    let cases = [
        ("[1, 2]", "found 2 numbers; expected 3"),
        ("[1, NaN, 2]", "found NaN"),
        ("[1, null, 2]", "`mode=low` is null"),
        ("[1, \"a\", 2]", "`mode=low` is \"a\""),
        ("[1e60, 0, 0]", "`flow` is 1e+60"),
        ("{\"flow\": 1, \"mode\": \"high\", \"flwo\": 2}", "there is no `flwo`"),
        ("{\"flow\": 1}", "`mode=low` is missing"),
        ("{\"flow\": 1, \"mode\": \"off\"}", "expected one of low, high"),
        ("{\"flow\": 1, \"valve\": \"off\"}", "there is no `valve`"),
        ("7", "expected an array"),
        ("[1, 2", "not JSON"),
        ("\u{1}\u{2}", "not JSON"),
    ];
    let input: String = cases.iter().map(|(line, _)| format!("[1, 0, 0]\n{line}\n")).collect();
    let (answered, lines) = answers(&mut policy(1), &input);
    assert_eq!(answered, Answered { actions: cases.len(), errors: cases.len() });
    for (i, (line, words)) in cases.iter().enumerate() {
        let found = &lines[2 * i + 1];
        assert_eq!(found["line"], 2 * i + 2, "{line}");
        assert!(found["error"].as_str().unwrap().contains(words), "{line}: {found}");
    }
    assert_eq!(answered.finish().unwrap_err().exit_code(), 3);
}

#[test]
fn choices_are_labels_where_they_have_some() {
    let file = |names: Vec<String>| {
        let mut tensors = Tensors::default();
        tensors.insert("w", vec![1, 2], vec![1.0, -1.0]);
        let steps = vec![
            Step::Observation,
            Step::Linear { x: 0, kernel: "w".into(), bias: None },
            Step::Choose { logits: 1, q: 1, slack: 0.0 },
        ];
        let mut manifest = policy(1).manifest().clone();
        manifest.observations = vec!["x".into()];
        manifest.actions = Actions::Discrete { n: 2, names };
        Policy::new(PolicyFile { manifest, graph: Graph { steps }, tensors }).unwrap()
    };
    let (_, lines) = answers(&mut file(vec![]), "[1]\n[-1]\n");
    assert_eq!(lines, [Value::from(0), Value::from(1)]);
    let (_, lines) = answers(&mut file(vec!["left".into(), "right".into()]), "[1]\n[-1]\n");
    assert_eq!(lines, [Value::from("left"), Value::from("right")]);
}

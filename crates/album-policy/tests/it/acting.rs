//! The behaviour of a policy on valid and invalid input.

use crate::support::policy;
use album_policy::{Actions, Graph, Noise, Policy, PolicyError, PolicyFile, Step, Tensors};

#[test]
fn a_file_gives_the_policy_back() {
    let file = policy(4);
    let bytes = file.to_bytes().unwrap();
    assert_eq!(PolicyFile::from_bytes(&bytes).unwrap(), file);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.safetensors");
    std::fs::write(&path, bytes).unwrap();
    let mut policy = Policy::load(&path).unwrap();
    let mut actions = [0.0; 4];
    policy.act(&[0.1, 0.2, 0.3], &mut actions).unwrap();
    assert!(actions.iter().all(|x| (-1.0..=2.0).contains(x)), "{actions:?}");
}

#[test]
fn the_same_noise_gives_the_same_actions_in_any_batch() {
    let mut policy = Policy::new(policy(5)).unwrap();
    let rows = 600;
    let number = |i: usize| ((i * 37) % 101) as f32 / 50.0 - 1.0;
    let observations: Vec<f32> = (0..rows * 3).map(number).collect();
    let noise: Vec<f32> = (0..rows * 11).map(|i| number(i + 1).abs() * 0.5).collect();
    let mut together = vec![0.0; rows * 4];
    policy.act_with(&observations, &noise, &mut together).unwrap();
    for i in 0..rows {
        let mut alone = [0.0; 4];
        policy.act_with(&observations[i * 3..][..3], &noise[i * 11..][..11], &mut alone).unwrap();
        let near = alone.iter().zip(&together[i * 4..]).all(|(x, y)| (x - y).abs() < 1e-5);
        assert!(near || policy.margin() < 1e-5, "row {i}: {alone:?}");
    }
}

#[test]
fn seeds_start_the_noise_anew() {
    let mut policy = Policy::new(policy(3)).unwrap();
    let mut act = |seed: Option<u64>| {
        if let Some(seed) = seed {
            policy.seed(seed);
        }
        let mut actions = [0.0; 4];
        policy.act(&[0.1, 0.2, 0.3], &mut actions).unwrap();
        actions
    };
    let first = act(Some(1));
    assert_ne!(act(None), first);
    assert_eq!(act(Some(1)), first);
    assert_ne!(act(Some(2)), first);
}

#[test]
fn a_choice_is_the_best_supported_one() {
    let mut tensors = Tensors::default();
    tensors.insert("logits", vec![3, 3], vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    tensors.insert("q", vec![3, 3], vec![0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let linear = |x, kernel: &str| Step::Linear { x, kernel: kernel.into(), bias: None };
    let steps = vec![
        Step::Observation,
        linear(0, "logits"),
        linear(0, "q"),
        Step::Choose { logits: 1, q: 2, slack: 1.0 },
    ];
    let mut file = policy(1);
    file.manifest.actions = Actions::Discrete { n: 3, names: Vec::new() };
    (file.manifest.open_loop, file.manifest.noise) = (1, Noise::default());
    let mut policy =
        Policy::new(PolicyFile { manifest: file.manifest, graph: Graph { steps }, tensors }).unwrap();
    let mut choices = [0.0; 3];
    // Q prefers the third, then the second choice, if the logits are close enough.
    policy.act(&[5.0, 0.0, 4.5, 5.0, 0.0, 0.0, 0.0, 1.0, 2.0], &mut choices).unwrap();
    assert_eq!(choices, [2.0, 0.0, 1.0]);
}

#[test]
fn what_cannot_be_answered_is_an_error() {
    let mut policy = Policy::new(policy(2)).unwrap();
    let mut actions = [0.0; 4];
    let text = |result: Result<(), PolicyError>| result.unwrap_err().to_string();
    assert!(text(policy.act(&[0.0; 4], &mut actions)).contains("3 for each"));
    assert!(text(policy.act(&[0.0; 6], &mut actions)).contains("4 for each of 2"));
    assert!(text(policy.act(&[0.0, f32::NAN, 0.0], &mut actions)).contains("`o1` is NaN"));
    assert!(text(policy.act_with(&[0.0; 3], &[0.0; 4], &mut actions)).contains("noise"));
    assert!(text(policy.act(&[3e38, 3e38, -3e38], &mut actions)).contains("not a number"));
    assert!(text(Policy::load("/nowhere/policy").map(|_| ())).contains("/nowhere/policy"));
    policy.act(&[], &mut []).unwrap();
}

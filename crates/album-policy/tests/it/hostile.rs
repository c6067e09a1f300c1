//! Malicious files: whatever a file contains, the result is an error or a policy that acts.

use crate::support::policy;
use album_policy::{Operator, Policy, PolicyFile, Reduction, Step};

fn refused(change: impl FnOnce(&mut PolicyFile), word: &str) {
    let mut file = policy(3);
    change(&mut file);
    let bytes = file.to_bytes().unwrap();
    let error = Policy::from_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains(word), "no `{word}` in: {error}");
}

/// Replaces text in the header by another of at most the same length.
fn edited(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + from.len()].copy_from_slice(format!("{to:<width$}", width = from.len()).as_bytes());
    bytes
}

#[test]
fn every_prefix_is_refused() {
    let bytes = policy(3).to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(Policy::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    assert!(Policy::from_bytes(&[&bytes[..], b"more"].concat()).is_err());
}

#[test]
fn every_changed_byte_is_refused_or_harmless() {
    let bytes = policy(3).to_bytes().unwrap();
    for at in 0..bytes.len() {
        for change in [1u8, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            if let Ok(mut policy) = Policy::from_bytes(&changed) {
                let mut actions = vec![0.0; policy.manifest().decision_len()];
                let _ = policy.act(&vec![0.5; policy.manifest().observation_dim()], &mut actions);
            }
        }
    }
}

#[test]
fn sizes_that_lie_are_refused() {
    let bytes = policy(3).to_bytes().unwrap();
    let error = |bytes: &[u8]| Policy::from_bytes(bytes).unwrap_err().to_string();
    let mut long = bytes.clone();
    long[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(error(&long).contains("header of"));
    assert!(error(b"PK\x03\x04 a zip file").contains("header of"));
    let shape = "\"shape\":[5,8]";
    assert!(error(&edited(&bytes, shape, "\"shape\":[9,9]")).contains("tensor `w`"));
    assert!(error(&edited(&bytes, shape, "\"shape\":[-1,8")).contains("header"));
    assert!(error(&edited(&bytes, "\"F32\"", "\"I32\"")).contains("expected F32"));
    let deep = [&(100_000u64).to_le_bytes()[..], &b"[".repeat(100_000)].concat();
    assert!(error(&deep).contains("header"));
}

#[test]
fn other_versions_are_told() {
    let bytes = policy(3).to_bytes().unwrap();
    let other = edited(&bytes, "\"album_policy\":\"1\"", "\"album_policy\":\"2\"");
    let error = Policy::from_bytes(&other).unwrap_err().to_string();
    assert!(error.contains("version 2; expected 1"), "{error}");
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    refused(|file| file.graph.steps.clear(), "0 steps");
    refused(|file| file.graph.steps[3] = Step::Repeat { x: 9, times: 1 }, "step 3 needs step 9");
    refused(|file| file.graph.steps[3] = Step::Repeat { x: 2, times: 1 << 40 }, "step 3");
    refused(|file| file.graph.steps[3] = Step::Repeat { x: 2, times: usize::MAX }, "step 3");
    refused(|file| file.graph.steps[4] = Step::Noise { from: usize::MAX, rows: 2, cols: 2 }, "step 4");
    refused(|file| file.graph.steps[4] = Step::Noise { from: 0, rows: 0, cols: 2 }, "step 4");
    refused(|file| file.graph.steps[1] = Step::Constant { tensor: "none".into() }, "`none` is missing");
    refused(|file| file.graph.steps[1] = Step::Constant { tensor: "w".into() }, "one dimension");
    refused(|file| file.graph.steps[18] = Step::Clip { x: 17, low: 1.0, high: 0.0 }, "step 18");
    refused(|file| file.graph.steps.truncate(10), "it ends in");
    refused(|file| file.tensors.insert("b", vec![1], vec![0.0]), "tensor `b`");
    refused(|file| file.tensors.insert("b", vec![8], vec![f32::NAN; 8]), "holds NaN");
    refused(|file| file.tensors.insert("b", vec![9], vec![0.0; 8]), "tensor `b`");
    // 2^62 * 4 numbers would overflow to zero.
    refused(|file| file.tensors.insert("b", vec![1 << 62, 4], vec![]), "tensor `b`");
    refused(|file| file.manifest.observations.clear(), "observations of dimension 0");
    refused(|file| file.manifest.open_loop = usize::MAX, "decisions of");
    refused(|file| file.manifest.noise.normal = usize::MAX, "numbers of noise");
    let many = |file: &mut PolicyFile| {
        // Each of many large matrices is allowed, but not all of them together.
        let mut steps = vec![Step::Observation];
        steps.extend((0..50).map(|_| Step::Repeat { x: 0, times: 1 << 20 }));
        for i in 2..=50 {
            let a = if i == 2 { 1 } else { steps.len() - 1 };
            steps.push(Step::Combine { f: Operator::Add, a, b: i });
        }
        let candidates = steps.len() - 1;
        steps.push(Step::Reduce { x: candidates, members: 3, by: Reduction::Mean });
        steps.push(Step::Best { candidates, scores: candidates + 1 });
        steps.push(Step::Noise { from: 0, rows: 1, cols: 1 });
        steps.push(Step::Concat { parts: vec![candidates + 2, candidates + 3] });
        file.graph.steps = steps;
    };
    refused(many, "it needs");
}

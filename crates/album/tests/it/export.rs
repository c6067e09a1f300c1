//! Every agent, exported: the safetensors form through album-policy, the ONNX form through onnxruntime.

use album::export::{About, Format, check, encode, policy_file};
use album_agents::{AGENTS, Agent, AgentKind, Learner, Moment};
use album_base::rng;
use album_data::{ActionSpace, Dataset, Rows, Sampler, Segments};
use album_nn::Pool;
use album_policy::{Policy, PolicyFile};
use std::io::Write;
use std::process::{Command, Stdio};

fn data(space: &ActionSpace) -> Dataset {
    let (episodes, rows, s, a) = (6, 41, 4, space.dim());
    let n = episodes * rows;
    let mut draw = rng::stream(3, "test");
    let mut numbers =
        |n: usize| -> Vec<f32> { (0..n).map(|_| 2.0 * rng::unit(&mut draw) as f32 - 1.0).collect() };
    let observations = numbers(n * s).into_iter().map(|x| 3.0 * x + 1.0).collect();
    let mut actions = numbers(n * a);
    match space {
        ActionSpace::Discrete { n } => {
            actions.iter_mut().for_each(|x| *x = ((*x + 1.0) * 0.4999 * *n as f32).floor());
        }
        space => space.to_physical(&mut actions),
    }
    let rows = Rows {
        observation_dim: s,
        action_dim: a,
        observations,
        actions,
        rewards: (0..n).map(|row| -((row % 7) as f32)).collect(),
        masks: vec![1.0; n],
        terminals: (0..n).map(|row| row % rows == rows - 1).collect(),
    };
    Dataset::in_space(rows, space.clone()).unwrap()
}

/// A small agent after a few updates, with what the settings ask for.
fn agent(kind: &AgentKind, data: &Dataset, settings: &str) -> Learner {
    let mut table = kind.defaults().unwrap();
    let small = "hidden = [40, 40]\nbatch_size = 8\npolicy_hidden = [16]\nnoise_width = 8\nnum_samples = 6\n";
    for (key, value) in format!("{small}{settings}").parse::<toml::Table>().unwrap() {
        if table.contains_key(&key) {
            table.insert(key, value);
        }
    }
    let setup = kind.setup(&table).unwrap();
    let mut agent = Learner::new(setup.as_ref(), data, 100, 7, &Pool::new(1)).unwrap();
    let segments = Segments::new(agent.segments()).unwrap();
    let mut batch = segments.batch(data, agent.batch_size());
    for step in 0..20 {
        Sampler::new(1, data.len()).fill(step, batch.indices_mut());
        segments.gather(data, &mut batch);
        assert!(agent.update(&batch, step, None).is_finite());
    }
    agent
}

/// Every agent on plain data; with every encoding, bounds and choices where they matter.
fn cases() -> Vec<(String, Learner)> {
    let unit = ActionSpace::unit(2);
    let bounds = ActionSpace::Continuous { low: vec![-2.0, 0.0], high: vec![2.0, 300.0] };
    let encoded = "standardize = true\nfourier_features = 6\nfourier_scale = 0.7\n";
    let mut cases = Vec::new();
    let mut add = |kind: &AgentKind, what: &str, space: &ActionSpace, settings: &str| {
        cases.push((format!("{}{what}", kind.name), agent(kind, &data(space), settings)));
    };
    for kind in AGENTS {
        add(kind, "", &unit, "");
        add(kind, " encoded, with bounds", &bounds, encoded);
        if kind.learns_discrete() {
            let choices = ActionSpace::Discrete { n: 5 };
            add(kind, " discrete", &choices, "discrete_policy = \"awr\"\n");
            if kind.name == "album" {
                add(
                    kind,
                    " discrete, best",
                    &choices,
                    "discrete_policy = \"best\"\ndiscrete_threshold = 0.5\n",
                );
            }
        }
    }
    add(AgentKind::find("album").unwrap(), " clipped", &bounds, "squash = \"clip\"\n");
    add(AgentKind::find("cac").unwrap(), " scaled", &bounds, "scale_input = true\nlevels = 3\n");
    cases
}

/// The largest difference from the agent that is allowed.
fn tolerance(kind: &str) -> f64 {
    let name = kind.split(' ').next().unwrap();
    match AgentKind::find(name).unwrap().policy {
        "Gaussian" | "deterministic" => 1e-5,
        _ => 1e-4,
    }
}

fn exported(agent: &Learner, name: &str) -> PolicyFile {
    let agent_name = name.split(' ').next().unwrap().to_owned();
    let about = About { task: "test".into(), agent: agent_name, seed: 7, step: 20, ..About::default() };
    policy_file(agent, &about).unwrap()
}

#[test]
fn every_agent_acts_the_same_in_the_safetensors_form() {
    for (name, agent) in cases() {
        let file = exported(&agent, &name);
        let bytes = encode(&file, Format::Safetensors).unwrap();
        assert_eq!(PolicyFile::from_bytes(&bytes).unwrap(), file, "{name}");
        for n in [1, 64] {
            let checked = check(&agent, &file, Format::Safetensors, &bytes, n).unwrap().unwrap();
            assert!(checked.observations >= n / 2, "{name}: {checked:?}");
            assert!(checked.max_difference <= tolerance(&name), "{name} at {n}: {checked:?}");
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_batch_and_stays_within_bounds() {
    let space = ActionSpace::Continuous { low: vec![0.1, -7.3], high: vec![0.7, 1.1] };
    let data = data(&space);
    for name in ["album", "ifql"] {
        let agent = agent(AgentKind::find(name).unwrap(), &data, "");
        let mut policy = Policy::new(exported(&agent, name)).unwrap();
        let (rows, noise) = (700, policy.manifest().noise.len());
        let mut stream = rng::stream(1, "test");
        let mut normal = |n: usize| -> Vec<f32> {
            (0..n).map(|_| 9.0 * rng::normal_pair(&mut stream)[0] as f32).collect()
        };
        let (observations, noise_rows) = (normal(rows * 4), normal(rows * noise));
        let mut together = vec![0.0; rows * 2];
        policy.act_with(&observations, &noise_rows, &mut together).unwrap();
        let mut alone = [0.0; 2];
        for i in 0..rows {
            let noise = &noise_rows[i * noise..][..noise];
            policy.act_with(&observations[i * 4..][..4], noise, &mut alone).unwrap();
            // Choices between candidates may differ where they are a matter of rounding.
            let same = alone.iter().zip(&together[i * 2..]).all(|(x, y)| (x - y).abs() < 1e-4);
            assert!(same || policy.margin() < 1e-5, "{name} row {i}: {alone:?}");
            assert!((0.1..=0.7).contains(&alone[0]) && (-7.3..=1.1).contains(&alone[1]), "{alone:?}");
        }
    }
}

#[test]
fn the_manifest_says_what_the_policy_is() {
    let space = ActionSpace::Continuous { low: vec![-2.0, 0.0], high: vec![2.0, 300.0] };
    let agent = agent(AgentKind::find("qc-fql").unwrap(), &data(&space), "h = 3\n");
    let manifest = exported(&agent, "qc-fql").manifest;
    assert_eq!(
        manifest.observations,
        ["observation[0]", "observation[1]", "observation[2]", "observation[3]"]
    );
    assert_eq!(manifest.weights_sha256, album_train::weights_sha256(&agent.state()));
    assert!(manifest.open_loop > 1, "{manifest:?}");
    assert_eq!(manifest.noise.normal, 2 * manifest.open_loop);
    // The first action of a plan is what the agent does first.
    let mut first = Vec::new();
    agent.policy().act(&[0.0; 4], &[Moment { episode: 0, step: 0 }], &mut first);
    assert_eq!(first.len(), 2);
}

/// Checks models with `onnx.checker` and runs them at batch 1 and 64.
const SCRIPT: &str = r#"
import struct, sys
import numpy as np, onnx, onnxruntime as ort
data = sys.stdin.buffer.read()
at = 0
while at < len(data):
    length, n, s, z, a = struct.unpack_from("<5Q", data, at)
    at += 40
    model = onnx.load_from_string(data[at:at + length])
    bytes_, at = data[at:at + length], at + length
    take = lambda rows, cols: np.frombuffer(data[at:at + 4 * rows * cols], np.float32).reshape(rows, cols)
    observations = take(n, s); at += 4 * n * s
    noise = take(n, z); at += 4 * n * z
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == 8 and model.opset_import[0].version == 17
    props = {p.key: p.value for p in model.metadata_props}
    for key in ["task", "agent", "seed", "step", "weights_sha256", "observations", "actions", "album"]:
        assert key in props, key
    session = ort.InferenceSession(bytes_, providers=["CPUExecutionProvider"])
    feeds = {"observation": observations, "noise": noise} if z else {"observation": observations}
    assert [i.name for i in session.get_inputs()] == list(feeds)
    assert session.get_inputs()[0].shape == ["batch", s]
    together = session.run(["action"], feeds)[0]
    assert together.shape[0] == n and (together.dtype == np.int64) == (together.ndim == 1)
    one = [session.run(["action"], {k: v[i:i + 1] for k, v in feeds.items()})[0] for i in range(n)]
    sys.stdout.buffer.write(together.astype("<f4").tobytes())
    sys.stdout.buffer.write(np.concatenate(one).astype("<f4").tobytes())
"#;

#[test]
fn every_agent_acts_the_same_in_the_onnx_form() {
    let Some(python) = std::env::var_os("ALBUM_TEST_PYTHON") else {
        return album_testing::skip("python", "ALBUM_TEST_PYTHON is not set; `cargo xtask test` sets it");
    };
    const N: usize = 64;
    let cases = cases();
    let (mut input, mut expected) = (Vec::new(), Vec::new());
    for (name, agent) in &cases {
        let file = exported(agent, name);
        let model = encode(&file, Format::Onnx).unwrap();
        let recorded = agent.recorded_policy();
        let (s, z, a) = (4, file.manifest.noise.len(), file.manifest.decision_len());
        let mut stream = rng::stream(2, "test");
        let observations: Vec<f32> =
            (0..N * s).map(|_| 1.0 + 2.0 * rng::normal_pair(&mut stream)[0] as f32).collect();
        let moment = |i: usize, step: usize| Moment { episode: i as u64, step: step as u64 };
        let noise: Vec<f32> = (0..N).flat_map(|i| recorded.noise(moment(i, 0)).concat()).collect();
        input.extend([model.len(), N, s, z, a].iter().flat_map(|x| (*x as u64).to_le_bytes()));
        input.extend(&model);
        input.extend(observations.iter().chain(&noise).flat_map(|x| x.to_le_bytes()));

        let mut policy = Policy::new(file.clone()).unwrap();
        let mut close = [false; N];
        for i in 0..N {
            let mut actions = vec![0.0; a];
            let (observation, noise) = (&observations[i * s..][..s], &noise[i * z..][..z]);
            policy.act_with(observation, noise, &mut actions).unwrap();
            close[i] = policy.margin() < 1e-5;
        }
        let (mut agent, mut decisions, mut actions) = (agent.policy(), vec![0.0; N * a], Vec::new());
        let dim = a / recorded.open_loop;
        for step in 0..recorded.open_loop {
            let moments: Vec<Moment> = (0..N).map(|i| moment(i, step)).collect();
            agent.act(&observations, &moments, &mut actions);
            for i in 0..N {
                decisions[i * a + step * dim..][..dim].copy_from_slice(&actions[i * dim..][..dim]);
            }
        }
        expected.push((name, file.manifest, decisions, close));
    }
    let mut child = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let said = child.wait_with_output().unwrap();
    assert!(said.status.success());
    writer.join().unwrap().unwrap();
    let mut found = said.stdout.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x));
    for (name, manifest, decisions, close) in expected {
        let a = manifest.decision_len();
        let range: Vec<f32> = match &manifest.actions {
            album_policy::Actions::Continuous { low, high, .. } => {
                low.iter().zip(high).map(|(low, high)| 0.5 * (high - low)).collect()
            }
            album_policy::Actions::Discrete { .. } => vec![1.0],
        };
        for batch in [N, 1] {
            let mut largest = 0.0f64;
            for i in 0..N {
                for j in 0..a {
                    let difference = (found.next().unwrap() - decisions[i * a + j]) / range[j % range.len()];
                    if !close[i] {
                        largest = largest.max(f64::from(difference.abs()));
                    }
                }
            }
            assert!(largest <= tolerance(name), "{name} at batch {batch}: {largest:e}");
            let left = close.iter().filter(|close| !**close).count();
            assert!(left >= N / 2, "{name}: {left} of {N} compared");
        }
    }
    assert_eq!(found.next(), None);
}

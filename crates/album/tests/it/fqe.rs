//! Fitted Q evaluation, held against exact values and against what cannot be judged.

use crate::own::{record, train, train_on};
use album::fqe::{Propensities, Request, Verdict, evaluate_run};
use album::{Overrides, Resources, Run, Trained, config};
use album_agents::{Agent, Moment};
use album_base::rng;
use album_data::{ActionKind, ActionSpace, NpzWriter, Source};
use album_tabular::{Encoding, MudWorld};
use album_train::StopFlag;
use std::path::Path;

fn fqe(run: &Path, request: &Request) -> Result<album::fqe::Evaluation, album::Error> {
    evaluate_run(run, request, &Resources::default(), &StopFlag::new(), &mut |_, _| {})
}

fn short() -> Request {
    Request { updates: Some(40), ..Request::default() }
}

fn mudworld(agent: &str, run: &Path, set: &[&str]) {
    let overrides = Overrides {
        problem: Some("mudworld-6-eps-greedy".parse().unwrap()),
        agent: Some(agent.to_owned()),
        set: set.iter().map(|&pair| pair.to_owned()).collect(),
        ..Overrides::default()
    };
    let config = config::resolve(&overrides).unwrap().config;
    Run::begin(config, run, false, &Resources::default())
        .unwrap()
        .train(StopFlag::new(), &mut |_| {})
        .unwrap();
}

/// The exact mean value of a run's policy at the initial states that FQE looks at.
fn exact(run: &Path) -> f64 {
    let trained = Trained::open(run, None, &Resources::default()).unwrap();
    let gamma = trained.config.setup().unwrap().common().gamma;
    let (world, encoding) = (MudWorld::new(6, 0), Encoding::OneHot);
    let mut policy = trained.agent.policy();
    let values = world
        .value_of_policy(gamma, |cell| {
            let mut action = Vec::new();
            let moment = [Moment { episode: 0, step: 0 }];
            policy.act(&world.observation(cell, encoding), &moment, &mut action);
            (0..4).map(|a| f64::from(u8::from(a as f32 == action[0]))).collect()
        })
        .unwrap();
    let data = trained.held_out().unwrap().unwrap();
    let starts = (0..data.episodes().len()).map(|e| data.observation(data.episodes().start(e)));
    let cell = |seen: &[f32]| (0..36).find(|&cell| world.observation(cell, encoding) == seen).unwrap();
    starts.map(|seen| values[cell(seen)]).sum::<f64>() / data.episodes().len() as f64
}

#[test]
fn the_value_of_a_policy_is_the_exact_one() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    mudworld("album", &run, &["steps=1500", "hidden=[64,64]", "eval_episodes=0", "holdout=0.3"]);
    let truth = exact(&run);
    let found = fqe(&run, &Request { updates: Some(3000), ..Request::default() }).unwrap();
    // Values of this world reach from about -1 to 1.
    assert!((found.policy.mean - truth).abs() < 0.03, "{truth} {found:#?}");
    assert!(found.policy.low <= truth && truth <= found.policy.high, "{truth} {:?}", found.policy);
    let behaviour = &found.behaviour;
    assert!((behaviour.estimated.mean - behaviour.observed).abs() < 0.05, "{behaviour:?}");
    let importance = found.importance.as_ref().unwrap();
    assert_eq!(importance.propensities, Propensities::Estimated);
    assert!((importance.dr.mean - truth).abs() < 0.03, "{truth} {importance:?}");
    assert!(matches!(found.verdict, Verdict::Better | Verdict::CannotTell), "{found:#?}");
    assert!(found.diagnostics.agent_value.is_some());
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Off-policy evaluation") && page.contains("effective sample size"));
    // The same again, on any number of threads.
    let again = evaluate_run(
        &run,
        &Request { updates: Some(3000), ..Request::default() },
        &Resources { threads: 1, ..Resources::default() },
        &StopFlag::new(),
        &mut |_, _| {},
    );
    assert_eq!(again.unwrap(), found);
}

#[test]
fn a_log_without_an_environment_is_judged_and_bad_input_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (data, run) = (dir.path().join("mass.npz"), dir.path().join("run"));
    record(&data, 5);
    train(data.clone(), &run, &["steps=40", "hidden=[16]", "batch_size=32"]);
    let found = fqe(&run, &short()).unwrap();
    assert_eq!((found.episodes, found.subject.data.as_str()), (20, "held-out"));
    assert!(found.importance.is_none());
    let distance = &found.diagnostics.action_distance;
    assert!(distance.q05 <= distance.q50 && distance.q50 <= distance.q95);

    // Other episodes.
    let other = dir.path().join("other.npz");
    record(&other, 6);
    let request = |path: &Path| Request { data: Some(Source::of(path)), ..short() };
    assert_eq!(fqe(&run, &request(&other)).unwrap().episodes, 200);

    let report = std::fs::read(run.join("report.html")).unwrap();
    let kept = std::fs::read(run.join("fqe.json")).unwrap();
    let refused = |request: &Request, code: u8, word: &str| {
        let error = fqe(&run, request).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(error.exit_code(), code, "{error}");
    };
    let log = |name: &str, episodes: usize, observation: usize, action: usize| {
        let path = dir.path().join(name);
        let rows = episodes * 4;
        let mut writer = NpzWriter::create(&path).unwrap();
        writer.array_f32("observations", &[rows, observation], &vec![0.5; rows * observation]).unwrap();
        writer.array_f32("actions", &[rows, action], &vec![0.5; rows * action]).unwrap();
        writer.array_f32("rewards", &[rows], &vec![1.0; rows]).unwrap();
        let last: Vec<bool> = (0..rows).map(|row| row % 4 == 3).collect();
        writer.array_bool("terminals", &[rows], &last).unwrap();
        writer.array_bool("timeouts", &[rows], &vec![false; rows]).unwrap();
        writer.finish().unwrap();
        path
    };
    refused(&request(&log("wide.npz", 20, 5, 2)), 3, "observations of dimension 5");
    refused(&request(&log("broad.npz", 20, 4, 3)), 3, "found actions of dimension 3, expected 2");
    refused(&request(&log("few.npz", 4, 4, 2)), 3, "found 4 episode(s)");
    refused(&request(&dir.path().join("none.npz")), 5, "none.npz");
    refused(&Request { ensemble: Some(1), ..short() }, 3, "ensemble = 1");
    refused(&Request { updates: Some(0), ..Request::default() }, 3, "updates = 0");
    refused(&Request { step: Some(7), ..short() }, 3, "7");
    refused(&Request { propensity: Some("p".into()), ..short() }, 2, "--propensity needs discrete actions");
    assert_eq!(std::fs::read(run.join("report.html")).unwrap(), report);
    assert_eq!(std::fs::read(run.join("fqe.json")).unwrap(), kept);

    // A file of an older album: the page says so, and `resume`, which writes the page at its end, does not fail.
    let old = String::from_utf8(kept).unwrap().replace("\"walked\"", "\"strolled\"");
    std::fs::write(run.join("fqe.json"), old).unwrap();
    let page = std::fs::read_to_string(album::report::write(&run).unwrap()).unwrap();
    assert!(page.contains("The last evaluation cannot be read") && page.contains("walked"), "{page}");

    // A run that held nothing out, and one that commits to several actions.
    let (whole, chunks) = (dir.path().join("whole"), dir.path().join("chunks"));
    train(data.clone(), &whole, &["steps=2", "hidden=[8]", "holdout=0"]);
    let error = fqe(&whole, &short()).unwrap_err().to_string();
    assert!(error.contains("--data SOURCE") && error.contains("--holdout"), "{error}");
    let overrides = Overrides {
        data: Some(Source::of(&data)),
        agent: Some("qc-fql".into()),
        set: ["steps=2", "hidden=[8]"].map(str::to_owned).to_vec(),
        ..Overrides::default()
    };
    let config = config::resolve(&overrides).unwrap().config;
    let begun = Run::begin(config, &chunks, false, &Resources::default()).unwrap();
    begun.train(StopFlag::new(), &mut |_| {}).unwrap();
    let error = fqe(&chunks, &short()).unwrap_err();
    assert!(error.to_string().contains("actions at a time"), "{error}");
    assert_eq!(error.exit_code(), 3);
}

/// The temperature of a room, to be kept at 0: 100 episodes of 40 steps with heating `gain * x + offset` and noise.
fn heating(path: &Path, seed: u64, [gain, offset, noise]: [f64; 3]) {
    let mut draw = rng::stream(seed, "heating");
    let (mut seen, mut heated, mut paid, mut cut) = (vec![], vec![], vec![], vec![]);
    for _ in 0..100 {
        let mut x = 4.0 * rng::unit(&mut draw) - 2.0;
        for step in 0..40 {
            let [shaky, draught] = rng::normal_pair(&mut draw);
            let heat = (gain * x + offset + noise * shaky).clamp(-3.0, 3.0);
            seen.push(x as f32);
            heated.push(heat as f32);
            paid.push(-(x * x + 0.1 * heat * heat) as f32);
            cut.push(step == 39);
            x = 0.97 * x + 0.2 * heat + 0.05 * draught;
        }
    }
    let rows = seen.len();
    let mut writer = NpzWriter::create(path).unwrap();
    writer.array_f32("observations", &[rows, 1], &seen).unwrap();
    writer.array_f32("actions", &[rows, 1], &heated).unwrap();
    writer.array_f32("rewards", &[rows], &paid).unwrap();
    writer.array_bool("terminals", &[rows], &vec![false; rows]).unwrap();
    writer.array_bool("timeouts", &[rows], &cut).unwrap();
    writer.finish().unwrap();
}

/// Clones of a good and of a bad controller are judged on the log of a shaky one, which has done what either does.
#[test]
fn a_verdict_is_given_where_the_data_supports_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    heating(&path("log.npz"), 1, [-0.3, 0.0, 1.0]);
    heating(&path("good.npz"), 2, [-0.8, 0.0, 0.2]);
    heating(&path("bad.npz"), 3, [-0.5, 1.0, 0.2]);
    // The true values: the sum of discounted costs of the clones without noise.
    for (name, truth, verdict) in [("good", -3.4, Verdict::Better), ("bad", -14.1, Verdict::Worse)] {
        let overrides = Overrides {
            data: Some(Source {
                action_space: Some(ActionSpace::Continuous { low: vec![-3.0], high: vec![3.0] }),
                ..Source::of(path(&format!("{name}.npz")))
            }),
            agent: Some("bc".into()),
            set: ["steps=300", "hidden=[32,32]", "batch_size=64", "lr=1e-3", "gamma=0.9", "holdout=0"]
                .map(str::to_owned)
                .to_vec(),
            ..Overrides::default()
        };
        let config = config::resolve(&overrides).unwrap().config;
        let begun = Run::begin(config, &path(name), false, &Resources::default()).unwrap();
        begun.train(StopFlag::new(), &mut |_| {}).unwrap();
        let data = Some(Source::of(path("log.npz")));
        let found = fqe(&path(name), &Request { data, updates: Some(6000), ..Request::default() }).unwrap();
        assert_eq!(found.verdict, verdict, "{name}: {found:#?}");
        assert!(found.policy.low < truth && truth < found.policy.high, "{name}: {found:#?}");
    }
}

/// A log of 30 episodes with columns of its own names, one of them a text.
fn valve(path: &Path, modes: [&str; 2]) {
    let mut text = String::from("run,level,mode,opening,pay,cut\n");
    for row in 0..240 {
        let (run, level, cut) = (row / 8, row % 7, u8::from(row % 8 == 7));
        text += &format!("{run},{level},{},{},{},{cut}\n", modes[row % 2], row % 3, row % 5);
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn another_week_is_read_like_the_first_and_must_mean_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    valve(&path("first.csv"), ["low", "high"]);
    valve(&path("second.csv"), ["high", "low"]);
    valve(&path("other.csv"), ["low", "off"]);
    let columns = "episode=run,obs=level+mode,action=opening,reward=pay,timeout=cut".parse().unwrap();
    let source = Source { columns, actions: Some(ActionKind::Continuous), ..Source::of(path("first.csv")) };
    train_on(source, &path("run"), &["steps=2", "hidden=[8]", "holdout=0.2"]);
    let judged = |name: &str| fqe(&path("run"), &Request { data: Some(Source::of(path(name))), ..short() });
    assert_eq!(judged("second.csv").unwrap().episodes, 30);
    let error = judged("other.csv").unwrap_err();
    assert!(error.to_string().contains("`mode=high` as number 1 of its observations"), "{error}");
    assert_eq!(error.exit_code(), 3);
}

/// Bandits of three steps: an action's reward is its index, and the log knows how likely each was.
#[test]
fn logged_propensities_are_read_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let (path, run) = (dir.path().join("choices.npz"), dir.path().join("run"));
    let rows = 600;
    let action = |row: usize| i64::from((row as u32).wrapping_mul(2_654_435_761) >> 16 & 7 > 4);
    let actions: Vec<i64> = (0..rows).map(action).collect();
    let wide = |f: &dyn Fn(usize) -> f32| (0..rows).map(f).collect::<Vec<f32>>();
    let write = |path: &Path, propensity: &dyn Fn(usize) -> f32| {
        let mut writer = NpzWriter::create(path).unwrap();
        writer.array_f32("observations", &[rows, 1], &wide(&|row| (row % 3) as f32)).unwrap();
        writer.array_i64("actions", &[rows], &actions).unwrap();
        writer.array_f32("rewards", &[rows], &wide(&|row| action(row) as f32)).unwrap();
        writer.array_f32("p", &[rows], &wide(propensity)).unwrap();
        writer
            .array_bool("terminals", &[rows], &(0..rows).map(|row| row % 3 == 2).collect::<Vec<_>>())
            .unwrap();
        writer.array_bool("timeouts", &[rows], &vec![false; rows]).unwrap();
        writer.finish().unwrap();
    };
    let true_one = |row: usize| if action(row) == 0 { 0.625 } else { 0.375 };
    write(&path, &true_one);
    train(path.clone(), &run, &["steps=30", "hidden=[16]", "batch_size=32", "holdout=0.5"]);
    let request = Request { propensity: Some("p".into()), updates: Some(300), ..Request::default() };
    let found = fqe(&run, &request).unwrap();
    let importance = found.importance.unwrap();
    assert_eq!((importance.propensities, found.episodes), (Propensities::Logged, 100));
    let size = importance.effective_sample_size;
    assert!(size > 0.0 && size <= 100.0 && importance.wis.is_some(), "{importance:?}");
    assert_eq!(found.warnings.iter().any(|warning| warning.contains("effective sample size")), size < 10.0);
    let source = Source::of(&path);
    let on_all = fqe(&run, &Request { data: Some(source), ..request.clone() }).unwrap();
    assert_eq!(on_all.episodes, 200);
    assert_eq!(on_all.diagnostics.observed_tail, 0.0);

    let error = fqe(&run, &Request { propensity: Some("q".into()), ..request.clone() }).unwrap_err();
    assert!(error.to_string().starts_with("--propensity q") && error.exit_code() == 3, "{error}");
    let bad = dir.path().join("bad.npz");
    write(&bad, &|row| if row == 4 { 1.5 } else { true_one(row) });
    let error = fqe(&run, &Request { data: Some(Source::of(&bad)), ..request }).unwrap_err();
    assert!(error.to_string().contains("found 1.5 at transition 4"), "{error}");
    assert_eq!(error.exit_code(), 3);
}

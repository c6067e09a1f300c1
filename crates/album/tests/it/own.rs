//! People's own data: from a file to a policy that beats those who recorded it, without any environment.

use album::{Differences, Fit, Overrides, Problem, Resources, Run, Trained, config, together};
use album_agents::{Agent, Moment};
use album_base::rng;
use album_data::columns::import_source;
use album_data::{ActionKind, Ends, NpzWriter, Source};
use album_train::StopFlag;
use std::path::{Path, PathBuf};

const DT: f64 = 0.1;
const LIMIT: f64 = 6.0;
const LENGTH: usize = 50;

/// A mass on a plane that is to be brought to rest at the origin: position and velocity, pushed by two forces in newtons.
fn advance(s: &mut [f64; 4], a: [f64; 2]) -> f64 {
    let square = |x: f64| x * x;
    let reward = -(square(s[0]) + square(s[1]))
        - 0.1 * (square(s[2]) + square(s[3]))
        - 0.05 * (square(a[0]) + square(a[1]));
    for axis in 0..2 {
        s[axis] += DT * s[axis + 2];
        s[axis + 2] += DT * (a[axis] - 0.1 * s[axis + 2]);
    }
    reward
}

/// The optimal gains on position and velocity, by Riccati's iteration for one axis.
fn optimal() -> [f64; 2] {
    let (a, b, q, r) = ([[1.0, DT], [0.0, 1.0 - 0.1 * DT]], [0.0, DT], [1.0, 0.1], 0.05);
    let mut p = [[q[0], 0.0], [0.0, q[1]]];
    let mut gain = [0.0; 2];
    for _ in 0..1000 {
        let pb = [0, 1].map(|i| p[i][0] * b[0] + p[i][1] * b[1]);
        let pa = [0, 1].map(|i| [0, 1].map(|j| p[i][0] * a[0][j] + p[i][1] * a[1][j]));
        let bpa = [0, 1].map(|j| b[0] * pa[0][j] + b[1] * pa[1][j]);
        gain = bpa.map(|x| x / (r + b[0] * pb[0] + b[1] * pb[1]));
        p = [0, 1].map(|i| {
            [0, 1].map(|j| {
                let diagonal = if i == j { q[i] } else { 0.0 };
                diagonal + a[0][i] * pa[0][j] + a[1][i] * pa[1][j] - bpa[i] * gain[j]
            })
        });
    }
    gain
}

/// Mean returns and recorded rows of so many episodes.
struct Rollouts {
    mean_return: f64,
    observations: Vec<f32>,
    next_observations: Vec<f32>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
}

fn rollouts(episodes: usize, seed: u64, mut act: impl FnMut(&[f64; 4], [f64; 2]) -> [f64; 2]) -> Rollouts {
    let mut draw = rng::stream(seed, "linear-quadratic");
    let mut all = Rollouts {
        mean_return: 0.0,
        observations: vec![],
        next_observations: vec![],
        actions: vec![],
        rewards: vec![],
    };
    for _ in 0..episodes {
        let ([x, y], [u, v]) = (rng::normal_pair(&mut draw), rng::normal_pair(&mut draw));
        let mut s = [1.5 * x, 1.5 * y, 0.5 * u, 0.5 * v];
        for _ in 0..LENGTH {
            let a = act(&s, rng::normal_pair(&mut draw)).map(|x| x.clamp(-LIMIT, LIMIT));
            all.observations.extend(s.map(|x| x as f32));
            all.actions.extend(a.map(|x| x as f32));
            let reward = advance(&mut s, a);
            all.next_observations.extend(s.map(|x| x as f32));
            all.rewards.push(reward as f32);
            all.mean_return += reward / episodes as f64;
        }
    }
    all
}

/// A weak controller with a shaky hand.
fn mediocre(s: &[f64; 4], noise: [f64; 2]) -> [f64; 2] {
    let [p, d] = optimal();
    [0, 1].map(|axis| -(0.15 * p * s[axis] + 0.3 * d * s[axis + 2]) + 1.5 * noise[axis])
}

pub fn record(path: &Path, seed: u64) {
    let data = rollouts(200, seed, mediocre);
    let rows = data.rewards.len();
    let last: Vec<bool> = (0..rows).map(|row| row % LENGTH == LENGTH - 1).collect();
    let mut writer = NpzWriter::create(path).unwrap();
    writer.array_f32("observations", &[rows, 4], &data.observations).unwrap();
    writer.array_f32("next_observations", &[rows, 4], &data.next_observations).unwrap();
    writer.array_f32("actions", &[rows, 2], &data.actions).unwrap();
    writer.array_f32("rewards", &[rows], &data.rewards).unwrap();
    writer.array_bool("terminals", &[rows], &vec![false; rows]).unwrap();
    writer.array_bool("timeouts", &[rows], &last).unwrap();
    writer.finish().unwrap();
}

/// The share of the way from behaviour to optimum.
fn gap_closed(mut act: impl FnMut(&[f32]) -> Vec<f32>) -> f64 {
    let [p, d] = optimal();
    let best = rollouts(100, 99, |s, _| [0, 1].map(|axis| -(p * s[axis] + d * s[axis + 2]))).mean_return;
    let behaviour = rollouts(100, 99, mediocre).mean_return;
    let learned = rollouts(100, 99, |s, _| {
        let action = act(&s.map(|x| x as f32));
        [f64::from(action[0]), f64::from(action[1])]
    });
    (learned.mean_return - behaviour) / (best - behaviour)
}

pub fn train(data: PathBuf, out: &Path, set: &[&str]) -> album_train::RunResult {
    train_on(Source::of(data), out, set)
}

pub fn train_on(source: Source, out: &Path, set: &[&str]) -> album_train::RunResult {
    let overrides = Overrides {
        data: Some(source),
        set: set.iter().map(|&pair| pair.to_owned()).collect(),
        ..Overrides::default()
    };
    let config = config::resolve(&overrides).unwrap().config;
    let run = Run::begin(config, out, false, &Resources::default()).unwrap();
    run.train(StopFlag::new(), &mut |_| {}).unwrap().result
}

#[test]
fn a_log_in_physical_units_becomes_a_policy_that_beats_it() {
    let dir = tempfile::tempdir().unwrap();
    let (data, run) = (dir.path().join("mass.npz"), dir.path().join("run"));
    record(&data, 0);
    let result = train(data, &run, &["steps=2500", "hidden=[64,64]"]);
    assert!(result.finished && result.evaluations.is_empty());
    assert_eq!(result.task, "mass");

    let trained = Trained::open(&run, None, &Resources::default()).unwrap();
    let Problem::Own(own) = &trained.config.problem else { panic!("{:?}", trained.config.problem) };
    assert_eq!(own.name, "mass");
    let mut policy = trained.agent.policy();
    let mut actions = Vec::new();
    let closed = gap_closed(|s| {
        policy.act(s, &[Moment { episode: 0, step: 0 }], &mut actions);
        actions.clone()
    });
    assert!(closed > 0.5, "closed {closed:.2} of the gap");

    // What the page shows.
    let differences = Differences::read(&run).unwrap().unwrap();
    assert!(differences.held_out && differences.states == 1000);
    assert_eq!((differences.actions.len(), differences.gains.len()), (2, 10));
    assert!(differences.gains.windows(2).all(|pair| pair[0].gain >= pair[1].gain));
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("What the policy does differently") && page.contains("Values at initial states"));
}

#[test]
fn a_run_can_be_made_longer_and_gone_on_from() {
    let dir = tempfile::tempdir().unwrap();
    let (data, run) = (dir.path().join("mass.npz"), dir.path().join("run"));
    record(&data, 1);
    let tiny = ["hidden=[8]", "batch_size=16", "save_every=10", "keep_best=true"];
    let first = train(data.clone(), &run, &[&tiny[..], &["steps=40"]].concat());
    let best = first.best.expect("the best checkpoint is kept");
    assert_eq!(best.criterion, "validation/critic/critic_loss");
    assert!(run.join(format!("checkpoints/step_{:09}", best.step)).is_dir());

    let longer = Run::resume(&run, Some(60), &Resources::default()).unwrap();
    let result = longer.train(StopFlag::new(), &mut |_| {}).unwrap().result;
    assert_eq!((result.steps, result.finished), (60, true));
    let error = Run::resume(&run, Some(20), &Resources::default()).err().unwrap().to_string();
    assert!(error.contains("has done 60 steps already"), "{error}");

    let next = dir.path().join("next.npz");
    record(&next, 2);
    let overrides = Overrides {
        file: Some(run.join("config.toml")),
        from: Some(run.clone()),
        data: Some(Source::of(next)),
        ..Overrides::default()
    };
    let resolved = config::resolve(&overrides).unwrap();
    assert!(resolved.overridden.iter().any(|line| line.contains("--data")), "{:?}", resolved.overridden);
    let out = dir.path().join("on");
    let begun = Run::begin(resolved.config, &out, false, &Resources::default()).unwrap();
    drop(begun);
    // It can be resumed although not one step was done, and the first run is not needed any more.
    std::fs::remove_dir_all(&run).unwrap();
    let gone_on = Run::resume(&out, None, &Resources::default()).unwrap();
    assert!(gone_on.train(StopFlag::new(), &mut |_| {}).unwrap().result.finished);
}

/// A run that is killed between its configuration and what follows it gets the rest when it is resumed.
#[test]
fn a_run_killed_in_its_first_moment_is_resumed_as_it_began() {
    let dir = tempfile::tempdir().unwrap();
    let (data, run) = (dir.path().join("mass.npz"), dir.path().join("run"));
    record(&data, 1);
    let tiny = ["hidden=[8]", "batch_size=16", "save_every=10", "steps=20"];
    train(data.clone(), &run, &tiny);
    let weights = |out: &str, killed: bool| {
        let out = dir.path().join(out);
        let overrides = Overrides {
            file: Some(run.join("config.toml")),
            from: Some(run.clone()),
            data: Some(Source::of(data.clone())),
            ..Overrides::default()
        };
        let config = config::resolve(&overrides).unwrap().config;
        if killed {
            // Once even before its configuration.
            std::fs::create_dir(&out).unwrap();
            std::fs::write(out.join("run.lock"), "1\n").unwrap();
            std::fs::write(out.join(".config.toml.1-0-2.tmp"), "se").unwrap();
        }
        let mut runs = together::begin(&config, 1, Some(&out), false, &Resources::default()).unwrap();
        let mut begun = runs.remove(0);
        if killed {
            drop(begun);
            std::fs::remove_file(out.join("names.json")).unwrap();
            std::fs::remove_dir_all(out.join("checkpoints")).unwrap();
            begun = Run::resume(&out, None, &Resources::default()).unwrap();
        }
        let result = begun.train(StopFlag::new(), &mut |_| {}).unwrap().result;
        assert!(out.join("names.json").is_file());
        result.weights_sha256
    };
    assert_eq!(weights("killed", true), weights("calm", false));
}

/// The log that album-data's tests hold in every format.
fn in_every_format(imported: &Path) -> Vec<Source> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../album-data/tests/golden/ended");
    let names = [
        "log.npz",
        "states.npz",
        "npy",
        "d4rl.hdf5",
        "robomimic.hdf5",
        "minari/album/hdf5-v0/data/main_data.hdf5",
        "minari/album/hdf5-v0",
        "minari/album/parquet-v0",
        "log.parquet",
        "lists.parquet",
        "log.csv",
        "log.csv.gz",
        "shuffled.csv",
        "lerobot",
    ];
    let source = |name: &str| Source {
        // These two have flags that may mean any end.
        ends: ["robomimic.hdf5", "lerobot"].contains(&name).then_some(Ends::Terminal),
        action_bounds: vec![[-4.0, 4.0]],
        ..Source::of(golden.join(name))
    };
    import_source(&source("log.csv"), imported, false, &mut |_| true).unwrap().unwrap();
    names.into_iter().map(source).chain([Source::of(imported)]).collect()
}

#[test]
fn a_log_trains_the_same_weights_from_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let set = ["hidden=[8,8]", "batch_size=16", "steps=500", "holdout=0.25"];
    let mut trained = Vec::new();
    for (i, source) in in_every_format(&dir.path().join("imported")).into_iter().enumerate() {
        let name = source.paths[0].clone();
        let result = train_on(source, &dir.path().join(format!("run-{i}")), &set);
        trained.push((result.weights_sha256, name));
    }
    let (first, rest) = trained.split_first().unwrap();
    for other in rest {
        assert_eq!(other.0, first.0, "{} and {}", other.1.display(), first.1.display());
    }
}

#[test]
fn the_default_agent_follows_the_outcomes_of_choices() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dice.csv");
    let mut text = String::from("episode,obs,action,reward,terminated\n");
    for episode in 0..20 {
        text +=
            &format!("{episode},0,{},0,0\n{episode},{},0,{},1\n", episode % 2, 1 + episode % 3, episode % 5);
    }
    std::fs::write(&path, text).unwrap();
    let agent = |agent: Option<&str>, set: &[&str]| {
        let overrides = Overrides {
            data: Some(Source { actions: Some(ActionKind::Discrete), ..Source::of(&path) }),
            agent: agent.map(str::to_owned),
            set: set.iter().map(|&pair| pair.to_owned()).collect(),
            ..Overrides::default()
        };
        let resolved = config::resolve(&overrides).unwrap();
        (resolved.config.agent, resolved.chosen.iter().any(|line| line.starts_with("agent = iql: ")))
    };
    assert_eq!(agent(None, &[]), ("iql".into(), true));
    assert_eq!(agent(None, &["hidden=[8]"]), ("iql".into(), true));
    assert_eq!(agent(None, &["k=2"]), ("album".into(), false));
    assert_eq!(agent(Some("album"), &[]), ("album".into(), false));
}

#[test]
fn a_log_that_has_moved_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new, run) = (dir.path().join("log.csv"), dir.path().join("moved.csv"), dir.path().join("run"));
    let golden = in_every_format(&dir.path().join("imported")).remove(0);
    std::fs::copy(&golden.paths[0], &old).unwrap();
    let set = ["hidden=[4]", "batch_size=4", "steps=3"];
    train_on(Source { paths: vec![old.clone()], ..golden }, &run, &set);
    std::fs::rename(&old, &new).unwrap();
    let resume = || Run::resume(&run, Some(6), &Resources::default());
    let error = resume().unwrap_err();
    assert_eq!(error.exit_code(), 5);
    assert!(error.to_string().contains("`source.paths` in config.toml"), "{error}");
    let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
    let config = config.replace(&old.display().to_string(), &new.display().to_string());
    std::fs::write(run.join("config.toml"), config).unwrap();
    resume().unwrap();
}

#[test]
fn an_agent_goes_on_only_where_numbers_are_called_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let csv = |name: &str, columns: &str| {
        let mut text = format!("episode,{columns},action,reward,terminated\n");
        for row in 0..24 {
            let (action, last) = (f64::from(row % 5) / 4.0 - 0.5, u8::from(row % 8 == 7));
            text += &format!("{},{}.5,{row},{action},1,{last}\n", row / 8, row % 3);
        }
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        Source { columns: "obs=level+flow".parse().unwrap(), ..Source::of(path) }
    };
    let run = dir.path().join("run");
    train_on(csv("first.csv", "level,flow"), &run, &["hidden=[4]", "batch_size=4", "steps=3"]);
    let on = |source: Source, out: &str| {
        let overrides = Overrides {
            file: Some(run.join("config.toml")),
            from: Some(run.clone()),
            data: Some(source),
            ..Overrides::default()
        };
        let config = config::resolve(&overrides).unwrap().config;
        Run::begin(config, &dir.path().join(out), false, &Resources::default()).map(|_| ())
    };
    let swapped = csv("swapped.csv", "flow,level");
    on(swapped.clone(), "right").unwrap();
    let wrong = Source { columns: "obs=flow+level".parse().unwrap(), ..swapped };
    let error = on(wrong, "wrong").unwrap_err().to_string();
    assert!(error.contains("found `level` as number 0 of its observations; expected `flow`"), "{error}");
    assert!(!dir.path().join("wrong").exists());
}

#[test]
fn fit_in_memory_and_train_from_a_file_agree() {
    let dir = tempfile::tempdir().unwrap();
    let (data, run) = (dir.path().join("mass.npz"), dir.path().join("run"));
    record(&data, 3);
    let set = ["hidden=[8]", "batch_size=16", "steps=20", "holdout=0", "standardize=false", "lr_decay=none"];
    let result = train(data.clone(), &run, &set);
    let settings: toml::Table =
        config::read(&std::fs::read_to_string(run.join("config.toml")).unwrap(), "c").unwrap().settings;
    let mut fit = Fit::new("album").unwrap().steps(20).seed(0);
    for (key, value) in settings {
        fit = fit.set(&key, value).unwrap();
    }
    let fitted = fit.run(&Source::of(data).read().unwrap().dataset).unwrap();
    assert_eq!(fitted.weights_sha256(), result.weights_sha256);
}

#[test]
fn a_learned_policy_is_held_against_the_exact_optimum_of_its_data() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let overrides = Overrides {
        problem: Some("mudworld-8-eps-greedy".parse().unwrap()),
        set: ["steps=4000", "hidden=[64,64]", "eval_episodes=5"].map(str::to_owned).to_vec(),
        ..Overrides::default()
    };
    let config = config::resolve(&overrides).unwrap().config;
    let begun = Run::begin(config, &run, false, &Resources::default()).unwrap();
    let result = begun.train(StopFlag::new(), &mut |_| {}).unwrap().result;
    assert_eq!(result.evaluations.last().unwrap().episodes, 5);
    let exact = Differences::read(&run).unwrap().unwrap().exact.unwrap();
    let short = (exact.mean_v_star - exact.mean_policy_value) / exact.mean_v_star.abs();
    assert!(
        (0.0..0.05).contains(&(short + 1e-9)),
        "{short}: {} {}",
        exact.mean_v_star,
        exact.mean_policy_value
    );
    let log = std::fs::read_to_string(run.join("train.csv")).unwrap();
    assert!(log.lines().next().unwrap().contains("training/exact/q_error"));
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("exact value of the policy beside that of the best one in the data"));
}

/// One walk in thousands gets through the corridor; the others give up at once. Values and policy are those of the best
/// path all the same: with the sampling and the coefficients of the paper, V falls to 0.
#[test]
fn a_rare_reward_holds_the_values_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("corridor.csv");
    let mut csv = String::from("episode,step,obs,next_obs,action,reward,terminal,timeout\n");
    for walk in 0..3000 {
        csv += &format!("{walk},0,{},9,0,0,1,0\n", walk % 6);
    }
    for step in 0..6 {
        let last = u8::from(step == 5);
        csv += &format!("3000,{step},{step},{},1,{last},{last},0\n", step + 1);
    }
    std::fs::write(&file, csv).unwrap();
    let exact = |name: &str, set: &[&str]| {
        let out = folder.path().join(name);
        let small = ["steps=2500", "hidden=[64,64]", "batch_size=64", "holdout=0"];
        let source = Source { actions: Some(ActionKind::Discrete), ..Source::of(&file) };
        train_on(source, &out, &[&small, set].concat());
        Differences::read(&out).unwrap().unwrap().exact.unwrap()
    };
    let held_up = exact("held-up", &[]);
    assert!((held_up.mean_policy_value - held_up.mean_v_star).abs() < 1e-9, "{held_up:?}");
    assert!(held_up.v.iter().all(|[exact, learned]| (exact - learned).abs() < 0.1), "{held_up:?}");
    let fallen = exact("fallen", &["sampling=transitions", "omega_q=0.1", "omega_v=0.05"]);
    assert!(fallen.v.iter().all(|[_, learned]| learned.abs() < 0.2), "{fallen:?}");
}

#[test]
fn one_action_leaves_nothing_to_choose() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("valve.csv"), folder.path().join("run"));
    let mut csv = String::from("episode,step,obs,action,reward,terminal,timeout\n");
    for row in 0..20 {
        csv += &format!("{},{},{row},0,{},{},0\n", row / 5, row % 5, row % 3, u8::from(row % 5 == 4));
    }
    std::fs::write(&file, csv).unwrap();
    let source = Source { actions: Some(ActionKind::Discrete), ..Source::of(&file) };
    let overrides = Overrides { data: Some(source), ..Overrides::default() };
    let config = config::resolve(&overrides).unwrap().config;
    let error = Run::begin(config, &out, false, &Resources::default()).unwrap_err().to_string();
    assert!(error.contains("valve: found the same action in all 20 transitions"), "{error}");
    assert!(!out.exists());
}

/// Agents with hinges warn where equal states and actions led to different states; others have no reason to.
#[test]
fn chance_is_warned_of_before_training() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lake.csv");
    let warned = |agent: &str, slips: bool| {
        let mut csv = String::from("episode,step,obs,next_obs,action,reward,terminal,timeout\n");
        for walk in 0..40 {
            let to = if slips { walk % 2 } else { 1 };
            csv += &format!("{walk},0,5,{to},{},0,0,0\n{walk},1,{to},9,0,1,1,0\n", walk / 20);
        }
        std::fs::write(&file, csv).unwrap();
        let source = Source { actions: Some(ActionKind::Discrete), ..Source::of(&file) };
        let overrides = Overrides { data: Some(source), agent: Some(agent.into()), ..Overrides::default() };
        let config = config::resolve(&overrides).unwrap().config;
        let out = folder.path().join(format!("{agent}-{slips}"));
        let run = Run::begin(config, &out, false, &Resources::default()).unwrap();
        run.warnings().iter().any(|warning| warning.contains("best recorded outcome"))
    };
    assert!(warned("album", true) && warned("hinge-iql", true));
    assert!(!warned("album", false) && !warned("iql", true) && !warned("bc", true));
}

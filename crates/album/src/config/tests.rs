use super::*;
use album_agents::{Common, agents::album};

fn album(config: &RunConfig) -> album::Config {
    config.settings.clone().try_into().unwrap()
}

fn given(pairs: &[&str]) -> Overrides {
    Overrides { set: pairs.iter().map(|&pair| pair.to_owned()).collect(), ..Overrides::default() }
}

fn set(pairs: &[&str]) -> Result<RunConfig, Error> {
    resolve(&given(pairs)).map(|resolved| resolved.config)
}

/// A file that sets everything, combined with these options.
fn with_file(overrides: Overrides) -> Resolved {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    let text = "task = \"pointmaze-giant-navigate-singletask-task4-v0\"\nagent = \"album\"\nseed = 5\n\
                data = \"a.npz\"\n[train]\nsteps = 70\n[album]\nk = 7\nalpha_bc = 1\n";
    std::fs::write(&file, text).unwrap();
    resolve(&Overrides { file: Some(file), ..overrides }).unwrap()
}

#[test]
fn a_file_is_over_the_preset() {
    let Resolved { config, overridden, .. } = with_file(given(&["album.alpha_bc=0.5"]));
    let settings = album(&config);
    assert_eq!((settings.critic.k, settings.alpha_bc), (7, 0.5));
    assert_eq!(settings.common.hidden, [128, 128]); // from the preset
    assert_eq!(settings.critic.coefficients.lambda_b, 2.5); // the default value
    assert_eq!(
        (config.problem.to_string(), config.seed, config.train.steps),
        ("pointmaze-giant-navigate-singletask-task4-v0".into(), 5, 70)
    );
    assert_eq!(overridden.len(), 1);
    assert!(overridden[0].contains("album.alpha_bc = 0.5 (--set album.alpha_bc=0.5) instead of 1.0"));
}

#[test]
fn options_are_over_the_file_and_pairs_over_options() {
    let train = toml::Table::from_iter([("steps".to_owned(), toml::Value::Integer(80))]);
    let Resolved { config, overridden, .. } = with_file(Overrides {
        problem: Some("pointmaze-medium-navigate-singletask-task1-v0".parse().unwrap()),
        seed: Some(6),
        data: Some(Source::of("b.npz")),
        train,
        ..given(&["steps=90"])
    });
    assert_eq!(config.problem.to_string(), "pointmaze-medium-navigate-singletask-task1-v0");
    assert_eq!((config.seed, config.train.steps, config.data), (6, 90, Some("b.npz".into())));
    for line in ["task = ", "seed = 6 (command line) instead of 5", "steps = 80", "steps = 90", "data = "] {
        assert!(overridden.iter().any(|found| found.contains(line)), "{line}: {overridden:?}");
    }
    assert_eq!(overridden.len(), 5);
}

#[test]
fn another_agent_leaves_the_files_hyperparameters() {
    let Resolved { config, overridden, .. } =
        with_file(Overrides { agent: Some("bc".into()), ..Overrides::default() });
    assert_eq!((config.agent.as_str(), config.train.steps), ("bc", 70));
    assert!(overridden.iter().any(|line| line.contains("[album]")), "{overridden:?}");
}

#[test]
fn the_paper_preset_is_the_papers() {
    let paper = Overrides { preset: Some(Preset::Paper), ..Overrides::default() };
    let c = resolve(&paper).unwrap().config;
    assert_eq!(album(&c), album::Config::default());
    assert_eq!(c.train, TrainConfig::default());
    let cube = Some("cube-single-play-singletask-task2-v0".parse().unwrap());
    let c = resolve(&Overrides { problem: cube, ..Overrides::default() }).unwrap().config;
    assert_eq!(album(&c).alpha_bc, 0.3);
}

#[test]
fn short_keys_bare_words_and_integers_are_understood() {
    let c = set(&["steps=10", "squash=clip", "hidden=[8]", "gamma=0.5", "reward_scale=2", "kstep_tail=drop"])
        .unwrap();
    let Common { hidden, reward_scale, .. } = album(&c).common;
    assert_eq!((c.train.steps, album(&c).squash), (10, album::Squash::Clip));
    assert_eq!((hidden, reward_scale), (vec![8], 2.0));
}

#[test]
fn mistakes_are_named() {
    let message = |pairs: &[&str]| set(pairs).unwrap_err().to_string();
    assert!(message(&["lamda_b=1"]).contains("unknown key `lamda_b`; did you mean `lambda_b`"));
    assert!(message(&["album.kk=1"]).contains("unknown key `kk`"));
    assert!(message(&["albun.k=1"]).contains("unknown key `albun`; did you mean `album`?"));
    assert!(message(&["k"]).contains("expected key=value"));
    assert!(message(&["gamma=1.5"]).contains("gamma = 1.5; expected a number between 0 and 1"));
    assert!(message(&["k=0"]).contains("k = 0; expected at least 1"));
    assert!(message(&["k=-1"]).contains("k = -1"));
    assert!(message(&["squash=relu"]).contains("squash = \"relu\""));
    assert_eq!(
        message(&["hidden=128"]),
        "--set hidden=128: hidden = 128; expected an array such as [128, 128]"
    );
    assert!(message(&["k=2.5"]).contains("k = 2.5; expected an integer such as 10"));
}

#[test]
fn a_written_configuration_reads_back() {
    let c = set(&["k=5"]).unwrap();
    assert_eq!(read(&c.to_toml().unwrap(), "c").unwrap(), c);
}

#[test]
fn a_run_too_short_for_its_target_network_is_noticed() {
    let unsettled = |agent: &str, pairs: &[&str]| {
        let problem = Some("cube-single-play-singletask-v0".parse().unwrap());
        let overrides = Overrides { problem, agent: Some(agent.into()), ..given(pairs) };
        resolve(&overrides).unwrap().config.unsettled().unwrap()
    };
    // tau = 0.005 and gamma = 0.99, and ReBRAC moves its target at every other step.
    assert_eq!(unsettled("fql", &["steps=59_000"]), Some(60_000));
    assert_eq!(unsettled("rebrac", &["steps=119_000"]), Some(120_000));
    assert_eq!(unsettled("rebrac", &["steps=121_000"]), None);
    assert_eq!(unsettled("fql", &["steps=59_000", "target_network=false"]), None);
    assert_eq!(unsettled("album", &["steps=100"]), None);
    // The presets of PointMaze have fast targets.
    let pointmaze = Overrides { agent: Some("iql".into()), ..Overrides::default() };
    assert_eq!(resolve(&pointmaze).unwrap().config.unsettled().unwrap(), None);
}

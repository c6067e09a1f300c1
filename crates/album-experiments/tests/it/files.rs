//! The files of `experiments/` against the published tables: every published number has its run.
#![allow(clippy::unwrap_used)]

use album_experiments::published::Published;
use album_experiments::{Experiment, ExperimentError, Scale, names};
use std::collections::BTreeSet;

fn sorted(setting: &str) -> BTreeSet<&str> {
    setting.split(';').filter(|pair| !pair.is_empty()).collect()
}

#[test]
fn every_published_number_has_its_cell() {
    let published = Published::load().unwrap();
    for name in names() {
        let experiment = Experiment::find(name).unwrap();
        let specs = experiment.specs(Scale::Paper).unwrap();
        let Some(table) = &experiment.published else { continue };
        if specs.is_empty() {
            continue;
        }
        let arms: BTreeSet<(String, String, usize)> = specs
            .iter()
            .map(|s| {
                let environment = s.task.dataset_name().trim_end_matches("-v0").to_owned();
                (experiment.variants[s.variant].method.clone(), environment, s.task.task())
            })
            .collect();
        for row in published.rows(table).unwrap() {
            let known = experiment
                .variants
                .iter()
                .any(|v| v.method == row.method && sorted(&v.published_setting()) == sorted(&row.setting));
            assert!(known, "{name}: no variant for {} {}", row.method, row.setting);
            if row.environment == "average" {
                continue;
            }
            let in_the_grid =
                |task: usize| arms.contains(&(row.method.clone(), row.environment.clone(), task));
            match row.task.as_str() {
                "average" => assert!((1..=5).all(in_the_grid), "{name}: {row:?}"),
                task => assert!(in_the_grid(task.parse().unwrap()), "{name}: {row:?}"),
            }
        }
    }
}

#[test]
fn seeds_and_protocols_are_the_papers() {
    let published = Published::load().unwrap();
    for name in names().filter(|name| *name != "hinge-iql") {
        let experiment = Experiment::find(name).unwrap();
        let (Some(table), false) = (&experiment.published, experiment.paper.tasks.is_empty()) else {
            continue;
        };
        let specs = experiment.specs(Scale::Paper).unwrap();
        // Baselines from other papers have their own numbers of seeds; what this paper measured has its own.
        for row in published.rows(table).unwrap().iter().filter(|row| row.is_score()) {
            let Some(expected) = row.seeds.filter(|_| row.source == "album" || name == "chunking") else {
                continue;
            };
            let same = |variant: &&album_experiments::Variant| {
                variant.method == row.method && sorted(&variant.published_setting()) == sorted(&row.setting)
            };
            let place = experiment.variants.iter().position(|variant| same(&variant)).unwrap();
            let seeds: BTreeSet<u64> = specs.iter().filter(|s| s.variant == place).map(|s| s.seed).collect();
            assert_eq!(seeds.len(), expected as usize, "{name}: {row:?}");
        }
    }
    assert_eq!(Experiment::find("main").unwrap().specs(Scale::Paper).unwrap().len(), 11 * 50 * 8);
    // The baselines of `chunking` were evaluated with 150 episodes, ALBUM with 50.
    for spec in Experiment::find("chunking").unwrap().specs(Scale::Paper).unwrap() {
        let episodes = spec.set.iter().rev().find_map(|pair| pair.strip_prefix("eval_episodes="));
        assert_eq!(episodes, Some(if spec.agent == "album" { "50" } else { "150" }));
    }
}

/// A run that several variants share counts once everywhere.
#[test]
fn runs_are_counted_once() {
    for (name, runs) in [("steps-3m", 80), ("critic", 80), ("main", 4400), ("cost", 1), ("ifql-album", 240)] {
        assert_eq!(Experiment::find(name).unwrap().run_count(Scale::Paper).unwrap(), runs, "{name}");
    }
}

#[test]
fn an_experiment_needs_tasks_seeds_and_an_agent_only() {
    let text =
        "[small]\nseeds = 3\ntasks = { pointmaze-medium-navigate = [1] }\n[[variant]]\nagent = \"album\"\n";
    let mine = Experiment::parse("mine", text, "mine.toml").unwrap();
    let variant = &mine.variants[0];
    assert_eq!((mine.title.as_str(), variant.label.as_str(), variant.method.as_str()), ("mine", "album", ""));
    assert_eq!(mine.specs(Scale::Small).unwrap().len(), 3);
    let wrong = text.to_owned() + "baseline = \"IQL\"\n[[variant]]\nagent = \"iql\"\n";
    let message = Experiment::parse("mine", &wrong, "mine.toml").unwrap_err().to_string();
    assert!(message.contains("baseline `IQL`, expected the label of another variant"), "{message}");
}

#[test]
fn mistakes_are_named() {
    let Err(ExperimentError::Unknown { hint, .. }) = Experiment::find("k-swep") else { panic!() };
    assert!(hint.contains("k-sweep"), "{hint}");
    let text = include_str!("../../experiments/k-sweep.toml");
    let message = |text: &str| Experiment::parse("x", text, "x.toml").unwrap_err().to_string();
    assert!(message(&text.replace("seeds = 8", "sedes = 8")).contains("unknown field `sedes`"));
    assert!(message(&text.replace("scene-play = [2]", "scene-play = [6]")).contains("task6"));
    assert!(message(&text.replace("seeds = 8", "seeds = 0")).contains("needs seeds = N"));
    let one_scale = |from: &str, to: &str| {
        let (start, end) = (text.find(from).unwrap(), text.find(to).unwrap());
        format!("{}{}", &text[..start], &text[end..])
    };
    let short = Experiment::parse("x", &one_scale("[paper]", "[small]"), "x.toml").unwrap();
    assert_eq!(short.specs(Scale::Small).unwrap().len(), 3 * 5);
    assert!(short.specs(Scale::Paper).unwrap_err().to_string().contains("no [paper]; choose --scale small"));
    assert!(message(&one_scale("[paper]", "[[variant]]")).contains("nothing to run"));
    assert!(message(&one_scale("[paper.tasks]", "[small]")).contains("[paper] needs either tasks or"));
    let main = Experiment::find("main").unwrap();
    let wanted = album_experiments::Selection { tasks: vec!["walker".into()], ..Default::default() };
    let other = main.select(Scale::Paper, &wanted).unwrap_err().to_string();
    assert_eq!(other.matches(" cube-single-play,").count(), 1, "{other}");
    assert!(message(&text.replace("seeds = 5", "seeds = 9223372036854775807")).contains("10000 at most"));
    assert!(message(&text.replace("scene-play = [2]", "scene-play = []")).contains("no task of scene-play"));
    assert!(message(&text.replace("\"K = 10\"", "\"K = 5\"")).contains("two variants are called `K = 5`"));
    let other = message(&text.replace("published = \"k-sweep\"", "published = \"k-swep\""));
    assert!(other.contains("no published table `k-swep`; did you mean `k-sweep`?"), "{other}");
    let other = message(&text.replace("\"steps_to_half_success\"", "\"sucess\""));
    assert!(other.contains("no metric `sucess`; did you mean `success`?"), "{other}");
    assert!(message("title = 1").starts_with("x.toml: "));
    assert!(matches!(Experiment::find("no/such.toml"), Err(ExperimentError::Io { .. })));
}

/// Experiments that are not built in are files like any user's.
#[test]
fn those_of_a_short_budget_are_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/short");
    let mut runs = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let experiment = Experiment::find(path.to_str().unwrap()).unwrap();
        assert_eq!(experiment.argument, path.to_str().unwrap());
        let scale = if experiment.small.seeds > 0 { Scale::Small } else { Scale::Paper };
        runs.push((experiment.name.clone(), experiment.specs(scale).unwrap().len()));
    }
    runs.sort();
    // Two variants of the second share a run: the agent's values and its data's.
    let expected = [("cube-single", 6), ("manipulation", 2 * 4), ("open-points", 4 * 2 * 3)];
    assert_eq!(runs, expected.map(|(name, runs)| (name.to_owned(), runs)));
}

//! Plans, their results folder, and the cost of reading its status.
#![allow(clippy::unwrap_used)]

use album::RunConfig;
use album_experiments::job::Job;
use album_experiments::{
    Command, Experiment, Plan, PlannedRun, Request, Results, Scale, Selection, State, Status, Work, names,
};
use std::time::Duration;

/// What this thread has used so far: other tests use the same processors, and the wall clock would count them.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn plan(name: &str, scale: Scale) -> Plan {
    Plan::new(Experiment::find(name).unwrap(), scale, &Selection::default()).unwrap()
}

/// The paper's largest plan, with runs in every state: waiting, finished, interrupted, failed.
#[test]
fn the_status_of_thousands_of_runs_takes_milliseconds() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::at(folder.path()).unwrap();
    results.create().unwrap();
    let plan = plan("main", Scale::Paper);
    assert_eq!(plan.runs.len(), 4400);
    for (k, run) in plan.runs.iter().enumerate() {
        let path = results.run(&run.id);
        if k < 4000 {
            std::fs::create_dir(&path).unwrap();
            // Logs of a long run, which must not be read completely.
            if k % 100 == 0 {
                let lines: String = (1..2000).map(|n| format!("{},{n}\n", n as f64 / 50.0)).collect();
                std::fs::write(path.join("timing.csv"), format!("seconds,step\n{lines}")).unwrap();
            }
        }
        match k {
            0..3980 => results.mark_finished(&run.id).unwrap(),
            3980..4000 => std::fs::write(path.join("config.toml"), "").unwrap(),
            4000..4010 => {
                let note = album_experiments::FailureNote { code: Some(4), message: "a NaN".into() };
                results.fail(&run.id, &note).unwrap();
            }
            _ => {}
        }
    }
    let read = || {
        let start = processor_time();
        let text = Status::read(&plan, &results).text();
        (processor_time() - start, text)
    };
    let (_, text) = read();
    assert!(
        text.starts_with("main-paper: 4,400 runs, 3,980 finished, 20 interrupted, 10 failed, 390 waiting"),
        "{}",
        text.lines().next().unwrap()
    );
    // The fastest of several, because the first ones fill caches.
    let quickest = (0..20).map(|_| read().0).min().unwrap();
    assert!(quickest < Duration::from_millis(50), "{quickest:?}");
}

#[test]
fn a_run_that_another_command_finished_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::at(folder.path()).unwrap();
    results.create().unwrap();
    let plan = plan("k-sweep", Scale::Small);
    let fake = crate::common::Fake::default();
    fake.write(&results.run(&plan.runs[0].id));
    let listing = results.list();
    assert!(matches!(listing.state(&plan.runs[0]), State::Finished));
    assert!(matches!(listing.state(&plan.runs[1]), State::Waiting));
    // The mark of a run whose directory was removed is ignored.
    results.mark_finished(&plan.runs[1].id).unwrap();
    assert!(matches!(results.list().state(&plan.runs[1]), State::Waiting));
}

/// `--list` and a dry run agree.
#[test]
fn counts_are_those_of_the_plans() {
    for name in names() {
        let runs = plan(name, Scale::Small).runs.len();
        assert_eq!(Experiment::find(name).unwrap().run_count(Scale::Small).unwrap(), runs, "{name}");
    }
    for name in ["steps-3m", "critic", "chunking"] {
        let runs = plan(name, Scale::Paper).runs.len();
        assert_eq!(Experiment::find(name).unwrap().run_count(Scale::Paper).unwrap(), runs, "{name}");
    }
}

/// A budget does not choose a preset: the networks are the task's unless the file names others.
#[test]
fn scale_and_preset_are_two_things() {
    let text = "[paper]\nseeds = 1\ntasks = { pointmaze-medium-navigate = [1] }\n[paper.set]\nsteps = 30_000\n\
                [[variant]]\nagent = \"album\"\n";
    let hidden = |text: &str| {
        let experiment = Experiment::parse("mine", text, "mine.toml").unwrap();
        let plan = Plan::new(experiment, Scale::Paper, &Selection::default()).unwrap();
        let Work::Train { cell, .. } = &plan.runs[0].work else { panic!() };
        let command = plan.runs[0].command(Some(&plan.specs[0].0));
        (cell.settings["hidden"].to_string(), command.contains("--preset paper"))
    };
    assert_eq!(hidden(text), ("[128, 128]".into(), false));
    let named = text.replace("seeds = 1", "seeds = 1\npreset = \"paper\"");
    assert_eq!(hidden(&named), ("[512, 512, 512, 512]".into(), true));
}

#[test]
fn jobs_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::at(&folder.path().join("results")).unwrap();
    let file = folder.path().join("job.json");
    let run = &plan("lambda-k", Scale::Small).runs[0];
    Job::Run(run.clone()).write(&results, &file).unwrap();
    let (job, read) = Job::read(&file).unwrap();
    assert_eq!(read.folder(), results.folder());
    let (
        Job::Run(PlannedRun { id, work: Work::Train { cell, seed, allow_unbounded } }),
        Work::Train { cell: own, seed: own_seed, .. },
    ) = (job, &run.work)
    else {
        panic!()
    };
    let own = RunConfig { seed: *own_seed, ..RunConfig::clone(own) };
    assert_eq!((&id, cell.as_ref(), seed, allow_unbounded), (&run.id, &own, own.seed, true));

    let run = &plan("tabular", Scale::Small).runs[0];
    Job::Run(run.clone()).write(&results, &file).unwrap();
    let (Job::Run(PlannedRun { work: Work::Command(command), .. }), _) = Job::read(&file).unwrap() else {
        panic!()
    };
    assert_eq!(command, Command::Verify);

    let selection = Selection { seeds: vec![3], ..Selection::default() };
    let request = Request { experiment: "k-sweep".into(), scale: Scale::Small, selection };
    Job::Report(request.clone()).write(&results, &file).unwrap();
    let (Job::Report(read), _) = Job::read(&file).unwrap() else { panic!() };
    assert_eq!(read, request);

    std::fs::write(&file, "{}").unwrap();
    assert!(Job::read(&file).unwrap_err().to_string().contains("not a job of `album reproduce`"));
}

/// Only commands in the file format can be run.
#[test]
fn commands_are_an_allow_list() {
    let message = |command: &str| {
        let text = format!("[small]\ncommand = {command}\n");
        Experiment::parse("mine", &text, "mine.toml").unwrap_err().to_string()
    };
    assert!(message("\"rm\"").contains("expected `cost` or `verify`"), "{}", message("\"rm\""));
    assert!(message("{ cost = { rounds = 1, shell = \"ls\" } }").contains("unknown field `shell`"));
}

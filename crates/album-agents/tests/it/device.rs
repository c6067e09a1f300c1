//! Updates on a device: with the data there, and of several seeds together.

use crate::support::{agent, data, device, discrete_data, train};
use album_agents::{Agent, AgentKind, AgentState, Learner};
use album_data::{Dataset, Sampler, Segments};
use album_nn::Pool;
use album_xla::Group;

/// What batches give, each used by one of these: windows, encoded states, next actions, chunks, choices.
const CASES: [(&str, &str, bool); 5] = [
    ("album", "", false),
    ("album", "standardize = true\nfourier_features = 4", false),
    ("rebrac", "", false),
    ("dqc", "", false),
    ("iql", "", true),
];

fn some_data(discrete: bool) -> Dataset {
    if discrete { discrete_data(4, 12, 3) } else { data(4, 12) }
}

#[test]
fn data_on_the_device_changes_no_bit() {
    let Some(device) = device() else { return };
    for (name, settings, discrete) in CASES {
        let data = some_data(discrete);
        let states = [false, true].map(|on_device| {
            let mut learner = agent(name, &format!("batch_size = 16\n{settings}"), &data, 10);
            learner.move_to(&device);
            if on_device {
                learner.lend(&data).unwrap();
            }
            train(&mut learner, &data, 3);
            assert!(learner.failure().is_none(), "{name}: {:?}", learner.failure());
            learner.state()
        });
        assert_eq!(states[0], states[1], "{name} with {settings:?}");
    }
}

/// A part of the episodes has rows that do not follow each other.
#[test]
fn a_part_of_the_data_can_be_on_the_device() {
    let Some(device) = device() else { return };
    let (data, _) = data(6, 9).hold_out(0.5, 1).unwrap();
    let states = [false, true].map(|on_device| {
        let mut learner = agent("album", "batch_size = 16", &data, 10);
        learner.move_to(&device);
        if on_device {
            learner.lend(&data).unwrap();
        }
        train(&mut learner, &data, 2);
        learner.state()
    });
    assert_eq!(states[0], states[1]);
}

fn learner_of(seed: u64, data: &Dataset) -> Learner {
    let kind = AgentKind::find("album").unwrap();
    let mut table = kind.defaults().unwrap();
    let settings = "hidden = [16, 16]\nbatch_size = 16\nfourier_features = 4";
    table.extend(settings.parse::<toml::Table>().unwrap());
    Learner::new(kind.setup(&table).unwrap().as_ref(), data, 50, seed, &Pool::new(1)).unwrap()
}

/// Fifty updates with the seed's own batches, as a run makes them.
fn updates(mut learner: Learner, seed: u64, data: &Dataset) -> AgentState {
    let segments = Segments::new(learner.segments()).unwrap();
    let mut batch = segments.batch(data, learner.batch_size());
    for step in 0..50 {
        Sampler::new(seed, data.len()).fill(step, batch.indices_mut());
        segments.gather(data, &mut batch);
        assert!(learner.update(&batch, step, None).is_finite(), "{:?}", learner.failure());
    }
    learner.state()
}

#[test]
fn eight_seeds_together_learn_what_eight_learn_alone() {
    let Some(device) = device() else { return };
    let data = data(4, 12);
    let group = Group::new(&device, 8);
    let mut learners: Vec<Learner> = (0..8).map(|seed| learner_of(seed, &data)).collect();
    for learner in &mut learners {
        learner.join(&group).unwrap();
        learner.lend(&data).unwrap();
    }
    let together: Vec<AgentState> = std::thread::scope(|scope| {
        let start = |(seed, learner)| {
            let data = &data;
            scope.spawn(move || updates(learner, seed, data))
        };
        let threads: Vec<_> = (0..8).zip(learners).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (seed, together) in (0..8).zip(&together) {
        let mut learner = learner_of(seed, &data);
        learner.move_to(&device);
        let alone = updates(learner, seed, &data);
        for (a, b) in together.networks.iter().zip(&alone.networks) {
            assert_eq!((&a.name, a.steps), (&b.name, b.steps));
            for (a, b) in a.weights.iter().zip(&b.weights) {
                for (x, y) in a.data.iter().zip(&b.data) {
                    assert!(
                        (x - y).abs() < 1e-4 * y.abs().max(1.0),
                        "seed {seed}, {}: {x} against {y}",
                        a.name
                    );
                }
            }
        }
    }
    assert_ne!(together[0].networks[0].weights, together[1].networks[0].weights);
}

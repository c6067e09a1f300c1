//! `cargo xtask storm`: album under every interruption that a machine may cause, repeatedly, with its final
//! states compared byte for byte with those of undisturbed runs.
//!
//! ```text
//! world.rs     what runs: agents, environments, imports, pages, off-policy evaluation, Python
//! trouble.rs   what happens to it: kills, signals, full disks, failing streams, second processes, clocks that jump
//! ```

mod trouble;
mod world;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::{cargo, run, target};
use trouble::{Outcome, TROUBLES, Tools, Trouble};
pub use world::{State, World, all as worlds};

/// The counts, in the storm's folder.
const RECORD: &str = "storm.json";

/// A round that does not finish within this many tries is a finding, too.
const MOST_TRIES: usize = 400;

/// The storm ends after this many findings.
const MOST_FINDINGS: usize = 10;

struct Options {
    kills: u64,
    seed: u64,
    only: Option<String>,
    without: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Options { kills: 60, seed: 0, only: None, without: vec![] };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let value = args.next().ok_or_else(|| format!("{arg}: expected a value behind it"))?;
            let number = || value.parse().map_err(|_| format!("{arg} {value}: expected a whole number"));
            match arg.as_str() {
                "--kills" => options.kills = number()?,
                "--seed" => options.seed = number()?,
                "--only" => options.only = Some(value.clone()),
                "--without" => options.without.push(value.clone()),
                _ => return Err(format!("{arg}: expected --kills, --seed, --only or --without")),
            }
        }
        Ok(options)
    }
}

/// Random numbers that are reproducible from a seed.
pub struct Random(u64);

impl Random {
    /// A random number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n.max(1)
    }
}

/// The undisturbed final state of a world, and the time it takes.
struct Calm {
    state: State,
    milliseconds: u64,
}

/// Statistics of a storm.
#[derive(Default)]
struct Totals {
    rounds: u64,
    interruptions: BTreeMap<String, u64>,
    by_world: BTreeMap<String, u64>,
    findings: Vec<String>,
}

pub fn run_task(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let start = Instant::now();
    let album = program()?;
    let folder = target().join("storm").join(options.seed.to_string());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let tools = Tools::look(&folder, &options.without);
    let (mut worlds, mut skipped) = world::all(&folder, &album)?;
    skipped.extend(tools.missing());
    if let Some(only) = &options.only {
        worlds.retain(|world| world.name.contains(only.as_str()));
    }
    if worlds.is_empty() {
        return Err("storm: nothing of that name can be run here".into());
    }
    let mut totals = Totals::default();
    let mut random = Random(options.seed);
    let mut worlds: Vec<(World, Option<Calm>)> = worlds.into_iter().map(|world| (world, None)).collect();
    let first = random.below(worlds.len() as u64) as usize;
    // Round after round over all worlds, so that a short storm covers everything.
    for round in 0.. {
        if totals.interruptions.values().sum::<u64>() >= options.kills
            || totals.findings.len() >= MOST_FINDINGS
        {
            break;
        }
        let count = worlds.len();
        let (world, calm) = &mut worlds[(first + round) % count];
        let calm = match calm {
            Some(calm) => &*calm,
            None => calm.insert(undisturbed(world, &folder)?),
        };
        let place = folder.join(format!("{}-{round}", world.name));
        let before = totals.interruptions.values().sum::<u64>();
        if let Err(finding) = storm(world, calm, &place, &tools, &mut random, &mut totals) {
            let finding = format!("{} in {}: {finding}", world.name, place.display());
            eprintln!("FOUND {finding}");
            totals.findings.push(finding);
        } else {
            let _ = fs::remove_dir_all(&place);
        }
        totals.rounds += 1;
        let more = totals.interruptions.values().sum::<u64>() - before;
        *totals.by_world.entry(world.name.clone()).or_default() += more;
        // After every round, so that a storm that is ended early still counts.
        write_record(&folder, &options, &totals, &skipped, start)?;
    }
    skipped.iter().for_each(|reason| eprintln!("SKIPPED {reason}"));
    report(&options, &totals, &worlds, start, &folder)
}

/// The program: `ALBUM_BINARY`, or the one built by the workspace.
pub fn program() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("ALBUM_BINARY") {
        return std::path::absolute(&named).map_err(|e| format!("ALBUM_BINARY: {e}"));
    }
    run("build", cargo(&["build", "--package", "album-cli"]))?;
    Ok(target().join("debug/album"))
}

fn undisturbed(world: &World, folder: &Path) -> Result<Calm, String> {
    let place = folder.join(format!("{}-undisturbed", world.name));
    world.prepare(&place)?;
    // The second run counts: the first may create what later ones share.
    let _ = world.begin(&place).output();
    fs::remove_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    world.prepare(&place)?;
    let start = Instant::now();
    let output = world.begin(&place).output().map_err(|e| format!("{}: {e}", world.name))?;
    let milliseconds = start.elapsed().as_millis() as u64;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{} fails without any trouble ({}): {said}", world.name, output.status));
    }
    Ok(Calm { state: world.state(&place)?, milliseconds })
}

/// One disturbed run from start to end, compared with an undisturbed one.
fn storm(
    world: &World,
    calm: &Calm,
    place: &Path,
    tools: &Tools,
    random: &mut Random,
    totals: &mut Totals,
) -> Result<(), String> {
    let mounted = tools.place(place, random)?;
    world.prepare(place)?;
    for _ in 0..MOST_TRIES {
        let mut trouble = TROUBLES[random.below(TROUBLES.len() as u64) as usize];
        if world.name == "worker" && random.below(4) == 0 {
            trouble = Trouble::WorkerKill;
        }
        let name = trouble.name().to_owned();
        match tools.disturb(trouble, world, (place, &mounted), calm.milliseconds, random)? {
            Some(Outcome::Finished { disturbed }) => {
                *totals.interruptions.entry(name).or_default() += u64::from(disturbed);
                return world.same(&calm.state, place);
            }
            Some(Outcome::Interrupted) => {
                *totals.interruptions.entry(name).or_default() += 1;
                world.whole(&calm.state, place)?;
            }
            None => {} // not possible here
        }
    }
    Err(format!("it did not come to an end in {MOST_TRIES} tries"))
}

fn report(
    options: &Options,
    totals: &Totals,
    worlds: &[(World, Option<Calm>)],
    start: Instant,
    folder: &Path,
) -> Result<(), String> {
    eprintln!(
        "== storm, seed {}: {} interruptions in {} runs over {} of {} worlds, {} differences, {:.0} s",
        options.seed,
        totals.interruptions.values().sum::<u64>(),
        totals.rounds,
        worlds.iter().filter(|(_, calm)| calm.is_some()).count(),
        worlds.len(),
        totals.findings.len(),
        start.elapsed().as_secs_f64(),
    );
    totals.interruptions.iter().for_each(|(name, count)| eprintln!("{count:>7}  {name}"));
    eprintln!("record   {}", folder.join(RECORD).display());
    match totals.findings.is_empty() {
        true => Ok(()),
        false => Err(format!("storm: {}", totals.findings.join("\n"))),
    }
}

fn write_record(
    folder: &Path,
    options: &Options,
    totals: &Totals,
    skipped: &[String],
    start: Instant,
) -> Result<(), String> {
    let quoted =
        |texts: &[String]| texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ");
    let counts = |counts: &BTreeMap<String, u64>| {
        counts.iter().map(|(name, n)| format!("{name:?}: {n}")).collect::<Vec<_>>().join(", ")
    };
    let json = format!(
        "{{\"seed\": {}, \"seconds\": {:.0}, \"runs\": {}, \"interruptions\": {}, \"by_kind\": {{{}}}, \
         \"by_world\": {{{}}}, \"skipped\": [{}], \"differences\": [{}]}}\n",
        options.seed,
        start.elapsed().as_secs_f64(),
        totals.rounds,
        totals.interruptions.values().sum::<u64>(),
        counts(&totals.interruptions),
        counts(&totals.by_world),
        quoted(skipped),
        quoted(&totals.findings)
    );
    let path = folder.join(RECORD);
    fs::write(&path, json).map_err(|e| format!("{}: {e}", path.display()))
}

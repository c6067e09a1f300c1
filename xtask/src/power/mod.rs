//! `cargo xtask power`: simulates a power failure at any moment of a run, an import and a report; from every
//! possible state of the disk, the same command must reach the same result.
//!
//! ```text
//! record.rs   what a program does to its files, by strace
//! disk.rs     the states in which a disk may be left
//! ```

mod disk;
mod record;

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::storm::{self, World};
use crate::{answers, target};
use disk::Tree;

/// The worlds whose writes are recorded: checkpoints, an import, a page.
const WORLDS: [&str; 3] = ["power-train", "import", "report"];

pub fn run_task(args: &[String]) -> Result<(), String> {
    let mut most = 300;
    match args {
        [] => {}
        [option, value] if option == "--states" => {
            most = value.parse().map_err(|_| format!("--states {value}: expected a whole number"))?;
        }
        _ => return Err("power: expected --states N, the most to try of each command (default 300)".into()),
    }
    if !answers("strace", &["-V"]) {
        eprintln!("SKIPPED power: there is no strace (Debian: strace)");
        return Ok(());
    }
    let folder = target().join("power");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (worlds, _) = storm::worlds(&folder, &storm::program()?)?;
    let (mut lines, mut lost) = (Vec::new(), 0);
    for name in WORLDS {
        let world =
            worlds.iter().find(|world| world.name == name).ok_or_else(|| format!("power: no {name}"))?;
        let found = lose(world, &folder, most)?;
        lines.push(found.record);
        lost += found.states;
    }
    let record = folder.join("power.json");
    fs::write(&record, format!("[{}]\n", lines.join(",\n "))).map_err(|e| e.to_string())?;
    eprintln!("record   {}", record.display());
    if lost == 0 { Ok(()) } else { Err(format!("power: {lost} states from which the end was not reached")) }
}

/// Records one command and repeats it from every state.
fn lose(world: &World, folder: &Path, most: usize) -> Result<Lost, String> {
    let start = Instant::now();
    let place = folder.join("place");
    let _ = fs::remove_dir_all(&place);
    world.prepare(&place)?;
    let history = record::record(&world.begin(&place), &place, &folder.join("strace.txt"))?;
    let calm = world.state(&place)?;
    check_model(&history.end(), &place)?;
    let states = history.states();
    // Evenly spread over the whole history, including the first and the last.
    let chosen: Vec<usize> = if states.len() <= most {
        (0..states.len()).collect()
    } else {
        (0..most).map(|i| i * (states.len() - 1) / (most - 1).max(1)).collect()
    };
    // One fault shows in many states: the others are tried all the same.
    let mut lost = 0;
    for &i in &chosen {
        disk::write(&states[i], &place)?;
        if let Err(finding) = recovers(world, &calm, &place) {
            lost += 1;
            let kept = folder.join(format!("{}-{i}", world.name));
            disk::write(&states[i], &kept)?;
            eprintln!("FOUND {}, state {i} (in {}): {finding}", world.name, kept.display());
        }
    }
    let (changes, tried, seconds) = (history.changes.len(), chosen.len(), start.elapsed().as_secs());
    eprintln!(
        "== power: {}: {changes} changes, {} states, {tried} tried, {lost} lost, {seconds} s",
        world.name,
        states.len()
    );
    Ok(Lost {
        states: lost,
        record: format!(
            "{{\"command\": {:?}, \"changes\": {changes}, \"states\": {}, \"tried\": {tried}, \"differences\": {lost}, \"seconds\": {seconds}}}",
            world.name,
            states.len()
        ),
    })
}

/// What was tried of a command.
struct Lost {
    /// States from which the command did not reach its end.
    states: usize,
    /// The counts as JSON.
    record: String,
}

/// The recorded changes must explain the actual files.
fn check_model(end: &Tree, place: &Path) -> Result<(), String> {
    for (path, contents) in end {
        let found = fs::read(place.join(path)).ok();
        if contents.is_some() && *contents != found {
            return Err(format!("power: the recorded changes do not explain {path}"));
        }
    }
    Ok(())
}

/// Nothing that a command completed may be partial, and repeating the command must end as if nothing had
/// happened.
fn recovers(world: &World, calm: &storm::State, place: &Path) -> Result<(), String> {
    world.whole(calm, place)?;
    let output = world.go_on(place).output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    world.same(calm, place)
}

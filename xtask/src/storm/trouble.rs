//! The disturbances of a process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Random;
use super::world::World;

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Size of a separate file system.
const DISK: &str = "size=16m";

/// One kind of disturbance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Kill,
    Term,
    Interrupt,
    Usr1,
    Hangup,
    Pause,
    FileLimit,
    FullDisk,
    ReadOnly,
    FullStreams,
    ClosedStreams,
    Twin,
    Clock,
    WorkerKill,
}

/// All kinds; a kill is the most frequent.
pub const TROUBLES: [Trouble; 20] = [
    Trouble::Kill,
    Trouble::Kill,
    Trouble::Kill,
    Trouble::Kill,
    Trouble::Kill,
    Trouble::Kill,
    Trouble::Kill,
    Trouble::Term,
    Trouble::Term,
    Trouble::Interrupt,
    Trouble::Usr1,
    Trouble::Hangup,
    Trouble::Pause,
    Trouble::FileLimit,
    Trouble::FullDisk,
    Trouble::ReadOnly,
    Trouble::FullStreams,
    Trouble::ClosedStreams,
    Trouble::Twin,
    Trouble::Clock,
];

/// The outcome of a disturbed command.
pub enum Outcome {
    /// The command finished; whether it was disturbed on the way.
    Finished { disturbed: bool },
    /// It ended early and must be repeated.
    Interrupted,
}

impl Trouble {
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Term => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::Usr1 => "SIGUSR1",
            Self::Hangup => "SIGHUP",
            Self::Pause => "stopped and continued",
            Self::FileLimit => "file size limit",
            Self::FullDisk => "full disk",
            Self::ReadOnly => "read-only mount",
            Self::FullStreams => "full standard streams",
            Self::ClosedStreams => "closed standard streams",
            Self::Twin => "second process",
            Self::Clock => "clock jumps",
            Self::WorkerKill => "worker killed",
        }
    }
}

/// The capabilities of this machine.
pub struct Tools {
    /// Whether file systems can be mounted.
    mounts: bool,
    /// A library that makes the clock jump.
    clock: Option<PathBuf>,
    /// Excluded kinds, by parts of their names.
    without: Vec<String>,
    said: PathBuf,
}

/// A separate file system, unmounted on drop.
pub struct Mounted(Option<PathBuf>);

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            let _ = Command::new("umount").arg("--lazy").arg(place).status();
        }
    }
}

impl Tools {
    pub fn look(folder: &Path, without: &[String]) -> Self {
        let place = folder.join("mount");
        let _ = fs::create_dir_all(&place);
        let mounts = mount(&place).is_ok();
        drop(Mounted(mounts.then(|| place.clone())));
        let said = folder.join("said.txt");
        Self { mounts, clock: clock(folder).ok(), without: without.to_vec(), said }
    }

    /// What cannot be tried here.
    pub fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> = self.without.iter().map(|part| format!("{part}: left out")).collect();
        if !self.mounts {
            missing.push(
                "full disks and read-only mounts: nothing can be mounted here (as root, it can)".into(),
            );
        }
        if self.clock.is_none() {
            missing.push("clock jumps: there is no C compiler for the library that makes them".into());
        }
        missing
    }

    /// A place for a run, every other time on its own file system.
    pub fn place(&self, place: &Path, random: &mut Random) -> Result<Mounted, String> {
        fs::create_dir_all(place).map_err(|e| format!("{}: {e}", place.display()))?;
        if self.mounts && random.below(2) == 0 {
            mount(place)?;
            return Ok(Mounted(Some(place.to_path_buf())));
        }
        Ok(Mounted(None))
    }

    /// Runs the command once, with this disturbance.
    pub fn disturb(
        &self,
        trouble: Trouble,
        world: &World,
        (place, mounted): (&Path, &Mounted),
        milliseconds: u64,
        random: &mut Random,
    ) -> Result<Option<Outcome>, String> {
        if self.without.iter().any(|part| trouble.name().contains(part.as_str())) {
            return Ok(None);
        }
        let disk = mounted.0.is_some();
        let mut command = world.go_on(place);
        let said = File::create(&self.said).map_err(|e| e.to_string())?;
        command.stdout(Stdio::null()).stderr(said);
        let moment = Duration::from_millis(random.below(milliseconds * 11 / 10 + 5));
        let end = |child| self.end(child, trouble, world);
        match trouble {
            Trouble::Kill | Trouble::Term | Trouble::Interrupt | Trouble::Usr1 | Trouble::Hangup => {
                let signal = trouble.name().trim_start_matches("SIG");
                let child = start(command)?;
                sleep(moment);
                send(&child, signal);
                end(child).map(Some)
            }
            Trouble::Pause => {
                let child = start(command)?;
                sleep(moment);
                send(&child, "STOP");
                sleep(Duration::from_millis(20));
                send(&child, "CONT");
                end(child).map(Some)
            }
            Trouble::FileLimit => {
                let mut limited = Command::new("bash");
                let limit = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", 1 + random.below(40));
                limited.args(["-c", &limit]).arg(command.get_program()).args(command.get_args());
                limited.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
                limited.stdin(Stdio::null()).stdout(Stdio::null()).current_dir(place);
                limited.stderr(File::create(&self.said).map_err(|e| e.to_string())?);
                end(start(limited)?).map(Some)
            }
            Trouble::FullDisk | Trouble::ReadOnly if !disk => Ok(None),
            Trouble::FullDisk => {
                let filler = place.join(".filler.tmp");
                fill(&filler, random.below(60) * 1024);
                let outcome = end(start(command)?);
                fs::remove_file(&filler).map_err(|e| format!("{}: {e}", filler.display()))?;
                outcome.map(Some)
            }
            Trouble::ReadOnly => {
                remount(place, "ro")?;
                let outcome = end(start(command)?);
                remount(place, "rw")?;
                outcome.map(Some)
            }
            Trouble::FullStreams => {
                let full = || File::options().write(true).open("/dev/full").map_err(|e| e.to_string());
                command.stdout(full()?).stderr(full()?);
                end(start(command)?).map(Some)
            }
            Trouble::ClosedStreams => {
                let (reader, writer) = std::io::pipe().map_err(|e| e.to_string())?;
                command.stdout(writer.try_clone().map_err(|e| e.to_string())?).stderr(writer);
                drop(reader);
                end(start(command)?).map(Some)
            }
            Trouble::Twin if !world.saves() => Ok(None),
            Trouble::Twin => {
                let first = start(command)?;
                sleep(moment);
                let mut second = world.go_on(place);
                second.stdout(Stdio::null()).stderr(Stdio::null());
                let second = wait(start(second)?)?;
                twins(wait(first)?, second).map(Some).map_err(|ends| {
                    format!(
                        "{}: {ends}: {}",
                        trouble.name(),
                        fs::read_to_string(&self.said).unwrap_or_default()
                    )
                })
            }
            Trouble::Clock => {
                let Some(library) = &self.clock else { return Ok(None) };
                let date = ["1970-01-02", "2001-09-09", "2100-01-01"][random.below(3) as usize];
                let touch = ["-exec", "touch", "-d", date, "{}", "+"];
                let _ = Command::new("find").arg(place).args(touch).stderr(Stdio::null()).status();
                command.env("LD_PRELOAD", library);
                end(start(command)?).map(Some)
            }
            Trouble::WorkerKill if world.name != "worker" => Ok(None),
            Trouble::WorkerKill => {
                let child = start(command)?;
                sleep(moment);
                let children = format!("/proc/{0}/task/{0}/children", child.id());
                let children = fs::read_to_string(children).unwrap_or_default();
                if let Some(worker) = children.split_whitespace().next() {
                    let _ = Command::new("kill").args(["-s", "KILL", worker]).stderr(Stdio::null()).status();
                }
                end(child).map(Some)
            }
        }
    }

    /// Waits for the end, and refuses one that no user should see.
    fn end(&self, child: Child, trouble: Trouble, world: &World) -> Result<Outcome, String> {
        let status = wait(child)?;
        let signalled = matches!(
            trouble,
            Trouble::Kill | Trouble::Term | Trouble::Interrupt | Trouble::Usr1 | Trouble::Hangup
        );
        if status.success() {
            // A signal that came too late does not count.
            return Ok(Outcome::Finished { disturbed: !signalled });
        }
        let expected = match (trouble, status.code()) {
            (_, None) => signalled || trouble == Trouble::ClosedStreams,
            _ if !world.is_album() => true,
            (Trouble::Term | Trouble::Interrupt | Trouble::Usr1 | Trouble::Hangup, Some(code)) => code == 75,
            (Trouble::FileLimit | Trouble::FullDisk | Trouble::ReadOnly, Some(code)) => code == 5,
            // A worker killed during its start is not replaced.
            (Trouble::FullStreams | Trouble::ClosedStreams | Trouble::WorkerKill, Some(code)) => code == 5,
            _ => false,
        };
        if expected {
            return Ok(Outcome::Interrupted);
        }
        let said = fs::read_to_string(&self.said).unwrap_or_default();
        Err(format!("{}: {status}: {said}", trouble.name()))
    }
}

/// One of two processes does the work and refuses the other. The first one started is usually the one, but the
/// second may reach the lock before it.
fn twins(first: ExitStatus, second: ExitStatus) -> Result<Outcome, String> {
    let refused = |status: ExitStatus| matches!(status.code(), Some(3 | 5));
    let one_works = first.success() && (second.success() || refused(second));
    if one_works || second.success() && refused(first) {
        Ok(Outcome::Finished { disturbed: true })
    } else {
        Err(format!("the first process ended with {first}, the second with {second}"))
    }
}

fn start(mut command: Command) -> Result<Child, String> {
    command.spawn().map_err(|e| format!("cannot start {command:?}: {e}"))
}

fn send(child: &Child, signal: &str) {
    // Has no effect on a finished process.
    let _ = Command::new("kill").args(["-s", signal, &child.id().to_string()]).stderr(Stdio::null()).status();
}

fn wait(mut child: Child) -> Result<ExitStatus, String> {
    let limit = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(status);
        }
        if Instant::now() > limit {
            let _ = child.kill();
            return Err(format!("the process does not end in {} s", PATIENCE.as_secs()));
        }
        sleep(Duration::from_millis(1));
    }
}

/// Fills a disk except for the given rest.
fn fill(path: &Path, rest: u64) {
    let block = vec![0; 1 << 16];
    if let Ok(mut file) = File::create(path) {
        while std::io::Write::write(&mut file, &block).is_ok_and(|n| n > 0) {}
        let length = file.metadata().map_or(0, |found| found.len());
        let _ = file.set_len(length.saturating_sub(rest));
    }
}

fn mount(place: &Path) -> Result<(), String> {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(place);
    quietly(command)
}

fn remount(place: &Path, how: &str) -> Result<(), String> {
    let mut command = Command::new("mount");
    command.args(["-o", &format!("remount,{how}")]).arg(place);
    quietly(command)
}

fn quietly(mut command: Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(e) => Err(format!("{command:?}: {e}")),
    }
}

/// The wall clock jumps by years between any two reads; the monotonic clock is unaffected.
const JUMPS: &str = r"#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    static unsigned long state = 88172645463325252UL;
    int done = (int)syscall(SYS_clock_gettime, id, t);
    if (done == 0 && id == CLOCK_REALTIME) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        t->tv_sec += (long)(state >> 35) - (1L << 28);
    }
    return done;
}
";

fn clock(folder: &Path) -> Result<PathBuf, String> {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    fs::write(&source, JUMPS).map_err(|e| e.to_string())?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
    quietly(compiler)?;
    Ok(library)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn either_of_two_processes_may_do_the_work() {
        let status = |code: i32| ExitStatus::from_raw(code << 8);
        let settled = |first, second| twins(status(first), status(second)).is_ok();
        assert!(settled(0, 0) && settled(0, 3) && settled(0, 5));
        assert!(settled(3, 0), "the second was faster");
        assert!(!settled(3, 3) && !settled(5, 3), "nobody did the work");
        assert!(!settled(101, 0) && !settled(0, 101), "a panic");
        assert!(twins(ExitStatus::from_raw(9), status(0)).is_err(), "a kill that nobody sent");
    }
}

//! A real single-node Slurm on this machine, for the duration of a test.
//!
//! Everything is private to `target/slurm/`: configuration, munge key and socket, free ports, state, logs. So
//! it works beside an existing Slurm, and for any user.

use crate::{cargo, command, run, target};
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Debian's packages, and a program of each to check for.
const PACKAGES: [(&str, &str); 4] =
    [("munge", "munged"), ("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("slurm-client", "sbatch")];

/// `cargo xtask slurm [--install] [COMMAND...]`.
pub fn run_task(args: &[String]) -> Result<(), String> {
    let args = match args {
        [first, rest @ ..] if first == "--install" => {
            let packages = PACKAGES.map(|(package, _)| package);
            run("apt-get update", command("apt-get", &["update"]))?;
            let mut install = command("apt-get", &["install", "--yes", "--no-install-recommends"]);
            install.args(packages).env("DEBIAN_FRONTEND", "noninteractive");
            run("apt-get install", install)?;
            rest
        }
        args => args,
    };
    let mut command = match args {
        [] => cargo(&["test", "--package", "album-cli", "--test", "it", "slurm::", "--", "--nocapture"]),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args);
            command
        }
    };
    let cluster = start()?;
    cluster.reach(&mut command);
    let done = run("slurm", command);
    done.map_err(|e| format!("{e}; Slurm's logs are in {}", cluster.show()))
}

/// Starts the cluster; dropping it stops the daemons.
///
/// Slurm needs more than being installed (a host name, users, ports): if it does not start, that says nothing
/// about album.
pub fn start() -> Result<Cluster, String> {
    let path = with_daemons(None);
    let found = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let missing: Vec<_> =
        PACKAGES.iter().filter(|(_, program)| !found(program)).map(|(package, _)| *package).collect();
    if !missing.is_empty() {
        return Err(format!("`cargo xtask slurm --install` installs {}", missing.join(", ")));
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|e| format!("signals: {e}"))?;
    }
    Cluster::start(&target(), &stop).map_err(|reason| format!("it is installed and does not start: {reason}"))
}

/// The running daemons; dropping it stops them.
pub struct Cluster {
    folder: PathBuf,
    /// In the order in which they were started.
    daemons: Vec<(&'static str, Child)>,
    /// Held while the folder is in use; beside the folder, because the folder is emptied.
    _lock: File,
}

impl Cluster {
    fn start(target: &Path, stop: &AtomicBool) -> Result<Self, String> {
        let folder = target.join("slurm");
        let lock = lock(&target.join("slurm.lock"))?;
        end_leftovers(&folder);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        // A separate folder for each kind; munge requires the key's to be private.
        for (name, mode) in
            [("munge", 0o700), ("run", 0o755), ("state", 0o755), ("spool", 0o755), ("logs", 0o755)]
        {
            let path = folder.join(name);
            fs::create_dir_all(&path)
                .and_then(|()| allow(&path, mode))
                .map_err(|e| format!("{}: {e}", path.display()))?;
        }
        make_key(&folder.join("munge/key"))?;
        write(&folder.join("slurm.conf"), configuration(&folder)?.as_bytes())?;

        let file = |name: &str| folder.join(name).display().to_string();
        let (conf, socket) = (file("slurm.conf"), file("run/munge.socket"));
        let munged = [
            "--foreground".into(),
            // The parent folders may belong to anyone; this key protects only a test.
            "--force".into(),
            format!("--socket={socket}"),
            format!("--key-file={}", file("munge/key")),
            format!("--pid-file={}", file("run/munged.pid")),
            format!("--log-file={}", file("logs/munged.log")),
            format!("--seed-file={}", file("munge/seed")),
        ];
        let mut cluster = Cluster { folder, daemons: Vec::new(), _lock: lock };
        cluster.daemon("munged", &munged)?;
        cluster.wait("munged", stop, || Path::new(&socket).exists())?;
        cluster.daemon("slurmctld", &["-D".into(), "-f".into(), conf.clone()])?;
        cluster.wait("slurmctld", stop, || ask(&cluster.folder, "scontrol", &["ping"]).contains(" UP"))?;
        eprintln!("== Slurm starts: SLURM_CONF={conf}");
        cluster.daemon("slurmd", &["-D".into(), "-f".into(), conf, "-N".into(), "localhost".into()])?;
        cluster
            .wait("slurmd", stop, || ask(&cluster.folder, "sinfo", &["-h", "-o", "%T"]).trim() == "idle")?;
        Ok(cluster)
    }

    fn daemon(&mut self, name: &'static str, args: &[String]) -> Result<(), String> {
        let log = self.folder.join("logs").join(format!("{name}.out"));
        let out = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let err = out.try_clone().map_err(|e| format!("{}: {e}", log.display()))?;
        let mut command = Command::new(name);
        command.args(args).stdin(Stdio::null()).stdout(out).stderr(err);
        command.env("PATH", with_daemons(None));
        // In its own process group: Ctrl-C is for this process, which then stops the daemons in order.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
        self.daemons.push((name, child));
        Ok(())
    }

    fn wait(&self, name: &str, stop: &AtomicBool, up: impl Fn() -> bool) -> Result<(), String> {
        let stopped = || stop.load(Ordering::Relaxed);
        if !until(Duration::from_secs(60), || stopped() || up()) {
            return Err(format!("{name} is not up after 60 s; its logs are in {}", self.show()));
        }
        if stopped() { Err("interrupted".into()) } else { Ok(()) }
    }

    /// Points a command to this Slurm and no other.
    pub fn reach(&self, command: &mut Command) {
        reach(&self.folder, command);
    }

    fn show(&self) -> String {
        self.folder.join("logs").display().to_string()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.daemons.len() == 3 {
            cancel_jobs(&self.folder);
        }
        for (name, child) in self.daemons.iter_mut().rev() {
            end(child, name);
        }
        eprintln!("== Slurm is stopped");
    }
}

fn reach(folder: &Path, command: &mut Command) {
    let own = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
    let path = with_daemons(own.map(OsString::from));
    command.env("SLURM_CONF", folder.join("slurm.conf")).env("PATH", path).env("ALBUM_TEST_SLURM", "1");
}

/// The output of a Slurm client; empty if it fails.
fn ask(folder: &Path, program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    reach(folder, command.args(args).stdin(Stdio::null()));
    command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Cancels jobs, which would outlive slurmd.
fn cancel_jobs(folder: &Path) {
    let queued = || ask(folder, "squeue", &["-h", "-o", "%A"]);
    let left = queued();
    if !left.trim().is_empty() {
        ask(folder, "scancel", &left.split_whitespace().collect::<Vec<_>>());
    }
    until(Duration::from_secs(40), || queued().trim().is_empty());
}

/// Whether a condition became true within this time.
fn until(time: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if done() {
            return true;
        }
        if start.elapsed() > time {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// One node with two processors, regardless of the machine, and two partitions, one of which preempts the
/// other.
fn configuration(folder: &Path) -> Result<String, String> {
    let user = said("id", &["-un"])?;
    let name = said("uname", &["-n"])?;
    let host = name.split('.').next().unwrap_or(&name);
    // Both at once, so that they differ.
    let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0"));
    let [controller, node] =
        ports.map(|port| port.and_then(|p| p.local_addr()).map(|address| address.port()));
    let (controller, node) =
        (controller.map_err(|e| format!("port: {e}"))?, node.map_err(|e| format!("port: {e}"))?);
    let folder = folder.display();
    Ok(format!(
        "ClusterName=album-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# A requeued job waits as long as credentials live: 2 minutes if not told otherwise; 5 s is the least.
AuthInfo=socket={folder}/run/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/logs/slurmctld.log
SlurmdLogFile={folder}/logs/slurmd.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=5,batch_sched_delay=0
ReturnToService=2
JobRequeue=1
# Small, so that a small experiment is split.
MaxArraySize=3
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=localhost NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=localhost Default=YES MaxTime=1-0 PriorityTier=1 State=UP
PartitionName=urgent Nodes=localhost MaxTime=1-0 PriorityTier=2 State=UP
"
    ))
}

/// A random key that only its owner can read.
fn make_key(path: &Path) -> Result<(), String> {
    use std::io::Read;
    let mut key = [0; 128];
    File::open("/dev/urandom")
        .and_then(|mut f| f.read_exact(&mut key))
        .map_err(|e| format!("/dev/urandom: {e}"))?;
    write(path, &key)?;
    allow(path, 0o600).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(unix)]
fn allow(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

/// There is no Slurm on other systems.
#[cfg(not(unix))]
fn allow(_path: &Path, _mode: u32) -> std::io::Result<()> {
    Ok(())
}

/// Ends daemons of a killed `cargo xtask slurm`. No other process has this folder in its command line.
fn end_leftovers(folder: &Path) {
    let mut cancelled = false;
    for name in ["slurmd", "slurmctld", "munged"] {
        let Ok(pid) = fs::read_to_string(folder.join("run").join(format!("{name}.pid"))) else { continue };
        let pid = pid.trim();
        let ours = || {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&*folder.to_string_lossy())
        };
        if !ours() {
            continue;
        }
        if !cancelled {
            cancel_jobs(folder);
            cancelled = true;
        }
        eprintln!("== stopping {name} (process {pid}), which an earlier run left");
        let _ = Command::new("kill").arg(pid).status();
        until(Duration::from_secs(10), || !ours());
    }
}

/// Asks a process to end, and kills it if it does not.
fn end(child: &mut Child, what: &str) {
    let _ = Command::new("kill").arg(child.id().to_string()).stderr(Stdio::null()).status();
    if !until(Duration::from_secs(10), || !matches!(child.try_wait(), Ok(None))) {
        eprintln!("== {what} (process {}) does not end; killing it", child.id());
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn lock(path: &Path) -> Result<File, String> {
    let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err("another `cargo xtask slurm` is running in this workspace".into())
        }
        Err(TryLockError::Error(e)) => Err(format!("{}: {e}", path.display())),
    }
}

/// The given PATH, or that of this process, extended by the directories of daemons, which users' often lack.
fn with_daemons(path: Option<OsString>) -> OsString {
    let mut path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

fn said(program: &str, args: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(args).output().map_err(|e| format!("cannot start {program}: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

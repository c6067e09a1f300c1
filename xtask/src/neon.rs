//! `cargo xtask neon`: album-nn's tests on an emulated 64-bit Arm processor, and its results compared with this processor's
//! bit for bit.
//!
//! Compiler, standard library, linker and emulator are Debian 12's packages, unpacked under `target/neon`: nothing is installed,
//! and no root is needed. Cargo is the usual one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{answers, captured, cargo, root, run, target};

const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// Packages of Debian 12: compiler, its library for both processors, cross linker with the C library, emulator.
const PACKAGES: [&str; 11] = [
    "rustc-web",
    "libstd-rust-web-dev",
    "libstd-rust-web-dev:arm64",
    "qemu-user-static",
    "gcc-12-aarch64-linux-gnu",
    "cpp-12-aarch64-linux-gnu",
    "binutils-aarch64-linux-gnu",
    "libgcc-12-dev-arm64-cross",
    "libgcc-s1-arm64-cross",
    "libc6-dev-arm64-cross",
    "libc6-arm64-cross",
];

pub fn run_task(args: &[String]) -> Result<(), String> {
    let if_possible = match args {
        [] => false,
        [option] if option == "--if-possible" => true,
        _ => return Err("neon: expected nothing or --if-possible".into()),
    };
    let tools = match tools() {
        Ok(tools) => tools,
        Err(reason) if if_possible => {
            eprintln!("SKIPPED NEON kernels: {reason}");
            return Ok(());
        }
        Err(reason) => return Err(format!("neon: {reason}")),
    };
    let tests = tools.cargo(&["test", "--locked", "--lib", "--test", "it"]);
    run("album-nn under qemu-aarch64", tests)?;
    let here = bits(album_nn(&["run", "--quiet", "--locked", "--example", "bits"]))?;
    let there = bits(tools.cargo(&["run", "--quiet", "--locked", "--example", "bits"]))?;
    let numbers: usize = here.lines().map(|line| line.split_whitespace().count()).sum();
    match here.lines().zip(there.lines()).find(|(here, there)| here != there) {
        Some((line, _)) => Err(format!("neon: differs in {}", line.split(": ").next().unwrap_or(line))),
        None if here.lines().count() != there.lines().count() || here.is_empty() => {
            Err("neon: one processor printed more than the other".into())
        }
        None => {
            eprintln!(
                "== neon: {} tensors with about {numbers} numbers, all bits equal",
                here.lines().count()
            );
            Ok(())
        }
    }
}

/// What the program says, as text.
fn bits(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    eprint!("== bits of {said}");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{command:?}: {}", output.status))
    }
}

/// Cargo on album-nn alone, for this processor.
fn album_nn(args: &[&str]) -> Command {
    let mut command = cargo(args);
    command.current_dir(root().join("xtask/nn")).env("CARGO_TARGET_DIR", target().join("nn"));
    command
}

/// The unpacked packages.
struct Tools {
    root: PathBuf,
}

impl Tools {
    /// Cargo on album-nn alone, for the other processor.
    fn cargo(&self, args: &[&str]) -> Command {
        let of = |path: &str| self.root.join("usr").join(path);
        let mut command = album_nn(&args[..1]);
        command.args(["--target", TRIPLE]).args(&args[1..]);
        command.env("CARGO_TARGET_DIR", target().join("neon/build"));
        command.env("RUSTC", of("bin/rustc")).env("LD_LIBRARY_PATH", of("lib/x86_64-linux-gnu"));
        let variable = |what: &str| format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_{what}");
        command.env(variable("LINKER"), of("bin/aarch64-linux-gnu-gcc-12"));
        command.env(variable("RUNNER"), of("bin/qemu-aarch64-static"));
        // A static program needs none of the other processor's libraries when it runs.
        let sysroot = format!("link-arg=--sysroot={}", self.root.display());
        command.env(variable("RUSTFLAGS"), ["-C", "target-feature=+crt-static", "-C", &sysroot].join(" "));
        command
    }
}

/// Downloads and unpacks the packages unless that was done before.
fn tools() -> Result<Tools, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("it is set up for Linux on x86-64 only".into());
    }
    for program in ["apt-get", "dpkg"] {
        if !answers(program, &["--version"]) {
            return Err(format!("there is no {program}: compiler and emulator come as Debian's packages"));
        }
    }
    let folder = target().join("neon");
    let (tools, stamp) = (Tools { root: folder.join("root") }, folder.join("packages.txt"));
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(tools);
    }
    let _ = fs::remove_dir_all(&folder);
    let made = ["lists/partial", "cache/archives/partial", "debs", "root"];
    made.iter().try_for_each(|part| fs::create_dir_all(folder.join(part))).map_err(|e| e.to_string())?;
    // The installed packages do not matter, so the list of them is empty.
    fs::write(folder.join("status"), "").map_err(|e| e.to_string())?;
    captured("neon: lists of packages", apt(&folder, &["update"]))?;
    // Further libraries of the compiler, whose names change with its version.
    let more = ["libstd-rust-web-1", "libllvm"];
    let depends =
        ["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks"];
    let mut query = apt_command("apt-cache", &folder);
    query.args(depends).args(["--no-replaces", "--no-enhances", "rustc-web:amd64"]);
    let said = query.output().map_err(|e| format!("apt-cache: {e}"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let mut names: Vec<&str> =
        said.lines().filter(|line| more.iter().any(|name| line.starts_with(name))).collect();
    names.dedup();
    let mut download = apt(&folder, &["download"]);
    download.args(PACKAGES).args(names).current_dir(folder.join("debs"));
    captured("neon: download", download)?;
    let packages = fs::read_dir(folder.join("debs")).map_err(|e| e.to_string())?.flatten();
    for package in packages {
        let mut unpack = Command::new("dpkg");
        unpack.arg("--extract").arg(package.path()).arg(&tools.root);
        captured("neon: unpack", unpack)?;
    }
    let _ = fs::remove_dir_all(folder.join("debs"));
    fs::write(&stamp, wanted).map_err(|e| e.to_string())?;
    Ok(tools)
}

/// Apt for two processors, with all that it keeps in this folder.
fn apt(folder: &Path, args: &[&str]) -> Command {
    let mut command = apt_command("apt-get", folder);
    command.arg("--quiet=2").args(args);
    command
}

fn apt_command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["-o", "APT::Architectures::=amd64", "-o", "APT::Architectures::=arm64"]);
    for (key, part) in
        [("State", ""), ("State::status", "status"), ("State::lists", "lists"), ("Cache", "cache")]
    {
        command.arg("-o").arg(format!("Dir::{key}={}", folder.join(part).display()));
    }
    command
}

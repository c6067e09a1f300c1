//! `cargo xtask audit`: what a release guarantees beyond its tests: licences and sources of what it is built from, and
//! the oldest supported compiler.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::{answers, cargo, cargo_of, root, run, target};

pub fn run_task() -> Result<(), String> {
    let deny = if answers("cargo-deny", &["--version"]) {
        run("cargo deny", cargo(&["deny", "check", "licenses", "bans", "sources"]))
    } else {
        eprintln!("SKIPPED cargo deny, which is not installed; licences and sources are checked without it");
        Ok(())
    };
    let checks = [deny, licences_and_sources(), dependencies_compile_on(), oldest_compiler()];
    let failed: Vec<String> = checks.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn output(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Every package has a licence that `deny.toml` allows, and comes from the registry or from this checkout.
fn licences_and_sources() -> Result<(), String> {
    let deny = fs::read_to_string(root().join("deny.toml")).map_err(|e| format!("deny.toml: {e}"))?;
    let allowed = deny.lines().find_map(|line| line.strip_prefix("allow = "));
    let allowed: Vec<&str> =
        allowed.ok_or("deny.toml has no `allow`")?.split('"').skip(1).step_by(2).collect();
    let mut tree = cargo(&["tree", "--workspace", "--all-features", "--locked", "--target", "all"]);
    tree.args(["--prefix", "none", "--format", "{p}\t{l}"]);
    let said = output(tree)?;
    let packages: BTreeSet<&str> = said.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let mut refused = Vec::new();
    for package in packages.iter().filter(|line| !line.is_empty()) {
        let (name, licence) = package.split_once('\t').unwrap_or((package, ""));
        if !permits(licence, &allowed) {
            refused
                .push(format!("{name}: its licence is '{licence}', expected one of {}", allowed.join(", ")));
        }
        if name.contains("://") {
            refused.push(format!("{name}: expected a package of the registry"));
        }
    }
    if !refused.is_empty() || packages.len() < 100 {
        return Err(format!("audit: {} packages\n{}", packages.len(), refused.join("\n")));
    }
    eprintln!("== licences and sources of {} packages are allowed", packages.len());
    Ok(())
}

/// Whether an expression such as `(MIT OR GPL-2.0) AND Zlib` can be met with these licences.
fn permits(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    either(&mut rest, allowed) && rest.is_empty()
}

fn either(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = both(words, allowed);
    while let ["OR", rest @ ..] = words {
        *words = rest;
        met |= both(words, allowed);
    }
    met
}

fn both(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut met = one(words, allowed);
    while let ["AND", rest @ ..] = words {
        *words = rest;
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut &[&str], allowed: &[&str]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let met = either(words, allowed);
            *words = words.get(1..).unwrap_or_default();
            met
        }
        [licence, "WITH", exception, rest @ ..] => {
            *words = rest;
            allowed.contains(&format!("{licence} WITH {exception}").as_str())
        }
        [licence, rest @ ..] => {
            *words = rest;
            allowed.contains(licence)
        }
        [] => false,
    }
}

/// No dependency asks for a newer compiler than album does.
fn dependencies_compile_on() -> Result<(), String> {
    let ours = version(env!("CARGO_PKG_RUST_VERSION"));
    let said = output(cargo(&["metadata", "--format-version", "1", "--locked"]))?;
    let (mut newer, mut count) = (Vec::new(), 0);
    // A package begins with `{"name":"...","version":"...","id":`.
    for (at, _) in said.match_indices("\"rust_version\":\"") {
        let wanted = said[at + 16..].split('"').next().unwrap_or_default();
        count += 1;
        if version(wanted) > ours {
            let begin = said[..at].rfind("\",\"id\":\"").and_then(|id| said[..id].rfind("{\"name\":\""));
            let name = begin.and_then(|begin| said[begin + 9..].split('"').next());
            newer.push(format!("{} {wanted}", name.unwrap_or("?")));
        }
    }
    if !newer.is_empty() || count < 100 {
        let newer = newer.join(", ");
        return Err(format!("audit: of {count} packages these need a newer compiler than album: {newer}"));
    }
    eprintln!(
        "== {count} packages name their oldest compiler, none is newer than {}",
        env!("CARGO_PKG_RUST_VERSION")
    );
    Ok(())
}

fn version(text: &str) -> Vec<u32> {
    text.split('.').chain(["0"]).take(3).map(|part| part.parse().unwrap_or(0)).collect()
}

/// A build with the compiler of `rust-version`, if installed.
fn oldest_compiler() -> Result<(), String> {
    let version = env!("CARGO_PKG_RUST_VERSION");
    let mut rustc = Command::new("rustc");
    rustc.arg("--version");
    let used = output(rustc)?;
    if used
        .split([' ', '-'])
        .nth(1)
        .is_some_and(|used| self::version(used)[..2] == self::version(version)[..2])
    {
        eprintln!("== everything is built with Rust {version}, the oldest that is supported");
        return Ok(());
    }
    if !answers("cargo", &[&format!("+{version}"), "--version"]) {
        // Clippy's `incompatible_msrv` is on by default.
        eprintln!(
            "SKIPPED a build with Rust {version}, which is not installed; `cargo xtask lint` finds newer functions"
        );
        return Ok(());
    }
    let mut check = cargo_of(version);
    check.args(["check", "--package", "album-cli", "--locked"]);
    check.env("CARGO_TARGET_DIR", target().join("msrv"));
    run(&format!("build with Rust {version}"), check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_licences() {
        let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"];
        let met = [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(GPL-2.0 OR MIT) AND Zlib",
            "Apache-2.0 WITH LLVM-exception",
        ];
        assert!(met.iter().all(|text| permits(text, &allowed)));
        let refused =
            ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND GPL-2.0", "Apache-2.0", "MIT MIT", "(MIT"];
        let found: Vec<_> = refused.iter().filter(|text| permits(text, &allowed)).collect();
        assert_eq!(found, [&"(MIT"]); // cargo refuses it
    }

    #[test]
    fn versions_are_numbers() {
        assert!(version("1.90") < version("1.100") && version("1.90") == version("1.90.0"));
        assert!(version("1.85.1") < version("1.90"));
    }
}

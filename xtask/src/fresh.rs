//! How much the tests install on a fresh Debian: of a system that debootstrap makes apt says what
//! it would fetch.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{packages, step};

/// Megabytes (10^6 bytes) that `cargo xtask test` may fetch.
const MB_MAX: u64 = 200;
/// As CI's machines have it.
const SUITE: &str = "bookworm";

/// `cargo xtask packages`: installs them, or (`--size`) says how much they are.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    match args {
        [] => packages::install(&[]),
        [size] if size == "--size" => {
            Ok(packages::install_these(&packages::OF_SOAK)? && check(root)?)
        }
        [arg, ..] => anyhow::bail!("unexpected argument '{arg}'; see cargo xtask help"),
    }
}

/// Whether it is little enough.
pub fn check(root: &Path) -> Result<bool> {
    ensure!(rustix::process::geteuid().is_root(), "only root may make a system of its own");
    let system = root.join("target/fresh-debian");
    if !system.join("var/lib/dpkg/status").exists() {
        let mut make = Command::new("debootstrap");
        make.args(["--variant=minbase", SUITE]).arg(&system);
        ensure!(step::run(&mut make)?, "debootstrap has failed");
    }
    let within = |args: &[&str]| {
        let out = Command::new("chroot").arg(&system).args(args).output()?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        ensure!(out.status.success(), "{}: {said}", args.join(" "));
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    };
    within(&["apt-get", "update", "--quiet"])?;
    let fetched = |packages: &[&str]| {
        let ask = ["apt-get", "install", "--yes", "--no-install-recommends", "--print-uris"];
        bytes_of(&within(&[&ask[..], packages].concat())?)
    };
    let (needed, before) = packages::names();
    let all = fetched(&[&before[..], &needed].concat())? - fetched(&before)?;
    println!("    {} MB beside what Rust needs; at most {MB_MAX}", all / 1_000_000);
    fs::remove_dir_all(&system)?;
    Ok(all / 1_000_000 <= MB_MAX)
}

/// The sum of the sizes that `apt-get --print-uris` names: `'URI' FILE SIZE HASH` a line.
fn bytes_of(said: &str) -> Result<u64> {
    let lines = said.lines().filter(|line| line.starts_with('\''));
    lines
        .map(|line| {
            let size = line.split_whitespace().nth(2).context("a line without a size")?;
            size.parse::<u64>().with_context(|| format!("a size: {size}"))
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_added_up() {
        let said = "Reading package lists...\n'http://a/b.deb' b.deb 12 SHA256:1\n\
                    'http://a/c.deb' c.deb 30 \n";
        assert_eq!(bytes_of(said).unwrap(), 42);
        assert!(bytes_of("'http://a/b.deb' b.deb x").is_err());
    }
}

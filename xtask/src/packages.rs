//! What the tests need of the system, and installing it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step;

/// Commands that tests run, and the Debian packages they come in.
const NEEDED: [(&str, &str); 32] = [
    ("mke2fs", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("dumpe2fs", "e2fsprogs"),
    ("tune2fs", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mount", "mount"),
    ("setpriv", "util-linux"),
    ("losetup", "mount"),
    ("timeout", "coreutils"),
    ("fusermount3", "fuse3"),
    ("fuse2fs", "fuse2fs"),
    ("git", "git"),
    ("cc", "gcc"),
    ("sqlite3", "sqlite3"),
    ("fio", "fio"),
    ("tar", "tar"),
    ("time", "time"),
    ("patch", "patch"),
    ("systemd-analyze", "systemd"),
    ("python3", "python3"),
    // With setuptools, which makes wheels.
    ("pip3", "python3-pip"),
    ("pytest-3", "python3-pytest"),
    ("go", "golang-go"),
    ("zstd", "zstd"),
    // A cluster of this machine, which tests of sweeps start and end.
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("sbatch", "slurm-client"),
    ("munged", "munge"),
    ("parallel", "parallel"),
    // Reads what IOzone's -b writes.
    ("runxlrd", "python3-xlrd"),
];

/// What the soak needs beside: a browser without its window, which is as large as all the others.
pub const OF_SOAK: [(&str, &str); 2] =
    [("chromium-headless-shell", "chromium-headless-shell"), ("debootstrap", "debootstrap")];

/// What a machine has on which Rust was installed and this was cloned.
const BEFORE: [&str; 4] = ["gcc", "git", "curl", "ca-certificates"];

/// The packages of all tests but the soak's, and those that are there before.
pub fn names() -> (Vec<&'static str>, [&'static str; 4]) {
    (NEEDED.iter().map(|(_, package)| *package).collect(), BEFORE)
}

/// Installs what is missing, as root; else says how. False: something is still missing.
pub fn install(extra: &[(&'static str, &'static str)]) -> anyhow::Result<bool> {
    install_all(NEEDED.iter().chain(extra).copied())
}

/// The same for these commands only.
pub fn install_these(needed: &[(&str, &str)]) -> anyhow::Result<bool> {
    install_all(needed.iter().copied())
}

fn install_all<'a>(needed: impl Iterator<Item = (&'a str, &'a str)>) -> anyhow::Result<bool> {
    let missing = missing(needed);
    if missing.is_empty() {
        return Ok(true);
    }
    let by_hand = format!("apt-get install {}", missing.join(" "));
    if !rustix::process::geteuid().is_root() {
        println!("    missing packages; as root: {by_hand}");
        return Ok(false);
    }
    println!("    {by_hand}");
    let apt = |args: &[&str]| {
        step::run(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(args))
    };
    let mut install = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    install.extend(&missing);
    // The lists may be missing, as in a container, or old.
    Ok(apt(&install)? || (apt(&["update", "--quiet"])? && apt(&install)?))
}

/// Packages of the commands that are nowhere on the path.
fn missing<'a>(needed: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    let mut packages: Vec<&str> =
        needed.filter(|(command, _)| !is_there(command)).map(|(_, package)| package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn is_there(command: &str) -> bool {
    find(command).is_some()
}

/// Where a command is; those of the administrator too.
pub fn find(command: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin";
    path.split(':').map(|folder| Path::new(folder).join(command)).find(|path| path.is_file())
}

/// The command, wherever it is.
pub fn command(name: &str) -> Command {
    Command::new(find(name).unwrap_or_else(|| name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_package_once() {
        let needed = [("sh", "dash"), ("no-such-1", "b"), ("no-such-2", "a"), ("no-such-3", "b")];
        assert_eq!(missing(needed.into_iter()), ["a", "b"]);
    }
}

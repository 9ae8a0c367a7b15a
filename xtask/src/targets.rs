//! The library on other systems: the crates below the command line are checked by the compiler for
//! each of these targets. Nothing is run there. What is Linux's alone (the host's file systems as
//! a [`FileSystem`], the flags of open(2)) is left out of `steadfast-vfs` elsewhere.
//!
//! [`FileSystem`]: ../../crates/vfs/src/fs.rs

use std::path::Path;
use std::process::Command;

use crate::{packages, step};

/// Targets, as rustup calls them.
const TARGETS: [&str; 3] =
    ["aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Crates that need no system of their own.
const CRATES: [&str; 8] = [
    "steadfast-runtime",
    "steadfast-block",
    "steadfast-vfs",
    "steadfast-journal",
    "steadfast-pagecache",
    "steadfast-ext4-format",
    "steadfast-ext4-mkfs",
    "steadfast-ext4",
];

/// Checks them; those whose standard library rustup cannot bring are skipped aloud.
pub fn check(root: &Path) -> anyhow::Result<bool> {
    if packages::find("rustup").is_none() {
        println!("    SKIPPED: rustup is missing, which has the targets");
        return Ok(true);
    }
    let mut good = true;
    for target in TARGETS {
        // A network that does not answer shall not hold the tests.
        let add = ["300", "rustup", "target", "add", target];
        let added = Command::new("timeout").args(add).current_dir(root).output();
        if !added.is_ok_and(|out| out.status.success()) {
            println!("    SKIPPED: rustup cannot bring the target {target}");
            continue;
        }
        let mut check = step::cargo(root, &["check", "--quiet", "--target", target]);
        for name in CRATES {
            check.args(["--package", name]);
        }
        good &= step::run(&mut check)?;
    }
    Ok(good)
}

//! `cargo xtask validate`: the disk model against the drives that were measured.

use std::path::Path;

use crate::step;

/// The drives that are here, with their traces.
const DRIVES: &str = "crates/lab/tests/validation";
/// Where the curves are drawn.
const CURVES: &str = "target/validation.svg";

/// Compares the drives of the folders, or those that are here; whether none is farther off than
/// DiskSim.
pub fn run(root: &Path, folders: &[String]) -> anyhow::Result<bool> {
    let mut command = step::cargo(root, &["run", "--quiet", "--package", "steadfast", "--"]);
    command.args(["lab", "validate", "--svg", CURVES]);
    let named = folders.iter().map(String::as_str);
    for folder in named.chain(folders.is_empty().then_some(DRIVES)) {
        command.args(["--drive", folder]);
    }
    let good = step::run(&mut command)?;
    println!("the curves: {CURVES}");
    Ok(good)
}

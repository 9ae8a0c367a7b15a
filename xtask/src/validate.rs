//! `cargo xtask validate`: the models against measured drives and published figures.

use std::path::Path;

use crate::step;

/// The drives that are here, with their traces.
const DRIVES: &str = "crates/lab/tests/validation";
/// Where the curves are drawn.
const CURVES: &str = "target/validation.svg";

/// Compares the drives of the folders, or those that are here, and the parts; whether no drive is
/// farther off than with DiskSim.
pub fn run(root: &Path, folders: &[String]) -> anyhow::Result<bool> {
    let program = ["run", "--quiet", "--package", "steadfast", "--", "lab", "validate"];
    let mut command = step::cargo(root, &program);
    command.args(["--svg", CURVES]);
    let named = folders.iter().map(String::as_str);
    for folder in named.chain(folders.is_empty().then_some(DRIVES)) {
        command.args(["--drive", folder]);
    }
    let good = step::run(&mut command)?;
    println!("the curves: {CURVES}\n");
    Ok(step::run(step::cargo(root, &program).arg("--parts"))? && good)
}

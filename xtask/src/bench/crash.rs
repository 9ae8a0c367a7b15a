//! `cargo xtask bench crash`: how fast power cuts are explored, beside what the same states cost
//! with the kernel and e2fsck, and what recording costs.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{conformance, packages, step};

use super::{load, machine};

/// Builds the example of the lab crate, which measures and prints.
pub(super) fn run(root: &Path, args: &[String]) -> anyhow::Result<bool> {
    for arg in args {
        anyhow::ensure!(
            ["--quick", "--json"].contains(&arg.as_str()),
            "unexpected argument '{arg}'; see cargo xtask help"
        );
    }
    if !packages::install(&[])? {
        return Ok(false);
    }
    let build = ["build", "--release", "--package", "steadfast-lab", "--example", "crash_speed"];
    let mut build = step::cargo(root, &build);
    build.args(["--message-format", "json"]).stderr(Stdio::inherit());
    let example = conformance::executable(&build.output()?)?;
    let before = load();
    let measured = Command::new(example).args(args).status()?.success();
    if !args.iter().any(|arg| arg == "--json") {
        println!("\n{}; load {before} before, {} after.", machine(), load());
    }
    Ok(measured)
}
